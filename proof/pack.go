package proof

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// Kinds of objects in a pack. A follower is a commit whose first parent is the commit
// before it in the pack, and is written without that line: its id is known from the bytes.
const (
	packedCommit   = 'c'
	packedFollower = 'f'
	packedTree     = 't'
	packedBlob     = 'b'
)

var packedKinds = map[byte]string{packedCommit: "commit", packedFollower: "commit", packedTree: "tree", packedBlob: "blob"}

// commitTree is the length of the first line of a commit, which names its tree.
const commitTree = len("tree ") + 40 + len("\n")

// Pack makes objects small. Commits are best in the order of history.
func Pack(all []gitsync.Object) ([]byte, Packed) {
	var raw bytes.Buffer
	var before ring.SHA
	for _, o := range inOrder(all) {
		kind, body := o.Kind[0], o.Body
		line := "parent " + string(before) + "\n"
		if o.Kind == "commit" {
			if before != "" && len(body) > commitTree && bytes.HasPrefix(body[commitTree:], []byte(line)) {
				kind = packedFollower
				body = append(body[:commitTree:commitTree], body[commitTree+len(line):]...)
			}
			before, _ = o.ID()
		}
		raw.WriteByte(kind)
		raw.Write(binary.AppendUvarint(nil, uint64(len(body))))
		raw.Write(body)
	}
	return deflated(raw.Bytes()), Packed{Count: len(all), SHA256: sumOf(raw.Bytes())}
}

// inOrder are objects of one kind together, commits as they were found but each after its
// first parent, as far as that is in the list.
func inOrder(all []gitsync.Object) []gitsync.Object {
	first := map[ring.SHA]int{} // the commit whose first parent it is
	ids := make([]ring.SHA, len(all))
	for i, o := range all {
		if o.Kind == "commit" {
			ids[i], _ = o.ID()
		}
	}
	parents := make([]ring.SHA, len(all))
	has := map[ring.SHA]bool{}
	for i, o := range all {
		if o.Kind == "commit" {
			has[ids[i]] = true
			if parent, ok := bytes.CutPrefix(o.Body[min(commitTree, len(o.Body)):], []byte("parent ")); ok && len(parent) > 40 {
				parents[i] = ring.SHA(parent[:40])
				first[parents[i]] = i
			}
		}
	}
	out := make([]gitsync.Object, 0, len(all))
	done := map[int]bool{}
	for i, o := range all {
		if o.Kind != "commit" || has[parents[i]] {
			continue
		}
		for at, ok := i, true; ok && !done[at]; at, ok = first[ids[at]] {
			done[at] = true
			out = append(out, all[at])
		}
	}
	for _, kind := range []string{"commit", "tree", "blob"} {
		for i, o := range all {
			if o.Kind == kind && !done[i] {
				out = append(out, o)
			}
		}
	}
	return out
}

// unpack reads a pack. The error says what is wrong with its form.
func unpack(packed []byte, want Packed) ([]gitsync.Object, error) {
	raw, err := inflated(packed)
	if err != nil {
		return nil, err
	}
	if sum := sumOf(raw); sum != want.SHA256 {
		return nil, fmt.Errorf("they are not those of the statement: they hash to %.16s…, and it says %.16s…", sum, want.SHA256)
	}
	var all []gitsync.Object
	var before ring.SHA
	for len(raw) > 0 {
		kind, known := packedKinds[raw[0]]
		size, n := binary.Uvarint(raw[1:])
		switch {
		case !known:
			return nil, fmt.Errorf("object %d is of no kind", len(all)+1)
		case n <= 0 || size > uint64(len(raw)-1-n):
			return nil, fmt.Errorf("object %d is cut off", len(all)+1)
		case len(all) == mostObjects:
			return nil, fmt.Errorf("there are more than %d", mostObjects)
		}
		body := raw[1+n : 1+n+int(size)] //nolint:gosec // not larger than what is there
		if raw[0] == packedFollower {
			if before == "" || len(body) < commitTree {
				return nil, fmt.Errorf("object %d follows no commit", len(all)+1)
			}
			body = append(append(body[:commitTree:commitTree], "parent "+string(before)+"\n"...), body[commitTree:]...)
		}
		o := gitsync.Object{Kind: kind, Body: body}
		if kind == "commit" {
			before, _ = o.ID()
		}
		all = append(all, o)
		raw = raw[1+n+int(size):] //nolint:gosec // not larger than what is there
	}
	if len(all) != want.Count {
		return nil, fmt.Errorf("there are %d, and the statement says %d", len(all), want.Count)
	}
	return all, nil
}

func deflated(raw []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression) // the level is one
	_, _ = w.Write(raw)                                  // into memory
	_ = w.Close()
	return out.Bytes()
}

func inflated(packed []byte) ([]byte, error) {
	in := bytes.NewReader(packed)
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(in), mostInflated+1))
	switch {
	case err != nil:
		return nil, errors.New("they cannot be unpacked")
	case len(raw) > mostInflated:
		return nil, fmt.Errorf("they are larger than %d bytes", mostInflated)
	case in.Len() > 0:
		return nil, errors.New("something follows them")
	}
	return raw, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
