package daemon

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/program"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// Limits of providers (docs/design/secrets.md, S20).
const (
	mostProvided      = 1 << 20 // bytes of one value
	providersAtOnce   = 4
	firstProviderWait = 10 * time.Second // after a call that failed; doubled from then on
	mostProviderWait  = 15 * time.Minute
)

// providers ask programs of the host for the values that apps name. A value that is known is
// asked for again only where the configuration or a person says so. nil knows no provider.
type providers struct {
	of   map[string]provider
	host string
	kept func(askedFor) (learnedValue, bool) // of an earlier process
	run  func(context.Context, program.Call) ([]byte, error)
	now  func() time.Time
	log  *slog.Logger
	// changed is called when an answer differs from the last, or there is another reason to wait.
	changed func()

	slots chan struct{} // those that may be asked at once
	wake  chan struct{}

	mu     sync.Mutex // guards what follows
	all    map[askedFor]*answered
	inUse  map[string]map[string][]string // by source and app: the references, as written
	rounds int                            // goes up with each change
	turns  map[string]int                 // by app, as in answered.by: calls since nothing was due
}

// provider is one program, with its environment.
type provider struct {
	config.SecretProvider
	env []string
}

// print tells programs apart: another one may know another value by the same reference.
func (p provider) print() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", p.Exec))
	return hex.EncodeToString(sum[:8])
}

// askedFor is what one call is about. App is "" where the program is not told of it: then one
// call serves all apps.
type askedFor struct{ provider, ref, app string }

func (a askedFor) String() string { return a.provider + ":" + a.ref }

// learnedValue is one that a program said, with which one that was: see provider.print.
type learnedValue struct {
	value, by string
	at        time.Time
}

// answered is what is known of one value.
type answered struct {
	value  string
	saidBy string // the program, as provider.print
	known  bool
	failed string // why the last call failed; "" where it did not
	tries  int    // that failed, one after another
	next   time.Time
	asking bool
	by     string // an app that has it, with its source
}

// newProviders reads the environments of all providers that a configuration names.
func newProviders(c *config.Config, log *slog.Logger) (*providers, error) {
	return providersOf(c, log, self)
}

func providersOf(c *config.Config, log *slog.Logger, user fileUser) (*providers, error) {
	if len(c.Secrets.Providers) == 0 {
		return nil, nil
	}
	p := &providers{
		of: map[string]provider{}, host: c.Host, run: runOwned, now: time.Now, log: log, changed: func() {},
		slots: make(chan struct{}, providersAtOnce), wake: make(chan struct{}, 1),
		all: map[askedFor]*answered{}, inUse: map[string]map[string][]string{}, turns: map[string]int{},
	}
	for name, says := range c.Secrets.Providers {
		env, err := providerEnv(says.EnvFile, user)
		if err != nil {
			return nil, &ring.HostError{Says: "secrets.providers." + name + ": " + err.Error(), Hint: "write lines NAME=value, and chmod 600 " + says.EnvFile, Err: err}
		}
		p.of[name] = provider{says, env}
	}
	return p, nil
}

// runOwned runs a program that nobody else can have replaced.
func runOwned(ctx context.Context, c program.Call) ([]byte, error) {
	if err := disk.OwnProgram(c.Argv[0], os.Geteuid()); err != nil {
		return nil, err
	}
	return program.Output(ctx, c)
}

// providerEnv is the whole environment of a provider: PATH, HOME and the lines of its file.
func providerEnv(file string, user fileUser) ([]string, error) {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	if file == "" {
		return env, nil
	}
	body, err := disk.ReadOwned(file, disk.Owned{User: user(file), Closed: secrets.ClosedTo(file), Most: 1 << 20})
	if err != nil {
		return nil, err
	}
	of, ok := manifest.SecretVariables(body, nil, true)
	if !ok {
		return nil, fmt.Errorf("cannot read %s: a line is not NAME=value", file)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		env = append(env, name+"="+of[name])
	}
	return env, nil
}

// providerKey is the key under which values of providers are kept on this host.
func providerKey(host []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, host, nil, "gitring: values of providers", 32)
}

// fitsRef reports whether a reference is one of a pattern. No * stands for nothing: what a
// provider makes of an empty part is mostly the folder above.
func fitsRef(pattern, ref string) bool {
	if fits, err := path.Match(pattern, ref); err != nil || !fits {
		return false
	}
	asked, parts := strings.Split(pattern, "/"), strings.Split(ref, "/")
	for i, part := range parts {
		if part == "" && asked[i] != "" {
			return false
		}
	}
	return true
}

var refWord = regexp.MustCompile(`^[A-Za-z0-9._/@:+-]+$`)

// checked is what a reference of an app asks for, or why the app may not.
func (p *providers) checked(app, written string) (askedFor, *ring.Refusal) {
	name, ref, _ := strings.Cut(written, ":")
	refuse := func(hint, says string, args ...any) (askedFor, *ring.Refusal) {
		return askedFor{}, &ring.Refusal{Code: ring.SecretRef, Says: fmt.Sprintf(says, args...), Hint: hint}
	}
	if !refWord.MatchString(ref) || strings.HasPrefix(ref, "-") || slices.ContainsFunc(strings.Split(ref, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return refuse("use letters, digits and . _ / @ : + - in it, no - at its beginning, and no part . or ..", "a provider cannot be asked for %q", ref)
	}
	if p == nil { // who reads it here does not know what the host has
		return askedFor{provider: name, ref: ref, app: app}, nil
	}
	of, ok := p.of[name]
	if !ok {
		return refuse("add it to secrets.providers of the host's configuration, or name one of: "+strings.Join(slices.Sorted(maps.Keys(p.of)), ", "), "this host has no provider %q", name)
	}
	patterns := make([]string, len(of.Refs))
	for i, pattern := range of.Refs {
		patterns[i] = strings.ReplaceAll(pattern, "{app}", app)
	}
	if !slices.ContainsFunc(patterns, func(pattern string) bool { return fitsRef(pattern, ref) }) {
		return refuse("name what lies below "+strings.Join(patterns, " or ")+", or add to secrets.providers."+name+".refs on the host", "app %s may not ask provider %s for %s", app, name, ref)
	}
	to := askedFor{provider: name, ref: ref}
	if slices.ContainsFunc(of.Exec, func(arg string) bool { return strings.Contains(arg, "{app}") }) {
		to.app = app
	}
	return to, nil
}

// begun is what is known of a reference before its provider was asked.
func (p *providers) begun(of askedFor) *answered {
	a := &answered{next: p.now()}
	last, ok := p.kept(of)
	if !ok {
		return a
	}
	a.value, a.saidBy, a.known = last.value, last.by, true
	// What another program said stays until this one has answered: it is asked at once.
	if is := p.of[of.provider].print(); last.by == "" || last.by == is {
		a.saidBy, a.next = is, p.again(of, last.at)
	}
	return a
}

// saidBy is the program that said what is known of a reference; "" where nothing is.
func (p *providers) saidBy(of askedFor) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.all[of]
	if a == nil {
		a = p.begun(of)
	}
	return a.saidBy
}

// value is what is known of a reference, and why not where it is not. ask says that the
// commit is verified, so its provider will be asked.
func (p *providers) value(of askedFor, ask bool) (value string, known bool, waits string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.all[of]
	if a == nil { // a look alone has nothing asked: uses does, once a commit has it
		a = p.begun(of)
	}
	switch {
	case a.known:
		return a.value, true, ""
	case !ask:
		return "", false, ""
	}
	waits = "waits for " + of.String()
	if a.failed != "" {
		waits += fmt.Sprintf(": %s; attempt %d", a.failed, a.tries)
	}
	return "", false, waits
}

// again is when a value that was learned at a moment is asked for again; zero is never.
func (p *providers) again(of askedFor, at time.Time) time.Time {
	if every := time.Duration(p.of[of.provider].Refresh); every > 0 {
		return at.Add(every)
	}
	return time.Time{}
}

// uses says which references a source's apps have now: these are asked for. What no app has
// is not asked for any more.
func (p *providers) uses(source string, byApp map[string][]string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse[source] = byApp
	named := map[askedFor]string{}
	for source, apps := range p.inUse {
		for app, refs := range apps {
			for _, ref := range refs {
				if of, r := p.checked(app, ref); r == nil {
					named[of] = max(named[of], source+"/"+app)
				}
			}
		}
	}
	maps.DeleteFunc(p.all, func(of askedFor, a *answered) bool { return named[of] == "" && !a.asking })
	for of, by := range named {
		if p.all[of] == nil {
			p.all[of] = p.begun(of)
		}
		p.all[of].by = by
	}
	p.poke()
}

// ofApp are the references of an app, sorted and once each.
func (p *providers) ofApp(app string) (all []askedFor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, apps := range p.inUse {
		for _, ref := range apps[app] {
			if of, r := p.checked(app, ref); r == nil && !slices.Contains(all, of) {
				all = append(all, of)
			}
		}
	}
	slices.SortFunc(all, func(a, b askedFor) int { return strings.Compare(a.String(), b.String()) })
	return all
}

func (p *providers) round() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rounds
}

func (p *providers) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// serve asks for what is due, until ctx ends.
func (p *providers) serve(ctx context.Context) error {
	if p == nil {
		return nil
	}
	var asks sync.WaitGroup
	defer asks.Wait()
	places := make(chan struct{}, providersAtOnce)
	for {
		due, next := p.dueUpTo(cap(places) - len(places))
		for _, of := range due {
			places <- struct{}{}
			asks.Go(func() {
				_, _ = p.ask(ctx, of)
				<-places
				p.poke()
			})
		}
		var clock <-chan time.Time
		if !next.IsZero() {
			clock = time.After(max(next.Sub(p.now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-clock:
		}
	}
}

// dueUpTo are those to be asked now, at most so many, which are marked as asked, and when
// the next one is. Apps take turns: one with many references keeps no other waiting.
func (p *providers) dueUpTo(most int) (due []askedFor, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for of, a := range p.all {
		switch {
		case a.asking || a.next.IsZero():
		case !a.next.After(now):
			due = append(due, of)
		case next.IsZero() || a.next.Before(next):
			next = a.next
		}
	}
	if len(due) == 0 {
		clear(p.turns)
	}
	slices.SortFunc(due, func(a, b askedFor) int { return p.all[a].next.Compare(p.all[b].next) })
	for i := range min(most, len(due)) {
		for j := range due[i:] {
			if p.turns[p.all[due[i+j]].by] < p.turns[p.all[due[i]].by] {
				due[i], due[i+j] = due[i+j], due[i]
			}
		}
		p.turns[p.all[due[i]].by]++
		p.all[due[i]].asking = true
	}
	return due[:min(most, len(due))], next
}

// ask runs the program for one value, and notes what came of it.
func (p *providers) ask(ctx context.Context, of askedFor) (changed bool, err error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	value, err := p.answerOf(ctx, of)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	p.mu.Lock()
	a := p.all[of]
	if a == nil { // no app has it any more
		p.mu.Unlock()
		return false, err
	}
	a.asking = false
	was, told := *a, a.failed
	switch {
	case err != nil:
		a.failed, a.tries = err.Error(), a.tries+1
		a.next = p.now().Add(min(firstProviderWait<<min(a.tries-1, 10), mostProviderWait))
	default:
		a.value, a.saidBy, a.known, a.failed, a.tries, a.next = value, p.of[of.provider].print(), true, "", 0, p.again(of, p.now())
	}
	changed = was.known && a.known && was.value != a.value
	if changed || was.known != a.known || !a.known || was.saidBy != a.saidBy {
		p.rounds++
		defer p.changed()
	}
	p.mu.Unlock()
	p.poke() // for when the next one is due
	if err != nil && told != err.Error() {
		p.log.Warn("a provider did not answer, will be asked again", "provider", of.provider, "ref", of.ref, "err", err)
	}
	return changed, err
}

// answerOf is what the program prints. Its errors hold nothing of that.
func (p *providers) answerOf(ctx context.Context, of askedFor) (string, error) {
	says := p.of[of.provider]
	with := strings.NewReplacer("{ref}", of.ref, "{app}", of.app, "{host}", p.host)
	argv := make([]string, len(says.Exec))
	for i, arg := range says.Exec {
		argv[i] = with.Replace(arg)
	}
	out, err := p.run(ctx, program.Call{Argv: argv, Env: says.env, Within: time.Duration(says.Timeout), Most: mostProvided + 1})
	if err != nil {
		return "", err
	}
	out = bytes.TrimSuffix(out, []byte("\n"))
	switch {
	case len(out) > mostProvided:
		return "", errors.New(argv[0] + " printed more than 1 MiB")
	case bytes.IndexByte(out, 0) >= 0:
		return "", errors.New(argv[0] + " printed a value with a zero byte, which no environment can hold")
	}
	return string(out), nil
}
