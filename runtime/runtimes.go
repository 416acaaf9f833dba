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

// NoFronts is why the engine can run no front, "" where it can: the folders that a front
// mounts belong to users of the host, who are others inside where the engine maps them.
func (d *Docker) NoFronts(ctx context.Context) (string, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return "", err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return "", fault("cannot ask the engine how it maps users", "", err)
	}
	if mapsUsers(info.SecurityOptions) {
		return "the engine maps users (userns-remap)", nil
	}
	return "", nil
}

// mapsUsers reports whether the engine says userns-remap among its options. Rootless engines
// say name=rootless.
func mapsUsers(options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return o == "name=userns" || strings.HasPrefix(o, "name=userns,") })
}
