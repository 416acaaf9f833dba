package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func tokenCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens for listen.api",
		Long: "token edits the file that api.tokens of the configuration names, which may be a hub's.\n" +
			"It needs no daemon, which reads the file again when it changed. A token itself is in\nno file.",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenNewCmd(g), tokenListCmd(g), tokenRevokeCmd(g))
	return cmd
}

// madeToken is what "token new -o json" prints.
type madeToken struct {
	Token string `json:"token"`
	Line  string `json:"line"`
	Added bool   `json:"added"`
}

func tokenNewCmd(g *globals) *cobra.Command {
	var scope, lasts, apps string
	var add bool
	cmd := &cobra.Command{
		Use:   "new <name>",
		Short: "Make a token, and print it once with its line",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !api.IsTokenName(given[0]) {
				return usage(cmd, fmt.Sprintf("%q is no name: lower-case letters, digits, '.', '_' and '-', at most 63", given[0]))
			}
			scopes, err := api.ParseScopes(scope)
			if err != nil {
				return usage(cmd, "--scope: "+err.Error())
			}
			until, err := untilOf(lasts, g.now())
			if err != nil {
				return usage(cmd, err.Error())
			}
			var limit api.Apps
			if cmd.Flags().Changed("apps") {
				if limit, err = api.ParseApps(apps); err == nil {
					err = limit.Fit(scopes)
				}
				if err != nil {
					return usage(cmd, "--apps: "+err.Error())
				}
			}
			text, t := api.NewToken(given[0], scopes, until)
			t.Apps = limit
			if add {
				if err := g.editTokens(func(lines []string) ([]string, error) { return append(lines, t.Line()), nil }); err != nil {
					return err
				}
			}
			if g.machine() {
				return g.encode(madeToken{text, t.Line(), add})
			}
			if add {
				g.notice("added until %s; the token is shown once:", until)
			} else {
				g.notice("the token, shown once, and its line for the file of api.tokens:")
			}
			_, err = fmt.Fprintln(g.out, text+wording.When(!add, "\n"+t.Line()))
			return err
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "what it may do (required): "+strings.Join(api.ScopeNames, ", ")+", between commas; on a hub report:<host>, alone")
	cmd.Flags().StringVar(&apps, "apps", "", "the apps it may see, such as web,db-*; all where left out")
	cmd.Flags().StringVar(&lasts, "for", "90d", "how long it lives: 90d at most, or never")
	cmd.Flags().BoolVar(&add, "add", false, "append the line to the file")
	return cmd
}

// untilOf is the day that a token ends on.
func untilOf(lasts string, now time.Time) (string, error) {
	if lasts == api.Never {
		return api.Never, nil
	}
	days, isDays := strings.CutSuffix(lasts, "d")
	var n int
	if _, err := fmt.Sscanf(days, "%d", &n); err != nil || !isDays || fmt.Sprint(n) != days || n < 1 || n > int(api.TokenLife/(24*time.Hour)) {
		return "", fmt.Errorf("--for %s: 1d to 90d, or never", lasts)
	}
	return now.UTC().AddDate(0, 0, n).Format(time.DateOnly), nil
}

// listedToken is a line of "token list".
type listedToken struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Scopes string `json:"scopes"`
	Apps   string `json:"apps,omitempty"` // that it is limited to
	Until  string `json:"until,omitempty"`
	// Wrong is why it grants nothing.
	Wrong string `json:"wrong,omitempty"`
}

func tokenListCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens, and what they may do", Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			at, lines, err := g.tokenLines()
			if err != nil {
				return err
			}
			all := []listedToken{}
			for _, line := range lines {
				if isComment(line) {
					continue
				}
				t, err := api.ParseToken(line, g.now())
				x := listedToken{ID: t.ID, Name: t.Name, Scopes: t.Scopes.String(), Apps: t.Apps.String(), Until: t.Until}
				if err != nil {
					x.Wrong = err.Error()
				}
				all = append(all, x)
			}
			if g.machine() {
				return g.encode(all)
			}
			if len(all) == 0 {
				g.notice("there are no tokens in %s", at.file)
				return nil
			}
			s := g.screen()
			var rows [][]screen.Word
			for _, x := range all {
				rows = append(rows, []screen.Word{screen.Text(x.ID), screen.Text(x.Name), screen.Text(x.Scopes), screen.Text(cmp.Or(x.Apps, "all")), screen.Text(x.Until), screen.Painted(wording.When(x.Wrong != "", "grants nothing: "+x.Wrong), screen.Yellow)})
			}
			s.Table(0, []string{"ID", "NAME", "SCOPES", "APPS", "UNTIL", ""}, rows)
			_, err = fmt.Fprint(g.out, s)
			return err
		},
	}
}

func tokenRevokeCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke <id>", Short: "Take a token away: its sessions and streams end with it", Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			err := g.editTokens(func(lines []string) (kept []string, err error) {
				var ids []string
				for _, line := range lines {
					id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
					if isComment(line) || id != given[0] {
						kept = append(kept, line)
					}
					if !isComment(line) {
						ids = append(ids, id)
					}
				}
				if len(kept) == len(lines) {
					return nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("no token %q", given[0]), Hint: ring.Meant(given[0], ids)}
				}
				return kept, nil
			})
			if err == nil {
				g.notice("revoked %s: the next request with it is refused", given[0])
			}
			return err
		},
	}
}

func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// tokenLines are those of the file that the configuration names; none where it is not
// there yet.
func (g *globals) tokenLines() (at tokensAt, lines []string, err error) {
	if at, err = g.tokensAt(); err != nil {
		return at, nil, err
	}
	if at.file == "" {
		return at, nil, &exit.Failure{Code: exit.NotFound, Says: "api.tokens is not in " + g.configPath(), Hint: "api: {tokens: /etc/gitring/tokens}"}
	}
	body, err := config.ReadLimited(at.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return at, nil, fmt.Errorf("cannot read the tokens: %w", err)
	}
	for line := range strings.Lines(string(body)) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return at, lines, nil
}

// tokensAt is where the tokens of a daemon or of a hub are, and its state's folder.
type tokensAt struct{ file, state string }

func (g *globals) tokensAt() (tokensAt, error) {
	if config.IsHub(g.configPath()) {
		h, err := config.LoadHub(g.configPath())
		if err != nil {
			return tokensAt{}, err
		}
		return tokensAt{h.API.Tokens, h.State}, nil
	}
	c, err := config.Read(g.configPath())
	if err != nil {
		return tokensAt{}, err
	}
	return tokensAt{c.API.Tokens, c.State}, nil
}

// editTokens replaces the file whole. Who may read it stays as it is.
func (g *globals) editTokens(edit func(lines []string) ([]string, error)) error {
	at, lines, err := g.tokenLines()
	if err != nil {
		return err
	}
	path := at.file
	if lines, err = edit(lines); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*")
	if err != nil {
		return fmt.Errorf("cannot write the tokens: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone where all went well
	_, err = f.WriteString(strings.Join(append(lines, ""), "\n"))
	err = errors.Join(err, f.Chmod(mode), keepOwner(f, path, at.state), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write the tokens: %w", err)
	}
	return nil
}

// keepOwner gives a file the owner of the one it takes the place of. A new one is the
// daemon's, who owns the state's folder.
func keepOwner(f *os.File, path, state string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(state)
	}
	if err != nil {
		return nil //nolint:nilerr // the daemon was never started here: the file is the writer's
	}
	uid, gid, ok := disk.OwnersOf(info)
	if !ok {
		return nil
	}
	return f.Chown(uid, gid)
}
