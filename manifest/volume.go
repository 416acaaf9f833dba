package manifest

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// appVolumes are those that some service uses.
func (b *builderOf) appVolumes() []ring.Volume {
	var out []ring.Volume
	names := map[string]string{}
	for _, key := range sortedKeys(b.volumes) {
		if !b.volumes[key] {
			continue
		}
		v := b.project.Volumes[key]
		b.engineName("volumes", key, v.Name)
		b.sameName("volumes", key, v.Name, names)
		if v.External {
			out = append(out, ring.Volume{Key: key, External: v.Name})
			continue
		}
		own := ring.VolumeName(b.name, key)
		volume := ring.Volume{
			Key: key, Labels: labels(v.Labels), Name: unless(own, v.Name),
			Driver: unless("local", v.Driver), DriverOpts: options(v.DriverOpts),
		}
		b.takeOver(&volume)
		if volume.Name != "" && volume.Name != v.Name {
			b.sameName("volumes", key, volume.Name, names)
		}
		out = append(out, volume)
	}
	return out
}

// takeOver has a volume be that of an app under an earlier name, where its author says so.
func (b *builderOf) takeOver(v *ring.Volume) {
	at := b.volumeFrom[v.Key]
	switch app := at.text; {
	case app == "":
		return
	case app == ring.FromNone:
		v.From = app
	case !appName.MatchString(app):
		b.bad(at.place, "name the app that has the volume now, or say from: none", "volumes.%s.x-gitring.from is %q, which is no app's name", v.Key, head(app))
	default:
		v.From = app
		if v.Name == "" {
			v.Name = unless(ring.VolumeName(b.name, v.Key), ring.VolumeName(app, v.Key))
		}
	}
}

// volumesFrom is x-gitring from of each volume, the later file's.
func (a *appReader) volumesFrom() map[string]written {
	out := map[string]written{}
	d := &decoder{}
	for _, f := range a.files {
		volumes := f.root.get("volumes")
		if volumes.null() {
			continue
		}
		for _, p := range volumes.pairs {
			n := p.val.get(extensionKey)
			if n.null() || !d.mapping(n, extensionKey) {
				continue
			}
			d.keys(n, extensionKey, []string{"from"})
			if v := n.get("from"); !v.null() {
				out[p.key] = written{d.text(v, "from"), v.place}
			}
		}
	}
	a.faults.list = append(a.faults.list, d.faults.list...)
	return out
}

// checkWriters refuses replicas that would all write one volume, folder or file
// of the host: nothing that holds data is started twice. Services that share one
// are noted; Compose lets them, and only their author knows whether they can.
func (b *builderOf) checkWriters(app ring.App) {
	writers := map[string][]string{}
	for _, s := range app.Services {
		if s.Replicas > 1 && !s.Share && !b.lost("services", s.Name, extensionKey, "share") {
			b.checkReplicas(s)
		}
		for _, m := range s.Spec.Mounts {
			if what := leavesBehind(m); what != "" && !slices.Contains(writers[what], s.Name) {
				writers[what] = append(writers[what], s.Name)
			}
		}
	}
	for _, what := range sortedKeys(writers) {
		if of := writers[what]; len(of) > 1 {
			b.note("%s all write %s", strings.Join(of, ", "), what)
		}
	}
}

func (b *builderOf) checkReplicas(s ring.Service) {
	for _, m := range s.Spec.Mounts {
		if m.Outlives() && !strings.Contains(m.Source, ring.SlotMark) {
			b.bad(b.place("services", s.Name), "run one replica; or, if the software can share it, say x-gitring: {share: true}",
				"services.%s has %d replicas that would all write %s", s.Name, s.Replicas, m.Target)
			return
		}
	}
}

// leavesBehind names what a mount writes and leaves behind, "" when nothing. A seeded
// folder is a data folder.
func leavesBehind(m ring.Mount) string {
	switch {
	case !m.Outlives():
		return ""
	case m.Kind == ring.MountVolume:
		return "volume " + m.Source
	case m.Kind == ring.MountBind:
		return "the host's " + m.Source
	}
	return "the data folder " + m.Source
}
