package manifest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const fleetText = `hosts:
  canary-1: {at: "ssh://canary-1", facts: {tier: edge}}
  edge-1: {facts: {tier: edge}}
  edge-2: {}
  db-1:
  spare:
waves:
  - {hosts: [canary-1], soak: 10m}
  - {hosts: ["edge-*", canary-1], soak: 1h}
  - {hosts: [nobody-*]}
  - {hosts: db-1}
`

func TestAHostWaitsForTheWavesBeforeItsOwn(t *testing.T) {
	first := ring.Wave{Hosts: []string{"canary-1"}, Soak: 10 * time.Minute}
	second := ring.Wave{Hosts: []string{"edge-1", "edge-2"}, Soak: time.Hour}
	last := ring.Wave{Hosts: []string{"db-1"}}
	for host, want := range map[string][]ring.Wave{
		"canary-1": nil,
		"edge-2":   {first},
		"db-1":     {first, second},
		"spare":    {first, second, last}, // in no wave: after all
		"unknown":  {first, second, last}, // not in the file: after all
	} {
		s := settings()
		s.Host = host
		plan, refusals := Check(repo(map[string]string{fleetFile: fleetText, "web/compose.yaml": one}), s)
		require.Empty(t, refusals, host)
		require.Equal(t, want, plan.Waves, host)
		require.Equal(t, host != "spare" && host != "unknown", plan.Awaited, "nobody comes after %s", host)
		require.Len(t, plan.Apps, 1)
	}
}

// The file is about all hosts of the repository, so it lies at the root.
func TestTheFileOfHostsLiesAtTheRootOfTheRepository(t *testing.T) {
	s := settings()
	s.Path = "prod"
	plan, _ := Check(repo(map[string]string{fleetFile: fleetText, "prod/web/compose.yaml": one}), s)
	require.Len(t, plan.Waves, 1)
	require.Len(t, plan.Apps, 1)
}

func TestAMistakeInTheFileOfHostsRefusesTheCommit(t *testing.T) {
	for text, want := range map[string]string{
		"hosts: [\n":                                       "Yaml",
		"hosts: {a: {}}\nwave: []\n":                       `UnknownKey unknown key wave`,
		"hosts: {a: {at: edge.example}}\n":                 `BadValue hosts.a.at: "edge.example" is no address of a host: it does not begin with ssh://`,
		"hosts: {a: {at: \"ssh://-oProxyCommand=x\"}}\n":   `BadValue hosts.a.at: "ssh://-oProxyCommand=x" is no address of a host: a name has letters`,
		"hosts: {A b: {}}\n":                               `BadValue hosts: "A b" is no name of a host`,
		"hosts: {a: {att: x}}\n":                           `UnknownKey unknown key att in hosts`,
		"hosts: {a: }\nwaves: {a: b}\n":                    `BadValue waves is not a list`,
		"waves: [a]\n":                                     `BadValue waves is not a mapping`,
		"waves: [{soak: 10m}]\n":                           `BadValue a wave names no hosts`,
		"waves: [{hosts: []}]\n":                           `BadValue a wave names no hosts`,
		"hosts: {a: }\nwaves: [{hosts: [a], soak: ten}]\n": `BadValue soak: "ten" is no duration from 0s on`,
		"hosts: {a: }\nwaves: [{hosts: [a], soak: -1s}]\n": `BadValue soak: "-1s" is no duration from 0s on`,
		"hosts: {a: }\nwaves: [{hosts: [a], sok: 1s}]\n":   `UnknownKey unknown key sok in waves`,
		"hosts: {a: }\nwaves: [{hosts: [b]}]\n":            `BadValue waves: "b" is no host of the file, so nobody would wait for it`,
		"hosts: {a: !reset {}}\n":                          "Yaml !reset and !override mean nothing in .gitring/fleet.yaml",
		"hosts: {a: {facts: [x]}}\n":                       "BadValue facts is not a mapping",
		"- hosts\n":                                        "Yaml the file is not a mapping of keys to values",
		"hosts: {a: {}}\nhosts: {b: {}}\n":                 "Yaml",
		"version https://git-lfs.github.com/spec/":         "LfsPointer",
	} {
		plan, refusals := Check(repo(map[string]string{fleetFile: text, "web/compose.yaml": one}), settings())
		require.NotNil(t, plan.Refusal, text)
		require.Empty(t, plan.Apps, text)
		require.NotEmpty(t, refusals, text)
		require.Equal(t, fleetFile, plan.Refusal.File, text)
		require.Contains(t, string(plan.Refusal.Code)+" "+plan.Refusal.Says, want, text)
		require.NotEmpty(t, plan.Refusal.Hint, text)
	}
	plan, _ := Check(repo(map[string]string{".gitring/fleet.yml": fleetText, "web/compose.yaml": one}), settings())
	require.Equal(t, ring.BadName, plan.Refusal.Code)
}

func TestWavesNeedAForge(t *testing.T) {
	s := settings()
	s.NoStatus, s.Host = true, "canary-1"
	plan, _ := Check(repo(map[string]string{fleetFile: fleetText, "web/compose.yaml": one}), s)
	require.NotNil(t, plan.Refusal, "the first wave, too: nobody would hear of it")
	require.Equal(t, "waves need status: of source prod: hosts hear of each other by the forge alone", plan.Refusal.Says)
	require.Equal(t, "add status: to source prod in the configuration of this host, or take waves out of .gitring/fleet.yaml", plan.Refusal.Hint)
	require.Equal(t, 7, plan.Refusal.Line)
	plan, _ = Check(repo(map[string]string{fleetFile: "hosts: {a: {}}\nwaves: []\n", "web/compose.yaml": one}), s)
	require.Nil(t, plan.Refusal)
}

func TestHostsThatNothingMatchesAreDoubted(t *testing.T) {
	apps := "version: 1\napps:\n  - {path: web, targets: {tier: edge}}\n  - {path: db, targets: {tier: core}}\n  - {path: all}\n"
	files := map[string]string{fleetFile: fleetText, "gitring.yaml": apps, "web/compose.yaml": one, "db/compose.yaml": one, "all/compose.yaml": one}
	plan, _ := Check(repo(files), settings())
	require.Equal(t, []string{
		`.gitring/fleet.yaml:10: waves: "nobody-*" names no host of the file, so nobody waits for it`,
		`gitring.yaml:4: targets of app db match no host of .gitring/fleet.yaml: it runs nowhere`,
	}, plan.Doubts)
	// Where no host of the file has facts, they stand elsewhere.
	files[fleetFile] = "hosts: {a: {}}\n"
	plan, _ = Check(repo(files), settings())
	require.Empty(t, plan.Doubts)
	delete(files, fleetFile)
	plan, _ = Check(repo(files), settings())
	require.Empty(t, plan.Doubts)
}
