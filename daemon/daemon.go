package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/health"
	"github.com/gitring/gitring/metrics"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/proxy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/report"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/store"
)

// Daemon is everything that serve runs, wired: each part knows only ring, and
// they meet here.
type Daemon struct {
	cfg    *config.Config
	log    *slog.Logger
	judge  admission.Judge
	policy *admission.LivePolicy
	// violations are apps in force that the policy of now denies.
	violations   violations
	keyFiles     keyFiles
	stops        stopping
	store        *store.Store
	ledger       *ledger
	env          *envFolder
	secrets      *secretFiles
	engine       engine
	noFronts     noFronts
	contentStore *contentStore
	fronts       *proxy.Client
	upgrades     *upgrader
	health       *health.Watcher
	sender       *notify.Sender
	words        *notify.Words // what other hosts say of commits
	// receivers are told what the journal says.
	receivers *notify.Receivers
	// reporter tells a hub; nil where the configuration names none.
	reporter *report.Reporter
	forges   map[string]notify.Forge // by source
	loop     *reconcile.Loop
	spare    *gitsync.Spare
	sources  []*follower
	doors    []door
	// kept is why the configuration as it lies on disk is not in force; nil when it is,
	// as far as anybody asked.
	kept atomic.Pointer[string]
	// differs reports whether the configuration's file was changed since it was read.
	differs atomic.Bool
	// tokens are of listen.api; nil where nothing listens.
	tokens *api.Tokens
	// engineIs is what the engine said of itself last; nil while it is away.
	engineIs atomic.Pointer[runtime.EngineVersion]
	meters   meters
	hooks    hooksCame
	reports  reports
	trial    *trial // nil where this process may act at once
	// ready is closed when the first look is done, also one that saw no engine.
	ready     chan struct{}
	readyOnce sync.Once
}

// door is a listener and who serves it.
type door struct {
	listener net.Listener
	run      func(ctx context.Context, l net.Listener) error
}

// tidyEvery is how often the store is trimmed and contents are pruned, openedEvery how
// often at most those with a value of the host are, and pruneWithin how long the
// engine may take to say what is mounted.
const (
	tidyEvery   = time.Hour
	openedEvery = 5 * time.Second
	pruneWithin = 30 * time.Second
)

// New checks all that can be wrong before the socket appears, and starts
// nothing.
func New(ctx context.Context, cfg *config.Config, log *slog.Logger) (d *Daemon, err error) {
	d = &Daemon{cfg: cfg, log: log, judge: admission.For(cfg), ready: make(chan struct{})}
	d.trial = newTrial(cfg.State, d.log)
	d.policy = admission.NewLivePolicy(cfg)
	d.judge.Live = d.policy
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.store, err = store.Open(ctx, cfg.State); err != nil {
		return d, err
	}
	if n := d.store.Notice(); n != "" {
		log.Warn("mended the store", "reason", n)
		if err := d.store.Record(ctx, nil, []ring.Event{{At: time.Now().UTC(), Kind: ring.DaemonStarted, Reason: n}}); err != nil {
			return d, err
		}
	}
	if err := d.wireMeters(ctx); err != nil {
		return d, err
	}
	if d.ledger, err = newLedger(ctx, d.store, cfg.DataRoot); err != nil {
		return d, err
	}
	d.judge.Whose, d.judge.Signed = d.ledger.whose, d.signed(ctx)
	if err := d.wireEnv(); err != nil {
		return d, err
	}
	d.wireFronts()
	if err := d.wireEngine(ctx); err != nil {
		return d, err
	}
	if err := d.placeSecrets(ctx); err != nil {
		return d, err
	}
	d.wireHealth(ctx)
	d.wireSender(ctx)
	if err := d.wireReceivers(); err != nil {
		return d, err
	}
	if err := d.wireSources(ctx); err != nil {
		return d, err
	}
	d.wireLoop()
	d.wirePulls()
	d.wireReport()
	return d, d.openDoors()
}

// wireEnv tells at once of an env folder that cannot be read at all; what is
// wrong with that of one app is the app's refusal.
func (d *Daemon) wireEnv() (err error) {
	if d.env, err = newEnvFolder(d.cfg); err != nil {
		return err
	}
	if d.secrets, err = newSecretFiles(d.cfg, d.env.key); err != nil {
		return err
	}
	if err := d.wireProviders(); err != nil {
		return err
	}
	_, err = d.env.look(d.log, time.Now())
	return err
}

// wireProviders makes ready the programs that know values.
func (d *Daemon) wireProviders() (err error) {
	if d.secrets.providers, err = newProviders(d.cfg, d.log); err != nil || d.secrets.providers == nil {
		return err
	}
	d.secrets.providers.kept, d.secrets.providers.changed = d.secrets.learned, d.pokeSources
	return nil
}

// pokeSources has each source read its commit again.
func (d *Daemon) pokeSources() {
	for _, f := range d.sources {
		f.poke()
	}
}

// placeSecrets has the files there that containers mount: a reboot emptied the memory that
// they lie in, and an engine does not start what lacks a file.
func (d *Daemon) placeSecrets(ctx context.Context) error {
	s := d.contentStore
	if err := s.places.begin(); err != nil {
		return err
	}
	s.places.each(func(c ring.Content, at store.Place) { s.noteEmptied(c.Hash, at) })
	if err := s.places.place(ctx, func(c ring.Content) ring.Content { return openedContent(c, s.open) }); err != nil {
		d.log.Warn("could not place every file with a secret", "err", err) // its service is told of by its app
	}
	return nil
}

// openSealed is the value behind a sealed one.
func (d *Daemon) openSealed(v ring.Sealed) (string, error) { return openSealed(d.env, d.secrets, v) }

// valuesOf are all values that an app may have been given, with what people call them.
func (d *Daemon) valuesOf(app string) (map[string]string, error) {
	out, err := d.env.values(app)
	if err != nil {
		return nil, err
	}
	values, shut := d.secrets.values(app)
	maps.Copy(out, values)
	opens := func(v ring.Sealed) bool { _, err := d.env.open(v); return err == nil }
	return out, d.contentStore.placedValues(app, shut, opens, out)
}

// wireFronts makes the client of fronts, and has the newest proxy where fronts look for it.
// Where it cannot be placed they go on with the one that they have.
func (d *Daemon) wireFronts() {
	d.fronts = proxy.NewClient(d.cfg.State, func() { d.loop.Poke() })
	d.fronts.Hear(d.countFront)
	d.upgrades = newUpgrader(frontBuild(), d.cfg.State)
	if err := d.upgrades.prepare(filepath.Join(d.cfg.State, "fronts")); err != nil {
		d.log.Warn("could not place the newest proxy of fronts", "err", err)
	}
}

func (d *Daemon) wireEngine(ctx context.Context) (err error) {
	d.contentStore = newContentStore(d.store, func(ctx context.Context) (map[string]bool, error) { return d.engine.Mounted(ctx) }, d.openSealed)
	if d.contentStore.places, err = newPlaces(d.cfg, d.secrets.kept); err != nil {
		return err
	}
	d.contentStore.planned = d.ledger.planned
	options := runtime.Options{
		URL: d.cfg.Engine.URL, Host: d.cfg.OwnerName(), Sources: d.sourceNames(), ContentDir: d.contentDir(), DataRoot: d.cfg.DataRoot,
		Front: d.upgrades.FrontBuild, Allow: d.judge.Allow, ImageRules: d.imageRules, Verified: d.isVerified, Shared: d.judge.Shared, OwnerHost: d.judge.OwnerHost,
		SeedDir: filepath.Join(d.cfg.State, "seeds"), SamePaths: d.cfg.SamePaths(), Open: d.openSealed, Values: d.valuesOf, Printed: func(id string) map[string]string { return d.health.Printed(id) },
		ContentAt: d.contentStore.at, Placed: []string{secretsOnDisk(d.cfg.State), d.cfg.Secrets.Dir},
		DockerConfig: d.cfg.Registries.DockerConfig, Helpers: d.cfg.Registries.Helpers, Poke: func(string) { d.loop.Poke() }, Log: d.log,
		Progress: func(target, says string) { d.loop.Progress(target, says) },
		Asked:    func(call, code string) { d.meters.counts.Add(metrics.EngineRequests, call, code) },
	}
	if d.cfg.Engine.Swarm() {
		if options.Lease, err = leaseOf(d.cfg, d.env.key); err != nil {
			return err
		}
	}
	if d.engine, err = dial(ctx, d.cfg, options); err != nil {
		return unfit(err)
	}
	d.judge.Runtimes.Ask = func() (string, []string, error) {
		ctx, cancel := context.WithTimeout(ctx, admission.RuntimesWithin)
		defer cancel()
		return d.engine.Runtimes(ctx)
	}
	d.noFronts.build = noFrontIn(frontBuild())
	d.noFronts.ask = func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, admission.RuntimesWithin)
		defer cancel()
		return d.engine.NoFronts(ctx)
	}
	return nil
}

// dial is the engine of a configuration; never an interface that holds nil, which close would
// take for one.
func dial(ctx context.Context, cfg *config.Config, o runtime.Options) (engine, error) {
	if cfg.Engine.Swarm() {
		s, err := runtime.DialSwarm(ctx, o)
		if err != nil {
			return nil, err
		}
		return &cluster{Swarm: s}, nil
	}
	docker, err := runtime.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return docker, nil
}

func (d *Daemon) sourceNames() []string {
	var names []string
	for _, s := range d.cfg.Sources {
		names = append(names, s.Name)
	}
	return names
}

func (d *Daemon) wireHealth(ctx context.Context) {
	streaks, err := d.store.Streaks(ctx)
	if err != nil { // those that could not be read begin anew
		d.log.Warn("could not read every streak", "err", err)
	}
	d.health = health.New(health.Options{
		Exec: d.engine.Exec, Poke: func() { d.loop.Poke() }, Log: d.log,
		Save: func(s []ring.Streak) error { return d.store.SaveStreaks(context.WithoutCancel(ctx), s) },
		Keep: func(r []ring.Result) error { return d.store.SaveResults(context.WithoutCancel(ctx), r) },
	}, streaks)
}

func (d *Daemon) wireSender(ctx context.Context) {
	forges := map[string]notify.Forge{}
	for i := range d.cfg.Sources {
		s := &d.cfg.Sources[i]
		if f, speaks := config.WayOut(s); speaks {
			forges[s.Name] = f
		}
		for _, says := range s.Warnings() {
			d.log.Warn(says, "source", s.Name)
		}
	}
	d.forges = forges
	d.sender = notify.New(d.store, forges, d.log)
	d.words = notify.NewWords(forges, func() { d.loop.Poke() }, d.log)
	statuses, deployments, err := d.store.Unsaid(ctx)
	if err != nil { // only what status shows of the time before
		d.log.Warn("could not read what was never said", "err", err)
	}
	d.sender.Recall(statuses, deployments)
}

func (d *Daemon) wireLoop() {
	var sources []reconcile.Source
	for _, f := range d.sources {
		sources = append(sources, f.source)
	}
	d.loop = reconcile.New(reconcile.Options{
		Host: d.cfg.OwnerName(), Gitring: ring.Release, Engine: d.engine, Health: d.health, Fronts: d.fronts, Memory: d.ledger,
		Log: d.log, Posted: d.sender.Poke, Adopts: d.engine.Adopts, KeepImages: d.cfg.Prune.KeepImages(),
		Took: d.countLook, Words: d.words, Signing: d.signing, TagRules: d.tagRules, Trial: d.trial.is, Passed: func() { d.readyOnce.Do(func() { close(d.ready) }) },
	}, sources)
}

// Ready is closed when the first look is done, also one that saw no engine: who waits for
// this daemon waits for an answer, and not for the engine.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// openDoors listens, so that an address in use is an error before anything runs.
func (d *Daemon) openDoors() error {
	socket, err := api.NewSocket(d.calls(), d.log)
	if err != nil {
		return err
	}
	socket.Count(d.countRequest)
	socket.NameEnv(d.cfg.Env.Dir)
	l, err := api.ListenSocket(d.cfg.Listen.Socket)
	if err != nil {
		return err
	}
	d.doors = append(d.doors, door{l, socket.Run})
	if err := d.openAPI(socket); err != nil {
		return err
	}
	if d.cfg.Listen.HTTP == "" {
		return nil
	}
	hooks, err := d.webhooks()
	if err != nil {
		return err
	}
	if l, err = net.Listen("tcp", d.cfg.Listen.HTTP); err != nil {
		return &ring.HostError{
			Says: fmt.Sprintf("cannot take webhooks: %v", err),
			Hint: "free the address or give listen.http another one; \"\" is for none",
		}
	}
	d.doors = append(d.doors, door{l, hooks.Run})
	return nil
}

func (d *Daemon) webhooks() (*api.Webhooks, error) {
	var hooks []api.Hook
	for i := range d.cfg.Sources {
		s := &d.cfg.Sources[i]
		if s.Webhook == nil {
			continue
		}
		secrets, err := api.LoadSecrets(s.Webhook.SecretFile, s.Webhook.Forge)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s.Name, err)
		}
		hooks = append(hooks, api.Hook{Source: s.Name, Forge: s.Webhook.Forge, Branch: s.Branch, Secret: secrets})
	}
	return api.NewWebhooks(hooks, api.HookOptions{
		Limits: d.cfg.HookLimits(), Poke: func(source string) { d.follower(source).poke() }, Log: d.log,
		Pulls: func(source string) { d.follower(source).pokePulls() },
		Count: func(source, result string) {
			d.meters.counts.Add(metrics.Webhooks, source, result)
			d.hooks.came(source, result == api.HookTaken, time.Now().UTC())
		},
	})
}

// run runs every part until ctx ends or one fails, and returns when all that
// it started has ended.
func (d *Daemon) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	parts := []func(context.Context) error{d.loop.Run, d.engine.Run, d.engine.Unplugs, d.health.Run, d.spare.Run, d.watchConfig, d.watchVersion, d.fronts.Run, d.watchTrial}
	acting := []func(context.Context) error{d.sender.Run, d.words.Run, d.receivers.Run, d.tidy, d.tidyOpened, d.watchPolicy, d.watchKeys, d.upgradeFronts, d.secrets.asked().serve}
	if d.reporter != nil {
		acting = append(acting, d.reporter.Run)
	}
	for _, f := range d.sources {
		acting = append(acting, f.run)
		if f.pulls != nil {
			acting = append(acting, f.pulls.Run)
		}
	}
	for _, part := range acting {
		parts = append(parts, d.trial.after(part))
	}
	for _, o := range d.doors {
		parts = append(parts, func(ctx context.Context) error { return o.run(ctx, o.listener) })
	}
	for _, part := range parts {
		g.Go(func() error { return part(ctx) })
	}
	return g.Wait()
}

// tidy keeps the store small. What it cannot do now it tries again later.
func (d *Daemon) tidy(ctx context.Context) error {
	t := time.NewTicker(tidyEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := d.store.Trim(ctx, time.Now()); err != nil && ctx.Err() == nil {
			d.log.Warn("could not trim the store", "err", err)
		} else if err := d.loop.Reread(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("could not read the facts again", "err", err)
		}
		if err := d.prune(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("could not prune the contents", "err", err)
		}
	}
}

// tidyOpened removes files that hold a value of the host as soon as nothing needs
// them: at the start, and after each change that is recorded.
func (d *Daemon) tidyOpened(ctx context.Context) error {
	told := ""
	for {
		changed := d.store.Changed()
		again, err := d.pruneOpened(ctx)
		says := ""
		if err != nil && ctx.Err() == nil {
			says = err.Error()
		}
		if says != "" && says != told {
			d.log.Warn("could not remove files that hold a value of the host, will be tried again", "err", says)
		}
		told = says
		if !waitChange(ctx, changed, again || err != nil) {
			return nil
		}
	}
}

// waitChange waits openedEvery, and then until something changed, a minute at most;
// for again not even that. It reports whether ctx goes on.
func waitChange(ctx context.Context, changed <-chan struct{}, again bool) bool {
	t := time.NewTimer(openedEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	}
	if again {
		return true
	}
	t.Reset(time.Minute) // a plan that was replaced before it was in force changes no fact
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-t.C:
	}
	return true
}

func (d *Daemon) pruneOpened(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pruneWithin)
	defer cancel()
	return d.contentStore.pruneOpened(ctx)
}

// prune is bounded because commits wait for it.
func (d *Daemon) prune(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pruneWithin)
	defer cancel()
	return errors.Join(d.contentStore.prune(ctx), d.engine.SweepLive(ctx), d.sweepFronts(ctx))
}

// Close ends what New opened, and what was not served.
func (d *Daemon) Close() {
	for _, o := range d.doors {
		_ = o.listener.Close() // closed already where it was served
	}
	var errs []error
	if d.engine != nil {
		errs = append(errs, d.engine.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if err := errors.Join(errs...); err != nil {
		d.log.Error("cannot close", "err", err)
	}
}

func (d *Daemon) follower(source string) *follower {
	for _, f := range d.sources {
		if f.cfg.Name == source {
			return f
		}
	}
	return nil
}
