package manifest

import (
	"fmt"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// hooks are the commands of post_start or pre_stop, in their order.
func (b *builderOf) hooks(service, key string, of []types.ServiceHook) []ring.Hook {
	var out []ring.Hook
	for i, h := range of {
		out = append(out, ring.Hook{
			Command: h.Command, User: h.User, WorkingDir: h.WorkingDir, Privileged: h.Privileged,
			Environment: b.hookEnvironment(service, key, i, h.Environment),
		})
	}
	return out
}

// hookEnvironment gives a name without a value that of the variable, as for the
// service's own environment.
func (b *builderOf) hookEnvironment(service, key string, i int, of types.MappingWithEquals) map[string]string {
	if len(of) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, name := range sortedKeys(of) {
		if value := of[name]; value != nil {
			out[name] = *value
			continue
		}
		value, ok := b.vars.lookup(name)
		if !b.vars.known(name) {
			b.faults.put(untold)
		} else if !ok {
			f := undefined(name, b.place("services", service, key, fmt.Sprint(i), "environment", name))
			f.hint = fmt.Sprintf("give it a value, as in %s: value, or set it in .env or in the configuration's interpolation", name)
			b.faults.put(f)
		}
		out[name] = value
	}
	return out
}

// runs is for a command that must be one.
func runs(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.bad("write the command, or remove the hook", "runs nothing")
		return
	}
	splits(k)
}
