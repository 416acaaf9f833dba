package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// Format is what a proof begins with. Another one is read by another release.
const Format = "gitring.proof/1"

// Bounds of a proof. What is made is at most MostMade; what is read may be larger, because
// whoever checks may ask for more.
const (
	MostMade = 1 << 20
	MostRead = 64 << 20

	mostInflated = 256 << 20
	mostObjects  = 400_000
	mostLines    = 200_000
)

// Proof is the whole file.
type Proof struct {
	Format    string    `json:"format"`
	Statement Statement `json:"statement"`
	// Objects are those of Git, packed: see pack.go.
	Objects []byte  `json:"objects"`
	Journal Journal `json:"journal"`
}

// Statement is what the host says. Everything else in the file is there so that it need not
// be believed.
type Statement struct {
	Host    string    `json:"host"`
	Made    time.Time `json:"made"`
	Gitring string    `json:"gitring"` // the release that made it
	Source  string    `json:"source"`
	Branch  string    `json:"branch"`

	App       string       `json:"app"`
	Service   string       `json:"service"`
	Slot      int          `json:"slot"`
	Kind      ring.Kind    `json:"kind"`
	Version   ring.Version `json:"version"`
	Commit    ring.SHA     `json:"commit"`
	Container Container    `json:"container"`

	// Pins are the images of the service, and of those whose versions are part of its own.
	Pins map[string]Pin `json:"pins"`
	// Verdict is what came of the image's signatures; nil where none are asked for.
	Verdict *Verdict `json:"verdict,omitempty"`
	Values  Values   `json:"values"`
	Chain   Chain    `json:"chain"`
	Objects Packed   `json:"objects"`
}

// Container is the container as the engine has it.
type Container struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Image   string            `json:"image"`    // what it was made of, as the engine was told
	ImageID string            `json:"image_id"` // what the engine runs
	State   ring.State        `json:"state"`
	Created time.Time         `json:"created"`
	Started time.Time         `json:"started,omitzero"`
	Labels  map[string]string `json:"labels"`
	// LeftOut are the names of labels whose values are not in the proof: those of the image,
	// and those that may hold a secret.
	LeftOut []string `json:"labels_left_out,omitempty"`
}

// Pin is the image of a service, and the mark that a person's restart gave it.
type Pin struct {
	Image string `json:"image"`
	Mark  string `json:"mark,omitempty"`
}

// Verdict is what a host found when it looked for signatures of an image.
type Verdict struct {
	Image string    `json:"image"` // its repository with its digest
	Rule  string    `json:"rule"`  // the hash of the rule that asked
	Keys  []string  `json:"keys,omitempty"`
	Form  string    `json:"form"`
	At    time.Time `json:"at"`
}

// VerdictOf is what a proof says of the signatures of a pinned image; nil where a host did not
// look for any, or found none that count.
func VerdictOf(found map[string]ring.ImageVerdict, pin string) *Verdict {
	v, ok := found[ring.VerdictKey(pin)]
	if !ok || !v.Good {
		return nil
	}
	return &Verdict{Image: v.Image, Rule: v.Rule, Keys: v.Keys, Form: v.Form, At: v.At.UTC()}
}

// says is who signed, for people.
func (v *Verdict) says() string {
	return (ring.ImageVerdict{Keys: v.Keys, Form: v.Form}).SignedBy()
}

// Chain is the way from where trust begins to the commit.
type Chain struct {
	From ring.SHA `json:"from"`
	// How is what the host's trust in From rests on; "" where the chain begins later.
	How     string `json:"how,omitempty"`
	LeftOut string `json:"left_out,omitempty"` // why it does
	Commits int    `json:"commits"`            // after From
	// Heads are those of pull requests that landings were made from, by their refs. They
	// are hints: only signatures count.
	Heads map[string]ring.SHA `json:"heads,omitempty"`
}

// Packed says what is packed, so that nothing can be put in or taken out.
type Packed struct {
	Count  int    `json:"count"`
	SHA256 string `json:"sha256"`
}

// Digest is what the journal's last line says of the statement.
func (s *Statement) Digest() string {
	sum := sha256.Sum256(s.Encoded())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Encoded is the statement as it stands in the file.
func (s *Statement) Encoded() []byte {
	b, err := json.Marshal(s)
	if err != nil { // only strings, numbers, times and maps of those
		panic(fmt.Sprintf("cannot encode a statement: %v", err))
	}
	return b
}

// ID is the service that the proof is about.
func (s *Statement) ID() ring.ServiceID { return ring.ID(s.App, s.Service) }

// Encode is the file. The error says that it is larger than most.
func (p *Proof) Encode(most int) ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the proof: %w", err)
	}
	b = append(b, '\n')
	if len(b) > most {
		return nil, fmt.Errorf("cannot make the proof: it has %d bytes, and at most %d are wanted", len(b), most)
	}
	return b, nil
}
