package proof

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gitring/gitring/ring"
)

// Journal is the end of the host's journal, whose lines are chained by hashes: each binds all
// before it. The last line is about the proof itself.
type Journal struct {
	// BaseSeq and BaseHash are of the line before the first one that is here; what came up
	// to it is left out. 0 is the beginning of the journal.
	BaseSeq  int64  `json:"base_seq"`
	BaseHash string `json:"base_hash"`
	// Head is the hash of the last line.
	Head string `json:"head"`
	// Lines are packed: of each the beginning of its hash, a space, and the line.
	Lines []byte `json:"lines"`
}

// Line is a line of the journal as the host wrote it.
type Line struct {
	Seq  int64
	Hash []byte
	Body []byte
}

// hashDigits is how much of each line's hash is in a proof, so that the line can be named
// that was changed.
const hashDigits = 8

// PackJournal makes lines small, which follow the line (seq, hash).
func PackJournal(seq int64, hash []byte, lines []Line) Journal {
	var raw bytes.Buffer
	head := hash
	for _, l := range lines {
		fmt.Fprintf(&raw, "%s %s\n", hex.EncodeToString(l.Hash)[:hashDigits], l.Body)
		head = l.Hash
	}
	return Journal{BaseSeq: seq, BaseHash: hex.EncodeToString(hash), Head: hex.EncodeToString(head), Lines: deflated(raw.Bytes())}
}

// history is a journal whose chain holds.
type history struct {
	baseSeq int64
	hashes  [][]byte // of the base, then of each line
	events  []ring.Event
}

func (h *history) seq() int64 { return h.baseSeq + int64(len(h.events)) }

// at is the hash of a line; nil where the proof leaves it out.
func (h *history) at(seq int64) []byte {
	if i := seq - h.baseSeq; i >= 0 && i < int64(len(h.hashes)) {
		return h.hashes[i]
	}
	return nil
}

// chained computes the chain anew.
func (j *Journal) chained() (*history, *Fault) {
	base, err := hex.DecodeString(j.BaseHash)
	if err != nil || j.BaseSeq < 0 || len(base) > sha256.Size {
		return nil, &Fault{Code: JournalChanged, Says: "the journal's beginning is no hash of a line"}
	}
	raw, err := inflated(j.Lines)
	if err != nil {
		return nil, &Fault{Code: JournalChanged, Says: "the lines of the journal: " + err.Error()}
	}
	h := &history{baseSeq: j.BaseSeq, hashes: [][]byte{base}}
	for line := range bytes.Lines(raw) {
		said, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		var e ring.Event
		if !ok || len(said) != hashDigits || json.Unmarshal(body, &e) != nil || len(h.events) == mostLines {
			return nil, &Fault{Code: JournalChanged, Says: fmt.Sprintf("line %d of the journal cannot be read", h.seq()+1)}
		}
		if e.Seq != h.seq()+1 {
			return nil, &Fault{Code: JournalGap, Says: fmt.Sprintf("the journal has a gap: line %d is missing, and line %d comes next", h.seq()+1, e.Seq)}
		}
		sum := sha256.New()
		sum.Write(h.hashes[len(h.hashes)-1])
		sum.Write(body)
		hash := sum.Sum(nil)
		if hex.EncodeToString(hash)[:hashDigits] != string(said) {
			return nil, &Fault{Code: JournalChanged, Says: fmt.Sprintf("line %d of the journal was changed, or is not the one that came after line %d", e.Seq, e.Seq-1)}
		}
		h.hashes, h.events = append(h.hashes, hash), append(h.events, e)
	}
	if head := hex.EncodeToString(h.hashes[len(h.hashes)-1]); head != j.Head {
		return nil, &Fault{Code: JournalHead, Says: fmt.Sprintf("the journal ends with %.16s…, and the proof says %.16s…: lines were cut off or changed", head, clip(j.Head))}
	}
	return h, nil
}

// names holds the last line of the journal to the statement.
func (h *history) names(s *Statement) *Fault {
	if len(h.events) == 0 {
		return &Fault{Code: JournalGap, Says: "the journal has no line about this proof"}
	}
	e := h.events[len(h.events)-1]
	switch {
	case e.Kind != ring.ProofMade:
		return &Fault{Code: JournalGap, Says: fmt.Sprintf("the last line of the journal, %d, is not the one about this proof", e.Seq)}
	case e.Digest != s.Digest():
		return &Fault{
			Code: StatementEdited, Says: "the statement was changed after the host wrote it: its journal names another one",
			Hint: "compare labels, times and values with what the host shows now",
		}
	case e.App != s.App || e.Service != s.Service || e.Version != s.Version || e.Commit != s.Commit:
		return &Fault{Code: StatementEdited, Says: fmt.Sprintf("line %d of the journal is of a proof of %s/%s, and this one is of %s", e.Seq, clip(e.App), clip(e.Service), clip(string(s.ID())))}
	}
	return nil
}

// LastLine is the number of the line with which the journal of a proof ends.
func LastLine(file []byte) (int64, error) {
	p, f := read(file)
	if f != nil {
		return 0, f
	}
	h, f := p.Journal.chained()
	if f != nil {
		return 0, f
	}
	return h.seq(), nil
}
