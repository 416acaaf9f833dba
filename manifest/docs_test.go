package manifest

import (
	"os"
	"regexp"
	"strings"
	"testing"
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
	want = append(want, "version", "apps")
	for _, k := range jobKeys {
		want = append(want, "job."+k)
	}
	for _, k := range cronKeys {
		want = append(want, "cron."+k)
	}
	for _, k := range reloadKeys {
		want = append(want, "reload."+k)
	}
	for _, k := range extensionKeys {
		if k != "reload" && k != "rollout" && k != "job" && k != "cron" {
			want = append(want, k)
		}
	}
	for _, k := range want {
		if !rows[k] {
			t.Errorf("%s is not in the reference", k)
		}
	}
	for _, k := range append(extensionsLater, rolloutLater...) {
		if !strings.Contains(string(b), "`"+k+"`") && !strings.Contains(string(b), "rollout."+k) {
			t.Errorf("%s is refused and not in the reference", k)
		}
	}
}
