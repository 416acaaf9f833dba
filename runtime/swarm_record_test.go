package runtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// wordOf is to write one word down, in the place of the word of that number.
func wordOf(key, state string, in uint64) ring.Action {
	return ring.Action{Kind: ring.DoWords, Words: map[string]ring.CommitWord{key: {State: state, Description: "healthy 2/2", N: in}}}
}

// wordsStay is that of two managers the first one's word is what both read, and stays until somebody who
// read it takes it back.
func wordsStay(t *testing.T, r *swarmRig) {
	other, err := r.dial(t, 0, Options{Host: r.docker.opts.Host, ContentDir: r.content})
	require.NoError(t, err)
	key := ring.PostKey(ring.SHA(strings.Repeat("a", 40)), "gitring/prod")
	word := func(s *Swarm) ring.CommitWord {
		seen, err := s.Look(t.Context())
		require.NoError(t, err)
		require.Empty(t, seen.Cluster.Files, "the record is no file of an app")
		return seen.Cluster.Record.Words[key]
	}
	require.Zero(t, word(other))
	r.must(t, wordOf(key, ring.PostFailure, 0))
	_, err = other.Do(t.Context(), wordOf(key, ring.PostSuccess, 0)) // decided before it could read the word
	require.NoError(t, err)
	for _, s := range []*Swarm{r.Swarm, other} {
		require.Equal(t, ring.CommitWord{State: ring.PostFailure, Description: "healthy 2/2", N: 1, First: 1}, word(s))
	}
	r.must(t, wordOf(key, ring.PostFailure, 0)) // an answer that was lost
	require.EqualValues(t, 1, word(other).N)
	r.must(t, wordOf("another", ring.PostSuccess, 0))
	_, err = other.Do(t.Context(), wordOf(key, ring.PostSuccess, 1))
	require.NoError(t, err)
	require.Equal(t, ring.PostSuccess, word(r.Swarm).State)
	require.EqualValues(t, 3, word(r.Swarm).N, "the newest")
	require.EqualValues(t, 1, word(r.Swarm).First, "which commit is newer is said by its first word")

	// What a person made under that name is neither read nor changed.
	name := recordName(r.docker.opts.Host)
	require.NoError(t, r.c.ConfigRemove(t.Context(), name))
	made, err := r.c.ConfigCreate(t.Context(), swarm.ConfigSpec{Annotations: swarm.Annotations{Name: name}, Data: []byte("mine")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.c.ConfigRemove(t.Context(), made.ID) })
	_, err = r.Do(t.Context(), wordOf(key, ring.PostFailure, 0))
	require.ErrorContains(t, err, "gitring did not make it")
	var unfit *UnfitError
	_, err = r.dial(t, 0, Options{Host: r.docker.opts.Host, ContentDir: t.TempDir(), Lease: LeaseOptions{ID: "1", Manager: "node-1", Key: "k1"}})
	require.ErrorAs(t, err, &unfit, "serve ends, as where the lease is somebody else's")
	require.Contains(t, unfit.Says, name)
	require.Zero(t, word(r.Swarm))
}

// runIsMarked is that a run is written down as begun before it begins, and that this outlives it.
func runIsMarked(t *testing.T, r *swarmRig) {
	a := r.job(t, nil, "tell", "done", "0")
	r.must(t, a)
	in := r.runSeen(t)
	require.Empty(t, r.look(t).Cluster.Record.Begun, "it is at rest")
	r.must(t, r.on(a, ring.DoStart, in))
	r.awaitRun(t, runEnded)
	require.NoError(t, r.c.ServiceRemove(t.Context(), in.ID))
	require.Equal(t, map[string]string{ring.BegunKey(a.Name, *a.Run): in.ID}, r.look(t).Cluster.Record.Begun)

	due := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	cron := r.job(t, func(a *ring.Action, s *ring.Service) {
		s.Kind, a.Run = ring.CronK, &ring.RunMark{Trigger: ring.OnSchedule, Due: due}
	}, "tell", "done", "0")
	done := r.must(t, cron)
	r.must(t, r.on(cron, ring.DoStart, ring.Instance{ID: done.Instance, Name: cron.Name}))
	require.Len(t, r.look(t).Cluster.Record.Begun, 1, "a time that is due has its own name")
}

// wordNumber is an entry that reads as a word and as a run.
func wordNumber(n uint64) any {
	return map[string]any{"state": ring.PostSuccess, "id": "id", "n": n}
}

// theRecordFits is that a swarm takes a record that is full of the longest words there are, and rewrites it.
func theRecordFits(t *testing.T, r *swarmRig) {
	word := ring.CommitWord{
		Source: strings.Repeat("s", 63), State: ring.PostFailure, Phase: ring.PostSuperseded, Description: strings.Repeat("d", 140), Code: ring.WhyCommitRefused,
	}
	a := ring.Action{Kind: ring.DoWords, Words: map[string]ring.CommitWord{}}
	for i := range mostRecorded {
		a.Words[ring.PostKey(ring.SHA(fmt.Sprintf("%064d", i)), "gitring/"+strings.Repeat("c", 63)+"/"+strings.Repeat("a", 63))] = word
	}
	r.must(t, a)
	require.Len(t, r.look(t).Cluster.Record.Words, mostRecorded)
	r.must(t, wordOf("one more", ring.PostSuccess, 0))
	words := r.look(t).Cluster.Record.Words
	require.Len(t, words, mostRecorded)
	require.Contains(t, words, "one more")
}

// The record keeps its newest entries, and what of it cannot be read is as if it were not there.
func TestTheRecordOfAClusterKeepsTheNewest(t *testing.T) {
	labels := map[string]string{labelWord + "broken": "{", labelBegun + "broken": "x"}
	for i := range mostRecorded + 50 {
		for _, kind := range []string{labelWord, labelBegun} {
			addEntry(labels, kind, fmt.Sprint(i), func(n uint64) any { return wordNumber(n) })
		}
	}
	addEntry(labels, labelWord, "60", func(n uint64) any { return wordNumber(n) }) // again, and so newer
	addEntry(labels, labelWord, "new", func(n uint64) any { return wordNumber(n) })
	r := recordOf(labels)
	require.Len(t, r.Words, mostRecorded)
	require.Len(t, r.Begun, mostRecorded)
	require.NotContains(t, r.Words, "50")
	require.NotContains(t, r.Words, "broken")
	require.Empty(t, recordOf(map[string]string{labelWord + "a": `{"state":"one of a release to come","n":1}`}).Words)
	for _, key := range []string{"60", "51", "new", fmt.Sprint(mostRecorded + 49)} {
		require.Contains(t, r.Words, key)
	}
	require.EqualValues(t, mostRecorded+52, r.Words["new"].N)

	many := ring.Action{Words: map[string]ring.CommitWord{}}
	for i := range mostRecorded + 1 {
		many.Words[fmt.Sprint(i)] = ring.CommitWord{State: ring.PostSuccess}
	}
	rig, _ := memorySwarmRig(t, 0)
	many.Kind = ring.DoWords
	rig.must(t, many)
	require.Len(t, rig.look(t).Cluster.Record.Words, mostRecorded, "the rest is for the next look")
	rig.must(t, many)
	require.Len(t, rig.look(t).Cluster.Record.Words, mostRecorded)
}
