package manifest

import (
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// hooks are the commands of post_start or pre_stop, in their order.
func (b *builderOf) hooks(service, key string, of []types.ServiceHook) []ring.Hook {
	var out []ring.Hook
	for _, h := range of {
		out = append(out, ring.Hook{
			Command: h.Command, User: h.User, WorkingDir: h.WorkingDir, Privileged: h.Privileged,
			Environment: b.hookEnvironment(service, key, h.Environment),
		})
	}
	return out
}

// hookEnvironment gives a name without a value that of the variable, as for the
// service's own environment.
func (b *builderOf) hookEnvironment(service, key string, of types.MappingWithEquals) map[string]string {
	out := map[string]string{}
	for _, name := range sortedKeys(of) {
		if value := of[name]; value != nil {
			out[name] = *value
			continue
		}
		value, ok := b.vars.lookup(name)
		switch {
		case !b.vars.known(name):
			b.faults.put(untold)
		case ok:
			out[name] = value
		default:
			b.note("%s: %s", service, leftOut(name, key))
		}
	}
	return options(out)
}

// runs is for a command that must be one.
func runs(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.bad("write the command, or remove the hook", "runs nothing")
		return
	}
	splits(k)
}
