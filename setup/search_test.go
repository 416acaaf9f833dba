package setup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
)

func TestTheFolderThatHoldsAllAppsIsProposed(t *testing.T) {
	for _, c := range []struct {
		apps, deep, want string
	}{
		{"web db", "", "."},
		{"", "a/b/web a/b/c/db", "a/b"},
		{"", "hosts/one/stacks/web hosts/one/stacks/db", "hosts/one"},
		{"web", "a/b/c", "."},
		{"", "a/b/c/d/e a/x", "."},
		{"", "a/b/c archive/x/y/z", "a"},
	} {
		f := foldersFound{apps: strings.Fields(c.apps)}
		for dir := range strings.FieldsSeq(c.deep) {
			f.notRead = append(f.notRead, notReadAt(dir))
		}
		require.Equal(t, c.want, f.commonPath(), "%s %s", c.apps, c.deep)
	}
}

func TestFoldersThatAreSetAsideAreKnown(t *testing.T) {
	for folder, want := range map[string]string{
		"docker/00-Archive/x": "docker/00-Archive", "_template/web": "_template", "apps/old": "apps/old", "web": "", "golden/web": "", "backup-tool": "", "a/Disabled/b/c": "a/Disabled",
		"backup": "", "stacks/Backups": "", "backup/web": "backup", "stacks/_backup/web": "stacks/_backup",
	} {
		require.Equal(t, want, setAsideAbove(folder), folder)
	}
}

// What was too deep before is read by the depth that is written, so it is left out with it.
func TestADepthBringsNothingInThatIsSetAside(t *testing.T) {
	f := foldersFound{apps: []string{"stacks/_template", "stacks/media"}}
	for _, dir := range []string{"deep/a/b/c/d", "stacks/_archive/old", "stacks/old/1/2/3/4/5"} {
		f.notRead = append(f.notRead, notReadAt(dir))
	}
	body, why := f.searchFile()
	require.Contains(t, body, "depth: 5\nexclude:\n  - _archive\n  - _template\n")
	require.Equal(t, []string{"searches 5 folders deep", "leaves out _archive, _template"}, why)
}

func notReadAt(dir string) manifest.NotRead {
	return manifest.NotRead{File: dir + "/compose.yaml", Why: manifest.TooDeep}
}

func TestWhatIsSetAsideIsLeftOutAndNotTooDeep(t *testing.T) {
	aside, others := partSetAside([]manifest.NotRead{notReadAt("apps/a/b/c"), notReadAt("apps/_archive/b/c"), {File: "apps/old.yml", Why: manifest.OtherName}, {File: "apps/x/compose.yaml", Why: manifest.Excluded}}, "apps")
	require.Equal(t, []manifest.NotRead{notReadAt("apps/_archive/b/c"), {File: "apps/x/compose.yaml", Why: manifest.Excluded}}, aside)
	require.Len(t, others, 2)
	require.Contains(t, saysLeftOut(aside)[0], "2 Compose files left out")
	aside, _ = partSetAside([]manifest.NotRead{notReadAt("old/a/b/c")}, "old")
	require.Empty(t, aside, "a source's own path is no such folder")
}
