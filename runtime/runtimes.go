package runtime

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Runtimes gives the engine's default runtime, and the names of those that are
// NVIDIA's program, sorted.
func (d *Docker) Runtimes(ctx context.Context) (byDefault string, nvidia []string, err error) {
	e, err := d.ready(ctx)
	if err != nil {
		return "", nil, err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return "", nil, fault("cannot ask the engine for its runtimes", "", err)
	}
	for name, r := range info.Runtimes {
		if strings.Contains(path.Base(r.Path), "nvidia") || strings.Contains(name, "nvidia") {
			nvidia = append(nvidia, name)
		}
	}
	slices.Sort(nvidia)
	return info.DefaultRuntime, nvidia, nil
}
