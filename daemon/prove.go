package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/store"
)

const (
	// proofJournal is how much of the journal is in a proof, before it is made small.
	proofJournal = 512 << 10
	// proofWithin is how long collecting it may take: the source looks at nothing meanwhile.
	proofWithin = 2 * time.Minute
)

// proofShares are how much of a proof is not there for objects of Git, and how much of that
// the journal may take once it is packed. A head is a line of the statement.
func proofShares(s *proof.Statement, most, heads int) (reserve, journal int) {
	const spare, head = 2 << 10, 80
	return len(s.Encoded()) + spare + heads*head + most/9, most / 12
}

// prove makes a proof of who authorised what a container runs.
func (d *Daemon) prove(ctx context.Context, p api.Peer, r api.ProofRequest) (api.ProofMade, error) {
	if no := d.notOnSwarm("cannot prove what runs", "a task's container is its node's, and a manager cannot read its labels", "docker service inspect shows the commit that a service was made from"); no != nil {
		return api.ProofMade{}, no
	}
	ctx, cancel := context.WithTimeout(ctx, proofWithin)
	defer cancel()
	in, facts, err := d.proven(ctx, r.Target)
	if err != nil {
		return api.ProofMade{}, err
	}
	f := d.follower(in.Source)
	if f == nil {
		return api.ProofMade{}, api.NotFound("", "source %s, which container %s was made from, is not followed any more", in.Source, in.Name)
	}
	s, err := d.statement(ctx, f, in, facts)
	if err != nil {
		return api.ProofMade{}, err
	}
	most := proof.MostMade
	if r.Most > 0 {
		most = min(r.Most, proof.MostRead)
	}
	_, journal := proofShares(s, most, 0)
	shown, err := f.git.Show(ctx, gitsync.Wanted{
		Commit: in.Commit, From: r.From,
		Read: func(c *ring.Commit) error {
			found, err := proof.Compute(c, s)
			if err == nil && found.Service.Version != s.Version {
				err = fmt.Errorf("cannot read commit %s twice alike", c.SHA.Short())
			}
			return err
		},
		Fits: func(all []gitsync.Object, heads int) bool {
			reserve, _ := proofShares(s, most, heads)
			packed, _ := proof.Pack(all)
			return len(packed)*4/3+reserve <= most
		},
	})
	if err != nil {
		return api.ProofMade{}, notProven(in, err)
	}
	made := &proof.Proof{Format: proof.Format}
	s.Chain = proof.Chain{From: shown.From, How: shown.How, LeftOut: shown.LeftOut, Commits: shown.Commits, Heads: shown.Heads}
	made.Objects, s.Objects = proof.Pack(shown.Objects)
	s.Made = time.Now().UTC()
	made.Statement = *s
	if made.Journal, err = d.journalled(ctx, p, s, r.After, journal); err != nil {
		return api.ProofMade{}, err
	}
	file, err := made.Encode(most)
	if err != nil {
		return api.ProofMade{}, api.Conflicting("begin later with --from, or allow more with --most", "%v", err)
	}
	return api.ProofMade{Proof: file, Doubts: shown.Doubts}, nil
}

// notProven is why there is no proof, as the one who asks reads it.
func notProven(in *ring.Instance, err error) error {
	if f, ok := errors.AsType[*proof.Fault](err); ok {
		return api.Conflicting(f.Hint, "cannot prove %s: %s", in.Name, f.Says)
	}
	if r, ok := errors.AsType[*ring.Refusal](err); ok {
		return api.Conflicting("begin later with --from", "cannot prove %s: %s", in.Name, r.Says)
	}
	return err
}

// proven finds the container that is meant: by its name or ID, or as one of a service.
func (d *Daemon) proven(ctx context.Context, target string) (*ring.Instance, *ring.Facts, error) {
	w, err := d.loop.World(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := slices.Clone(w.Seen.Instances)
	for i := range all { // Compose made these: their labels do not say what they stand for
		if row, ok := w.Facts.Adopted[all[i].ID]; ok {
			all[i].App, all[i].Service, all[i].Slot = row.App, row.Service, row.Slot
		}
	}
	in, err := d.provenIn(all, target)
	if err != nil {
		return nil, nil, err
	}
	if _, adopted := w.Facts.Adopted[in.ID]; adopted || in.Version == "" || in.Commit == "" {
		return nil, nil, api.Conflicting("its next rollout makes one that can be proven", "container %s was taken over from Compose: nothing on it says which commit it was made from", in.Name)
	}
	if strings.HasSuffix(in.Service, ring.FrontSuffix) {
		app := w.Facts.Apps[in.App].App
		if s, ok := app.Service(in.Service); ok && s.FrontOf != "" {
			return nil, nil, api.Conflicting("gitring prove "+in.App+"/"+s.FrontOf, "%s is a front, which gitring makes of its own program", in.Name)
		}
	}
	return &in, &w.Facts, nil
}

func (d *Daemon) provenIn(all []ring.Instance, target string) (ring.Instance, error) {
	app, rest, named := strings.Cut(target, "/")
	if !named {
		i := slices.IndexFunc(all, func(in ring.Instance) bool {
			return in.Name == target || len(target) >= 12 && strings.HasPrefix(in.ID, target)
		})
		if i < 0 {
			return ring.Instance{}, api.NotFound("gitring status lists apps and services", "no container of gitring is called %s", target)
		}
		return all[i], nil
	}
	service, number, _ := strings.Cut(rest, "/")
	slot := 0
	if number != "" {
		var err error
		if slot, err = strconv.Atoi(number); err != nil || slot < 1 {
			return ring.Instance{}, api.Usage("gitring prove <app>/<service>/1", "%q is no slot", number)
		}
	}
	var found *ring.Instance
	for i := range all {
		in := &all[i]
		if in.App != app || in.Service != service || slot != 0 && in.Slot != slot {
			continue
		}
		// What runs comes before what does not, then the lower slot, then the newer.
		if found == nil || in.Live() && !found.Live() || in.Live() == found.Live() &&
			(in.Slot < found.Slot || in.Slot == found.Slot && in.Created.After(found.Created)) {
			found = in
		}
	}
	if found == nil {
		return ring.Instance{}, d.noSuchInstance(app, service)
	}
	return *found, nil
}

// noSuchInstance is the answer where a service has no container.
func (d *Daemon) noSuchInstance(app, service string) error {
	st, _ := d.loop.Status()
	if _, here := api.Narrow(&st, app+"/"+service); !here {
		return d.noSuch(app, service)
	}
	return api.NotFound("gitring status "+app+" says why", "%s/%s has no container now", app, service)
}

// statement is what this host says of a container, with as few of its own values as give
// its version. The error is for whoever asks.
func (d *Daemon) statement(ctx context.Context, f *follower, in *ring.Instance, facts *ring.Facts) (*proof.Statement, error) {
	held, err := d.engine.Labelled(ctx, in.ID)
	if errors.Is(err, runtime.ErrNoContainer) {
		return nil, api.NotFound("ask again", "container %s is gone", in.Name)
	}
	if err != nil {
		return nil, err
	}
	c, err := f.git.Commit(ctx, in.Commit)
	if err != nil {
		return nil, fmt.Errorf("cannot read commit %s, which container %s was made from: %w", in.Commit.Short(), in.Name, err)
	}
	s := &proof.Statement{
		Host: d.cfg.Host, Gitring: ring.Release, Source: f.cfg.Name, Branch: f.cfg.Branch,
		App: in.App, Service: in.Service, Slot: in.Slot, Kind: in.Kind, Version: in.Version, Commit: in.Commit,
		Container: proof.Container{
			ID: held.ID, Name: held.Name, Image: held.Image, ImageID: held.ImageID,
			State: held.State, Created: held.Created, Started: held.Started,
		},
	}
	app, err := d.readForProof(f, c, s)
	if err == nil {
		s.Pins = pinsFor(app, s, facts)
		err = proof.Least(c, s)
	}
	if err != nil {
		return nil, notProven(in, err)
	}
	found, err := proof.Compute(c, s)
	if err != nil {
		return nil, notProven(in, err)
	}
	s.Verdict = proof.VerdictOf(facts.Signed, held.Image)
	s.Container.Labels, s.Container.LeftOut = labelsFor(held.Labels, &found.Service)
	return s, nil
}

// readForProof reads a commit with the host's values, and has the statement say them.
func (d *Daemon) readForProof(f *follower, c *ring.Commit, s *proof.Statement) (*ring.App, error) {
	v, err := d.env.readAndTell(d.log)
	if err != nil {
		return nil, err
	}
	settings := f.here(v)
	var heard *proof.Listener
	if settings.Secrets != nil {
		heard = proof.Listen(settings.Secrets)
		settings.Secrets = heard
	}
	plan, _ := manifest.Read(c, settings)
	v.apply(&plan, d.cfg.DataRoot)
	app, ok := plan.App(s.App)
	if !ok {
		says := "the commit has no such app"
		if r := plan.Refused[s.App]; r != nil {
			says = r.Says
		}
		return nil, &proof.Fault{Code: proof.ServiceMissing, Says: fmt.Sprintf("the files of %s cannot be read again as they were: %s", c.SHA.Short(), says)}
	}
	s.Values = proof.ValuesOf(&settings)
	s.Values.DataRoot = app.DataRoot
	s.Values.Env = manifest.SealedOf(s.App, v.files[s.App], d.env.key, settings.Interpolation)
	maps.Copy(s.Values.Env, manifest.SealedOf(manifest.SharedEnv(s.Source), v.shared[s.Source], d.env.key, settings.Interpolation))
	if heard != nil && heard.Known[s.App] != nil {
		s.Values.Files = manifest.SealedValues{s.App: heard.Known[s.App]}
	}
	return &app, nil
}

// pinsFor are the images of a service and of those that lead it, as the plan has them by
// which the container was made.
func pinsFor(app *ring.App, s *proof.Statement, facts *ring.Facts) map[string]proof.Pin {
	stored := storedApp(facts, s)
	pins := map[string]proof.Pin{}
	for _, name := range proof.Needs(app, s.Service) {
		if of, ok := stored.Service(name); ok {
			pins[name] = proof.Pin{Image: of.Pin.Image, Mark: of.Spec.Mark}
		}
	}
	pins[s.Service] = proof.Pin{Image: s.Container.Image, Mark: pins[s.Service].Mark}
	return pins
}

// storedApp is the plan that has the version of a statement: the one in force, or an
// earlier one.
func storedApp(facts *ring.Facts, s *proof.Statement) ring.App {
	has := func(a *ring.App) bool {
		of, ok := a.Service(s.Service)
		return ok && of.Version == s.Version
	}
	now := facts.Apps[s.App].App
	if has(&now) {
		return now
	}
	for _, key := range slices.Sorted(maps.Keys(facts.Past)) {
		if past := facts.Past[key].App; past.Name == s.App && has(&past) {
			return past
		}
	}
	if g := facts.Good[s.ID()]; g != nil && g.Service.Version == s.Version {
		now.Services = append(slices.Clone(now.Services), g.Service)
		now.Services = slices.DeleteFunc(now.Services, func(of ring.Service) bool { return of.Name == s.Service && of.Version != s.Version })
	}
	return now
}

// labelsFor are the labels of a container that a proof may hold: those that gitring and
// Compose own, and those of the Compose file without a secret. left are the names of the rest.
func labelsFor(all map[string]string, s *ring.Service) (out map[string]string, left []string) {
	out = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		want, asked := s.Spec.Labels[name]
		if proof.Owned(name) || asked && !ring.HasSealed(want) {
			out[name] = all[name]
			continue
		}
		left = append(left, name)
	}
	return out, left
}

// journalled writes into the journal that the proof was made, and is the end of it.
func (d *Daemon) journalled(ctx context.Context, p api.Peer, s *proof.Statement, after int64, most int) (proof.Journal, error) {
	digest := s.Digest()
	err := d.store.Record(ctx, nil, []ring.Event{{
		At: s.Made, Kind: ring.ProofMade, Source: s.Source, App: s.App, Service: s.Service, Slot: s.Slot, Version: s.Version, Commit: s.Commit,
		Actor: answerable(p), Reason: "a proof of container " + s.Container.Name + " was made", Digest: digest,
	}})
	if err != nil {
		return proof.Journal{}, err
	}
	recent, err := d.store.HashedEvents(ctx, store.EventQuery{Kinds: []string{ring.ProofMade}, Limit: 100, Desc: true})
	if err != nil {
		return proof.Journal{}, err
	}
	i := slices.IndexFunc(recent, func(e store.HashedEvent) bool { return e.Digest == digest })
	if i < 0 {
		return proof.Journal{}, errors.New("cannot find the line about the proof in the journal again")
	}
	for size := proofJournal; ; size /= 2 {
		seq, hash, lines, err := d.store.JournalEnd(ctx, recent[i].Seq, after, size)
		if err != nil {
			return proof.Journal{}, err
		}
		all := make([]proof.Line, len(lines))
		for i, l := range lines {
			all[i] = proof.Line(l)
		}
		j := proof.PackJournal(seq, hash, all)
		if len(j.Lines) <= most || after > 0 || len(lines) == 1 {
			return j, nil
		}
	}
}
