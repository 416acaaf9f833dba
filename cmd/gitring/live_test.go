package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log is told how far a pull is, but not twice a second.
func TestProgressIsToldNowAndThen(t *testing.T) {
	now := time.Unix(1000, 0)
	var b strings.Builder
	l := (&globals{now: func() time.Time { return now }}).live(&b)
	for _, x := range []struct {
		after time.Duration
		line  string
	}{
		{0, "prod  Staging  next b2c3d4e: app web: pulling web:1"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (1MB of 9MB, 0 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (2MB of 9MB, 0 of 3 layers)"},
		{4 * time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (5MB of 9MB, 1 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: pulling web:1 (6MB of 9MB, 1 of 3 layers)"},
		{time.Second, "prod  Staging  next b2c3d4e: app web: resolving db:1"},
	} {
		now = now.Add(x.after)
		require.NoError(t, l.say("prod", x.line))
	}
	require.Equal(t, `prod  Staging  next b2c3d4e: app web: pulling web:1
prod  Staging  next b2c3d4e: app web: pulling web:1 (5MB of 9MB, 1 of 3 layers)
prod  Staging  next b2c3d4e: app web: resolving db:1
`, b.String())
}
