package manifest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// greedy is an app that reads so many env files of this size.
func greedy(tree fstest.MapFS, folder string, files, size int) {
	var names []string
	for i := range files {
		name := fmt.Sprintf("e%d.env", i)
		tree[folder+"/"+name] = &fstest.MapFile{Data: []byte("A=b\n" + strings.Repeat("#\n", size/2)), Mode: 0o644}
		names = append(names, name)
	}
	body := "services: {a: {image: a, env_file: [" + strings.Join(names, ", ") + "]}}\n"
	tree[folder+"/compose.yaml"] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
}

func TestOneAppThatReadsTooMuchRefusesNoOther(t *testing.T) {
	for name, many := range map[string][2]int{"files": {250, 0}, "bytes": {12, 1_000_000}} {
		for _, folder := range []string{"aaa", "zzz"} { // before and after the other one
			t.Run(name+" in "+folder, func(t *testing.T) {
				tree := fstest.MapFS{"shop/compose.yaml": {Data: []byte("services: {web: {image: nginx}}\n"), Mode: 0o644}}
				greedy(tree, folder, many[0], many[1])
				plan, _ := Read(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, Settings{Source: "prod", Host: "edge-1", Limits: Limits{Files: 200, TotalSize: 8 << 20}})
				require.Nil(t, plan.Refusal)
				require.Len(t, plan.Apps, 1)
				require.Equal(t, "shop", plan.Apps[0].Name)
				require.Equal(t, ring.TooLarge, plan.Refused[folder].Code)
			})
		}
	}
}

func TestTheOnlyAppMayReadAllThatTheCommitMayHold(t *testing.T) {
	tree := fstest.MapFS{}
	greedy(tree, "shop", 150, 0)
	plan, _ := Read(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, Settings{Source: "prod", Host: "edge-1"})
	require.Len(t, plan.Apps, 1, plan.Refused)
}
