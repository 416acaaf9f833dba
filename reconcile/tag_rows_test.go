package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var tagNoon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// A registry that limits requests says when to come again. It cannot have a tag asked less
// often than the commit says.
func TestARegistryThatLimitsIsAskedNoSooner(t *testing.T) {
	asked := func(row ring.TagRow, err error) ring.TagRow {
		facts, _ := tagAnswered(ring.Action{Record: row, Image: "web:1"}, ring.Done{}, err, tagNoon)
		return facts[len(facts)-1].(ring.TagRow)
	}
	limit := func(wait time.Duration) error {
		return &ring.EngineError{Wait: wait, Err: errors.New("429")}
	}
	for _, c := range []struct {
		says  string
		err   error
		after time.Duration
	}{
		{"an hour is more than the first wait", limit(time.Hour), time.Hour},
		{"a minute is less", limit(time.Minute), 5 * time.Minute},
		{"a year is too much", limit(365 * 24 * time.Hour), 24 * time.Hour},
		{"it says nothing", errors.New("connection refused"), 5 * time.Minute},
	} {
		row := asked(ring.TagRow{Tag: "web:1", Image: "web:1", Asked: tagNoon.Add(-24 * time.Hour)}, c.err)
		require.Equal(t, tagNoon.Add(c.after), mayRetry(&row, 24*time.Hour), c.says)
		row = asked(row, errors.New("connection refused"))
		require.Equal(t, tagNoon.Add(10*time.Minute), mayRetry(&row, 24*time.Hour), "%s, and then nobody answers", c.says)
	}
}

// A tag that nothing follows any more is forgotten with the yes to what it meant: for a service
// that follows it anew nobody said yes.
func TestAYesIsForgottenWithItsTag(t *testing.T) {
	row := ring.TagRow{Tag: "docker.io/library/web:1", Image: "web:1", Pin: ring.Pin{Image: "web@sha256:" + strings.Repeat("a", 64)}}
	facts := ring.Facts{Tags: map[string]ring.TagRow{}, Approvals: map[ring.SHA]ring.Approval{}, Ran: map[string]ring.RanRow{}}
	for _, f := range []ring.Fact{row, ring.Approval{Commit: row.Approved(), Actor: "ann", At: tagNoon}, ring.Approval{Commit: "other", Actor: "ann", At: tagNoon}} {
		table, key := f.Row()
		facts.Put(table, key, f)
	}
	d := newDecider(World{Host: "h", Facts: facts}, tagNoon)
	d.askTags()
	require.Empty(t, d.Facts.Tags)
	require.Len(t, d.Facts.Approvals, 1)
	require.Contains(t, d.Facts.Approvals, ring.SHA("other"))
}

// Who moves a tag again and again fills no database, and what came in first goes first.
func TestTheDigestsThatRanAreBounded(t *testing.T) {
	digest := func(i int) string { return fmt.Sprintf("sha256:%064d", i) }
	facts := ring.Facts{Tags: map[string]ring.TagRow{}, Approvals: map[ring.SHA]ring.Approval{}, Ran: map[string]ring.RanRow{}}
	for i := range mostRan {
		f := ring.RanRow{Digest: digest(i), At: tagNoon.Add(time.Duration(i) * time.Minute)}
		table, key := f.Row()
		facts.Put(table, key, f)
	}
	d := newDecider(World{Host: "h", Facts: facts}, tagNoon.Add(-time.Hour)) // the clock was set back
	d.noteRan(&ring.Service{Pin: ring.Pin{Image: "web@" + digest(mostRan)}})
	require.Len(t, d.Facts.Ran, mostRan)
	require.NotContains(t, d.Facts.Ran, digest(0))
	require.Contains(t, d.Facts.Ran, digest(1))
	require.Contains(t, d.Facts.Ran, digest(mostRan), "what runs now, whatever the clock says")
}
