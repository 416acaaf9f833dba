package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tester is a test, or one run of a property.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// withHost are settings with files in the env folder of the app web.
func withHost(files map[string]string) Settings {
	s := settings()
	s.EnvKey = []byte("key")
	s.Env = map[string]map[string][]byte{"web": {}}
	for name, text := range files {
		s.Env["web"][name] = []byte(text)
	}
	return s
}

// opened is text with the sealed values of the app web as they are.
func opened(t tester, s Settings, text string) string {
	t.Helper()
	of, r := Seal("web", s.Env["web"], s.EnvKey, s.Interpolation)
	if r != nil {
		t.Fatal(r)
	}
	out, err := ring.Open(text, func(sealed ring.Sealed) (string, error) {
		plain, ok := of[sealed]
		if !ok {
			return "", fmt.Errorf("nothing opens %+v", sealed)
		}
		return plain, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheHostsValuesStandSealed(t *testing.T) {
	s := withHost(map[string]string{".env": "PW=s3cret word\nURL=\"db://$PW@$PLACE\"\nEMPTY=\nPORT=8080\nUSER_=carl\nLINE=AS=one\n"})
	s.Interpolation = map[string]string{"PLACE": "here", "USER_": "over"}
	a, contents := onlyApp(t, s, map[string]string{
		"web/.env": "OWN=x${PW}y\nPORT=1\n",
		"web/compose.yaml": `services:
  web:
    image: "a:${PORT}"
    user: "${USER_}"
    command: "run $PW --url=$URL"
    entrypoint: ["$PW"]
    environment: ["A=$PW", "B=pre-$OWN-post", PW, "E=$EMPTY", "$LINE", "SET=${PW:+yes}", "NOT=${EMPTY:-fallback}", "U=${USER_}"]
    labels: {l: "${PW:?must}"}
    healthcheck: {test: "curl $PW"}
    logging: {driver: local, options: {tag: "$PW"}}
    post_start: [{command: ["x", "$PW"], environment: {PW: }}]
    ports: ["$PORT:80"]
    configs: [c, d]
    secrets: [s]
configs:
  c: {content: "password=$PW"}
  d: {content: "plain"}
secrets: {s: {environment: URL}}
`,
	})
	web := serviceOf(t, a, "web").Spec
	got := map[string]string{}
	for name, text := range web.Environment {
		got[name] = opened(t, s, text)
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s stands in the plan as it is: %q", name, text)
		}
	}
	want := map[string]string{"A": "s3cret word", "B": "pre-xs3cret wordy-post", "PW": "s3cret word", "E": "", "AS": "one", "SET": "yes", "NOT": "fallback", "U": "over"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	command := strings.Split(opened(t, s, strings.Join(web.Command, "|")), "|")
	if d := cmp.Diff([]string{"run", "s3cret word", "--url=db://s3cret word@here"}, command); d != "" {
		t.Error(d)
	}
	for what, text := range map[string]string{
		"entrypoint": web.Entrypoint[0], "label": web.Labels["l"], "hook": web.PostStart[0].Command[1],
		"hook's environment": web.PostStart[0].Environment["PW"], "option": web.Logging.Options["tag"],
	} {
		if opened(t, s, text) != "s3cret word" || !ring.HasSealed(text) {
			t.Errorf("%s is %q", what, text)
		}
	}
	if got := web.Healthcheck.Test[1]; !ring.HasSealed(got) || opened(t, s, got) != "curl s3cret word" {
		t.Errorf("healthcheck is %q", got)
	}
	if web.Image != "a:8080" || web.Ports[0].HostPort != "8080" || web.User != "over" {
		t.Errorf("%+v", web)
	}
	if got := opened(t, s, textAt(t, contents, web, "/c")); got != "password=s3cret word" {
		t.Errorf("config is %q", got)
	}
	if got := opened(t, s, textAt(t, contents, web, "/run/secrets/s")); got != "db://s3cret word@here" {
		t.Errorf("secret is %q", got)
	}
	for _, m := range web.Mounts {
		if f := contents[m.Source].Files[0]; f.Sealed != (m.Target != "/d") {
			t.Errorf("%s: sealed is %v", m.Target, f.Sealed)
		}
		if all := contents[m.Source].Files; all[0].Sealed && (len(all) != 1 || all[0].Path != ring.ValueFile) {
			t.Errorf("%s: by its one file %s the store knows what holds a value", m.Target, ring.ValueFile)
		}
	}
	var told []string
	for _, n := range a.Notes {
		if strings.Contains(n, "host's env") {
			told = append(told, n)
		}
	}
	if d := cmp.Diff([]string{
		"LINE of the host's env is used in environment and stands in the plan as it is",
		"PORT of the host's env is used in image and stands in the plan as it is",
		"PORT of the host's env is used in ports and stands in the plan as it is",
	}, told); d != "" {
		t.Error(d)
	}
}

func TestTheOrderOfVariablesWithTheHost(t *testing.T) {
	s := withHost(map[string]string{".env": "B=host\nC=host\nD=host\n"})
	s.Interpolation = map[string]string{"D": "config"}
	a, _ := onlyApp(t, s, map[string]string{
		gitringFile:        "version: 1\napps: [{name: web, path: web, env_files: [c.env]}]\n",
		"web/.env":         "A=commit\nB=commit\nC=commit\nD=commit\nSEES=$B\n",
		"web/c.env":        "C=file\nD=file\n",
		"web/compose.yaml": "services: {web: {image: a, environment: {V: '$A $B $C $D $SEES'}}}\n",
	})
	if got := opened(t, s, serviceOf(t, a, "web").Spec.Environment["V"]); got != "commit host file config host" {
		t.Errorf("got %q", got)
	}
}

func TestFilesOfTheHostStandInForThoseOfTheCommit(t *testing.T) {
	s := withHost(map[string]string{
		".env": "DOT=host\n", "conf/db.env": "A='a b'\nB=\"$A\"\n", "raw.env": "R='x' $y\n", "held.env": "H=host\n", "listed.env": "L=listed\n",
		"key.pem": "-----\n\x1b\x00binary", "sub/.env": "SUB=sub\n",
	})
	a, contents := onlyApp(t, s, map[string]string{
		gitringFile:    "version: 1\napps: [{name: web, path: web, env_files: [listed.env]}]\n",
		"web/held.env": "H=commit\n",
		"web/.env":     "DOT=commit\nTWO=commit\n",
		"web/compose.yaml": `include: [sub/compose.yaml]
services:
  web:
    image: a
    environment: [L]
    env_file: [.env, conf/db.env, held.env, {path: raw.env, format: raw}, {path: no.env, required: false}]
    secrets: [{source: k, target: key, mode: 0400, uid: "5"}]
    configs: [{source: k, target: /etc/x.pem, mode: 0555}]
secrets: {k: {file: ./key.pem}}
configs: {k: {file: key.pem}}
`,
		"web/sub/compose.yaml": "services: {sub: {image: a, environment: [SUB]}}\n",
	})
	web := serviceOf(t, a, "web").Spec
	got := map[string]string{}
	for name, text := range web.Environment {
		got[name] = opened(t, s, text)
	}
	if d := cmp.Diff(map[string]string{"DOT": "host", "TWO": "commit", "A": "a b", "B": "a b", "H": "commit", "R": "'x' $y", "L": "listed"}, got); d != "" {
		t.Error(d)
	}
	for _, target := range []string{"/run/secrets/key", "/etc/x.pem"} {
		if got := opened(t, s, textAt(t, contents, web, target)); got != "-----\n\x1b\x00binary" {
			t.Errorf("%s is %q", target, got)
		}
	}
	if got := opened(t, s, serviceOf(t, a, "sub").Spec.Environment["SUB"]); got != "sub" {
		t.Errorf("sub is %q", got)
	}
	if notes := strings.Join(a.Notes, "\n"); strings.Contains(notes, "of secret k") {
		t.Error(notes)
	}
	for _, m := range web.Mounts {
		if as := contents[m.Source].Files[0].As; m.Target == "/run/secrets/key" && (as == nil || *as != ring.FileOwner{UID: 5, Mode: 0o400}) {
			t.Errorf("%s is for %v", m.Target, as)
		}
	}
}

func TestWithoutAKeyNothingOfTheHostIsUsed(t *testing.T) {
	files := map[string]string{"web/compose.yaml": "services: {web: {image: a, env_file: x.env}}\n"}
	for _, host := range []string{".env", "x.env"} {
		s := withHost(map[string]string{host: "A=1\n", "x.env": "A=1\n"})
		s.EnvKey = nil
		plan, _ := Read(repo(files), s)
		if r := plan.Refused["web"]; r == nil || !strings.Contains(r.Says, "no key") || r.File == "" {
			t.Errorf("%s: %v", host, r)
		}
	}
	if _, r := Seal("web", map[string][]byte{".env": nil}, nil, nil); r == nil {
		t.Error("sealed without a key")
	}
	if of, r := Seal("web", nil, nil, nil); r != nil || len(of) != 0 {
		t.Error("an app without files needs no key")
	}
}

// A refusal goes to the forge: it holds no value of the host, in whichever place
// it was used, and none of the bytes of a line that cannot be read.
func TestRefusalsHoldNoValueOfTheHost(t *testing.T) {
	const pw = "hunter2-hunter2"
	long := strings.Repeat("verylongsecret", 20)
	for _, text := range []string{
		"services: {web: {image: a, ports: ['$PW:80']}}", "services: {web: {image: a, restart: $PW}}", "services: {web: {image: 'A$PW'}}",
		"services: {web: {image: a, volumes: ['~/$PW:/x']}}", "services: {web: {image: a, volumes: ['$PW']}}", "services: {web: {image: a, environment: ['=$PW']}}",
		"services: {web: {image: a, command: 'x | $PW'}}", "services: {web: {image: a, healthcheck: {test: ['$PW', a]}}}", "services: {web: {image: a, networks: ['$PW']}}",
		"services: {web: {image: a, env_file: '$PW'}}", "services: {web: {image: a, env_file: '/$PW'}}", "services: {web: {image: a, extends: '$PW'}}",
		"include: ['$PW']\nservices: {web: {image: a}}", "services: {web: {image: a, secrets: ['$PW']}}", "services: {web: {image: a, labels: ['gitring.$PW=1']}}",
		"services: {web: {image: a, deploy: {replicas: $PW}}}", "services: {web: {image: a, stop_grace_period: $PW}}", "services: {web: {image: a, user: '$LONG', restart: '$LONG'}}",
		"services: {web: {image: a, extra_hosts: ['x$LONG']}}", "services: {web: {image: a, mem_limit: $PW}}", "services: {web: {image: a, logging: {driver: local, options: {'max-size': '${PW:?$PW}', x: $PW}}}}",
		"services: {web: {image: a, x-gitring: {kind: $PW}}}", "include: [inc.yaml]\nservices: {web: {image: a}}", "services: {web: {image: a, command: '${NO:?$PW}'}}",
	} {
		s := withHost(map[string]string{".env": "PW=" + pw + "\nLONG=" + long + "\n"})
		s.Env["web"]["inc.env"] = []byte("INC=" + pw + "\n")
		plan, all := Check(repo(map[string]string{"web/compose.yaml": strings.Replace(text, "[inc.yaml]", "[{path: inc.yaml, env_file: inc.env}]", 1), "web/inc.yaml": "services: {x: {image: a, restart: $INC}}\n"}), s)
		if len(all) == 0 {
			t.Errorf("%s is not refused", text)
		}
		if got := dump(t, all) + dump(t, plan); strings.Contains(got, pw) || strings.Contains(got, "hunter2") || strings.Contains(got, "longsecret") || strings.Contains(got, `\u001b`) {
			t.Errorf("%s: %s", text, got)
		}
	}
	// Quoted, a value reads otherwise.
	for _, text := range []string{"image: '$PW'", "image: a, restart: '$PW'", "image: a, mem_limit: '$PW'", "image: a, hostname: '$PW'", "image: a, dns: ['$PW']", "image: a, ports: ['$ODD:80']", "image: a, ports: ['$PARTS:80']", "image: a, hostname: '$LONG'", "image: a, ports: [{target: 80, published: '$PARTS'}]"} {
		_, all := Check(repo(map[string]string{"web/compose.yaml": "services: {web: {" + text + "}}"}), withHost(map[string]string{".env": "PW='hunter \\\\z \"q\"'\nODD=hunter:ten:1\nPARTS='hunter/hunter \"x\"'\nLONG='" + strings.Repeat("hunter\"", 90) + "'\n"}))
		if got := dump(t, all); len(all) == 0 || strings.Contains(got, "hunter") {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, body := range []string{"PW=a$hunter2\n", "PW='hunter2\n", "hunter2 x\n", "PW=${hunter2!}\n", "hunter2\n", "PW=${X:?hunter2}\n"} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a}}"}), withHost(map[string]string{".env": body}))
		if r := plan.Refused["web"]; r == nil || strings.Contains(dump(t, plan), "hunter2") || r.Where() != "<env.dir>/web/.env:1" || !strings.Contains(r.Hint, "single quotes") {
			t.Errorf("%q: %s", body, dump(t, plan))
		}
		if _, r := Seal("web", map[string][]byte{".env": []byte(body)}, []byte("k"), nil); r == nil || strings.Contains(r.Error(), "hunter2") {
			t.Errorf("%q is sealed: %v", body, r)
		}
	}
}

// A service is told by its name, also where a value of the host is the same text; what is
// told of it is still without the value.
func TestAServiceThatIsCalledAsAValueIsIsNamed(t *testing.T) {
	s := withHost(map[string]string{".env": "HOST=redis\nLONG=redis.cache\nPARTS='hunter/hunter \"x\"'\n"})
	compose := "services:\n  redis:\n    image: a\n    restart: $HOST\n    ports: ['$PARTS:80']\n  redis.cache: {image: a, restart: $LONG}\n"
	_, all := Check(repo(map[string]string{"web/compose.yaml": compose}), s)
	var says []string
	for _, r := range all {
		says = append(says, r.Says)
	}
	got := strings.Join(says, "\n")
	if len(all) != 4 || strings.Count(got, "services.redis.restart") != 1 || strings.Count(got, "services.redis.cache.restart") != 1 ||
		strings.Count(got, "services.redis.ports") != 2 || strings.Contains(got, "hunter") || strings.Count(got, "redis") != 4 {
		t.Error(got)
	}
}

// Ten thousand values and three hundred faults cost what their texts are long, and not one
// times the other: looked for one by one this took minutes.
func TestManyValuesAreKeptOutOfManyRefusals(t *testing.T) {
	var env, services strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&env, "V%d=hunter-%d-x\n", i, i)
	}
	for i := range 300 {
		fmt.Fprintf(&services, "  s%d: {image: a, restart: $V%d}\n", i, i)
	}
	_, all := Check(repo(map[string]string{"web/compose.yaml": "services:\n" + services.String()}), withHost(map[string]string{".env": env.String()}))
	if got := dump(t, all); len(all) < 100 || strings.Contains(got, "hunter") {
		t.Errorf("%d refusals: %.300s", len(all), got)
	}
}

// Nobody writes a sealed value by hand.
func TestTheMarkOfSealedValuesIsRefused(t *testing.T) {
	token := ring.Sealed{App: "other", File: ".env", Name: "PW", MAC: "00"}.String()
	quoted := strings.ReplaceAll(token, "\x1b", `\e`)
	compose := "services: {web: {image: a, env_file: {path: a.env, required: false}, environment: {X: '$X'}}}\n"
	compose = strings.Replace(compose, "env_file: {path: a.env, required: false}", "env_file: [{path: a.env, required: false}]", 1)
	for what, files := range map[string]map[string]string{
		"in YAML":          {"web/compose.yaml": "services: {web: {image: a, environment: {X: \"" + quoted + "\"}}}\n"},
		"in a key":         {"web/compose.yaml": "services: {web: {image: a, environment: {\"" + quoted + "\": x}}}\n"},
		"in .env":          {"web/compose.yaml": compose, "web/.env": "X='" + token + "'\n"},
		"in an env file":   {"web/compose.yaml": compose, "web/.env": "X=1\n", "web/a.env": "A=" + token + "\n"},
		"in a label file":  {"web/compose.yaml": "services: {web: {image: a, label_file: a.env}}\n", "web/a.env": "A='" + token + "'\n"},
		"in gitring.yaml":  {"web/compose.yaml": compose, "web/.env": "X=1\n", gitringFile: "version: 1\napps: [{path: web, name: \"" + quoted + "\"}]\n"},
		"in a description": {"web/compose.yaml": "x-note: \"" + quoted + "\"\nservices: {web: {image: a}}\n"},
	} {
		plan, all := Check(repo(files), withHost(nil))
		if len(plan.Apps) != 0 || len(all) == 0 || !strings.Contains(all[0].Says, "ESC") || all[0].Line == 0 {
			t.Errorf("%s: %s", what, dump(t, plan))
		}
	}
	s := withHost(nil)
	s.Interpolation = map[string]string{"X": token}
	if plan, _ := Read(repo(map[string]string{"web/compose.yaml": compose}), s); len(plan.Apps) != 0 {
		t.Errorf("by the configuration: %s", dump(t, plan))
	}
	// the bytes of a file that is mounted are the commit's own business
	a, contents := onlyApp(t, withHost(nil), map[string]string{
		"web/compose.yaml": "services: {web: {image: a, volumes: ['./f:/f']}}\n", "web/f": token,
	})
	if f := contents[a.Services[0].Spec.Mounts[0].Source].Files[0]; f.Sealed {
		t.Error("a file of the commit would be opened")
	}
}

// sealedPlaces are where a value may stand, each with a text around it.
var sealedPlaces = []string{
	"    environment: {K: %q}\n", "    environment: [%q]\n", "    labels: {k: %q}\n", "    labels: [%q]\n", "    annotations: {k: %q}\n",
	"    command: [a, %q]\n", "    entrypoint: [a, %q]\n", "    healthcheck: {test: [CMD, %q]}\n", "    healthcheck: {test: %q}\n",
	"    logging: {driver: local, options: {tag: %q}}\n", "    post_start: [{command: [%q]}]\n", "    pre_stop: [{command: [a], environment: {K: %q}}]\n",
	"    post_start: [{command: [a], environment: [%q]}]\n",
	"    secrets: [s]\nsecrets: {s: {environment: PW}}\nx-a: %q\n", "    configs: [c]\nconfigs: {c: {content: %q}}\n", "    env_file: [a.env]\nx-a: %q\n", "    env_file: [host.env]\nx-a: %q\n",
	"    secrets: [s]\nsecrets: {s: {file: host.env}}\nx-a: %q\n",
}

// Wherever a value of the host may stand sealed it is in no byte of what is kept
// or told; opened, the plan is what Compose would have run; and the version is the
// value's, whatever other apps have.
func TestSealedValuesAreNowhereAndOpenToWhatTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pw := "Zq" + rapid.StringMatching(`[ -!#-&(-\[\]-~]{6,30}`).Draw(t, "value") + "qZ" // no quotes and no backslash
		uses := []string{"$PW", "x${PW}y", "${PW:-no}", "${NO:-$PW}", "${PW:+$PW}", "$PW$PW", "$VIA"}
		use := rapid.SampledFrom(uses).Draw(t, "use")
		where := rapid.SampledFrom(sealedPlaces).Draw(t, "place")
		text := use
		if strings.Contains(where, "environment: [%q]") || strings.Contains(where, "labels: [%q]") {
			text = "K=" + use
		}
		files := map[string]string{"web/.env": "VIA=<$PW>\n", "web/a.env": "FROM=" + use + "\n", "web/compose.yaml": "services:\n  web:\n    image: a\n" + fmt.Sprintf(where, text)}
		host := func(pw string) Settings {
			return withHost(map[string]string{".env": "PW='" + pw + "'\n", "host.env": "H='" + pw + "'\n"})
		}
		s := host(pw)
		plan, contents := Read(repo(files), s)
		if len(plan.Apps) != 1 {
			t.Fatalf("%s: %v", files["web/compose.yaml"], plan.Refused["web"])
		}
		all := everything(t, plan, contents)
		if strings.Contains(all, pw) || strings.Contains(all, "Zq") {
			t.Fatalf("%s: %s", files["web/compose.yaml"], all)
		}
		files["web/host.env"], files["web/.env"] = "H='"+pw+"'\n", "PW='"+pw+"'\n"+files["web/.env"]
		plain, plainContents := Read(repo(files), settings())
		if len(plain.Apps) != 1 {
			t.Fatal(plain.Refused["web"])
		}
		if got, want := openedSpec(t, s, plan, contents), openedSpec(t, s, plain, plainContents); got != want {
			t.Fatalf("%s\n%s\n%s", files["web/compose.yaml"], got, want)
		}
		delete(files, "web/host.env")
		files["web/.env"] = "VIA=<$PW>\n"
		version := func(s Settings) ring.Version {
			p, _ := Read(repo(files), s)
			return ring.VersionOf(&p.Apps[0], &p.Apps[0].Services[0], pin)
		}
		first := version(s)
		if other := version(host(pw + "2")); other == first {
			t.Fatal("a new value is no new version")
		}
		s.Env["db"] = map[string][]byte{".env": []byte("PW=" + rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "other") + "\n")}
		if version(s) != first {
			t.Fatal("the value of another app is a new version")
		}
		s.EnvKey = []byte("another key")
		if version(s) == first {
			t.Fatal("the hash does not depend on the key")
		}
	})
}

func everything(t tester, plan ring.Plan, contents map[string]ring.Content) string {
	b, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.Write(b)
	var text any // what JSON escapes, read back
	if err := json.Unmarshal(b, &text); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(&out, text)
	for _, c := range contents {
		for _, f := range c.Files {
			body, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(f.Path)
			out.Write(body)
		}
	}
	return out.String()
}

// openedSpec is the one service's spec with every text opened, and its contents
// by target.
func openedSpec(t tester, s Settings, plan ring.Plan, contents map[string]ring.Content) string {
	spec := plan.Apps[0].Services[0].Spec
	var files []string
	for i, m := range spec.Mounts {
		for _, f := range contents[m.Source].Files {
			body, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			text := string(body)
			if f.Sealed {
				text = opened(t, s, text)
			}
			files = append(files, m.Target+" "+text)
		}
		spec.Mounts[i].Source, spec.Mounts[i].File = "", ""
	}
	slices.Sort(files)
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(openedTree(t, s, tree), files)
}

func openedTree(t tester, s Settings, v any) any {
	switch v := v.(type) {
	case string:
		return opened(t, s, v)
	case []any:
		for i := range v {
			v[i] = openedTree(t, s, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = openedTree(t, s, v[k])
		}
	}
	return v
}
