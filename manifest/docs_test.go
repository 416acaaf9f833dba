package manifest

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

// The reference lists every key there is, and none that is not.
func TestTheReferenceListsEveryKey(t *testing.T) {
	b, err := os.ReadFile("../docs/reference/manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)`").FindAllStringSubmatch(string(b), -1) {
		rows[m[1]] = true
	}
	var want []string
	for _, k := range entryKeys {
		want = append(want, "apps[]."+k)
	}
	for _, k := range checkKeys {
		want = append(want, "checks[]."+k)
	}
	for _, k := range rolloutKeys {
		want = append(want, "rollout."+k)
	}
	want = append(want, "version", "apps", "depth", "exclude", "apps[].hold.until")
	for _, k := range jobKeys {
		want = append(want, "job."+k)
	}
	for _, k := range cronKeys {
		want = append(want, "cron."+k)
	}
	for _, k := range reloadKeys {
		want = append(want, "reload."+k)
	}
	for _, k := range routeKeys {
		want = append(want, "route."+k)
	}
	for _, k := range extensionKeys {
		if k != "reload" && k != "rollout" && k != "job" && k != "cron" && k != "route" {
			want = append(want, k)
		}
	}
	want = append(want, keysBelowChecks()...)
	for _, k := range want {
		if !rows[k] {
			t.Errorf("%s is not in the reference", k)
		}
	}
	for k := range rows {
		group, _, below := strings.Cut(k, ".")
		if below && slices.Contains([]string{"apps[]", "checks[]", "rollout", "job", "cron", "reload", "route"}, group) && !slices.Contains(want, k) {
			t.Errorf("%s is in the reference and no key", k)
		}
	}
}

// keysBelowChecks are the keys of each kind of check that has some.
func keysBelowChecks() (keys []string) {
	check := reflect.TypeFor[ring.Check]()
	for i := range check.NumField() {
		kind := check.Field(i)
		if kind.Type.Kind() != reflect.Pointer {
			continue
		}
		for j := range kind.Type.Elem().NumField() {
			keys = append(keys, "checks[]."+jsonName(kind)+"."+jsonName(kind.Type.Elem().Field(j)))
		}
	}
	return keys
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// What a check asks is told of each kind: of those that are structs, and of the two that
// are not.
func TestTheReferenceTellsWhatEachCheckAsks(t *testing.T) {
	b, err := os.ReadFile("../docs/reference/checks-and-restarts.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"exec", "docker"}
	for _, key := range keysBelowChecks() {
		kinds = append(kinds, strings.Split(key, ".")[1])
	}
	_, table, _ := strings.Cut(string(b), "## What a check asks")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, kind := range kinds {
		if !strings.Contains(table, "\n| `"+kind+"` | ") {
			t.Errorf("what %s asks is not told", kind)
		}
	}
}
