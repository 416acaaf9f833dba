package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// How proxies are upgraded: one front at a time, so that a bad one is met once.
const (
	upgradeEvery  = 10 * time.Second // between two fronts
	upgradeWithin = 30 * time.Second // until a new proxy carries, or the old one stayed
	upgradeAgain  = time.Hour        // until one that was not taken is tried again by itself
)

// upgrader has fronts take the proxy that this release brings.
type upgrader struct {
	runtime.FrontBuild
	dir  string // <state>/front
	poke chan struct{}

	mu    sync.Mutex
	asked map[ring.ServiceID]bool      // guarded by mu: by a person, and not done
	tried map[ring.ServiceID]time.Time // guarded by mu: when it was not taken
}

func newUpgrader(b runtime.FrontBuild, state string) *upgrader {
	return &upgrader{
		FrontBuild: b, dir: filepath.Join(state, "front"), poke: make(chan struct{}, 1),
		asked: map[ring.ServiceID]bool{}, tried: map[ring.ServiceID]time.Time{},
	}
}

// build is the word by which fronts name the program; "" where there is none.
func (u *upgrader) build() string {
	if u == nil || u.Sum == "" {
		return ""
	}
	return "sha256:" + u.Sum
}

// prepare makes the folder that every front mounts, and has the program there where a front
// is on this host already. A front that is made from now on has it in its image, and a host
// without fronts keeps the room.
func (u *upgrader) prepare(fronts string) error {
	if u.Sum == "" {
		return nil
	}
	if err := os.MkdirAll(u.dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the programs of fronts: %w", err)
	}
	if err := os.Chmod(u.dir, 0o755); err != nil { // whatever the umask: a front is another user
		return fmt.Errorf("cannot make the folder of the programs of fronts: %w", err)
	}
	if entries, err := os.ReadDir(fronts); os.IsNotExist(err) || err == nil && len(entries) == 0 {
		return nil
	}
	return u.place()
}

// place has the program in the folder that every front mounts, whole, under its own hash.
func (u *upgrader) place() error {
	if u.Sum == "" {
		return nil
	}
	at := filepath.Join(u.dir, u.Sum)
	file := filepath.Join(at, "front")
	if st, err := os.Lstat(file); err == nil && st.Mode().IsRegular() && st.Mode().Perm() == 0o555 {
		return u.renew(at) // written whole or not at all
	}
	program, err := u.Open()
	if err != nil {
		return fmt.Errorf("cannot read the program of fronts: %w", err)
	}
	for _, dir := range []string{u.dir, at} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot place the program of fronts: %w", err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask: a front is another user
			return fmt.Errorf("cannot place the program of fronts: %w", err)
		}
	}
	if err := disk.WriteWhole(file, "tmp-", program, 0o555); err != nil {
		return fmt.Errorf("cannot place the program of fronts: %w", err)
	}
	return nil
}

// renew makes a folder the newest of all, by which fronts choose: a release that came back
// finds its own there, and a later one.
func (u *upgrader) renew(at string) error {
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		return fmt.Errorf("cannot list the programs of fronts: %w", err)
	}
	mine, err := os.Stat(at)
	if err != nil {
		return fmt.Errorf("cannot place the program of fronts: %w", err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || e.Name() == u.Sum || st.ModTime().Before(mine.ModTime()) {
			continue
		}
		now := time.Now()
		if err := os.Chtimes(at, now, now); err != nil {
			return fmt.Errorf("cannot place the program of fronts: %w", err)
		}
		return nil
	}
	return nil
}

// sweep removes programs that no front of used runs.
func (u *upgrader) sweep(used map[string]bool) error {
	entries, err := os.ReadDir(u.dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the programs of fronts: %w", err)
	}
	for _, e := range entries {
		if e.Name() == u.Sum || used["sha256:"+e.Name()] || len(e.Name()) != 64 {
			continue
		}
		if err := os.RemoveAll(filepath.Join(u.dir, e.Name())); err != nil {
			return fmt.Errorf("cannot remove a program of fronts: %w", err)
		}
	}
	return nil
}

// ask notes fronts that a person wants upgraded now.
func (u *upgrader) ask(ids []ring.ServiceID) {
	u.mu.Lock()
	for _, id := range ids {
		u.asked[id] = true
		delete(u.tried, id)
	}
	u.mu.Unlock()
	select {
	case u.poke <- struct{}{}:
	default:
	}
}

// next is the first front that is to take the program now: one that a person asked for, or,
// where nothing moves, one that did not refuse it lately.
func (u *upgrader) next(fronts []api.FrontNow, synced bool, now time.Time) (api.FrontNow, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range fronts {
		id := ring.ID(f.App, f.Service)
		switch {
		case f.At.IsZero() || f.Container == "": // it does not answer: nobody could say whether it was taken
		case f.Newest:
			delete(u.asked, id)
			delete(u.tried, id)
		case u.asked[id], synced && now.Sub(u.tried[id]) >= upgradeAgain:
			return f, true
		}
	}
	return api.FrontNow{}, false
}

// failed notes that a front went on with the proxy that it had.
func (u *upgrader) failed(id ring.ServiceID, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.asked, id)
	u.tried[id] = now
}

// trafficUpgrade has every front take the newest proxy now, one after the other.
func (d *Daemon) trafficUpgrade(ctx context.Context, p api.Peer, r api.UpgradeRequest) (api.Upgrading, error) {
	all, err := d.traffic(ctx, api.TrafficQuery{})
	if err != nil {
		return api.Upgrading{}, err
	}
	out := api.Upgrading{Fronts: []ring.ServiceID{}}
	for _, f := range all {
		if !f.Newest {
			out.Fronts = append(out.Fronts, ring.ID(f.App, f.Service))
		}
	}
	if len(out.Fronts) == 0 {
		return out, nil
	}
	if err := d.store.Record(ctx, nil, []ring.Event{{At: time.Now().UTC(), Kind: ring.UpgradeAsked, Actor: p.Actor(), Reason: r.Reason}}); err != nil {
		return out, err
	}
	d.upgrades.ask(out.Fronts)
	return out, nil
}

// upgradeFronts upgrades proxies until ctx ends. A daemon that was just started waits until
// the host is as it should be: then nothing else moves that could be taken for its doing.
func (d *Daemon) upgradeFronts(ctx context.Context) error {
	oneByOne(ctx, d.upgrades.poke, func() bool { return d.upgradeOne(ctx) }, func() { d.sweepPrograms(ctx) })
	return nil
}

// oneByOne does one after the other, whole upgradeEvery apart also where a person asked, and
// what comes after the last. It looks whether there is one each upgradeEvery, and when poked.
func oneByOne(ctx context.Context, poke <-chan struct{}, one func() bool, after func()) {
	for t := time.NewTimer(upgradeEvery); ; t.Reset(upgradeEvery) {
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		case <-poke:
		}
		for one() {
			t.Reset(upgradeEvery) // a tick of meanwhile does not count
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
		}
		after()
	}
}

// upgradeOne has the next front take the newest proxy, and reports whether there was one.
func (d *Daemon) upgradeOne(ctx context.Context) bool {
	if d.upgrades.Sum == "" {
		return false
	}
	all, err := d.traffic(ctx, api.TrafficQuery{})
	if err != nil {
		return false // the loop ends, or tells it
	}
	st, _ := d.loop.Status()
	synced := !slices.ContainsFunc(st.Sources, func(s ring.SourceStatus) bool { return s.Sync != ring.SyncSynced })
	f, ok := d.upgrades.next(all, synced, time.Now())
	if !ok {
		return false
	}
	why := d.upgradeFront(ctx, f)
	if ctx.Err() != nil {
		return false
	}
	e := ring.Event{At: time.Now().UTC(), Kind: ring.FrontUpgraded, App: f.App, Service: f.Service, Reason: "its proxy is that of gitring " + ring.Release}
	if why != "" {
		d.upgrades.failed(ring.ID(f.App, f.Service), time.Now())
		e.Kind, e.Reason = ring.FrontKept, "the proxy of gitring "+ring.Release+" was not taken, the old one serves on: "+why
		d.log.Warn("proxy was not taken", "app", f.App, "service", f.Service, "reason", why)
	}
	if err := d.store.Record(ctx, nil, []ring.Event{e}); err != nil && ctx.Err() == nil {
		d.log.Warn("could not record an upgrade", "err", err)
	}
	return true
}

// upgradeFront signals one front and waits until it has the newest proxy; else it says why not.
func (d *Daemon) upgradeFront(ctx context.Context, f api.FrontNow) string {
	ctx, cancel := context.WithTimeout(ctx, upgradeWithin)
	defer cancel()
	if _, err := os.Lstat(filepath.Join(d.upgrades.dir, d.upgrades.Sum)); os.IsNotExist(err) { // no front was here at the start
		if err := d.upgrades.place(); err != nil {
			return err.Error()
		}
	}
	if err := d.engine.SignalFront(ctx, f.Container); err != nil {
		return err.Error()
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return "it was not ready within " + upgradeWithin.String()
		case <-t.C:
		}
		now, err := d.traffic(ctx, api.TrafficQuery{App: f.App, Service: f.Service})
		if err == nil && len(now) == 1 && now[0].Newest {
			return ""
		}
	}
}

// sweepFronts removes what no front needs any more.
func (d *Daemon) sweepFronts(ctx context.Context) error {
	err := d.engine.SweepFronts(ctx)
	d.sweepPrograms(ctx)
	return err
}

// sweepPrograms removes programs that no front runs. All stay as long as one does not answer
// or ends an older proxy: it may be that one's.
func (d *Daemon) sweepPrograms(ctx context.Context) {
	all, err := d.traffic(ctx, api.TrafficQuery{})
	if err != nil {
		return // the loop ends, or tells it
	}
	used := map[string]bool{}
	for _, f := range all {
		if f.At.IsZero() || f.Old > 0 {
			return
		}
		used[f.Build] = true
	}
	if err := d.upgrades.sweep(used); err != nil {
		d.log.Warn("could not remove programs of fronts", "err", err)
	}
}
