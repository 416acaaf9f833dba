package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// A question is one thing that init cannot know. Its answer is the first that is
// there: the flag, what a configuration here says, a person, the proposal.
type question struct {
	flag, asks      string
	given, existing string
	proposal        string
	into            *string
	wrong           func(string) string // "" when the answer will do
}

// answer settles everything that has a flag.
func (in *Setup) answer(ctx context.Context) error {
	dir, err := in.options.outFolder()
	if err != nil {
		return err
	}
	in.Result.Repository, in.Result.Config = in.Dir, filepath.Join(dir, "config.yaml")
	if err := in.existing(); err != nil {
		return err
	}
	if in.asks() {
		if err := in.begun(ctx); err != nil {
			return err
		}
	}
	if in.Result.key, err = in.signingKey(ctx); err != nil {
		return err
	}
	in.Result.Fingerprint = in.Result.key.print
	landing := in.options.Landing
	if err := in.settle(in.questions(ctx, &landing)); err != nil {
		return err
	}
	in.Result.Mode = modes[landing]
	if in.before != nil && in.options.Landing == "" {
		in.Result.Mode = in.before.Trust.Mode
	}
	return nil
}

// modes are the trust modes by how changes land.
var modes = map[string]string{"push": gitsync.Strict, "merge": gitsync.ForgeMerge, "squash": gitsync.ForgeMerge}

// existing reads the configuration that an earlier run, or a person, wrote.
func (in *Setup) existing() error {
	cfg, err := config.Read(in.Result.Config)
	if errors.Is(err, fs.ErrNotExist) || err != nil && in.options.Force {
		return nil
	}
	if err != nil {
		return err
	}
	in.there = cfg
	in.before = cfg.Source(in.options.Source)
	if in.options.Source == "" && len(cfg.Sources) == 1 {
		in.before = &cfg.Sources[0]
	}
	return nil
}

func (in *Setup) questions(ctx context.Context, landing *string) []question {
	host, s := "", config.SourceConfig{}
	if in.there != nil {
		host = in.there.Host
	}
	was, profile := "", ""
	if in.there != nil {
		profile = string(in.there.Rules.Profile)
	}
	publish := ""
	switch { // whoever sets up a host by a script is not asked for one flag more
	case in.there != nil:
		publish = in.there.Traffic.Publish
	case !in.asks():
		publish = ring.PublishDirect
	}
	if in.before != nil {
		s = *in.before
		was = landingOf(s.Trust.Mode)
	}
	remote, branch := in.origin(ctx)
	return []question{
		{"host", "name of this host", in.options.Host, host, hostHere(), &in.Result.Host, func(v string) string {
			return unless(config.HostName.MatchString(v), "lower-case letters, digits, '.', '_' and '-'")
		}},
		{"source", "name of the source", in.options.Source, s.Name, config.SourceNameOf(strings.TrimSuffix(path.Base(remote), ".git")), &in.Result.Source, func(v string) string {
			return unless(config.SourceName.MatchString(v), "lower-case letters, digits, '_' and '-'")
		}},
		{"url", "where do hosts fetch from", in.options.URL, s.URL, remote, &in.Result.URL, wrongRemote},
		{"branch", "which branch do they follow", in.options.Branch, s.Branch, branch, &in.Result.Branch, func(v string) string {
			return unless(config.IsBranch(v), "the branch's own name, such as \"main\"")
		}},
		{"path", "which folder of it does this host read", in.options.Path, s.Path, in.proposedPath(ctx, s.Path), &in.Result.Path, func(v string) string {
			clean := path.Clean(v)
			return unless(!path.IsAbs(v) && clean != ".." && !strings.HasPrefix(clean, "../"), "a folder inside the commit")
		}},
		{"landing", "how do changes land: push (I push), merge (the forge's merge button), squash (its squash button)", in.options.Landing, was, in.lands(ctx), landing, func(v string) string {
			return unless(modes[v] != "", "push, merge or squash")
		}},
		{"signer", "who signs, as this host shows it", in.options.Signer, in.signerBefore(), cmp.Or(in.Setting(ctx, "user.email"), "signer"), &in.Result.Signer, func(v string) string {
			return unless(principal.MatchString(v), "an e-mail, without blanks and commas")
		}},
		{"profile", "who owns this host: owner (who signs owns it, and may ask for all that Compose takes) or compose (who signs changes apps, and the host stays yours)", in.options.Profile, profile, string(policy.Compose), &in.Result.Profile, func(v string) string {
			return unless(slices.Contains(config.Profiles, v), strings.Join(config.Profiles, ", "))
		}},
		{"publish", "who has the ports of apps: front (a small container keeps them open while an app is replaced, for 14 MiB each, and the app sees the front's address, not the visitor's) or direct (as Compose has it, with a gap)", in.options.Publish, publish, ring.PublishDirect, &in.Result.Publish, func(v string) string {
			return unless(v == ring.PublishFront || v == ring.PublishDirect, "front or direct")
		}},
	}
}

// proposedPath is only looked for where somebody may take it.
func (in *Setup) proposedPath(ctx context.Context, existing string) string {
	if in.options.Path != "" || existing != "" {
		return "."
	}
	return in.findPath(ctx)
}

// principal is what stands in allowed_signers without quotes.
var principal = regexp.MustCompile(`^[^\s,"#*?!]+$`)

func unless(good bool, hint string) string {
	if good {
		return ""
	}
	return hint
}

func wrongRemote(v string) string {
	wrong := config.RemoteMistakes(v)
	if len(wrong) == 0 {
		return ""
	}
	return cmp.Or(wrong[0].Hint, wrong[0].Says)
}

func landingOf(mode string) string {
	if mode == gitsync.ForgeMerge {
		return "merge"
	}
	return "push"
}

// wrongAnswers is how many a person may give to one question.
const wrongAnswers = 3

// settle takes every answer, or says which are missing.
func (in *Setup) settle(all []question) error {
	var missing, proposals []string
	for _, q := range all {
		answer := cmp.Or(q.given, q.existing)
		switch {
		case answer != "":
		case in.options.Yes:
			answer = q.proposal
		case in.person.Terminal && !in.person.Machine:
			var err error
			if answer, err = in.person.Ask(q.asks+"?", q.proposal); err != nil {
				return err
			}
		default:
			missing = append(missing, "--"+q.flag)
			proposals = append(proposals, "--"+q.flag+" "+q.proposal)
			continue
		}
		for tries := 0; q.wrong(answer) != ""; tries++ {
			if given := cmp.Or(q.given, q.existing); given != "" || !in.asks() || tries == wrongAnswers {
				return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--%s: %q will not do", q.flag, answer), Hint: q.wrong(answer)}
			}
			in.Notice("%q will not do: %s", answer, q.wrong(answer))
			var err error
			if answer, err = in.person.Ask(q.asks+"?", q.proposal); err != nil {
				return err
			}
		}
		*q.into = answer
	}
	if len(missing) > 0 {
		return &exit.Failure{
			Code: exit.Usage, Says: "nobody can be asked here, and these flags are missing: " + strings.Join(missing, ", "),
			Hint: "--yes takes the proposals: " + strings.Join(proposals, " "),
		}
	}
	return nil
}

// hostHere is this machine's name as a configuration takes it.
func hostHere() string {
	name, _ := os.Hostname()
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if !config.HostName.MatchString(name) {
		return "host"
	}
	return name
}

// origin is the remote that the branch here follows, as a url, and the branch
// there; without a remote it is the clone itself.
func (in *Setup) origin(ctx context.Context) (address, branch string) {
	branch = cmp.Or(in.Branch(ctx), config.DefaultBranch)
	if up, ok := in.Upstream(ctx); ok {
		branch = strings.TrimPrefix(up.Ref, "refs/heads/")
	}
	address, err := in.Git(ctx, "remote", "get-url", in.Remote(ctx))
	if err != nil || address == "" {
		return "file://" + in.Dir, branch
	}
	if strings.HasPrefix(address, "/") {
		return "file://" + address, branch
	}
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		if u.Scheme != "ssh" {
			u.User = nil // a token in a clone's address is not for the configuration
		}
		return u.String(), branch
	}
	if host, at, ok := strings.Cut(address, ":"); ok && !strings.Contains(host, "/") {
		return "ssh://" + config.WithoutSecret(host) + "/" + strings.TrimPrefix(at, "/"), branch
	}
	if abs, err := filepath.Abs(filepath.Join(in.Dir, address)); err == nil {
		return "file://" + abs, branch
	}
	return address, branch
}

var (
	mergedByForge   = regexp.MustCompile(`(?m)^(Merge pull request [#!]\d|Merge branch '.*' into )`)
	squashedByForge = regexp.MustCompile(`(?m)\([#!]\d+\)$`)
)

// lands guesses how changes land from the newest subjects of the branch.
func (in *Setup) lands(ctx context.Context) string {
	subjects, _ := in.Git(ctx, "log", "--no-show-signature", "--first-parent", "--max-count=50", "--format=%s")
	switch {
	case mergedByForge.MatchString(subjects):
		return "merge"
	case squashedByForge.MatchString(subjects):
		return "squash"
	}
	return "push"
}
