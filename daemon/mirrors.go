package daemon

import (
	"fmt"

	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
)

// twins says of each source that another one before it has the same newest commit and
// tells it to another repository: what is told of a commit is kept once on a host, so
// one of the two repositories would hear of it and the other wait for ever. Which
// sources are mirrors nobody knows before their commits are seen. Two folders of one
// repository are told together, and are no twins.
func twins(sources []ring.SourceStatus, forges map[string]notify.Forge) map[string]string {
	out := map[string]string{}
	for i := range sources {
		s := &sources[i]
		f, speaks := forges[s.Name]
		if !speaks || s.Trusted == "" {
			continue
		}
		for j := range sources[:i] {
			other := &sources[j]
			g, speaks := forges[other.Name]
			if speaks && other.Trusted == s.Trusted && (f.APIURL != g.APIURL || f.Repo != g.Repo) {
				out[s.Name] = fmt.Sprintf("sources %s and %s are mirrors, and of a commit that both have only one of %s and %s is told; take status out of one of the two sources",
					other.Name, s.Name, g.Repo, f.Repo)
				break
			}
		}
	}
	return out
}

// tellTwin logs once that a source is somebody's twin.
func (f *follower) tellTwin() {
	st, _ := f.d.loop.Status()
	says := twins(st.Sources, f.d.forges)[f.cfg.Name]
	if says != f.twin && says != "" {
		f.d.log.Warn("statuses of one repository are not told", "source", f.cfg.Name, "reason", says)
	}
	f.twin = says
}
