package gitsync

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Every refusal of trust is made here, so that the sentences stay one voice and
// each says what to do next.

func badGrammar(sha ring.SHA, why error) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Grammar, Commit: sha,
		Says: fmt.Sprintf("commit %s is not in the form gitring reads: %v", sha.Short(), why),
		Hint: "look at it with git cat-file commit " + string(sha) + " and make it again with git commit; what comes after it has to be rebased",
	}
}

func hashMismatch(sha ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.HashMismatch, Commit: sha,
		Says: fmt.Sprintf("object %s does not hash to its name", sha.Short()),
		Hint: "the local mirror or the server is damaged: the mirror is fetched anew; if it stays, run git fsck on the server",
	}
}

func sha1Collision(sha ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Sha1Collision, Commit: sha,
		Says: fmt.Sprintf("object %s is made to collide in SHA-1", sha.Short()),
		Hint: "somebody prepared this object for an attack: find out who pushed it",
	}
}

func notACommit(sha ring.SHA, kind string) *ring.Refusal {
	r := &ring.Refusal{
		Code: ring.NotACommit, Commit: sha,
		Says: fmt.Sprintf("%s is a %s, not a commit", sha.Short(), kind),
		Hint: "push a commit to the branch",
	}
	if kind == "tag" {
		r.Hint = "name the commit the tag points at: git rev-parse " + string(sha) + "^{commit}"
	}
	return r
}

func unsigned(sha ring.SHA, inBody bool) *ring.Refusal {
	r := &ring.Refusal{
		Code: ring.Unsigned, Commit: sha,
		Says: fmt.Sprintf("commit %s is not signed", sha.Short()),
		Hint: "git commit --amend -S --no-edit for the last commit, git rebase --force-rebase -S <its parent> for earlier ones, then git push --force-with-lease; or answer for it with gitring vouch",
	}
	if inBody {
		r.Says += "; the signature in its message does not count"
	}
	return r
}

// namesNoPull is the refusal of what may be a forge's squash whose message does not say of
// which pull request: by that its signed head would be found.
func namesNoPull(r *ring.Refusal) *ring.Refusal {
	named := *r
	named.Hint = "if a forge squashed it, its message has to name the pull request, as in the subject Title (#12), or its signed head, " +
		"in a line " + headTrailer + ": <commit>; else sign it: " + r.Hint
	return &named
}

// unknownSigner is told how the key becomes known: what to add to which file.
func unknownSigner(p *parsed, key, what, file string) *ring.Refusal {
	r := &ring.Refusal{
		Code: ring.UnknownSigner, Commit: p.sha,
		Says: fmt.Sprintf("commit %s is signed by key %s, which no trusted signer has", p.sha.Short(), key),
		Hint: "sign it with a trusted key, add " + what + " to " + file + ", or answer for it with gitring vouch",
	}
	if file == "" {
		r.Hint = "sign it with a trusted key, or name a file of signers that has it in the source's trust: allowed_signers for SSH, openpgp_keys for OpenPGP"
	}
	if p.landedByForge() {
		r.Hint = "the forge made this commit: merge and sign it yourself, answer for it with a signed commit (gitring vouch), or let the forge land signed content (trust mode forge-merge)"
	}
	return r
}

// mayBeRevokedByOthers is of a key with a designated revoker. That one's
// revocations are not read, so the key might be revoked already.
func mayBeRevokedByOthers(sha ring.SHA, key, revoker string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Revoker, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by OpenPGP key %s, which lets key %s revoke it, and such revocations are not read", sha.Short(), key, revoker),
		Hint: "make a key without a designated revoker, have it trusted in place of this one, and sign again",
	}
}

// unknownX509 is of S/MIME and of keyless signing (Sigstore's gitsign): whoever
// made such a signature is known by an authority, and gitring trusts none.
func unknownX509(sha ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.UnknownSigner, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed with an X.509 certificate, and gitring knows only OpenPGP and SSH keys", sha.Short()),
		Hint: "sign it with a trusted key (git commit --amend -S --no-edit, with gpg.format ssh or openpgp), or answer for it with gitring vouch",
	}
}

func badSignature(sha ring.SHA, format string, args ...any) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.BadSignature, Commit: sha,
		Says: fmt.Sprintf("the signature of commit %s is not good: ", sha.Short()) + fmt.Sprintf(format, args...),
		Hint: "sign it again with git commit --amend -S --no-edit and check with git verify-commit " + string(sha),
	}
}

func badNamespace(sha ring.SHA, format string, args ...any) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Namespace, Commit: sha,
		Says: fmt.Sprintf("the signature of commit %s is not for git: ", sha.Short()) + fmt.Sprintf(format, args...),
		Hint: "sign with git commit -S (SSH namespace git), and let the signer's line in allowed_signers permit namespaces=\"git\"",
	}
}

func weakKey(sha ring.SHA, format string, args ...any) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.WeakKey, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed too weakly: ", sha.Short()) + fmt.Sprintf(format, args...),
		Hint: "make a new key with ssh-keygen -t ed25519, have it trusted, and sign again",
	}
}

func noUserPresence(sha ring.SHA, key string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NoUserPresence, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by security key %s without a touch", sha.Short(), key),
		Hint: "make the key without no-touch-required and sign again",
	}
}

func certificate(sha ring.SHA, format string, args ...any) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Certificate, Commit: sha,
		Says: fmt.Sprintf("the certificate that commit %s is signed with does not count: ", sha.Short()) + fmt.Sprintf(format, args...),
		Hint: "have the authority make a user certificate for now and for a name of its line: ssh-keygen -s <authority> -I <id> -n <e-mail> -V +52w <key>.pub; then sign again",
	}
}

func revokedKey(sha ring.SHA, key, where string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Revoked, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by key %s, which is revoked (%s)", sha.Short(), key, where),
		Hint: "a revoked key counts for nothing that is not trusted yet, whatever its date: sign again with a key that is good",
	}
}

func futureDated(sha ring.SHA, what string, at, seen time.Time) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.FutureDated, Commit: sha,
		Says: fmt.Sprintf("commit %s %s %s, after it was first seen here at %s", sha.Short(), what, stamp(at), stamp(seen)),
		Hint: "correct the clock of the machine that made it, or of this host, and make the commit again with git commit --amend -S --date=now --no-edit; where this host's clock was wrong that day, gitring trust accept of the branch's tip lets a person on the host answer for it",
	}
}

func keyExpired(sha ring.SHA, key string, expired, claimed time.Time) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.KeyExpired, Commit: sha,
		Says: fmt.Sprintf("key %s expired at %s, before commit %s was made at %s", key, stamp(expired), sha.Short(), stamp(claimed)),
		Hint: "renew the key or sign with another one; trust files need the new date or key",
	}
}

func keyExpiredFirstSeen(sha ring.SHA, key string, expired, seen time.Time, grace time.Duration) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.KeyExpiredFirstSeen, Commit: sha,
		Says: fmt.Sprintf("key %s expired at %s; commit %s claims an earlier time but was first seen here at %s, past the grace of %s", key, stamp(expired), sha.Short(), stamp(seen), grace),
		Hint: "sign again with a key that is valid now; after a long downtime gitring trust accept of the branch's tip lets a person on the host answer for it",
	}
}

func keyNotYetValid(sha ring.SHA, key string, from, claimed time.Time) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.KeyNotYetValid, Commit: sha,
		Says: fmt.Sprintf("key %s is valid from %s; commit %s is of %s", key, stamp(from), sha.Short(), stamp(claimed)),
		Hint: "sign with a key that is valid now, or make the commit again when this one is",
	}
}

func rollback(anchor, tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Rollback, Commit: tip,
		Says: fmt.Sprintf("the branch went back to %s, which is older than %s, the last trusted commit", tip.Short(), anchor.Short()),
		Hint: "push a signed revert on top of " + anchor.Short() + " instead (gitring rollback makes one); a person on the host may use gitring trust accept " + string(tip) + " --reason '…'",
	}
}

func belowFloor(floor, tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Rollback, Commit: tip,
		Says: fmt.Sprintf("commit %s does not descend from %s, the min_commit of the configuration", tip.Short(), floor.Short()),
		Hint: "push what descends from " + floor.Short() + ", or correct min_commit",
	}
}

func nonFastForward(anchor, tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NonFastForward, Commit: tip,
		Says: fmt.Sprintf("commit %s does not descend from %s, the last trusted commit", tip.Short(), anchor.Short()),
		Hint: "somebody force-pushed: push a branch that has " + anchor.Short() + " in its history; a person on the host may use gitring trust accept " + string(tip) + " --reason '…'",
	}
}

func rangeTooLarge(tip ring.SHA, max int) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.RangeTooLarge, Commit: tip,
		Says: fmt.Sprintf("more than %d commits lie between the last trusted commit and %s", max, tip.Short()),
		Hint: "look them over and use gitring trust accept " + string(tip) + " --reason '…', or raise trust.max_range",
	}
}

// rangeUnbounded is rangeTooLarge where the walk was given up before it met the
// last trusted commit.
func rangeUnbounded(tip ring.SHA, max int) *ring.Refusal {
	r := rangeTooLarge(tip, max)
	r.Says += ", or it does not descend from that one"
	return r
}

// tooLargeToJudge is of the head of a pull request.
func tooLargeToJudge(head ring.SHA, why error) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.TooLarge, Commit: head,
		Says: fmt.Sprintf("pull request at %s is too large to be judged before it lands: %v", head.Short(), why),
		Hint: "make it smaller, or go without its plan: once landed, the limits of the branch count",
	}
}

// tooMuchEffort is of commits that take too long to verify, however few they are.
func tooMuchEffort(tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.RangeTooLarge, Commit: tip,
		Says: fmt.Sprintf("verifying what lies between the last trusted commit and %s takes too long: its commits name others far away, again and again", tip.Short()),
		Hint: "look them over and use gitring trust accept " + string(tip) + " --reason '…', or raise trust.max_range, which raises this too",
	}
}

func anchorUnavailable(sha ring.SHA, what string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.AnchorUnavailable, Commit: sha,
		Says: fmt.Sprintf("%s %s is not in the repository", what, sha.Short()),
		Hint: "check url and branch, and restore the history on the server; gitring never falls back to first use",
	}
}

func targetMissing(tip ring.SHA, source string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.TargetMissing, Commit: tip,
		Says: fmt.Sprintf("commit %s does not say which source it is for", tip.Short()),
		Hint: "git commit --amend -S --no-edit --trailer \"Gitring-Target: " + source + "\"",
	}
}

func targetMismatch(tip ring.SHA, source, named string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.TargetMismatch, Commit: tip,
		Says: fmt.Sprintf("commit %s is for source %q, this is %q", tip.Short(), clip(named), source),
		Hint: "push it to the branch of that source, or make a commit with the trailer Gitring-Target: " + source,
	}
}

func branchNotAllowed(sha ring.SHA, id identity, source, branch string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.BranchNotAllowed, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by %s, who may not sign for branch %s of source %s", sha.Short(), id.principal, branch, source),
		Hint: "have somebody sign it whose binding has that branch, or add the branch to the binding in the source's trust.signers",
	}
}

// notBound is of an OpenPGP key where others have bindings.
func notBound(sha ring.SHA, id identity) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.RoleNotAllowed, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by OpenPGP key %s (%s), which has no binding, and so no rights where others have one", sha.Short(), id.fingerprint, id.principal),
		Hint: "add signer: " + id.fingerprint + " with its roles to the source's trust.signers, or have somebody sign it who has the right",
	}
}

func roleNotAllowed(sha ring.SHA, id identity, r Role) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.RoleNotAllowed, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by %s, who does not have the role %s here", sha.Short(), id.principal, r),
		Hint: "have somebody sign it who has the role, or add it to the binding in the source's trust.signers",
	}
}

func pathNotAllowed(sha ring.SHA, id identity, file string, grants []Binding) *ring.Refusal {
	var paths []string
	for _, b := range grants {
		paths = append(paths, b.Paths...)
	}
	return &ring.Refusal{
		Code: ring.PathNotAllowed, Commit: sha, File: file,
		Says: fmt.Sprintf("commit %s changes %s, and its signer %s may change only %s", sha.Short(), file, id.principal, strings.Join(paths, ", ")),
		Hint: "split the change, have somebody sign it who may change that path, or add the path to the binding in the source's trust.signers",
	}
}

func notImagesOnly(sha ring.SHA, id identity, file, why string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotImagesOnly, Commit: sha, File: file,
		Says: fmt.Sprintf("commit %s is signed by %s, who may only move tags and digests of images: %s %s", sha.Short(), id.principal, file, why),
		Hint: "have a person sign the change, or vouch for it: gitring vouch",
	}
}

// notSignedContent: vouching cures it, and so does landing the same content anew.
func notSignedContent(sha, head ring.SHA, why string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotSignedContent, Commit: sha,
		Says: fmt.Sprintf("commit %s, landed by the forge, holds more or less than what was signed at %s: %s", sha.Short(), head.Short(), why),
		Hint: "git diff " + head.Short() + " " + sha.Short() + " shows it; sign the branch and land it again, or let somebody answer for it with gitring vouch",
	}
}

// unsignedHead is a landing whose head is not trusted itself. Of landings upon
// landings only the outermost and the last are told: there may be a dozen.
func unsignedHead(sha, head ring.SHA, why *ring.Refusal) *ring.Refusal {
	const there = ", and there: "
	says := why.Says
	if i := strings.LastIndex(says, there); i >= 0 {
		says = says[i+len(there):]
	}
	r := *why
	r.Says = fmt.Sprintf("commit %s was landed by the forge from %s%s%s", sha.Short(), head.Short(), there, says)
	r.Hint = "sign every commit of the branch and land it again, or let somebody answer for it with gitring vouch"
	return &r
}

// howToBegin is the way to trust in a history that nobody signed: nothing can be vouched for
// before.
const howToBegin = "nothing of this branch is trusted yet: look it over, and in a clone gitring init --introduce makes one signed, empty commit that trust begins with; then git push"

// neverSigned is the refusal of a tip where trust would begin, with that way where nobody signed it.
func neverSigned(tip ring.SHA, r *ring.Refusal) *ring.Refusal {
	if r.Code != ring.Unsigned || r.Commit != tip {
		return r
	}
	begin := *r
	begin.Hint = howToBegin
	return &begin
}

// beginsUnsigned is a landing on top of what nobody signed, where trust begins.
func beginsUnsigned(tip, base ring.SHA, why *ring.Refusal) *ring.Refusal {
	return &ring.Refusal{
		Code: why.Code, Commit: tip,
		Says: fmt.Sprintf("commit %s was landed by the forge on %s, of which nothing is trusted yet: %s", tip.Short(), base.Short(), why.Says),
		Hint: howToBegin,
	}
}

func headUnavailable(sha ring.SHA, what string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.HeadUnavailable, Commit: sha,
		Says: fmt.Sprintf("commit %s was landed by the forge from a branch that cannot be had: %s", sha.Short(), what),
		Hint: "keep the pull request's ref on the forge, write the trailer Gitring-Head: <full id> into the message, or let somebody answer for it with gitring vouch",
	}
}

func needsMergeTree(sha, head ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NeedsMergeTree, Commit: sha,
		Says: fmt.Sprintf("commit %s merges %s, which was not up to date, and no git of 2.38 or newer is on this host to merge them again", sha.Short(), head.Short()),
		Hint: "require branches to be up to date before they are landed, install git 2.38 on the host, or let somebody answer for it with gitring vouch",
	}
}

// neverVerified is a landing of what lies behind the anchor and nobody signed, at least
// not in what this host saw.
func neverVerified(sha, head, at ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotSignedContent, Commit: sha,
		Says: fmt.Sprintf("commit %s, landed by the forge from %s, brings %s, which lies behind the trusted commit and was never verified here by its own signature", sha.Short(), head.Short(), at.Short()),
		Hint: "rebase the branch onto the newest commit, sign it and land it again, or let somebody answer for it with gitring vouch",
	}
}

// bringsOld is a landing that would bring back what the branch has had.
func bringsOld(sha, head, old ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotSignedContent, Commit: sha,
		Says: fmt.Sprintf("commit %s, landed by the forge from %s on an old base, brings %s, which lies behind the trusted commit already", sha.Short(), head.Short(), old.Short()),
		Hint: "merge the newest commit into the branch that it lands on first, or let somebody answer for it with gitring vouch",
	}
}

// standsOnLeftOut is a signed commit on top of what an earlier landing left out.
func standsOnLeftOut(sha, at ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotSignedContent, Commit: sha,
		Says: fmt.Sprintf("commit %s stands on %s, which lies behind the trusted commit and was never accepted: a landing left it out", sha.Short(), at.Short()),
		Hint: "rebase it onto the newest trusted commit and sign it again, or let somebody answer for it with gitring vouch",
	}
}

func headLanded(sha, head ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.HeadLanded, Commit: sha,
		Says: fmt.Sprintf("commit %s lands %s again, which was landed before, and nobody signed anything since", sha.Short(), head.Short()),
		Hint: "if it is meant to land once more, sign a new commit on top of it, with git commit --allow-empty -S, and land that; or let somebody answer for it with gitring vouch",
	}
}

func notUpToDate(sha, head, base ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NotUpToDate, Commit: sha,
		Says: fmt.Sprintf("commit %s lands %s, which does not have %s in it, and this source has require_up_to_date", sha.Short(), head.Short(), base.Short()),
		Hint: "on your own machine merge the branch that it lands on into it, signed, or rebase and sign it; then land it again; or let somebody answer for it with gitring vouch",
	}
}

func vouchNotAllowed(sha ring.SHA, id identity) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.VouchNotAllowed, Commit: sha,
		Says: fmt.Sprintf("commit %s vouches for others, and its signer %s does not have the role vouch here", sha.Short(), id.principal),
		Hint: "have somebody vouch who has the role, or add it to the binding in the source's trust.signers",
	}
}

func vouchOutside(sha ring.SHA, names string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.VouchOutside, Commit: sha,
		Says: fmt.Sprintf("commit %s vouches for %s, which is no full id of a commit that it brings", sha.Short(), clip(names)),
		Hint: "name commits between the last trusted one and this one, with all 40 digits: gitring vouch writes them",
	}
}

func tooManyChanges(sha ring.SHA, most int) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.TooLarge, Commit: sha,
		Says: fmt.Sprintf("commit %s changes more than %d paths, more than the rights of a signer are held against", sha.Short(), most),
		Hint: "split it, or have somebody sign it whose binding has no paths",
	}
}

func introductionMissing(tip ring.SHA, signer string) *ring.Refusal {
	by := "nobody had to sign"
	if signer != "" {
		by = signer + " signed"
	}
	return &ring.Refusal{
		Code: ring.IntroductionMissing, Commit: tip,
		Says: fmt.Sprintf("nothing is trusted yet, and require_introduction asks for a commit to begin with; the branch is at %s, which %s", tip.Short(), by),
		Hint: "look it over and write introduction: " + string(tip) + " into the source's trust",
	}
}

// introductionNeeded is of a first tip that only somebody with limited rights signed:
// the whole tree would be taken on that word.
func introductionNeeded(tip, of ring.SHA, id identity, source string) *ring.Refusal {
	on := ""
	if of != tip {
		on = ", which was landed on " + of.Short()
	}
	return &ring.Refusal{
		Code: ring.IntroductionNeeded, Commit: tip,
		Says: fmt.Sprintf("nothing is trusted yet, and %s%s would be trusted whole by the word of %s, who may change only a part of it", tip.Short(), on, id.principal),
		Hint: "look the whole branch over, and write introduction: " + string(tip) + " below trust of source " + source +
			"; or have somebody without limits of paths sign the tip (git commit --allow-empty -S)",
	}
}

func introductionMismatch(sha ring.SHA, id identity, want string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.IntroductionMismatch, Commit: sha,
		Says: fmt.Sprintf("the introduction %s is signed by %s, and the configuration says by %s", sha.Short(), id.principal, want),
		Hint: "find out who wrote that commit id into the configuration, then correct introduction there",
	}
}

func stateLost(tip ring.SHA, what string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.StateLost, Commit: tip,
		Says: "up to where this source was trusted is lost, and the labels of its containers do not tell: " + what,
		Hint: "bring the state directory back from a backup, or the history back to the server; or look over what the branch holds and use gitring trust accept " + string(tip) + " --reason '…'",
	}
}

func stateLostRollback(anchor, tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.StateLostRollback, Commit: tip,
		Says: fmt.Sprintf("the branch is at %s, which is older than %s, what containers here were made from", tip.Short(), anchor.Short()),
		Hint: "push what has " + anchor.Short() + " in its history; a person on the host may use gitring trust accept " + string(tip) + " --reason '…'",
	}
}

// placeFor is where a key would have to be added to count.
func (t *Trust) placeFor(file string) string {
	if in := t.cfg.SignersInRepo; in != "" && file != "" {
		return file + " (or, as somebody with the role trust, to " + in + " in the repository)"
	} else if in != "" {
		return in + " in the repository, as somebody with the role trust"
	}
	return file
}

// trustFile keeps everybody from being locked out by a file that nobody can read.
func trustFile(sha ring.SHA, file string, m Mistake) *ring.Refusal {
	r := &ring.Refusal{
		Code: ring.BadTrustFile, Commit: sha, File: file, Line: m.Line,
		Says: fmt.Sprintf("commit %s leaves signers in %s that cannot be read: %s", sha.Short(), file, m.Says),
		Hint: "correct it in the same commit, or let somebody with the role trust answer for one that does; docs/reference/signers.md has the form",
	}
	if m.Hint != "" {
		r.Hint = m.Hint + "; correct it in the same commit"
	}
	return r
}

func signersNotAllowed(sha ring.SHA, by []identity, file string) *ring.Refusal {
	who := "nobody with the role trust signed that"
	if len(by) > 0 {
		who = by[0].principal + " does not have the role trust here"
	}
	return &ring.Refusal{
		Code: ring.RoleNotAllowed, Commit: sha, File: file,
		Says: fmt.Sprintf("commit %s changes %s, and %s", sha.Short(), file, who),
		Hint: "have somebody with the role trust make the change, or vouch for it: gitring vouch",
	}
}

// signersStale is of a change that somebody signed, on a branch without the change
// that is in force.
func signersStale(sha, from ring.SHA, file string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.SignersStale, Commit: sha, File: file,
		Says: fmt.Sprintf("commit %s takes %s as it is at %s, where a newer change of that file is not in the history", sha.Short(), file, from.Short()),
		Hint: "as somebody with the role trust, merge the branch into which you land, keep its " + file + ", and change that file again; " +
			"or let somebody with the role trust answer for the commit: gitring vouch",
	}
}

func hardwareKeyRequired(sha ring.SHA, key, why string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.HardwareKeyRequired, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by key %s, and require.hardware_key asks for a security key: %s", sha.Short(), key, why),
		Hint: "make a key with ssh-keygen -t ed25519-sk, have it trusted, and sign again",
	}
}

func noUserVerification(sha ring.SHA, key string) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.NoUserVerification, Commit: sha,
		Says: fmt.Sprintf("commit %s is signed by security key %s without its PIN or a fingerprint, which require.user_verified asks for", sha.Short(), key),
		Hint: "make the key with ssh-keygen -t ed25519-sk -O verify-required, have it trusted, and sign again",
	}
}

// awaiting is no fault of anybody: the commit only has not been answered for by
// enough people.
func awaiting(s shortfall) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.AwaitingApproval, Commit: s.sha,
		Says: fmt.Sprintf("commit %s has %d of %d approvals%s; it waits for somebody else with the role vouch to answer for it", s.sha.Short(), s.have, s.need, s.what),
		Hint: "gitring vouch, by a signer who did not sign or vouch for it yet",
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
