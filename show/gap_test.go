package show

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTheGapInTheTableIsOneWord(t *testing.T) {
	for want, c := range map[string]ring.ServiceChange{
		"none":  {Class: ring.ChangeRoll},
		"-":     {Class: ring.ChangeCreate},
		"12s":   {Class: ring.ChangeRecreate, Gap: "stop up to 10s + start about 2s", GapSeconds: 12},
		"yes":   {Class: ring.ChangeRecreate, Gap: "stop up to 10s + start (at most 2m)"},
		"waits": {Class: ring.ChangeRecreate, Gap: "waits up to 30s: writable volume db"},
		"1s":    {Class: ring.ChangeRoll, Gap: "last gap 1s", GapSeconds: 1},
	} {
		require.Equal(t, want, gapOf(c))
	}
}
