package proxy

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// What older proxies of a front counted is told by the newest one, also of those that have
// ended: so no request is lost to the daemon's sums. One that hangs is ended.

const (
	maxBefore = 4                // two that run, and the last that ended
	hungAfter = 10 * time.Second // without an answer, as a new one that does not get ready
	hungAsked = 3                // times in that
)

// silence is since when, and how often, an older proxy was asked and did not answer.
type silence struct {
	since time.Time
	asked int
}

// seenAlone is what this process knows of itself, and of those before it.
func (f *Front) seenAlone() ring.FrontSeen {
	s := f.seen()
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	s.Before = f.peers.known()
	return s
}

// remember takes down what an older proxy counted, and those that were before that. The caller
// holds the mutex.
func (p *peers) remember(s *ring.FrontSeen) {
	for _, b := range append(s.Before, countedBy(s)) {
		i := slices.IndexFunc(p.before, func(x ring.FrontBefore) bool { return x.Process == b.Process })
		if i < 0 {
			p.before = append(p.before, ring.FrontBefore{Process: b.Process, Counts: map[string]ring.FrontCounts{}})
			i = len(p.before) - 1
		}
		for name, counts := range b.Counts {
			if counts.Requests >= p.before[i].Counts[name].Requests { // else it was asked earlier than another one told of it
				p.before[i].Counts[name] = counts
			}
		}
	}
	p.before = p.before[max(0, len(p.before)-maxBefore):]
}

// countedBy is what a process says that it counted.
func countedBy(s *ring.FrontSeen) ring.FrontBefore {
	b := ring.FrontBefore{Process: s.Process, Counts: map[string]ring.FrontCounts{}}
	for i := range s.Instances {
		b.Counts[s.Instances[i].Name] = s.Instances[i].Counts
	}
	return b
}

// known are copies of what is remembered. The caller holds the mutex.
func (p *peers) known() []ring.FrontBefore {
	out := slices.Clone(p.before)
	for i := range out {
		out[i].Counts = maps.Clone(out[i].Counts)
	}
	return out
}

// putBefore is an older proxy that ends, and says what it counted to the last.
func (f *Front) putBefore(w http.ResponseWriter, r *http.Request) {
	var s ring.FrontSeen
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tableBytes))
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil || s.Process == f.process || !isProcessName(s.Process) {
		reply(w, http.StatusBadRequest, problem{"it is no older proxy", f.generation()})
		return
	}
	f.peers.mu.Lock()
	f.peers.remember(&s)
	f.peers.mu.Unlock()
	reply(w, http.StatusOK, problem{"taken down", f.generation()})
}

// sayLast tells the newest proxy what this one counted. If that does not answer, what came
// since it asked last is not counted.
func (f *Front) sayLast(ctx context.Context) {
	body, err := json.Marshal(f.seenAlone())
	if err != nil {
		return
	}
	if _, err := askSocket(ctx, filepath.Join(f.RunDir, ring.FrontSocket), controlTime, http.MethodPut, "/v1/before", body, &problem{}); err != nil {
		f.Log.Printf("could not tell what was counted error=%q", err)
	}
}

// endHung ends older proxies that have not answered for a while: no table comes into force
// before each of them took it, and what hangs carries nothing.
func (f *Front) endHung(ctx context.Context, answers []told) {
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	for _, t := range answers {
		if t.err == nil || nobodyListens(t.err) || ctx.Err() != nil {
			delete(f.peers.silent, t.path)
			continue
		}
		s := f.peers.silent[t.path]
		if s.asked++; s.asked == 1 {
			s.since = time.Now()
		}
		if f.peers.silent == nil {
			f.peers.silent = map[string]silence{}
		}
		f.peers.silent[t.path] = s
		if s.asked < hungAsked || time.Since(s.since) < f.hung {
			continue
		}
		if pid, err := endListener(t.path); err != nil {
			f.Log.Printf("could not end an older proxy that hangs error=%q", err)
		} else {
			f.Log.Printf("ended an older proxy that hangs pid=%d", pid)
		}
	}
}
