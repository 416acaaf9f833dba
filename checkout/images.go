package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// ImageOptions is how far images are updated, and where to.
type ImageOptions struct {
	To, Branch, Message string
	Pin, Push, DryRun   bool
}

// MoveKinds are what To may be, the smallest first.
var MoveKinds = []string{ring.MovePatch, ring.MoveMinor, ring.MoveMajor}

// Registries says what registries have. Each may be asked from several goroutines, and is
// asked for one image as often as it is named.
type Registries interface {
	// Tags are those of the repository of an image.
	Tags(ctx context.Context, image string) ([]string, error)
	// Digest is what an image with a tag means now.
	Digest(ctx context.Context, image string) (string, error)
}

// ImagesUpdated is what "images update -o json" prints.
type ImagesUpdated struct {
	Updates []ImageUpdate `json:"updates"`
	Left    []ImageLeft   `json:"left"`
	Commit  ring.SHA      `json:"commit,omitempty"`
	Branch  string        `json:"branch,omitempty"` // the one pushed to
	Pushed  bool          `json:"pushed"`
	// Already is the newest commit of that branch, where it holds the same change: none is made.
	Already ring.SHA `json:"already,omitempty"`
	Diff    string   `json:"diff,omitempty"`
}

// ImageUpdate is one text that was changed.
type ImageUpdate struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Image string `json:"image"` // its repository
	From  string `json:"from"`  // tag and digest
	To    string `json:"to"`
	Kind  string `json:"kind"` // digest, patch, minor, major
}

// ImageLeft is one that stays as it is, though it may not be the newest.
type ImageLeft struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Image  string `json:"image"`
	Reason string `json:"reason"`
	Failed bool   `json:"failed"` // its registry did not say
}

// ImagesUpdate is one update of the images that a clone names.
type ImagesUpdate struct {
	*Clone
	Up     Upstream
	Result ImagesUpdated
	// Trust is what hosts hold commits to; nil where nothing here says so, and then any passes.
	Trust *gitsync.Trust

	app   string
	ask   ImageOptions
	reg   Registries
	head  ring.SHA
	files map[string]*imageFile // what is read of HEAD, by path
}

// imageFile is a file of HEAD and what becomes of it.
type imageFile struct {
	mode, text string
	edits      []textEdit
}

type textEdit struct {
	at       int
	from, to string
}

// namedImage is one place that names an image: by itself, or by a variable in .env.
type namedImage struct {
	file  string
	place gitsync.ImagePlace
	name  gitsync.ImageName // of it, the variable's value in its place
	moved gitsync.ImageName // what becomes of it
	kind  string
	// variable is of an image whose tag stands in env.
	variable gitsync.TagVariable
	env      string
	err      error // of its registry
}

// NewImagesUpdate is one of an app, or with "" of all that a clone holds.
func NewImagesUpdate(c *Clone, app string, ask ImageOptions, reg Registries) *ImagesUpdate {
	return &ImagesUpdate{Clone: c, app: app, ask: ask, reg: reg, files: map[string]*imageFile{}, Result: ImagesUpdated{Updates: []ImageUpdate{}, Left: []ImageLeft{}}}
}

// CheckReady tells why no commit could be made here, before any registry is asked.
func (u *ImagesUpdate) CheckReady(ctx context.Context) (err error) {
	if u.head, err = u.CommitOf(ctx, "HEAD"); err != nil || u.ask.DryRun {
		return err
	}
	if err := u.Named(ctx); err != nil {
		return err
	}
	if u.Setting(ctx, "gpg.format") == "ssh" && u.Setting(ctx, "user.signingkey") == "" && u.Setting(ctx, "gpg.ssh.defaultKeyCommand") == "" {
		return &exit.Failure{
			Code: exit.Error, Says: "cannot make a signed commit: Git does not know with which key",
			Hint: "git config user.signingkey ~/.ssh/id_ed25519.pub; see docs/how-to/sign-commits.md",
		}
	}
	if u.Branch(ctx) == "" && u.ask.Branch == "" {
		return &exit.Failure{Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit", Hint: "git switch <branch>, or push it to one with --branch"}
	}
	switch {
	case u.ask.Branch != "":
		if _, err := u.Git(ctx, "check-ref-format", "--branch", u.ask.Branch); err != nil {
			return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%q is no name of a branch", u.ask.Branch), Hint: "such as --branch image-updates"}
		}
		up, _ := u.Upstream(ctx)
		u.Up = Upstream{Remote: cmp.Or(up.Remote, "origin"), Ref: "refs/heads/" + u.ask.Branch}
		u.Result.Branch = u.ask.Branch
	case u.ask.Push:
		u.Up, err = u.pushable(ctx)
	}
	return err
}

// FindUpdates reads HEAD, asks the registries, and makes the edits. Nothing is written yet.
func (u *ImagesUpdate) FindUpdates(ctx context.Context) error {
	images, err := u.images(ctx)
	if err != nil {
		return err
	}
	u.askAll(ctx, images)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	variables := map[string][]*namedImage{}
	for _, i := range images {
		switch {
		case isMissing(i.err):
			u.leave(i, i.err.Error()+"; pull_policy: never says that an image is this host's own, and no registry is asked", false)
		case i.err != nil:
			u.leave(i, i.err.Error(), true)
		case i.env != "":
			key := i.env + "\x00" + i.variable.Name
			variables[key] = append(variables[key], i)
		case i.kind != "":
			u.edit(i.file, textEdit{i.place.At, i.place.Text, i.moved.String()})
			u.note(i, i.file, i.place.Line)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(variables)) {
		if err := u.moveVariable(ctx, variables[key], images); err != nil {
			return err
		}
	}
	slices.SortFunc(u.Result.Updates, func(a, b ImageUpdate) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return nil
}

// isMissing reports whether a registry says that everybody lacks an image, such as one that was
// only built on this host: the run is none the worse for it.
func isMissing(err error) bool {
	var m interface{ Missing() bool }
	return errors.As(err, &m) && m.Missing()
}

// images are those that the files of HEAD name, by file and line.
func (u *ImagesUpdate) images(ctx context.Context) ([]*namedImage, error) {
	repo, err := u.Repo()
	if err != nil {
		return nil, err
	}
	below := "."
	if u.app != "" {
		if below, err = u.folder(repo); err != nil {
			return nil, err
		}
	}
	list, err := u.Git(ctx, "ls-tree", "-r", "-z", "--full-tree", string(u.head))
	if err != nil {
		return nil, err
	}
	var compose []string
	for entry := range strings.SplitSeq(list, "\x00") {
		what, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(what)
		ext := path.Ext(name)
		if len(fields) != 3 || fields[1] != "blob" || fields[0] == "120000" || below != "." && !strings.HasPrefix(name, below+"/") {
			continue
		}
		if isEnv := path.Base(name) == ".env"; !isEnv && ext != ".yaml" && ext != ".yml" {
			continue
		} else if !isEnv {
			compose = append(compose, name)
		}
		_, body, err := repo.Raw(ring.SHA(fields[2]))
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		u.files[name] = &imageFile{mode: fields[0], text: string(body)}
	}
	slices.Sort(compose)
	var out []*namedImage
	for _, name := range compose {
		if len(u.files[name].text) > 1<<20 {
			continue // no Compose file that a host reads
		}
		places, _ := gitsync.ImagePlaces(u.files[name].text)
		for _, p := range places {
			if i := u.read(name, p); i != nil {
				out = append(out, i)
			}
		}
	}
	return out, nil
}

// folder is where the app is.
func (u *ImagesUpdate) folder(repo *gitsync.Repo) (string, error) {
	c, err := repo.Commit(u.head)
	if err != nil {
		return "", err
	}
	folders := manifest.Folders(c, manifest.Settings{Source: "source", Path: ".", Host: "images"})
	if at, ok := folders[u.app]; ok {
		return at, nil
	}
	return "", &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("no app %q at %s", u.app, u.head.Short()), Hint: ring.Meant(u.app, slices.Sorted(maps.Keys(folders)))}
}

// read is what a place names; nil where nothing of it can be newer, or why is told.
func (u *ImagesUpdate) read(file string, p gitsync.ImagePlace) *namedImage {
	i := &namedImage{file: file, place: p}
	text := p.Text
	if p.Local {
		return nil // no registry need know it
	}
	if strings.Contains(text, "$") {
		v, ok := gitsync.ParseTagVariable(text)
		if !ok || strings.Contains(v.Repository, "$") {
			u.leave(i, "its variables are more than one in its tag", false)
			return nil
		}
		i.env, i.variable = path.Join(path.Dir(file), ".env"), v
		var value string
		if f := u.files[i.env]; f != nil {
			_, _, value, ok = gitsync.EnvTag(f.text, v.Name)
		}
		if !ok || value == "" {
			u.leave(i, fmt.Sprintf("no line %s=<tag> of %s that could be moved", v.Name, i.env), false)
			return nil
		}
		text = v.Repository + ":" + v.Before + value + v.Behind
	} else if p.At < 0 {
		u.leave(i, "it is written in a form that role images does not move, such as with an anchor", false)
		return nil
	}
	var ok bool
	if i.name, ok = gitsync.ParseImageName(text); !ok {
		u.leave(i, "it is no name of an image", false)
		return nil
	}
	if i.name.Tag == "" {
		if i.name.Digest == "" || u.ask.Pin {
			u.leave(i, "it has no tag", false)
		}
		return nil
	}
	i.moved = i.name
	return i
}

// askAtOnce is how many questions are open at a time.
const askAtOnce = 4

// askAll finds what each image moves to. What one registry does not say is told with that
// image, and keeps no other from moving.
func (u *ImagesUpdate) askAll(ctx context.Context, images []*namedImage) {
	var wg sync.WaitGroup
	free := make(chan struct{}, askAtOnce)
	for _, i := range images {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if i.env == "" {
				i.err = u.move(ctx, i, u.ask.Pin, func(string) bool { return true })
			} else if isVersion(i.name.Tag) { // what it moves to is not for it alone to say
				_, i.err = u.reg.Tags(ctx, i.name.Repository)
			}
		})
	}
	wg.Wait()
}

// isVersion reports whether a tag has a number, by which another can be newer.
func isVersion(tag string) bool { return strings.ContainsAny(tag, "0123456789") }

// move finds the newest tag of the same shape that may be, and the digest where it has one or
// gets one.
func (u *ImagesUpdate) move(ctx context.Context, i *namedImage, pin bool, may func(tag string) bool) error {
	i.moved, i.kind = i.name, ""
	if isVersion(i.name.Tag) {
		tags, err := u.reg.Tags(ctx, i.name.Repository)
		if err != nil {
			return err
		}
		i.moved.Tag, i.kind = newest(i.name.Tag, u.ask.To, tags, may)
	}
	if i.name.Digest == "" && !pin {
		return nil
	}
	digest, err := u.reg.Digest(ctx, gitsync.ImageName{Repository: i.name.Repository, Tag: i.moved.Tag}.String())
	if err != nil {
		i.moved, i.kind = i.name, "" // a new tag with an old digest would be neither
		return err
	}
	if i.moved.Digest = digest; digest != i.name.Digest {
		i.kind = cmp.Or(i.kind, ring.MoveDigest)
	}
	return nil
}

// newest is the newest of tags that is a move up of at most a kind, and that may be; the tag
// itself, and "", where none is.
func newest(tag, most string, tags []string, may func(string) bool) (best, kind string) {
	best = tag
	for _, t := range tags {
		k, up, ok := ring.TagMove(tag, t)
		if !ok || !up || slices.Index(MoveKinds, k) > slices.Index(MoveKinds, most) || !may(t) {
			continue
		}
		if _, newer, ok := ring.TagMove(best, t); ok && newer {
			best, kind = t, k
		}
	}
	return best, kind
}

// moveVariable moves a tag in .env to the newest that all images have which it is part of.
func (u *ImagesUpdate) moveVariable(ctx context.Context, of, all []*namedImage) error {
	first := of[0]
	if slices.ContainsFunc(all, func(i *namedImage) bool {
		return i.err != nil && i.env == first.env && i.variable.Name == first.variable.Name
	}) {
		u.leave(first, fmt.Sprintf("another image that %s is part of could not be asked for", first.variable.Name), false)
		return nil
	}
	v := first.variable
	alone := v.Behind == "" && !slices.ContainsFunc(of, func(i *namedImage) bool {
		return i.variable.Repository != v.Repository || i.variable.Before != v.Before
	})
	f := u.files[first.env]
	line, at, value, _ := gitsync.EnvTag(f.text, v.Name)
	if _, pinned, is := strings.Cut(value, "@"); is && (!alone || pinned == "") {
		u.leave(first, fmt.Sprintf("the digest in %s is of one image, and several use it", v.Name), false)
		return nil
	}
	everywhere := func(tag string) bool {
		to, fits := strings.CutPrefix(tag, v.Before)
		if to, fits = cutSuffix(to, v.Behind, fits); !fits {
			return false
		}
		return !slices.ContainsFunc(of, func(i *namedImage) bool {
			mine := i.variable.Before + to + i.variable.Behind
			tags, err := u.reg.Tags(ctx, i.name.Repository)
			kind, up, ok := ring.TagMove(i.name.Tag, mine)
			return err != nil || !slices.Contains(tags, mine) || !ok || !up || slices.Index(MoveKinds, kind) > slices.Index(MoveKinds, u.ask.To)
		})
	}
	if err := u.move(ctx, first, u.ask.Pin && alone, everywhere); err != nil {
		u.leave(first, err.Error(), true)
		return nil
	}
	if first.kind == "" {
		return nil
	}
	to := strings.TrimSuffix(strings.TrimPrefix(first.moved.Tag, v.Before), v.Behind)
	if first.moved.Digest != "" {
		to += "@" + first.moved.Digest
	}
	one := textEdit{at, value, to}
	why, err := u.movesOnlyTags(ctx, first.env, one)
	if err != nil {
		return err
	}
	if why != "" {
		u.leave(first, first.env+" "+why, false)
		return nil
	}
	u.edit(first.env, one)
	u.note(first, first.env, line)
	return nil
}

func cutSuffix(s, suffix string, still bool) (string, bool) {
	rest, ok := strings.CutSuffix(s, suffix)
	return rest, ok && still && rest != ""
}

// movesOnlyTags is why a line of .env is of more than images.
func (u *ImagesUpdate) movesOnlyTags(ctx context.Context, env string, e textEdit) (string, error) {
	repo, err := u.Repo()
	if err != nil {
		return "", err
	}
	tree, err := u.Git(ctx, "rev-parse", "--verify", string(u.head)+"^{tree}")
	if err != nil {
		return "", err
	}
	was := u.files[env].text
	return gitsync.VariablesMove(repo, ring.SHA(tree), env, was, was[:e.at]+e.to+was[e.at+len(e.from):])
}

func (u *ImagesUpdate) leave(i *namedImage, reason string, failed bool) {
	u.Result.Left = append(u.Result.Left, ImageLeft{File: i.file, Line: i.place.Line, Image: i.place.Text, Reason: reason, Failed: failed})
}

func (u *ImagesUpdate) note(i *namedImage, file string, line int) {
	version := func(n gitsync.ImageName) string {
		return strings.TrimPrefix(strings.TrimPrefix(n.String(), n.Repository), ":")
	}
	u.Result.Updates = append(u.Result.Updates, ImageUpdate{File: file, Line: line, Image: i.name.Repository, From: version(i.name), To: version(i.moved), Kind: i.kind})
}

func (u *ImagesUpdate) edit(file string, e textEdit) {
	f := u.files[file]
	f.edits = append(f.edits, e)
}

// edited is the text with its edits, and every other byte as it was.
func (f *imageFile) edited() string {
	edits := slices.Clone(f.edits)
	slices.SortFunc(edits, func(a, b textEdit) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	done := 0
	for _, e := range edits {
		out.WriteString(f.text[done:e.at])
		out.WriteString(e.to)
		done = e.at + len(e.from)
	}
	out.WriteString(f.text[done:])
	return out.String()
}

// changed are the files that get edits, by name.
func (u *ImagesUpdate) changed() (out []string) {
	for name, f := range u.files {
		if len(f.edits) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// PrepareTree is the tree with the edits, put together in an index of its own, and what
// differs in it; "" where nothing does.
func (u *ImagesUpdate) PrepareTree(ctx context.Context) (tree string, err error) {
	names := u.changed()
	if len(names) == 0 {
		return "", nil
	}
	if err := u.clean(ctx, names); err != nil {
		return "", err
	}
	index, done, err := ownIndex()
	if err != nil {
		return "", err
	}
	defer done()
	if _, err := u.gitWith(ctx, nil, index, "read-tree", string(u.head)); err != nil {
		return "", err
	}
	for _, name := range names {
		f := u.files[name]
		blob, err := u.gitWith(ctx, strings.NewReader(f.edited()), nil, "hash-object", "-w", "--no-filters", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := u.gitWith(ctx, strings.NewReader(f.mode+" "+blob+"\t"+name+"\x00"), index, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	if tree, err = u.gitWith(ctx, nil, index, "write-tree"); err != nil {
		return "", err
	}
	u.Result.Diff, err = u.Git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--patch", string(u.head), tree)
	return tree, err
}

// clean refuses where a file that would change has changes that are not committed.
func (u *ImagesUpdate) clean(ctx context.Context, names []string) error {
	if u.ask.DryRun || u.ask.Branch != "" {
		return nil // nothing here changes
	}
	args := []string{"status", "--porcelain", "--untracked-files=no", "--"}
	for _, name := range names {
		args = append(args, ":(top,literal)"+name)
	}
	said, err := u.Git(ctx, args...)
	if err != nil || said == "" {
		return err
	}
	first, _, _ := strings.Cut(said, "\n")
	return &exit.Failure{
		Code: exit.Conflict, Says: fmt.Sprintf("%s has changes that are not committed", first[min(3, len(first)):]),
		Hint: "commit them, or put them aside with git stash, and try again",
	}
}

// MakeCommit makes the commit, pushes it where that is asked for, and only then moves the
// branch here. With a branch of its own, nothing here moves.
func (u *ImagesUpdate) MakeCommit(ctx context.Context, tree string) error {
	if u.ask.Branch != "" {
		tip, err := u.holdsAlready(ctx, tree)
		if u.Result.Already = tip; err != nil || tip != "" {
			return err
		}
	}
	sha, err := u.WriteCommit(ctx, u.commitOf(tree))
	if err != nil {
		return err
	}
	if err := u.held(ctx, sha); err != nil {
		return err
	}
	if u.ask.Branch != "" {
		err := u.push(ctx, sha, u.Up)
		var said *exit.Failure
		if errors.As(err, &said) {
			said.Hint = fmt.Sprintf("nothing was left behind; where %s has commits of its own, merge or delete it first", u.ask.Branch)
		}
		if err != nil {
			return err
		}
	} else {
		if err := u.clear(ctx, u.head, sha); err != nil {
			return err
		}
		if err := u.landed(ctx, u.head, sha, u.Up, u.ask.Push, "gitring images update"); err != nil {
			return err
		}
	}
	u.Result.Commit, u.Result.Pushed = sha, u.ask.Push || u.ask.Branch != ""
	return nil
}

// held refuses a commit that hosts would refuse, such as a move further than role images goes.
func (u *ImagesUpdate) held(ctx context.Context, sha ring.SHA) error {
	if u.Trust == nil {
		return nil
	}
	awaiting, err := u.passes(ctx, u.Trust, u.head, sha)
	if awaiting != nil {
		u.Notice("%s", awaiting.Says)
	}
	return err
}

// holdsAlready is the newest commit of the branch to push to, where each file that moves stands in
// it as it stands in tree; "" where one does not, and where there is no such branch. The next
// run of a bot finds the branch of the last one, which nobody has merged yet.
func (u *ImagesUpdate) holdsAlready(ctx context.Context, tree string) (ring.SHA, error) {
	out, err := u.Git(ctx, "ls-remote", u.Up.Remote, u.Up.Ref)
	tip, _, _ := strings.Cut(out, "\t")
	if err != nil || tip == "" {
		return "", nil // what is wrong with the remote, the push says
	}
	if _, err := u.Git(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", u.Up.Remote, u.Up.Ref); err != nil {
		return "", fmt.Errorf("cannot fetch %s of %s: %w", u.Up.Ref, u.Up.Remote, err)
	}
	args := []string{"--literal-pathspecs", "diff-tree", "-r", "--name-only", tip, tree, "--"}
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		if len(u.files[name].edits) > 0 {
			args = append(args, name)
		}
	}
	differ, err := u.Git(ctx, args...)
	if err != nil || differ != "" {
		return "", err
	}
	return ring.SHA(tip), nil
}

// maxSubject is how long the first line of a commit may be.
const maxSubject = 60

// commitOf says what moves.
func (u *ImagesUpdate) commitOf(tree string) NewCommit {
	n := NewCommit{Tree: tree, Parent: u.head, Body: []string{u.ask.Message}}
	var lines []string
	for _, x := range u.Result.Updates {
		lines = append(lines, fmt.Sprintf("%s: %s %s -> %s", x.File, x.Image, shortVersion(x.From), shortVersion(x.To)))
	}
	n.Body = append(n.Body, strings.Join(lines, "\n"))
	n.Subject = "Update " + wording.Counted(len(lines), "image")
	if len(lines) == 1 {
		x := u.Result.Updates[0]
		if one := fmt.Sprintf("Update %s to %s", x.Image, shortVersion(x.To)); len(one) <= maxSubject {
			n.Subject = one
		}
	}
	return n
}

// shortVersion is a tag and the first digits of a digest.
func shortVersion(v string) string {
	tag, digest, pinned := strings.Cut(v, "@")
	if !pinned {
		return tag
	}
	return tag + "@" + digest[:min(len(digest), len("sha256:")+12)]
}

// Failed is how many images could not be asked for.
func (u *ImagesUpdate) Failed() (n int) {
	for _, l := range u.Result.Left {
		if l.Failed {
			n++
		}
	}
	return n
}
