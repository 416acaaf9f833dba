package manifest

import (
	"fmt"
	"path"

	"github.com/gitring/gitring/ring"
)

// folders refuses apps of one folder, from other files of it, that would write
// one data folder: two databases on ./data are not what two names for an app ask for.
// A path that leads into the folder of another app is its author's wish.
func folders(outcomes []outcome) {
	type writer struct {
		i       int
		service string
		at      ring.Place
	}
	writers := map[string]writer{}
	found := make([]faults, len(outcomes))
	for i := range outcomes {
		app := &outcomes[i].app
		if !outcomes[i].faults.none() {
			continue
		}
		for _, s := range app.Services {
			for _, m := range s.Spec.Mounts {
				if s.Share || m.ReadOnly || m.Kind != ring.MountData && m.Kind != ring.MountSeed {
					continue
				}
				w := writer{i, s.Name, s.Place("volumes." + m.Target)}
				first, twice := writers[path.Join(app.DataRoot, m.Source)]
				switch {
				case !twice:
					writers[path.Join(app.DataRoot, m.Source)] = w
				case first.i != i && outcomes[first.i].path == outcomes[i].path:
					says := fmt.Sprintf("service %s of app %s and service %s of app %s would both write the data folder %s",
						first.service, outcomes[first.i].name, s.Name, outcomes[i].name, m.Source)
					for _, w := range []writer{first, w} {
						found[w.i].put(&fault{
							code: ring.Conflict, place: place{file: w.at.File, line: w.at.Line}, says: says,
							hint: "give each a path of its own, or one of the apps a data_root of its own in the configuration; if both may write it, say x-gitring: {share: true} in one of the services",
						})
					}
				}
			}
		}
	}
	for i := range outcomes {
		outcomes[i].faults.list = append(outcomes[i].faults.list, found[i].list...)
	}
}
