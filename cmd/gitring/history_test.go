package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
)

func TestHistoryNamesTheSourceWhereThereAreSeveral(t *testing.T) {
	s := screen.New(false, 0)
	showHistory(s, []api.CommitNow{{Commit: "b2c3d4e5", Source: "prod", Outcome: api.OutcomeLive}, {Commit: "a1b2c3d4", Source: "lab", Outcome: api.OutcomeLive}})
	require.Contains(t, s.String(), "SOURCE")
	require.Contains(t, s.String(), "lab")
}
