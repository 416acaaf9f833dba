package reconcile

import (
	"strings"

	"github.com/gitring/gitring/ring"
)

// Several managers of a cluster may act, one after the other. A word on a commit is written down on the cluster
// before the forge is told, and whoever acts tells what is written. So there is one word that closes a commit,
// whatever each manager saw, and one that is open is closed by whoever acts when a newer commit came.

// writesWords reports whether words on commits are written down on a cluster.
func (t *Pass) writesWords() bool { return t.onCluster() && t.Seen.Cluster.Lease.Holder != "" }

// writtenWord is the word that is written down; false where none is.
func (t *Pass) writtenWord(key string) (ring.CommitWord, bool) {
	if !t.writesWords() {
		return ring.CommitWord{}, false
	}
	word, written := t.Seen.Cluster.Record.Words[key]
	return word, written
}

// isWritten reports whether a post waits until it is written down. That a commit is under way is written down
// once. What trust refused of a commit of which nothing is written is told at once: that is no word on how it went.
func (t *Pass) isWritten(p ring.Post) bool {
	key := ring.PostKey(p.SHA, p.Context)
	word, written := t.writtenWord(key)
	switch {
	case !t.writesWords():
		return false
	case p.Open() && written:
		return !word.Open()
	case p.Open():
		return !t.Facts.Posts[key].Open()
	}
	return written || p.Code != ring.WhyCommitRefused
}

// postTold is the post of a key, as this manager told it or as the cluster has it written down: a word that
// closes the commit is told first where it is another one. p is what there is to tell now.
func (t *decider) postTold(p ring.Post) (ring.Post, bool) {
	key := ring.PostKey(p.SHA, p.Context)
	old, told := t.Facts.Posts[key]
	word, written := t.writtenWord(key)
	switch {
	case !written, told && !old.Open() && old.State == word.State:
		return old, told
	case word.Open():
		return old, told && old.Open() // else another manager took it back
	}
	p.State, p.Phase, p.Description, p.Code, p.Turns = word.State, word.Phase, postText(word.Description), word.Code, old.Turns
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
	word := ring.CommitWord{Source: p.Source, State: ring.PostPending} // what is under way changes often
	if !p.Open() {
		word.State, word.Phase, word.Description, word.Code = p.State, p.Phase, p.Description, p.Code
	}
	t.writeWord(ring.PostKey(p.SHA, p.Context), word)
	if app, is := strings.CutPrefix(p.Context, t.postContext("")+"/"); is {
		if key := ring.PostKey(p.SHA, ring.DeploymentContext(t.Host, app)); !p.Open() && t.Seen.Cluster.Record.Words[key].Open() {
			t.writeWord(key, word) // both end with one word
		}
	}
	return false
}

// writeWord has a word written down, in the place of the one that this look saw.
func (t *decider) writeWord(key string, word ring.CommitWord) {
	word.N = t.Seen.Cluster.Record.Words[key].N
	put(&t.toWrite, key, word)
}

// adoptWords takes over what other managers left of commits that came before the newest one: what is open
// becomes this manager's own, so that it is closed, and what closes a commit is told where nobody is known
// to have told it. A commit that this manager has not fetched yet came after it, and stays.
func (t *decider) adoptWords(src *Source) {
	next, written := t.writtenWord(ring.PostKey(src.Next.Commit, t.postContext("")))
	if !written {
		return
	}
	words := t.Seen.Cluster.Record.Words
	left := func(key string) bool {
		w := words[key]
		return !w.Told && w.Source == src.Name && w.First < next.First && !t.knowsWord(key, w)
	}
	for _, key := range keysThat(words, left) {
		sha, context, _ := strings.Cut(key, " ")
		w := words[key]
		p := ring.Post{
			Source: src.Name, SHA: ring.SHA(sha), Context: context, State: w.State, Phase: w.Phase, Description: postText(w.Description), Code: w.Code, At: t.now,
		}
		if w.Open() {
			p.Description = postText(supersededBy(src))
		}
		if isHash(p.SHA) && t.ourName(p) && !t.stillOpen(src, p) {
			t.setFact(p)
		}
	}
}

// isHash reports whether a commit that stands on the record can be one: it becomes part of an address.
func isHash(sha ring.SHA) bool {
	return len(sha) >= 40 && strings.Trim(string(sha), "0123456789abcdef") == ""
}

// knowsWord reports whether this manager told a word.
func (t *Pass) knowsWord(key string, w ring.CommitWord) bool {
	p, told := t.Facts.Posts[key]
	return told && p.Open() == w.Open() && (w.Open() || p.State == w.State)
}

// writeWords has the words of this look written down, and that others were told by now.
func (t *decider) writeWords() {
	if len(t.toWrite) == 0 {
		return
	}
	words := t.Seen.Cluster.Record.Words
	told := func(key string) bool { return !words[key].Open() && !words[key].Told && t.knowsWord(key, words[key]) }
	for _, key := range keysThat(words, told) {
		if _, changes := t.toWrite[key]; !changes {
			w := words[key]
			w.Told = true
			t.toWrite[key] = w
		}
	}
	t.addStep(ring.Action{Kind: ring.DoWords, Words: t.toWrite, Reason: "for the next manager that acts"})
}
