package manifest

import (
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// link is a service of the app under a name that another service gives it.
type link struct{ target, alias, entry string }

func linksOf(c types.ServiceConfig) []link {
	var out []link
	for _, entry := range c.Links {
		target, alias, _ := strings.Cut(entry, ":")
		out = append(out, link{target, or2(alias, target), entry})
	}
	return out
}

// linkAliases are the names that links of others give to a service on a network
// that both join. A link was once seen by its own service only; an alias is seen
// by all on the network, which is noted.
func (b *builderOf) linkAliases(name, network string) []string {
	var out []string
	for _, other := range sortedKeys(b.project.Services) {
		c := b.project.Services[other]
		if _, joins := c.Networks[network]; !joins {
			continue
		}
		for _, l := range linksOf(c) {
			if l.target == name && l.alias != name {
				b.note("%s: the link of %s gives it the name %s on network %s, for all services there", name, other, l.alias, network)
				out = append(out, l.alias)
			}
		}
	}
	return out
}

// namesLinks refuses links that no alias could stand for.
func (b *builderOf) namesLinks(c types.ServiceConfig) {
	for _, l := range linksOf(c) {
		at := b.entryPlace(c.Name, "links", func(n *node) bool { return n.text == l.entry })
		if !b.active(c.Name, l.target, "links names", at) {
			continue
		}
		switch target := b.project.Services[l.target]; {
		case b.networksLost(c.Name) || b.networksLost(l.target):
		case !shareNetwork(c, target):
			b.bad(at, "let both join one network of the app, without network_mode", "services.%s links %s, but they share no network", c.Name, l.target)
		case l.alias != l.target && b.meant(l.alias) != "" && b.meant(l.alias) != l.target:
			b.bad(at, "choose another alias", "services.%s links %s as %s, which is also the name of %s", c.Name, l.target, head(l.alias), b.meant(l.alias))
		}
	}
}

// meant is the first service that goes by name: its own, or by a link.
func (b *builderOf) meant(name string) string {
	if _, ok := b.project.Services[name]; ok {
		return name
	}
	for _, other := range sortedKeys(b.project.Services) {
		for _, l := range linksOf(b.project.Services[other]) {
			if l.alias == name {
				return l.target
			}
		}
	}
	return ""
}

func shareNetwork(a, b types.ServiceConfig) bool {
	for key := range a.Networks {
		if _, both := b.Networks[key]; both {
			return true
		}
	}
	return false
}

func linkWords(k *keyCheck) {
	for _, it := range k.key.val.items {
		target, alias, named := strings.Cut(it.text, ":")
		if target == "" || named && !hostNames.MatchString(alias) {
			at := keyCheck{chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs}
			at.bad("write service, or service:alias", "%q is no link", head(it.text))
		}
	}
}
