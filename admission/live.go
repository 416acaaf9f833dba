package admission

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/policy"
)

// LivePolicy is the policy of this host as its files say now: they are read again when
// they change. A mistake keeps the rules that were in effect.
type LivePolicy struct {
	config string // the file of the configuration

	mu    sync.Mutex
	now   config.Policy // guarded by mu: what is in effect
	seen  []byte        // guarded by mu: a print of the files when they were read last
	next  []byte        // guarded by mu: one that the last look met first, and has not read yet
	wrong string        // guarded by mu: why the files cannot be taken, "" when they can
	hash  string        // guarded by mu: of now; "" until it is asked for
}

// NewLivePolicy begins with what the configuration said when it was read. The first look
// reads the files in any case: they may have changed since.
func NewLivePolicy(c *config.Config) *LivePolicy { return &LivePolicy{config: c.File, now: c.Rules} }

// print is one of the configuration's file, of the policy's own, where it has one, and of the
// keys that it names.
func (p *LivePolicy) print(now *config.Policy) ([]byte, error) {
	sum := sha256.New()
	for _, name := range append([]string{p.config, now.File}, now.SignatureFiles...) {
		if name == "" {
			continue
		}
		body, err := config.ReadLimited(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%d %s", len(body), body)
		if info, err := os.Lstat(name); err == nil { // who may write it counts, too
			uid, gid, _ := disk.OwnersOf(info)
			fmt.Fprintf(sum, " %v %d %d", info.Mode(), uid, gid)
		}
	}
	return sum.Sum(nil), nil
}

// Look reads the files again where they changed, once two looks have found them the same:
// an editor may be in the middle of a save, and half a policy can be a whole one to read. It
// reports whether other rules count now, and what is wrong where that was not known before.
func (p *LivePolicy) Look() (changed bool, wrong string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, err := p.print(&p.now)
	if err == nil && bytes.Equal(seen, p.seen) {
		p.next = nil
		return false, ""
	}
	if p.seen != nil && (p.next == nil || !bytes.Equal(seen, p.next)) {
		p.next = append([]byte{}, seen...)
		return false, ""
	}
	before := p.wrong
	var c *config.Config
	if err == nil {
		if c, err = config.Read(p.config); err == nil {
			err = c.Owned()
		}
		if after, _ := p.print(&p.now); p.seen != nil && !bytes.Equal(after, seen) {
			return false, "" // a save began meanwhile
		}
	}
	if err != nil {
		p.wrong = strings.Join(strings.Fields(err.Error()), " ")
		if p.seen = seen; p.wrong == before {
			return false, ""
		}
		return false, p.wrong
	}
	was, is := policy.Rules{}, policy.Rules{}
	p.now.Over(&was)
	c.Rules.Over(&is)
	changed = was.Hash() != is.Hash() || !sameApps(p.now.Apps, c.Rules.Apps) || p.now.OnViolation != c.Rules.OnViolation || before != ""
	p.now, p.wrong, p.seen, p.hash = c.Rules, "", seen, "" // of before the read: what came after is read next
	return changed, ""
}

func sameApps(a, b []config.PolicyApp) bool { return slices.Equal(a, b) }

// Said is the policy in effect, and why its files cannot be taken.
func (p *LivePolicy) Said() (config.Policy, string) {
	if p == nil {
		return config.Policy{}, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.wrong
}

// Hash is a print of the rules in effect.
func (p *LivePolicy) Hash() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hash == "" { // each commit and each status asks for it
		var r policy.Rules
		p.now.Over(&r)
		p.hash = r.Hash()
	}
	return p.hash
}
