package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// A repository with 1,700 refusals is told in a line for each reason, with its number
// and the first place.
func TestAFirstPlanIsToldByReason(t *testing.T) {
	c := &ring.Changes{Source: "homelab"}
	for i := range 850 {
		app := fmt.Sprintf("app%d", i/10)
		c.Refusals = append(
			c.Refusals,
			&ring.Refusal{Code: ring.PolicyDenied, App: app, File: app + "/compose.yaml", Line: 3, Says: fmt.Sprintf("services.s%d.volumes /mnt/d%d: is a path of the host outside the app's own data", i, i), Hint: "grant it"},
			&ring.Refusal{Code: ring.UndefinedVariable, App: app, File: app + "/compose.yaml", Line: 4, Variable: fmt.Sprint("V", i), Says: fmt.Sprintf("variable V%d is not set and has no default", i)},
			&ring.Refusal{Code: ring.UndefinedVariable, App: app, File: app + "/compose.yaml", Line: 5, Variable: fmt.Sprint("W", i), Says: fmt.Sprintf("variable W%d is required and not set: say %s", i, strings.Repeat("so ", i%9))},
		)
	}
	c.Refusals = append(c.Refusals, &ring.Refusal{Code: ring.BadName, App: "Z", File: "Z/compose.yaml", Says: `"Z" cannot be the name of an app`})
	for i := range 30 {
		c.Apps = append(c.Apps, ring.AppChanges{App: fmt.Sprint("ok", i), Notes: []string{reconcile.PinnedNote + "nginx:latest", reconcile.NoRestartNote + "web"}, Services: []ring.ServiceChange{{Service: "w", Class: ring.ChangeCreate}}})
	}
	s := screen.New(false, 0)
	showFirstPlan(s, c, time.Now())
	text := s.String()
	require.Less(t, strings.Count(text, "\n"), 15, text)
	require.Contains(t, text, "planned 30 apps with 30 services")
	require.Contains(t, text, "notes 60")
	require.Contains(t, text, "30 apps with tags such as latest, pinned to the digest")
	require.Contains(t, text, `30 apps with services that write no restart, so what ends is started again: write restart: "no"`)
	require.Contains(t, text, "refused 86 apps, by reason:")
	require.Contains(t, text, "850 times in 85 apps, the first:\n    app0 refused PolicyDenied app0/compose.yaml:3: services.s0.volumes /mnt/d0: is a path of the host outside the app's own data\n      hint: grant it\n")
	require.Contains(t, text, "1700 times in 85 apps, the first:\n    app0 refused UndefinedVariable app0/compose.yaml:4: variable V0 is not set and has no default\n")
	require.Contains(t, text, "    Z refused BadName Z/compose.yaml: ")
	require.Contains(t, text, "      all of them: V0, V1, V10, ")
	require.Contains(t, text, " and 1676 more\n")
}

// Who has to say what many apps lack sees which names that are, and which come first.
func TestVariablesThatAppsLackAreNamed(t *testing.T) {
	lacks := func(app, variable string) *ring.Refusal {
		return &ring.Refusal{Code: ring.UndefinedVariable, App: app, Variable: variable, Says: "variable " + variable + " is not set and has no default"}
	}
	told := func(refusals ...*ring.Refusal) string {
		s := screen.New(false, 0)
		for len(refusals) <= fewLines {
			refusals = append(refusals, refusals[0])
		}
		showFirstPlan(s, &ring.Changes{Refusals: refusals}, time.Now())
		return s.String()
	}
	require.Contains(t, told(lacks("a", "PUID"), lacks("a", "TZ"), lacks("b", "TZ"), lacks("b", "TZ"), lacks("b", "AGE")), "      all of them: TZ (2 apps), AGE, PUID\n")
	require.NotContains(t, told(lacks("a", "TZ"), lacks("b", "TZ")), "all of them", "one name stands in the first refusal")
}

// What is pasted from a narrow terminal is whole: the screen breaks no command.
func TestACommandToUndoIsOneLine(t *testing.T) {
	long := "git -C /srv/clones/infrastructure reset --keep 5e4f59ccbfe03a05b97e18c94e38188b78fd37ec"
	s := screen.New(false, 40)
	s.Line(0, "", screen.Text("to undo it: all of what is said here is broken at the edge of the terminal"))
	s.Pasted(2, long)
	require.Contains(t, s.String(), "\n  "+long+"\n")
	require.Contains(t, s.String(), "is\n  broken")
}

// A command that is to be pasted is never broken over lines, and stands alone where its step
// takes more than one.
func TestCommandsOfNextStepsStayOnOneLine(t *testing.T) {
	const suggest, write = "gitring policy suggest --config /etc/gitring/config.yaml --app immich", "--write /etc/gitring/policy.yaml --reason '…'"
	step := "what was not granted to an app, if you want it: " + suggest + " shows it, and " + write + " with it grants it"
	for _, tt := range []struct {
		name     string
		width    int
		step     string
		commands []string
		want     []string
	}{
		{"not a terminal", 0, step, []string{suggest, write}, []string{"  1. " + step}},
		{"it fits", 80, "gitring serve --config x, or so", []string{"gitring serve --config x"}, []string{"  1. gitring serve --config x, or so"}},
		{"it does not fit", 80, step, []string{suggest, write}, []string{
			"  1. what was not granted to an app, if you want it:", "    " + suggest, "    shows it, and", "    " + write, "    with it grants it",
		}},
		{"a command at the start", 40, "gitring serve --config /a/long/path.yaml, or as a service", []string{"gitring serve --config /a/long/path.yaml"}, []string{
			"  1.", "    gitring serve --config /a/long/path.yaml", "    or as a service",
		}},
		{"no command", 30, "commit that and push it: hosts read it", nil, []string{"  1. commit that and push it:", "    hosts read it"}},
	} {
		s := screen.New(false, tt.width)
		showStep(s, "1.", tt.step, tt.commands)
		if got := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
