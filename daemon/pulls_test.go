package daemon

import (
	"encoding/json"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// A contributor who may sign and not merge asks for the host's values wherever a plan
// says what differs, and reads the pull request.
func TestNoPlanOnAPullRequestTellsAHostsValue(t *testing.T) {
	env := &envFolder{key: []byte("key")}
	values := HostValues{files: map[string]map[string][]byte{"web": {".env": []byte("PIN=s3cret\nNUM=713\n"), "held.env": []byte("HELD=0ther\n")}}}
	read := func(service string) manifest.Reading {
		tree := fstest.MapFS{
			"web/compose.yaml": {Data: []byte("services:\n  web:\n    " + service + "\nvolumes: {d: {}}\n")},
			"web/f":            {Data: []byte("x")}, "web/s3cret.env": {Data: []byte("A=1")},
			"web/s3cret.yaml": {Data: []byte("services: {web: {image: a, no_such_key: 1}}")},
		}
		return manifest.Look(&ring.Commit{SHA: "c0ffee", Tree: tree}, values.Settings(manifest.Settings{Source: "prod", Path: ".", Host: "edge-1"}, env.key))
	}
	const before = `image: "a:1"`
	for says, want := range map[string]string{
		`image: "a:${PIN}"`:                                            "image",
		`{image: "a:1", environment: ["${PIN}=1"]}`:                    "env, image",
		`{image: "a:1", environment: ["PIN", "HELD=1"]}`:               "env HELD, env PIN, image a:1 to be resolved", // sealed: nothing stands open
		`{image: "a:1", env_file: held.env}`:                           "env HELD, image a:1 to be resolved",
		`{image: "a:1", labels: ["${PIN}=1"]}`:                         "label, image",
		`{image: "a:1", volumes: ["./f:/x/${PIN}"]}`:                   "mount, image",
		`{image: "a:1", deploy: {replicas: "${NUM}"}}`:                 "replicas, image",
		`{image: "a:1", stop_grace_period: "${NUM}s"}`:                 "stop_grace, image",
		`{image: "a:1", env_file: "${PIN}.env"}`:                       "env, image",
		`{image: "a:1", extends: {file: "${PIN}.yaml", service: web}}`: "",
		`{image: "a:1", x-gitring: {before: "${PIN}"}}`:                "",
	} {
		for _, back := range []bool{false, true} { // to it, and away from it once it is in force
			first, then := before, says
			if back {
				first, then = says, before
			}
			was, next := read(first), read(then)
			if len(was.Plan.Apps) == 0 {
				continue
			}
			w := reconcile.World{Facts: ring.Facts{Apps: map[string]ring.InForce{"web": {App: was.Plan.Apps[0]}}}}
			changes := reconcile.Plan(w, &next.Plan, time.Now())
			changes.Refusals = next.Refusals
			open := false
			for i := range next.Plan.Apps {
				open = manifest.Open(&next.Plan.Apps[i]) || manifest.Open(&was.Plan.Apps[0])
			}
			for i := range changes.Apps {
				if open {
					changes.Apps[i].Services[0].GapSeconds = 713 // as by a grace of that many
				}
			}
			got := public(changes, map[string]bool{"web": open}, env.all(values))
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			_, status := (&notify.PullPlan{Changes: &got}).Post()
			for _, secret := range []string{"s3cret", "0ther", "713"} {
				require.NotContains(t, string(raw)+status, secret, "%s (back: %t)", says, back)
			}
			if !back && want != "" {
				require.Equal(t, want, got.Apps[0].Services[0].Reason, says)
			}
		}
	}
}
