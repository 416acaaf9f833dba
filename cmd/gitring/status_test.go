package main

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func TestAStatusIsTheSameWhileOnlyTimePasses(t *testing.T) {
	st := ring.Status{At: time.Unix(1, 0), Sources: []ring.SourceStatus{{Name: "prod", Checked: time.Unix(1, 0)}}}
	later := ring.Status{At: time.Unix(9, 0), Sources: []ring.SourceStatus{{Name: "prod", Checked: time.Unix(9, 0), Checking: true}}}
	require.Equal(t, faceOf(st), faceOf(later))
	require.True(t, later.Sources[0].Checking, "the status itself is left alone")
	later.Sources[0].Sync = ring.SyncApplying
	require.NotEqual(t, faceOf(st), faceOf(later))
}

func TestNarrowingLeavesTheStatusAlone(t *testing.T) {
	st := &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{
		{Name: "web", Services: []ring.ServiceStatus{{Name: "a"}, {Name: "b"}}}, {Name: "db"},
	}}, {Name: "lab"}}}
	before, err := json.Marshal(st)
	require.NoError(t, err)
	part, ok := api.Narrow(st, "web/b")
	require.True(t, ok)
	require.Len(t, part.Sources, 1)
	require.Equal(t, []ring.ServiceStatus{{Name: "b"}}, part.Sources[0].Apps[0].Services)
	for _, none := range []string{"lab", "web/c", "prod", "db/a", ""} {
		_, ok = api.Narrow(st, none)
		require.False(t, ok, none)
	}
	after, err := json.Marshal(st)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
	require.True(t, reflect.DeepEqual(api.AppsOf(st), []string{"web", "db"}))
}
