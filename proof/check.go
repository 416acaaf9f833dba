package proof

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Asked is what whoever checks knows by himself. All but Trust and Now may be left out.
type Asked struct {
	Trust *gitsync.Trust // whose signatures count
	Now   time.Time      // by which keys are judged
	Wall  time.Time      // the clock on the wall; zero is Now
	// From are commits that he knows to be trusted: the chain has to begin with the first of
	// them that is in the proof. None lets it begin anywhere.
	From []ring.SHA
	Host string // that it has to be of
	// Source, Branch and Path are what a host's configuration says it follows; "" is not known.
	Source, Branch, Path string
	ID                   ring.ServiceID // and of which service
	// Head is how the hash of the journal's last line begins, as the host showed it.
	Head string
	// Older is an earlier proof of the same host, which this one has to continue.
	Older []byte
	// Oldest is when it has to be made at the earliest, by the host's clock.
	Oldest time.Time
}

// Checked is the answer. What is in it beside Faults was found true, unless it says that it
// is the host's word.
type Checked struct {
	Holds  bool    `json:"holds"`
	Faults []Fault `json:"faults"`

	Host      string    `json:"host,omitempty"`
	Made      time.Time `json:"made,omitzero"`
	App       string    `json:"app,omitempty"`
	Service   string    `json:"service,omitempty"`
	Slot      int       `json:"slot,omitempty"`
	Container Container `json:"container,omitzero"`

	// Files are the Compose files, in the commit, that the version was computed from.
	Files   []string     `json:"files,omitempty"`
	Version ring.Version `json:"version,omitempty"`
	Commit  *Commit      `json:"commit,omitempty"`
	Chain   *ChainFound  `json:"chain,omitempty"`
	Image   *ImageFound  `json:"image,omitempty"`
	Journal *Lines       `json:"journal,omitempty"`

	// Steps are what was checked, in order; those after a fault may be missing.
	Steps []Step `json:"steps"`
	// Word is what nobody can check and the host says, and LeftOut what is not in the proof.
	Word    []string `json:"word"`
	LeftOut []string `json:"left_out"`
}

// Step is one thing that was checked.
type Step struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
}

// Commit is the commit that runs.
type Commit struct {
	SHA         ring.SHA  `json:"sha"`
	Signer      string    `json:"signer"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Note        string    `json:"note,omitempty"`
	Subject     string    `json:"subject"`
	ClaimedAt   time.Time `json:"claimed_at"`
}

// ChainFound is the chain as it was judged.
type ChainFound struct {
	From    ring.SHA `json:"from"`
	Known   bool     `json:"known"` // whoever checks named it
	Commits int      `json:"commits"`
	Landed  int      `json:"landed"` // of them made by a forge of signed heads
	// Signers are who signed them, and how many each.
	Signers map[string]int `json:"signers"`
}

// ImageFound is which image runs, and who chose it.
type ImageFound struct {
	Pin    string `json:"pin"`
	Digest string `json:"digest"`
	// Signed reports whether the commit itself names the digest. Else the host resolved a name.
	Signed  bool     `json:"signed"`
	Written string   `json:"written"` // as the commit has it
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Lines is the journal as it was checked.
type Lines struct {
	From  int64     `json:"from"` // the first line that is here
	Head  int64     `json:"head"`
	Hash  string    `json:"hash"`
	Since time.Time `json:"since,omitzero"`
}

// Check judges a file. It asks nothing but the file and what is asked.
func Check(file []byte, asked Asked) Checked {
	k := &check{asked: asked, out: Checked{Faults: []Fault{}, Steps: []Step{}, Word: []string{}, LeftOut: []string{}}}
	k.file(file)
	k.out.Holds = len(k.out.Faults) == 0
	return k.out
}

// check is one judgement. Each step relies on those before it.
type check struct {
	asked Asked
	p     *Proof
	s     *Statement
	given *gitsync.Given
	all   []gitsync.Object
	out   Checked
}

// step notes what came of one question.
func (k *check) step(what, says string, args []any, faults ...*Fault) bool {
	ok := true
	for _, f := range faults {
		if f != nil {
			k.out.Faults = append(k.out.Faults, *f)
			if ok {
				says, args, ok = "%s", []any{f.Says}, false
			}
		}
	}
	k.out.Steps = append(k.out.Steps, Step{What: what, OK: ok, Says: fmt.Sprintf(says, args...)})
	return ok
}

func (k *check) file(file []byte) {
	var f *Fault
	if k.p, f = read(file); f != nil {
		k.step("file", "", nil, f)
		return
	}
	k.s = &k.p.Statement
	k.step("file", "%d bytes, written as gitring writes a proof", []any{len(file)})
	k.describe()
	k.step("what it is of", "%s on host %s, made %s", []any{k.s.ID(), clip(k.s.Host), stamp(k.s.Made)}, k.wanted()...)
	k.journal()
	k.step("labels", "host, source, app, service, slot, version, commit and kind are those of the proof", nil, pointers(k.s.labelled())...)
	k.step("images", "container, pin and label name the same image", nil, pointers(k.s.imaged())...)
	if !k.objects() {
		return
	}
	k.chain()
	k.files()
	if n := k.given.Unasked(); n > 0 {
		k.out.LeftOut = append(k.out.LeftOut, fmt.Sprintf("nothing asked for %s in the file: they prove nothing", wording.Counted(n, "object")))
	}
}

// describe says what the proof is of, and what of it is the host's word.
func (k *check) describe() {
	s := k.s
	k.out.Host, k.out.Made, k.out.App, k.out.Service, k.out.Slot, k.out.Container = s.Host, s.Made, s.App, s.Service, s.Slot, s.Container
	k.out.Word = append(k.out.Word,
		fmt.Sprintf("that container %.12s %s with these labels, and what else it was started with", clip(s.Container.ID), does(s.Container.State)),
		"when it was made and started, and when the proof was made",
	)
	if k.asked.Path == "" { // else it was compared
		k.out.Word = append(k.out.Word, fmt.Sprintf("that it follows branch %s, and of the commit the folder %s", clip(s.Branch), clip(path.Clean("./"+s.Values.Path))))
	}
	if n := len(s.Container.LeftOut); n > 0 {
		k.out.LeftOut = append(k.out.LeftOut, fmt.Sprintf("the values of %s of the image, or with a secret: %s", wording.Counted(n, "label"), strings.Join(s.Container.LeftOut, ", ")))
	}
	if w := k.asked.Trust.Warning(); w != "" {
		k.out.LeftOut = append(k.out.LeftOut, "signatures, by your own rules: "+w)
	}
	if s.Chain.LeftOut != "" {
		k.out.LeftOut = append(k.out.LeftOut, fmt.Sprintf("the commits before %s: %s. Whoever checks has to know that one", shortOf(s.Chain.From), s.Chain.LeftOut))
	}
}

// does is what a container does in a state, behind its name.
func does(s ring.State) string {
	if s == ring.StateRunning {
		return "runs"
	}
	return fmt.Sprintf("is there (%s)", clip(string(s)))
}

// wanted holds the proof to what whoever checks wants it to be of.
func (k *check) wanted() (all []*Fault) {
	if want := k.asked.Host; want != "" && want != k.s.Host {
		all = append(all, &Fault{Code: OtherHost, Says: fmt.Sprintf("the proof is of host %s, and %s is asked for", clip(k.s.Host), want)})
	}
	if want := k.asked.ID; want != "" && want != k.s.ID() {
		all = append(all, &Fault{Code: OtherService, Says: fmt.Sprintf("the proof is of %s, and %s is asked for", clip(string(k.s.ID())), want)})
	}
	for _, f := range []struct{ what, got, want string }{
		{"source", k.s.Source, k.asked.Source}, {"branch", k.s.Branch, k.asked.Branch}, {"path", path.Clean("./" + k.s.Values.Path), k.asked.Path},
	} {
		if f.want != "" && f.got != f.want {
			all = append(all, &Fault{Code: OtherSource, Says: fmt.Sprintf("the proof is of %s %s, and your configuration follows %s", f.what, clip(f.got), f.want)})
		}
	}
	if !hexHash.MatchString(k.s.Container.ID) {
		all = append(all, &Fault{Code: BadForm, Says: fmt.Sprintf("the id of the container is none: %s", clip(k.s.Container.ID))})
	}
	if oldest := k.asked.Oldest; !oldest.IsZero() && k.s.Made.Before(oldest) {
		all = append(all, &Fault{Code: TooOld, Says: fmt.Sprintf("the proof was made %s, and nothing before %s is taken", stamp(k.s.Made), stamp(oldest)), Hint: "ask for a new one"})
	}
	now := k.asked.Wall
	if now.IsZero() {
		now = k.asked.Now
	}
	if k.s.Made.After(now.Add(ahead)) {
		all = append(all, &Fault{Code: TooOld, Says: fmt.Sprintf("the proof says that it was made %s, which is not yet", stamp(k.s.Made))})
	}
	return all
}

// ahead is how far the host's clock may be before that of whoever checks.
const ahead = 10 * time.Minute

func (k *check) journal() {
	h, f := k.p.Journal.chained()
	if f != nil {
		k.step("journal", "", nil, f)
		return
	}
	head := hex.EncodeToString(h.hashes[len(h.hashes)-1])
	k.out.Journal = &Lines{From: h.baseSeq + 1, Head: h.seq(), Hash: head}
	if len(h.events) > 0 {
		k.out.Journal.Since = h.events[0].At
	}
	faults := []*Fault{h.names(k.s)}
	if want := strings.ToLower(k.asked.Head); want != "" && !strings.HasPrefix(head, want) {
		faults = append(faults, &Fault{Code: OtherJournal, Says: fmt.Sprintf("the journal ends with %.16s…, and the host showed %s", head, clip(want))})
	}
	if k.asked.Older != nil {
		faults = append(faults, k.continues(h))
	}
	k.step("journal", "lines %d to %d are one chain, and the last one is about this statement", []any{h.baseSeq + 1, h.seq()}, faults...)
	if h.baseSeq > 0 {
		k.out.LeftOut = append(k.out.LeftOut, fmt.Sprintf("the journal's lines up to %d, whose hash is %.16s…", h.baseSeq, k.p.Journal.BaseHash))
	}
	k.out.Word = append(k.out.Word, "that the journal tells all that happened: a host can write another one, but not change this one unseen")
}

// continues holds the journal to that of an earlier proof: the same lines, and more.
func (k *check) continues(h *history) *Fault {
	older, f := read(k.asked.Older)
	if f != nil {
		return &Fault{Code: f.Code, Says: "the earlier proof: " + f.Says}
	}
	was, f := older.Journal.chained()
	if f != nil {
		return &Fault{Code: f.Code, Says: "the earlier proof: " + f.Says}
	}
	seq, hash := was.seq(), was.hashes[len(was.hashes)-1]
	switch here := h.at(seq); {
	case older.Statement.Host != k.s.Host:
		return &Fault{Code: OtherHost, Says: fmt.Sprintf("the earlier proof is of host %s, and this one of %s", clip(older.Statement.Host), clip(k.s.Host))}
	case seq > h.seq():
		return &Fault{Code: OlderProof, Says: fmt.Sprintf("this proof is older than the earlier one: its journal ends with line %d, and the earlier one's with %d", h.seq(), seq)}
	case here == nil:
		return &Fault{Code: OtherJournal, Says: fmt.Sprintf("the journal begins after line %d, with which the earlier proof ends, so nobody can tell whether it is the same", seq), Hint: "ask for a proof with --after and the earlier file"}
	case !bytes.Equal(here, hash):
		return &Fault{Code: OtherJournal, Says: fmt.Sprintf("line %d of the journal is another one than in the earlier proof: the host's history was written anew", seq)}
	}
	return nil
}

// objects takes the objects of Git, by what they hash to.
func (k *check) objects() bool {
	all, err := unpack(k.p.Objects, k.s.Objects)
	if err != nil {
		return k.step("objects", "", nil, &Fault{Code: ObjectsDiffer, Says: "the objects of Git: " + err.Error()})
	}
	given, refusal := gitsync.NewGiven(all)
	if refusal != nil {
		return k.step("objects", "", nil, &Fault{Code: Collision, Says: refusal.Says})
	}
	k.all, k.given = all, given
	return k.step("objects", "%d commits, folders and files of Git, named by their own bytes", []any{len(all)})
}

// chain judges every commit from the beginning on, by the keys of whoever checks.
func (k *check) chain() {
	tip := k.s.Commit
	if !fullID.MatchString(string(tip)) || !k.given.Has(tip) {
		k.step("chain", "", nil, &Fault{Code: CommitMissing, Says: fmt.Sprintf("commit %s, which the label names, is not in the proof", shortOf(tip)), Hint: "the label or the chain was exchanged"})
		return
	}
	from, known, f := k.beginning()
	if f != nil {
		k.step("chain", "", nil, f)
		return
	}
	aids := gitsync.AidsAlone(k.given, k.s.Chain.Heads)
	seen, refusal, err := k.asked.Trust.SeenBefore(k.given, from, tip, k.asked.Now)
	var all []ring.Verified
	if refusal == nil && err == nil {
		all, refusal, err = k.asked.Trust.RangeWith(k.given, aids, from, tip, k.asked.Now, seen)
	}
	if f := k.refused(from, refusal, err); f != nil {
		k.step("chain", "", nil, f)
		return
	}
	if n := k.s.Chain.Commits; from == k.s.Chain.From && n != len(all) {
		k.step("chain", "", nil, &Fault{Code: ChainGap, Says: fmt.Sprintf("the proof says that %s come after %s, and %d do", wording.Counted(n, "commit"), from.Short(), len(all))})
		return
	}
	found := &ChainFound{From: from, Known: known, Commits: len(all), Signers: map[string]int{}}
	last := ring.Verified{SHA: tip}
	for _, v := range all {
		found.Signers[cmp.Or(v.Signer, "nobody")]++
		if v.Landed {
			found.Landed++
		}
		last = v
	}
	first, refusal, err := k.asked.Trust.Begins(k.given, aids, from, k.asked.Now, seen)
	if !known {
		if f := k.noBeginning(from, refusal, err); f != nil {
			k.step("chain", "", nil, f)
			return
		}
	}
	if len(all) == 0 && refusal == nil && err == nil {
		last = first
	}
	k.out.Chain = found
	k.step("chain", "%s", []any{k.chainSays(found, first, refusal == nil && err == nil)})
	if c, err := k.given.Commit(last); err == nil {
		k.out.Commit = &Commit{SHA: tip, Signer: last.Signer, Fingerprint: last.Fingerprint, Note: c.Note, Subject: c.Subject, ClaimedAt: c.ClaimedAt}
	}
	if !known {
		k.out.LeftOut = append(k.out.LeftOut, fmt.Sprintf("whether your history begins with %s: name a commit that you know with --from", from.Short()))
	}
}

func (k *check) chainSays(c *ChainFound, first ring.Verified, signed bool) string {
	begins := fmt.Sprintf("it begins with %s, which you named", c.From.Short())
	if !c.Known {
		begins = fmt.Sprintf("it begins with %s", c.From.Short())
	}
	if signed && first.Signer != "" {
		begins += ", signed by " + first.Signer
	}
	switch {
	case c.Commits == 0:
		return begins + ", and nothing came after it"
	case c.Landed > 0:
		return fmt.Sprintf("%s after its beginning, good by your keys, %d of them landed by a forge of signed ones; %s", wording.Counted(c.Commits, "commit"), c.Landed, begins)
	}
	return fmt.Sprintf("%s after its beginning, good by your keys; %s", wording.Counted(c.Commits, "commit"), begins)
}

var fullID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// beginning is where the chain has to begin, and whether whoever checks knows that commit.
func (k *check) beginning() (from ring.SHA, known bool, _ *Fault) {
	for _, sha := range k.asked.From {
		if k.given.Has(sha) {
			return sha, true, nil
		}
	}
	from = k.s.Chain.From
	switch {
	case len(k.asked.From) > 0:
		return "", false, &Fault{
			Code: NoBeginning, Says: fmt.Sprintf("commit %s, which you know, is not in the proof: its chain begins with %s", k.asked.From[0].Short(), shortOf(from)),
			Hint: fmt.Sprintf("if you know that one too, check with --from %s; else ask for a proof that was made with --from %s", clip(string(from)), k.asked.From[0]),
		}
	case !fullID.MatchString(string(from)) || !k.given.Has(from):
		return "", false, &Fault{Code: CommitMissing, Says: fmt.Sprintf("commit %s, with which the chain begins, is not in the proof", shortOf(from))}
	}
	return from, false, nil
}

// refused is why the chain does not hold; nil where it does.
func (k *check) refused(from ring.SHA, refusal *ring.Refusal, err error) *Fault {
	if missing, ok := errors.AsType[*gitsync.MissingError](err); ok {
		return k.gap(missing.SHA)
	}
	switch {
	case errors.Is(err, gitsync.ErrMissing):
		return &Fault{Code: ChainGap, Says: "the chain has a gap: " + err.Error()}
	case err != nil:
		return &Fault{Code: ChainGap, Says: err.Error()}
	case refusal == nil:
		return nil
	case refusal.Code == ring.NonFastForward, refusal.Code == ring.Rollback:
		return &Fault{Code: NotOnChain, Says: fmt.Sprintf("commit %s does not come after %s, with which the chain has to begin", k.s.Commit.Short(), from.Short())}
	}
	return trustFault(refusal)
}

// gap names the commit that stands on what is missing.
func (k *check) gap(missing ring.SHA) *Fault {
	for _, o := range k.all {
		if o.Kind == "commit" && bytes.Contains(o.Body, []byte("parent "+string(missing)+"\n")) {
			id, _ := o.ID()
			return &Fault{
				Code: ChainGap, Says: fmt.Sprintf("the chain has a gap: commit %s, on which %s stands, is not in the proof or was changed", missing.Short(), id.Short()),
				Hint: "a commit was left out or changed; ask for the proof again",
			}
		}
	}
	return &Fault{
		Code: ChainGap, Says: fmt.Sprintf("object %s, which the rules ask for, is not in the proof or was changed", missing.Short()),
		Hint: "it was left out, or the host has other rules than you (signers bound to paths): ask for a proof again",
	}
}

// noBeginning is why the chain may not begin with a commit that nobody named.
func (k *check) noBeginning(from ring.SHA, refusal *ring.Refusal, err error) *Fault {
	switch {
	case err != nil:
		return k.refused(from, nil, err)
	case refusal != nil:
		return &Fault{
			Code: NoBeginning, Says: fmt.Sprintf("the chain begins with %s, which nobody vouches for: %s", from.Short(), refusal.Says),
			Hint: "if you know that commit, say so: --from " + string(from),
		}
	}
	return nil
}

// trustFault is a refusal as a fault: it is told to whoever checks, not to the author.
func trustFault(r *ring.Refusal) *Fault {
	f := &Fault{Code: Code(r.Code), Says: r.Says}
	switch r.Code {
	case ring.UnknownSigner:
		f.Hint = "its key is not among the signers that you gave; name those of then, or begin later with --from"
	case ring.KeyExpired, ring.KeyExpiredFirstSeen:
		f.Hint = "if you know when it was there, judge as of then: --at 2026-01-31T12:00:00Z"
	case ring.NeedsMergeTree, ring.HeadUnavailable:
		f.Hint = "begin after it with --from, and a commit that you know"
	}
	return f
}

// files computes the version from the files of the commit, and holds the container to it.
func (k *check) files() {
	if !fullID.MatchString(string(k.s.Commit)) || !k.given.Has(k.s.Commit) {
		return // told
	}
	c, err := k.given.Commit(ring.Verified{SHA: k.s.Commit})
	var found *Computed
	if err == nil {
		found, err = Compute(c, k.s)
	}
	if err != nil {
		f, ok := errors.AsType[*Fault](err)
		if !ok {
			f = &Fault{Code: FilesDiffer, Says: err.Error()}
		}
		k.step("version", "", nil, f)
		return
	}
	var differs *Fault
	if found.Service.Version != k.s.Version {
		differs = versionFault(k.s, found)
	}
	needs := Needs(&found.App, k.s.Service)
	for _, name := range slices.Sorted(maps.Keys(k.s.Pins)) {
		if !slices.Contains(needs, name) {
			k.step("images", "", nil, &Fault{Code: PinDiffers, Says: fmt.Sprintf("the proof has a pin of %s, which is no part of the version: %s", clip(name), clip(k.s.Pins[name].Image))})
		}
	}
	k.out.Version, k.out.Files = found.Service.Version, found.App.Files
	k.step("version", "the files of %s, the pin and the host's values give %s, as the label says", []any{k.s.Commit.Short(), found.Service.Version.Short()}, differs)
	k.step("container", "name, kind, slot and labels are those that the commit's files give", nil, pointers(k.s.made(found))...)
	named, other := k.s.written(found)
	signed := named && other == nil && k.s.signed(c, found)
	pin := k.s.Pins[k.s.Service]
	k.out.Image = &ImageFound{Pin: pin.Image, Digest: ring.Pin{Image: pin.Image}.Digest(), Signed: signed, Written: found.Service.Spec.Image, Verdict: k.s.Verdict}
	if other != nil {
		k.step("image", "", nil, other)
	} else if signed {
		k.step("image", "the commit itself names the digest", nil)
	} else if named {
		k.out.Word = append(k.out.Word, fmt.Sprintf("that the image is %.19s…: the commit takes the name of its image from values of the host, or may do so", ring.Pin{Image: pin.Image}.Digest()))
	} else {
		k.out.Word = append(k.out.Word, fmt.Sprintf("that %s meant %.19s… when it was asked: the commit names no digest", clip(found.Service.Spec.Image), ring.Pin{Image: pin.Image}.Digest()))
	}
	k.values(found)
}

// values names what of the host the version depends on.
func (k *check) values(found *Computed) {
	v := &k.s.Values
	sealed, empty := v.sealedNames()
	if len(sealed) > 0 {
		k.out.Word = append(k.out.Word, "what these values are, which are in no proof: "+strings.Join(sealed, ", "))
	}
	if len(empty) > 0 {
		k.out.Word = append(k.out.Word, "that these values are empty: "+strings.Join(empty, ", "))
	}
	var own []string
	for _, of := range []map[string]string{v.Facts, v.Interpolation} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			own = append(own, name+"="+of[name])
		}
	}
	if len(own) > 0 {
		k.out.Word = append(k.out.Word, "these values of the host, with which the version comes out: "+strings.Join(own, ", "))
	}
	if v.DataRoot != "" {
		k.out.Word = append(k.out.Word, "that the app's data lies below "+v.DataRoot)
	}
	if v.Traffic != nil {
		k.out.Word = append(k.out.Word, "how it publishes services: its settings of fronts are not the default")
	}
	if k.s.Verdict != nil {
		k.out.Word = append(k.out.Word, fmt.Sprintf("that the image was %s when it looked, %s", k.s.Verdict.says(), stamp(k.s.Verdict.At)))
	}
	if found.Service.Reload != nil {
		k.out.LeftOut = append(k.out.LeftOut, "files that are reloaded in place, which are no part of a version: "+strings.Join(found.Service.Reload.Paths, ", "))
	}
}

// versionFault says that the label's version does not come out, and from what it was
// computed.
func versionFault(s *Statement, found *Computed) *Fault {
	return &Fault{
		Code: VersionDiffers,
		Says: fmt.Sprintf("label gitring.version is %s, and the files of %s with image %s and the host's values give %s",
			clip(s.Version.Short()), shortOf(s.Commit), clip(ring.Pin{Image: s.Pins[s.Service].Image}.Digest()), found.Service.Version.Short()),
		Hint: "another commit, image or value of the host than the proof says made the container",
	}
}

func pointers(all []Fault) (out []*Fault) {
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
