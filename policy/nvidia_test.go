package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEnginesDefaultRuntimeIsItsOperatorsChoice(t *testing.T) {
	for _, c := range []struct {
		name, said, byDefault string
		env                   []string
		rules                 []string
	}{
		{"the default", "", "nvidia", nil, nil},
		{"the default, named", "nvidia", "nvidia", nil, nil},
		{"another one", "nvidia", "runc", nil, []string{"runtime"}},
		{"devices under the default", "", "nvidia", []string{"NVIDIA_VISIBLE_DEVICES=all"}, []string{"devices"}},
		{"no devices under the default", "", "nvidia", []string{"NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_DRIVER_CAPABILITIES="}, nil},
		{"capabilities under the default", "", "nvidia", []string{"NVIDIA_DRIVER_CAPABILITIES=all"}, []string{"devices"}},
		{"the loader under the default", "", "nvidia", []string{"LD_PRELOAD=/x.so"}, []string{"runtime"}},
		{"the loader under one whose program is NVIDIA's", "gpu", "runc", []string{"LD_AUDIT=/x.so"}, []string{"runtime", "runtime"}},
		{"the loader under runc", "runc", "nvidia", []string{"LD_PRELOAD=/x.so", "NVIDIA_VISIBLE_DEVICES=all"}, nil},
		{"the loader where nothing is NVIDIA's", "", "runc", []string{"LD_PRELOAD=/x.so", "NVIDIA_VISIBLE_DEVICES=all"}, nil},
		{"an engine that was not asked", "", "", []string{"NVIDIA_VISIBLE_DEVICES=all"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := Body{Config: &Config{Env: append([]string{"PATH=/bin"}, c.env...)}, HostConfig: &Host{Runtime: c.said}}
			var got []string
			for _, f := range Check(Rules{DefaultRuntime: c.byDefault, NvidiaRuntimes: []string{"gpu"}}, container(body)) {
				require.Equal(t, Deny, f.Verdict)
				require.NotContains(t, f.Says(), ".so", "values of variables are not shown")
				got = append(got, f.Rule)
			}
			require.Equal(t, c.rules, got)
		})
	}
}
