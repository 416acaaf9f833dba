package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked are files whose lines say what is wrong with them: behind "#!" the codes
// and a word of each sentence, with ; between them.
//
//	imag: nginx #! UnknownKey services.web.imag
func marked(files map[string]string) (want []string) {
	for name, text := range files {
		for i, line := range strings.Split(text, "\n") {
			_, all, ok := strings.Cut(line, "#!")
			if !ok {
				continue
			}
			for one := range strings.SplitSeq(all, ";") {
				want = append(want, fmt.Sprintf("%s:%d %s", name, i+1, strings.TrimSpace(one)))
			}
		}
	}
	slices.Sort(want)
	return want
}

// toldOf are the refusals of a commit in the form of the marks: each with as much
// of its sentence as the mark that it meets asks for.
func toldOf(t *testing.T, files map[string]string, want []string) (got []string) {
	t.Helper()
	return toldIn(t, files, settings(), want)
}

func toldIn(t *testing.T, files map[string]string, by Settings, want []string) (got []string) {
	t.Helper()
	plan, refusals := Check(repo(files), by)
	if len(refusals) > 0 && len(plan.Apps) > 0 {
		t.Errorf("an app with faults is in the plan: %s", dump(t, plan))
	}
	left := slices.Clone(want)
	for i, r := range refusals {
		at := fmt.Sprintf("%s:%d %s ", r.File, r.Line, r.Code)
		says := r.Says
		for j, w := range left {
			if word, ok := strings.CutPrefix(w, at); ok && strings.Contains(r.Says, word) {
				says, left = word, slices.Delete(left, j, j+1)
				break
			}
		}
		got = append(got, at+says)
		if r.Hint == "" || strings.HasSuffix(r.Says, ".") || i > 0 && (refusals[i-1].File > r.File || refusals[i-1].File == r.File && refusals[i-1].Line > r.Line) {
			t.Errorf("not as refusals are written, or not in order: %+v", r)
		}
	}
	slices.Sort(got)
	return got
}

// One push mends all of a file: faults that different steps of the reading find
// are told together, each once, and none for another.
func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	for _, c := range []struct {
		name, compose string
		files         map[string]string // besides
	}{
		{name: "one of each kind in one service", compose: `
services:
  web:
    image: nginx:1
    enviroment: {A: b} #! UnknownKey services.web.enviroment
    user: ${NOBODY} #! UndefinedVariable NOBODY
    env_file: [no.env] #! BadValue web/no.env
    depends_on: [dbb] #! BadValue depends on dbb
    use_api_socket: true #! PolicyDenied use_api_socket
    restart: sometimes #! BadValue restart
    x-gitring: {kind: worke} #! BadValue "worke"
  db: {image: a}
`},
		{name: "faults of different services", compose: `
services:
  web: {image: a, imagee: b} #! UnknownKey imagee
  api: {image: "a:${TAG}"} #! UndefinedVariable TAG
  job:
    image: a
    networks: [back] #! BadValue network back
    volumes: ["data:/d"] #! BadValue volume data
`},
		{name: "a variable that is not set is no bad value", compose: `
services:
  web:
    image: a
    restart: ${R} #! UndefinedVariable R
    stop_signal: $S #! UndefinedVariable S
    scale: ${N} #! UndefinedVariable N
    mem_limit: ${M} #! UndefinedVariable M
    healthcheck: {test: x, interval: "${I}"} #! UndefinedVariable I
    ports: ["${P}:80", "81:http"] #! UndefinedVariable P; BadValue "http"
    hostname: a b #! BadValue hostname
`},
		{name: "two variables of one value", compose: `
services:
  web:
    image: "${REGISTRY}/web:${TAG}" #! UndefinedVariable REGISTRY; UndefinedVariable TAG
    depends_on: [api] #! BadValue api
`},
		{name: "an image that is not known is not missing", compose: `
services:
  a: {image: "${A}"} #! UndefinedVariable A
  b: {imag: b} #! UnknownKey imag
  c: {build: .} #! Unsupported build
  d: {image: Not An Image} #! BadValue no image name
  e: {user: root} #! BadValue services.e has no image
`},
		{name: "what depends on a faulty service depends on nothing missing", compose: `
services:
  web: {image: a, depends_on: [db, migrate, cache], networks: [front]}
  db: nonsense #! BadValue services.db is a text
  migrate: {imagee: a} #! UnknownKey imagee
  cache: {image: a, pid: "service:gone"} #! BadValue joins gone
networks:
  front: 7 #! BadValue networks.front
`},
		{name: "a section with a letter wrong", compose: `
services:
  web:
    image: a
    volumes: ["data:/d"]
    networks: [front]
    restart: maybe #! BadValue restart
volumse: {data: } #! UnknownKey volumse
networks: {front: }
`},
		{name: "what stands under a key with a letter wrong", compose: `
servics: #! UnknownKey servics
  web:
    image: a
    volume: ["../../../x:/x"] #! UnknownKey volume; OutsideCommit services.web.volumes
    enviroment: {A: $NO} #! UnknownKey enviroment; UndefinedVariable NO
    depends_onn: [db] #! UnknownKey depends_onn; BadValue depends on db
    expose: not a list #! BadValue expose
    port: x #! UnknownKey services.web.port
`},
		{name: "a service name that is none, and who names it", compose: `
services:
  "a b": {image: x} #! BadName "a b"
  web: {image: a, depends_on: ["a b"], userr: x} #! UnknownKey userr
`},
		{name: "a key that is there twice", compose: `
services:
  web:
    image: a
    user: b
    user: c #! Yaml there twice
    restart: sometimes #! BadValue restart
    env_file: no.env #! BadValue no.env
`},
		{name: "a section that is there twice hides what it declares", compose: `
services:
  web: {image: a, volumes: ["data:/x"], userr: b} #! UnknownKey userr
volumes: {data: }
volumes: {more: } #! Yaml there twice
`},
		{name: "custom tags", compose: `
services:
  web:
    image: a
    command: !vault abc #! Yaml custom tag
    labels: !env {a: b} #! Yaml custom tag
    depends_on: [db] #! BadValue depends on db
`},
		{name: "a .env with faults, and its users", files: map[string]string{"web/.env": `A=1
B C #! BadValue not NAME=value
D=$NOTHING #! UndefinedVariable NOTHING
E=$D
F=ENC[AES256_GCM,x] #! Unsupported SOPS
`}, compose: `
services:
  web:
    image: "a:$A$D"
    user: $E
    hostname: $F
    environment: [C]
    working_dir: $G #! UndefinedVariable G
    restart: sometimes #! BadValue restart
`},
		{name: "an env file that does not end hides what it sets", files: map[string]string{"web/.env": "A='x #! BadValue does not end\nB=1\n"}, compose: `
services:
  web: {image: "a:$B", userr: c} #! UnknownKey userr
`},
		{name: "an env file of a service", files: map[string]string{"web/a.env": `X Y #! BadValue not NAME=value
Z=$NO #! UndefinedVariable NO
`}, compose: `
services:
  web: {image: a, env_file: [a.env, b.env], userr: c} #! UnknownKey userr; BadValue web/b.env
`},
		{name: "x-gitring whole", compose: `
services:
  web:
    image: a
    x-gitring:
      kind: deamon #! BadValue kind
      job: {run: often} #! BadValue often
      checks:
        - {tcp: {port: 99999}} #! BadValue 99999
        - {name: up, http: {prot: 80}} #! UnknownKey prot
        - {name: x, docker: perhaps} #! BadValue perhaps
      rollout:
        max_surge: half #! BadValue half
        max_unavailable: 0
      share: si #! BadValue si
    scale: 2
    volumes: ["data:/d"]
volumes: {data: }
`},
		{name: "a kind that is not known judges no job", compose: `
services:
  web: {image: a, depends_on: {prepare: {condition: service_completed}}} #! BadValue service_completed
  prepare:
    image: a
    x-gitring: {job: {run: once}}
  other:
    image: a
    restart: nope #! BadValue restart
    x-gitring: {job: {retries: 2}}
`},
		{name: "mounts of all kinds", compose: `
services:
  web:
    image: a
    volumes:
      - ../../out:/a #! OutsideCommit out
      - ~/x:/b #! UndefinedVariable variable HOME is not set, and ~/x lies in it
      - ./ok:relative #! BadValue no target
      - {type: bind, sourse: /etc, target: /c} #! UnknownKey sourse
      - {type: npipe, source: x, target: /d} #! Unsupported npipe
      - data:/e #! BadValue volume data
      - ${V}:/f #! UndefinedVariable V
      - ./one:/g
      - ./two:/g
      - cache:/h:rw,fast #! BadValue "fast"
    tmpfs: ["/t:size=big"] #! BadValue tmpfs
    x-gitring: {mounts: {./one: dta}} #! BadValue "dta"
volumes: {cache: }
`, files: map[string]string{}},
		{name: "secrets and configs", compose: `
services:
  web:
    image: a
    secrets: [one, two, three] #! BadValue takes secret three
    configs: [c, d]
secrets:
  one: {file: ./no.txt} #! BadValue web/no.txt
  two: {environment: NOT_SET} #! UndefinedVariable NOT_SET
configs:
  c: {fil: ./c} #! UnknownKey fil; BadValue web/c
  d: {content: "$X"} #! UndefinedVariable X
`},
		{name: "networks and addresses", compose: `
services:
  web:
    image: a
    networks:
      front: {ipv4_address: 10.0.0.300} #! BadValue no address
      back: {ipv4_address: 10.9.0.5}
      side: {ipv4_address: 10.8.0.5} #! BadValue no subnet
networks:
  front: {ipam: {config: [{subnet: 10.0.0.0/24}]}}
  back: {ipam: {config: [{subnett: 10.9.0.0/24}]}} #! UnknownKey subnett
  side: {driver: overlay} #! Unsupported overlay
`},
		{name: "an include that is not there hides what it declares", files: map[string]string{"web/have.yaml": "services:\n  have: {image: a, userr: b} #! UnknownKey userr\n"}, compose: `
include:
  - have.yaml
  - nope.yaml #! BadValue web/nope.yaml
services:
  web: {image: a, depends_on: [have, other], networks: [front], restart: never} #! BadValue restart
`},
		{name: "a base that is not there hides what it says", compose: `
services:
  web: {extends: {file: base.yaml, service: base}, restart: never} #! BadValue web/base.yaml; BadValue restart
  api: {extends: nobody, depends_on: [gone]} #! BadValue extends nobody; BadValue depends on gone
  lone: {user: a} #! BadValue services.lone has no image
`},
		{name: "a base with faults of its own", files: map[string]string{"web/base.yaml": `services:
  base:
    image: a:$TAG #! UndefinedVariable TAG
    cap_ad: [X] #! UnknownKey cap_ad
    env_file: no.env #! BadValue no.env
`}, compose: `
services:
  web: {extends: {file: base.yaml, service: base}, links: [db]} #! BadValue links names db
`},
		{name: "an override that is no YAML leaves the rest to be read", files: map[string]string{"web/compose.override.yaml": "services:\n\tweb: {} #! Yaml not YAML\n"}, compose: `
services:
  web: {restart: never, depends_on: [db], env_file: no.env} #! BadValue restart; BadValue no.env
`},
		{name: "a later file with a fault leaves no earlier word in its place", files: map[string]string{"web/compose.override.yaml": `services:
  web:
    restart: never #! BadValue restart
    image: ${I} #! UndefinedVariable I
`}, compose: `
services:
  web: {image: a, restart: "no", x-gitring: {checks: [{tcp: {port: 1}}]}, userr: b} #! UnknownKey userr
`},
		{name: "limits that contradict each other, beside what is not known", compose: `
services:
  a: {image: x, memswap_limit: 1g, mem_limit: much} #! BadValue mem_limit
  b: {image: x, memswap_limit: 1g} #! BadValue said without mem_limit
  c: {image: x, cpus: 1, cpu_quota: 5, ulimits: {nofile: {sofft: 1, hard: 2}}} #! BadValue cpu_quota; UnknownKey sofft
  d: {image: x, ulimits: {nofile: {soft: "$S", hard: 2}}} #! UndefinedVariable S
`},
		{name: "commands whose words are not known", compose: `
services:
  a: {image: x, command: ["$CMD"], healthcheck: {test: ["CMD", "$T"]}} #! UndefinedVariable CMD; UndefinedVariable T
  b: {image: x, command: a && b, healthcheck: {test: [CMD]}} #! BadValue shell operator; BadValue runs nothing
  c: {image: x, environment: ["A=$A", "=b"], labels: ["gitring.app=$L"]} #! UndefinedVariable A; BadValue sets no name; UndefinedVariable L; PolicyDenied reserved
`},
		{name: "things that only two services together get wrong", compose: `
services:
  a: {image: x, ports: ["80:80"], depends_on: [b], container_name: one, typo: 1} #! UnknownKey typo
  b: {image: x, ports: ["80:81"], depends_on: [a], container_name: one} #! BadValue host port 80; BadValue container_name; BadValue wait for each other
`},
		{name: "joined services, one of which has faults", compose: `
services:
  vpn: {image: x, restart: "${R}", scale: "${N}"} #! UndefinedVariable R; UndefinedVariable N
  web: {image: x, network_mode: "service:vpn", ports: ["80:80"], scale: 2, volumes_from: [nobody]} #! BadValue ports cannot be set; BadValue joins nobody
`},
		{name: "the name of the app", compose: `
name: "!" #! BadName "!"
services:
  web: {image: a, restart: never, depends_on: [db]} #! BadValue restart; BadValue depends on db
`},
		{name: "a name by a variable that is not set", compose: `
name: ${NAME} #! UndefinedVariable NAME
services:
  web: {image: "a:$COMPOSE_PROJECT_NAME", restart: never} #! BadValue restart
`},
		{name: "profiles that are not known", files: map[string]string{"web/.env": "COMPOSE_PROFILES=$P #! UndefinedVariable P\n"}, compose: `
services:
  web: {image: a, depends_on: [db], restart: never} #! BadValue restart
  db: {image: a, profiles: [data]}
`},
		{name: "what compose-go alone refuses", compose: `
services:
  web:
    image: a
    deploy: {resources: {limits: {cpus: much}}} #! BadValue deploy.resources.limits.cpus
    depends_on: [db] #! BadValue depends on db
    ports: [{target: 80, published: "80"}, {target: eighty}] #! BadValue ports
`},
		{name: "an anchor with a fault that two services take", compose: `
x-base: &base
  restart: never #! BadValue services.a.restart
  privilegd: true #! UnknownKey services.a.privilegd
services:
  a: {image: x, <<: *base}
  b: {image: x, <<: *base, depends_on: [c]} #! BadValue depends on c
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"web/compose.yaml": c.compose}
			for name, text := range c.files {
				files[name] = text
			}
			want := marked(files)
			if d := cmp.Diff(want, toldOf(t, files, want)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A value that cannot be known refuses its app, also where nothing is told of it.
func TestWhatIsUntoldRefusesAllTheSame(t *testing.T) {
	var fs faults
	fs.put(untold)
	if fs.none() || len(fs.refusals("", "web")) != 0 {
		t.Errorf("%+v", fs)
	}
	a := &appReader{from: candidate{path: "web", files: []string{"web/compose.yaml"}}, faults: fs}
	a.whole()
	if r := a.faults.refusal("", "web"); r.File != "web/compose.yaml" || r.Hint == "" {
		t.Errorf("%+v", r)
	}
}

// Of what only compose-go finds, which stops at one error, many are told too.
func TestManyErrorsOfTheLibraryAreToldAtOnce(t *testing.T) {
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  s%d: {image: a, tty: perhaps} #! BadValue tty\n", i)
	}
	b.WriteString("  last: {image: a, depends_on: [s1, nobody]} #! BadValue depends on nobody\n")
	files := map[string]string{"web/compose.yaml": b.String()}
	want := marked(files)
	if d := cmp.Diff(want, toldOf(t, files, want)); d != "" {
		t.Error(d)
	}
}

// A list where a text belongs is one fault: it is not a bad text besides. What stands
// beside it in the same value is told with it.
func TestAValueOfAnotherTypeIsToldOnce(t *testing.T) {
	var keys []string
	for _, key := range sortedKeys(composeShape().known["services"].named[0].shape.known) {
		if key != "extends" { // its service is asked for by itself
			keys = append(keys, key)
		}
	}
	for _, value := range []string{"[]", "[1]", "[[]]", "{}", "{a: b}", "{a: [b]}", "{a: {b: [c]}}", "12", "-1", "1.5", "true"} {
		for _, key := range keys {
			image := "image: a, "
			if key == "image" {
				image = ""
			}
			text := fmt.Sprintf("services:\n  web: {%s%s: %s}\n", image, key, value)
			_, refusals := Check(repo(map[string]string{"web/compose.yaml": text}), settings())
			of, all := 0, 0
			for _, r := range refusals {
				if all++; strings.Contains(r.Says, ", not ") {
					of++
				}
			}
			if of > 0 && of != all {
				t.Errorf("%s: %s: %v", key, value, refusals)
			}
		}
	}
	files := map[string]string{"web/compose.yaml": `
services:
  web:
    image: a
    scale: 1.5 #! BadValue services.web.scale is a number with a fraction, not a whole number or a text
    volumes:
      - 12 #! BadValue a number, not
      - nothing:/d #! BadValue volume nothing
    dns:
      - [9.9.9.9] #! BadValue a list, not
      - ten #! BadValue "ten" is no address
    sysctls:
      net.core.somaxconn: [1] #! BadValue a list, not
      kernel.panic: 1 #! BadValue kernel.panic
`}
	want := marked(files)
	if d := cmp.Diff(want, toldOf(t, files, want)); d != "" {
		t.Error(d)
	}
}

// Mistakes of gitring.yaml refuse the whole commit; what is wrong with the apps that
// it names all the same is told with them, and nothing that is only a consequence.
func TestTheAppsOfAListWithMistakesAreReadAllTheSame(t *testing.T) {
	list := `apps: #! BadValue version of gitring.yaml is not 1
  - {name: web, path: web, drift: nope} #! BadValue "nope"
  - {name: web, path: api} #! AppTaken web is listed twice
  - {name: UP, path: up} #! BadName "UP"
  - {pth: lost} #! UnknownKey pth
  - {name: gone, path: gone} #! BadValue no folder gone
  - {path: other, flies: [x.yaml]} #! UnknownKey flies
  - {path: ../out} #! OutsideCommit ../out
  - {path: away, targets: {site: b}, after: [nobody]}
`
	files := map[string]string{
		"gitring.yaml":          list,
		"web/compose.yaml":      "services: {web: {image: a, restart: nevr}} #! BadValue restart\n",
		"api/compose.yaml":      "services: {web: {image: a}}\n",
		"up/compose.yaml":       "services: {web: {image: a, user: \"${COMPOSE_PROJECT_NAME}${HOST}\", restart: nevr}} #! BadValue restart\n",
		"lost/compose.yaml":     "services: {web: {image: a, restart: nevr}}\n",
		"other/compose.yaml":    "services: {web: {image: a, restart: nevr}}\n",
		"away/compose.yaml":     "services: {web: {image: a, restart: nevr}}\n",
		"unlisted/compose.yaml": "services: {web: {image: a, restart: nevr}}\n",
	}
	s := settings()
	s.Env = map[string]map[string][]byte{"UP": {".env": []byte("HOST=x\n")}}
	want := marked(files)
	if d := cmp.Diff(want, toldIn(t, files, s, want)); d != "" {
		t.Error(d)
	}
	r := Look(repo(files), s)
	if r.Plan.Refusal == nil || len(r.Plan.Apps)+len(r.Plan.Refused)+len(r.Contents)+len(r.Projects) > 0 {
		t.Errorf("the commit is not refused as a whole: %+v", r.Plan)
	}
	var drafts []string
	for _, d := range r.Drafts {
		drafts = append(drafts, d.Key+":"+d.App.Path)
	}
	if d := cmp.Diff([]string{":web", ":api", ":up"}, drafts); d != "" {
		t.Error("the policy looks at other apps", d)
	}

	// Where it is not known what a key says, none of the list is believed.
	files["gitring.yaml"] = "version: 1\napps:\n  - {path: web}\n  - {path: api, path: up} #! Yaml path\n"
	files["web/compose.yaml"] = "services: {web: {image: a, restart: nevr}}\n"
	files["up/compose.yaml"] = "services: {web: {image: a, restart: nevr}}\n"
	want = marked(files)
	if d := cmp.Diff(want, toldOf(t, files, want)); d != "" {
		t.Error(d)
	}
}

// Errors that compose-go alone finds are told each on its line, however many services
// have them. It tells one at a time, or all of its kind in one text.
func TestAHundredErrorsOfComposeGoAreToldEachOnItsLine(t *testing.T) {
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "  s%d:\n    image: nginx:1\n    labels: {a: b, c: d, e: f}\n    ports: #! BadValue services.s%d.ports\n      - {target: abc}\n", i, i)
		fmt.Fprintf(&b, "    healthcheck:\n      {test: x, retries: many} #! BadValue services.s%d.healthcheck\n", i)
	}
	files := map[string]string{"web/compose.yaml": b.String()}
	want := marked(files)
	if d := cmp.Diff(want, toldOf(t, files, want)); d != "" {
		t.Error(d)
	}
}

// The runs of compose-go are counted, with the services that each goes over. It tells one
// of these errors at a time. A hundred of them have it go over the whole of the app twice: it
// meets one, and none is left. Each is looked for in its service alone.
func TestAnErrorOfComposeGoHasOneServiceReadAnew(t *testing.T) {
	const errors = 100
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range errors {
		fmt.Fprintf(&b, "  s%d: {image: a, build: {context: }} #! BadValue services.s%d.build.context\n", i, i)
	}
	files := map[string]string{"web/compose.yaml": b.String()}
	whole, over := 0, 0
	s := settings()
	s.ran = func(n int) {
		over += n
		if n > 1 {
			whole++
		}
	}
	want := marked(files)
	if d := cmp.Diff(want, toldIn(t, files, s, want)); d != "" || len(want) != errors {
		t.Fatal(len(want), d)
	}
	if whole > 2 {
		t.Errorf("compose-go went over the whole app %d times, more than twice", whole)
	}
	if most := 2*errors + errors*(composeRuns+1); over > most {
		t.Errorf("compose-go went over %d services in all, more than %d: twice over all, and in each %d times for an error and once more", over, most, composeRuns)
	}
}

// A secret, network or volume that has an error is read anew alone, too, and not with all of the
// app: one real app of 18 included files, whose secrets lie below a variable that the host has to
// say, took 46 s of CPU.
func TestAnErrorOfASectionHasThatEntryReadAnew(t *testing.T) {
	const errors = 30
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range errors {
		fmt.Fprintf(&b, "  s%d: {image: a}\n", i)
	}
	b.WriteString("secrets:\n")
	for i := range errors {
		fmt.Fprintf(&b, "  k%d: {file: '${DATA}/k%d'}\n", i, i)
	}
	files := map[string]string{"web/compose.yaml": b.String()}
	whole := 0
	s := settings()
	s.ran = func(n int) {
		if n > 1 {
			whole++
		}
	}
	if _, told := Check(repo(files), s); len(told) != errors {
		t.Fatalf("%d refusals, want one of each secret: %v", len(told), told[len(told)-1])
	}
	if whole > 2 {
		t.Errorf("compose-go went over the whole app %d times, more than twice", whole)
	}
}
