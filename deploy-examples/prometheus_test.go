package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/metrics"
)

type rules struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
}

func alerts(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("prometheus/alerts.yml")
	require.NoError(t, err)
	var r rules
	require.NoError(t, yaml.Unmarshal(b, &r))
	all := map[string]string{}
	for _, g := range r.Groups {
		for _, a := range g.Rules {
			require.NotContains(t, all, a.Alert)
			all[a.Alert] = a.Expr
		}
	}
	return all
}

var (
	aMetric = regexp.MustCompile(`\b(gitring_[a-z_]+)(?:\{([^}]*)\})?`)
	aLabel  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=) *"`)
)

// unknown are the metrics of an expression, and labels of them, that there are not.
func unknown(expr string) (wrong []string) {
	for _, m := range aMetric.FindAllStringSubmatch(expr, -1) {
		at := slices.IndexFunc(metrics.Families, func(f metrics.Family) bool {
			if f.Kind != metrics.Histogram {
				return f.Name == m[1]
			}
			return slices.Contains([]string{f.Name + "_bucket", f.Name + "_sum", f.Name + "_count"}, m[1])
		})
		if at < 0 {
			wrong = append(wrong, m[1])
			continue
		}
		for _, l := range aLabel.FindAllStringSubmatch(m[2], -1) {
			known := append([]string{"instance", "job", "le"}, metrics.Families[at].Labels...)
			if !slices.Contains(known, l[1]) {
				wrong = append(wrong, m[1]+"{"+l[1]+"}")
			}
		}
	}
	return wrong
}

func TestWhatDoesNotExistIsSeenInAnExpression(t *testing.T) {
	require.Empty(t, unknown(`rate(gitring_fetches_total{source="prod"}[5m]) / up`))
	require.Equal(t, []string{"gitring_fetches"}, unknown(`gitring_fetches`))
	require.Equal(t, []string{"gitring_fetches_total{commit}"}, unknown(`gitring_fetches_total{result="ok",commit=~"a.*"}`))
	require.Equal(t, []string{"gitring_look_duration_seconds"}, unknown(`gitring_look_duration_seconds`), "a histogram has no series of its bare name")
	require.Empty(t, unknown(`gitring_look_duration_seconds_bucket{le="1"}`))
}

func TestAlertsNameMetricsThatThereAre(t *testing.T) {
	all := alerts(t)
	require.Len(t, all, 13)
	for name, expr := range all {
		require.Empty(t, unknown(expr), name)
	}
}

func TestEachAlertIsShownFiringAndNotFiring(t *testing.T) {
	b, err := os.ReadFile("prometheus/alerts_test.yml")
	require.NoError(t, err)
	var file struct {
		Tests []struct {
			Rules []struct {
				Name   string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal(b, &file))
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, x := range file.Tests {
		for _, r := range x.Rules {
			if len(r.Alerts) > 0 {
				fires[r.Name] = true
				continue
			}
			quiet[r.Name] = true
		}
	}
	for name := range alerts(t) {
		require.True(t, fires[name], "%s is never shown firing", name)
		require.True(t, quiet[name], "%s is never shown not firing", name)
	}
	require.Len(t, fires, 13)
}

func TestPromtoolAgrees(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here (Debian package prometheus): the alerts are not tried")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "prometheus"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

func TestTheDashboardNamesMetricsThatThereAre(t *testing.T) {
	b, err := os.ReadFile("grafana/gitring.json")
	require.NoError(t, err)
	var board any
	require.NoError(t, json.Unmarshal(b, &board))
	var exprs []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, in := range v {
				if s, ok := in.(string); ok && (key == "expr" || key == "query") {
					exprs = append(exprs, s)
				}
				walk(in)
			}
		case []any:
			for _, in := range v {
				walk(in)
			}
		}
	}
	walk(board)
	require.Greater(t, len(exprs), 15)
	for _, e := range exprs {
		require.Empty(t, unknown(e), e)
	}
}

// The page has a row for each alert.
func TestThePageOfAlertsHasEach(t *testing.T) {
	b, err := os.ReadFile("../docs/how-to/alerts.md")
	require.NoError(t, err)
	var told []string
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "| `Gitring"); ok {
			name, _, _ = strings.Cut(name, "`")
			told = append(told, "Gitring"+name)
		}
	}
	for name := range alerts(t) {
		require.Contains(t, told, name)
	}
	require.Len(t, told, 13)
}
