package reconcile

import "github.com/gitring/gitring/ring"

// Several managers of a cluster may act, one after the other. A word that closes a commit is written down on
// the cluster before the forge is told, and whoever acts tells what is written. So there is one such word,
// whatever each manager saw. What trust or a policy refused is told at once: that may be taken back.

// writesWords reports whether closing words are written down on a cluster.
func (t *Pass) writesWords() bool { return t.onCluster() && t.Seen.Cluster.Lease.Holder != "" }

// isWritten reports whether a post waits until it is written down.
func (t *Pass) isWritten(p ring.Post) bool {
	return t.writesWords() && !p.Open() && p.Code != ring.WhyCommitRefused && p.Code != ring.WhyAppRefused
}

// postTold is the post of a key, as this manager told it or as the cluster has it written down: that is told
// first where it is another word. p is what there is to tell now.
func (t *decider) postTold(p ring.Post) (ring.Post, bool) {
	key := ring.PostKey(p.SHA, p.Context)
	old, told := t.Facts.Posts[key]
	if !t.writesWords() {
		return old, told
	}
	word, written := t.Seen.Cluster.Record.Closings[key]
	if !written || told && !old.Open() && old.State == word.State {
		return old, told
	}
	p.State, p.Phase, p.Description, p.Code, p.Turns = word.State, word.Phase, word.Description, word.Code, old.Turns
	if told && !old.Open() && p.State == ring.PostSuccess {
		p.Turns++
	}
	t.setFact(p)
	return p, true
}

// tellPost tells a post, or has it written down first. It reports whether it is told.
func (t *decider) tellPost(p ring.Post) bool {
	if !t.isWritten(p) {
		t.setFact(p)
		return true
	}
	key := ring.PostKey(p.SHA, p.Context)
	put(&t.closings, key, ring.Closing{
		State: p.State, Phase: p.Phase, Description: p.Description, Code: p.Code, N: t.Seen.Cluster.Record.Closings[key].N,
	})
	return false
}

// writeWords has the closing words of this look written down.
func (t *decider) writeWords() {
	if len(t.closings) > 0 {
		t.addStep(ring.Action{Kind: ring.DoClosings, Closings: t.closings, Reason: "they close commits"})
	}
}
