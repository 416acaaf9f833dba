package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
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
			"a folder or a commit by the policy of --config, and by compose's without one.",
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(policyCheckCmd(g), policySuggestCmd(g), policyExplainCmd(g), policyTestCmd(g))
	return cmd
}

func policySuggestCmd(g *globals) *cobra.Command {
	var by policyFlags
	var app, write string
	var roots []string
	cmd := &cobra.Command{
		Use:   "suggest [rev|dir]",
		Short: "Print the smallest grants under which a commit passes",
		Long: "suggest reads a folder (default: the current one) or a revision of the clone\n" +
			"around, and prints the grants that its apps need beside the policy of --config.\n" +
			"Each is left out once to prove that it is needed. Each names the line that asks\n" +
			"for it, and what it gives. A person writes the reasons: a grant without one is\n" +
			"refused.\n\n" +
			"It never suggests what is in mounts.never, what belongs to another app, profile\n" +
			"owner, or a list that is wider than what is used.\n" +
			"Exit 7 when something is refused that no grant lets pass.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			return g.policySuggest(strings.Join(given, ""), by, app, write, roots)
		},
	}
	by.add(cmd)
	cmd.Flags().StringVar(&app, "app", "", "only what this app needs")
	cmd.Flags().StringVar(&write, "write", "", "write a policy with the grants to this new `file`")
	cmd.Flags().StringSliceVar(&roots, "bind-root", nil, "as if every app might write to this `folder`; may be given again")
	return cmd
}

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
func (g *globals) commitAt(what string, by policyFlags) (*judgedCommit, error) {
	dir := what
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		r, err := g.heldTo(dir, by.source, by.profile)
		if err != nil {
			return nil, err
		}
		tree, err := gitsync.OpenFolder(dir)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", dir, err)
		}
		return &judgedCommit{r, &ring.Commit{Tree: tree}, func() { _ = tree.Close() }}, nil
	}
	repo, sha := g.resolveLocally(what)
	if repo == nil {
		return nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%s is no folder, and no revision of a clone around here", what), Hint: "name a folder, or run it inside a clone"}
	}
	r, err := g.heldTo(".", by.source, by.profile)
	if err != nil {
		return nil, err
	}
	c, err := repo.Commit(sha)
	return &judgedCommit{r, c, func() {}}, err
}

func (g *globals) policySuggest(what string, by policyFlags, app, write string, roots []string) error {
	for _, root := range roots {
		if _, hint := config.BindRoot(root); hint != "" {
			return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--bind-root: %q is no folder that apps can share", root), Hint: hint}
		}
	}
	c, err := g.commitAt(what, by)
	if err != nil {
		return err
	}
	defer c.close()
	s := c.judge.WithRoots(roots).Suggest(c.commit, c.settings)
	if app != "" {
		s.Only(app)
	}
	if write != "" {
		if err := g.writePolicy(write, c, roots, &s); err != nil {
			return err
		}
	}
	if g.machine() {
		err = g.encode(s)
	} else {
		err = g.showSuggestion(&s, roots)
	}
	if err == nil && len(s.Refused) > 0 {
		return exit.Outcome(exit.Refused)
	}
	return err
}

// writePolicy writes a new file; one that is there is a person's work.
func (g *globals) writePolicy(file string, c *judgedCommit, roots []string, s *admission.Suggestion) error {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	profile := c.judge.Rules.Profile
	if profile == "" {
		profile = policy.Compose
	}
	body := "version: 1\nprofile: " + string(profile) + "\n" + s.Yaml(roots, admission.EmptyReason)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &exit.Failure{Code: exit.Conflict, Says: file + " is there already", Hint: "name a new file, or put the lines into it by hand"}
	case err != nil:
		return fmt.Errorf("cannot write the policy: %w", err)
	}
	_, err = f.WriteString(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("cannot write the policy: %w", err)
	}
	g.notice("wrote %s: write a reason for each grant, and name the file with policy: in the configuration", file)
	return nil
}

func (g *globals) showSuggestion(s *admission.Suggestion, roots []string) error {
	body := s.Yaml(roots, admission.EmptyReason)
	switch {
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
