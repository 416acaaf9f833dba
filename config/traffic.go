package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// TrafficConfig says which services get a front, and how fronts are on this host.
type TrafficConfig struct {
	Publish string `yaml:"publish"` // front | direct
	// Labels and Env are what moves to a front, by how it begins.
	Labels []string `yaml:"labels"`
	Env    []string `yaml:"env"`
	// TrustedProxies are those whose X-Forwarded-* count: networks, gateway, CIDRs.
	TrustedProxies []string    `yaml:"trusted_proxies"`
	Front          FrontConfig `yaml:"front"`
}

// FrontConfig bounds each front of this host.
type FrontConfig struct {
	Memory      string `yaml:"memory"`
	Connections int    `yaml:"connections"`
}

// Of all that a front trusts besides CIDRs.
const (
	TrustNetworks = "networks" // containers on its own networks
	TrustGateway  = "gateway"  // what comes by way of the engine
)

const (
	leastFrontMemory = 16 << 20 // what an idle front has
	mostConnections  = 30_000   // half of the descriptors that a front may have
)

func (t *TrafficConfig) setDefaults(l lines) {
	all := manifest.DefaultTraffic()
	orElse(&t.Publish, all.Publish)
	if _, said := l["traffic.labels"]; !said {
		t.Labels = all.Labels
	}
	if _, said := l["traffic.env"]; !said {
		t.Env = all.Env
	}
	if _, said := l["traffic.trusted_proxies"]; !said {
		t.TrustedProxies = all.Trusted
	}
	orElse(&t.Front.Memory, wording.SettingSize(all.Memory))
	if _, said := l["traffic.front.connections"]; !said {
		t.Front.Connections = all.Connections
	}
}

// Settings are what plans depend on.
func (t *TrafficConfig) Settings() manifest.Traffic {
	nothing := func(words []string) []string {
		if words == nil {
			return []string{}
		}
		return words
	}
	memory, _ := wording.ParseSize(t.Front.Memory)
	return manifest.Traffic{
		Publish: t.Publish, Labels: nothing(t.Labels), Env: nothing(t.Env), Trusted: nothing(t.TrustedProxies),
		Memory: memory, Connections: t.Front.Connections,
	}
}

// envBeginning is how the name of a variable may begin.
var envBeginning = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (k *checker) traffic(t *TrafficConfig) {
	if t.Publish != ring.PublishFront && t.Publish != ring.PublishDirect {
		k.wrong("traffic.publish", ring.Meant(t.Publish, []string{ring.PublishFront, ring.PublishDirect}), "traffic.publish: %q is neither front nor direct", t.Publish)
	}
	for i, label := range t.Labels {
		switch at := fmt.Sprintf("traffic.labels[%d]", i); {
		case strings.TrimSpace(label) == "" || strings.ContainsAny(label, " \t\n="):
			k.wrong(at, "write how labels begin, such as traefik.", "traffic.labels: %q is no beginning of a label", label)
		case strings.HasPrefix("gitring.", label), strings.HasPrefix(label, "gitring."), strings.HasPrefix("com.docker.compose.", label), strings.HasPrefix(label, "com.docker.compose."):
			k.wrong(at, "take it out", "traffic.labels: by labels that begin with %q gitring and Compose know what is theirs", label)
		}
	}
	for i, name := range t.Env {
		if !envBeginning.MatchString(name) {
			k.wrong(fmt.Sprintf("traffic.env[%d]", i), "write how names of variables begin, such as VIRTUAL_", "traffic.env: %q is no beginning of a variable's name", name)
		}
	}
	for i, who := range t.TrustedProxies {
		if _, err := netip.ParsePrefix(who); err != nil && who != TrustNetworks && who != TrustGateway {
			k.wrong(fmt.Sprintf("traffic.trusted_proxies[%d]", i), "networks, gateway, or addresses such as 10.0.0.0/8 or 10.0.0.5/32", "traffic.trusted_proxies: %q is none of networks, gateway and CIDRs", who)
		}
	}
	switch bytes, ok := wording.ParseSize(t.Front.Memory); {
	case !ok:
		k.wrong("traffic.front.memory", "write a size such as 256MiB", "traffic.front.memory: %q is no size", t.Front.Memory)
	case bytes < leastFrontMemory:
		k.wrong("traffic.front.memory", "an idle front has 14 MiB; the default is 256MiB", "traffic.front.memory: %s is too little to work with, the least is %s", t.Front.Memory, wording.SettingSize(leastFrontMemory))
	}
	if n := t.Front.Connections; n < 1 || n > mostConnections {
		k.wrong("traffic.front.connections", "the default is 10000", "traffic.front.connections: %d is no number from 1 to %d", n, mostConnections)
	}
}
