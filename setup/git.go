package setup

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// GitSetting is one of this clone, by which commits are signed by default.
type GitSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Set   bool   `json:"set"` // it is so already
	Made  bool   `json:"-"`   // it was not so before
}

// settings are those that make Git sign, and that tell verify, vouch and
// rollback whom this clone's hosts trust.
func (in *Setup) settings(ctx context.Context) []GitSetting {
	list := []GitSetting{
		{Key: "gpg.format", Value: in.Result.key.format()},
		{Key: "user.signingkey", Value: in.Result.key.where},
		{Key: "commit.gpgsign", Value: "true"},
		{Key: checkout.ConfigSetting, Value: in.Result.Config},
	}
	if !in.Result.key.openPGP {
		list = append(list, GitSetting{Key: "gpg.ssh.allowedSignersFile", Value: filepath.Join(filepath.Dir(in.Result.Config), in.signersName())})
	}
	for i := range list {
		list[i].Set = list[i].isMet(in.Setting(ctx, list[i].Key))
	}
	return list
}

// isMet reports whether a value that Git has comes to the one that is wanted.
func (s *GitSetting) isMet(is string) bool {
	switch {
	case s.Key == "user.signingkey" && is != "":
		return is == s.Value || is+".pub" == s.Value // Git takes the name of the private file, too
	case s.Key == "gpg.format" && is == "":
		return s.Value == "openpgp" // what Git does by itself
	}
	return is == s.Value
}

// signByDefault sets what is not set, in this clone alone, when a person asked
// for it.
func (in *Setup) signByDefault(ctx context.Context) error {
	in.Result.Git = in.settings(ctx)
	lacks := false
	for _, s := range in.Result.Git {
		lacks = lacks || !s.Set
	}
	if !lacks {
		return nil
	}
	if !in.options.SetGit {
		if in.options.Yes || !in.person.Terminal || in.person.Machine {
			return nil
		}
		ok, err := in.person.Confirm("sign in this clone by default?")
		if err != nil || !ok {
			return err
		}
	}
	for i := range in.Result.Git {
		s := &in.Result.Git[i]
		if s.Set {
			continue
		}
		undo := "git -C " + pasteable(in.Dir) + " config --local --unset " + s.Key
		if was, err := in.Git(ctx, "config", "--local", "--get", s.Key); err == nil {
			undo = "git -C " + pasteable(in.Dir) + " config --local " + s.Key + " " + pasteable(was)
		}
		if _, err := in.Git(ctx, "config", "--local", s.Key, s.Value); err != nil {
			return fmt.Errorf("cannot set %s in %s: %w", s.Key, in.Dir, err)
		}
		in.Result.Undo = append(in.Result.Undo, undo)
		s.Set, s.Made = true, true
	}
	return nil
}

// A command is one that a person is to paste: it stays on one line.
type command string

// commandf is a command of parts.
func commandf(format string, args ...any) command { return command(fmt.Sprintf(format, args...)) }

// again is a command that goes on where this one wrote: without its folder it would begin anew.
func (in *Setup) again(does string) command {
	if in.options.Out != "" {
		does += " --out " + pasteable(in.options.Out)
	}
	return command(does)
}

// ListNext is what is left to do, in order.
func (in *Setup) ListNext(ctx context.Context) {
	add := func(format string, args ...any) {
		in.Result.Next = append(in.Result.Next, fmt.Sprintf(format, args...))
		var commands []string
		for _, x := range args {
			if c, ok := x.(command); ok {
				commands = append(commands, string(c))
			}
		}
		in.Result.Commands = append(in.Result.Commands, commands)
	}
	o := &in.Result
	if len(o.Plan.Refusals) > 0 {
		add("mend what is refused (%s): %s tells each with its place", admission.CountRefused(o.Plan.Refusals), commandf("gitring validate %s --config %s", pasteable(in.Dir), pasteable(o.Config)))
	}
	if len(o.Withheld) > 0 {
		file := in.policyPath()
		add("what was not granted to an app, if you want it: %s shows it, and %s with it grants it%s",
			commandf("gitring policy suggest --config %s --app %s", pasteable(o.Config), o.Withheld[0].Apps[0]), commandf("--write %s --reason '…'", pasteable(file)), in.counts(file))
	}
	in.nextOfValues(add)
	if len(o.Withheld) == 0 && in.policyBody == "" && o.Profile == string(policy.Compose) && slices.ContainsFunc(o.Plan.Refusals, func(r *ring.Refusal) bool { return r.Code == ring.PolicyDenied }) {
		file := in.policyPath()
		if in.ungrantable {
			add("what the apps ask of the host: nothing can be granted before their mistakes are mended; then %s", in.again("gitring init --force --grants=most"))
		} else if _, err := os.Stat(file); in.there != nil && err == nil || in.onlyRoot { // a person chooses what it grants
			add("what the apps ask of the host: %s shows it, and %s with it grants it%s",
				commandf("gitring policy suggest --config %s", pasteable(o.Config)), commandf("--write %s --reason '…'", pasteable(file)), in.counts(file))
		} else {
			add("what the apps ask of the host: %s grants it, with the line of each; gitring policy suggest shows it before", in.again("gitring init --force --grants=most"))
		}
	}
	switch {
	case in.writeSearch || in.searchHere:
		add("commit %s and push it: hosts read it from there", pasteable(in.searchPath))
	case o.Search != "":
		add("a %s that %s would find what is meant: %s writes it", searchName, in.searchWhy, in.again("gitring init --search-file"))
	}
	if in.Named(ctx) != nil {
		add("Git does not know who you are, and makes no commit: %s", command(checkout.NameIt))
	}
	if o.Refusal != nil && o.Introduction == "" {
		add("the history is not signed: %s makes one signed, empty commit that trust begins with", in.again("gitring init --introduce"))
	}
	if o.Refusal != nil && o.Introduction != "" {
		add("nobody whom this host trusts signed the introduction: take it out of %s, and %s names one that is signed", pasteable(o.Config), in.again("gitring init --introduce"))
	}
	for _, s := range o.Git {
		if !s.Set {
			add("sign by default: %s, or what is shown above", in.again("gitring init --set-git-config"))
			break
		}
	}
	if !in.seen(ctx, o.Introduction) {
		add("git push: hosts cannot begin at %s before it is there", o.Introduction.Short())
	}
	if u, err := url.Parse(o.URL); err == nil && u.Scheme == "ssh" {
		dir := filepath.Dir(o.Config)
		add("a key that may only read: %s, and give its .pub to the forge as a deploy key", commandf("ssh-keygen -t ed25519 -N '' -f %s", pasteable(filepath.Join(dir, "deploy_key"))))
		add("the forge's host key: %s, and compare it with what the forge publishes", commandf("ssh-keyscan %s > %s", u.Hostname(), pasteable(filepath.Join(dir, "known_hosts"))))
	}
	for _, r := range o.Plan.Refusals {
		if r.Code == ring.ForeignProject || r.Code == ring.VolumeElsewhere {
			add("hand the running apps over, one by one, as the hints above say: until then they run on, untouched")
			break
		}
	}
	if err := in.wouldServe(); err != nil {
		add("gitring serve would end: %v", err)
	}
	add("%s, or as a service: docs/how-to/install.md", commandf("gitring serve --config %s", pasteable(o.Config)))
	add("refuse bad pushes here: %s", commandf("gitring init --hook --config %s", pasteable(o.Config)))
}

// counts says which line a policy needs in the configuration; "" where it is there.
func (in *Setup) counts(file string) string {
	if cfg, err := config.Read(in.Result.Config); err == nil && cfg.Rules.File == file {
		return ""
	}
	return fmt.Sprintf("; it counts once %s says policy: %s", in.Result.Config, filepath.Base(file))
}

// seen reports whether the remote has a commit, as far as was fetched.
func (in *Setup) seen(ctx context.Context, sha ring.SHA) bool {
	if sha == "" {
		return true
	}
	if _, err := in.Git(ctx, "remote", "get-url", in.Remote(ctx)); err != nil {
		return true // there is none: the clone itself is followed
	}
	_, err := in.Git(ctx, "merge-base", "--is-ancestor", string(sha), "refs/remotes/"+in.Remote(ctx)+"/"+in.Result.Branch)
	return err == nil
}
