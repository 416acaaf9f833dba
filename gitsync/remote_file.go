package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/gitring/gitring/ring"
)

// fileRemote is a repository on this machine, bare or with a .git folder. It is
// read in this process; nothing executes git, and no hook or configuration of it
// is looked at.
//
// go-git's in-process server would do, but walks the whole history of what the
// other side has for every fetch: seconds in a large repository. Here both
// stores are at hand, so only what is new is walked.
type fileRemote struct {
	path   string
	branch plumbing.ReferenceName
	lim    Limits
}

// rest does nothing: a folder needs no connection.
func (r *fileRemote) rest() {}

func (r *fileRemote) look(ctx context.Context) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sto, err := r.open()
	if err != nil {
		return nil, fmt.Errorf("cannot open repository: %w", notSHA1(err))
	}
	v := &view{close: func() { _ = sto.Close() }} // nothing was written
	ref, err := storer.ResolveReference(sto, r.branch)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		v.missing = r.absent(sto)
		return v, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read branch %s: %w", r.branch.Short(), err)
	}
	shallow, err := sto.Shallow()
	if err != nil {
		return nil, fmt.Errorf("cannot read repository: %w", err)
	}
	v.tip, v.shallow = ref.Hash(), len(shallow) > 0
	v.bring = func(ctx context.Context, o order, in *incoming) error { return r.bring(ctx, sto, o, in) }
	return v, nil
}

// open lets go-git find the folder and judge the format, and then reads it with
// a small cache, and with the objects it borrows.
func (r *fileRemote) open() (*storage, error) {
	repo, err := git.PlainOpenWithOptions(r.path, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		return nil, err
	}
	return storageOf(repo, filesystem.Options{KeepDescriptors: true})
}

// notSHA1 says plainly what go-git means by an unknown extension.
func notSHA1(err error) error {
	if strings.Contains(strings.ToLower(err.Error()), "objectformat") {
		return errSHA256
	}
	return err
}

var errSHA256 = errors.New("it is a SHA-256 repository, which cannot be followed yet; use one with SHA-1 objects")

func (r *fileRemote) absent(sto storer.ReferenceStorer) string {
	refs, err := sto.IterReferences()
	if err != nil {
		return fmt.Sprintf("the remote has no branch %s", r.branch.Short())
	}
	defer refs.Close()
	for {
		ref, err := refs.Next()
		if err != nil {
			return "the remote has no branch at all"
		}
		if ref.Type() == plumbing.HashReference {
			return fmt.Sprintf("the remote has no branch %s", r.branch.Short())
		}
	}
}

func (r *fileRemote) bring(ctx context.Context, from objectStorage, o order, in *incoming) error {
	if o.copies {
		done, err := r.copyAll(ctx, in)
		if done || err != nil {
			return err
		}
	}
	list, err := missing(ctx, from, o.here, o.wants, r.lim.Objects)
	if err != nil || len(list) == 0 {
		return err
	}
	// Deltas pay for a clone; a push has a handful of objects. go-git cannot make
	// them of borrowed objects.
	window := uint(0)
	if o.clone && !borrows(r.objects()) {
		window = 10
	}
	return in.addPack(ctx, func(w io.Writer) error { return encode(w, from, list, window) })
}

// missing walks from wants over everything that is not here yet.
func missing(ctx context.Context, from objectStorage, here holder, wants []plumbing.Hash, limit int) ([]plumbing.Hash, error) {
	var list []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	todo := append([]plumbing.Hash(nil), wants...)
	add := func(sha plumbing.Hash) bool {
		if seen[sha] {
			return false
		}
		seen[sha] = true
		return !here.has(sha)
	}
	for len(todo) > 0 {
		sha := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !add(sha) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if list = append(list, sha); len(list) > limit {
			return nil, fmt.Errorf("cannot fetch: more than %d objects: %w", limit, errLimit)
		}
		kind, body, err := rawOf(from, ring.SHA(sha.String()))
		if err != nil {
			return nil, err
		}
		switch kind {
		case "commit":
			l := linksOf(body)
			if !l.tree.IsZero() {
				todo = append(todo, l.tree)
			}
			todo = append(todo, l.parents...)
		case "tag":
			if target, ok := tagged(body); ok {
				todo = append(todo, target)
			}
		case "tree":
			entries, err := entriesOf(body)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				switch {
				case e.mode == modeGitlink:
				case e.mode == modeDir:
					todo = append(todo, e.hash)
				case add(e.hash):
					list = append(list, e.hash)
				}
			}
		}
	}
	return list, nil
}

func tagged(body []byte) (plumbing.Hash, bool) {
	line, _, _ := strings.Cut(string(body[:min(len(body), 64)]), "\n")
	sha, ok := strings.CutPrefix(line, "object ")
	return plumbing.NewHash(sha), ok && plumbing.IsHash(sha)
}

// copyAll takes the object files as they are, as git clone does on one machine:
// to pack a large history again would take seconds and a few hundred megabytes.
// It declines a repository that borrows objects from another one, or whose files
// are more than the limit. Every object is hashed when it is read.
func (r *fileRemote) copyAll(ctx context.Context, in *incoming) (bool, error) {
	files, ok := r.objectFiles()
	if !ok {
		return false, nil
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		to := filepath.Join(in.dir, f.called())
		if err := copyFile(to, filepath.Join(f.root, f.name)); err != nil {
			return false, fmt.Errorf("cannot copy objects: %w", err)
		}
		if filepath.Ext(to) != ".pack" {
			continue
		}
		if err := measureFile(ctx, to, r.lim); err != nil {
			return false, fmt.Errorf("cannot copy pack %s: %w", filepath.Base(to), err)
		}
	}
	return true, nil
}

// objects is the folder of the object files.
func (r *fileRemote) objects() string {
	root := filepath.Join(r.path, ".git", "objects")
	if _, err := os.Stat(root); err == nil {
		return root
	}
	return filepath.Join(r.path, "objects")
}

// borrows reports whether some objects are in another repository.
func borrows(objects string) bool {
	_, err := os.Lstat(filepath.Join(objects, "info", "alternates"))
	return err == nil
}

type objectFile struct{ root, name string }

// called is its name in the incoming folder, which is flat.
func (f objectFile) called() string {
	dir, name := filepath.Split(f.name)
	if dir == "pack/" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + name
}

// objectFiles lists packs and loose objects; index files come last, so that a
// copy cut short is a pack without an index, which nobody reads.
func (r *fileRemote) objectFiles() ([]objectFile, bool) {
	root := r.objects()
	if borrows(root) {
		return nil, false
	}
	var packs, indexes, loose []objectFile
	total := int64(0)
	folders, err := os.ReadDir(root)
	if err != nil {
		return nil, false
	}
	for _, dir := range folders {
		if !dir.IsDir() || len(dir.Name()) != 2 && dir.Name() != "pack" {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, dir.Name()))
		if err != nil {
			return nil, false
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			of := objectFile{root, filepath.Join(dir.Name(), f.Name())}
			switch ending := filepath.Ext(f.Name()); {
			case dir.Name() != "pack" && objectForm.MatchString(of.called()):
				loose = append(loose, of)
			case dir.Name() == "pack" && ending == ".promisor":
				return nil, false // a partial clone
			case dir.Name() != "pack" || ending != ".pack" && ending != ".idx":
				continue
			case !packForm.MatchString(f.Name()):
				return nil, false // a name that only git reads
			case ending == ".pack":
				packs = append(packs, of)
			default:
				indexes = append(indexes, of)
			}
			total += info.Size()
		}
	}
	if total > r.lim.Received || len(loose) > r.lim.Objects {
		return nil, false
	}
	return append(append(loose, packs...), indexes...), true
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
