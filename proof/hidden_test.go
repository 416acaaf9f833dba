package proof_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/proof"
)

// asHost has the host write its proof of a commit that it runs as it likes, with all in it
// fitting together: as somebody does who owns the host.
func (s *sample) asHost(change func(st *proof.Statement)) {
	s.t.Helper()
	st := &s.proof.Statement
	change(st)
	found, err := proof.Compute(s.commitOf(s.tip), st)
	require.NoError(s.t, err)
	st.Version = found.Service.Version
	s.label("gitring.version", string(st.Version))
	s.pack()
	s.journal()
}

// withCompose has alice sign another Compose file on top.
func (s *sample) withCompose(text string, more map[string]string) {
	files := sampleFiles("three\n")
	files["apps/shop/compose.yaml"] = text
	for name, body := range more {
		files[name] = body
	}
	s.tip = s.commitAt(&alice, s.clock, s.tree(files), "Another tip", s.middle())
	s.proof.Statement.Commit = s.tip
	s.label("gitring.commit", string(s.tip))
}

func TestADigestOfTheHostIsNotSaidToBeTheCommits(t *testing.T) {
	for name, image := range map[string]string{"all of it": "${IMAGE}", "the digest": "nginx:1.27@${DIGEST}", "a letter of it": "nginx:1.27@sha256:${LETTER}" + digestB[len("sha256:")+1:]} {
		t.Run(name, func(t *testing.T) {
			s := newSample(t)
			s.withCompose(strings.Replace(composeFile, "nginx:1.27", image, 1), nil)
			s.asHost(func(st *proof.Statement) {
				st.Values.Interpolation["IMAGE"], st.Values.Interpolation["DIGEST"], st.Values.Interpolation["LETTER"] = "nginx:1.27@"+digestB, digestB, "b"
				st.Pins["web"] = proof.Pin{Image: "nginx:1.27@" + digestB}
				st.Container.Image = "nginx:1.27@" + digestB
			})
			found := proof.Check(s.file(), s.asked())
			require.Empty(t, found.Faults)
			require.False(t, found.Image.Signed, "the host chose it, and nobody signed it")
			require.Contains(t, strings.Join(found.Word, "\n"), "sha256:bbbb")
		})
	}
}

func TestAnEmptyValueOfTheHostIsToldOf(t *testing.T) {
	s := newSample(t)
	s.withCompose(strings.Replace(composeFile, `"${PASSWORD}"`, `"${PASSWORD}", LOGIN_REQUIRED: "${LOGIN_REQUIRED}"`, 1), map[string]string{"apps/shop/.env": "LOGIN_REQUIRED=yes\n"})
	s.asHost(func(st *proof.Statement) { st.Values.Env.Put("shop", ".env", "LOGIN_REQUIRED", manifest.SealedValue{}) })
	found := proof.Check(s.file(), s.asked())
	require.Empty(t, found.Faults)
	require.Contains(t, strings.Join(found.Word, "\n"), "LOGIN_REQUIRED of .env")
}

// What SOPS writes of two variables; nobody has the key.
const encryptedEnv = `PASSWORD=ENC[AES256_GCM,data:Zm9v,iv:H/HUzb57P9YwTXB2kUz4bPXsOvki7foeFt9n07lfp88=,tag:Cuq8h0f/gTaRhSPIKbCscA==,type:str]
REQUIRE_LOGIN=ENC[AES256_GCM,data:Zm9v,iv:H/HUzb57P9YwTXB2kUz4bPXsOvki7foeFt9n07lfp88=,tag:Cuq8h0f/gTaRhSPIKbCscA==,type:str]
PLAIN=
sops_age__list_0__map_recipient=age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
sops_age__list_0__map_enc=-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n
sops_lastmodified=2026-01-01T00:00:00Z
sops_mac=ENC[AES256_GCM,data:YmFy,iv:H/HUzb57P9YwTXB2kUz4bPXsOvki7foeFt9n07lfp88=,tag:Cuq8h0f/gTaRhSPIKbCscA==,type:str]
sops_unencrypted_suffix=_unencrypted
sops_version=3.10.2
`

// The names in such a file are for everybody to read, so a host is not asked which there are.
func TestAnEncryptedFileHasTheVariablesThatItNamesAndNoOther(t *testing.T) {
	const file = "apps/shop/db.enc.env"
	hash := func(n string) manifest.SealedValue {
		return manifest.SealedValue{MAC: strings.Repeat(n, 32)}
	}
	for name, change := range map[string]func(of map[string]manifest.SealedValue){
		"one that is not in it": func(of map[string]manifest.SealedValue) { of["DEBUG_SHELL"] = hash("3") },
		"one that is left out":  func(of map[string]manifest.SealedValue) { delete(of, "REQUIRE_LOGIN") },
		"one that is emptied":   func(of map[string]manifest.SealedValue) { of["REQUIRE_LOGIN"] = manifest.SealedValue{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSample(t)
			s.withCompose(strings.Replace(composeFile, "    image: nginx:1.27\n", "    image: nginx:1.27\n    env_file: [db.enc.env]\n", 1), map[string]string{file: encryptedEnv})
			honest := map[string]manifest.SealedValue{"PASSWORD": hash("1"), "REQUIRE_LOGIN": hash("2"), "PLAIN": {}}
			put := func(st *proof.Statement, of map[string]manifest.SealedValue) {
				st.Values.Files = manifest.SealedValues{"shop": {file: of}}
			}
			s.asHost(func(st *proof.Statement) { put(st, honest) })
			found := proof.Check(s.file(), s.asked())
			require.Empty(t, found.Faults)
			at := s.proof.Statement.Version

			change(honest)
			put(&s.proof.Statement, honest)
			s.journal()
			found = proof.Check(s.file(), s.asked())
			switch name {
			case "one that is not in it": // it counts for nothing
				require.Equal(t, at, found.Version)
			case "one that is left out":
				require.Len(t, found.Faults, 1)
				require.Contains(t, found.Faults[0].Says, "REQUIRE_LOGIN of apps/shop/db.enc.env, of which the proof says nothing")
			case "one that is emptied":
				require.Equal(t, proof.VersionDiffers, found.Faults[0].Code)
				require.Contains(t, strings.Join(found.Word, "\n"), "are empty: PLAIN of apps/shop/db.enc.env, REQUIRE_LOGIN of apps/shop/db.enc.env")
			}
		})
	}
}

func TestAValueOfAProviderThatIsLeftOutIsMissed(t *testing.T) {
	const ref = "vault:secret/shop/db"
	s := newSample(t)
	s.withCompose("x-gitring: {secrets: {PW: \""+ref+"\"}}\n"+strings.Replace(composeFile, `LEVEL: `, `PW: "${PW}", LEVEL: `, 1), nil)
	said := manifest.SealedValues{"shop": {ref: {"PW": {MAC: strings.Repeat("4", 32)}}}}
	s.asHost(func(st *proof.Statement) { st.Values.Files = said })
	found := proof.Check(s.file(), s.asked())
	require.Empty(t, found.Faults)
	require.Contains(t, strings.Join(found.Word, "\n"), "PW of "+ref)

	s.proof.Statement.Values.Files = nil
	s.journal()
	found = proof.Check(s.file(), s.asked())
	require.False(t, found.Holds)
	require.Contains(t, found.Faults[0].Says, "PW of "+ref+", of which the proof says nothing")
}
