package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// Bounds of what one report may hold.
const (
	mostLines  = 1000
	mostStatus = 4 << 20
	mostLine   = 64 << 10
	// A status of a thousand services has 60,000 values. Each that is empty costs its sender two
	// bytes, and the hub as much as a service.
	mostValues  = 200_000
	mostSources = 100
	mostWords   = 1000 // of a sentence or subject that is kept in memory, in bytes
)

var lineHash = regexp.MustCompile(`^[0-9a-f]{8}$`)

// judged is a report that can be kept.
type judged struct {
	status *ring.Status
	seqs   []int64
}

// judge is why a report cannot be kept; nil where it can.
func judge(in *ring.HostReport) (*judged, error) {
	j := &judged{status: &ring.Status{}}
	switch {
	case len(in.Status) > mostStatus:
		return nil, tooLarge("the status")
	case bytes.Count(in.Status, []byte(",")) > mostValues:
		return nil, tooLarge("the status")
	case len(in.Lines) > mostLines:
		return nil, tooLarge("the journal")
	case in.Gap != "" && in.Gap != ring.GapTrimmed && in.Gap != ring.GapReplaced:
		return nil, api.Usage("", "the gap is of no known kind")
	case in.At.IsZero():
		return nil, api.Usage("", "the host's clock is missing")
	case json.Unmarshal(in.Status, j.status) != nil:
		return nil, api.Usage("", "cannot read the status")
	case j.status.Host != in.Host:
		return nil, api.Usage("", "the status is of another host than the report")
	case len(j.status.Sources) > mostSources:
		return nil, tooLarge("the status")
	}
	after, ok := ring.ParseCursor(in.After)
	if !ok && in.After != "" || in.After == "" && len(in.Lines) > 0 {
		return nil, api.Usage("", "the report does not say after which line its lines are")
	}
	for i := range in.Lines {
		l := &in.Lines[i]
		var e ring.Event
		switch {
		case len(l.Event) > mostLine:
			return nil, tooLarge("a line of the journal")
		case json.Unmarshal(l.Event, &e) != nil || e.Kind == "" || e.Seq <= 0 || !lineHash.MatchString(l.Hash):
			return nil, api.Usage("", "cannot read line %d of the journal", i+1)
		case i > 0 && e.Seq != j.seqs[i-1]+1, i == 0 && in.Gap == "" && e.Seq != after.Seq+1, i == 0 && in.Gap == ring.GapTrimmed && e.Seq <= after.Seq:
			return nil, api.Usage("", "lines of the journal are missing, and the report does not say so")
		}
		j.seqs = append(j.seqs, e.Seq)
	}
	return j, nil
}

func tooLarge(what string) error {
	e := api.Usage("", "%s is larger than a hub takes", what)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}

// taken is what came of a report that could be kept.
type taken struct {
	at    ring.Cursor
	added []api.HostEvent
	gap   string // why lines before those are missing
	full  error  // the lines were not kept: there is no room
	turn  bool   // the report before it had room, and this one has not; or the other way round
}

// take keeps a report. Its lines are kept where they follow the last that is here; the answer is the
// line that is the last then. So a report that comes again adds nothing, and one whose answer was lost
// is gone on from where it ended. Where there is no room for lines, the status counts all the same:
// the host is heard.
func (r *row) take(now time.Time, in *ring.HostReport, room int64) (out taken, err error) {
	j, err := judge(in)
	if err != nil {
		return out, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next, said, tag, whole := r.now, summed(j.status), api.ReportTag(j.status), api.StatusTag(j.status)
	next.Host, next.Gitring, next.Seen, next.Ahead = in.Host, cutWords(in.Gitring), now, in.At.Sub(now)
	if next.Since.IsZero() || said.word != r.said.word || said.commit != r.said.commit {
		next.Since = now
	}
	next.Subjects = withSubjects(r.now.Subjects, said.sources)
	undo := func() error { return nil }
	out.at = r.cursor
	if in.After == r.cursor.String() && len(in.Lines) > 0 {
		lines, added, err := r.encode(now, in)
		if err != nil {
			return taken{}, err
		}
		if int64(len(lines)) > room {
			out.full = api.Full("the hub has no room for more lines of %s", in.Host)
		} else if undo, err = r.days.append(now, lines); isFull(err) {
			out.full = notKept(err)
		} else if err != nil {
			return taken{}, notKept(err)
		} else {
			out.added, out.at = added, ring.Cursor{Seq: j.seqs[len(j.seqs)-1], Hash: in.Lines[len(in.Lines)-1].Hash}
			if in.Gap != "" && (in.Gap == ring.GapReplaced || r.cursor.Seq > 0) {
				next.Gap, next.GapWhy, out.gap = now, in.Gap, in.Gap
			}
		}
	}
	behind := false
	if tag != r.tag || r.behind || next.Gap != r.now.Gap || now.Sub(r.wrote) >= rewriteAfter || now.Before(r.wrote) {
		switch err := r.write(next, in.Status); {
		case err == nil:
			r.wrote, r.whole = now, whole
		case !isFull(err):
			return taken{}, errors.Join(notKept(err), undo())
		default: // what was said is known as long as the hub runs
			if err := undo(); err != nil {
				return taken{}, notKept(err)
			}
			next.Gap, next.GapWhy = r.now.Gap, r.now.GapWhy
			behind, out = true, taken{at: r.cursor, full: notKept(err)}
		}
	}
	full := out.full != nil && !behind || r.full && len(out.added) == 0
	out.turn = (full || behind) != (r.full || r.behind)
	if tag != r.tag || len(out.added) > 0 || out.turn || behind != r.behind || wrongClock(next.Ahead) != wrongClock(r.now.Ahead) {
		r.change++
	}
	r.now, r.said, r.tag, r.cursor, r.last, r.full, r.behind = next, said, tag, out.at, out.at.Seq, full, behind
	return out, nil
}

// write keeps the file of the status.
func (r *row) write(file kept, status json.RawMessage) error {
	file.Status = status
	body, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return disk.WriteWhole(filepath.Join(r.dir, statusFile), ".status-*", body, 0o600)
}

// encode is the lines of a report as a day's file has them.
func (r *row) encode(now time.Time, in *ring.HostReport) (lines []byte, added []api.HostEvent, err error) {
	gap := in.Gap
	for i := range in.Lines {
		l := &in.Lines[i]
		line, err := json.Marshal(record{At: now.UTC(), Gap: gap, Hash: l.Hash, Event: l.Event})
		if err != nil {
			return nil, nil, err
		}
		gap = ""
		lines = append(append(lines, line...), '\n')
		added = append(added, api.HostEvent{Host: in.Host, Key: r.id, Event: l.Event})
	}
	return lines, added, nil
}

// withSubjects are the subjects of commits, with those that sources are at now. Where there are too
// many, only those of now are left.
func withSubjects(known map[ring.SHA]string, sources []api.HostSource) map[ring.SHA]string {
	out := map[ring.SHA]string{}
	if len(known) < subjectsKept {
		for c, s := range known {
			out[c] = s
		}
	}
	for _, s := range sources {
		if s.Commit != "" && s.Subject != "" {
			out[s.Commit] = s.Subject
		}
	}
	return out
}

// notKept is the answer where the disk takes nothing: 507 where it is full, and 503 else. The host
// sends it again.
func notKept(err error) error {
	if isFull(err) {
		return api.Full("the hub's disk is full")
	}
	e := api.Away("", "the hub cannot keep it: %v", err)
	e.Status = http.StatusServiceUnavailable
	return e
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
