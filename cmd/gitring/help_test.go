package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/screen"
)

func TestEveryVerbHasItsGroupInTheHelp(t *testing.T) {
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"--help"}, strings.NewReader(""), &out, io.Discard, time.Now))
	require.NotContains(t, out.String(), "Additional Commands")
	require.NotContains(t, out.String(), "Available Commands")
	for _, group := range helpGroups {
		_, part, found := strings.Cut(out.String(), "\n"+group.title+"\n")
		require.True(t, found, group.title)
		part, _, _ = strings.Cut(part, "\n\n")
		for _, verb := range group.verbs {
			require.Regexp(t, `(?m)^  `+verb+` +[A-Z]`, part)
		}
	}
}

// What a person does by hand in a hurry is a verb of its own, whatever the groups list, and
// its help names such a verb as the way back.
func TestActsOfHasteAreVerbsOfTheirOwn(t *testing.T) {
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"--help"}, strings.NewReader(""), &out, io.Discard, time.Now))
	for _, verb := range []string{"undo", "pause", "resume", "restart"} {
		c, rest, err := program().Find([]string{verb})
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, "gitring "+verb, c.CommandPath())
		require.Equal(t, "hand", c.GroupID, verb)
		require.Regexp(t, `(?m)^  `+verb+` +[A-Z]`, out.String())
		require.NotContains(t, c.Long, "gitring rollout", verb)
	}
	pause, _, err := program().Find([]string{"pause"})
	require.NoError(t, err)
	require.Contains(t, pause.Long, "gitring resume lets it go on")
}

// A terminal has 80 columns: what is wider it breaks in the middle of a word.
func TestNoHelpIsWiderThanATerminal(t *testing.T) {
	asked := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		asked++
		var out strings.Builder
		require.Zero(t, run(t.Context(), append(strings.Fields(nameOf(c)), "--help"), strings.NewReader(""), &out, io.Discard, time.Now))
		require.Contains(t, out.String(), "\nUsage:\n  gitring")
		for line := range strings.SplitSeq(out.String(), "\n") {
			require.LessOrEqual(t, screen.WidthOf(line), 80, "%s: %s", nameOf(c), line)
		}
		whole := c.Long + "\n\n" + c.UsageString()
		require.Equal(t, strings.Fields(whole), strings.Fields(narrowed(whole)), "a word of %s is lost", nameOf(c))
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				each(sub)
			}
		}
	}
	each(program())
	require.Greater(t, asked, 60)
}

func TestExamplesOfTheHelpCanBePasted(t *testing.T) {
	var without []string
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		if c.Hidden || c.HasSubCommands() || !c.HasParent() {
			return
		}
		if c.Example == "" {
			without = append(without, nameOf(c))
		}
		for line := range strings.Lines(c.Example) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), " >"); line != "" {
				require.Empty(t, pasted(line, false), line)
				require.Contains(t, line+" ", " "+strings.TrimPrefix(nameOf(c), "rollout ")+" ")
			}
		}
	}
	each(program())
	slices.Sort(without)
	require.Equal(t, []string{"fleet abort", "fleet approve", "fleet pause", "fleet promote", "fleet restart", "fleet resume", "fleet retry", "fleet run", "fleet scale", "fleet undo", "outbox retry", "rollout pause", "rollout restart", "rollout resume", "rollout undo", "trust reverify", "version"}, without)
}
