package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyLinuxServes(t *testing.T) {
	require.NoError(t, servesOn("linux"))
	for _, system := range []string{"darwin", "windows"} {
		require.ErrorContains(t, servesOn(system), "cannot serve on "+system+": the daemon needs Linux")
	}
}

func TestVersionNamesTheCommitThatWasBuilt(t *testing.T) {
	sha, day := "0123456789abcdef0123456789abcdef01234567", "2026-11-22T20:00:00Z"
	checkout := func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: sha}, {Key: "vcs.time", Value: day}}}, true
	}
	gotSHA, gotDay := builtFrom(checkout)
	require.Equal(t, sha, gotSHA)
	require.Equal(t, day, gotDay)
	require.Equal(t, " (0123456, 2026-11-22)", fromCommit(gotSHA, gotDay))

	none := func() (*debug.BuildInfo, bool) { return nil, false }
	require.Equal(t, "", fromCommit(builtFrom(none)))

	commit, date = "fedcba9876543210fedcba9876543210fedcba98", "2026-01-02T03:04:05Z" // as make dist sets them
	t.Cleanup(func() { commit, date = "", "" })
	require.Equal(t, " (fedcba9, 2026-01-02)", fromCommit(builtFrom(checkout)))
}
