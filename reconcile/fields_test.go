package reconcile

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/ring"
)

// schema is every field of a service by the name that JSON gives it, those of
// what an instance runs under "spec.".
func schema() map[string][]int {
	out := map[string][]int{}
	service := reflect.TypeFor[ring.Service]()
	for i := range service.NumField() {
		f := service.Field(i)
		if f.Type != reflect.TypeFor[ring.Spec]() {
			out[named(f)] = []int{i}
			continue
		}
		for j := range f.Type.NumField() {
			out["spec."+named(f.Type.Field(j))] = []int{i, j}
		}
	}
	return out
}

func named(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || name == "" {
		return strings.ToLower(f.Name)
	}
	return name
}

// another changes a value to a different one of its type: deep inside, where it
// holds others.
func another(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s%d", v.String(), n))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + int64(n))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + uint64(n))
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		another(v.Elem(), n)
	case reflect.Slice:
		e := reflect.New(v.Type().Elem()).Elem()
		another(e, n)
		v.Set(reflect.Append(v, e))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		another(k, n)
		another(e, n)
		m.SetMapIndex(k, e)
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			another(v.Field(i), n)
		}
	default:
		panic("no other " + v.Type().String())
	}
}

// plain is a service that runs as it is wanted.
func plain() ring.Service {
	return ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 2, Pin: ring.Pin{Image: "a@sha256:1"}, Rollout: ring.DefaultRollout(),
		Restart: ring.Restart{Policy: ring.Always, Engine: "always"}, Spec: ring.Spec{Image: "a"},
	}
}

// change is what the plan says of a service that becomes another one.
func change(was, will ring.Service) ring.ServiceChange {
	have, next := ring.App{Name: "shop", Source: "s"}, ring.App{Name: "shop", Source: "s", Commit: "c2"}
	was.Written, will.Written = ring.WrittenHash(was.Spec), ring.WrittenHash(will.Spec)
	was.Version = ring.VersionOf(&have, &was, was.Pin)
	have.Services, next.Services = []ring.Service{was}, []ring.Service{will}
	w := World{Facts: ring.NewFacts(), Recent: NewRecent(), Sources: []Source{{Name: "s"}}}
	w.Facts.Apps["shop"] = ring.InForce{App: have}
	w.Facts.Set(ring.PinRow{ID: "shop/web", Written: will.Written, Pin: will.Pin})
	return Plan(w, &ring.Plan{Source: "s", Commit: "c2", Apps: []ring.App{next}}, time.Unix(0, 0)).Apps[0].Services[0]
}

// Lesson L40: each field is mapped to no-op, in place, roll or recreate, and a
// field that is added without a class is found here.
func TestEveryFieldOfAServiceHasAClassAndThePlanKeepsToIt(t *testing.T) {
	fields := schema()
	require.Greater(t, len(fields), 70, "the walk finds the schema")
	for name, at := range fields {
		t.Run(name, func(t *testing.T) {
			class, ok := classes[name]
			require.True(t, ok, "say in reconcile/fields.go what a change of it does")
			was, will := plain(), plain()
			v := reflect.ValueOf(&will).Elem().FieldByIndex(at)
			another(v, 7)
			switch name {
			case "name", "version", "written", "changed", "image", "pin", "kind", "front_of":
				return // what the service is, or what follows from the rest: below
			case "spec.mounts": // of a kind that there is
				will.Spec.Mounts = []ring.Mount{{Kind: ring.MountTmpfs, Target: "/t"}}
			case "spec.ports": // one of the host's is recreated, as any other change of such a service is
				will.Spec.Ports = []ring.Port{{Container: 80, Protocol: "tcp"}}
			case "spec.networks":
				will.Spec.Networks = []ring.Attachment{{Network: "n"}}
			case "spec.network_of", "spec.pid_of", "spec.ipc_of", "spec.volumes_from", "spec.follows":
				return // of another service, which a plan has: TestPlanSaysWhatMovesWithAnother
			case "reload":
				will.Reload = &ring.Reload{Paths: []string{"./c"}, Signal: "SIGHUP", Live: map[string]string{"c": "1"}}
			case "rollout":
				will.Rollout.Strategy = ring.Rolling
			}
			c := change(was, will)
			require.Equal(t, class, c.Class, "%+v", c)
			if class == ring.ChangeNone {
				require.Empty(t, c.Reason)
				require.Empty(t, c.Fields)
				return
			}
			require.NotEmpty(t, c.Reason)
			require.Len(t, c.Fields, 1)
			require.Equal(t, class, c.Fields[0].Class)
			_, short, _ := strings.Cut(name, ".")
			word := strings.NewReplacer("environment", "env", "labels", "label", "mounts", "mount", "mark", "a restart by hand").Replace(short)
			require.Contains(t, c.Reason, word)
		})
	}
	for name := range classes {
		_, ok := fields[name]
		require.True(t, ok || strings.HasPrefix(name, "app."), "%s is the class of no field", name)
	}
}

// Lesson N04: what is equal is a no-op, whatever else the commit is; and what
// is not says why.
func TestANoOpIsANoOpAndAnythingElseSaysWhy(t *testing.T) {
	fields := schema()
	names := sortedKeys(fields)
	rapid.Check(t, func(r *rapid.T) {
		was := plain()
		for range rapid.IntRange(0, 4).Draw(r, "set") { // any service
			vary(r, &was, fields, names)
		}
		b, err := json.Marshal(was)
		require.NoError(r, err)
		var will ring.Service
		require.NoError(r, json.Unmarshal(b, &will)) // as a daemon after a restart has it
		c := change(was, will)
		require.Equal(r, ring.ChangeNone, c.Class, "%+v", c)
		require.Empty(r, c.Reason)
		vary(r, &will, fields, names)
		if c = change(was, will); c.Class == ring.ChangeNone {
			x, y := was, will
			x.Changed, y.Changed, x.Line, y.Line, x.File, y.File, x.Image, y.Image, x.Composed, y.Composed = "", "", 0, 0, "", "", ring.Image{}, ring.Image{}, nil, nil
			require.Equal(r, asJSON(r, x), asJSON(r, y), "a change that is none")
			return
		}
		require.NotEmpty(r, c.Reason)
		require.NotEmpty(r, c.Fields)
	})
}

func vary(r *rapid.T, s *ring.Service, fields map[string][]int, names []string) {
	name := rapid.SampledFrom(names).Draw(r, "field")
	switch name {
	case "name", "version", "written", "pin", "kind", "front_of", "spec.network_of", "spec.pid_of", "spec.ipc_of", "spec.volumes_from", "spec.follows":
		return
	case "reload", "job", "cron": // read by who knows that they are whole
		return
	}
	another(reflect.ValueOf(s).Elem().FieldByIndex(fields[name]), rapid.IntRange(1, 9).Draw(r, "n"))
}

func asJSON(r *rapid.T, v any) string {
	b, err := json.Marshal(v)
	require.NoError(r, err)
	return string(b)
}

func TestARestartByHandIsToldInWords(t *testing.T) {
	was, now := plain(), plain()
	now.Spec.Mark = "2026-11-21T12:00:00Z"
	require.Equal(t, "a restart by hand", Differs(&ring.App{}, &was, &ring.App{}, &now))
}

// Lesson L15: nothing that a plan says of a service is lost on its way through
// the store to the step that creates it.
func TestEveryFieldOfAServiceReachesTheStepThatCreatesIt(t *testing.T) {
	s := plain()
	s.Replicas = 1
	fields := schema()
	for _, name := range sortedKeys(fields) {
		switch name {
		case "name", "kind", "version", "written", "changed", "pin", "image", "places", "job", "cron", "before", "depends_on", "rollout", "restart", "replicas",
			"spec.network_of", "spec.pid_of", "spec.ipc_of", "spec.volumes_from", "spec.follows", "spec.networks", "spec.container_name", "spec.mark":
			continue // of others, or set by the daemon
		}
		another(reflect.ValueOf(&s).Elem().FieldByIndex(fields[name]), 3)
	}
	app := ring.App{Name: "shop", Source: "s", Commit: "c1", Networks: []ring.Network{{Key: "default"}}}
	s.Written = ring.WrittenHash(s.Spec)
	app.Services = []ring.Service{s}
	app.Written = ring.WrittenApp(app)
	d := newStory()
	d.natures["a"] = nature{}
	d.offer(&ring.Plan{Source: "s", Commit: "c1", Apps: []ring.App{app}})
	for range 200 {
		d.step(time.Time{})
		b, err := json.Marshal(d.disk)
		require.NoError(t, err)
		var back ring.Facts
		require.NoError(t, json.Unmarshal(b, &back))
		d.disk = back // as after a restart of the daemon
		for _, f := range d.mem.flights {
			if f.a.Kind != ring.DoCreate {
				continue
			}
			want, err := json.Marshal(s.Spec)
			require.NoError(t, err)
			got, err := json.Marshal(f.a.Want.Spec)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
			checks, err := json.Marshal(f.a.Want.Checks)
			require.NoError(t, err)
			asked, err := json.Marshal(s.Checks)
			require.NoError(t, err)
			require.JSONEq(t, string(asked), string(checks))
			require.Equal(t, s.Reload, f.a.Want.Reload)
			return
		}
	}
	t.Fatalf("nothing is created: %s", d.read(20))
}

func TestTheReferenceTellsTheClassOfEveryField(t *testing.T) {
	b, err := os.ReadFile("../docs/reference/changes.md")
	require.NoError(t, err)
	rows := map[string]ring.Class{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `([a-z -]+)` \\|$").FindAllStringSubmatch(string(b), -1) {
		rows[m[1]] = ring.Class(m[2])
	}
	require.Equal(t, classes, rows)
}
