package gitsync

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/gitring/gitring/ring"
)

// Repo is a repository on this machine that somebody works in. It is only read.
// It implements Objects and is safe for use by several goroutines.
type Repo struct {
	dir string
	lim Limits

	mu  sync.Mutex // guards every use of git: its storage is not safe for two at once
	git *git.Repository
	sto *storage
}

// OpenRepo opens the repository that dir is in: a clone, any folder inside one,
// a linked work tree, or a bare repository.
func OpenRepo(dir string) (*Repo, error) { return OpenRepoWithin(dir, Limits{}) }

// OpenRepoWithin is OpenRepo with the limits of a configuration, for the files
// that its trees hand out.
func OpenRepoWithin(dir string, lim Limits) (*Repo, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) { // a bare one has no .git to be found by
		repo, err = git.PlainOpen(dir)
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("cannot open repository: neither %s nor a folder above it is one", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open repository of %s: %w", dir, notSHA1(err))
	}
	sto, err := storageOf(repo, filesystem.Options{})
	if err == nil {
		repo, err = git.Open(sto, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open repository of %s: %w", dir, err)
	}
	return &Repo{dir: dir, lim: lim.withDefaults(), git: repo, sto: sto}, nil
}

// Resolve is the commit that rev names: HEAD, a branch, a tag, a full or short
// id, with ~ and ^. A range is the caller's to split.
func (r *Repo) Resolve(rev string) (ring.SHA, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.commitNamed(rev); ok {
		return ring.SHA(h.String()), nil
	}
	h, err := r.git.ResolveRevision(plumbing.Revision(rev))
	if err != nil {
		if why := r.sto.lacking(); why != "" {
			return "", fmt.Errorf("cannot find %q in the repository of %s: %w: %s", rev, r.dir, err, why)
		}
		return "", fmt.Errorf("cannot find %q in the repository of %s: %w", rev, r.dir, err)
	}
	return ring.SHA(h.String()), nil
}

// commitNamed is the commit of a full id, HEAD, branch or tag without a message. The
// library reads a commit to resolve it, and says that one it cannot read is absent.
func (r *Repo) commitNamed(rev string) (plumbing.Hash, bool) {
	h := plumbing.NewHash(rev)
	if !plumbing.IsHash(rev) {
		ref, err := storer.ResolveReference(r.git.Storer, plumbing.ReferenceName(rev))
		for _, rule := range plumbing.RefRevParseRules {
			if err == nil {
				break
			}
			ref, err = storer.ResolveReference(r.git.Storer, plumbing.ReferenceName(fmt.Sprintf(rule, rev)))
		}
		if err != nil {
			return plumbing.ZeroHash, false
		}
		h = ref.Hash()
	}
	_, err := r.git.Storer.EncodedObject(plumbing.CommitObject, h)
	return h, err == nil
}

// Raw is the object as stored; the error wraps ErrMissing when it is absent.
func (r *Repo) Raw(sha ring.SHA) (string, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rawOf(r.git.Storer, sha)
}

// Commit is a commit with its tree. It is not verified: Signer is "". A commit
// that breaks the grammar gives its *ring.Refusal as the error.
func (r *Repo) Commit(sha ring.SHA) (*ring.Commit, error) {
	return commitOf(r, ring.Verified{SHA: sha}, r.lim)
}

// Tree is a tree as a commit with it would have it.
func (r *Repo) Tree(sha ring.SHA) fs.FS { return newTree(r, sha, r.lim) }

func (r *Repo) size(sha ring.SHA) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.git.Storer.EncodedObjectSize(plumbing.NewHash(string(sha)))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return 0, fmt.Errorf("cannot read object %s: %w", sha, ErrMissing)
	}
	return n, err
}

func (r *Repo) spoiled(error) {} // it is its owner's to mend

// commitOf makes the value that is carried from here on.
func commitOf(o treeObjects, v ring.Verified, lim Limits) (*ring.Commit, error) {
	p, refusal, err := readCommit(o, v.SHA)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return nil, refusal
	}
	c := p.commit(v)
	c.Tree = newTree(o, p.tree, lim)
	return &c, nil
}
