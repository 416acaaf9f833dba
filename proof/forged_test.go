package proof_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/proof"
)

// A forger may write anything but signatures: he is the root of the host. Whatever he makes
// of objects and statement, with a journal that fits, a proof that holds is of the same
// commit, version and image.
func TestWhateverAForgerWritesTheCommitAndVersionAreTheSame(t *testing.T) {
	honest := newSample(t)
	ask := honest.asked()
	was := proof.Check(honest.file(), ask)
	require.True(t, was.Holds)
	statement, err := json.Marshal(honest.proof.Statement)
	require.NoError(t, err)
	held := 0
	same := func(seed uint64, s *sample) {
		t.Helper()
		s.journal()
		found := proof.Check(s.file(), ask)
		if !found.Holds {
			return
		}
		held++
		require.Equal(t, was.Commit, found.Commit, "seed %d", seed)
		require.Equal(t, was.Version, found.Version, "seed %d", seed)
		require.Equal(t, was.Image.Digest, found.Image.Digest, "seed %d", seed)
		require.Equal(t, [3]string{was.Host, was.App, was.Service}, [3]string{found.Host, found.App, found.Service}, "seed %d", seed)
	}
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // a test is the same each time
		s := &sample{world: honest.world}
		forged := *honest.proof
		s.proof = &forged
		if seed%2 == 0 { // an object
			all := honest.all()
			i := r.IntN(len(all))
			body := append([]byte{}, all[i].Body...)
			switch at := r.IntN(len(body)); r.IntN(3) {
			case 0:
				body[at] ^= byte(1 + r.IntN(255)) //nolint:gosec // below 256
			case 1:
				body = append(body[:at], body[at+1:]...)
			default:
				body = append(body[:at:at], append([]byte{byte(r.IntN(256))}, body[at:]...)...) //nolint:gosec // below 256
			}
			all[i] = gitsync.Object{Kind: all[i].Kind, Body: body}
			s.proof.Objects, s.proof.Statement.Objects = proof.Pack(all)
			same(seed, s)
			continue
		}
		other := append([]byte{}, statement...)
		for range 1 + r.IntN(2) {
			other[r.IntN(len(other))] = byte(' ' + r.IntN(95)) //nolint:gosec // printable
		}
		var st proof.Statement
		if json.Unmarshal(other, &st) != nil {
			continue
		}
		s.proof.Statement = st
		same(seed, s)
	}
	require.Positive(t, held, "some of what he may write is only his word")
}
