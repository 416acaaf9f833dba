package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// keysEvery is how often the files of keys are looked at.
const keysEvery = 5 * time.Second

// keyFiles say what became of the files of keys since they were read. The keys that were read
// count until the daemon ends, whatever became of their files.
type keyFiles struct {
	mu    sync.Mutex // guards what follows
	seen  []string   // what each file looked like; one that did not change is not read
	wrong []string   // what is wrong with each, "" for nothing
}

// keyPath is where the keys of an entry of the configuration lie, and how they are written.
func keyPath(k config.SecretKey) (secrets.KeyKind, string) {
	switch {
	case k.SSHFile != "":
		return secrets.SSHFile, k.SSHFile
	case k.OpenPGPFile != "":
		return secrets.OpenPGPFile, k.OpenPGPFile
	}
	return secrets.AgeFile, k.AgeFile
}

// looksLike changes with a file, its owner and its mode.
func looksLike(path string) string {
	st, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	uid, gid, _ := disk.OwnersOf(st)
	return fmt.Sprint(st.Mode(), st.Size(), st.ModTime().UnixNano(), uid, gid)
}

// look reads the files again that look otherwise than before, and returns what is wrong with
// them now where that is something else.
func (f *keyFiles) look(all []config.SecretKey, used []limitedKeys) (changed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen, f.wrong = make([]string, len(all)), make([]string, len(all))
	}
	for i, k := range all {
		kind, path := keyPath(k)
		now := looksLike(path)
		if now == f.seen[i] {
			continue
		}
		f.seen[i] = now
		if wrong := wrongWith(kind, path, used[i].Keys); wrong != f.wrong[i] {
			f.wrong[i] = wrong
			changed = append(changed, cmp.Or(wrong, path+" holds the keys again that are used"))
		}
	}
	return changed
}

// wrongWith says what keeps a file from being the one that some keys were read from.
func wrongWith(kind secrets.KeyKind, path string, used secrets.Keys) string {
	const kept = "; the keys that were read from it count on, and the daemon does not start again without it"
	now, err := secrets.ReadKeys(kind, path)
	if err != nil {
		return err.Error() + kept
	}
	if !slices.Equal(now.Recipients(), used.Recipients()) {
		return "the key file " + path + " holds other keys than were read from it; those of before count until systemctl reload gitring"
	}
	return ""
}

// conditions are what a source is told of the files whose keys open its files.
func (f *keyFiles) conditions(all []config.SecretKey, source string) (out []ring.Condition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, wrong := range f.wrong {
		if wrong != "" && (len(all[i].Sources) == 0 || slices.Contains(all[i].Sources, source)) {
			out = append(out, ring.Condition{Type: ring.ConditionKeysInvalid, Status: ring.ConditionTrue, Reason: wrong})
		}
	}
	return out
}

// watchKeys looks at the files of keys until ctx ends.
func (d *Daemon) watchKeys(ctx context.Context) error {
	if len(d.cfg.Secrets.Keys) == 0 {
		return nil
	}
	t := time.NewTicker(keysEvery)
	defer t.Stop()
	for {
		for _, says := range d.keyFiles.look(d.cfg.Secrets.Keys, d.secrets.keys) {
			d.log.Warn("looked at a file of keys that changed", "reason", says)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
