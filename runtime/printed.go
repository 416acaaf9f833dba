package runtime

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// Printed are the last lines of what checks of an instance printed that fail, by their
// names, with the values of its service struck out; "" is the name of the HEALTHCHECK
// that the engine runs. want is the service as the instance was made from it: without
// it, or where not every value is known any more, none of it is told.
func (d *Docker) Printed(ctx context.Context, id string, want *ring.Service) ([]ring.CheckPrinted, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.ours(ctx, e, "cannot ask for the checks of container", id)
	if err != nil {
		return nil, err
	}
	all := d.printed(c)
	if len(all) == 0 {
		return nil, nil
	}
	o, known := d.secretsOf(ring.Action{Want: want}, c)
	known = d.knowFiles(o, c.Config.Labels[labelApp]) && known
	var out []ring.CheckPrinted
	for _, check := range slices.Sorted(maps.Keys(all)) {
		lines := []string{withheldCheck}
		if known {
			lines = o.checkLines(all[check])
		}
		out = append(out, ring.CheckPrinted{Check: check, Lines: lines})
	}
	return out, nil
}

// withheldCheck stands for what a check printed that may hold what nobody may read.
const withheldCheck = "(not told: a value that this version used cannot be read any more, so it could not be struck out)"

// checkLines are the last lines of what a check printed, without values that were opened, be
// they cut off at its end. Nobody says whether it was: a timeout cuts it too, and engines do at
// other lengths.
func (o *opener) checkLines(text string) []string {
	full := len(text) >= ring.PrintedCap
	if text = o.redactAll(text); full {
		text = strings.TrimSuffix(text, "...") // which the engine writes there
	}
	return lastLines(o.redactCut(strings.TrimRight(text, "\r\n")), ring.CheckLines)
}

// printed is what checks of a container printed that failed when they were asked last, by
// their names; that of the engine's own is "".
func (d *Docker) printed(c container.InspectResponse) map[string]string {
	out := map[string]string{}
	if d.opts.Printed != nil {
		maps.Copy(out, d.opts.Printed(c.ID))
	}
	if c.State == nil || c.State.Health == nil {
		return out
	}
	log := slices.DeleteFunc(slices.Clone(c.State.Health.Log), func(r *container.HealthcheckResult) bool { return r == nil })
	if n := len(log); n > 0 && log[n-1].ExitCode != 0 && log[n-1].Output != "" {
		out[""] = log[n-1].Output
	}
	return out
}
