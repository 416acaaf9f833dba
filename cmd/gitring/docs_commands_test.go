package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	inBackticks = regexp.MustCompile("`(gitring [a-z][^`\n]*)`")
	onItsLine   = regexp.MustCompile(`(?m)^\s*(?:\$ )?(?:sudo (?:-\S+ )*)?(gitring [a-z].*)$`)
	fenced      = regexp.MustCompile("(?s)```(?:sh|bash)\n(.*?)```")
	aFlag       = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

// Every command of gitring's that a page for people names is one that there is, with the
// flags that there are.
func TestTheCommandsOfTheDocsExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	pages = append(pages, "../../README.md", "../../SECURITY.md")
	count := 0
	for _, page := range pages {
		if strings.Contains(page, "docs/decisions/") {
			continue // what was thought of, and not only what was built
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		var commands []string
		for _, m := range inBackticks.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, m[1])
		}
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			for _, m := range onItsLine.FindAllStringSubmatch(block[1], -1) {
				commands = append(commands, m[1])
			}
		}
		for _, line := range commands {
			count++
			line, _, _ = strings.Cut(line, " #")
			for _, stop := range []string{" && ", " | ", "; ", " > ", " < "} {
				line, _, _ = strings.Cut(line, stop)
			}
			words := strings.Fields(strings.TrimPrefix(line, "gitring gitring "))
			if words[0] == "gitring" { // not by sudo -u gitring
				words = words[1:]
			}
			if words[0] == "help" {
				continue // cobra's own
			}
			cmd, _, err := rootCmd(&globals{}).Find(words)
			if !noError(t, err, page, line) || cmd.Name() == "gitring" {
				t.Errorf("%s: %q: there is no such command", page, line)
				continue
			}
			for _, word := range words {
				flag := aFlag.FindString(word)
				name := strings.TrimLeft(flag, "-")
				switch {
				case flag == "" || name == "help":
				case strings.HasPrefix(flag, "--"):
					if cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
						t.Errorf("%s: %q: %s has no flag --%s", page, line, cmd.CommandPath(), name)
					}
				case len(name) == 1 && cmd.Flags().ShorthandLookup(name) == nil && cmd.InheritedFlags().ShorthandLookup(name) == nil:
					t.Errorf("%s: %q: %s has no flag -%s", page, line, cmd.CommandPath(), name)
				}
			}
		}
	}
	require.Greater(t, count, 100)
}

func noError(t *testing.T, err error, page, line string) bool {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %q: %v", page, line, err)
	}
	return err == nil
}
