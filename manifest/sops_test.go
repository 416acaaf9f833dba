package manifest

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The shapes that sops 3 writes; the values are not anybody's.
const (
	sopsYAML = "password: ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:YQ==,type:str]\nsops:\n    age:\n        - recipient: age1x\n    lastmodified: \"2026-01-01T00:00:00Z\"\n    mac: ENC[AES256_GCM,data:YmFy,iv:YQ==,tag:YQ==,type:str]\n    version: 3.10.2\n"
	sopsJSON = "{\n\t\"data\": \"ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:YQ==,type:str]\",\n\t\"sops\": {\n\t\t\"lastmodified\": \"2026-01-01T00:00:00Z\",\n\t\t\"mac\": \"ENC[AES256_GCM,data:YmFy,iv:YQ==,tag:YQ==,type:str]\"\n\t}\n}\n"
	sopsEnv  = "PASSWORD=ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:YQ==,type:str]\nsops_lastmodified=2026-01-01T00:00:00Z\nsops_mac=ENC[AES256_GCM,data:YmFy,iv:YQ==,tag:YQ==,type:str]\nsops_version=3.10.2\n"
	sopsIni  = "[a]\npassword = ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:YQ==,type:str]\n\n[sops]\nmac = ENC[AES256_GCM,data:YmFy,iv:YQ==,tag:YQ==,type:str]\n"
)

func TestNoContainerIsGivenCiphertextInPlaceOfAFile(t *testing.T) {
	web := func(rest string) string { return "services: {web: {image: nginx, " + rest + "\n" }
	for _, tt := range []struct {
		name, compose, file, body string
		refused                   bool
	}{
		{"a mounted file", web("volumes: ['./c.yaml:/c.yaml:ro']}}"), "c.yaml", sopsYAML, true},
		{"whatever its name", web("volumes: ['./c.txt:/c.txt:ro']}}"), "c.txt", sopsJSON, true},
		{"in a mounted folder", web("volumes: ['./conf:/conf:ro']}}"), "conf/sub/a.ini", sopsIni, true},
		{"an env file that is mounted", web("volumes: ['./db.env:/db.env:ro']}}"), "db.env", sopsEnv, true},
		{"an env_file", web("env_file: [db.enc.env]}}"), "db.enc.env", sopsEnv, true},
		{"the project's variables", web("environment: {P: '${PASSWORD:-x}'}}}"), ".env", sopsEnv, true},
		{"a secret", web("secrets: [tls]}}\nsecrets: {tls: {file: ./tls.enc}}"), "tls.enc", sopsJSON, true},
		{"a config", web("configs: [c]}}\nconfigs: {c: {file: ./c}}"), "c", sopsYAML, true},
		{"one that nothing reads", web("user: '1'}}"), "secret.enc.yaml", sopsYAML, false},
		{"one that speaks of it", web("volumes: ['./c.md:/c.md:ro']}}"), "c.md", "# how\n\nIt ends with\n\n    sops:\n        mac: ENC[AES256_GCM,data:YmFy]\n", false},
		{"one value without metadata", web("volumes: ['./c.yaml:/c.yaml:ro']}}"), "c.yaml", "a: ENC[AES256_GCM,data:Zm9v,iv:YQ==,tag:YQ==,type:str]\n", false},
		{"a rule file", web("volumes: ['./c.yaml:/c.yaml:ro']}}"), "c.yaml", "creation_rules: [{age: age1x}]\nsops: {mac: none}\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{
				"web/compose.yaml":  {Data: []byte(tt.compose), Mode: 0o644},
				"web/" + tt.file:    {Data: []byte(tt.body), Mode: 0o644},
				"other/compose.yml": {Data: []byte("services: {o: {image: nginx}}\n"), Mode: 0o644},
			}
			r := Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, settings())
			_, there := r.Plan.App("web")
			require.Equal(t, !tt.refused, there, "%v", r.Refusals)
			_, other := r.Plan.App("other")
			require.True(t, other, "its neighbour goes on")
			if !tt.refused {
				return
			}
			require.NotEmpty(t, r.Refusals)
			require.Contains(t, []ring.Code{ring.SecretForm, ring.SecretKey}, r.Refusals[0].Code)
			require.NotEmpty(t, r.Refusals[0].Hint)
			require.Contains(t, r.Refusals[0].File+" "+r.Refusals[0].Says, "web/"+tt.file)
		})
	}
}

// Two services, and gitring.yaml, read one file that cannot be opened: it is told once.
func TestAFileThatSeveralServicesReadIsRefusedOnce(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml": "services: {a: {image: a, env_file: [s.env]}, b: {image: a, env_file: [s.env]}}\n",
		"web/s.env":        "A=ENC[AES256_GCM,data:f08=,iv:H/HUzb57P9YwTXB2kUz4bPXsOvki7foeFt9n07lfp88=,tag:Cuq8h0f/gTaRhSPIKbCscA==,type:str]\nsops_version=3.8.1\n",
		gitringFile:        "version: 1\napps: [{path: web, env_files: [s.env]}]\n",
	}
	if _, all := Check(repo(files), settings()); len(all) != 1 || all[0].File != "web/s.env" {
		t.Error(dump(t, all))
	}
}

// refusing is an opener that refuses each file so.
type refusing ring.Refusal

func (refusing) Encrypted(body []byte) bool { return string(body) == "sealed" }

func (r refusing) Open(SecretFile) (*OpenedFile, *ring.Refusal) {
	one := ring.Refusal(r)
	return nil, &one
}

func (refusing) Provided(SecretRef) (ProvidedValue, *ring.Refusal) { return ProvidedValue{}, nil }

// What an opener says of the file has the file's name before it. What it says of a value does
// not, not even of one whose name is "it".
func TestTheFileIsTheSubjectOfWhatIsSaidOfIt(t *testing.T) {
	for says, r := range map[string]ring.Refusal{
		"web/s.env is not encrypted":                 {Code: ring.SecretForm, OfFile: true, Says: "is not encrypted"},
		"web/s.env has no MAC":                       {Code: ring.SecretMAC, OfFile: true, Says: "has no MAC"},
		"web/s.env: it was changed":                  {Code: ring.SecretMAC, Says: "it was changed"},
		"it = 1 is a line that no reader of env has": {Code: ring.SecretForm, Says: "it = 1 is a line that no reader of env has"},
	} {
		s := settings()
		s.Secrets = refusing(r)
		_, got := Check(repo(map[string]string{"web/compose.yaml": "services: {a: {image: a, env_file: [s.env]}}\n", "web/s.env": "sealed"}), s)
		require.Len(t, got, 1)
		require.Equal(t, says, got[0].Says)
	}
}
