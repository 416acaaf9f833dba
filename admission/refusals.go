package admission

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// envMark is the env folder in a refusal, which does not know where it is.
const envMark = "<env.dir>"

// NamingEnv are refusals that say where the env folder is: on a screen of the host it is no
// secret, and there it is looked for.
func NamingEnv(refusals []*ring.Refusal, dir string) []*ring.Refusal {
	if dir == "" {
		return refusals
	}
	out := slices.Clone(refusals)
	for i, r := range out {
		here := *r
		here.Hint, here.File = strings.ReplaceAll(r.Hint, envMark, dir), strings.ReplaceAll(r.File, envMark, dir)
		out[i] = &here
	}
	return out
}

// CountRefused counts the apps that are refused.
func CountRefused(refusals []*ring.Refusal) string {
	apps := map[string]bool{}
	for _, r := range refusals {
		if r.App != "" {
			apps[r.App] = true
		}
	}
	if len(apps) == 0 {
		return "the commit is refused"
	}
	return wording.Counted(len(apps), "app") + " refused"
}
