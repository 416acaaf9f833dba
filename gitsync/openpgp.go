package gitsync

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	pgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// pgpKey is one key, primary or subkey, that may sign commits. All its self
// signatures were checked when it was read: the library would judge them at the
// time the signature claims, which its maker chooses, and would keep the answer.
type pgpKey struct {
	public      *packet.PublicKey
	fingerprint string // of this key
	primary     string // of its primary key; what people know it by
	principal   string // e-mail of the primary user id
	chain       []selfSigned
	place       string // the file it is from
	repo        bool   // of the file in the repository
	weak        string // why its signatures count for nothing; "" when they do
	revoker     string // fingerprint of a key that may revoke it; "" is none
}

func (k *pgpKey) identity() identity {
	return identity{principal: k.principal, fingerprint: k.primary, repo: k.repo}
}

// selfSigned is a key as its owner described it over time; a subkey counts only
// while its primary key does, so a chain has one or two of them.
type selfSigned struct {
	created     time.Time
	terms       []term // oldest first, never empty
	revocations []revocation
}

// term is one self signature: from then on the key ends at until; zero is never.
type term struct{ made, until time.Time }

// revocation counts from at on, or for all time when the reason does not rule
// out that the key was stolen.
type revocation struct {
	at      time.Time
	forever bool
}

// until is the end of the key as it was known at a time. Renewed keys are often
// exported with the newest self signature alone; what was signed before it is
// judged by it.
func (s selfSigned) until(at time.Time) time.Time {
	end := s.terms[0].until
	for _, t := range s.terms {
		if !t.made.After(at) {
			end = t.until
		}
	}
	return end
}

func (s selfSigned) revokedAt(now time.Time) bool {
	return slices.ContainsFunc(s.revocations, func(r revocation) bool {
		return r.forever || !r.at.After(now)
	})
}

const (
	beginKeys = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	endKeys   = "-----END PGP PUBLIC KEY BLOCK-----"
)

// parseOpenPGPKeys reads every armoured block of the file; text around the
// blocks is a comment. The library's own reader stops after the first block.
func parseOpenPGPKeys(path string, b []byte) ([]pgpKey, error) {
	if bytes.Contains(b, []byte("-----BEGIN PGP PRIVATE KEY BLOCK-----")) {
		return nil, fmt.Errorf("cannot read %s: it holds a private key, which must not be here; gpg --armor --export writes the public one", path)
	}
	var keys []pgpKey
	blocks := 0
	for {
		i := bytes.Index(b, []byte(beginKeys))
		if i < 0 {
			break
		}
		n := bytes.Index(b[i:], []byte(endKeys))
		if n < 0 {
			return nil, fmt.Errorf("cannot read %s: key block %d does not end", path, blocks+1)
		}
		blocks++
		block := b[i : i+n+len(endKeys)]
		more, err := parseKeyBlock(block)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: key block %d: %w", path, blocks, err)
		}
		for i := range more {
			more[i].place = path
		}
		keys = append(keys, more...)
		b = b[i+len(block):]
	}
	if blocks == 0 && len(bytes.TrimSpace(b)) > 0 {
		return nil, fmt.Errorf("cannot read %s: it holds no armoured public key; write it with gpg --armor --export <fingerprint>", path)
	}
	return keys, nil
}

func parseKeyBlock(block []byte) ([]pgpKey, error) {
	a, err := armor.Decode(bytes.NewReader(block))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	revokers, err := designatedRevokers(body)
	if err != nil {
		return nil, err
	}
	packets := packet.NewReader(bytes.NewReader(body))
	var keys []pgpKey
	for {
		e, err := pgp.ReadEntity(packets)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		more, err := signingKeys(e)
		if err != nil {
			return nil, err
		}
		for _, k := range more {
			k.revoker = revokers[k.primary]
			keys = append(keys, k)
		}
	}
}

// Packets and parts of OpenPGP that the library does not show (RFC 9580).
const (
	tagSignature      = 2
	tagPublicKey      = 6
	partIssuer        = 16
	partRevocationKey = 12
	partIssuerPrint   = 33
)

// designatedRevokers are, by the fingerprint of a primary key, the fingerprint of a
// key that may revoke it. The library leaves that part of a signature out. The
// signature that names the revoker is not checked: a key is refused for it, so a
// false one gains nothing.
func designatedRevokers(body []byte) (map[string]string, error) {
	revokers := map[string]string{}
	packets := packet.NewOpaqueReader(bytes.NewReader(body))
	var of *packet.PublicKey
	for {
		p, err := packets.Next()
		if errors.Is(err, io.EOF) {
			return revokers, nil
		}
		if err != nil {
			return nil, err
		}
		switch p.Tag {
		case tagPublicKey:
			of = nil
			if parsed, err := p.Parse(); err == nil {
				of, _ = parsed.(*packet.PublicKey)
			}
		case tagSignature:
			if of == nil {
				continue
			}
			if revoker := revokerIn(p.Contents, of); revoker != "" {
				revokers[fmt.Sprintf("%X", of.Fingerprint)] = revoker
			}
		}
	}
}

// revokerIn is the revoker that a signature of a key over itself or over one of its
// user ids names; "" for none, and in signatures of others.
func revokerIn(sig []byte, by *packet.PublicKey) string {
	hashed, unhashed, ok := signatureParts(sig)
	if !ok || sig[1] != byte(packet.SigTypeDirectSignature) && (sig[1] < byte(packet.SigTypeGenericCert) || sig[1] > byte(packet.SigTypePositiveCert)) {
		return ""
	}
	revoker := ""
	for _, part := range append(hashed, unhashed...) {
		switch part.SubType &^ 0x80 { // the critical bit
		case partIssuer:
			if len(part.Contents) == 8 && binary.BigEndian.Uint64(part.Contents) != by.KeyId {
				return ""
			}
		case partIssuerPrint:
			if len(part.Contents) > 1 && !bytes.Equal(part.Contents[1:], by.Fingerprint) {
				return ""
			}
		}
	}
	for _, part := range hashed {
		if part.SubType&^0x80 == partRevocationKey && len(part.Contents) > 2 {
			revoker = fmt.Sprintf("%X", part.Contents[2:]) // after its class and algorithm
		}
	}
	return revoker
}

// signatureParts are the subpackets of a signature of version 4 or 6.
func signatureParts(sig []byte) (hashed, unhashed []*packet.OpaqueSubpacket, ok bool) {
	const head = 4 // version, type, algorithm, hash
	if len(sig) < head || sig[0] != 4 && sig[0] != 6 {
		return nil, nil, false
	}
	rest := sig[head:]
	areas := [2][]*packet.OpaqueSubpacket{}
	for i := range areas {
		n, size := 0, 2
		if sig[0] == 6 {
			size = 4
		}
		if len(rest) < size {
			return nil, nil, false
		}
		for _, b := range rest[:size] {
			n = n<<8 | int(b)
		}
		if rest = rest[size:]; n > len(rest) {
			return nil, nil, false
		}
		var err error
		if areas[i], err = packet.OpaqueSubpackets(rest[:n]); err != nil {
			return nil, nil, false
		}
		rest = rest[n:]
	}
	return areas[0], areas[1], true
}

// signingKeys is the primary key and those subkeys that may sign.
func signingKeys(e *pgp.Entity) ([]pgpKey, error) {
	primary := fmt.Sprintf("%X", e.PrimaryKey.Fingerprint)
	main, mayCertify, principal := describePrimary(e)
	if len(main.terms) == 0 {
		return nil, fmt.Errorf("key %s has no user id with a valid signature of its own", primary)
	}
	var keys []pgpKey
	if mayCertify {
		keys = append(keys, pgpKey{
			public: e.PrimaryKey, fingerprint: primary, primary: primary, principal: principal,
			chain: []selfSigned{main}, weak: weakness(e.PrimaryKey),
		})
	}
	for _, s := range e.Subkeys {
		own, signs := describeSubkey(e, s)
		if !signs {
			continue
		}
		weak := weakness(s.PublicKey)
		if weak == "" {
			weak = weakness(e.PrimaryKey)
		}
		keys = append(keys, pgpKey{
			public: s.PublicKey, fingerprint: fmt.Sprintf("%X", s.PublicKey.Fingerprint), primary: primary,
			principal: principal, chain: []selfSigned{main, own}, weak: weak,
		})
	}
	return keys, nil
}

// describePrimary gathers what the primary key's own signatures say: its terms,
// whether it may sign, and the e-mail of the primary user id.
func describePrimary(e *pgp.Entity) (main selfSigned, signs bool, principal string) {
	main.created = e.PrimaryKey.CreationTime
	var newest, preferred *packet.Signature
	lasts := func(sig *packet.Signature) { main.terms = append(main.terms, termOf(e.PrimaryKey, sig)) }
	uses := func(sig *packet.Signature) {
		if newest == nil || !sig.CreationTime.Before(newest.CreationTime) {
			newest = sig
		}
	}
	// Sorted, so that equal user ids give the same answer every time.
	names := make([]string, 0, len(e.Identities))
	for name := range e.Identities {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		id := e.Identities[name]
		self := newestOwn(e, id)
		if self == nil {
			continue
		}
		for _, s := range id.SelfCertifications {
			if ownUserID(e, name, s.Packet) {
				lasts(s.Packet)
				uses(s.Packet)
			}
		}
		if preferred == nil || better(self, preferred) {
			preferred, principal = self, mail(id.UserId)
		}
	}
	for _, s := range e.DirectSignatures {
		if !sound(s.Packet) || e.PrimaryKey.VerifyDirectKeySignature(s.Packet) != nil {
			continue
		}
		// One that names a revoker says nothing of time and use; gpg then goes by the
		// user ids.
		if s.Packet.KeyLifetimeSecs != nil || len(main.terms) == 0 {
			lasts(s.Packet)
		}
		if s.Packet.FlagsValid {
			uses(s.Packet)
		}
	}
	for _, s := range e.Revocations {
		if e.PrimaryKey.VerifyRevocationSignature(s.Packet) == nil {
			main.revocations = append(main.revocations, revocationOf(s.Packet))
		}
	}
	slices.SortStableFunc(main.terms, func(a, b term) int { return a.made.Compare(b.made) })
	return main, newest != nil && maySign(newest), principal
}

// newestOwn is the newest self signature of a user id; nil without one or when
// the owner took the user id back after it.
func newestOwn(e *pgp.Entity, id *pgp.Identity) *packet.Signature {
	var self *packet.Signature
	for _, s := range id.SelfCertifications {
		if ownUserID(e, id.Name, s.Packet) && (self == nil || s.Packet.CreationTime.After(self.CreationTime)) {
			self = s.Packet
		}
	}
	for _, r := range id.Revocations {
		if self != nil && ownUserID(e, id.Name, r.Packet) && !r.Packet.CreationTime.Before(self.CreationTime) {
			return nil
		}
	}
	return self
}

func ownUserID(e *pgp.Entity, name string, sig *packet.Signature) bool {
	return sound(sig) && e.PrimaryKey.VerifyUserIdSignature(name, e.PrimaryKey, sig) == nil
}

// better prefers the user id that is marked as primary, then the newer one.
func better(a, b *packet.Signature) bool {
	pa, pb := a.IsPrimaryId != nil && *a.IsPrimaryId, b.IsPrimaryId != nil && *b.IsPrimaryId
	if pa != pb {
		return pa
	}
	return a.CreationTime.After(b.CreationTime)
}

func describeSubkey(e *pgp.Entity, s pgp.Subkey) (own selfSigned, signs bool) {
	own.created = s.PublicKey.CreationTime
	var newest *packet.Signature
	for _, b := range s.Bindings {
		// VerifyKeySignature also asks a signing subkey for its own consent.
		if !sound(b.Packet) || e.PrimaryKey.VerifyKeySignature(s.PublicKey, b.Packet) != nil {
			continue
		}
		own.terms = append(own.terms, termOf(s.PublicKey, b.Packet))
		if newest == nil || !b.Packet.CreationTime.Before(newest.CreationTime) {
			newest = b.Packet
		}
	}
	for _, r := range s.Revocations {
		if e.PrimaryKey.VerifySubkeyRevocationSignature(r.Packet, s.PublicKey) == nil {
			own.revocations = append(own.revocations, revocationOf(r.Packet))
		}
	}
	slices.SortStableFunc(own.terms, func(a, b term) int { return a.made.Compare(b.made) })
	return own, newest != nil && maySign(newest)
}

// maySign wants the flag: a key without flags never said that it signs.
func maySign(sig *packet.Signature) bool { return sig.FlagsValid && sig.FlagSign }

func termOf(key *packet.PublicKey, sig *packet.Signature) term {
	t := term{made: sig.CreationTime}
	if n := sig.KeyLifetimeSecs; n != nil && *n > 0 {
		t.until = key.CreationTime.Add(time.Duration(*n) * time.Second)
	}
	if n := sig.SigLifetimeSecs; n != nil && *n > 0 {
		end := sig.CreationTime.Add(time.Duration(*n) * time.Second)
		if t.until.IsZero() || end.Before(t.until) {
			t.until = end
		}
	}
	return t
}

func revocationOf(sig *packet.Signature) revocation {
	r := revocation{at: sig.CreationTime}
	switch why := sig.RevocationReason; {
	case why == nil, *why == packet.NoReason, *why == packet.Unknown, *why == packet.KeyCompromised:
		r.forever = true
	}
	return r
}

// pgpRules are the library's limits on algorithms, hashes and curves.
var pgpRules *packet.Config

// sound reports whether a signature's hash is not broken and that it asks for nothing
// this code does not know.
func sound(sig *packet.Signature) bool {
	return !pgpRules.RejectHashAlgorithm(sig.Hash) && criticalNotation(sig) == ""
}

func criticalNotation(sig *packet.Signature) string {
	for _, n := range sig.Notations {
		if n.IsCritical {
			return n.Name
		}
	}
	return ""
}

// weakness says why a key's signatures count for nothing; "" when they do.
func weakness(key *packet.PublicKey) string {
	if pgpRules.RejectPublicKeyAlgorithm(key.PubKeyAlgo) {
		return "DSA and ElGamal keys are broken"
	}
	if key.PubKeyAlgo == packet.PubKeyAlgoRSA || key.PubKeyAlgo == packet.PubKeyAlgoRSASignOnly {
		// A product of two primes of half the length may be one bit short.
		if bits, err := key.BitLength(); err != nil || bits < minRSA-1 {
			return fmt.Sprintf("its RSA key has %d bits, fewer than %d", bits, minRSA)
		}
		return ""
	}
	if curve, err := key.Curve(); err == nil && pgpRules.RejectCurve(curve) {
		return fmt.Sprintf("its curve is %s", curve)
	}
	return ""
}

// verifyOpenPGP checks an OpenPGP signature, its key and both times.
func (t *Trust) verifyOpenPGP(p *parsed, m moments) (identity, *ring.Refusal) {
	sig, err := readOpenPGPSignature(p.signature)
	if err != nil {
		return identity{}, badSignature(p.sha, "%v", err)
	}
	issuer := issuerOf(sig)
	if where, ok := t.revoked.has(issuer); ok {
		return identity{}, revokedKey(p.sha, issuer, where)
	}
	keys := t.issuers(sig)
	if len(keys) == 0 {
		return identity{}, unknownSigner(p, issuer, "the output of gpg --armor --export "+issuer, t.placeFor(t.cfg.OpenPGPKeys))
	}
	if pgpRules.RejectMessageHashAlgorithm(sig.Hash) {
		return identity{}, weakKey(p.sha, "its signature uses %s", sig.Hash)
	}
	key := signedBy(keys, sig, p.payload)
	if key == nil {
		return identity{}, badSignature(p.sha, "it is over something else than this commit, or not by key %s", keys[0].primary)
	}
	// From here the key signed this very payload; what is left is whether it may.
	if refusal := t.cfg.Require.openPGP(p.sha, key.primary); refusal != nil {
		return identity{}, refusal
	}
	return t.judgeOpenPGP(p, key, sig, m)
}

// readOpenPGPSignature wants exactly one packet, of a signature over bytes.
func readOpenPGPSignature(text []byte) (*packet.Signature, error) {
	raw, err := unarmor(text, beginPGP, endPGP, true)
	if err != nil {
		return nil, err
	}
	r := bytes.NewReader(raw)
	any, err := packet.Read(r)
	if err != nil {
		return nil, fmt.Errorf("it is not an OpenPGP signature gitring can read: %w", err)
	}
	sig, ok := any.(*packet.Signature)
	switch {
	case !ok:
		return nil, fmt.Errorf("it is not an OpenPGP signature")
	case r.Len() > 0:
		return nil, fmt.Errorf("more than one packet is in it")
	case sig.Version != 4 && sig.Version != 6:
		return nil, fmt.Errorf("its version %d is not 4 or 6", sig.Version)
	case sig.SigType != packet.SigTypeBinary:
		return nil, fmt.Errorf("it is not over the bytes of the commit (type %#x)", uint8(sig.SigType))
	case sig.IssuerKeyId == nil:
		return nil, fmt.Errorf("it does not say by which key it is")
	case criticalNotation(sig) != "":
		return nil, fmt.Errorf("it carries a critical notation %q that gitring does not know", clip(criticalNotation(sig)))
	}
	return sig, nil
}

func issuerOf(sig *packet.Signature) string {
	if len(sig.IssuerFingerprint) > 0 {
		return fmt.Sprintf("%X", sig.IssuerFingerprint)
	}
	return fmt.Sprintf("%016X", *sig.IssuerKeyId)
}

// issuers are the keys the signature may be by. Key ids can be made to collide;
// only a check with the whole key decides.
func (t *Trust) issuers(sig *packet.Signature) []*pgpKey {
	var keys []*pgpKey
	all := [][]pgpKey{t.pgp}
	if t.repo != nil {
		all = append(all, t.repo.pgp)
	}
	for _, k := range pointersTo(all) {
		if k.public.KeyId == *sig.IssuerKeyId && (len(sig.IssuerFingerprint) == 0 || bytes.Equal(k.public.Fingerprint, sig.IssuerFingerprint)) {
			keys = append(keys, k)
		}
	}
	return keys
}

func pointersTo(lists [][]pgpKey) []*pgpKey {
	var out []*pgpKey
	for _, list := range lists {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// signedBy is the key that made the signature over payload; nil when none did.
func signedBy(keys []*pgpKey, sig *packet.Signature, payload []byte) *pgpKey {
	for _, k := range keys {
		h, err := sig.PrepareVerify()
		if err != nil {
			return nil
		}
		h.Write(payload)
		if k.public.VerifySignature(h, sig) != nil {
			continue
		}
		// The two bytes that the library skips for version 4 and gpg does not.
		if sum := h.Sum(nil); sum[0] == sig.HashTag[0] && sum[1] == sig.HashTag[1] {
			return k
		}
	}
	return nil
}

// judgeOpenPGP asks whether the key may sign: not weak, not revoked, and good at
// the commit's time, at the signature's own, and when first seen here.
func (t *Trust) judgeOpenPGP(p *parsed, k *pgpKey, sig *packet.Signature, m moments) (identity, *ring.Refusal) {
	if where, ok := t.revoked.has(k.fingerprint, k.primary); ok {
		return identity{}, revokedKey(p.sha, k.primary, where)
	}
	for _, s := range k.chain {
		if s.revokedAt(m.now) {
			return identity{}, revokedKey(p.sha, k.primary, "by its owner, in "+k.place)
		}
	}
	if k.revoker != "" {
		return identity{}, mayBeRevokedByOthers(p.sha, k.primary, k.revoker)
	}
	if k.weak != "" {
		return identity{}, weakKey(p.sha, "%s", k.weak)
	}
	if sig.CreationTime.After(m.seen.Add(maxAhead)) {
		return identity{}, futureDated(p.sha, "was signed at", sig.CreationTime, m.seen)
	}
	if sig.SigLifetimeSecs != nil && *sig.SigLifetimeSecs > 0 {
		end := sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs) * time.Second)
		if m.claimed.After(end) || m.seen.After(end) {
			return identity{}, badSignature(p.sha, "it was made to expire at %s", stamp(end))
		}
	}
	id := k.identity()
	for _, claimed := range []time.Time{m.claimed, sig.CreationTime} {
		note, refusal := k.judge(p.sha, moments{claimed: claimed, seen: m.seen, grace: m.grace})
		if refusal != nil {
			return identity{}, refusal
		}
		if note != "" {
			id.note = note
		}
	}
	return id, nil
}

func (k *pgpKey) judge(sha ring.SHA, m moments) (note string, _ *ring.Refusal) {
	for _, s := range k.chain {
		then := span{from: s.created, until: s.until(m.claimed)}
		if _, refusal := then.judge(sha, k.primary, moments{claimed: m.claimed, seen: m.claimed}); refusal != nil {
			return "", refusal
		}
		seen := span{from: s.created, until: s.until(m.seen)}
		n, refusal := seen.judge(sha, k.primary, m)
		if refusal != nil {
			return "", refusal
		}
		if n != "" {
			note = n
		}
	}
	return note, nil
}

// mail is the e-mail of a user id, or all of it when it holds none.
func mail(u *packet.UserId) string {
	if u.Email != "" {
		return u.Email
	}
	return strings.TrimSpace(wording.DropControls(u.Id, ""))
}
