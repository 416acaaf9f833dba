package store

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEndOfTheJournalIsOneChainFromTheLineBeforeIt(t *testing.T) {
	s := written(t, 20)
	whole, err := s.HashedEvents(t.Context(), EventQuery{})
	require.NoError(t, err)
	for _, tt := range []struct {
		name        string
		last, after int64
		size        int
		first       int64 // that comes
	}{
		{name: "all that fits", last: 20, size: 1 << 20, first: 1},
		{name: "the last alone, however large", last: 20, size: 1, first: 20},
		{name: "up to a line in the middle", last: 7, size: 1 << 20, first: 1},
		{name: "all since a line that is known, however many", last: 20, after: 5, size: 1, first: 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seq, hash, lines, err := s.JournalEnd(t.Context(), tt.last, tt.after, tt.size)
			require.NoError(t, err)
			require.Equal(t, tt.first-1, seq)
			require.Len(t, lines, int(tt.last-tt.first+1))
			if seq > 0 {
				require.Equal(t, whole[seq-1].Hash, hash)
			}
			for i, l := range lines {
				sum := sha256.Sum256(append(append([]byte{}, hash...), l.Body...))
				require.Equal(t, sum[:], l.Hash)
				require.Equal(t, tt.first+int64(i), l.Seq)
				hash = l.Hash
			}
		})
	}
	_, _, _, err = s.JournalEnd(t.Context(), 21, 0, 1)
	require.ErrorContains(t, err, "line 21 is not kept")
}
