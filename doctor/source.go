package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

const expiresSoon = 30 * 24 * time.Hour

func trustChecks(s *Seen) []Check {
	var out []Check
	for i := range s.Trust {
		t := &s.Trust[i]
		out = append(out, modeCheck(t), firstUseCheck(t), keyCheck(t, s.Now), fileCheck(t))
	}
	if s.Merges {
		out = append(out, gitCheck(&s.Git))
	}
	return out
}

func modeCheck(t *ring.TrustState) Check {
	c := a("trust", t.Source+": mode")
	if t.Warning != "" {
		return c.is(Warn, "docs/explanation/trust.md says what each mode trusts", "%s", t.Warning)
	}
	return c.is(OK, "", "%s", t.Mode)
}

func firstUseCheck(t *ring.TrustState) Check {
	c := a("trust", t.Source+": beginning")
	switch {
	case t.Trusted == "":
		return c.is(Skip, "", "nothing is trusted yet")
	case t.Began != nil && t.Began.How == ring.ByFirstUse && t.Introduction == "":
		return c.is(Warn, "compare it with your clone, and set it as trust.introduction", "all trust rests on commit %s, the first that was seen", t.Began.SHA.Short())
	}
	return c.is(OK, "", "a person named the commit that it begins with")
}

func keyCheck(t *ring.TrustState, now time.Time) Check {
	c := a("trust", t.Source+": keys")
	counts := 0
	var soon []string
	for _, k := range t.Signers {
		switch {
		case k.Revoked != "" || k.Refused != "" || !k.Until.IsZero() && !k.Until.After(now):
			continue
		case !k.Until.IsZero() && k.Until.Sub(now) < expiresSoon:
			soon = append(soon, k.Principal+" on "+k.Until.UTC().Format(time.DateOnly))
		}
		counts++
	}
	switch {
	case t.Mode == "disabled":
		return c.is(Skip, "", "no key is needed in mode disabled")
	case counts == 0:
		return c.is(Fail, "see docs/reference/signers.md; gitring trust show names each key", "no key is trusted: no new commit can be accepted")
	case len(soon) > 0:
		return c.is(Warn, "docs/how-to/rotate-and-revoke-a-key.md", "%s, and these expire soon: %s", trustedKeys(counts), strings.Join(soon, ", "))
	}
	revoked := "none is revoked"
	if t.Revoked > 0 {
		revoked = fmt.Sprintf("%d revoked", t.Revoked)
	}
	return c.is(OK, "", "%s, %s", trustedKeys(counts), revoked)
}

// trustedKeys is "1 key is trusted".
func trustedKeys(n int) string {
	if n == 1 {
		return "1 key is trusted"
	}
	return fmt.Sprintf("%d keys are trusted", n)
}

func fileCheck(t *ring.TrustState) Check {
	c := a("trust", t.Source+": files")
	for _, f := range t.Files {
		if f.Wrong != "" {
			return c.is(Fail, "its owner is root or the daemon's user, and nobody else may write it", "%s: %s", f.Path, f.Wrong)
		}
	}
	if len(t.Files) == 0 {
		return c.is(Skip, "", "it rests on no file")
	}
	return c.is(OK, "", "%d, and nobody else may write them", len(t.Files))
}

func gitCheck(g *Git) Check {
	c, skipped := a("trust", "git").unless(g.Asked)
	switch {
	case skipped:
		return c
	case g.Old:
		return c.is(Fail, "forge-merge needs git 2.38 or newer", "git is %s", g.Version)
	}
	return c.is(OK, "", "git is %s", g.Version)
}

func sourceChecks(s *Seen) []Check {
	var out []Check
	for _, r := range s.Remotes {
		out = append(out, dnsCheck(&r))
	}
	if s.Status == nil {
		c, _ := a("source", "remote").noDaemon(nil)
		return append(out, c)
	}
	for i := range s.Status.Sources {
		src := &s.Status.Sources[i]
		out = append(out, remoteCheck(src, s.Now), branchCheck(src), forgeCheck(src))
	}
	for i := range s.Forges {
		out = append(out, tokenCheck(&s.Forges[i], s.Now))
	}
	if s.Health.Asked.Asked {
		out = append(out, healthCheck(&s.Health))
	}
	for i := range s.Webhooks {
		out = append(out, webhookCheck(&s.Webhooks[i]))
	}
	return out
}

// webhookCheck doubts a webhook only while none was taken: anybody can send one that is refused.
func webhookCheck(w *Webhook) Check {
	c := a("source", w.Source+": webhook")
	switch {
	case !w.Taken.IsZero():
		return c.is(OK, "", "the last one was taken at %s", w.Taken.UTC().Format("2006-01-02 15:04 UTC"))
	case w.Refused > 0:
		return c.is(Warn, "compare the secret with the forge's: docs/how-to/webhooks.md; gitring polls meanwhile", "none was taken since the daemon began, and %d were refused", w.Refused)
	}
	return c.is(Skip, "", "none came since the daemon began; a test delivery of the forge would")
}

func dnsCheck(r *Remote) Check {
	c := a("source", r.Source+": name")
	switch {
	case r.Host == "":
		return c.is(OK, "", "its repository is on this host")
	case !r.DNS.Asked:
		return c.is(Skip, "", "nobody could ask")
	case r.DNS.Err != "":
		return c.is(Fail, "look at /etc/resolv.conf and the network of this host", "%s cannot be looked up: %s", r.Host, r.DNS.Err)
	}
	return c.is(OK, "", "%s has an address", r.Host)
}

func remoteCheck(src *ring.SourceStatus, now time.Time) Check {
	c := a("source", src.Name+": remote")
	switch stale := src.Condition(ring.ConditionStale); {
	case stale != nil:
		return c.is(Fail, "gitring sync "+src.Name+" tells what is in the way", "%s", stale.Reason)
	case src.Checked.IsZero():
		return c.is(Skip, "", "it has not answered yet")
	default:
		return c.is(OK, "", "it answered %s ago", now.Sub(src.Checked).Round(time.Second))
	}
}

func branchCheck(src *ring.SourceStatus) Check {
	c := a("source", src.Name+": branch")
	switch {
	case src.Checked.IsZero():
		return c.is(Skip, "", "the remote has not answered yet")
	case src.Tip == "":
		return c.is(Fail, "push it, or name another one as branch", "%s is not there", src.Branch)
	}
	return c.is(OK, "", "%s is at %s", src.Branch, src.Tip.Short())
}

func forgeCheck(src *ring.SourceStatus) Check {
	c := a("source", src.Name+": forge")
	if src.Forge != "" {
		return c.is(Fail, "docs/how-to/troubleshooting.md; gitring outbox list shows what waits", "%s", src.Forge)
	}
	return c.is(OK, "", "it took what it was told, or nobody tells it anything")
}

func tokenCheck(f *ForgeToken, now time.Time) Check {
	c, skipped := a("source", f.Source+": token").unless(f.Asked)
	const renew = "make a new one and put it into status.token_file; it is read at every use"
	switch {
	case skipped:
		return c
	case f.Silent:
		return c.is(Skip, "", "this kind of forge does not say")
	case f.Refused != "":
		return c.is(Fail, renew, "%s", f.Refused)
	case !f.Expires.IsZero() && !f.Expires.After(now):
		return c.is(Fail, renew, "it expired on %s", f.Expires.Format(time.DateOnly))
	case !f.Expires.IsZero() && f.Expires.Sub(now) < expiresSoon:
		return c.is(Warn, renew, "it expires on %s", f.Expires.Format(time.DateOnly))
	case f.Limit > 0 && f.Left*10 < f.Limit:
		return c.is(Warn, "who else uses this token? give gitring one of its own", "%d of %d requests are left for now", f.Left, f.Limit)
	case !f.Expires.IsZero():
		return c.is(OK, "", "the forge takes it, until %s", f.Expires.Format(time.DateOnly))
	}
	return c.is(OK, "", "the forge takes it")
}

func healthCheck(h *Health) Check {
	c := a("doors", "listen.url")
	if h.Err != "" {
		return c.is(Warn, "a host may not reach its own public name; try it from elsewhere", "%s/healthz: %s", h.URL, h.Err)
	}
	return c.is(OK, "", "%s/healthz answers", h.URL)
}

func registryChecks(all []Registry) []Check {
	var out []Check
	for _, r := range all {
		c := a("registry", r.Name)
		switch {
		case !r.Asked.Asked:
			c = c.is(Skip, "", "nobody could ask")
		case r.Refused:
			c = c.is(Fail, "docker login for the daemon's user; see docs/how-to/images.md", "it does not give %s: %s", r.Image, r.Err)
		case r.Err != "":
			c = c.is(Warn, "what runs goes on; a new image cannot be pulled meanwhile", "%s", r.Err)
		default:
			c = c.is(OK, "", "%s resolves", r.Image)
		}
		out = append(out, c, loginCheck(&r))
		if r.Pulls.Of > 0 {
			out = append(out, pullsCheck(&r))
		}
	}
	return out
}

// pullsCheck warns while a tenth or less is left: an update of a few services may take that.
func pullsCheck(r *Registry) Check {
	c := a("registry", r.Name+": pulls")
	says := fmt.Sprintf("%d of %d are left", r.Pulls.Left, r.Pulls.Of)
	if r.Pulls.Within > 0 {
		says += fmt.Sprintf(", of those that it gives in %.3g h", r.Pulls.Within.Hours())
	}
	if 10*r.Pulls.Left > r.Pulls.Of {
		return c.is(OK, "", "%s", says)
	}
	return c.is(Warn, "what runs goes on; a registry gives more to who signs in: docs/how-to/images.md", "%s", says)
}

func loginCheck(r *Registry) Check {
	c, skipped := a("registry", r.Name+": credentials").unless(r.Login.Asked)
	switch {
	case skipped:
		return c
	case r.Login.Missing:
		return c.is(Fail, "install it for the daemon, or sign in without it: docs/how-to/images.md", "%s is not on the daemon's PATH", r.Login.Helper)
	case r.Login.Helper != "":
		return c.is(OK, "", "%s has them", r.Login.Helper)
	case r.Login.File:
		return c.is(OK, "", "the docker config file has them")
	}
	return c.is(OK, "", "none: it is asked as anybody")
}
