package fleet

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestTheUsersInventoryComesBeforeThatOfTheClone(t *testing.T) {
	home, clone := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(clone, ".git"), 0o755))
	below := filepath.Join(clone, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	_, err := Find(home, below)
	require.ErrorIs(t, err, fs.ErrNotExist)

	write(t, filepath.Join(clone, CloneFile), "hosts: {edge-1: {at: 'ssh://root@10.0.0.1'}, edge-2: {facts: {tier: edge}}}")
	inv, err := Find(home, below)
	require.NoError(t, err)
	h, ok := inv.Host("edge-1")
	require.True(t, ok)
	require.Equal(t, Address{User: "root", Host: "10.0.0.1", Foreign: true}, h.At, "a file of a clone does not choose where ssh goes")
	h, ok = inv.Host("edge-2")
	require.True(t, ok)
	require.Equal(t, Host{Name: "edge-2", At: Address{Host: "edge-2", Foreign: true}, Facts: map[string]string{"tier": "edge"}}, h)
	_, ok = inv.Host("edge-3")
	require.False(t, ok)

	write(t, filepath.Join(home, HomeFile), "hosts: {own: {}}")
	inv, err = Find(home, below)
	require.NoError(t, err)
	require.Equal(t, []string{"own"}, inv.Names())
	h, _ = inv.Host("own")
	require.Equal(t, Address{Host: "own"}, h.At)

	write(t, filepath.Join(home, HomeFile), "hosts: [")
	_, err = Find(home, below)
	require.ErrorContains(t, err, "cannot read the inventory", "a broken one is not passed over")
}

func TestMistakesOfAnInventoryAreTold(t *testing.T) {
	for text, says := range map[string]string{
		"hosts: {edge-1: {at: 'ssh://-oProxyCommand=x'}}": "host edge-1: \"ssh://-oProxyCommand=x\" is no host to ask",
		"hosts: {-oProxyCommand=x: {}}":                   "is no name of a host",
		"hosts: {'edge 1': {}}":                           "is no name of a host",
		"hosts: {edge-1: {adress: x}}":                    "field adress not found",
		"host: {}":                                        "field host not found",
		"hosts: [edge-1]":                                 "cannot unmarshal",
		"hosts: {a: {}, a: {}}":                           "already defined",
		"x: &x [*x]":                                      "",
	} {
		_, err := Parse("fleet.yaml", []byte(text))
		require.ErrorContains(t, err, "cannot read the inventory fleet.yaml: ", text)
		require.ErrorContains(t, err, says, text)
	}
	inv, err := Parse("fleet.yaml", []byte("waves: [{hosts: [a]}]\nhosts: {a: {}}"))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, inv.Names())
	inv, err = Parse("fleet.yaml", nil)
	require.NoError(t, err)
	require.Empty(t, inv.Names())
}

func TestAPatternNamesHosts(t *testing.T) {
	inv, err := Parse("fleet.yaml", []byte("hosts: {edge-1: {}, edge-2: {}, core: {}, edge-10: {}}"))
	require.NoError(t, err)
	for pattern, want := range map[string][]string{
		"*": {"core", "edge-1", "edge-10", "edge-2"}, "edge-*": {"edge-1", "edge-10", "edge-2"}, "edge-1": {"edge-1"}, "*-1": {"edge-1"},
		"core,edge-2": {"core", "edge-2"}, "*e*1*": {"edge-1", "edge-10"}, "edge-1*, edge-1": {"edge-1", "edge-10"},
	} {
		hosts, err := inv.Match(pattern)
		require.NoError(t, err, pattern)
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		require.Equal(t, want, names, pattern)
	}
	for _, pattern := range []string{"", "edge", "edge-3", "edge-*,db-*", "Edge-1", "e?ge-1", "*x"} {
		_, err := inv.Match(pattern)
		require.ErrorContains(t, err, "no host ", pattern)
	}
}
