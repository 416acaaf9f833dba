package runtime

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gitring/gitring/ring"
)

// What the engine gets for an entrypoint, as JSON: null is the image's, an empty
// list clears it and keeps the image's command.
func TestAnEntrypointOfOneEmptyWordIsNone(t *testing.T) {
	for want, words := range map[string][]string{"null": nil, "[]": {""}, `["/init"]`: {"/init"}, `["","x"]`: {"", "x"}} {
		p := build(t, action(func(s *ring.Spec) { s.Entrypoint = words }))
		got, err := json.Marshal(p.Config.Entrypoint)
		if err != nil || string(got) != want {
			t.Errorf("%q becomes %s, not %s", words, got, want)
		}
	}
}

func TestUnconfinedSystemPathsAreEmptyLists(t *testing.T) {
	p := build(t, action(func(s *ring.Spec) { s.SecurityOpt = []string{"label=disable", "systempaths=unconfined"} }))
	if d := cmp.Diff([]string{"label=disable"}, p.Host.SecurityOpt); d != "" {
		t.Error(d)
	}
	if p.Host.MaskedPaths == nil || p.Host.ReadonlyPaths == nil || len(p.Host.MaskedPaths)+len(p.Host.ReadonlyPaths) != 0 {
		t.Errorf("masked %v, read-only %v", p.Host.MaskedPaths, p.Host.ReadonlyPaths)
	}
	if p = build(t, action(func(*ring.Spec) {})); p.Host.MaskedPaths != nil || p.Host.ReadonlyPaths != nil {
		t.Error("paths are unmasked that nobody asked for")
	}
}
