package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bob may change his folder alone. He claims the name of another app of the same source,
// for its value of the host and its volume, in each way that gives an app a name; while
// the app runs and after it left.
func TestALimitedSignerTakesNoNameOfAnotherApp(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	shop, blog := h.app("shop"), h.app("blog")
	bob := filepath.Join(h.dir, "bob")
	pub := newKey(t, bob)
	signers, err := os.ReadFile(h.repo.signers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.repo.signers, append(signers, []byte("bob@example.org namespaces=\"git\" "+pub)...), 0o600))
	h.source()["trust"].(obj)["signers"] = []any{
		obj{"signer": "alice@example.org"},
		obj{"signer": "bob@example.org", "paths": []any{blog + "/**"}},
	}
	h.config["env"] = obj{"dir": mkdir(t, h.dir, "env")}
	const secret = "only-the-shop-may-read-this"
	require.NoError(t, os.WriteFile(filepath.Join(mkdir(t, h.dir, "env", shop), ".env"), []byte("TOKEN="+secret+"\n"), 0o600))
	h.start()
	first := files{
		shop + "/compose.yaml": h.compose(shop, obj{"till": web("1", obj{"volumes": []any{"stock:/stock"}}, env("TOKEN", "${TOKEN}"))}, obj{"volumes": obj{"stock": obj{}}}),
		blog + "/compose.yaml": h.compose(blog, obj{"page": web("1")}),
	}
	h.deployed("A shop and a blog", first)
	till := h.one("till")
	h.tell(till, "/write?text="+secret+"&path=/stock/canary")
	_, body := h.ask(till, "/file?path=/stock/canary")
	require.Contains(t, body, secret)

	thief := func(more ...obj) string {
		return h.compose(shop, obj{"thief": web("1", obj{"volumes": []any{"stock:/stock"}}, env("TOKEN", "${TOKEN:-}"))}, append([]obj{{"volumes": obj{"stock": obj{}}}}, more...)...)
	}
	tries := []files{
		{blog + "/compose.yaml": thief(obj{"name": shop})},
		{blog + "/compose.yaml": h.compose(blog, obj{"page": web("1")}), blog + "/deep/compose.yaml": thief(obj{"name": shop})},
		{blog + "/compose.yaml": "", blog + "/" + shop + "/compose.yaml": thief()},
		{blog + "/compose.yaml": h.compose(blog, obj{"thief": web("1", obj{"volumes": []any{"stolen:/stock"}})}, obj{"volumes": obj{"stolen": obj{"name": shop + "_stock"}}})},
		{blog + "/compose.yaml": h.compose(blog, obj{"thief": web("1", obj{"volumes": []any{"stolen:/stock"}})}, obj{"volumes": obj{"stolen": obj{"external": true, "name": shop + "_stock"}}})},
	}
	for i := range amount(t, "LIMITED", 2*len(tries), 100) {
		if i == len(tries) {
			gone := h.repo.pushed("No shop", files{shop: ""})
			h.await("the shop is gone", func(st status) bool { return st.Sources[0].Tip == gone && len(h.containers("till")) == 0 })
		}
		sha := h.repo.pushed(fmt.Sprintf("Try %d", i), tries[i%len(tries)], "-S"+bob)
		h.await(fmt.Sprintf("try %d is judged", i), func(st status) bool {
			src := st.Sources[0]
			for _, a := range src.Apps {
				if a.Refusal != nil && a.Refusal.Commit == sha {
					return true
				}
			}
			return src.Refusal != nil && src.Refusal.Commit == sha || src.Commit == sha && src.Sync == "Synced"
		})
		for _, c := range h.containers("thief") {
			require.NotContains(t, strings.Join(c.Config.Env, "\n"), secret, "try %d", i)
			_, body := h.ask(c, "/file?path=/stock/canary")
			require.NotContains(t, body, secret, "try %d: container %s", i, c.Name)
		}
		if i < len(tries) {
			require.Equal(t, till.ID, h.one("till").ID, "try %d: the shop is not touched", i)
		}
		h.repo.pushed("Back", files{blog: ""})
		h.repo.pushed("Back", files{blog + "/compose.yaml": h.compose(blog, obj{"page": web("1")})})
	}
}

// A commit asks for a network that takes addresses of the internet or of the host. The
// engine is asked which subnets there are: none of them is made.
func TestNoCommitTakesTheHostsRoutes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.start()
	own := h.compose(app, obj{"web": web("1")})
	h.deployed("Version 1", files{app + "/compose.yaml": own})
	was := h.one("web").ID
	subnets := []string{"203.0.113.0/24", "1.1.1.0/28", "128.0.0.0/2", "8.8.8.8/32", "169.254.169.0/24", "2001:db8:1::/64"}
	for i := range amount(t, "SUBNETS", len(subnets), 100) {
		s := subnets[i%len(subnets)]
		in := obj{"networks": obj{"more": obj{"enable_ipv6": strings.Contains(s, ":"), "ipam": obj{"config": []any{obj{"subnet": s}}}}}}
		sha := h.repo.pushed("Try "+s, files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", obj{"networks": []any{"default", "more"}})}, in)})
		h.await("it is refused", func(st status) bool {
			r := st.app(app).Refusal
			return r != nil && r.Commit == sha && r.Code == "PolicyDenied"
		})
		var nets []struct {
			Name string
			IPAM struct{ Config []struct{ Subnet string } }
		}
		require.NoError(t, h.engine.call("GET", "/networks", nil, nil, &nets))
		for _, n := range nets {
			for _, c := range n.IPAM.Config {
				require.NotEqual(t, s, c.Subnet, "network %s was made", n.Name)
			}
		}
		require.Equal(t, was, h.one("web").ID)
	}
}
