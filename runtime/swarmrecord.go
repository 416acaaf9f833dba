package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/gitring/gitring/ring"
)

// The record of a cluster is a config, as the lease is: its labels are written by version index, so none of
// two writers takes the other's word away.

// Labels of the record. The first one marks it; the others begin its entries.
const (
	labelRecord = "gitring.record"
	labelWord   = "gitring.word."
	labelBegun  = "gitring.begun."
)

// mostRecorded bounds the entries of each kind. A word is of a commit and an app, and
// one takes 300 bytes at most: so all of it is well below what a swarm takes at once.
const mostRecorded = 300

// recordTries bounds how often a write begins anew because somebody else wrote meanwhile.
const recordTries = 5

func recordName(cluster string) string { return "gitring." + cluster + ".record" }

// begunRun is the label of a run that was begun.
type begunRun struct {
	ID string `json:"id"` // of its service
	N  uint64 `json:"n"`
}

// isRecord reports whether a config is the record of a cluster.
func isRecord(cluster string, of swarm.Annotations) bool {
	return of.Name == recordName(cluster) && of.Labels[labelRecord] != "" && of.Labels[labelHost] == cluster
}

// recordOf is a record as its labels have it. What cannot be read is left out.
func recordOf(labels map[string]string) ring.ClusterRecord {
	r := ring.ClusterRecord{Words: map[string]ring.CommitWord{}, Begun: map[string]string{}}
	for label, value := range labels {
		var c ring.CommitWord
		if key, is := strings.CutPrefix(label, labelWord); is && json.Unmarshal([]byte(value), &c) == nil && knownState(c.State) {
			r.Words[key] = c
		}
		var b begunRun
		if key, is := strings.CutPrefix(label, labelBegun); is && json.Unmarshal([]byte(value), &b) == nil {
			r.Begun[key] = b.ID
		}
	}
	return r
}

// knownState reports whether a word has a state that a forge can be told.
func knownState(state string) bool {
	return slices.Contains([]string{ring.PostPending, ring.PostSuccess, ring.PostFailure, ring.PostError}, state)
}

// entryNumber is the number of an entry of the record; 0 for one that is not there.
func entryNumber(value string) uint64 {
	var e struct {
		N uint64 `json:"n"`
	}
	_ = json.Unmarshal([]byte(value), &e) // what cannot be read is as if it were not there
	return e.N
}

// addEntry adds an entry, newer than all, and drops the oldest of its kind where there are too many.
func addEntry(labels map[string]string, kind, key string, entry func(n uint64) any) {
	var all []string
	newest := uint64(0)
	for label, value := range labels {
		if strings.HasPrefix(label, kind) {
			newest = max(newest, entryNumber(value))
			if label != kind+key {
				all = append(all, label)
			}
		}
	}
	text, _ := json.Marshal(entry(newest + 1)) // texts and numbers
	labels[kind+key] = string(text)
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(entryNumber(labels[a]), entryNumber(labels[b])) })
	for len(all) >= mostRecorded {
		delete(labels, all[0])
		all = all[1:]
	}
}

// writeCommitWords writes words on commits down. One whose place another word has taken since stays out.
func (s *Swarm) writeCommitWords(ctx context.Context, m manager, a ring.Action) (ring.Done, error) {
	return ring.Done{}, s.changeRecord(ctx, m, "cannot write down how commits are", func(labels map[string]string) {
		left := mostRecorded
		for _, key := range slices.Sorted(maps.Keys(a.Words)) {
			c := a.Words[key]
			if entryNumber(labels[labelWord+key]) != c.N || left == 0 {
				continue // the next look finds the other word, or writes the rest
			}
			left--
			var was ring.CommitWord
			_ = json.Unmarshal([]byte(labels[labelWord+key]), &was) // what cannot be read is as if it were not there
			addEntry(labels, labelWord, key, func(n uint64) any { c.N, c.First = n, cmp.Or(was.First, n); return c })
		}
	})
}

// noteBegun writes down that the run of a job's version is about to begin. What is due, or was asked for,
// counts by its own times.
func (s *Swarm) noteBegun(ctx context.Context, m manager, was *swarm.Service) error {
	l := was.Spec.Labels
	if l[labelDue] != "" {
		return nil
	}
	return s.changeRecord(ctx, m, "cannot write down that service "+was.Spec.Name+" begins", func(labels map[string]string) {
		addEntry(labels, labelBegun, ring.BegunKey(was.Spec.Name, ring.RunMark{For: l[labelFor]}), func(n uint64) any { return begunRun{was.ID, n} })
	})
}

// findRecord is the record that there is, the zero value for none. One that somebody else made is an UnfitError.
func (s *Swarm) findRecord(ctx context.Context, m manager) (swarm.Config, error) {
	cluster := s.docker.opts.Host
	was, _, err := m.ConfigInspectWithRaw(ctx, recordName(cluster))
	switch {
	case cerrdefs.IsNotFound(err), err == nil && was.Spec.Name != recordName(cluster): // found by an ID that begins so
		return swarm.Config{}, nil
	case err != nil:
		return swarm.Config{}, swarmFault("cannot look at the record of the cluster", err)
	case !isRecord(cluster, was.Spec.Annotations):
		return swarm.Config{}, notOurConfig(recordName(cluster))
	}
	return was, nil
}

// changeRecord changes the labels of the record, and makes it where there is none.
func (s *Swarm) changeRecord(ctx context.Context, m manager, cannot string, change func(labels map[string]string)) error {
	cluster := s.docker.opts.Host
	name := recordName(cluster)
	var err error
	for range recordTries {
		var was swarm.Config
		if was, err = s.findRecord(ctx, m); err != nil {
			return err
		}
		if was.ID == "" {
			labels := map[string]string{labelHost: cluster, labelRecord: "1"}
			change(labels)
			_, err = m.ConfigCreate(ctx, swarm.ConfigSpec{Annotations: swarm.Annotations{Name: name, Labels: labels}, Data: []byte("Its labels say what managers of the cluster tell each other.\n")})
		} else {
			spec := was.Spec
			spec.Labels = maps.Clone(spec.Labels)
			if change(spec.Labels); maps.Equal(spec.Labels, was.Spec.Labels) {
				return nil
			}
			err = m.ConfigUpdate(ctx, was.ID, was.Version, spec)
		}
		if err == nil {
			return nil
		}
		if !isWrittenMeanwhile(err) {
			return swarmFault(cannot, err)
		}
	}
	return swarmFault(cannot+" within "+strconv.Itoa(recordTries)+" tries", err)
}

// isWrittenMeanwhile reports whether a config could not be written because somebody else did so, or made or
// removed it.
func isWrittenMeanwhile(err error) bool {
	return cerrdefs.IsConflict(err) || strings.Contains(err.Error(), "out of sequence") || cerrdefs.IsNotFound(err)
}
