package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// V67 in status: what waits for an approval holds the source with its sentence and
// exit 9, the forge is told at the tip, and nothing of it is carried out.
func TestASourceThatAwaitsApprovalIsHeld(t *testing.T) {
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	const says = "commit 2222222 has 1 of 2 approvals; it waits for somebody else with the role vouch to answer for it"
	src := Source{
		Name: "s", Branch: "main", Tip: "2222222222222222222222222222222222222222", Awaiting: says, Reached: now, FreshFor: time.Hour,
		Commit: &ring.Commit{SHA: "1111111111111111111111111111111111111111"},
		Next:   &ring.Plan{Source: "s", Commit: "1111111111111111111111111111111111111111"},
	}
	look := func() Decision {
		return Diff(World{Host: "h", Sources: []Source{src}, Seen: ring.Seen{}, Facts: ring.NewFacts()}, now)
	}
	d := look()
	require.Equal(t, ring.SyncHeld, d.Status.Sources[0].Sync)
	require.Equal(t, says, d.Status.Sources[0].Reason)
	require.Equal(t, 9, d.Status.ExitCode())
	require.Empty(t, d.Actions)
	tip := func() *ring.Post {
		for _, f := range look().Facts {
			if p, ok := f.(ring.Post); ok && p.SHA == src.Tip {
				return &p
			}
		}
		return nil
	}
	require.Equal(t, ring.PostPending, tip().State)
	require.Contains(t, tip().Description, "awaiting approval: commit 2222222 has 1 of 2")

	src.Awaiting, src.Refusal = "", &ring.Refusal{Code: ring.Unsigned, Commit: src.Tip, Says: "commit 2222222 is not signed"}
	require.Equal(t, ring.SyncRefused, look().Status.Sources[0].Sync)
	src.Refusal, src.Next, src.Commit, src.Awaiting = nil, nil, nil, says
	require.Equal(t, ring.SyncHeld, look().Status.Sources[0].Sync, "also before anything was trusted")
}

// A refusal stands with its own app, wherever the line that it names is: a file of another
// app may be at fault, or be taken for it, and that one goes on.
func TestARefusedAppIsToldThoughItsFaultStandsInAnothersFile(t *testing.T) {
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	const sha = "1111111111111111111111111111111111111111"
	web := ring.App{Name: "web", Source: "s", Path: "web", Commit: sha}
	told := func(plan ring.Plan) (names []string, exit int) {
		facts := ring.NewFacts()
		facts.Set(ring.InForce{App: web})
		src := Source{Name: "s", Branch: "main", Tip: sha, Reached: now, FreshFor: time.Hour, Commit: &ring.Commit{SHA: sha}, Next: &plan}
		d := Diff(World{Host: "h", Sources: []Source{src}, Facts: facts}, now)
		for _, a := range d.Status.Sources[0].Apps {
			if a.Refusal != nil {
				names = append(names, a.Name)
			}
		}
		return names, d.Status.ExitCode()
	}
	refused := map[string]*ring.Refusal{"evil": {Code: ring.PolicyDenied, App: "evil", File: "web/compose.yaml", Line: 1, Says: "no"}}
	names, exit := told(ring.Plan{Source: "s", Commit: sha, Apps: []ring.App{web}, Refused: refused})
	require.Equal(t, []string{"evil"}, names)
	require.NotZero(t, exit)
	// A file that does not even give its app's name stands with the app in its folder, once.
	names, _ = told(ring.Plan{Source: "s", Commit: sha, Refused: map[string]*ring.Refusal{"web-2": {Code: ring.BadValue, App: "web-2", File: "web/compose.yaml", Says: "no"}}})
	require.Equal(t, []string{"web"}, names)
}

// A plan that waits is told once, whatever the forge heard of it: posts are late, are closed,
// or are of two sources at once. It is told anew for another reason, or when it waits again.
func TestAPlanThatWaitsIsToldOnce(t *testing.T) {
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	facts := ring.NewFacts()
	facts.Set(ring.InForce{App: ring.App{Name: "web", Source: "s", Path: "web", Commit: "c1", Services: []ring.Service{{Name: "web", Kind: ring.Worker}}}})
	src := Source{
		Name: "s", Branch: "main", Tip: "c2", Reached: now, FreshFor: time.Hour, Apply: ApplyAuto,
		Commit: &ring.Commit{SHA: "c2"}, Next: &ring.Plan{Source: "s", Commit: "c2"},
	}
	look := func() (told []string) {
		d := Diff(World{Host: "h", Sources: []Source{src}, Seen: ring.Seen{}, Facts: facts}, now)
		for _, f := range d.Facts {
			if _, post := f.(ring.Post); !post {
				facts.Set(f)
			}
		}
		for _, e := range d.Events {
			if e.Kind == ring.PlanAwaiting {
				told = append(told, e.Reason)
			}
		}
		return told
	}
	require.Equal(t, []string{"the tree is empty: removes its only service"}, look())
	require.Empty(t, look())
	src.Apply = ApplyApprove
	require.Len(t, look(), 1, "for another reason")
	require.Empty(t, look())
	src.Next.Commit, src.Tip = "c3", "c3"
	require.Len(t, look(), 1, "another commit")
	facts.Set(ring.Approval{Commit: "c3", At: now})
	require.Empty(t, look())
	require.Empty(t, facts.Awaited, "it waits no more")
}
