package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

var asked = Asked{Asked: true}

// well is a host with which nothing is wrong.
func well() *Seen {
	return &Seen{
		Now: noon,
		Status: &ring.Status{Host: "edge-1", At: noon, Sources: []ring.SourceStatus{{
			Name: "prod", Branch: "main", Tip: "1234567890123456789012345678901234567890", Checked: noon.Add(-3 * time.Second),
			Apps: []ring.AppStatus{{Name: "web", Services: []ring.ServiceStatus{{Name: "api", Phase: ring.PhaseReady}}}},
		}}},
		Engine: Engine{
			Asked: asked, Version: "28.5.2", API: "1.51", Least: "1.41", Cgroup: "2", LogDriver: "json-file", Storage: "overlay2",
			Pools: 20, AtBoot: Boot{Asked: asked, Enabled: "enabled"},
		},
		Reboot:  Reboot{Asked: asked, Ready: 15},
		Folder:  Folder{Asked: asked, Path: "/var/lib/gitring", Owner: 990, User: 990, Mode: 0o700},
		Disk:    Disk{Asked: asked, Free: 40 << 30, Inodes: 1_000_000, Counts: true},
		Fronts:  Fronts{Asked: asked, Path: "/var/lib/gitring/front"},
		Journal: asked,
		Backup:  Backup{Asked: asked, At: noon.AddDate(0, 0, -3), Since: noon.AddDate(-1, 0, 0)},
		Trial:   Trial{Asked: asked},
		Secrets: Secrets{
			Asked: asked, Dir: "/run/gitring/secrets", Memory: true, Unit: true, Swap: Swap{Asked: asked},
			Keys: []KeyFile{{Asked: asked, Path: "/etc/gitring/age.key"}, {Asked: asked, Path: "/etc/gitring/old.key"}},
		},
		Clock: Clock{Asked: asked, Synced: true},
		Skews: []Skew{{Asked: asked, Host: "git.example.org", By: 400 * time.Millisecond}},
		Trust: []ring.TrustState{{
			Source: "prod", Mode: "strict", Trusted: "1234567890123456789012345678901234567890", Introduction: "1234567890123456789012345678901234567890",
			Signers: []ring.TrustedSigner{{Principal: "alice@example.org"}, {Principal: "bob@example.org", Until: noon.AddDate(0, 0, 31)}},
			Files:   []ring.TrustFile{{Path: "/etc/gitring/allowed_signers"}},
		}},
		Merges: true, Git: Git{Asked: asked, Version: "2.39.5"},
		Remotes:    []Remote{{Source: "prod", Host: "git.example.org", DNS: asked}},
		Health:     Health{Asked: asked, URL: "https://edge-1.example.org"},
		Forges:     []ForgeToken{{Asked: asked, Source: "prod", Expires: noon.AddDate(0, 2, 0), Left: 4000, Limit: 5000}},
		Registries: []Registry{{Asked: asked, Name: "ghcr.io", Image: "ghcr.io/acme/api:1", Login: Login{Asked: asked, Helper: "docker-credential-pass"}, Pulls: Pulls{Asked: asked, Left: 11, Of: 100, Within: 6 * time.Hour}}},
		Webhooks:   []Webhook{{Source: "prod", Taken: noon, Refused: 3}},
		Doors:      Doors{Asked: asked, Hooks: "127.0.0.1:9480", API: "127.0.0.1:9481"},
		Tokens:     Tokens{Asked: asked, All: []PersonToken{{Name: "ci", Until: noon.AddDate(0, 0, 8)}}},
		People:     People{Asked: asked, Groups: map[string][]string{"docker": {"gitring"}, "gitring-admin": {"alice"}}},
		Beside:     Beside{Asked: asked, Projects: []string{"traefik"}},
	}
}

func TestAHostThatIsWellHasOnlyChecksThatAreOK(t *testing.T) {
	for _, c := range Judge(well()) {
		require.Equal(t, OK, c.Result, "%s: %s: %s", c.About, c.Name, c.Says)
		require.Empty(t, c.Hint)
	}
	require.GreaterOrEqual(t, len(Judge(well())), 35)
}

func TestKeysAreCountedInPlainWords(t *testing.T) {
	keys := func(change func(*ring.TrustState)) string {
		s := well()
		change(&s.Trust[0])
		for _, c := range Judge(s) {
			if c.Name == "prod: keys" {
				return c.Says
			}
		}
		return ""
	}
	require.Equal(t, "2 keys are trusted, none is revoked", keys(func(*ring.TrustState) {}))
	require.Equal(t, "1 key is trusted, 3 revoked", keys(func(t *ring.TrustState) { t.Signers, t.Revoked = t.Signers[:1], 3 }))
}

// Each is one thing that is wrong, found by one check and by no other.
func TestEachThingThatIsWrongIsFoundAndNothingElseWithIt(t *testing.T) {
	away := Asked{Asked: true, Err: "no answer within 5s"}
	src := func(s *Seen) *ring.SourceStatus { return &s.Status.Sources[0] }
	service := func(s *Seen) *ring.ServiceStatus { return &src(s).Apps[0].Services[0] }
	for _, tt := range []struct {
		name  string
		wrong func(s *Seen)
		check string // about: name
		is    Result
		says  string
	}{
		{"a token that the forge does not take", func(s *Seen) { s.Forges[0].Refused = "the forge answered 401" }, "source: prod: token", Fail, "401"},
		{"a token that expired", func(s *Seen) { s.Forges[0].Expires = noon }, "source: prod: token", Fail, "expired on 2026-11-26"},
		{"a token that expires soon", func(s *Seen) { s.Forges[0].Expires = noon.AddDate(0, 0, 29) }, "source: prod: token", Warn, "expires on 2026-12-25"},
		{"few requests left", func(s *Seen) { s.Forges[0].Left = 499 }, "source: prod: token", Warn, "499 of 5000"},
		{"a forge that does not say", func(s *Seen) { s.Forges[0].Silent = true }, "source: prod: token", Skip, "does not say"},
		{"a forge that is away", func(s *Seen) { s.Forges[0].Asked = away }, "source: prod: token", Skip, "no answer"},
		{"a credential helper that is not there", func(s *Seen) { s.Registries[0].Login.Missing = true }, "registry: ghcr.io: credentials", Fail, "docker-credential-pass is not on"},
		{"a webhook whose secret is another one", func(s *Seen) { s.Webhooks = []Webhook{{Source: "prod", Refused: 2}} }, "source: prod: webhook", Warn, "none was taken since the daemon began, and 2 were refused"},
		{"a webhook that nobody called yet", func(s *Seen) { s.Webhooks = []Webhook{{Source: "prod"}} }, "source: prod: webhook", Skip, "none came"},
		{"few pulls that are left", func(s *Seen) { s.Registries[0].Pulls = Pulls{Asked: asked, Left: 10, Of: 100, Within: 6 * time.Hour} }, "registry: ghcr.io: pulls", Warn, "10 of 100 are left, of those that it gives in 6 h"},
		{"no pull that is left", func(s *Seen) { s.Registries[0].Pulls = Pulls{Asked: asked, Of: 100} }, "registry: ghcr.io: pulls", Warn, "0 of 100 are left"},
		{"credentials that nobody asked for", func(s *Seen) { s.Registries[0].Login = Login{} }, "registry: ghcr.io: credentials", Skip, ""},
		{"a docker config file that cannot be read", func(s *Seen) { s.Registries[0].Login.Err = "no docker config file" }, "registry: ghcr.io: credentials", Skip, "no docker config file"},
		{"an api that is plain", func(s *Seen) { s.Doors.APIWide, s.Doors.APIPlain = true, true }, "doors: api", Warn, "without TLS"},
		{"cookies that are plain", func(s *Seen) { s.Doors.PlainCookie = true }, "doors: api", Warn, "cookies"},
		{"a token that ends soon", func(s *Seen) { s.Tokens.All[0].Until = noon.AddDate(0, 0, 6) }, "doors: tokens", Warn, "ci on 2026-12-02"},
		{"a token that never ends", func(s *Seen) { s.Tokens.All[0].Until = time.Time{} }, "doors: tokens", Warn, "never expire: ci"},
		{"a file of tokens that cannot be used", func(s *Seen) { s.Tokens.Err = "line 2 grants nothing" }, "doors: tokens", Fail, "line 2"},
		{"tokens that nobody asked for", func(s *Seen) { s.Tokens = Tokens{} }, "doors: tokens", Skip, ""},
		{"cgroup v1", func(s *Seen) { s.Engine.Cgroup = "1" }, "engine: cgroup", Warn, "version 1"},
		{"a cgroup that is not told", func(s *Seen) { s.Engine.Cgroup = "" }, "engine: cgroup", Skip, ""},
		{"rootless", func(s *Seen) { s.Engine.Rootless = true }, "engine: root", Warn, "rootless"},
		{"a log driver that cannot be read", func(s *Seen) { s.Engine.LogDriver = "syslog" }, "engine: logs", Warn, "syslog"},
		{"a log driver that is not told", func(s *Seen) { s.Engine.LogDriver = "" }, "engine: logs", Skip, ""},
		{"a storage driver of old", func(s *Seen) { s.Engine.Storage = "vfs" }, "engine: storage", Warn, "vfs"},
		{"a storage driver that is not told", func(s *Seen) { s.Engine.Storage = "" }, "engine: storage", Skip, ""},
		{"four networks are left", func(s *Seen) { s.Engine.Pools = 4 }, "engine: address pools", Warn, "4 more"},
		{"no network is left", func(s *Seen) { s.Engine.Pools = 0 }, "engine: address pools", Fail, "no addresses"},
		{"nobody knows of networks", func(s *Seen) { s.Engine.Pools = -1 }, "engine: address pools", Skip, ""},
		{"an engine that is not started at boot", func(s *Seen) { s.Engine.AtBoot.Enabled = "disabled" }, "engine: starts at boot", Warn, "disabled"},
		{"a host without systemd", func(s *Seen) { s.Engine.AtBoot = Boot{} }, "engine: starts at boot", Skip, ""},
		{"one that a reboot ends", func(s *Seen) { s.Reboot.Stay = []string{"web/api", "web/api"} }, "reboot: services come back", Warn, "13 of 15 instances come back if gitring does not: not web/api"},
		{"a reboot that nobody can tell of", func(s *Seen) { s.Reboot = Reboot{Asked: away} }, "reboot: services come back", Skip, "no answer within 5s"},
		{"a state that others may read", func(s *Seen) { s.Folder.Mode = 0o750 }, "state: owner and mode", Fail, "0750"},
		{"a state of somebody else", func(s *Seen) { s.Folder.Owner = 0 }, "state: owner and mode", Warn, "belongs to user 0"},
		{"a state over the network", func(s *Seen) { s.Folder.FileSort = "nfs" }, "state: file system", Fail, "nfs"},
		{"a state in memory", func(s *Seen) { s.Folder.FileSort = "tmpfs" }, "state: file system", Fail, "in memory"},
		{"a folder of fronts where nothing may run", func(s *Seen) { s.Fronts.NoExec = true }, "state: fronts can run", Warn, "/var/lib/gitring/front is on a mount with noexec"},
		{"a folder of fronts that nobody asked about", func(s *Seen) { s.Fronts = Fronts{} }, "state: fronts can run", Skip, ""},
		{"a disk that is nearly full", func(s *Seen) { s.Disk.Free = 200 << 20 }, "state: room", Warn, "200 MiB"},
		{"a disk that is full", func(s *Seen) { s.Disk.Free = 3 << 20 }, "state: room", Fail, "3 MiB"},
		{"few inodes", func(s *Seen) { s.Disk.Inodes = 5000 }, "state: inodes", Warn, "5000"},
		{"no inodes", func(s *Seen) { s.Disk.Inodes = 0 }, "state: inodes", Fail, "0 are left"},
		{"a journal that was changed", func(s *Seen) { s.Journal.Err = "cannot trust the journal: line 7 was changed" }, "state: journal", Fail, "line 7"},
		{"a journal that nobody read", func(s *Seen) { s.Journal = Asked{} }, "state: journal", Skip, ""},
		{"a store that takes nothing", func(s *Seen) { s.Status.Store = "cannot write: disk full" }, "state: writable", Fail, "disk full"},
		{"a configuration that is wrong by now", func(s *Seen) { s.Status.Config = "c.yaml:4: no" }, "state: configuration", Fail, "c.yaml:4"},
		{"a configuration that was changed", func(s *Seen) { s.Status.ConfigDiffers = true }, "state: configuration", Warn, "changed"},
		{"a backup of last month", func(s *Seen) { s.Backup.At = noon.AddDate(0, 0, -31) }, "state: backup", Warn, "31 days old"},
		{"no backup for a year", func(s *Seen) { s.Backup.At = time.Time{} }, "state: backup", Warn, "none yet"},
		{"a trial that does not end", func(s *Seen) { s.Trial.On, s.Trial.To, s.Trial.Until = true, "0.2.0", noon.Add(-time.Second) }, "state: upgrade", Warn, "0.2.0 is on trial since longer"},
		{"a trial that nobody asked about", func(s *Seen) { s.Trial = Trial{} }, "state: upgrade", Skip, ""},
		{"a key file that is gone", func(s *Seen) { s.Secrets.Keys[1].Missing = true }, "secrets: key files", Fail, "/etc/gitring/old.key is not there"},
		{"a key file that others may read", func(s *Seen) { s.Secrets.Keys[0].Others = true }, "secrets: key files", Fail, "others may read or write /etc/gitring/age.key"},
		{"a key file that cannot be looked at", func(s *Seen) { s.Secrets.Keys[0].Err = "permission denied" }, "secrets: key files", Skip, "/etc/gitring/age.key"},
		{"files in memory that nothing places at boot", func(s *Seen) { s.Secrets.Unit = false }, "secrets: reboot", Warn, "after a reboot without gitring"},
		{"files that containers of before have in memory", func(s *Seen) { s.Secrets.Memory, s.Secrets.Before = false, 2 }, "secrets: reboot", Warn, "mount 2 of the folders in /run/gitring/secrets, which a reboot empties"},
		{"a swap that takes secrets", func(s *Seen) { s.Secrets.Swap.On = true }, "secrets: swap", Warn, "/run/gitring/secrets"},
		{"a swap that nobody can tell of", func(s *Seen) { s.Secrets.Swap.Asked = away }, "secrets: swap", Skip, "no answer within 5s"},
		{"a clock that nothing keeps", func(s *Seen) { s.Clock.Synced = false }, "clock: synchronised", Warn, "nothing keeps it"},
		{"a clock that may not be asked", func(s *Seen) { s.Clock = Clock{Asked: Asked{Asked: true, Err: "operation not permitted"}} }, "clock: synchronised", Skip, "not permitted"},
		{"a clock that is half a minute late", func(s *Seen) { s.Skews[0].By = -31 * time.Second }, "clock: against git.example.org", Warn, "31s"},
		{"a clock that is wrong", func(s *Seen) { s.Skews[0].By = 6 * time.Minute }, "clock: against git.example.org", Fail, "6m0s"},
		{"a remote that tells no time", func(s *Seen) { s.Skews[0].Asked = away }, "clock: against git.example.org", Skip, "no answer"},
		{"a mode that trusts more", func(s *Seen) { s.Trust[0].Warning = "signatures are not checked" }, "trust: prod: mode", Warn, "not checked"},
		{"trust on first use", func(s *Seen) {
			s.Trust[0].Introduction, s.Trust[0].Began = "", &ring.Beginning{SHA: "abcdef1234567890123456789012345678901234", How: ring.ByFirstUse}
		}, "trust: prod: beginning", Warn, "abcdef1"},
		{"nothing trusted yet", func(s *Seen) { s.Trust[0].Trusted = "" }, "trust: prod: beginning", Skip, ""},
		{"a key that expires", func(s *Seen) { s.Trust[0].Signers[1].Until = noon.AddDate(0, 0, 29) }, "trust: prod: keys", Warn, "bob@example.org on 2026-12-25"},
		{"no key that counts", func(s *Seen) {
			s.Trust[0].Signers = []ring.TrustedSigner{{Until: noon.AddDate(0, 0, -1)}, {Revoked: "/etc/r:1"}}
		}, "trust: prod: keys", Fail, "no key is trusted"},
		{"no keys in mode disabled", func(s *Seen) { s.Trust[0].Mode, s.Trust[0].Signers = "disabled", nil }, "trust: prod: keys", Skip, ""},
		{"a file that others may write", func(s *Seen) { s.Trust[0].Files[0].Wrong = "others may write it" }, "trust: prod: files", Fail, "allowed_signers"},
		{"trust on no file", func(s *Seen) { s.Trust[0].Files = nil }, "trust: prod: files", Skip, ""},
		{"a git that is too old", func(s *Seen) { s.Git = Git{Asked: asked, Version: "2.30.2", Old: true} }, "trust: git", Fail, "2.30.2"},
		{"no git", func(s *Seen) { s.Git = Git{Asked: Asked{Asked: true, Err: "not found"}} }, "trust: git", Skip, "not found"},
		{"a name that nobody knows", func(s *Seen) { s.Remotes[0].DNS.Err = "no such host" }, "source: prod: name", Fail, "no such host"},
		{"a remote that has been silent", func(s *Seen) {
			src(s).Conditions = []ring.Condition{{Type: ring.ConditionStale, Reason: "the remote was last reached an hour ago"}}
		}, "source: prod: remote", Fail, "an hour ago"},
		{"a branch that is not there", func(s *Seen) { src(s).Tip = "" }, "source: prod: branch", Fail, "main is not there"},
		{"a forge that takes nothing", func(s *Seen) { src(s).Forge = "401: the token is wrong" }, "source: prod: forge", Fail, "401"},
		{"a public name that the host cannot reach", func(s *Seen) { s.Health.Err = "connection refused" }, "doors: listen.url", Warn, "refused"},
		{"a registry that says no", func(s *Seen) { s.Registries[0].Refused, s.Registries[0].Err = true, "denied" }, "registry: ghcr.io", Fail, "denied"},
		{"a registry that is away", func(s *Seen) { s.Registries[0].Err = "its registry did not answer in time" }, "registry: ghcr.io", Warn, "in time"},
		{"a registry that nobody asked", func(s *Seen) { s.Registries[0].Asked = Asked{} }, "registry: ghcr.io", Skip, ""},
		{"webhooks open to the world", func(s *Seen) { s.Doors.Hooks, s.Doors.Wide = "0.0.0.0:9480", true }, "doors: webhooks", Warn, "0.0.0.0:9480"},
		{"somebody in the group docker", func(s *Seen) { s.People.Groups["docker"] = []string{"gitring", "eve"} }, "people: docker", Warn, "eve may do anything"},
		{"another program at our containers", func(s *Seen) { service(s).Conditions = []ring.Condition{{Type: ring.ConditionContested}} }, "apps: contested", Fail, "web/api"},
		{"a hub that takes no report", func(s *Seen) { s.Status.Hub = "the hub has taken no report: the hub answered 507" }, "apps: messages", Warn, "answered 507"},
		{"messages that nobody takes", func(s *Seen) { s.Status.Receivers = []ring.ReceiverStatus{{Name: "team", Waiting: 1, Dead: 1}} }, "apps: messages", Warn, "team (2 messages)"},
		{"a port that somebody has", func(s *Seen) { service(s).Code = ring.WhyHostNotReady }, "apps: host", Fail, "web/api"},
		{"an engine that does not tell what else runs", func(s *Seen) { s.Beside = Beside{Asked: away} }, "apps: beside ours", Skip, "no answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := well()
			tt.wrong(s)
			var found []Check
			for _, c := range Judge(s) {
				if c.Result != OK {
					found = append(found, c)
				}
			}
			require.Len(t, found, 1)
			require.Equal(t, tt.check, found[0].About+": "+found[0].Name)
			require.Equal(t, tt.is, found[0].Result, found[0].Says)
			require.Contains(t, found[0].Says, tt.says)
			require.Equal(t, tt.is == Fail || tt.is == Warn, found[0].Hint != "", "what is wrong has a hint")
		})
	}
}

// Who skims the words must not take what is well for a fault.
func TestWhatIsOKDoesNotReadAsAFault(t *testing.T) {
	c := lacksCheck(&Engine{Lacks: []string{"parts of volumes"}})
	require.Equal(t, OK, c.Result)
	require.Contains(t, c.Says, "only a newer engine has parts of volumes")
	require.NotContains(t, c.Says, "too old")
}

func TestAnEngineThatIsAwayFailsOnce(t *testing.T) {
	s := well()
	s.Engine = Engine{Asked: Asked{Asked: true, Err: "cannot reach the engine"}}
	fails := 0
	for _, c := range Judge(s) {
		if c.Result == Fail {
			require.Equal(t, "engine", c.About)
			fails++
		}
	}
	require.Equal(t, 1, fails)
}

func TestWhatNobodyAskedIsNeverOK(t *testing.T) {
	for _, c := range Judge(&Seen{Now: noon, Remotes: []Remote{{Source: "prod", Host: "git.example.org"}}, Merges: true}) {
		require.Equal(t, Skip, c.Result, "%s: %s: %s", c.About, c.Name, c.Says)
	}
}

func TestOfSecretsOnlyWhatMattersIsSaid(t *testing.T) {
	for name, change := range map[string]func(s *Secrets){
		"no key":              func(s *Secrets) { *s = Secrets{Asked: asked, Memory: true} },
		"on the disk":         func(s *Secrets) { s.Memory, s.Unit, s.Swap = false, false, Swap{Asked: asked, On: true} },
		"a mount with noswap": func(s *Secrets) { s.Swap.On, s.Swap.Kept = true, true },
	} {
		s := well()
		change(&s.Secrets)
		for _, c := range Judge(s) {
			require.Equal(t, OK, c.Result, "%s: %s", name, c.Says)
		}
	}
}

func TestAYoungHostNeedsNoBackup(t *testing.T) {
	s := well()
	s.Backup = Backup{Asked: asked, Since: noon.AddDate(0, 0, -2)}
	for _, c := range Judge(s) {
		require.Equal(t, OK, c.Result, c.Says)
	}
}

func TestAReportFailsWhereOneCheckDoes(t *testing.T) {
	require.False(t, (&Report{Checks: []Check{{Result: OK}, {Result: Warn}, {Result: Skip}}}).Failed())
	require.True(t, (&Report{Checks: []Check{{Result: OK}, {Result: Fail}}}).Failed())
}

func TestEveryLineIsOneSentenceWithoutAPeriod(t *testing.T) {
	for _, c := range Judge(well()) {
		require.NotContains(t, c.Says, "\n")
		require.False(t, strings.HasSuffix(c.Says, "."), c.Says)
	}
}
