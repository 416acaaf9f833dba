package manifest

import (
	"path"

	"github.com/gitring/gitring/ring"
)

// Folders are the folders inside the commit of the apps that it holds, by name,
// of those too that are refused: whoever wants an earlier state of an app back
// often has one here that does not parse. It is empty when the list of apps
// itself cannot be read.
func Folders(c *ring.Commit, s Settings) map[string]string {
	_, plan, outcomes := read(c, s, nil)
	out := map[string]string{}
	if plan.Refusal != nil {
		return out
	}
	for _, o := range outcomes {
		if _, taken := out[o.name]; !taken {
			out[o.name] = path.Clean(o.path)
		}
	}
	return out
}

// Named are the names that the apps of a commit go by, by their folders inside it. It is
// empty when the list of apps itself cannot be read.
func Named(c *ring.Commit, s Settings) map[string]string {
	_, plan, outcomes := read(c, s, nil)
	out := map[string]string{}
	if plan.Refusal != nil {
		return out
	}
	for _, o := range outcomes {
		out[path.Clean(o.path)] = o.name
	}
	return out
}
