package manifest

import (
	"strings"

	"github.com/gitring/gitring/ring"
)

func (b *builderOf) appVolumes() []ring.Volume {
	var out []ring.Volume
	for _, key := range sortedKeys(b.volumes) {
		out = append(out, ring.Volume{Key: key, Labels: labels(b.project.Volumes[key].Labels)})
	}
	return out
}

// checkWriters refuses replicas that would all write one volume or data folder:
// nothing that holds data is started twice.
func (b *builderOf) checkWriters(app ring.App) {
	for _, s := range app.Services {
		if s.Replicas < 2 || s.Share {
			continue
		}
		for _, m := range s.Spec.Mounts {
			if m.Outlives() && !strings.Contains(m.Source, "{slot}") {
				b.bad(b.place("services", s.Name), "run one replica; or, if the software can share it, say x-gitring: {share: true}",
					"services.%s has %d replicas that would all write %s", s.Name, s.Replicas, m.Target)
				break
			}
		}
	}
}

func volumeDriver(k *keyCheck) {
	if d := k.text(); d != "" && d != "local" {
		k.deny("%s is another program of the host", head(d))
	}
}
