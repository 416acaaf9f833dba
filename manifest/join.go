package manifest

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// tie is a namespace or the volumes of another service that a service takes.
type tie struct {
	key   string // of the service: network_mode, ipc, pid, volumes_from
	owner string
	entry string // as written
}

// tiesOf are in the order of their keys.
func tiesOf(c types.ServiceConfig) []tie {
	var out []tie
	for _, t := range []tie{{key: "ipc", entry: c.Ipc}, {key: "network_mode", entry: c.NetworkMode}, {key: "pid", entry: c.Pid}} {
		if owner, ok := ownerOf(t.entry); ok {
			out = append(out, tie{t.key, owner, t.entry})
		}
	}
	for _, v := range c.VolumesFrom {
		if !strings.HasPrefix(v, types.ContainerPrefix) {
			owner, _, _ := strings.Cut(v, ":")
			out = append(out, tie{"volumes_from", owner, v})
		}
	}
	return out
}

// ownerOf is the service that a mode such as service:db names.
func ownerOf(mode string) (string, bool) {
	owner, ok := strings.CutPrefix(mode, types.ServicePrefix)
	if !ok {
		return "", false
	}
	return owner, true
}

func (b *builderOf) joinPlace(service string, t tie) place {
	return b.entryPlace(service, t.key, func(n *node) bool { return n.text == t.entry })
}

// implied reports whether a service waits for another without depends_on.
func implied(c types.ServiceConfig, other string) bool {
	return slices.ContainsFunc(tiesOf(c), func(t tie) bool { return t.owner == other }) ||
		slices.ContainsFunc(linksOf(c), func(l link) bool { return l.target == other })
}

// joins says in which networks and namespaces an instance of c is.
func (b *builderOf) joins(c types.ServiceConfig, s *ring.Spec) {
	b.networkOf(c, s)
	if owner, ok := ownerOf(c.Pid); ok {
		s.PIDOf = owner
	} else {
		s.PIDMode = c.Pid
	}
	if owner, ok := ownerOf(c.Ipc); ok {
		s.IPCOf = owner
	} else {
		s.IPCMode = c.Ipc
	}
	b.shareIPC(c, s)
	for _, v := range c.VolumesFrom {
		owner, mode, _ := strings.Cut(v, ":")
		s.VolumesFrom = append(s.VolumesFrom, ring.VolumesFrom{Service: owner, ReadOnly: mode == "ro"})
	}
	slices.SortFunc(s.VolumesFrom, func(a, b ring.VolumesFrom) int { return strings.Compare(a.Service, b.Service) })
	for i := 1; i < len(s.VolumesFrom); i++ {
		if s.VolumesFrom[i].Service == s.VolumesFrom[i-1].Service {
			b.bad(b.place("services", c.Name, "volumes_from"), "keep one of them", "services.%s takes the volumes of %s twice", c.Name, s.VolumesFrom[i].Service)
		}
	}
}

func (b *builderOf) networkOf(c types.ServiceConfig, s *ring.Spec) {
	owner, ok := ownerOf(c.NetworkMode)
	switch mode := c.NetworkMode; {
	case ok:
		s.NetworkOf = owner
		b.ownersBusiness(c, owner)
		if len(s.Expose) > 0 { // a word to readers, for which the engine refuses the container
			b.note("%s: expose is not used, its network is that of %s", c.Name, owner)
			s.Expose = nil
		}
	case mode == "none":
		s.NoNetwork = true
	case mode == "host":
		s.NetworkMode = mode
		if len(s.Ports) > 0 {
			b.note("%s: ports are not used, on the host's network each port is the host's already", c.Name)
			s.Ports = nil
		}
		if c.MacAddress != "" {
			b.bad(b.place("services", c.Name, "mac_address"), "remove it", "services.%s.mac_address cannot be set on the host's network", c.Name)
		}
	case strings.HasPrefix(mode, types.ContainerPrefix): // of another app: joinElsewhere
		s.NetworkMode = mode
		b.ownersBusiness(c, strings.TrimPrefix(mode, types.ContainerPrefix))
		s.Expose = nil
	case mode == "bridge", mode == "default":
		s.NetworkMode = "bridge"
	default:
		s.Networks = b.attachments(c)
	}
}

// networkOwner is whose network an instance is in, "" where it has its own or the host's.
func networkOwner(s *ring.Spec) string {
	name, _ := strings.CutPrefix(s.NetworkMode, types.ContainerPrefix)
	if name == s.NetworkMode {
		name = ""
	}
	return or2(s.NetworkOf, name)
}

// ownersBusiness refuses what belongs to the network's owner; the engine would
// refuse the container.
func (b *builderOf) ownersBusiness(c types.ServiceConfig, owner string) {
	for _, said := range []struct {
		key  string
		is   bool
		hint string
	}{
		{"ports", len(c.Ports) > 0, "publish them on " + owner + ": services." + owner + ".ports"},
		{"hostname", c.Hostname != "", "remove it, or set it on " + owner},
		{"extra_hosts", len(c.ExtraHosts) > 0, "move it to " + owner},
		{"dns", len(c.DNS) > 0, "move it to " + owner},
		{"mac_address", c.MacAddress != "", "move it to " + owner},
		{"links", len(c.Links) > 0, "move them to " + owner},
	} {
		if said.is {
			b.bad(b.place("services", c.Name, said.key), said.hint, "services.%s.%s cannot be set: its network is that of %s", c.Name, said.key, owner)
		}
	}
}

// shareIPC: one that is joined must be shareable. Where the file leaves it to the
// engine, whose default is private, it is made so.
func (b *builderOf) shareIPC(c types.ServiceConfig, s *ring.Spec) {
	switch joiner := b.joinerOf(c.Name, "ipc"); {
	case joiner == "", c.Ipc == "shareable":
	case c.Ipc != "":
		b.bad(b.place("services", c.Name, "ipc"), "write ipc: shareable", "services.%s.ipc is %s, but %s joins it", c.Name, head(c.Ipc), joiner)
	default:
		s.IPCMode = "shareable"
		b.note("%s: ipc is shareable, because %s joins it", c.Name, joiner)
	}
}

// joinerOf is the first service that joins name by key.
func (b *builderOf) joinerOf(name, key string) string {
	for _, other := range sortedKeys(b.project.Services) {
		if slices.ContainsFunc(tiesOf(b.project.Services[other]), func(t tie) bool { return t.key == key && t.owner == name }) {
			return other
		}
	}
	return ""
}

// namesOwners refuses a join of what is not there.
func (b *builderOf) namesOwners(c types.ServiceConfig) {
	for _, t := range tiesOf(c) {
		b.active(c.Name, t.owner, t.key+" "+t.entry+" joins", b.joinPlace(c.Name, t))
	}
}

// active refuses a service that is named and not there.
func (b *builderOf) active(service, other, does string, at place) bool {
	if _, here := b.project.Services[other]; here {
		return true
	}
	if b.lost("services", other) {
		return false // told
	}
	if _, off := b.project.DisabledServices[other]; off && b.profilesLost() {
		return false
	} else if off {
		b.bad(at, "activate a profile of it in gitring.yaml", "services.%s.%s %s, which no active profile starts", service, does, other)
		return false
	}
	b.bad(at, noService(other, sortedKeys(b.project.Services)), "services.%s.%s %s, which is not declared", service, does, head(other))
	return false
}

// checkJoins refuses owners that an instance of the same slot cannot be tied to.
// Circles are refused before: compose-go makes each owner a dependency.
func (b *builderOf) checkJoins(app ring.App) {
	for _, s := range app.Services {
		for _, t := range tiesOf(b.project.Services[s.Name]) {
			owner, here := app.Service(t.owner)
			at := b.joinPlace(s.Name, t)
			switch {
			case !here: // told
			case s.Replicas == 0 && !b.replicasLost(s.Name): // it is off, and nothing of it joins
			case owner.Kind != ring.Worker && !b.kindLost(owner.Name):
				hint := "let it run on: restart: unless-stopped, or x-gitring: {kind: worker}"
				if t.key == "volumes_from" {
					hint = "mount the same volumes in both services"
				}
				b.bad(at, hint, "services.%s.%s joins %s, which is a job and ends", s.Name, t.key, owner.Name)
			case owner.Replicas != s.Replicas && !b.replicasLost(owner.Name) && !b.replicasLost(s.Name):
				b.bad(at, "give both the same number of replicas", "services.%s has %d replicas and joins %s, which has %d: each joins the one of its own slot", s.Name, s.Replicas, owner.Name, owner.Replicas)
			}
		}
	}
}

func networkMode(k *keyCheck) {
	switch mode := k.text(); {
	case mode == "", mode == "none", mode == "host", mode == "bridge", mode == "default", strings.HasPrefix(mode, types.ServicePrefix):
	case strings.HasPrefix(mode, types.ContainerPrefix): // joinElsewhere
	default:
		k.refuse("%s is not carried out by this release", "declare the network at the top level with external: true, and join it by networks:", head(mode))
	}
}

// foreign is what no profile of the policy grants: the life of a container of
// others is none that a version could follow.
func (k *keyCheck) foreign(risk string) {
	k.fs.add(ring.PolicyDenied, k.key.place, "join a service of the app by service:<name>, or by the container_name that it has in this app", "%s %s %s", k.name(), head(k.text()), risk)
}

func pidMode(k *keyCheck) { k.namespace("host") }
func ipcMode(k *keyCheck) { k.namespace("host", "private", "shareable", "none") }

// namespace lets words pass, and services of the app.
func (k *keyCheck) namespace(words ...string) {
	switch mode := k.text(); {
	case mode == "", contains(words, mode), strings.HasPrefix(mode, types.ServicePrefix):
	case strings.HasPrefix(mode, types.ContainerPrefix):
		k.foreign("joins a namespace of a container of others")
	default:
		k.bad("write "+strings.Join(words, ", ")+" or service:<name>", "%q is no such namespace", head(mode))
	}
}

func volumesFrom(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs}
		if strings.HasPrefix(it.text, types.ContainerPrefix) {
			at.foreign("gives the container the volumes of a container of others")
			continue
		}
		if _, mode, ok := strings.Cut(it.text, ":"); ok && mode != "ro" && mode != "rw" {
			at.bad("write service, or service:ro", "%q ends in neither ro nor rw", head(it.text))
		}
	}
}
