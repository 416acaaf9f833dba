package ring

import "time"

// Receiver is what is remembered of one that is told what happens here: a chat or
// a web hook.
type Receiver struct {
	Name string
	// Cursor is the last line of the journal that was considered for it.
	Cursor int64
	// State is what its reader of the journal knows besides, in a form of its own.
	State []byte
}

// Delivery is one message that waits to reach a receiver, as the store hands it
// out. It is sent at least once: one that was sent and not noted is sent again,
// under the same ID.
type Delivery struct {
	ID       string // "<receiver>/<line of the journal>"
	Receiver string
	Kind     string // of the event
	Subject  string // what it is about: a source, an app, app/service
	Body     []byte // what is said, in the sender's own form; it holds no secret
	Queued   time.Time
	Attempts int
	Next     time.Time // when it is due; zero is at once
	Error    string    // of the last attempt; "" when there was none
	Dead     bool      // given up, until a person asks again
	Settled  time.Time // when it was taken or given up; zero while it waits
}

// Unsaid is a line of the way out that has not arrived: a commit status or a
// delivery.
type Unsaid struct {
	ID       string    `json:"id"`
	To       string    `json:"to"` // source of the status, or name of the receiver
	What     string    `json:"what"`
	Commit   SHA       `json:"commit,omitempty"`
	State    string    `json:"state"` // waiting, dead, left
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason,omitempty"`
	Queued   time.Time `json:"queued"`
	Next     time.Time `json:"next,omitzero"` // of one that waits; zero is at once
}

// States of what has not arrived.
const (
	UnsaidWaits = "waiting"
	UnsaidDead  = "dead"
	// UnsaidLeft is of a receiver or source that the configuration does not name any
	// more: it is kept for a while, and nobody is told.
	UnsaidLeft = "left"
)

// ReceiverStatus is a receiver that could not be told everything.
type ReceiverStatus struct {
	Name    string `json:"name"`
	Service string `json:"service"` // slack, ntfy, webhook, …
	Waiting int    `json:"waiting"`
	Dead    int    `json:"dead,omitempty"`
	Reason  string `json:"reason,omitempty"` // of the last attempt; "" when it was taken
}
