package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a person reads on a real engine: what runs beside what is wanted, what it takes of
// the host, and what became of each commit.
func TestAPersonReadsWhatRunsAndWhatBecameOfEachCommit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	compose := func(more ...obj) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", more...)})}
	}
	h.start()
	first := h.deployed("Say hello", compose())
	code, out := h.run("status", "-o", "wide")
	require.Equal(t, 0, code, out)
	require.Regexp(t, app+`/web +Ready +1/1 +`+first[:7]+` .*`+image+` +sha256:[0-9a-f]{12}`, out)
	require.Regexp(t, app+`-web-1\S* +1 +Ready +\d+s +0 +\d+\.\d% +\d+[KM]iB +\d+\.\d+\.\d+\.\d+ +`+first[:7], out)

	second := h.repo.pushed("Break it", compose(broken()))
	h.await("it is restored", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Restored"
	})
	code, out = h.run("status")
	require.Equal(t, 6, code, out)
	require.Regexp(t, app+`/web +Restored +1/1 +`+first[:7]+` +`+second[:7]+` `, out)
	require.Contains(t, out, "gitring retry "+app+"/web")
	code, out = h.run("status", "--problems")
	require.Equal(t, 6, code, out)
	require.Contains(t, out, app+"/web")
	code, out = h.run("inspect", app+"/web")
	require.Equal(t, 0, code, out)
	require.NotContains(t, out, "exit -1")
	require.Contains(t, out, "last failure: slot 1 ")

	code, out = h.run("history")
	require.Equal(t, 0, code, out)
	require.Regexp(t, second[:7]+` +restored +\S+ +Break it; `+app+`/web: kept `, out)
	require.Regexp(t, first[:7]+` +live +\S+ +Say hello\n`, out)
	var commits []struct{ Commit, Subject, Signer, Outcome, Says string }
	code, out = h.run("history", "-o", "json")
	require.Equal(t, 0, code, out)
	require.NoError(t, json.Unmarshal([]byte(out), &commits))
	require.Len(t, commits, 2, "a commit is one entry, however many lines the journal has of it")
	require.Equal(t, []string{second, first}, []string{commits[0].Commit, commits[1].Commit})
	require.Equal(t, []string{"restored", "live"}, []string{commits[0].Outcome, commits[1].Outcome})
	require.Equal(t, []string{"Break it", "Say hello"}, []string{commits[0].Subject, commits[1].Subject})
	require.Equal(t, "alice@example.org", commits[0].Signer)
	require.Contains(t, commits[0].Says, app+"/web: kept ")
	code, out = h.run("events", "-o", "json", "-n", "0")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, `"kind":"rollout.restored"`, "the journal has each step")

	code, out = h.run("history", app, "-n", "1")
	require.Equal(t, 0, code, out)
	require.NotContains(t, out, "Say hello")
}
