package runtime

import (
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/strslice"

	"github.com/gitring/gitring/ring"
)

// entrypoint is nil for the image's own. One empty word stands for none at all:
// the engine takes an empty list so, and then runs the command, or the image's,
// by itself; the word itself it would take for "no command either".
func entrypoint(s ring.Spec) strslice.StrSlice {
	if len(s.Entrypoint) == 1 && s.Entrypoint[0] == "" {
		return strslice.StrSlice{}
	}
	return slices.Clone(s.Entrypoint)
}

// unmasking is the option that clients carry out themselves: it names no profile,
// it takes away the lists of paths that the engine hides and protects.
const unmasking = "systempaths=unconfined"

func securityOpts(h *container.HostConfig, s ring.Spec) {
	for _, opt := range s.SecurityOpt {
		if opt == unmasking {
			h.MaskedPaths, h.ReadonlyPaths = []string{}, []string{}
			continue
		}
		h.SecurityOpt = append(h.SecurityOpt, opt)
	}
}
