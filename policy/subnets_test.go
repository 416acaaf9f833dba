package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// CreateOptions is a network as the engine is sent it.
type CreateOptions struct {
	IPAM *struct {
		Config []Pool
	}
}

type Pool struct {
	Subnet, IPRange, Gateway string
	AuxAddress               map[string]string
}

func init() { roots["policy.CreateOptions"] = "Network" }

func TestASubnetIsPrivate(t *testing.T) {
	for subnet, private := range map[string]bool{
		"10.0.0.0/8": true, "10.90.0.0/24": true, "10.90.0.7/24": true, "172.16.0.0/12": true, "172.31.255.0/24": true, "192.168.0.0/16": true, "192.168.1.128/25": true,
		"100.64.0.0/10": true, "100.127.255.0/24": true, "fd00::/64": true, "fd12:3456:789a::/48": true, "fc00::/64": true, "::ffff:10.0.0.0/104": true,
		"172.39.0.0/24": false, "172.32.0.0/16": false, "172.15.0.0/16": false, "11.0.0.0/8": false, "10.0.0.0/7": false, "192.0.0.0/8": false, "192.169.0.0/16": false,
		"100.0.0.0/8": false, "100.128.0.0/16": false, "0.0.0.0/0": false, "0.0.0.0/1": false, "8.8.8.0/24": false, "127.0.0.0/8": false, "224.0.0.0/4": false, "169.254.0.0/16": false,
		"169.254.169.0/24": false, "168.0.0.0/6": false, "2001:db8::/32": false, "::/0": false, "fe80::/64": false, "fd00:ec2::/64": false, "fd00::/8": false, "fc00::/7": false,
		"::ffff:8.8.8.0/120": false, "::1/128": false, "10.0.0.0": true, "10.0.0.0/33": false, "10.0.0/8": false, "x": false,
	} {
		for _, profile := range []Profile{Compose, Owner} {
			body := CreateOptions{IPAM: &struct{ Config []Pool }{[]Pool{{Subnet: subnet}}}}
			found := Check(Rules{Profile: profile}, Request{App: "web", Key: "network lan", Body: body})
			require.Equal(t, private, len(found) == 0, "%s: %v", subnet, found)
			for _, f := range found {
				require.Equal(t, "networks.subnets", f.Rule)
				require.Equal(t, "networks.lan.ipam.config", f.Key)
				require.Equal(t, profile == Owner && f.Owner, f.Verdict == Power)
			}
		}
	}
}

func TestEveryAddressOfASubnetIsPrivate(t *testing.T) {
	for _, pool := range []Pool{
		{Subnet: "10.9.0.0/16", IPRange: "8.8.8.0/24"},
		{Subnet: "10.9.0.0/16", Gateway: "8.8.8.8"},
		{Subnet: "10.9.0.0/16", Gateway: "169.254.169.254"},
		{Subnet: "10.9.0.0/16", AuxAddress: map[string]string{"a": "10.9.0.2", "b": "1.1.1.1"}},
	} {
		found := Check(Rules{}, Request{App: "web", Key: "network lan", Body: CreateOptions{IPAM: &struct{ Config []Pool }{[]Pool{{Subnet: "10.8.0.0/16"}, pool}}}})
		require.Len(t, found, 1, "%+v", pool)
		require.Equal(t, "networks.subnets", found[0].Rule)
	}
}
