package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha1" //nolint:gosec // Git's own
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

// A world is a repository of a few commits, made by hand: nothing that is judged writes it.
type world struct {
	t       *testing.T
	objects map[ring.SHA]gitsync.Object
	order   []ring.SHA
	clock   time.Time
}

// person is somebody with a key.
type person struct {
	name string
	key  ed25519.PrivateKey
}

func newPerson(name string) person {
	seed := sha256.Sum256([]byte(name))
	return person{name, ed25519.NewKeyFromSeed(seed[:])}
}

var (
	alice   = newPerson("alice@example.org")
	bob     = newPerson("bob@example.org")
	mallory = newPerson("mallory@example.org")
)

func newWorld(t *testing.T) *world {
	return &world{t: t, objects: map[ring.SHA]gitsync.Object{}, clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func field(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func (p person) public() []byte {
	return append(field([]byte("ssh-ed25519")), field(p.key.Public().(ed25519.PublicKey))...)
}

// line is the person's line of allowed_signers.
func (p person) line(options string) string {
	return strings.Join(strings.Fields(p.name+` namespaces="git"`+options+" ssh-ed25519 "+base64.StdEncoding.EncodeToString(p.public())), " ") + "\n"
}

// sign is what "ssh-keygen -Y sign -n git" writes, by OpenSSH's PROTOCOL.sshsig.
func (p person) sign(payload []byte) string {
	sum := sha512.Sum512(payload)
	signed := slices.Concat([]byte("SSHSIG"), field([]byte("git")), field(nil), field([]byte("sha512")), field(sum[:]))
	signature := slices.Concat(field([]byte("ssh-ed25519")), field(ed25519.Sign(p.key, signed)))
	blob := slices.Concat([]byte("SSHSIG"), []byte{0, 0, 0, 1}, field(p.public()), field([]byte("git")), field(nil), field([]byte("sha512")), field(signature))
	var out strings.Builder
	out.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for rest := base64.StdEncoding.EncodeToString(blob); rest != ""; {
		n := min(70, len(rest))
		out.WriteString(rest[:n] + "\n")
		rest = rest[n:]
	}
	return out.String() + "-----END SSH SIGNATURE-----\n"
}

func (w *world) put(kind string, body []byte) ring.SHA {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)) //nolint:gosec // Git's own
	id := ring.SHA(hex.EncodeToString(sum[:]))
	if _, ok := w.objects[id]; !ok {
		w.objects[id] = gitsync.Object{Kind: kind, Body: body}
		w.order = append(w.order, id)
	}
	return id
}

// tree puts files, by path.
func (w *world) tree(files map[string]string) ring.SHA {
	below := map[string]map[string]string{}
	type entry struct {
		mode, name, sortedAs string
		id                   ring.SHA
	}
	var list []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		dir, rest, nested := strings.Cut(name, "/")
		if !nested {
			list = append(list, entry{"100644", name, name, w.put("blob", []byte(text))})
			continue
		}
		if below[dir] == nil {
			below[dir] = map[string]string{}
		}
		below[dir][rest] = text
	}
	for _, dir := range slices.Sorted(maps.Keys(below)) {
		list = append(list, entry{"40000", dir, dir + "/", w.tree(below[dir])})
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.sortedAs, b.sortedAs) })
	var body bytes.Buffer
	for _, e := range list {
		raw, err := hex.DecodeString(string(e.id))
		require.NoError(w.t, err)
		fmt.Fprintf(&body, "%s %s\x00%s", e.mode, e.name, raw)
	}
	return w.put("tree", body.Bytes())
}

// commit puts a commit by somebody; by nobody it is not signed.
func (w *world) commit(by *person, tree ring.SHA, message string, parents ...ring.SHA) ring.SHA {
	w.clock = w.clock.Add(time.Hour)
	return w.commitAt(by, w.clock, tree, message, parents...)
}

func (w *world) commitAt(by *person, at time.Time, tree ring.SHA, message string, parents ...ring.SHA) ring.SHA {
	head := "tree " + string(tree) + "\n"
	for _, p := range parents {
		head += "parent " + string(p) + "\n"
	}
	who := "Somebody <somebody@example.org>"
	if by != nil {
		who = by.name + " <" + by.name + ">"
	}
	head += fmt.Sprintf("author %s %d +0000\ncommitter %s %d +0000\n", who, at.Unix(), who, at.Unix())
	rest := "\n" + message + "\n"
	if by != nil {
		signature := strings.TrimSuffix(by.sign([]byte(head+rest)), "\n")
		head += "gpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n"
	}
	return w.put("commit", []byte(head+rest))
}

// all are the objects in the order in which they were made.
func (w *world) all() []gitsync.Object {
	out := make([]gitsync.Object, len(w.order))
	for i, id := range w.order {
		out[i] = w.objects[id]
	}
	return out
}

// trust are rules by files on disk, as a person gives them.
func (w *world) trust(mode, signers, revoked string) *gitsync.Trust {
	w.t.Helper()
	dir := w.t.TempDir()
	cfg := gitsync.TrustConfig{Mode: mode, AllowedSigners: filepath.Join(dir, "allowed_signers"), AnyOwner: true, ExpiryGrace: 72 * time.Hour}
	require.NoError(w.t, os.WriteFile(cfg.AllowedSigners, []byte(signers), 0o600))
	if revoked != "" {
		cfg.RevokedKeys = filepath.Join(dir, "revoked")
		require.NoError(w.t, os.WriteFile(cfg.RevokedKeys, []byte(revoked), 0o600))
	}
	trust, err := gitsync.LoadTrust(cfg, "verify", "main")
	require.NoError(w.t, err)
	return trust
}

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	idA     = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	idB     = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

	composeFile = `name: shop
services:
  web:
    image: nginx:1.27
    environment: {LEVEL: "${LEVEL}", PASSWORD: "${PASSWORD}"}
    labels: {traefik.enable: "true"}
    volumes: ["./web.conf:/etc/web.conf:ro"]
    deploy: {replicas: 2}
  db:
    image: postgres:17
`
)

// sample is a proof of shop/web on edge-1 that holds, as a host would make it, and what is
// needed to make another one of the same history.
type sample struct {
	*world
	intro, tip ring.SHA
	proof      *proof.Proof
	lines      []string // of the journal, as they are written
}

// files of the repository, with another app beside.
func sampleFiles(conf string) map[string]string {
	return map[string]string{
		"apps/shop/compose.yaml": composeFile, "apps/shop/web.conf": conf,
		"apps/blog/compose.yaml": "services: {blog: {image: 'ghost:5'}}\n", "README.md": "ours\n",
	}
}

func newSample(t *testing.T) *sample {
	w := newWorld(t)
	s := &sample{world: w}
	s.intro = w.commit(&alice, w.tree(sampleFiles("one\n")), "Begin")
	two := w.commit(&bob, w.tree(sampleFiles("two\n")), "Another file", s.intro)
	s.tip = w.commit(&alice, w.tree(sampleFiles("three\n")), "And another", two)
	s.make(s.tip, s.intro)
	return s
}

// make has the host make its proof of a commit.
func (s *sample) make(tip, from ring.SHA) {
	s.proof = &proof.Proof{Format: proof.Format, Statement: proof.Statement{
		Host: "edge-1", Made: s.clock.Add(time.Hour), Gitring: "test", Source: "prod", Branch: "main",
		App: "shop", Service: "web", Slot: 1, Kind: ring.Worker, Commit: tip,
		Pins: map[string]proof.Pin{"web": {Image: "nginx:1.27@" + digestA}},
		Values: proof.Values{
			Path: ".", Only: "apps/shop", Interpolation: map[string]string{"LEVEL": "info"},
			Env: manifest.SealedValues{"shop": {".env": {"PASSWORD": {MAC: "00112233445566778899aabbccddeeff"}}}},
		},
		Chain: proof.Chain{From: from, How: "introduction", Commits: s.after(from, tip)},
	}}
	st := &s.proof.Statement
	found, err := proof.Compute(s.commitOf(tip), st)
	require.NoError(s.t, err)
	st.Version = found.Service.Version
	st.Container = proof.Container{
		ID: strings.Repeat("c0ffee", 11)[:64], Name: "shop-web-1", Image: "nginx:1.27@" + digestA, ImageID: idA,
		State: ring.StateRunning, Created: s.clock, Started: s.clock.Add(time.Minute), LeftOut: []string{"maintainer"},
		Labels: map[string]string{
			"gitring.host": "edge-1", "gitring.source": "prod", "gitring.app": "shop", "gitring.service": "web", "gitring.slot": "1",
			"gitring.version": string(st.Version), "gitring.commit": string(tip), "gitring.kind": "worker", "traefik.enable": "true",
			"com.docker.compose.project": "shop", "com.docker.compose.service": "web", "com.docker.compose.container-number": "1",
			"com.docker.compose.oneoff": "False", "com.docker.compose.project.working_dir": "apps/shop",
			"com.docker.compose.project.config_files": "apps/shop/compose.yaml", "com.docker.compose.config-hash": strings.Repeat("ab", 32),
			"com.docker.compose.image": idA,
		},
	}
	s.pack()
	s.journal()
}

// after is how many commits lie between two, with the second: those that it reaches and the
// first does not.
func (s *sample) after(from, tip ring.SHA) int {
	reached := func(of ring.SHA) map[ring.SHA]bool {
		met, todo := map[ring.SHA]bool{}, []ring.SHA{of}
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if o, ok := s.objects[at]; !ok || met[at] || o.Kind != "commit" {
				continue
			}
			met[at] = true
			head, _, _ := strings.Cut(string(s.objects[at].Body), "\nauthor ")
			for line := range strings.SplitSeq(head, "\n") {
				if parent, ok := strings.CutPrefix(line, "parent "); ok {
					todo = append(todo, ring.SHA(parent))
				}
			}
		}
		return met
	}
	before, all := reached(from), reached(tip)
	for sha := range before {
		delete(all, sha)
	}
	return len(all)
}

func (s *sample) commitOf(sha ring.SHA) *ring.Commit {
	s.t.Helper()
	given, refusal := gitsync.NewGiven(s.all())
	require.Nil(s.t, refusal)
	c, err := given.Commit(ring.Verified{SHA: sha})
	require.NoError(s.t, err)
	return c
}

func (s *sample) pack() {
	s.proof.Objects, s.proof.Statement.Objects = proof.Pack(s.all())
}

// journal has the host write its journal anew, with the statement as it is.
func (s *sample) journal() {
	st := &s.proof.Statement
	body := func(seq int, kind, reason, more string) string {
		return fmt.Sprintf(`{"seq":%d,"at":"2026-03-01T%02d:00:00Z","kind":%q,"app":%q,"service":%q,"version":%q,"commit":%q,"reason":%q%s}`,
			seq, 12+seq%8, kind, st.App, st.Service, st.Version, st.Commit, reason, more)
	}
	s.lines = []string{
		body(41, "commit.accepted", "verified", ""), body(42, "rollout.began", "r", ""), body(43, "rollout.completed", "r", ""),
		body(44, "proof.made", "made", fmt.Sprintf(`,"digest":%q`, st.Digest())),
	}
	s.proof.Journal = chainOf(40, s.lines)
}

// chainOf is a journal whose chain holds.
func chainOf(base int64, lines []string) proof.Journal {
	hash := sha256.Sum256([]byte("the line before"))
	prev := hash[:]
	var all []proof.Line
	for i, l := range lines {
		sum := sha256.Sum256(append(slices.Clone(prev), l...))
		prev = sum[:]
		all = append(all, proof.Line{Seq: base + int64(i) + 1, Hash: prev, Body: []byte(l)})
	}
	return proof.PackJournal(base, hash[:], all)
}

func (s *sample) file() []byte {
	s.t.Helper()
	b, err := json.Marshal(s.proof)
	require.NoError(s.t, err)
	return b
}

// asked is what a person asks who knows alice and bob, and where history begins.
func (s *sample) asked() proof.Asked {
	return proof.Asked{
		Trust: s.trust("strict", alice.line("")+bob.line(""), ""), Now: s.clock.Add(24 * time.Hour),
		From: []ring.SHA{s.intro},
	}
}
