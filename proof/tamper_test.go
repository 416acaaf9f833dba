package proof_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
)

// tampering is one thing that somebody who hands over a proof may do to it. He is careful:
// where seal is set he writes the host's journal anew, so that it is about what he made of
// the statement, as the root of a host can.
type tampering struct {
	name string
	does func(s *sample)
	seal bool
	// bytes changes the file itself.
	bytes func(file []byte) []byte
	// asks changes what is asked, for what only somebody who knows more can see.
	asks func(s *sample, a *proof.Asked)
	code proof.Code
	says string // what a person reads
}

// without takes objects of a kind, or one by its id, out of what is handed over.
func (s *sample) without(id ring.SHA) {
	delete(s.objects, id)
	s.order = slices.DeleteFunc(s.order, func(x ring.SHA) bool { return x == id })
	s.pack()
}

// changed puts other bytes in the place of an object, under whatever id they have.
func (s *sample) changed(id ring.SHA, from, to string) {
	s.t.Helper()
	o := s.objects[id]
	require.Contains(s.t, string(o.Body), from)
	body := bytes.Replace(o.Body, []byte(from), []byte(to), 1)
	s.without(id)
	s.put(o.Kind, body)
	s.pack()
}

// blob is the id of a file's content.
func (s *sample) blob(text string) ring.SHA {
	id := s.put("blob", []byte(text))
	return id
}

// middle is the commit between the beginning and the tip.
func (s *sample) middle() ring.SHA {
	_, after, _ := strings.Cut(string(s.objects[s.tip].Body), "parent ")
	return ring.SHA(after[:40])
}

func (s *sample) label(name, value string) { s.proof.Statement.Container.Labels[name] = value }

// another has the tip be another commit on top of the middle one.
func (s *sample) another(by *person, at time.Time, files map[string]string) {
	s.tip = s.commitAt(by, at, s.tree(files), "Another tip", s.middle())
	s.make(s.tip, s.intro)
}

func tamperings() []tampering {
	evil := strings.Replace(composeFile, "nginx:1.27", "evil:1", 1)
	withEvil := func() map[string]string {
		files := sampleFiles("three\n")
		files["apps/shop/compose.yaml"] = evil
		return files
	}
	return []tampering{
		// The container's labels.
		{name: "the label of the host is another one", does: func(s *sample) { s.label("gitring.host", "edge-2") }, seal: true, code: proof.OtherHost, says: "label gitring.host is edge-2"},
		{name: "the label of the app is another one", does: func(s *sample) { s.label("gitring.app", "blog") }, seal: true, code: proof.OtherService, says: "label gitring.app is blog"},
		{name: "the label of the service is another one", does: func(s *sample) { s.label("gitring.service", "db") }, seal: true, code: proof.OtherService, says: "label gitring.service is db"},
		{name: "the label of the version is another one", does: func(s *sample) { s.label("gitring.version", "1:"+strings.Repeat("0", 64)) }, seal: true, code: proof.LabelDiffers, says: "label gitring.version"},
		{name: "the label of the commit is another one", does: func(s *sample) { s.label("gitring.commit", string(s.intro)) }, seal: true, code: proof.LabelDiffers, says: "label gitring.commit"},
		{name: "the label of the slot is another one", does: func(s *sample) { s.label("gitring.slot", "2") }, seal: true, code: proof.LabelDiffers, says: "label gitring.slot is 2"},
		{name: "a label of gitring is missing", does: func(s *sample) { delete(s.proof.Statement.Container.Labels, "gitring.source") }, seal: true, code: proof.LabelMissing, says: "no label gitring.source"},
		{name: "a label of the Compose file says something else", does: func(s *sample) { s.label("traefik.enable", "false") }, seal: true, code: proof.LabelDiffers, says: "label traefik.enable is false, and the commit's files say true"},
		{name: "a label of the Compose file is missing", does: func(s *sample) { delete(s.proof.Statement.Container.Labels, "traefik.enable") }, seal: true, code: proof.LabelMissing, says: "no label traefik.enable"},
		{name: "a label was added", does: func(s *sample) { s.label("traefik.http.routers.x.rule", "Host(`x`)") }, seal: true, code: proof.LabelAdded, says: "the commit's files do not ask for it"},
		{name: "a label that looks like gitring's own was added", does: func(s *sample) { s.label("gitring.approved", "yes") }, seal: true, code: proof.LabelAdded, says: "gitring.approved is none that gitring sets"},
		{name: "the Compose project is another one", does: func(s *sample) { s.label("com.docker.compose.project", "blog") }, seal: true, code: proof.LabelDiffers, says: "com.docker.compose.project is blog"},
		{name: "the Compose file is another one", does: func(s *sample) { s.label("com.docker.compose.project.config_files", "evil.yaml") }, seal: true, code: proof.LabelDiffers, says: "config_files is evil.yaml"},
		{name: "the container has another name", does: func(s *sample) { s.proof.Statement.Container.Name = "evil" }, seal: true, code: proof.NameDiffers, says: "the container is called evil"},
		{
			name: "a slot that the commit does not ask for", seal: true, code: proof.SlotUnknown, says: "slot 7, and the commit asks for 2",
			does: func(s *sample) {
				s.proof.Statement.Slot, s.proof.Statement.Container.Name = 7, "shop-web-7"
				s.label("gitring.slot", "7")
				s.label("com.docker.compose.container-number", "7")
			},
		},
		{
			name: "a worker that is called a job", seal: true, code: proof.KindDiffers, says: "the proof is of a job",
			does: func(s *sample) { s.proof.Statement.Kind = ring.JobK; s.label("gitring.kind", string(ring.JobK)) },
		},
		// Version, image and the host's values.
		{
			name: "another version, in label and statement", seal: true, code: proof.VersionDiffers, says: "label gitring.version is 00000000",
			does: func(s *sample) {
				v := "1:" + strings.Repeat("0", 64)
				s.proof.Statement.Version = ring.Version(v)
				s.label("gitring.version", v)
			},
		},
		{
			name: "the label says one commit, and the version is of another", seal: true, code: proof.VersionDiffers, says: "label gitring.version",
			does: func(s *sample) {
				s.proof.Statement.Commit = s.middle()
				s.label("gitring.commit", string(s.middle()))
			},
		},
		{
			name: "another service of the same commit", seal: true, code: proof.VersionDiffers, says: "label gitring.version",
			does: func(s *sample) {
				st := &s.proof.Statement
				st.Service, st.Container.Name = "db", "shop-db-1"
				st.Pins = map[string]proof.Pin{"db": st.Pins["web"]}
				s.label("gitring.service", "db")
				s.label("com.docker.compose.service", "db")
			},
		},
		{
			name: "another app of the same commit", seal: true, code: proof.VersionDiffers, says: "label gitring.version",
			does: func(s *sample) {
				st := &s.proof.Statement
				st.App, st.Service, st.Container.Name, st.Values.Only = "blog", "blog", "blog-blog-1", ""
				st.Pins = map[string]proof.Pin{"blog": st.Pins["web"]}
				s.label("gitring.app", "blog")
				s.label("gitring.service", "blog")
			},
		},
		{name: "the pin is another digest", does: func(s *sample) { s.proof.Statement.Pins["web"] = proof.Pin{Image: "nginx:1.27@" + digestB} }, seal: true, code: proof.PinDiffers, says: "the container was made of nginx:1.27@sha256:aaaa"},
		{
			name: "pin and container are another digest", seal: true, code: proof.VersionDiffers, says: "with image sha256:bbbb",
			does: func(s *sample) {
				s.proof.Statement.Pins["web"] = proof.Pin{Image: "nginx:1.27@" + digestB}
				s.proof.Statement.Container.Image = "nginx:1.27@" + digestB
			},
		},
		{name: "the container runs another image than its label says", does: func(s *sample) { s.proof.Statement.Container.ImageID = idB }, seal: true, code: proof.ImageDiffers, says: "the container runs sha256:2222"},
		{name: "the verdict on signatures is of another digest", does: func(s *sample) {
			s.proof.Statement.Verdict = &proof.Verdict{Image: "docker.io/library/nginx@" + digestB, Keys: []string{"sha256:k"}}
		}, seal: true, code: proof.VerdictDiffers, says: "the verdict on signatures is of docker.io/library/nginx@sha256:bbbb"},
		{name: "another value of the host", does: func(s *sample) { s.proof.Statement.Values.Interpolation["LEVEL"] = "debug" }, seal: true, code: proof.VersionDiffers, says: "the host's values give"},
		{
			name: "another secret", seal: true, code: proof.VersionDiffers, says: "the host's values give",
			does: func(s *sample) {
				s.proof.Statement.Values.Env.Put("shop", ".env", "PASSWORD", mac("ffeeddccbbaa99887766554433221100"))
			},
		},
		{name: "a secret that is left out", does: func(s *sample) { s.proof.Statement.Values.Env = nil }, seal: true, code: proof.Code(ring.UndefinedVariable), says: "PASSWORD"},
		// The files of the commit.
		{name: "a file was changed", does: func(s *sample) { s.changed(s.blob("three\n"), "three", "evil!") }, seal: true, code: proof.FilesDiffer, says: "apps/shop/web.conf"},
		{name: "a file was left out", does: func(s *sample) { s.without(s.blob(composeFile)) }, seal: true, code: proof.FilesDiffer, says: "apps/shop/compose.yaml"},
		{
			name: "two files were exchanged", seal: true, code: proof.FilesDiffer, says: "apps/shop/compose.yaml",
			does: func(s *sample) { s.changed(s.blob(composeFile), composeFile, "three\n") },
		},
		// The commits.
		{name: "a commit's message was changed", does: func(s *sample) { s.changed(s.middle(), "Another file", "Another fine") }, seal: true, code: proof.ChainGap, says: "the chain has a gap"},
		{name: "a commit was left out", does: func(s *sample) { s.without(s.middle()) }, seal: true, code: proof.ChainGap, says: "is not in the proof or was changed"},
		{name: "the commit of the label was left out", does: func(s *sample) { s.without(s.tip) }, seal: true, code: proof.CommitMissing, says: "which the label names, is not in the proof"},
		{
			name: "the commit is not signed", code: proof.Code(ring.Unsigned), says: "is not signed",
			does: func(s *sample) { s.another(nil, s.clock, withEvil()) },
		},
		{
			name: "the commit is signed by a stranger", code: proof.Code(ring.UnknownSigner), says: "",
			does: func(s *sample) { s.another(&mallory, s.clock, withEvil()) },
		},
		{
			name: "a signature is of another commit", code: proof.Code(ring.BadSignature), says: "",
			does: func(s *sample) {
				good := string(s.objects[s.tip].Body)
				s.another(&alice, s.clock.Add(time.Minute), withEvil())
				own := string(s.objects[s.tip].Body)
				cut := func(body string) string { return body[strings.Index(body, "gpgsig"):strings.Index(body, "END SSH")] }
				s.tip = s.put("commit", []byte(strings.Replace(own, cut(own), cut(good), 1)))
				s.make(s.tip, s.intro)
			},
		},
		{
			name: "an unsigned commit lies below a signed one", code: proof.Code(ring.Unsigned), says: "is not signed",
			does: func(s *sample) {
				below := s.commit(nil, s.tree(withEvil()), "By nobody", s.middle())
				s.tip = s.commit(&alice, s.tree(sampleFiles("four\n")), "On top", below)
				s.make(s.tip, s.intro)
			},
		},
		{
			name: "the commit is on another history", code: proof.NotOnChain, says: "does not come after",
			does: func(s *sample) {
				s.tip = s.commit(&alice, s.tree(withEvil()), "A beginning of its own")
				s.make(s.tip, s.intro)
			},
		},
		{
			name: "the signer's key was revoked", code: proof.Code(ring.Revoked), says: "",
			asks: func(s *sample, a *proof.Asked) {
				key := strings.SplitN(strings.TrimSpace(bob.line("")), " ", 3)[2]
				a.Trust = s.trust("strict", alice.line("")+bob.line(""), key+"\n")
			},
		},
		{
			name: "a thief of an expired key dates his commit back", code: proof.Code(ring.KeyExpiredFirstSeen), says: "expired",
			does: func(s *sample) { s.another(&bob, s.clock.Add(-time.Minute), withEvil()) },
			asks: func(s *sample, a *proof.Asked) {
				a.Trust, a.Now = s.trust("strict", alice.line("")+bob.line(`,valid-before="20260302"`), ""), s.clock.AddDate(0, 1, 0)
			},
		},
		{
			name: "a key that is not valid yet", code: proof.Code(ring.KeyNotYetValid), says: "",
			asks: func(s *sample, a *proof.Asked) {
				a.Trust = s.trust("strict", alice.line("")+bob.line(`,valid-after="20270101"`), "")
			},
		},
		{
			name: "the chain begins later than what is known", seal: true, code: proof.NoBeginning, says: "which you know, is not in the proof",
			does: func(s *sample) { s.without(s.intro); s.proof.Statement.Chain.From = s.middle() },
		},
		{
			name: "it begins with what nobody signed, and nobody knows", code: proof.NoBeginning, says: "which nobody vouches for",
			does: func(s *sample) {
				begin := s.commit(nil, s.tree(withEvil()), "By nobody")
				s.tip = s.commit(&alice, s.tree(sampleFiles("four\n")), "On top", begin)
				s.make(s.tip, begin)
			},
			asks: func(_ *sample, a *proof.Asked) { a.From = nil },
		},
		{name: "objects that the statement does not name", does: func(s *sample) { s.proof.Objects, _ = proof.Pack(s.all()[1:]) }, seal: true, code: proof.ObjectsDiffer, says: "they are not those of the statement"},
		// The journal.
		{name: "the statement was changed after the host wrote it", does: func(s *sample) { s.proof.Statement.Container.State = ring.StateExited }, code: proof.StatementEdited, says: "the statement was changed"},
		{
			name: "a line of the journal was changed", code: proof.JournalChanged, says: "line 42 of the journal was changed",
			does: func(s *sample) {
				j := s.proof.Journal
				s.lines[1] = strings.Replace(s.lines[1], `"reason":"r"`, `"reason":"x"`, 1)
				s.proof.Journal = spoiled(s, j)
			},
		},
		{
			name: "a line of the journal is missing", code: proof.JournalGap, says: "line 42 is missing",
			does: func(s *sample) {
				s.lines = slices.Delete(s.lines, 1, 2)
				s.proof.Journal = chainOf(40, s.lines)
			},
		},
		{
			name: "the journal was cut off", code: proof.JournalGap, says: "is not the one about this proof",
			does: func(s *sample) { s.proof.Journal = chainOf(40, s.lines[:3]) },
		},
		{name: "the journal ends with another line than it says", does: func(s *sample) { s.proof.Journal.Head = strings.Repeat("0", 64) }, code: proof.JournalHead, says: "lines were cut off or changed"},
		{
			name: "the journal is another one than the host showed", code: proof.OtherJournal, says: "the host showed deadbeef",
			asks: func(_ *sample, a *proof.Asked) { a.Head = "deadbeef" },
		},
		{
			name: "an older proof is handed over again", code: proof.OlderProof, says: "this proof is older than the earlier one",
			asks: func(s *sample, a *proof.Asked) {
				newer := newSample(s.t)
				newer.proof.Journal = chainOf(40, append(slices.Clone(newer.lines[:3]), strings.Replace(newer.lines[2], `"seq":43`, `"seq":44`, 1),
					strings.Replace(newer.lines[3], `"seq":44`, `"seq":45`, 1)))
				a.Older = newer.file()
			},
		},
		{
			name: "the host wrote its history anew", code: proof.OtherJournal, says: "the host's history was written anew",
			asks: func(s *sample, a *proof.Asked) {
				older := newSample(s.t)
				older.lines[0] = strings.Replace(older.lines[0], "verified", "forced", 1)
				older.proof.Journal = chainOf(40, older.lines)
				a.Older = older.file()
			},
		},
		// What it is of.
		{name: "it is of another host", code: proof.OtherHost, says: "edge-9 is asked for", asks: func(_ *sample, a *proof.Asked) { a.Host = "edge-9" }},
		{name: "it is of another service", code: proof.OtherService, says: "shop/db is asked for", asks: func(_ *sample, a *proof.Asked) { a.ID = "shop/db" }},
		{name: "it is of another folder of the repository", code: proof.OtherSource, says: "your configuration follows hosts/edge-1", asks: func(_ *sample, a *proof.Asked) { a.Path = "hosts/edge-1" }},
		{name: "it is of another branch", code: proof.OtherSource, says: "your configuration follows release", asks: func(_ *sample, a *proof.Asked) { a.Branch = "release" }},
		{name: "it is too old", code: proof.TooOld, says: "nothing before", asks: func(s *sample, a *proof.Asked) { a.Oldest = s.clock.AddDate(0, 0, 1) }},
		{name: "it was made in the future", does: func(s *sample) { s.proof.Statement.Made = s.clock.AddDate(1, 0, 0) }, seal: true, code: proof.TooOld, says: "which is not yet"},
		// The file.
		{
			name: "a key stands in it twice", code: proof.DuplicateKey, says: `"statement.host" twice`,
			bytes: func(f []byte) []byte {
				return bytes.Replace(f, []byte(`{"host":"edge-1"`), []byte(`{"host":"edge-2","host":"edge-1"`), 1)
			},
		},
		{
			name: "a key stands in it in another spelling", code: proof.BadForm, says: "keys in another order or spelling",
			bytes: func(f []byte) []byte {
				return bytes.Replace(f, []byte(`{"host":"edge-1"`), []byte(`{"host":"edge-2","Host":"edge-1"`), 1)
			},
		},
		{
			name: "a key that no proof has", code: proof.UnknownKey, says: "trusted",
			bytes: func(f []byte) []byte {
				return bytes.Replace(f, []byte(`{"host":`), []byte(`{"trusted":true,"host":`), 1)
			},
		},
		{name: "something follows it", code: proof.BadForm, says: "something follows", bytes: func(f []byte) []byte { return append(slices.Clone(f), f...) }},
		{name: "it is cut off", code: proof.BadForm, says: "cut off", bytes: func(f []byte) []byte { return f[:len(f)/2] }},
		{name: "another format", code: proof.UnknownFormat, says: "gitring.proof/2", bytes: func(f []byte) []byte {
			return bytes.Replace(f, []byte("gitring.proof/1"), []byte("gitring.proof/2"), 1)
		}},
		{name: "it is too large", code: proof.TooLarge, says: "at most", bytes: func([]byte) []byte { return make([]byte, proof.MostRead+1) }},
	}
}

// spoiled is a journal of which one line is another one than its hash says.
func spoiled(s *sample, was proof.Journal) proof.Journal {
	now := chainOf(40, s.lines)
	now.Lines = relined(s.t, was, s.lines)
	now.Head = was.Head
	return now
}

// relined are lines with the hashes that others had.
func relined(t *testing.T, was proof.Journal, lines []string) []byte {
	t.Helper()
	hashes := strings.Split(string(inflate(t, was.Lines)), "\n")
	var out strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&out, "%s %s\n", hashes[i][:8], l)
	}
	return deflate(t, out.String())
}

func TestEachKindOfTamperingIsFoundAndNamed(t *testing.T) {
	all := tamperings()
	require.GreaterOrEqual(t, len(all), 30)
	names := map[string]bool{}
	for _, tt := range all {
		require.False(t, names[tt.name], tt.name)
		names[tt.name] = true
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
				file = tt.bytes(file)
			}
			ask := s.asked()
			if tt.asks != nil {
				tt.asks(s, &ask)
			}
			found := proof.Check(file, ask)
			require.False(t, found.Holds)
			i := slices.IndexFunc(found.Faults, func(f proof.Fault) bool { return f.Code == tt.code && strings.Contains(f.Says, tt.says) })
			require.GreaterOrEqual(t, i, 0, "%v", found.Faults)
		})
	}
}

// Who is not careful is found by the journal alone, whatever he changed of the statement.
func TestAStatementThatIsChangedAloneIsNotTheOneThatTheJournalNames(t *testing.T) {
	for _, tt := range tamperings() {
		if !tt.seal {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := newSample(t)
			before, err := json.Marshal(s.proof.Statement)
			require.NoError(t, err)
			tt.does(s)
			after, err := json.Marshal(s.proof.Statement)
			require.NoError(t, err)
			if bytes.Equal(before, after) {
				return // the objects alone
			}
			found := proof.Check(s.file(), s.asked())
			require.Condition(t, func() bool {
				return slices.ContainsFunc(found.Faults, func(f proof.Fault) bool { return f.Code == proof.StatementEdited })
			}, "%v", found.Faults)
		})
	}
}

// No byte of a proof can be changed without being found, but for the few bits with which
// a compressed text is filled up to a byte: they are no part of it.
func TestNoByteOfAProofCanBeChanged(t *testing.T) {
	s := newSample(t)
	file, ask := s.file(), s.asked()
	same := proof.Check(file, ask)
	require.True(t, same.Holds)
	filling := 0
	step := 7
	if testing.Short() {
		step = 97
	}
	for i := 0; i < len(file); i += step {
		other := slices.Clone(file)
		other[i] ^= 1
		if found := proof.Check(other, ask); found.Holds {
			require.Equal(t, same, found, "byte %d, %q became %q", i, file[i], other[i])
			filling++
		}
	}
	require.LessOrEqual(t, filling, 2)
}
