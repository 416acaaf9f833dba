package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

func policyCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Say what the policy of a host refuses, and which grants let it pass",
		Long: "The policy of a host says what a commit may not ask for although it is signed.\n" +
			"It stands in the daemon's configuration. These verbs need no daemon: they judge\n" +
			"a folder or a commit by the policy of --config, or of the configuration that the\n" +
			"clone's own setting gitring.config names, and by compose's without either.",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(policyCheckCmd(g), policySuggestCmd(g), policyExplainCmd(g), policyTestCmd(g))
	return cmd
}

func policySuggestCmd(g *globals) *cobra.Command {
	var by policyFlags
	var app string
	var to policyFile
	var roots []string
	cmd := &cobra.Command{
		Use:   "suggest [rev|dir]",
		Short: "Print the smallest grants under which a commit passes",
		Long: "suggest reads a folder (default: the current one) or a revision of the clone\n" +
			"around, and prints the grants that its apps need beside the policy of --config.\n" +
			"Each is left out once to prove that it is needed. Each names the line that asks\n" +
			"for it, and what it gives. A person writes the reasons: a grant without one is\n" +
			"refused. --write adds the grants to a policy file, with the reason of --reason,\n" +
			"which a terminal asks for; what the file has already stays as it is.\n\n" +
			"It never suggests what is in mounts.never, what belongs to another app, profile\n" +
			"owner, or a list that is wider than what is used.\n" +
			"Exit 7 when something is refused that no grant lets pass.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if to.file == "" && cmd.Flags().Changed("reason") {
				return usage(cmd, "--reason goes with --write")
			}
			return g.policySuggest(cmd, strings.Join(given, ""), by, app, to, roots)
		},
	}
	by.add(cmd)
	cmd.Flags().StringVar(&app, "app", "", "only what this app needs")
	cmd.Flags().StringVar(&to.file, "write", "", "add the grants to the policy in this `file`, new or there already")
	cmd.Flags().StringVar(&to.reason, "reason", "", "why the grants of --write are given; a terminal asks for it")
	cmd.Flags().StringSliceVar(&roots, "bind-root", nil, "as if every app might write to this `folder`; may be given again")
	return cmd
}

// policyFile is a file that suggest writes, and the reason of the grants in it.
type policyFile struct{ file, reason string }

// policyFlags say what to judge a commit by.
type policyFlags struct{ source, profile string }

func (f *policyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.source, "source", "", "the source of --config to read it for")
	profileFlag(cmd, &f.profile)
}

// judgedCommit is a commit, and what it is held to.
type judgedCommit struct {
	held
	commit *ring.Commit
	close  func()
}

// commitAt opens a folder, or a revision of the clone around; "" is the current folder.
func (g *globals) commitAt(ctx context.Context, what string, by policyFlags) (*judgedCommit, error) {
	dir := what
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		g.useConfigOfClone(ctx, dir)
		r, err := g.heldTo(dir, by.source, by.profile)
		if err != nil {
			return nil, err
		}
		tree, err := openFolder(dir)
		if err != nil {
			return nil, err
		}
		return &judgedCommit{r, &ring.Commit{Tree: tree}, func() { _ = tree.Close() }}, nil
	}
	repo, sha := g.resolveLocally(what)
	if repo == nil {
		return nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%s is no folder, and no revision of a clone around here", what), Hint: "name a folder, or run it inside a clone"}
	}
	g.useConfigOfClone(ctx, ".")
	r, err := g.heldTo(".", by.source, by.profile)
	if err != nil {
		return nil, err
	}
	c, err := repo.Commit(sha)
	return &judgedCommit{r, c, func() {}}, err
}

func (g *globals) policySuggest(cmd *cobra.Command, what string, by policyFlags, app string, to policyFile, roots []string) error {
	for _, root := range roots {
		if _, hint := config.BindRoot(root); hint != "" {
			return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--bind-root: %q is no folder that apps can share", root), Hint: hint}
		}
	}
	c, err := g.commitAt(cmd.Context(), what, by)
	if err != nil {
		return err
	}
	defer c.close()
	s := c.judge.WithRoots(roots).Suggest(c.commit, c.settings)
	if app != "" {
		s.Only(app)
	}
	reason := admission.EmptyReason
	if to.file != "" {
		if s.Grants() > 0 {
			why, err := g.whyGranted(cmd, to.reason)
			if err != nil {
				return err
			}
			reason = func(*admission.SuggestedGrant) string { return why }
		}
		if err := g.writePolicy(to.file, c, roots, &s, reason); err != nil {
			return err
		}
	}
	if g.machine() {
		err = g.encode(s)
	} else {
		err = g.showSuggestion(&s, c.policy, to.file == "", roots, reason)
	}
	if err == nil && len(s.Refused) > 0 {
		return exit.Outcome(exit.Refused)
	}
	return err
}

// whyGranted is the reason of grants that are written: as given, or as a person at a
// terminal says when asked. A grant without one is refused, so none is written.
func (g *globals) whyGranted(cmd *cobra.Command, reason string) (string, error) {
	if strings.TrimSpace(reason) == "" && g.asks() && !g.machine() {
		said, err := g.ask("Why are they given? It stands in the policy, for all who look.", "")
		if err != nil {
			return "", err
		}
		reason = said
	}
	if strings.TrimSpace(reason) == "" {
		return "", usage(cmd, "--write needs --reason: a grant without one is refused")
	}
	return reason, nil
}

// writePolicy writes a new policy, or adds to the one that is there: whole, or not at all.
func (g *globals) writePolicy(file string, c *judgedCommit, roots []string, s *admission.Suggestion, reason func(*admission.SuggestedGrant) string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("cannot write the policy: %w", err)
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // what a link leads to is written, and not the link
	}
	before, err := os.ReadFile(file)
	mode := fs.FileMode(0o600)
	switch {
	case err == nil:
		if info, err := os.Stat(file); err == nil {
			mode = info.Mode().Perm()
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot write the policy: %w", err)
	}
	var body []byte
	added := 0
	if len(strings.TrimSpace(string(before))) == 0 {
		profile := c.judge.Rules.Profile
		if profile == "" {
			profile = policy.Compose
		}
		said := s.Yaml(roots, reason)
		body, added = []byte("version: 1\nprofile: "+string(profile)+"\n"+said), 2+strings.Count(said, "\n")
	} else if body, added, err = s.Merge(before, roots, reason); err != nil {
		return &exit.Failure{Code: exit.Conflict, Says: file + " stays as it is: " + err.Error(), Hint: "put the lines into it by hand: gitring policy suggest without --write prints them"}
	}
	if added == 0 {
		g.notice("%s has them already", file)
		return nil
	}
	if err := disk.WriteWhole(file, "."+filepath.Base(file)+".", body, mode); err != nil {
		return fmt.Errorf("cannot write the policy: %w", err)
	}
	g.notice("wrote %s to %s%s", wording.Counted(added, "line"), file, g.policyNaming(file, c.policy))
	return nil
}

// policyNaming is what is left to do until a policy counts: the configuration names a file, which
// is this one, another or none.
func (g *globals) policyNaming(file, named string) string {
	if real, err := filepath.EvalSymlinks(named); err == nil {
		named = real
	}
	switch {
	case g.config == "":
		return ": name the file with policy: in the configuration, where it is not yet"
	case named == file:
		return ""
	}
	return fmt.Sprintf(": it counts once %s says policy: %s", g.config, file)
}

// suggestionGoes says into which file the lines belong.
func suggestionGoes(file string) string {
	if file == "" {
		return "# for the file that policy: of the daemon's configuration names; --write <file> puts them there\n"
	}
	return fmt.Sprintf("# for %s; --write %s puts them there\n", file, file)
}

func (g *globals) showSuggestion(s *admission.Suggestion, file string, goes bool, roots []string, reason func(*admission.SuggestedGrant) string) error {
	body := s.Yaml(roots, reason)
	switch {
	case s.Grants() > 0 && goes:
		body = suggestionGoes(file) + body
	case s.Grants() == 0 && len(s.StaysRefused) > 0:
		body = "# no grant would help\n" + body
	case s.Grants() == 0:
		body = "# no grant is needed\n" + body
	}
	if g.config == "" && s.Grants() > 0 {
		body += "# source is the name of the folder: write the one that the configuration has, or say --config\n"
	}
	for _, f := range s.Folders() {
		if f.Grants > 1 {
			body += fmt.Sprintf("# %s of %s mount folders below %s: --bind-root %s shows the policy that lets all apps write there\n",
				wording.Counted(f.Grants, "grant"), wording.Counted(len(f.Apps), "app"), f.Folder, f.Folder)
		}
	}
	for _, a := range s.StaysRefused {
		body += fmt.Sprintf("# %s lacks %s and stays refused with them: mend first what no grant lets pass\n", a.Name, wording.Counted(a.Grants, "grant"))
	}
	if len(s.Refused) > 0 {
		body += "# refused whatever is granted:\n"
	}
	for _, r := range s.Refused {
		body += fmt.Sprintf("# %s: %s: %s\n", r.Where(), r.Code, strings.ReplaceAll(r.Says, "\n", " "))
	}
	_, err := fmt.Fprint(g.out, body)
	return err
}
