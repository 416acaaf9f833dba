package daemon

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/secrets"
	"github.com/gitring/gitring/store"
	"github.com/gitring/gitring/upgrade"
)

// How long one probe may take, and how long an answer is kept: a reader shall not use the
// host to flood a forge.
const (
	probeWithin = 5 * time.Second
	reportKept  = time.Minute
)

// reports makes one report at a time, and hands out the last one while it is young.
type reports struct {
	// failed is what the last one says of checks that failed; nil before the first. It is read
	// while one is made.
	failed atomic.Pointer[string]
	mu     sync.Mutex // held while one is made
	last   doctor.Report
}

// failedSays is how many checks of a report failed, and when; "" where none did.
func failedSays(r *doctor.Report) string {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Result == doctor.Fail {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 check fails, as of " + r.At.Format("2006-01-02 15:04 UTC")
	}
	return fmt.Sprintf("%d checks fail, as of %s", n, r.At.Format("2006-01-02 15:04 UTC"))
}

// doctor is the report of now, or of a moment ago.
func (d *Daemon) doctor(ctx context.Context) (doctor.Report, error) {
	d.reports.mu.Lock()
	defer d.reports.mu.Unlock()
	now := time.Now()
	if age := now.Sub(d.reports.last.At); age >= 0 && age < reportKept && d.reports.last.At.Unix() > 0 {
		return d.reports.last, nil
	}
	st, err := d.status(ctx)
	if err != nil {
		return doctor.Report{}, err
	}
	// What one reader began is made for the next one, too.
	s := d.seen(context.WithoutCancel(ctx), st, now.UTC())
	d.reports.last = doctor.Report{Host: d.cfg.Host, Gitring: ring.Release, At: now.UTC(), Daemon: true, Checks: doctor.Judge(s)}
	d.reports.failed.Store(new(failedSays(&d.reports.last)))
	return d.reports.last, nil
}

// seen asks the world, all at once. A probe that is late counts as one without an answer.
func (d *Daemon) seen(ctx context.Context, st ring.Status, now time.Time) *doctor.Seen {
	s := Examine(ctx, d.cfg)
	s.Now, s.Status = now, &st
	facts, seen := ring.Facts{}, ring.Seen{}
	within, cancel := context.WithTimeout(ctx, probeWithin)
	world, worldErr := d.loop.World(within)
	cancel()
	if worldErr == nil {
		facts, seen = world.Facts, world.Seen
	}
	var regs []doctor.Registry
	s.Tokens, s.Webhooks = d.probeTokens(), d.hooks.of(d.cfg)
	s.Forges = make([]doctor.ForgeToken, 0, len(d.forges))
	for _, source := range slices.Sorted(maps.Keys(d.forges)) {
		s.Forges = append(s.Forges, doctor.ForgeToken{Source: source})
	}
	probes := []func(ctx context.Context){
		func(ctx context.Context) { s.Engine, s.Beside = d.probeEngine(ctx) },
		func(ctx context.Context) { s.Journal = answer(d.store.CheckJournal(ctx)) },
		func(ctx context.Context) { s.Backup.Since = d.oldestLine(ctx) },
		func(ctx context.Context) { s.Trust, _ = d.trust(ctx, "") },
		func(ctx context.Context) { s.Health = probeHealth(ctx, d.cfg) },
		func(ctx context.Context) { regs = d.probeRegistries(ctx, &facts) },
		func(ctx context.Context) { s.Skews = probeSkews(ctx, d.cfg) },
	}
	for i := range s.Forges {
		f := &s.Forges[i]
		probes = append(probes, func(ctx context.Context) { *f = probeForge(ctx, f.Source, d.forges[f.Source]) })
	}
	each(ctx, probes)
	s.Registries = regs
	if s.Engine.Swarm != nil && st.Cluster != nil {
		s.Engine.Swarm.Nodes = st.Cluster.Nodes
	}
	s.Reboot = reboot(&facts, &seen, &s.Engine, worldErr, cmp.Or(st.Engine, notLooked(&st)))
	return s
}

// each runs probes at once, each with its time, and returns when all have ended.
func each(ctx context.Context, probes []func(context.Context)) {
	var wg sync.WaitGroup
	for _, probe := range probes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeWithin)
			defer cancel()
			probe(ctx)
		})
	}
	wg.Wait()
}

// Examine asks what can be asked without a daemon.
func Examine(ctx context.Context, cfg *config.Config) *doctor.Seen {
	s := &doctor.Seen{Now: time.Now().UTC()}
	s.Folder, s.Disk = probeFolder(cfg.State)
	s.Fronts = probeFronts(filepath.Join(cfg.State, "front"))
	s.Backup = doctor.Backup{Asked: doctor.Asked{Asked: true}, At: store.BackedUp(cfg.State)}
	s.Trial = probeTrial(cfg.State)
	s.Secrets = probeSecrets(cfg)
	s.Clock = probeClock()
	s.Doors = doctor.Doors{Asked: doctor.Asked{Asked: true}, Hooks: cfg.Listen.HTTP, Wide: wide(cfg.Listen.HTTP)}
	if l := cfg.Listen.API; l != nil {
		s.Doors.API, s.Doors.APIWide = l.Address, wide(l.Address)
		s.Doors.APIPlain = s.Doors.APIWide && l.TLS == nil
		s.Doors.PlainCookie = s.Doors.APIWide && !strings.HasPrefix(l.URL, "https://")
	}
	s.People = probePeople("/etc/group")
	probes := []func(context.Context){}
	for i := range cfg.Sources {
		src := &cfg.Sources[i]
		s.Merges = s.Merges || src.Trust.Mode == "forge-merge"
		s.Remotes = append(s.Remotes, doctor.Remote{Source: src.Name, Host: remoteHost(src.URL)})
	}
	for i := range s.Remotes {
		r := &s.Remotes[i]
		probes = append(probes, func(ctx context.Context) {
			if r.Host == "" {
				return
			}
			_, err := net.DefaultResolver.LookupHost(ctx, r.Host)
			r.DNS = answer(err)
		})
	}
	if s.Merges {
		probes = append(probes, func(ctx context.Context) { s.Git = probeGit(ctx) })
	}
	each(ctx, probes)
	return s
}

// answer is what came of asking.
func answer(err error) doctor.Asked {
	a := doctor.Asked{Asked: true}
	if errors.Is(err, context.DeadlineExceeded) {
		a.Err = "no answer within " + probeWithin.String()
		return a
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

func (d *Daemon) probeEngine(ctx context.Context) (doctor.Engine, doctor.Beside) {
	about, err := d.engine.About(ctx)
	e := doctor.Engine{
		Asked: answer(err), Version: about.Version, API: about.API, Least: runtime.MinAPI, Cgroup: about.Cgroup,
		Rootless: about.Rootless, LogDriver: about.LogDriver, Storage: about.Storage, Pools: about.Pools, Podman: about.Podman, Clock: about.Clock,
	}
	if about.Swarm != nil {
		e.Swarm = &doctor.Swarm{Managers: about.Swarm.Managers, Autolock: about.Swarm.Autolock}
	}
	if err == nil {
		for _, d := range runtime.Lacking(about.API) {
			e.Lacks = append(e.Lacks, string(d.Capability))
		}
		if about.Podman {
			e.Lacks = append(e.Lacks, runtime.PodmanRefuses()...)
		}
		unit := "docker.service"
		if about.Podman {
			unit = "podman-restart.service"
		}
		if e.AtBoot = probeBoot(ctx, unit); about.Podman && e.AtBoot.Asked.Asked && e.AtBoot.Err == "" {
			out, _ := exec.CommandContext(ctx, "systemctl", "show", "--property=ExecStart", unit).Output()
			e.AtBoot.Starts = string(out) // nothing is the least that the unit starts
		}
	}
	return e, doctor.Beside{Asked: answer(err), Projects: about.Projects}
}

// probeBoot asks systemd, where there is one.
func probeBoot(ctx context.Context, unit string) doctor.Boot {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return doctor.Boot{}
	}
	out, err := exec.CommandContext(ctx, "systemctl", "is-enabled", unit).Output()
	word := strings.TrimSpace(string(out)) // it says the word and exits 1 where that is not "enabled"
	if word == "" {
		return doctor.Boot{Asked: answer(cmp.Or(err, errors.New("systemctl says nothing")))}
	}
	return doctor.Boot{Asked: answer(nil), Enabled: word}
}

// notLooked is why nothing is known yet of what runs; "" where something is.
func notLooked(st *ring.Status) string {
	if st.At.IsZero() {
		return "the daemon has not looked yet"
	}
	return ""
}

// reboot counts the instances of workers that run, and those that the engine would not start.
func reboot(f *ring.Facts, seen *ring.Seen, e *doctor.Engine, worldErr error, engine string) doctor.Reboot {
	if worldErr != nil || engine != "" {
		return doctor.Reboot{Asked: answer(cmp.Or(worldErr, errors.New(engine)))}
	}
	if e.Podman && !e.AtBoot.Asked.Asked {
		return doctor.Reboot{} // without systemd nobody can tell what starts its containers
	}
	r, back := doctor.Reboot{Asked: answer(nil), Podman: e.Podman, Swarm: e.Swarm != nil}, e.ComeBack()
	for i := range seen.Instances {
		in := &seen.Instances[i]
		row, ours := f.Apps[in.App]
		if !ours || in.Kind.Ends() || in.State != ring.StateRunning {
			continue
		}
		s, planned := row.App.Service(in.Service)
		if !planned {
			continue
		}
		r.Ready++
		if r.Swarm || slices.Contains(back, in.Policy) {
			continue
		}
		r.Stay = append(r.Stay, in.App+"/"+in.Service)
		slot := f.Slots[ring.SlotKey(ring.ID(in.App, in.Service), in.Slot, in.Version)]
		if slot.Instance == in.ID && slot.Crashes > 0 && slices.Contains(back, s.Restart.Engine) {
			r.Crashed = append(r.Crashed, in.App+"/"+in.Service)
		}
	}
	return r
}

// probeForge asks a forge what it thinks of the token by which a source tells it things.
func probeForge(ctx context.Context, source string, f notify.Forge) doctor.ForgeToken {
	st, known, err := f.CheckToken(ctx)
	return doctor.ForgeToken{Asked: answer(err), Source: source, Silent: !known, Refused: st.Says, Expires: st.Expires, Left: st.Left, Limit: st.Limit}
}

// probeTokens reads those of listen.api. Nobody asks where that does not listen.
func (d *Daemon) probeTokens() doctor.Tokens {
	if d.tokens == nil {
		return doctor.Tokens{}
	}
	t := doctor.Tokens{Asked: doctor.Asked{Asked: true, Err: d.tokens.Trouble()}}
	for _, one := range d.tokens.All() {
		t.All = append(t.All, doctor.PersonToken{Name: one.Name, Until: one.End()})
	}
	return t
}

// oldestLine is when the oldest line of the journal was written.
func (d *Daemon) oldestLine(ctx context.Context) time.Time {
	first, err := d.store.Events(ctx, store.EventQuery{Limit: 1})
	if err != nil || len(first) == 0 {
		return time.Time{}
	}
	return first[0].At
}

// probeRegistries asks each registry of what is in force for one image.
func (d *Daemon) probeRegistries(ctx context.Context, f *ring.Facts) []doctor.Registry {
	one := map[string]serviceOf{}
	for _, s := range inForce(f, "", "") {
		name := registryOf(s.Spec.Image)
		if _, had := one[name]; !had && !runtime.Fixed(s.Spec.Image) && s.Pin.Image != s.Pin.Digest() {
			one[name] = s
		}
	}
	asker := d.engine.Asker()
	reader := &runtime.TagReader{DockerConfig: d.cfg.Registries.DockerConfig, Helpers: d.cfg.Registries.Helpers}
	out := make([]doctor.Registry, len(one))
	var wg sync.WaitGroup
	for i, name := range slices.Sorted(maps.Keys(one)) {
		wg.Go(func() {
			s := one[name]
			row := lookUpOne(ctx, asker, s)
			r := doctor.Registry{Asked: doctor.Asked{Asked: true}, Name: name, Image: s.Spec.Image, Refused: row.no != nil}
			if row.no != nil || row.err != nil || row.Now == "" {
				r.Err = row.Reason
			}
			if row.Now != "" {
				left, err := reader.Pulls(ctx, s.Pin.Image)
				r.Pulls = doctor.Pulls{Asked: answer(err), Left: left.Left, Of: left.Of, Within: left.Within}
			}
			login, err := runtime.LoginOf(d.cfg.Registries.DockerConfig, d.cfg.Registries.Helpers, s.Spec.Image)
			r.Login = doctor.Login{Asked: answer(err), Helper: login.Helper, Missing: login.Missing, File: login.File}
			out[i] = r
		})
	}
	wg.Wait()
	return out
}

// registryOf is the host of an image's name, as Docker reads it.
func registryOf(image string) string {
	first, _, more := strings.Cut(image, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first
	}
	return "docker.io"
}

// noFollow asks nobody else than it was told.
var noFollow = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// probeHealth asks the public address for what the listener answers.
func probeHealth(ctx context.Context, cfg *config.Config) doctor.Health {
	if cfg.Listen.HTTP == "" || cfg.Listen.URL == "" {
		return doctor.Health{}
	}
	at := strings.TrimSuffix(cfg.Listen.URL, "/")
	res, err := head(ctx, at+"/healthz")
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %d", res.StatusCode)
	}
	return doctor.Health{Asked: answer(err), URL: at}
}

// probeSkews compares clocks with the remotes that speak https.
func probeSkews(ctx context.Context, cfg *config.Config) []doctor.Skew {
	var hosts []string
	for i := range cfg.Sources {
		u, err := url.Parse(cfg.Sources[i].URL)
		if err == nil && u.Scheme == "https" && !slices.Contains(hosts, u.Host) {
			hosts = append(hosts, u.Host)
		}
	}
	out := make([]doctor.Skew, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() { out[i] = probeSkew(ctx, host) })
	}
	wg.Wait()
	return out
}

func probeSkew(ctx context.Context, host string) doctor.Skew {
	began := time.Now()
	res, err := head(ctx, "https://"+host+"/")
	var theirs time.Time
	if err == nil {
		theirs, err = http.ParseTime(res.Header.Get("Date"))
	}
	if err != nil {
		return doctor.Skew{Asked: answer(err), Host: host}
	}
	middle := began.Add(time.Since(began) / 2)
	return doctor.Skew{Asked: answer(nil), Host: host, By: middle.Sub(theirs)}
}

func head(ctx context.Context, at string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, at, nil)
	if err != nil {
		return nil, err
	}
	res, err := noFollow.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, err
	}
	return res, res.Body.Close()
}

// probeTrial is about the note that an upgrade leaves in the state folder.
func probeTrial(state string) doctor.Trial {
	t, on := upgrade.ReadTrial(state)
	begun, err := upgrade.TrialBegan(state)
	if !on || err != nil {
		return doctor.Trial{Asked: answer(err)}
	}
	return doctor.Trial{Asked: answer(nil), On: true, To: t.To, Until: begun.Add(t.Longest())}
}

// probeSecrets is about the files of keys and of what they open. No key is read.
func probeSecrets(cfg *config.Config) doctor.Secrets {
	s := doctor.Secrets{Asked: answer(nil), Dir: cfg.Secrets.Dir, Memory: atRest(cfg) == config.AtRestMemory, Unit: unitEnabled()}
	for _, k := range cfg.Secrets.Keys {
		_, path := keyPath(k)
		st, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			s.Keys = append(s.Keys, doctor.KeyFile{Asked: answer(nil), Path: path, Missing: true})
			continue
		}
		f := doctor.KeyFile{Asked: answer(err), Path: path}
		f.Others = err == nil && st.Mode().Perm()&secrets.ClosedTo(path) != 0
		s.Keys = append(s.Keys, f)
	}
	if !s.Memory && claimedBy(s.Dir, cfg.State) {
		left, err := store.PlaceAt(s.Dir).Hashes()
		if err != nil {
			s.Asked = answer(err)
		}
		s.Before = len(left)
	}
	if s.Memory && len(s.Keys) > 0 {
		s.Swap = probeSwap(s.Dir)
	}
	return s
}

// probeSwap asks the kernel for its swap, and for the mount of the folder of secrets.
func probeSwap(dir string) doctor.Swap {
	swaps, err := os.ReadFile("/proc/swaps")
	if err != nil {
		return doctor.Swap{Asked: answer(err)}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return doctor.Swap{Asked: answer(err), On: swapsToDisk(string(swaps)), Kept: keepsOffSwap(string(mounts), dir)}
}

// swapsToDisk reports whether the kernel's list of swaps (proc(5)) has one that is not memory
// itself.
func swapsToDisk(list string) bool {
	for i, line := range strings.Split(strings.TrimSpace(list), "\n") {
		if i > 0 && line != "" && !strings.HasPrefix(line, "/dev/zram") {
			return true
		}
	}
	return false
}

// keepsOffSwap reports whether the mount of a folder never goes to a swap: it is ramfs, or
// tmpfs with noswap. The list of mounts is that of proc(5); a later mount hides an earlier one.
func keepsOffSwap(list, dir string) (kept bool) {
	longest := ""
	for line := range strings.Lines(list) {
		before, after, found := strings.Cut(line, " - ")
		at, of := strings.Fields(before), strings.Fields(after)
		if !found || len(at) < 5 || len(of) < 3 || len(at[4]) < len(longest) {
			continue
		}
		if at[4] == "/" || dir == at[4] || strings.HasPrefix(dir, at[4]+"/") {
			longest = at[4]
			kept = of[0] == "ramfs" || slices.Contains(strings.Split(of[2], ","), "noswap")
		}
	}
	return kept
}

func probeFolder(state string) (doctor.Folder, doctor.Disk) {
	f := doctor.Folder{Path: state, Owner: -1, User: os.Geteuid()}
	fi, err := os.Stat(state)
	if err != nil {
		return doctor.Folder{Asked: answer(err), Path: state}, doctor.Disk{Asked: answer(err)}
	}
	f.Asked, f.Mode = answer(nil), uint32(fi.Mode().Perm())
	if uid, _, ok := disk.OwnersOf(fi); ok {
		f.Owner = uid
	}
	if f.User == 0 {
		f.User = -1 // root may look at anybody's
	}
	sort, d := probeDisk(filepath.Clean(state))
	f.FileSort = sort
	return f, d
}

// probeGit is about the program that judges landings.
func probeGit(ctx context.Context) doctor.Git {
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	version, _, _ = strings.Cut(version, " ")
	var major, minor int
	if _, scanned := fmt.Sscanf(version, "%d.%d", &major, &minor); err == nil && scanned != nil {
		err = fmt.Errorf("cannot read the version %q", version)
	}
	return doctor.Git{Asked: answer(err), Version: version, Old: major < 2 || major == 2 && minor < 38}
}

// probePeople reads who is named in the groups that rule a host.
func probePeople(file string) doctor.People {
	b, err := os.ReadFile(file)
	p := doctor.People{Asked: answer(err), Groups: map[string][]string{}}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		parts := strings.Split(lines.Text(), ":")
		if len(parts) == 4 && parts[3] != "" {
			p.Groups[parts[0]] = strings.Split(parts[3], ",")
		}
	}
	return p
}

// remoteHost is the host of a repository's address; "" where it is on this one.
func remoteHost(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.Scheme == "file" {
		return ""
	}
	return u.Hostname()
}

// wide reports whether an address is open beyond loopback.
func wide(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if address == "" || err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}
