package gitsync

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// see finds out where the branch is and brings its commits here.
func (w *watch) see(ctx context.Context, now time.Time) error {
	w.reached = false
	if err := w.read(ctx); err != nil {
		return err
	}
	limit := w.cfg.Limits.Update
	if !w.present && (w.mirror.damage() != nil || w.mirror.tip() == "") {
		limit = w.cfg.Limits.Clone
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &errTook{limit})
	defer cancel()
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	w.reached = true
	w.found(v)
	if v.tip.IsZero() || w.isShallow() {
		return nil
	}
	if err := w.bring(ctx, v); err != nil {
		return err
	}
	return w.load(ctx, now)
}

func (w *watch) isShallow() bool { return w.refusal != nil && w.refusal.Code == ring.Shallow }

// world wraps an error of the outside. The address in it has no user name and
// no password.
func (w *watch) world(verb string, err error) error {
	return fmt.Errorf("cannot %s %s: %w", verb, w.address, said{bare(err)})
}

// bare takes the URL out of an error: it is named once.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// found takes over what the remote said. A refusal belongs to one tip.
func (w *watch) found(v *view) {
	tip := ring.SHA("")
	if !v.tip.IsZero() {
		tip = ring.SHA(v.tip.String())
	}
	if tip != w.tip || w.mirror.damage() != nil {
		w.present, w.settled = false, false
	}
	if tip != w.tip || !v.shallow && w.isShallow() {
		w.refusal, w.settled = nil, false
	}
	w.tip, w.absent = tip, v.missing
	if tip != "" && v.shallow {
		w.refusal = shallow(tip)
	}
	w.settled = w.settled || tip != "" && tip == w.anchor.SHA && w.refusal == nil
}

func shallow(tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Shallow, Commit: tip,
		Says: "the remote repository is shallow, so the history up to " + tip.Short() + " cannot be checked",
		Hint: "run git fetch --unshallow in the remote repository, or follow the one it was cloned from",
	}
}

// bring makes the mirror hold the tip and, if it can be had, the anchor.
func (w *watch) bring(ctx context.Context, v *view) error {
	if w.present {
		return nil
	}
	if !w.mirror.has(v.tip) && w.mirror.damage() == nil {
		began, clone := time.Now(), w.mirror.tip() == ""
		if err := v.fetch(ctx, w.mirror, v.tip); err != nil {
			return w.world("fetch from", err)
		}
		if clone {
			defer debug.FreeOSMemory() // it needed far more than the daemon after it
		}
		w.log.InfoContext(ctx, "fetched", "source", w.cfg.Name, "commit", w.tip, "took", time.Since(began).Round(time.Millisecond))
	}
	if err := w.mirror.damage(); err != nil {
		v.close() // a server may take one connection at a time
		if err := w.rebuild(ctx, err); err != nil {
			return err
		}
	}
	if !w.mirror.has(plumbing.NewHash(string(w.tip))) {
		return w.world("fetch from", fmt.Errorf("it did not send %s, which its branch points at", w.tip))
	}
	if w.mirror.tip() != w.tip {
		if err := w.mirror.setTip(plumbing.NewHash(string(w.tip))); err != nil {
			return err
		}
	}
	w.present = true
	return w.bringAnchor(ctx)
}

// bringAnchor asks for the anchor by its name when the branch no longer leads to
// it and the mirror was lost. Whether it came is for the verification to see.
func (w *watch) bringAnchor(ctx context.Context) error {
	if w.anchor.SHA == "" || w.mirror.has(plumbing.NewHash(string(w.anchor.SHA))) {
		return nil
	}
	w.present = false // asked for again at the next look
	return w.bringNamed(ctx, []ring.SHA{w.anchor.SHA})
}

// bringNamed asks the remote for commits by their names. Which of them came is
// for the caller to see.
func (w *watch) bringNamed(ctx context.Context, shas []ring.SHA) error {
	for _, sha := range shas {
		if !idForm.MatchString(string(sha)) {
			continue
		}
		if err := w.bringOne(ctx, sha); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) bringOne(ctx context.Context, sha ring.SHA) error {
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	if v.bring == nil {
		return nil
	}
	err = v.fetch(ctx, w.mirror, plumbing.NewHash(string(sha)))
	if ctx.Err() != nil {
		return w.world("fetch from", ctx.Err())
	}
	if err != nil {
		w.log.InfoContext(ctx, "remote did not send a commit that was asked for by name", "source", w.cfg.Name, "commit", sha, "reason", err.Error())
	}
	return nil
}

// rebuild clones beside the damaged mirror and swaps. The branch may have moved
// meanwhile; the tip is then the new one.
func (w *watch) rebuild(ctx context.Context, why error) error {
	w.log.WarnContext(ctx, "began to rebuild the mirror", "source", w.cfg.Name, "reason", why.Error())
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	if v.bring == nil || v.tip.IsZero() {
		return w.world("fetch from", errors.New("the branch went away meanwhile"))
	}
	next, err := w.mirror.beside()
	if err != nil {
		return err
	}
	next.careful = true
	if err := v.fetch(ctx, next, v.tip); err != nil {
		return w.world("fetch from", err)
	}
	if err := next.setTip(v.tip); err != nil {
		return err
	}
	defer debug.FreeOSMemory()
	if err := w.mirror.swap(next); err != nil {
		return err
	}
	if tip := ring.SHA(v.tip.String()); tip != w.tip {
		w.tip, w.refusal, w.settled = tip, nil, tip == w.anchor.SHA
	}
	w.present = false // the anchor may have been only in the old one
	return nil
}

// tidy keeps the number of packs bounded; every fetch brings one. It comes after
// the report: no commit waits for it, and none for its failure.
func (w *watch) tidy(ctx context.Context) {
	names, err := w.mirror.packNames()
	if errors.Is(err, os.ErrNotExist) || err == nil && len(names) < w.cfg.Limits.Packs || w.mirror.damage() != nil {
		return
	}
	if err == nil {
		err = w.mirror.repack(ctx)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.Clone)
		defer cancel()
		err = w.rebuild(ctx, err)
	}
	w.mirror.rest()
	if err != nil {
		w.log.WarnContext(ctx, "could not pack the mirror", "source", w.cfg.Name, "reason", err.Error())
		return
	}
	w.log.InfoContext(ctx, "packed the mirror", "source", w.cfg.Name)
}
