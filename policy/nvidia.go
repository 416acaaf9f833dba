package policy

import (
	"reflect"
	"slices"
	"strings"
)

// runtimeOf judges HostConfig.Runtime. What the engine uses by default is its
// operator's choice, also where it is named.
func runtimeOf(l *look) {
	if s := l.text(); s != "" && s != l.r.DefaultRuntime && !among(runtimes, s) {
		l.find(finding{value: s})
	}
}

// nvidiaDevices are variables by which NVIDIA's runtime gives a container devices.
var nvidiaDevices = []string{
	"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES", "NVIDIA_IMEX_CHANNELS",
	"NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY", "NVIDIA_NVSWITCH",
}

// environment judges variables that a runtime obeys. NVIDIA's reads them from the
// container's configuration, and its hooks run on the host.
func environment(l *look) {
	if !l.runsNvidia() {
		return
	}
	for _, s := range sortedWords(l.words()) {
		name, value, _ := strings.Cut(s, "=")
		switch {
		case slices.Contains(nvidiaDevices, name) && value != "" && value != "void" && value != "none":
			l.find(finding{value: name, at: name, asks: "gpus"})
		case strings.HasPrefix(name, "LD_"):
			at := *l
			at.rule.name = "runtime"
			at.find(finding{value: name, at: name, risk: "reaches the hooks of NVIDIA's runtime, which run on the host as root"})
			l.out = at.out
		}
	}
}

// runsNvidia reports whether the container of the request runs under a runtime of NVIDIA's.
func (l *look) runsNvidia() bool {
	name := l.r.DefaultRuntime
	body := deref(reflect.ValueOf(l.req.Body))
	if body.Kind() == reflect.Struct {
		if host := deref(body.FieldByName("HostConfig")); host.IsValid() && host.Kind() == reflect.Struct {
			if said := textOf(host.FieldByName("Runtime")); said != "" {
				name = said
			}
		}
	}
	return strings.Contains(strings.ToLower(name), "nvidia") || name != "" && slices.Contains(l.r.NvidiaRuntimes, name)
}
