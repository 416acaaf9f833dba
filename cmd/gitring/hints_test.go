package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Who reads "gitring retry shop/web" in a status pastes it: it has to be a command
// that this program takes, with the flags that it insists on.

func TestEveryCommandThatASentenceNamesCanBePasted(t *testing.T) {
	found := 0
	for _, x := range stringsOf(t) {
		for _, cmd := range commandsIn(x.text) {
			found++
			if why := pasted(cmd, x.help); why != "" {
				t.Errorf("%s: %q: %s", x.at, cmd, why)
			}
		}
	}
	require.Greater(t, found, 100, "the sentences were not found")
}

func TestEveryCommandInABlockOfTheDocsCanBePasted(t *testing.T) {
	found := 0
	files, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "../../README.md") {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		block := false
		for n, line := range strings.Split(string(raw), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				block = !block
				continue
			}
			line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "sudo ")
			if !block || !strings.HasPrefix(line, "gitring ") {
				continue
			}
			found++
			line = ends.Split(line, 2)[0]
			if why := pasted(line, false); why != "" {
				t.Errorf("%s:%d: %q: %s", file, n+1, line, why)
			}
		}
	}
	require.Greater(t, found, 20, "the blocks were not found")
}

func TestWhatCannotBePastedIsFound(t *testing.T) {
	for text, why := range map[string]string{
		"gitring undo %s tries now":                 "--reason is required",
		"or gitring retry %s --reason '…', or wait": "",
		"gitring retyr %s":                          "no such verb",
		"gitring rollout abrot %s --reason '…'":     "no such verb",
		"gitring retry --reason '…'":                "needs an argument",
		"gitring hold the service":                  "needs an argument",
		"gitring retry %s --raeson '…'":             "unknown flag",
		"gitring status says what is wrong":         "",
		"gitring does not touch it":                 "",
		"gitring inspect <app>/<service>, or more":  "",
	} {
		says := ""
		for _, cmd := range commandsIn(text) {
			says += pasted(cmd, false)
		}
		if why == "" {
			require.Empty(t, says, text)
			continue
		}
		require.Contains(t, says, why, text)
	}
}

// A sentence is a string of the program, what is put into it as %s. help is one that
// explains a verb and commands nothing.
type sentence struct {
	at, text string
	help     bool
}

func stringsOf(t *testing.T) (all []sentence) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata" || d.Name() == "e2e" || d.Name() == "bench"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		help := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := x.Key.(*ast.Ident); ok && (key.Name == "Long" || key.Name == "Short") {
					help[x.Value] = true
				}
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "rolloutVerb" {
					for _, a := range x.Args {
						help[a] = true
					}
				}
			case ast.Expr:
				if text, ok := textOf(x); ok && strings.Contains(text, "gitring ") {
					all = append(all, sentence{set.Position(x.Pos()).String(), text, help[x]})
					return false
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	return all
}

// textOf is the text of a string expression.
func textOf(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, x.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		if x.Op != token.ADD {
			return "", false
		}
		a, isA := textOf(x.X)
		b, isB := textOf(x.Y)
		if !isA {
			a = "%s"
		}
		if !isB {
			b = "%s"
		}
		return a + b, isA || isB
	}
	return "", false
}

var (
	verbWord  = regexp.MustCompile(`^[a-z]+$`)
	shellWord = regexp.MustCompile(`"[^"]*"|'[^']*'|(?:<[^>]*>|[^ <])+`)
	ends      = regexp.MustCompile(`;|&&|\||  +#`)
	argument  = regexp.MustCompile(`%(?:\[\d\])?[a-z]|<[^ ]+>|=`)
)

// commandsIn are those that a text names, each up to where its arguments end.
func commandsIn(text string) (all []string) {
	for {
		before, rest, ok := strings.Cut(text, "gitring ")
		if !ok {
			return all
		}
		if text = rest; strings.HasSuffix(before, "-") { // x-gitring
			continue
		}
		if cmd, ok := commandOf(strings.Fields(strings.ReplaceAll(rest, "%s--", "%s --"))); ok {
			all = append(all, "gitring "+cmd)
		}
	}
}

// commandOf is the one that words begin with.
func commandOf(words []string) (string, bool) {
	at, verbs := program(), 0
	var out []string
	for i, w := range words {
		bare := strings.TrimRight(w, ",;:.)`\"")
		next, _, err := at.Find([]string{bare})
		switch {
		case verbWord.MatchString(bare) && err == nil && next != at && len(out) == verbs:
			at, verbs = next, verbs+1
		case len(out) > 0 && strings.HasPrefix(bare, "--"), strings.HasPrefix(bare, "'"), len(out) > 0 && argument.MatchString(bare), i > 0 && strings.HasPrefix(words[i-1], "--") && bare == "…":
		case i == 0 && len(words) > 1 && argument.MatchString(words[1]) && len(bare) > 3 && len(at.SuggestionsFor(bare)) > 0: // mistyped
		case at.HasSubCommands() && verbs == i && verbs > 0 && len(words) > i+1 && argument.MatchString(words[i+1]):
		case bare == "of" && verbs == i, len(out) == 0: // spoken of
			return "", false
		default:
			return strings.Join(out, " "), len(out) > 0
		}
		if out = append(out, bare); strings.Contains(w, "`") && len(out) == verbs {
			return "", false // the docs speak of a verb
		}
		if bare != w {
			break
		}
	}
	return strings.Join(out, " "), len(out) > 0
}

func program() *cobra.Command {
	cmd := rootCmd(&globals{})
	cmd.SuggestionsMinimumDistance = 2
	return cmd
}

// pasted is what the command line has against a command; "" nothing.
func pasted(line string, help bool) string {
	var words []string
	for _, w := range shellWord.FindAllString(line, -1)[1:] {
		words = append(words, strings.Trim(w, `'"`))
	}
	cmd, rest, err := program().Find(words)
	if err != nil || cmd.HasSubCommands() && len(rest) > 0 && asking[cmd.Name()] == "" { // most groups only print their help
		return "no such verb"
	}
	if help && len(rest) == 0 {
		return ""
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return "needs an argument, or has one too many: " + err.Error()
	}
	says := ""
	if compare := cmd.Flags().Lookup("compare"); compare != nil && compare.Changed {
		return ""
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if strings.Contains(f.Usage, "(required)") && f.Value.String() == "" {
			says = "--" + f.Name + " is required"
		}
	})
	return says
}
