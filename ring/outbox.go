package ring

import "time"

// OutboxRow is a post that waits to be said, as the store hands it to notify.
// There is one row per (sha, context): a newer post takes the place of an older
// one, so what a forge missed while it was away is never said late.
type OutboxRow struct {
	// Key is PostKey(Post.SHA, Post.Context).
	Key string
	// Seq grows with every post that replaces the row. Who answers for a row
	// names the Seq it was handed: an answer for an older one changes nothing
	// about the newer.
	Seq int64
	// Attempts are the failed ones of this Seq.
	Attempts int
	// Next is when it is due; zero is at once.
	Next time.Time
	// Sent is how often a post under this key reached the forge.
	Sent int
	// Remote is what the forge calls this row: the id of its deployment or of the
	// pipeline that its status stands in; "" when it has none or nobody knows it.
	Remote string
	// SaidState, SaidPhase and SaidDescription are what the forge was told last under this
	// key; "" when it was told nothing.
	SaidState, SaidPhase, SaidDescription string
	Post                                  Post
}

// Said is what a reader of the forge sees now, as Post.Says words it.
func (r OutboxRow) Said() string {
	return Post{State: r.SaidState, Phase: r.SaidPhase, Description: r.SaidDescription}.Says()
}
