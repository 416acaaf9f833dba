package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A registry that has a tag for no such machine says so at each question, for ever.
func TestANoOfARegistryIsToldOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	no := &ring.EngineError{Err: errors.New("image nginx:1 is not there"), Refusal: &ring.Refusal{Code: ring.ImageNotFound, Says: "image nginx:1 is not there"}}
	row := ring.TagRow{Tag: "docker.io/library/nginx:1", Image: "nginx:1", Asked: now}
	told := 0
	for range 5 {
		now = now.Add(24 * time.Hour)
		facts, events := tagAnswered(ring.Action{Kind: ring.DoResolve, Record: row}, ring.Done{}, no, now)
		require.Len(t, facts, 1)
		row = facts[0].(ring.TagRow)
		require.Equal(t, now, row.Asked)
		told += len(events)
	}
	require.Equal(t, 1, told)
	done := ring.Done{Pin: ring.Pin{Image: "nginx@sha256:a"}}
	facts, _ := tagAnswered(ring.Action{Kind: ring.DoResolve, Record: row}, done, nil, now)
	row = facts[len(facts)-1].(ring.TagRow)
	_, events := tagAnswered(ring.Action{Kind: ring.DoResolve, Record: row}, ring.Done{}, no, now)
	require.Len(t, events, 1, "after an answer it is news again")
}
