package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/metrics"
	"github.com/gitring/gitring/ring"
)

const (
	// silentAfter is how long a host may not report: three of its reports, and as many lost.
	silentAfter = 3 * time.Minute
	// clockOff is by how much a host's clock may differ from ours before that is told.
	clockOff = 30 * time.Second
	// keepFor is how long lines are kept, and rows whose token counts no more.
	keepFor = 30 * 24 * time.Hour
	// gapTold is for how long a row says that lines of it are missing.
	gapTold = 24 * time.Hour
	// rowBytes and allBytes bound the journals.
	rowBytes = 64 << 20
	allBytes = 4 << 30

	tidyEvery = time.Hour
)

// Options are what a Hub needs.
type Options struct {
	// State is its folder.
	State string
	// Tokens are those of its file: a row whose token counts no more gives way to the next one.
	Tokens *api.Tokens
	Now    func() time.Time
	Log    *slog.Logger
	// RowBytes and AllBytes bound the journal of a row, and of all rows; 0 is 64 MiB and 4 GiB.
	RowBytes, AllBytes int64
}

// Hub is what hosts told. It may be asked by many at once.
type Hub struct {
	Options
	process string
	recent  *recent
	counts  metrics.Counts

	scraping sync.Mutex // held while a page of metrics is made

	mu   sync.Mutex // guards what follows
	rows map[string]*row
}

// idName is of a folder: the id of a token.
var idName = regexp.MustCompile(`^[a-z2-7]{8}$`)

// Open reads what is kept, and mends what was not written whole.
func Open(o Options) (*Hub, error) {
	o.RowBytes, o.AllBytes = cmp.Or(o.RowBytes, rowBytes), cmp.Or(o.AllBytes, allBytes)
	name := make([]byte, 4)
	_, _ = rand.Read(name) // never fails
	h := &Hub{Options: o, process: hex.EncodeToString(name), recent: newRecent(), rows: map[string]*row{}}
	if err := os.MkdirAll(h.folder(), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the hub's folder: %w", err)
	}
	entries, err := os.ReadDir(h.folder())
	if err != nil {
		return nil, fmt.Errorf("cannot read the hub's folder: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !idName.MatchString(e.Name()) {
			continue
		}
		r, unread, err := loadRow(filepath.Join(h.folder(), e.Name()), e.Name())
		switch {
		case errors.Is(err, errNoLine):
			h.setAside(e.Name(), err)
			continue
		case err != nil: // it may pass, so what is kept stays where it is
			return nil, fmt.Errorf("cannot read what the host of token %s told: %w", e.Name(), err)
		}
		if unread != nil {
			o.Log.Warn("could not read what a host told last, which it will tell again", "err", unread)
		}
		h.rows[r.id] = r
	}
	return h, nil
}

// asideName is of a folder that could not be read: the id of a token, and when it was set aside.
var asideName = regexp.MustCompile(`^[a-z2-7]{8}\.unread-([0-9]{8}T[0-9]{6}Z)$`)

const asideTime = "20060102T150405Z"

// setAside has one host's folder whose content cannot be read keep nobody else's from being read. Its
// host tells a new row all that its own journal has.
func (h *Hub) setAside(id string, why error) {
	to := id + ".unread-" + h.Now().UTC().Format(asideTime)
	if err := os.Rename(filepath.Join(h.folder(), id), filepath.Join(h.folder(), to)); err != nil {
		h.Log.Error("could not read what a host told, nor set it aside: its reports will be refused", "token", id, "err", errors.Join(why, err))
		return
	}
	h.Log.Error("could not read what a host told, and set it aside: the host will tell its journal again", "token", id, "folder", to, "err", why)
}

func (h *Hub) folder() string { return filepath.Join(h.State, "hosts") }

// Run keeps what is kept small, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	t := time.NewTicker(tidyEvery)
	defer t.Stop()
	for {
		if err := h.tidy(h.Now()); err != nil {
			h.Log.Warn("could not remove what is old, will be tried again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// tidy removes days that are old, and rows that are: those of tokens that count no more.
func (h *Hub) tidy(now time.Time) error {
	counts := h.counting()
	var errs []error
	for _, r := range h.all() {
		r.mu.Lock()
		errs = append(errs, r.days.trim(now.Add(-keepFor).UTC().Format(time.DateOnly), h.RowBytes))
		old := !counts[r.id] && now.Sub(r.now.Seen) > keepFor
		r.mu.Unlock()
		if old {
			h.mu.Lock()
			delete(h.rows, r.id)
			h.mu.Unlock()
			errs = append(errs, os.RemoveAll(r.dir))
			h.recent.forget(r.id)
		}
	}
	entries, err := os.ReadDir(h.folder())
	errs = append(errs, err)
	for _, e := range entries {
		if at := asideName.FindStringSubmatch(e.Name()); at != nil && at[1] < now.Add(-keepFor).UTC().Format(asideTime) {
			errs = append(errs, os.RemoveAll(filepath.Join(h.folder(), e.Name())))
		}
	}
	return errors.Join(errs...)
}

// all are the rows, by id.
func (h *Hub) all() []*row {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*row, 0, len(h.rows))
	for _, r := range h.rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *row) int { return strings.Compare(a.id, b.id) })
	return out
}

// counting are the ids of tokens that let a host report now.
func (h *Hub) counting() map[string]bool {
	out := map[string]bool{}
	for _, t := range h.Tokens.All() {
		if t.Scopes.Reports() != "" {
			out[t.ID] = true
		}
	}
	return out
}

// Report takes what a host tells.
func (h *Hub) Report(_ context.Context, t api.Token, in *ring.HostReport) (ring.Cursor, error) {
	r, err := h.row(t.ID)
	if err != nil {
		return ring.Cursor{}, err
	}
	out, err := r.take(h.Now(), in, h.room(r))
	if err != nil {
		return ring.Cursor{}, err
	}
	h.recent.add(out.added)
	h.counts.AddMany(metrics.HubLines, len(out.added), in.Host)
	if out.gap != "" {
		h.counts.Add(metrics.HubGaps, in.Host, out.gap)
	}
	switch {
	case out.turn && out.full != nil:
		h.Log.Warn("could not keep what a host tells, whose status counts all the same", "host", in.Host, "token", t.ID, "err", out.full)
	case out.turn:
		h.Log.Info("keeps again what a host tells", "host", in.Host, "token", t.ID)
	}
	return out.at, out.full
}

// reported counts what came of a report.
func (h *Hub) reported(t api.Token, err error) {
	host, came := t.Scopes.Reports(), resultOf(err)
	for _, r := range []string{"taken", "full", "refused", "failed"} {
		h.counts.Begin(metrics.HubReports, host, r)
	}
	h.counts.Add(metrics.HubReports, host, came)
}

// resultOf is what came of a report, in a word.
func resultOf(err error) string {
	var e *api.Error
	switch {
	case err == nil:
		return "taken"
	case !errors.As(err, &e):
		return "failed"
	case e.Status == http.StatusInsufficientStorage:
		return "full"
	case e.Status < http.StatusInternalServerError:
		return "refused"
	}
	return "failed"
}

// row is that of a token, made where it is the first time.
func (h *Hub) row(id string) (*row, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rows[id]; r != nil {
		return r, nil
	}
	dir := filepath.Join(h.folder(), id)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, notKept(err)
	}
	if err := disk.Sync(h.folder()); err != nil {
		return nil, notKept(err)
	}
	r, _, err := loadRow(dir, id)
	if err != nil {
		return nil, notKept(err)
	}
	h.rows[id] = r
	return r, nil
}

// room is how many bytes the journal of a row may grow by. Of its own days the oldest give way.
func (h *Hub) room(of *row) int64 {
	var all int64
	for _, r := range h.all() {
		r.mu.Lock()
		all += r.days.bytes()
		r.mu.Unlock()
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.days.bytes() > h.RowBytes {
		_ = of.days.trim("", h.RowBytes) // tidy tells
	}
	return min(h.AllBytes-all, h.RowBytes-of.days.sizes[of.days.today(h.Now())])
}

// shown is a row with what of others is to be told of it.
type shown struct {
	*row
	key   string
	twice []string // tokens that report for the same host
	ended bool     // its token counts no more
}

// shownRows are the rows that people see. Of a host, those whose token counts; where none does, the
// one that was heard last.
func (h *Hub) shownRows() []shown {
	counts := h.counting()
	byHost := map[string][]shown{}
	for _, r := range h.all() {
		r.mu.Lock()
		host, heard := r.now.Host, !r.now.Seen.IsZero()
		r.mu.Unlock()
		if heard {
			byHost[host] = append(byHost[host], shown{row: r, ended: !counts[r.id]})
		}
	}
	var out []shown
	for host, rows := range byHost {
		if slices.ContainsFunc(rows, func(s shown) bool { return !s.ended }) {
			rows = slices.DeleteFunc(rows, func(s shown) bool { return s.ended })
		} else {
			rows = []shown{slices.MaxFunc(rows, func(a, b shown) int { return a.seen().Compare(b.seen()) })}
		}
		for i := range rows {
			rows[i].key = host
			if len(rows) == 1 {
				continue
			}
			rows[i].key += "~" + rows[i].id
			for j := range rows {
				if i != j {
					rows[i].twice = append(rows[i].twice, rows[j].id)
				}
			}
		}
		out = append(out, rows...)
	}
	slices.SortFunc(out, func(a, b shown) int { return strings.Compare(a.key, b.key) })
	return out
}

func (r *row) seen() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.Seen
}

// find is the row of a key: of a host, or of a host and a token.
func (h *Hub) find(key string) (shown, bool) {
	all := h.shownRows()
	i := slices.IndexFunc(all, func(s shown) bool { return s.key == key })
	if i < 0 {
		return shown{}, false
	}
	return all[i], true
}

// Fleet are all hosts by name, those that are silent first.
func (h *Hub) Fleet(context.Context) ([]api.HostNow, error) {
	now := h.Now()
	out := []api.HostNow{}
	for _, s := range h.shownRows() {
		out = append(out, s.host(now))
	}
	slices.SortStableFunc(out, func(a, b api.HostNow) int { return cmp.Compare(pages.HostRank(&a), pages.HostRank(&b)) })
	return out, nil
}

// host is a row as people see it.
func (s *shown) host(now time.Time) api.HostNow {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := api.HostNow{
		Key: s.key, Host: s.now.Host, Token: s.id, Gitring: s.now.Gitring, Seen: s.now.Seen.UTC(), Silent: isSilent(now, s.now.Seen),
		Word: s.said.word, Says: s.said.says, Since: s.now.Since.UTC(), Commit: s.said.commit, Subject: s.said.subject, Sources: s.said.sources,
		Ahead: s.now.Ahead.Round(time.Millisecond).Seconds(),
	}
	if n.Sources == nil {
		n.Sources = []api.HostSource{}
	}
	for _, id := range s.twice {
		n.Told = append(n.Told, "token "+id+" reports for a host of this name, too: is the name taken twice, or an old token not revoked?")
	}
	if s.full {
		n.Told = append(n.Told, "the hub has no room for more of its journal: new lines wait at the host")
	}
	if s.behind {
		n.Told = append(n.Told, "its pages are of an older status: the hub's disk is full")
	}
	if s.ended {
		n.Told = append(n.Told, "its token counts no more: the host cannot report")
	}
	if off := wrongClock(s.now.Ahead); off != "" {
		n.Told = append(n.Told, off)
	}
	if now.Sub(s.now.Gap) < gapTold {
		n.Told = append(n.Told, map[string]string{
			ring.GapTrimmed:  "lines of its journal are missing: they were removed there before they could be told",
			ring.GapReplaced: "its journal began anew: it has another database",
		}[s.now.GapWhy])
	}
	return n
}

// isSilent reports whether a host has not been heard for too long. Where our own clock was set back,
// nobody knows, and what is not known is not well.
func isSilent(now, seen time.Time) bool {
	age := now.Sub(seen)
	return age >= silentAfter || age < -silentAfter
}

// wrongClock says by how much a host's clock is wrong; "" where it is right enough. It is told in
// whole steps, so that it does not change all the time.
func wrongClock(ahead time.Duration) string {
	off, way := ahead.Abs(), "ahead of" // the most negative of all is -ahead, too
	if ahead < 0 {
		way = "behind"
	}
	switch {
	case off < clockOff:
		return ""
	case off < 2*time.Minute:
		return "its clock is about " + fmt.Sprint(int(off.Round(10*time.Second).Seconds())) + " s " + way + " the hub's"
	case off < 2*time.Hour:
		return "its clock is about " + fmt.Sprint(int(off.Round(time.Minute).Minutes())) + " min " + way + " the hub's"
	}
	return "its clock is about " + fmt.Sprint(int(off.Round(time.Hour).Hours())) + " h " + way + " the hub's"
}

// Tag is the same as long as a host, or all for "", is shown the same.
func (h *Hub) Tag(_ context.Context, key string) (string, error) {
	now := h.Now()
	sum := sha256.New()
	for _, s := range h.shownRows() {
		if key != "" && s.key != key {
			continue
		}
		s.mu.Lock()
		whole := "" // of one host its pages are meant, which tell when its remotes were asked
		if key != "" {
			whole = s.whole
		}
		_, _ = fmt.Fprintln(sum, s.key, s.id, s.change, s.tag, whole, isSilent(now, s.now.Seen), s.ended, len(s.twice), now.Sub(s.now.Gap) < gapTold) // never fails
		s.mu.Unlock()
	}
	return `W/"` + hex.EncodeToString(sum.Sum(nil)[:12]) + `"`, nil
}

// lines are those of a host by its key, as a stream tells them.
func (h *Hub) lines(after int64, key string, limit int) ([]api.HostEvent, int64, string) {
	all := h.shownRows()
	id := ""
	if key != "" {
		id = "none"
		if i := slices.IndexFunc(all, func(s shown) bool { return s.key == key }); i >= 0 {
			id = all[i].id
		}
	}
	lines, last, missing := h.recent.after(after, id, limit)
	keys := map[string]string{}
	for _, s := range all {
		keys[s.id] = s.key
	}
	for i := range lines {
		lines[i].Key = cmp.Or(keys[lines[i].Key], lines[i].Host+"~"+lines[i].Key)
	}
	return lines, last, missing
}

// Count counts a request at the door.
func (h *Hub) Count(route string, code int) {
	h.counts.Add(metrics.APIRequests, route, strconv.Itoa(code))
}

// Calls are what is asked of the hub by its door.
func (h *Hub) Calls() api.HubCalls {
	return api.HubCalls{
		Report: h.Report, Reported: h.reported, Fleet: h.Fleet, Tag: h.Tag, Lines: h.lines, Appended: h.recent.changed, Process: h.process,
		Metrics: api.Metrics(h.scrape, contentType),
	}
}
