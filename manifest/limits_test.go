package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// bomb is 464 bytes that name gigabytes.
func bomb() string {
	b := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 11 {
		b += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 9), ","))
	}
	return b + "services: {w: {image: x, labels: *l}}\n"
}

// spent is what reading takes: memory allocated in all, and time.
func spent(t *testing.T, files map[string]string) (ring.Plan, uint64, time.Duration) {
	t.Helper()
	c := repo(files)
	composeShape() // read once per process
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := worked(t)
	plan, _ := Read(c, settings())
	took := worked(t) - start
	runtime.ReadMemStats(&after)
	return plan, after.TotalAlloc - before.TotalAlloc, took
}

// worked is the processor's time of this process: that of the clock is other
// programs' too.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestAnAliasBombEndsAtOnce(t *testing.T) {
	b := bomb()
	if len(b) < 400 || len(b) > 520 {
		t.Fatalf("the bomb has %d bytes", len(b))
	}
	for name, files := range map[string]map[string]string{
		"Compose file":  {"web/compose.yaml": b},
		"override file": {"web/compose.yaml": "services: {w: {image: x}}\n", "web/compose.override.yaml": b},
		"gitring.yaml":  {gitringFile: b},
	} {
		plan, bytes, took := spent(t, files)
		r := plan.Refusal
		if r == nil {
			r = plan.Refused["web"]
		}
		if r == nil || r.Code != ring.TooLarge || r.Line == 0 {
			t.Errorf("%s: not refused: %v", name, r)
		}
		if bytes > 4<<20 || took > 2*time.Second { // the bound asked for is 64 MiB; it takes some 100 KiB and under a millisecond
			t.Errorf("%s: took %d KiB and %s", name, bytes>>10, took)
		}
	}
}

// Other ways to name much with little.
func TestBombsAreSmall(t *testing.T) {
	merges := "x-a: &a {k1: 1, k2: 2, k3: 3}\n"
	for i := range 12 {
		merges += fmt.Sprintf("x-%c: &%c {a: *%c, b: *%c, c: *%c, d: *%c}\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	variables := "A=" + strings.Repeat("x", 1000) + "\n"
	for i := range 20 {
		v := fmt.Sprintf("$%c", 'A'+i)
		variables += fmt.Sprintf("%c=%s\n", 'B'+i, strings.Repeat(v, 20))
	}
	shared := "x-t: &t " + strings.Repeat("y", 60_000) + "\nservices:\n  web:\n    image: a\n    command: [" + strings.TrimSuffix(strings.Repeat("*t,", 900), ",") + "]\n"
	many := "services:\n  web:\n    image: a\n    environment:\n"
	for i := range 900 {
		many += fmt.Sprintf("      V%d: $A\n", i)
	}
	for name, files := range map[string]map[string]string{
		"merges":                {"web/compose.yaml": merges + "services: {web: {image: a, <<: *m}}\n"},
		"variables in .env":     {"web/compose.yaml": "services: {web: {image: a}}\n", "web/.env": variables},
		"variables in env_file": {"web/compose.yaml": "services: {web: {image: a, env_file: x.env}}\n", "web/x.env": variables},
		"one text many times":   {"web/compose.yaml": shared},
		"one variable often":    {"web/compose.yaml": many, "web/.env": "A=" + strings.Repeat("x", 60_000)},
		"a range of ports":      {"web/compose.yaml": "services: {web: {image: a, ports: ['1-65535:1-65535']}}\n"},
		"exposed ports":         {"web/compose.yaml": "services: {web: {image: a, expose: ['1-65535']}}\n"},
		"ranges together":       {"web/compose.yaml": "services: {a: {image: a, ports: ['1000-1600:1000-1600']}, b: {image: b, ports: ['2000-2600:2000-2600']}}\n"},
		"nesting":               {"web/compose.yaml": "x: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n"},
		"nested defaults":       {"web/compose.yaml": "services: {web: {image: 'a:" + strings.Repeat("${A:-", 3000) + strings.Repeat("}", 3000) + "'}}\n"},
	} {
		plan, bytes, took := spent(t, files)
		r := plan.Refused["web"]
		if r == nil || r.Code != ring.TooLarge && name != "nested defaults" || r.Line == 0 {
			t.Errorf("%s: not refused for its size: %v", name, r)
		}
		if bytes > 64<<20 || took > 5*time.Second {
			t.Errorf("%s: took %d MiB and %s", name, bytes>>20, took)
		}
	}
}

func TestLimitsHold(t *testing.T) {
	services := func(n int) string {
		b := "services:\n"
		for i := range n {
			b += fmt.Sprintf("  s%d: {image: a}\n", i)
		}
		return b
	}
	aliases := func(n int) string {
		b := "x-a: &a b\nx-b:\n"
		for i := range n {
			b += fmt.Sprintf("  k%d: [%s]\n", i, "*a")
		}
		return b + "services: {web: {image: a}}\n"
	}
	for _, c := range []struct {
		name   string
		limits Limits
		files  map[string]string
		says   string
		fits   map[string]string // one less
	}{
		{"services", Limits{Services: 3}, map[string]string{"web/compose.yaml": services(4)}, "more than 3 services", map[string]string{"web/compose.yaml": services(3)}},
		{"one file", Limits{FileSize: 100}, map[string]string{"web/compose.yaml": services(1) + "#" + strings.Repeat("x", 100)}, "larger than 100 bytes", map[string]string{"web/compose.yaml": services(1)}},
		{"all files", Limits{TotalSize: 100}, map[string]string{"a/compose.yaml": services(1), "b/compose.yaml": services(1), "c/compose.yaml": services(1), "d/compose.yaml": services(1), "web/compose.yaml": services(1)}, "larger than 100 bytes together", map[string]string{"web/compose.yaml": services(2)}},
		{"how many files", Limits{Files: 2}, map[string]string{"a/compose.yaml": services(1), "b/compose.yaml": services(1), "web/compose.yaml": services(1)}, "more than 2 manifest files", map[string]string{"a/compose.yaml": services(1), "web/compose.yaml": services(1)}},
		{"depth", Limits{Depth: 5}, map[string]string{"web/compose.yaml": "x: [[[[[a]]]]]\n" + services(1)}, "deeper than 5", map[string]string{"web/compose.yaml": services(1)}},
		{"depth by an alias", Limits{Depth: 6}, map[string]string{"web/compose.yaml": "x-a: &a [[[a]]]\nx-b: [[*a]]\n" + services(1)}, "deeper than 6", map[string]string{"web/compose.yaml": "x-a: &a [[[a]]]\nx-b: [*a]\n" + services(1)}},
		{"nodes", Limits{Nodes: 20}, map[string]string{"web/compose.yaml": services(8)}, "more than 20 nodes", map[string]string{"web/compose.yaml": services(4)}},
		{"aliases", Limits{Aliases: 5}, map[string]string{"web/compose.yaml": aliases(6)}, "more than 5 aliases", map[string]string{"web/compose.yaml": aliases(5)}},
		{"entries", Limits{Entries: 5}, map[string]string{"web/compose.yaml": services(6)}, "more than 5 entries", map[string]string{"web/compose.yaml": services(5)}},
		{"a string", Limits{Text: 30}, map[string]string{"web/compose.yaml": "x-a: " + strings.Repeat("y", 31) + "\n" + services(1)}, "longer than 30 bytes", map[string]string{"web/compose.yaml": "x-a: " + strings.Repeat("y", 30) + "\n" + services(1)}},
		{"content", Limits{ContentSize: 10}, map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c/a": "12345", "web/c/b": "123456"}, "larger than 10 bytes", map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c/a": "12345", "web/c/b": "12345"}},
		{"one file of content", Limits{ContentFile: 10}, map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c": "12345678901"}, "larger than 10 bytes", map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c": "1234567890"}},
		{"files of content", Limits{ContentFiles: 1}, map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c/a": "1", "web/c/b": "1"}, "more than 1 files", map[string]string{"web/compose.yaml": "services: {web: {image: a, volumes: ['./c:/c']}}\n", "web/c/a": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settings()
			s.Limits = c.limits
			plan, _ := Read(repo(c.files), s)
			if plan.Refusal != nil {
				t.Errorf("the whole commit is refused: %v", plan.Refusal)
			}
			r := plan.Refused["web"]
			if r == nil || r.Code != ring.TooLarge || !strings.Contains(r.Says, c.says) || r.File == "" {
				t.Errorf("not refused: %v", r)
			}
			if plan, _ := Read(repo(c.fits), s); plan.Refusal != nil || plan.Refused != nil {
				t.Errorf("one less is refused too: %s", dump(t, plan))
			}
		})
	}
}

// The worst that stays within the limits is slow, but ends.
func TestTheWorstThatFitsEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b := "services:\n"
	for s := range 8 {
		b += fmt.Sprintf("  s%d:\n    image: a\n    tmpfs:\n", s)
		for i := range 999 {
			b += fmt.Sprintf("    - /t%d\n", i)
		}
	}
	plan, bytes, took := spent(t, map[string]string{"web/compose.yaml": b, "web/compose.override.yaml": b})
	if plan.Refused == nil && len(plan.Apps) != 1 || bytes > 2<<30 || took > 30*time.Second {
		t.Errorf("took %d MiB and %s", bytes>>20, took)
	}
}

// A repository of 500 stacks is read whole with the defaults.
func TestFiveHundredStacksHold(t *testing.T) {
	plan, _ := Read(repo(stacks(500)), settings())
	if len(plan.Apps) != 500 {
		t.Errorf("%d of 500 apps, refused %v %v", len(plan.Apps), plan.Refusal, plan.Refused)
	}
}

// stacks are folders as a homelab has them: three services, an .env and an env file each.
func stacks(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		dir := fmt.Sprintf("stack%03d/", i)
		files[dir+".env"] = "TZ=Europe/Berlin\nDOMAIN=example.org\nDB_PASSWORD=secret\n"
		files[dir+"app.env"] = "LOG=info\n"
		files[dir+"compose.yaml"] = fmt.Sprintf(`services:
  web:
    image: nginx:1.27
    restart: unless-stopped
    env_file: [app.env]
    environment: {TZ: "${TZ}", URL: "https://app%d.${DOMAIN}", DB_PASSWORD: "${DB_PASSWORD}"}
    ports: ["%d:80"]
    volumes: ["./data:/data"]
    networks: [default, back]
    depends_on: [db]
    healthcheck: {test: [CMD, curl, -f, "http://localhost"], interval: 30s}
  db:
    image: postgres:17
    restart: unless-stopped
    environment: {POSTGRES_PASSWORD: "${DB_PASSWORD}"}
    volumes: ["db:/var/lib/postgresql/data"]
    networks: [back]
  cache: {image: "redis:7", restart: unless-stopped, networks: [back]}
volumes: {db: }
networks: {back: {internal: true}}
`, i, 10_000+i)
	}
	return files
}

// What is over a limit of the whole commit is refused by app: those that fit are read.
func TestAppsThatFitAreReadBesideThoseThatDoNot(t *testing.T) {
	for name, limits := range map[string]Limits{"files": {Files: 20}, "bytes": {TotalSize: 5_000}, "nodes": {Nodes: 80}} {
		files := stacks(10)
		if name == "nodes" { // 200 times what one app may have
			files = stacks(300)
		}
		s := settings()
		s.Limits = limits
		plan, _ := Read(repo(files), s)
		if plan.Refusal != nil || len(plan.Apps) == 0 || len(plan.Refused) == 0 || len(plan.Apps)+len(plan.Refused) != len(files)/3 {
			t.Errorf("%s: %d apps and %d refused, the commit %v", name, len(plan.Apps), len(plan.Refused), plan.Refusal)
		}
		if name == "nodes" && len(plan.Apps) < 200 {
			t.Errorf("only %d apps, where 200 of the largest would be read", len(plan.Apps))
		}
		for app, r := range plan.Refused {
			if r.Code != ring.TooLarge || !strings.HasPrefix(r.File, app+"/") {
				t.Errorf("%s: not at its app: %v", name, r)
			}
		}
	}
}
