package proof_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

// signIn is a signature in another namespace than Git's.
func (p person) signIn(namespace string, payload []byte) string {
	signature := p.sign(payload)
	raw, _ := base64.StdEncoding.DecodeString(strings.ReplaceAll(signature[len("-----BEGIN SSH SIGNATURE-----\n"):strings.Index(signature, "-----END")], "\n", ""))
	raw = bytes.Replace(raw, field([]byte("git")), field([]byte(namespace)), 1)
	return "-----BEGIN SSH SIGNATURE-----\n" + base64.StdEncoding.EncodeToString(raw) + "\n-----END SSH SIGNATURE-----\n"
}

// raw puts a commit with headers of its own.
func (s *sample) raw(by person, namespace, head, message string) ring.SHA {
	signature := by.sign([]byte(head + "\n" + message))
	if namespace != "git" {
		signature = by.signIn(namespace, []byte(head+"\n"+message))
	}
	return s.put("commit", []byte(head+"gpgsig "+strings.ReplaceAll(strings.TrimSuffix(signature, "\n"), "\n", "\n ")+"\n\n"+message))
}

// headed are the first lines of a commit.
func (s *sample) headed(tree ring.SHA, more string, parents ...ring.SHA) string {
	s.clock = s.clock.Add(time.Hour)
	head := "tree " + string(tree) + "\n"
	for _, p := range parents {
		head += "parent " + string(p) + "\n"
	}
	who := fmt.Sprintf("Somebody <somebody@example.org> %d +0000\n", s.clock.Unix())
	return head + "author " + who + "committer " + who + more
}

// tipped has the host prove a commit, which nothing else changes.
func (s *sample) tipped(sha ring.SHA) {
	s.tip = sha
	s.make(sha, s.intro)
}

// bomb is so many bytes, packed.
func bomb(n int) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	chunk := make([]byte, 1<<20)
	for range n >> 20 {
		_, _ = w.Write(chunk)
	}
	_, _ = w.Write(chunk[:1])
	_ = w.Close()
	return out.Bytes()
}

// attacks are further ways of somebody who knows how a proof is checked.
func attacks() []tampering {
	evilFiles := func() map[string]string {
		files := sampleFiles("three\n")
		files["apps/shop/compose.yaml"] = strings.Replace(composeFile, "nginx:1.27", "evil:1", 1)
		return files
	}
	replaced := func(from, to string) func([]byte) []byte {
		return func(f []byte) []byte { return bytes.Replace(f, []byte(from), []byte(to), 1) }
	}
	forge := func(s *sample, a *proof.Asked) {
		a.Trust = s.trust("forge-merge", alice.line("")+bob.line(""), "")
	}
	return []tampering{
		// JSON that two readers read in two ways.
		{name: "a key twice, deep inside a list of values", code: proof.DuplicateKey, says: `"statement.container.labels.gitring.host" twice`, bytes: replaced(`"gitring.host":"edge-1"`, `"gitring.host":"edge-2","gitring.host":"edge-1"`)},
		{name: "a key twice, once by an escape", code: proof.DuplicateKey, says: `"statement.host" twice`, bytes: replaced(`{"host":"edge-1"`, `{"h\u006fst":"edge-2","host":"edge-1"`)},
		{name: "a key by an escape", code: proof.BadForm, says: "in another order or spelling", bytes: replaced(`{"host":"edge-1"`, `{"h\u006fst":"edge-1"`)},
		{name: "a value by an escape", code: proof.BadForm, says: "values in another form", bytes: replaced(`{"host":"edge-1"`, `{"host":"\u0065dge-1"`)},
		{name: "half of a letter", code: proof.BadForm, says: "values in another form", bytes: replaced(`{"host":"edge-1"`, `{"host":"edge-1\ud800"`)},
		{name: "bytes that are no letter", code: proof.BadForm, says: "values in another form", bytes: replaced(`{"host":"edge-1"`, "{\"host\":\"edge-1\xff\"")},
		{name: "a number in another form", code: proof.BadForm, says: "no proof", bytes: replaced(`"slot":1,`, `"slot":1e0,`)},
		{name: "a number that is too large", code: proof.BadForm, says: "no proof", bytes: replaced(`"slot":1,`, `"slot":18446744073709551617,`)},
		{name: "nothing in the place of a list", code: proof.BadForm, says: "values in another form", bytes: replaced(`"labels_left_out":["maintainer"]`, `"labels_left_out":null`)},
		{name: "a mark before it", code: proof.BadForm, says: "no JSON", bytes: func(f []byte) []byte { return append([]byte("\xef\xbb\xbf"), f...) }},
		{name: "deep nesting", code: proof.BadForm, says: "nested deeper than", bytes: func([]byte) []byte { return []byte(strings.Repeat(`[`, 1<<20)) }},
		{name: "deep nesting in a value", code: proof.BadForm, says: "nested deeper than", bytes: replaced(`"values":{`, `"values":{"env":`+strings.Repeat(`{"a":`, 1<<16)+"1"+strings.Repeat("}", 1<<16)+",")},
		{name: "nothing", code: proof.BadForm, says: "no JSON", bytes: func([]byte) []byte { return nil }},
		{name: "no object", code: proof.UnknownFormat, says: "this release reads", bytes: func([]byte) []byte { return []byte("null") }},
		{name: "a letter of base64 that is no part of the bytes", code: proof.BadForm, says: "", bytes: replaced(`"objects":"`, `"objects":"\n`)},
		// Names that look alike, and huge ones.
		{name: "an app whose name looks alike", seal: true, code: proof.ServiceMissing, says: "", does: func(s *sample) {
			st := &s.proof.Statement
			st.App = "sh\u043ep"
			s.label("gitring.app", st.App)
			s.label("com.docker.compose.project", st.App)
			st.Container.Name = st.App + "-web-1"
		}},
		{name: "a label with a space behind its name", seal: true, code: proof.LabelAdded, says: "none that gitring sets", does: func(s *sample) { s.label("gitring.host ", "edge-1") }},
		{name: "a label in capitals", seal: true, code: proof.LabelAdded, says: "do not ask for it", does: func(s *sample) { s.label("GITRING.host", "edge-1") }},
		{name: "a label with a sign that nobody sees", seal: true, code: proof.LabelAdded, says: "do not ask for it", does: func(s *sample) { s.label("traefik\u200b.enable", "true") }},
		{name: "a container whose name is written backwards", seal: true, code: proof.NameDiffers, says: "", does: func(s *sample) { s.proof.Statement.Container.Name = "\u202e1-bew-pohs" }},
		{name: "a name of a mebibyte", seal: true, code: proof.OtherHost, says: "…", does: func(s *sample) { s.proof.Statement.Host = strings.Repeat("edge-1", 1<<18) }},
		{name: "an id that is none", seal: true, code: proof.BadForm, says: "id of the container", does: func(s *sample) { s.proof.Statement.Container.ID = "c0ffee c0ffee" }},
		// Labels that programs of Compose obey, and those that gitring obeys.
		{name: "a container that claims to be run once", seal: true, code: proof.LabelDiffers, says: "com.docker.compose.oneoff is True", does: func(s *sample) { s.label("com.docker.compose.oneoff", "True") }},
		{name: "another number of Compose", seal: true, code: proof.LabelDiffers, says: "com.docker.compose.container-number is 2", does: func(s *sample) { s.label("com.docker.compose.container-number", "2") }},
		{name: "another service of Compose", seal: true, code: proof.LabelDiffers, says: "com.docker.compose.service is db", does: func(s *sample) { s.label("com.docker.compose.service", "db") }},
		{name: "another working folder", seal: true, code: proof.LabelDiffers, says: "project.working_dir is apps/blog", does: func(s *sample) { s.label("com.docker.compose.project.working_dir", "apps/blog") }},
		{name: "a hash of Compose that is none", seal: true, code: proof.LabelDiffers, says: "config-hash is no hash", does: func(s *sample) { s.label("com.docker.compose.config-hash", "x") }},
		{name: "another image of Compose", seal: true, code: proof.ImageDiffers, says: "com.docker.compose.image is " + idB, does: func(s *sample) { s.label("com.docker.compose.image", idB) }},
		{name: "an image by its id, and another one that runs", seal: true, code: proof.ImageDiffers, says: "the pin is the image " + idB, does: func(s *sample) {
			s.proof.Statement.Pins["web"] = proof.Pin{Image: idB}
			s.proof.Statement.Container.Image = idB
		}},
		{name: "a hook that the commit does not have", seal: true, code: proof.LabelDiffers, says: "gitring.hooks is not what the commit's files give", does: func(s *sample) {
			s.label("gitring.hooks", `{"post_start":[{"command":["evil"]}]}`)
		}},
		{name: "an earlier proof of another host", code: proof.OtherHost, says: "the earlier proof is of host edge-9", asks: func(s *sample, a *proof.Asked) {
			other := newSample(s.t)
			other.proof.Statement.Host = "edge-9"
			other.journal()
			a.Older = other.file()
		}},
		// Who signs.
		{name: "a signature made for files, by a key that counts", code: proof.Code(ring.Namespace), says: "is not for git", does: func(s *sample) {
			s.tipped(s.raw(alice, "file", s.headed(s.tree(evilFiles()), "", s.middle()), "x\n"))
		}},
		{name: "a key that the signers' file has for files alone", code: proof.Code(ring.Namespace), says: "only for namespaces", does: func(s *sample) {
			s.tipped(s.commit(&mallory, s.tree(evilFiles()), "x", s.middle()))
		}, asks: func(s *sample, a *proof.Asked) {
			a.Trust = s.trust("strict", alice.line("")+bob.line("")+strings.Replace(mallory.line(""), `namespaces="git"`, `namespaces="file"`, 1), "")
		}},
		{name: "an authority's own key", code: proof.Code(ring.UnknownSigner), says: "", does: func(s *sample) {
			s.tipped(s.commit(&mallory, s.tree(evilFiles()), "x", s.middle()))
		}, asks: func(s *sample, a *proof.Asked) {
			a.Trust = s.trust("strict", alice.line("")+bob.line("")+mallory.line(",cert-authority"), "")
		}},
		{name: "a key whose time was over before the commit", code: proof.Code(ring.KeyExpired), says: "", asks: func(s *sample, a *proof.Asked) {
			a.Trust = s.trust("strict", alice.line(`,valid-before="20260101"`)+bob.line(""), "")
			a.Now = s.clock
		}},
		{name: "a key that was revoked after it had signed the beginning", code: proof.Code(ring.Revoked), says: "", asks: func(s *sample, a *proof.Asked) {
			key := strings.Fields(alice.line(""))
			a.Trust = s.trust("strict", alice.line("")+bob.line(""), key[len(key)-2]+" "+key[len(key)-1]+"\n")
		}},
		// What a commit says.
		{name: "a commit with two trees", code: proof.Code(ring.Grammar), says: "", does: func(s *sample) {
			good := s.objects[s.tip]
			head := s.headed(s.tree(evilFiles()), "", s.middle())
			s.tip = s.raw(alice, "git", "tree "+string(good.Body[5:45])+"\n"+head, "x\n")
			s.proof.Statement.Commit = s.tip
			s.label("gitring.commit", string(s.tip))
			s.pack()
			s.journal()
		}},
		{name: "a commit of a sibling repository with the same files", code: proof.NotOnChain, says: "does not come after", does: func(s *sample) {
			begin := s.commit(&alice, s.tree(sampleFiles("one\n")), "Begin elsewhere")
			s.tipped(s.commit(&bob, s.tree(sampleFiles("three\n")), "The same files", begin))
		}},
		{name: "the beginning is put on top of another history", code: proof.NotOnChain, says: "", does: func(s *sample) {
			begin := s.commit(&alice, s.tree(sampleFiles("one\n")), "Begin elsewhere")
			s.tip = s.commit(&bob, s.tree(evilFiles()), "x", begin)
			s.make(s.tip, begin)
			s.proof.Statement.Chain.From = s.intro
			s.journal()
		}},
		// Merges.
		{name: "a merge by nobody, with its parents exchanged", code: proof.Code(ring.NotSignedContent), says: "", asks: forge, does: func(s *sample) {
			head := s.commit(nil, s.tree(evilFiles()), "By nobody", s.middle())
			s.tipped(s.commit(nil, s.tree(evilFiles()), "Merge", head, s.tip))
		}},
		{name: "a merge of three", code: proof.Code(ring.Unsigned), says: "", asks: forge, does: func(s *sample) {
			one := s.commit(&bob, s.tree(sampleFiles("four\n")), "One", s.tip)
			two := s.commit(nil, s.tree(evilFiles()), "Two", s.tip)
			s.tipped(s.commit(nil, s.tree(evilFiles()), "Merge", s.tip, one, two))
		}},
		{name: "a merge that takes the side of an older head for a file", code: proof.Code(ring.NotSignedContent), says: "", asks: forge, does: func(s *sample) {
			files := sampleFiles("one\n") // bob's head has one of them, main went on to another
			files["README.md"] = "theirs\n"
			head := s.commit(&bob, s.tree(files), "On an old branch", s.intro)
			s.tipped(s.commit(nil, s.tree(files), "Merge", s.tip, head))
		}},
		{name: "a head that lands twice, after it was reverted", code: proof.Code(ring.NotSignedContent), says: "", asks: forge, does: func(s *sample) {
			head := s.commit(&bob, s.tree(sampleFiles("four\n")), "On a branch", s.tip)
			landed := s.commit(nil, s.tree(sampleFiles("four\n")), "Merge", s.tip, head)
			reverted := s.commit(&alice, s.tree(sampleFiles("three\n")), "Revert", landed)
			s.tipped(s.commit(nil, s.tree(sampleFiles("four\n")), "Merge again", reverted, head))
		}},
		{name: "a merge with a file that was changed between the two", code: proof.Code(ring.NotSignedContent), says: "", asks: forge, does: func(s *sample) {
			head := s.commit(&bob, s.tree(sampleFiles("four\n")), "On a branch", s.tip)
			files := sampleFiles("four\n")
			files["apps/shop/compose.override.yaml"] = "services: {web: {image: evil}}\n"
			s.tipped(s.commit(nil, s.tree(files), "Merge", s.tip, head))
		}},
		// What the host says of itself.
		{name: "more commits than there are", seal: true, code: proof.ChainGap, says: "says that 999", does: func(s *sample) { s.proof.Statement.Chain.Commits = 999 }},
		{name: "a pin of a service that is none of it", seal: true, code: proof.PinDiffers, says: "evil", does: func(s *sample) {
			s.proof.Statement.Pins["evil"] = proof.Pin{Image: "evil:1@" + digestB}
		}},
		{name: "the pins of two services are exchanged", seal: true, code: proof.VersionDiffers, says: "", does: func(s *sample) {
			st := &s.proof.Statement
			st.Pins["db"], st.Pins["web"] = st.Pins["web"], proof.Pin{Image: "postgres:17@" + digestB}
			st.Container.Image = st.Pins["web"].Image
		}},
		{name: "a label of the Compose file is said to be left out", seal: true, code: proof.LabelMissing, says: "traefik.enable", does: func(s *sample) {
			delete(s.proof.Statement.Container.Labels, "traefik.enable")
			s.proof.Statement.Container.LeftOut = append(s.proof.Statement.Container.LeftOut, "traefik.enable")
		}},
		{name: "newer labels on an older proof", seal: true, code: proof.VersionDiffers, says: "", does: func(s *sample) {
			newer := newSample(s.t)
			newer.another(&alice, newer.clock.Add(time.Hour), sampleFiles("four\n"))
			for _, o := range newer.all() {
				s.put(o.Kind, o.Body)
			}
			s.pack()
			st := &s.proof.Statement
			st.Commit = newer.tip
			s.label("gitring.commit", string(newer.tip))
		}},
		// The journal, and what is packed.
		{name: "two lines of the journal are exchanged", code: proof.JournalGap, says: "", does: func(s *sample) {
			lines := slices.Clone(s.lines)
			lines[0], lines[1] = lines[1], lines[0]
			s.proof.Journal = chainOf(40, lines)
		}},
		{name: "a line of the journal twice", code: proof.JournalGap, says: "line 42 is missing", does: func(s *sample) {
			s.proof.Journal = chainOf(40, append([]string{s.lines[0]}, s.lines...))
		}},
		{name: "a proof's own line taken from another proof", code: proof.StatementEdited, says: "", does: func(s *sample) {
			other := newSample(s.t)
			other.proof.Statement.Slot = 2
			other.journal()
			s.proof.Journal = other.proof.Journal
		}},
		{name: "a journal that unpacks to more than there is room for", code: proof.JournalChanged, says: "larger than", does: func(s *sample) { s.proof.Journal.Lines = bomb(256 << 20) }},
		{name: "objects that unpack to more than there is room for", seal: true, code: proof.ObjectsDiffer, says: "larger than", does: func(s *sample) { s.proof.Objects = bomb(256 << 20) }},
		{name: "something behind the packed objects", code: proof.ObjectsDiffer, says: "something follows", does: func(s *sample) { s.proof.Objects = append(slices.Clone(s.proof.Objects), bomb(0)...) }},
		{name: "a journal from before there was a line", code: proof.JournalChanged, says: "no hash", does: func(s *sample) { s.proof.Journal.BaseSeq = -1 }},
		{name: "a file of the commit as a folder", seal: true, code: proof.FilesDiffer, says: "", does: func(s *sample) {
			id := s.blob(composeFile)
			body := s.objects[id].Body
			s.without(id)
			s.put("tree", body)
			s.pack()
		}},
	}
}

func TestFurtherAttacksAreFoundAndNamed(t *testing.T) {
	all := attacks()
	require.GreaterOrEqual(t, len(all), 45)
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			s := newSample(t)
			if tt.does != nil {
				tt.does(s)
			}
			if tt.seal {
				s.journal()
			}
			file := s.file()
			if tt.bytes != nil {
				changed := tt.bytes(file)
				require.NotEqual(t, file, changed)
				file = changed
			}
			ask := s.asked()
			if tt.asks != nil {
				tt.asks(s, &ask)
			}
			found := proof.Check(file, ask)
			require.False(t, found.Holds)
			i := slices.IndexFunc(found.Faults, func(f proof.Fault) bool { return f.Code == tt.code && strings.Contains(f.Says, tt.says) })
			require.GreaterOrEqual(t, i, 0, "%v", found.Faults)
			for _, f := range found.Faults {
				require.Less(t, len(f.Says), 2000, "what strangers wrote is cut short")
			}
		})
	}
}

// Who is found to have stopped is not said to run.
func TestAContainerThatEndedIsNotSaidToRun(t *testing.T) {
	s := newSample(t)
	s.proof.Statement.Container.State = ring.StateExited
	s.journal()
	found := proof.Check(s.file(), s.asked())
	require.Empty(t, found.Faults)
	require.NotContains(t, strings.Join(found.Word, "\n"), "runs with these labels")
	require.Contains(t, strings.Join(found.Word, "\n"), "exited")
}
