package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What owns a volume is renamed or moved in many ways. For each of them the plan of the folder
// and the daemon, once the same files are pushed, come to one decision with one reason.
func TestTheFolderAndTheDaemonDecideAlikeAboutVolumes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	otherImage := "volumes-" + image
	require.NoError(t, local.load(otherImage))
	t.Cleanup(func() { local.unload(otherImage) })
	data := func(volume string) obj { return web("1", obj{"volumes": []any{volume + ":/data"}}) }
	mountedAt := func(services obj, target string) obj { // else any of them could be the heir of any other
		out := obj{}
		for name, s := range services {
			out[name] = s
			if v, ok := s.(obj)["volumes"].([]any); ok {
				volume, _, _ := strings.Cut(v[0].(string), ":")
				out[name] = merged(s.(obj), obj{"volumes": []any{volume + ":/" + target}})
			}
		}
		return out
	}
	shapes := []struct {
		name, before, after string // the folders
		was, is             func(before, after string) (services obj, top obj)
		code                string // of the refusal; "" where it is carried out
	}{
		{
			name: "a renamed folder", before: "fa", after: "fb", code: "VolumeLeftBehind",
			is: func(_, _ string) (obj, obj) { return obj{"fold": data("pg")}, obj{"volumes": obj{"pg": nil}} },
		},
		{
			name: "a renamed project", before: "pa", after: "pa", code: "VolumeLeftBehind",
			is: func(_, _ string) (obj, obj) {
				return obj{"proj": data("pg")}, obj{"name": h.app("pb"), "volumes": obj{"pg": nil}}
			},
		},
		{
			name: "a renamed project, and another image", before: "ia", after: "ia", code: "VolumeLeftBehind",
			was: func(_, _ string) (obj, obj) {
				return obj{"imag": merged(data("pg"), obj{"image": otherImage})}, obj{"volumes": obj{"pg": nil}}
			},
			is: func(_, _ string) (obj, obj) {
				return obj{"imag": data("pg")}, obj{"name": h.app("ib"), "volumes": obj{"pg": nil}}
			},
		},
		{
			name: "a service moved to another app", before: "sa", after: "sb", code: "VolumeLeftBehind",
			is: func(_, _ string) (obj, obj) {
				return obj{"serv": data("pg"), "more": web("1")}, obj{"volumes": obj{"pg": nil}}
			},
		},
		{
			name: "a renamed key", before: "ka", after: "ka", code: "VolumeLeftBehind",
			is: func(_, _ string) (obj, obj) { return obj{"keyd": data("data")}, obj{"volumes": obj{"data": nil}} },
		},
		{
			name: "taken over", before: "ta", after: "tb",
			is: func(before, _ string) (obj, obj) {
				return obj{"take": data("pg")}, obj{"volumes": obj{"pg": obj{"x-gitring": obj{"from": h.app(before)}}}}
			},
		},
		{
			name: "begun empty on purpose", before: "na", after: "nb",
			is: func(_, _ string) (obj, obj) {
				return obj{"none": data("pg")}, obj{"volumes": obj{"pg": obj{"x-gitring": obj{"from": "none"}}}}
			},
		},
		{
			name: "external", before: "ea", after: "eb", code: "PolicyDenied",
			is: func(before, _ string) (obj, obj) {
				return obj{"exte": data("pg")}, obj{"volumes": obj{"pg": obj{"external": true, "name": h.app(before) + "_pg"}}}
			},
		},
		{
			name: "the name stays", before: "wa", after: "wb", code: "PolicyDenied",
			is: func(before, _ string) (obj, obj) {
				return obj{"name": data("pg")}, obj{"volumes": obj{"pg": obj{"name": h.app(before) + "_pg"}}}
			},
		},
		{
			name: "a renamed project, and the name stays", before: "xa", after: "xa", code: "ForeignProject",
			is: func(before, _ string) (obj, obj) {
				return obj{"stay": data("pg")}, obj{"name": h.app("xb"), "volumes": obj{"pg": obj{"name": h.app(before) + "_pg"}}}
			},
		},
		{
			name: "another name, new", before: "oa", after: "oa", code: "VolumeLeftBehind",
			is: func(before, _ string) (obj, obj) {
				return obj{"othe": data("pg")}, obj{"volumes": obj{"pg": obj{"name": h.app(before) + "_new"}}}
			},
		},
		{
			name: "external and not here", before: "va", after: "va", code: "BadValue",
			is: func(before, _ string) (obj, obj) {
				return obj{"away": data("pg")}, obj{"volumes": obj{"pg": obj{"external": true, "name": h.app(before) + "_nobodys"}}}
			},
		},
		{
			name: "a renamed service", before: "ra", after: "ra",
			is:  func(_, _ string) (obj, obj) { return obj{"rena": data("pg")}, obj{"volumes": obj{"pg": nil}} },
			was: func(_, _ string) (obj, obj) { return obj{"before": data("pg")}, obj{"volumes": obj{"pg": nil}} },
		},
	}
	first, next := files{}, files{}
	names := map[string]string{} // of the app after, by shape
	for _, s := range shapes {
		if s.was == nil {
			s.was = s.is
		}
		plain := func(before, _ string) (obj, obj) {
			services, _ := s.was(before, before)
			for name := range services {
				if _, mounts := services[name].(obj)["volumes"]; mounts {
					services[name] = merged(services[name].(obj), obj{"volumes": []any{"pg:/data"}})
				}
			}
			return services, obj{"volumes": obj{"pg": nil}}
		}
		file := func(folder string, of func(string, string) (obj, obj)) (string, string) {
			services, top := of(s.before, s.after)
			app := h.app(folder)
			if n, ok := top["name"].(string); ok {
				names[s.name] = n
			} else {
				names[s.name] = app
			}
			return app + "/compose.yaml", h.compose(names[s.name], mountedAt(services, s.before), top)
		}
		at, text := file(s.before, plain)
		first[at], next[at] = text, ""
		at, text = file(s.after, s.is)
		next[at] = text
	}
	h.start()
	h.deployed("The first", first)
	settled(h)

	h.repo.write(next)
	out, err := h.command("plan", h.repo.work, "-o", "json").Output()
	require.ErrorContains(t, err, "exit status 7", "there are refusals: %s", out)
	var planned struct {
		Apps []struct {
			App      string
			Services []struct{ Class string }
		}
		Refusals []refusal
	}
	require.NoError(t, json.Unmarshal(out, &planned))

	sha := h.repo.commit("The next")
	h.repo.push()
	h.await("it waits for a yes", func(st status) bool { return st.Sources[0].Sync == "Held" })
	code, said := h.run("approve", sha, "--reason", "as a test asks")
	require.Equal(t, 0, code, said)
	st := h.await("each app is decided", func(st status) bool {
		for _, s := range shapes {
			if a := st.app(names[s.name]); a.Commit != sha && (a.Refusal == nil || a.Refusal.Commit != sha) {
				return false
			}
		}
		return true
	})
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			app := names[s.name]
			decided, code, says := st.app(app).Refusal, "", ""
			if decided != nil {
				code, says = decided.Code, decided.Says
			}
			require.Equal(t, s.code, code, says)
			i := slices.IndexFunc(planned.Refusals, func(r refusal) bool { return r.App == app })
			changes := slices.IndexFunc(planned.Apps, func(a struct {
				App      string
				Services []struct{ Class string }
			},
			) bool {
				return a.App == app
			})
			if s.code == "" {
				require.Equal(t, -1, i, "refused in the folder alone")
				require.GreaterOrEqual(t, changes, 0)
				return
			}
			require.GreaterOrEqual(t, i, 0, "the plan of the folder does not say that the daemon refuses it: %s", says)
			require.Equal(t, s.code, planned.Refusals[i].Code)
			require.Equal(t, says, planned.Refusals[i].Says)
			require.Equal(t, -1, changes, "what is refused has no changes")
		})
	}
}
