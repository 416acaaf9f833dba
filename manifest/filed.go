package manifest

import (
	"fmt"
	"path"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// named reads a file of the commit that a manifest names, relative to the app's
// folder. nil when it cannot; the fault is noted.
func (a *appReader) named(name string, at place) ([]byte, string) {
	p, ok := a.inCommit(a.from.path, name, at)
	if !ok {
		return nil, p
	}
	body, ok, f := a.tree.manifest(p, at)
	if f != nil {
		a.faults.put(f)
		return nil, p
	}
	if !ok {
		a.faults.add(ring.BadValue, at, "add the file, or correct its name", "the commit does not hold %s", p)
		return nil, p
	}
	if f := a.notHere(p, body, at); f != nil {
		a.faults.put(f)
		return nil, p
	}
	if body == nil {
		body = []byte{}
	}
	return body, p
}

// envFiles are the variables that env_file of a service gives, later files winning.
func (b *builderOf) envFiles(c types.ServiceConfig) map[string]string {
	v := newVariables(b.vars.all(), b.budget)
	v.unsure = b.vars.unsure
	for _, e := range c.EnvFiles {
		at := b.entryPlace(c.Name, "env_file", func(n *node) bool { return n.text == e.Path || textOf(n.get("path")) == e.Path })
		switch {
		case e.Format != "" && e.Format != "raw":
			b.bad(at, "write raw, or leave format out", "services.%s.env_file format %q is unknown", c.Name, head(e.Format))
		case bool(e.Required):
			b.envFileAt(v, e.Path, at, e.Format == "raw")
		case path.IsAbs(e.Path):
			if _, held := b.shared.files[strings.TrimPrefix(path.Clean(e.Path), "/")]; held {
				b.hostEnvFile(v, e.Path, at, e.Format == "raw")
				continue
			}
			b.noteOnce(fmt.Sprintf("%s: env_file %s is not required, and the host's env folder does not hold it", c.Name, head(e.Path)))
		default:
			if p, ok := b.inCommit(b.from.path, e.Path, at); ok {
				b.readEnvFile(v, p, at, e.Format == "raw")
			}
		}
	}
	out := make(map[string]string, len(v.values))
	for name, val := range v.values {
		if !val.lost {
			out[name] = val.sealed
		}
	}
	return out
}

// labels are label_file, later files winning, with labels on top. As in Compose a
// line may refer to labels before it, and to nothing else.
func (b *builderOf) labels(c types.ServiceConfig) map[string]string {
	v := newVariables(nil, b.budget)
	for _, name := range c.LabelFiles {
		at := b.entryPlace(c.Name, "label_file", func(n *node) bool { return n.text == name })
		body, p := b.named(name, at)
		if body == nil {
			continue
		}
		for _, f := range b.commitEnv(v, p, body, false) {
			if f != untold {
				f.hint, f.variable = strings.Replace(f.hint, inEnv, "set it on an earlier line", 1), ""
			}
			b.faults.put(f)
		}
	}
	for _, name := range sortedKeys(v.values) {
		if strings.HasPrefix(name, "gitring.") || strings.HasPrefix(name, "com.docker.compose.") {
			b.faults.add(ring.PolicyDenied, v.places[name], "rename or remove it", "label %s is reserved: by it gitring knows what is its own", head(name))
		}
		if _, said := c.Labels[name]; !said && !v.values[name].lost {
			if c.Labels == nil {
				c.Labels = types.Labels{}
			}
			c.Labels[name] = v.values[name].sealed
		}
	}
	return labels(c.Labels)
}
