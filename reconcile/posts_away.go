package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// awayPosts is what the forge is told while the engine cannot be looked at: nothing
// goes on, and that is not the commit's fault. It takes the place of progress,
// never of an outcome, and of nothing that the engine has no part in.
func awayPosts(w World, since, now time.Time) []ring.Fact {
	if now.Sub(since) < progressEvery {
		return nil
	}
	var out []ring.Fact
	for i := range w.Sources {
		src := &w.Sources[i]
		if src.Next == nil || src.Apply == ApplyObserve {
			continue
		}
		t := &decider{Pass: Pass{World: w}}
		if src.Silent && len(t.sharingSources(src.Next.Commit)) > 0 {
			continue // another source of the commit is heard
		}
		p := ring.Post{
			Source: src.Name, SHA: src.Next.Commit, Context: t.postContext(""),
			State: ring.PostError, Phase: ring.PostTrouble, Description: "docker unavailable; retrying", At: now,
		}
		old, told := w.Facts.Posts[ring.PostKey(p.SHA, p.Context)]
		if !told || old.Open() && !old.Same(p) {
			out = append(out, p)
		}
	}
	return out
}
