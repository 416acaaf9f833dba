package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func validateCmd(g *globals) *cobra.Command {
	var source, profile, branch string
	var prePush bool
	cmd := &cobra.Command{
		Use:   "validate [dir]",
		Short: "Check a folder as a commit would be checked, without a daemon",
		Long: "validate reads the folder (default: the current one) as if it were a commit, so\n" +
			"without what Git ignores, and prints all that is refused, each with its place. With --config it takes the path, facts,\n" +
			"values and policy of a source from there, and reads the signers that the repository\n" +
			"names. Without, it is the configuration that the clone's own setting gitring.config\n" +
			"names (gitring init --set-git-config writes it); else the policy is compose's.\n" +
			"Exit 7 when anything is refused, 4 where no app is found.\n\n" +
			"--pre-push reads what git tells a pre-push hook, and checks the commit that would\n" +
			"come to the branch that hosts follow. gitring init --hook writes that hook.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if prePush && len(given) > 0 {
				return usage(cmd, "--pre-push checks commits, not a folder")
			}
			if prePush {
				g.useConfigOfClone(cmd.Context(), ".")
				return g.validatePushed(source, profile, branch)
			}
			g.useConfigOfClone(cmd.Context(), slices.Concat(given, []string{"."})[0])
			return g.validate(slices.Concat(given, []string{"."})[0], source, profile)
		},
	}
	cmd.Flags().BoolVar(&prePush, "pre-push", false, "check what git's lines on stdin say is pushed")
	cmd.Flags().StringVar(&branch, "branch", config.DefaultBranch, "the branch that hosts follow, without --config")
	profileFlag(cmd, &profile)
	cmd.Flags().StringVar(&source, "source", "", "the source of --config to read it for")
	return cmd
}

// validated is what "validate -o json" prints.
type validated struct {
	Apps     []string        `json:"apps"`
	Notes    []string        `json:"notes,omitempty"`
	Powers   []string        `json:"powers,omitempty"`
	Warnings []string        `json:"warnings,omitempty"` // of the configuration, and of hosts that nothing matches
	Refusals []*ring.Refusal `json:"refusals,omitempty"`
	// Decisions are the policy's, one for each thing that is asked.
	Decisions []ring.Decision `json:"decisions,omitempty"`
	// Refused is how many apps have refusals. Where the commit is refused whole it is 0.
	Refused int                `json:"refused,omitempty"`
	NotRead []manifest.NotRead `json:"not_read,omitempty"` // Compose files that are no app's
	others  []string           // sources of the configuration that were not looked at
	env     string             // env.dir of the configuration
	lacking bool               // there is no app, and nothing that lists any
}

func (g *globals) validate(dir, source, profile string) error {
	r, err := g.heldTo(dir, source, profile)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%s is no folder", dir), Hint: "gitring validate [dir]"}
	}
	tree, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	r.needsApp = true
	return g.validateCommit(&ring.Commit{Tree: tree}, r, dir)
}

// validatePushed checks the commits that git says come to the followed branch.
func (g *globals) validatePushed(source, profile, branch string) error {
	r, err := g.heldTo(".", source, profile)
	if err != nil {
		return err
	}
	var lim gitsync.Limits
	if g.config != "" {
		_, s, err := config.ReadSource(g.config, source)
		if err != nil {
			return err
		}
		branch, lim = s.Branch, s.GitLimits()
	}
	repo, err := gitsync.OpenRepoWithin(".", lim)
	if err != nil {
		return &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone"}
	}
	list, err := checkout.PushedTo(branch, g.in)
	if err != nil {
		return err
	}
	for _, p := range list {
		c, err := repo.Commit(p.Local)
		if err != nil {
			return err
		}
		if err := g.validateCommit(c, r, c.SHA.Short()); err != nil {
			return err
		}
	}
	return nil
}

// held is what a folder or a commit is held to.
type held struct {
	policy   string // the file that the configuration names as its policy; "" for none
	settings manifest.Settings
	judge    admission.Judge
	signers  string // the file of signers_in_repo; "" is none
	warnings []string
	others   []string // sources of the configuration besides the one that is checked
	env      string   // env.dir of the configuration
	needsApp bool     // without any app it is the wrong folder; a pushed commit may have none
}

// useConfigOfClone takes the configuration that a clone's own setting names, where none is
// given and dir is the clone's top folder. Settings of the user or of the machine do not
// count: they would judge every folder.
func (g *globals) useConfigOfClone(ctx context.Context, dir string) {
	if said := g.configOfClone(ctx, dir); said != "" {
		g.config = said
		g.notice("judged by %s, which the setting %s of this clone names", said, checkout.ConfigSetting)
	}
}

// configOfClone is that configuration; "" where there is none, or one is given.
func (g *globals) configOfClone(ctx context.Context, dir string) string {
	if _, err := os.Stat(filepath.Join(dir, ".git")); g.config != "" || err != nil {
		return ""
	}
	said, err := checkout.At(dir, g.person()).Git(ctx, "config", "--local", "--get", checkout.ConfigSetting)
	if err != nil {
		return ""
	}
	return said
}

func (g *globals) heldTo(dir, source, profile string) (r held, err error) {
	if source != "" && g.config == "" {
		return r, &exit.Failure{Code: exit.Usage, Says: "--source names one of a configuration, and none is given", Hint: "gitring validate --config <file> --source " + source}
	}
	if r.settings, err = g.settings(dir, source); err != nil {
		return r, err
	}
	if r.judge, err = g.judgeFor(profile); err != nil || g.config == "" {
		return r, err
	}
	c, s, err := config.ReadSource(g.config, source)
	if err != nil {
		return r, err
	}
	for i := range c.Sources {
		if c.Sources[i].Name != s.Name {
			r.others = append(r.others, c.Sources[i].Name)
		}
	}
	r.signers, r.env, r.policy = s.Trust.SignersInRepo, c.Env.Dir, c.Rules.File
	for _, says := range s.Warnings() {
		r.warnings = append(r.warnings, "source "+s.Name+": "+says)
	}
	return r, nil
}

// validateCommit says what is refused of a commit, or of the folder of that name.
func (g *globals) validateCommit(c *ring.Commit, by held, name string) error {
	plan, refusals, notRead := by.judge.LookFurther(c, by.settings)
	if g.config == "" {
		refusals = withoutSource(refusals, by.settings.Source)
	}
	v := validated{Apps: []string{}, Refusals: refusals, Warnings: slices.Concat(by.warnings, plan.Doubts), Refused: len(plan.Refused), NotRead: notRead, Decisions: plan.Decisions, others: by.others, env: by.env}
	if by.signers != "" {
		if r := gitsync.CheckSigners(c.Tree, by.signers); r != nil {
			v.Refusals = admission.ByPlace(append(v.Refusals, r))
		}
	}
	for _, a := range plan.Apps {
		v.Apps = append(v.Apps, a.Name)
		for _, note := range a.Notes {
			v.Notes = append(v.Notes, a.Name+": "+note)
		}
		for _, power := range a.Powers {
			v.Powers = append(v.Powers, a.Name+": "+power)
		}
	}
	if says := reconcile.WithoutRestart(plan.Apps); says != "" {
		v.Notes = append(v.Notes, says)
	}
	v.lacking = by.needsApp && len(v.Apps)+len(v.Refusals) == 0 && !listsApps(c.Tree, by.settings.Path)
	if err := g.showValidated(v); err != nil {
		return err
	}
	if v.lacking {
		return noApp(path.Join(name, by.settings.Path))
	}
	if len(v.Refusals) > 0 {
		return exit.Outcome(exit.Refused)
	}
	if len(v.Apps) == 0 { // most often not the folder that was meant
		g.notice("no app for this host in %s: nothing would run", path.Join(name, by.settings.Path))
	}
	return nil
}

// listsApps reports whether a gitring.yaml stands where apps are searched: what it lists may be
// for other hosts.
func listsApps(tree fs.FS, folder string) bool {
	_, err := fs.Stat(tree, path.Join(folder, "gitring.yaml"))
	return err == nil
}

// noApp is of a folder that holds no app: a check of the wrong folder must not pass.
func noApp(folder string) error {
	return &exit.Failure{
		Code: exit.NotFound, Says: "no app in " + folder + ": no gitring.yaml there, and no compose.yaml, compose.yml, docker-compose.yaml or docker-compose.yml",
		Hint: "gitring validate <dir> names the folder of the repository; where apps lie in one below, --config names a configuration with that path, which gitring init asks for",
	}
}

// withoutSource names the place of a source's shared values by what is known of it without a
// configuration: the daemon's name of the source may be another one than the folder's.
func withoutSource(refusals []*ring.Refusal, folder string) []*ring.Refusal {
	out := slices.Clone(refusals)
	for i, r := range out {
		here := *r
		here.Hint = strings.ReplaceAll(r.Hint, manifest.SharedEnv(folder), manifest.SharedEnv("<name of the source>"))
		out[i] = &here
	}
	return out
}

// settings are what the configuration says of a source, and empty ones when no
// configuration was named: a folder is checked the same on every machine.
func (g *globals) settings(dir, source string) (manifest.Settings, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return manifest.Settings{}, fmt.Errorf("cannot find %s: %w", dir, err)
	}
	if g.config == "" {
		return daemon.ClosedSecrets(manifest.Settings{Source: config.SourceNameOf(filepath.Base(abs)), Path: ".", Host: "validate"}), nil
	}
	c, s, err := config.ReadSource(g.config, source)
	if err != nil {
		return manifest.Settings{}, err
	}
	values, key, err := daemon.ValuesOf(c)
	return daemon.OpenSecrets(c, values.Settings(config.SettingsOf(c, s), key), key), err
}

func (g *globals) showValidated(v validated) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	for _, r := range admission.NamingEnv(v.Refusals, v.env) {
		place := r.Where()
		if place == "" {
			place = r.App
		}
		s.Line(0, ": ", screen.Text(place), screen.Painted(string(r.Code), screen.Red), screen.Text(r.Says))
		if r.Hint != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(r.Hint))
		}
	}
	for _, says := range v.Warnings {
		s.Line(0, " ", screen.Painted("warning:", screen.Yellow), screen.Text(says))
	}
	for _, note := range v.Notes {
		s.Line(0, " ", screen.Painted("note:", screen.Dim), screen.Text(note))
	}
	for _, power := range v.Powers {
		s.Line(0, " ", screen.Painted("power:", screen.Yellow), screen.Text(power))
	}
	for _, says := range manifest.SayNotRead(v.NotRead) {
		s.Line(0, " ", screen.Painted("note:", screen.Dim), screen.Text(says))
	}
	if len(v.others) > 0 {
		s.Line(0, " ", screen.Painted("note:", screen.Dim), screen.Text("other sources of the configuration were not looked at: "+strings.Join(v.others, ", ")+
			"; what their apps have already is told by gitring plan where the daemon runs"))
	}
	s.Line(0, " ", v.verdict()...)
	_, err := fmt.Fprint(g.out, s)
	return err
}

// verdict is the last line: how many apps pass, and how many are refused.
func (v *validated) verdict() []screen.Word {
	passing := wording.Counted(len(v.Apps), "app") + wording.When(len(v.Apps) > 0, ": "+strings.Join(v.Apps, ", "))
	switch {
	case v.lacking:
		return []screen.Word{screen.Painted("nothing to check:", screen.Red), screen.Text(passing)}
	case len(v.Refusals) == 0:
		return []screen.Word{screen.Painted("ok:", screen.Green), screen.Text(passing)}
	case v.Refused == 0 && len(v.Apps) == 0:
		return []screen.Word{screen.Painted("refused:", screen.Red), screen.Text("all of it; " + wording.Counted(len(v.Refusals), "refusal"))}
	}
	return []screen.Word{screen.Painted("refused:", screen.Red), screen.Text(fmt.Sprintf("%d of %s, %s", v.Refused, wording.Counted(v.Refused+len(v.Apps), "app"), wording.Counted(len(v.Refusals), "refusal")))}
}
