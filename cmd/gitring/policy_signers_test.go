package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

const netAdminFor = "feature: capabilities.add, value: NET_ADMIN, signers: [alice@example.org]"

// signedBy is a judge who knows which signer changed which file last.
func signedBy(t *testing.T, policy string, who map[string]string) admission.Judge {
	t.Helper()
	j := judgeOfPolicy(t, policy)
	j.Signed = func(_ *ring.App, file string, patterns []string) string {
		if slices.Contains(patterns, who[file]) {
			return ""
		}
		return "the newest change of " + file + " was signed by " + who[file]
	}
	return j
}

func TestAGrantForSignersCountsForTheFileThatTheySigned(t *testing.T) {
	const compose, override, alice, bob = "web/compose.yaml", "web/compose.override.yaml", "alice@example.org", "bob@example.org"
	two := func(first, second string) map[string]string {
		return map[string]string{compose: "services:\n  web:\n    image: nginx\n" + first, override: "services:\n  web:\n" + second}
	}
	for _, tt := range []struct {
		name, grant string
		files       map[string]string
		who         map[string]string
		passes      bool
	}{
		{"alice signed the only file", netAdminFor, webWith("cap_add: [NET_ADMIN]"), map[string]string{compose: alice}, true},
		{"bob did", netAdminFor, webWith("cap_add: [NET_ADMIN]"), map[string]string{compose: bob}, false},
		{"alice signed the file that asks, bob the other", netAdminFor, two("    init: true\n", "    cap_add: [NET_ADMIN]\n"), map[string]string{compose: bob, override: alice}, true},
		{"bob signed the file that asks", netAdminFor, two("    init: true\n", "    cap_add: [NET_ADMIN]\n"), map[string]string{compose: alice, override: bob}, false},
		{"bob asks beside a file of alice's with the same key", netAdminFor, two("    cap_add: [NET_ADMIN]\n", "    cap_add: [CHOWN]\n"), map[string]string{compose: bob, override: alice}, false},
		{"in a file that another one extends", netAdminFor, map[string]string{
			compose:         "services: {web: {extends: {file: base.yaml, service: base}}}\n",
			"web/base.yaml": "services: {base: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: alice, "web/base.yaml": bob}, false},
		{"in one that is included", netAdminFor, map[string]string{
			compose:         "include: [more.yaml]\n",
			"web/more.yaml": "services: {web: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: alice, "web/more.yaml": bob}, false},
		{
			"one value: the last file's counts", "feature: privileged, value: true, danger: root-equivalent, signers: [alice@example.org]",
			two("    privileged: true\n", "    privileged: true\n"),
			map[string]string{compose: alice, override: bob},
			false,
		},
		{
			"one value of alice's after bob's", "feature: privileged, value: true, danger: root-equivalent, signers: [alice@example.org]",
			two("    privileged: false\n", "    privileged: true\n"),
			map[string]string{compose: bob, override: alice},
			true,
		},
		{
			"an item of a list", "feature: security_opt, value: systempaths=unconfined, danger: root-equivalent, signers: [alice@example.org]",
			two("    security_opt: ['systempaths=unconfined']\n", "    security_opt: ['no-new-privileges:true']\n"),
			map[string]string{compose: bob, override: alice},
			false,
		},
		{
			"a list that counts whole: every file counts", "feature: devices, value: gpus, signers: [alice@example.org]",
			two("    gpus: all\n", "    gpus: [{count: 1}]\n"),
			map[string]string{compose: bob, override: alice},
			false,
		},
		{"by a variable", netAdminFor, map[string]string{
			compose: "services: {web: {image: nginx, cap_add: ['${CAP}']}}\n", "web/.env": "CAP=NET_ADMIN\n",
		}, map[string]string{compose: bob, "web/.env": alice}, false},
		{"bob extends what alice signed elsewhere", netAdminFor, map[string]string{
			compose:          "services: {web: {extends: {file: ../base/caps.yaml, service: base}}}\n",
			"base/caps.yaml": "services: {base: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: bob, "base/caps.yaml": alice}, false},
		{"bob extends a service of alice's override", netAdminFor, map[string]string{
			compose:  "services: {web: {image: nginx}, mine: {extends: {file: compose.override.yaml, service: web}, image: evil}}\n",
			override: "services: {web: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: bob, override: alice}, false},
		{"bob includes what alice signed elsewhere", netAdminFor, map[string]string{
			compose:          "include: [../base/caps.yaml]\n",
			"base/caps.yaml": "services: {web: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: bob, "base/caps.yaml": alice}, false},
		{"bob names it in COMPOSE_FILE", netAdminFor, map[string]string{
			compose: "services: {web: {image: nginx}}\n", "web/.env": "COMPOSE_FILE=compose.yaml:../base/caps.yaml\n",
			"base/caps.yaml": "services: {web: {cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: alice, "web/.env": bob, "base/caps.yaml": alice}, false},
		{"bob names it in gitring.yaml", netAdminFor, map[string]string{
			compose: "services: {web: {image: nginx}}\n", "gitring.yaml": "version: 1\napps: [{name: web, path: web, files: [compose.yaml, ../base/caps.yaml]}]\n",
			"base/caps.yaml": "services: {web: {cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: alice, "gitring.yaml": bob, "base/caps.yaml": alice}, false},
		{"alice signed all of it", netAdminFor, map[string]string{
			compose:          "services: {web: {extends: {file: ../base/caps.yaml, service: base}}}\n",
			"base/caps.yaml": "services: {base: {image: nginx, cap_add: [NET_ADMIN]}}\n",
		}, map[string]string{compose: alice, "base/caps.yaml": alice}, true},
		{
			"one of several signers", "feature: capabilities.add, value: NET_ADMIN, signers: [carol@example.org, bob@example.org]",
			webWith("cap_add: [NET_ADMIN]"),
			map[string]string{compose: bob},
			true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, refusals := signedBy(t, grantOf("web", "prod", "web", tt.grant), tt.who).Look(commitOf(tt.files), onProd)
			_, there := plan.App("web")
			require.Equal(t, tt.passes, there, "%v", refusals)
			require.Equal(t, tt.passes, len(refusals) == 0, "%v", refusals)
			if !tt.passes {
				require.Contains(t, refusals[0].Says, "signs: the newest change of ", "it says why the grant does not count")
				require.Contains(t, refusals[0].Hint, "sign a new change of that file")
			}
		})
	}
}

// What is in force has lost its places when the daemon starts again.
func TestWhatIsInForceRemembersTheFileThatAGrantForSignersLetPass(t *testing.T) {
	const compose, override = "web/compose.yaml", "web/compose.override.yaml"
	who := map[string]string{compose: "bob@example.org", override: "alice@example.org"}
	j := signedBy(t, grantOf("web", "prod", "web", netAdminFor), who)
	plan, _ := j.Look(commitOf(map[string]string{
		compose: "services: {web: {image: nginx}}\n", override: "services: {web: {cap_add: [NET_ADMIN]}}\n",
	}), onProd)
	app, ok := plan.App("web")
	require.True(t, ok)
	body, err := json.Marshal(app)
	require.NoError(t, err)
	var stored ring.App
	require.NoError(t, json.Unmarshal(body, &stored))
	refusals, powers := j.App(&stored, policy.Whose{})
	require.Empty(t, refusals)
	require.NotEmpty(t, powers)
	who[override] = "bob@example.org" // whoever signed it is revoked, say
	refusals, _ = j.App(&stored, policy.Whose{})
	require.Len(t, refusals, 1)
	require.Contains(t, refusals[0].Says, override)

	stored.UseFiles = nil
	refusals, _ = j.App(&stored, policy.Whose{})
	require.Len(t, refusals, 1, "where nothing is known nothing counts")
}

// In a folder nobody knows who will sign: it passes, and says for whom.
func TestAFolderIsToldForWhomAGrantCounts(t *testing.T) {
	plan, refusals := judgeOfPolicy(t, grantOf("web", "prod", "web", netAdminFor)).Look(commitOf(webWith("cap_add: [NET_ADMIN]")), onProd)
	require.Empty(t, refusals)
	i := slices.IndexFunc(plan.Decisions, func(d ring.Decision) bool { return d.Grant != "" })
	require.GreaterOrEqual(t, i, 0)
	require.Contains(t, plan.Decisions[i].Grant, "only for what alice@example.org signs")
}

func TestSignersOfAGrantThatCannotBeReadAreMistakes(t *testing.T) {
	for _, tt := range []struct{ signers, want string }{
		{"alice@example.org", "no list"}, {"[]", "no list"}, {"['']", "no name"}, {"[{a: b}]", "no name"}, {"[null]", "no name"},
	} {
		_, err := config.Read(withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n" +
			grantOf("web", "prod", "web", "feature: capabilities.add, value: NET_ADMIN, signers: "+tt.signers)}))
		var ms config.Mistakes
		require.ErrorAs(t, err, &ms, tt.signers)
		require.Contains(t, ms[0].Says, tt.want, tt.signers)
		require.Contains(t, ms[0].Hint, "signers: [alice@example.org]")
	}
	file := withPolicy(t, "policy: {"+strings.TrimSpace(grantOf("web", "prod", "web", netAdminFor))+"}", nil)
	_, err := config.Read(file)
	require.NoError(t, err)
}
