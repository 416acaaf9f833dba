package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// A newFile is one that init writes.
type newFile struct {
	path string
	body string
}

func names(files []newFile) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.path
	}
	return out
}

// files are those that have to be written. What is there and says the same stays
// as it is; what says something else is only overwritten by --force.
func (in *Setup) files() ([]newFile, error) {
	var out []newFile
	signers := newFile{in.signersPath(), in.signersFile()}
	if need, err := in.needed(signers, in.listed); err != nil {
		return nil, err
	} else if need {
		here, err := readThere(signers.path)
		if err != nil {
			return nil, err
		}
		signers.body = added(here, signers.body)
		out = append(out, signers)
	}
	config := newFile{in.Result.Config, in.config()}
	need, err := in.needed(config, func([]byte) bool { return in.says() })
	if err == nil && need {
		config.body, err = in.withAnswers(config)
	}
	if err != nil {
		return nil, err
	}
	if in.policyBody != "" {
		rules := newFile{in.policyPath(), in.policyBody}
		other, err := in.needed(rules, func([]byte) bool { return false })
		if err != nil {
			return nil, err
		}
		if other {
			out = append(out, rules)
		}
	}
	if need {
		out = append(out, config)
	}
	if in.writeSearch {
		out = append(out, newFile{in.searchPath, in.Result.Search})
	}
	return out, nil
}

// withAnswers is the configuration to write: that of this run, or the one that is here with its
// answers. One that cannot be read, or that an earlier run wrote for an unsigned history, is
// written anew.
func (in *Setup) withAnswers(f newFile) (string, error) {
	here, err := readThere(f.path)
	if err != nil || in.there == nil || string(here) == in.unintroduced() {
		return f.body, err
	}
	if file := in.there.Rules.File; file != "" && in.otherProfile() {
		return "", &exit.Failure{
			Code: exit.Conflict, Says: fmt.Sprintf("%s says profile: %s, and not %s", file, in.there.Rules.Profile, in.Result.Profile),
			Hint: "write profile: " + in.Result.Profile + " there, which keeps its other rules",
		}
	}
	return merged(here, f.body)
}

// otherProfile reports whether the configuration here has another profile than was chosen.
func (in *Setup) otherProfile() bool {
	return in.there != nil && string(in.there.Rules.Profile) != in.Result.Profile
}

// readThere is what a file holds; nothing where there is none.
func readThere(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read what is there: %w", err)
	}
	return b, nil
}

// keepOld keeps what a new file overwrites under another name, and gives the command that
// undoes the writing.
func keepOld(file string) (undo string, err error) {
	old := file + ".old"
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return "rm " + pasteable(file), nil
	}
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot keep what is there: %w", err)
	}
	if err := os.Link(file, old); err != nil {
		return "", fmt.Errorf("cannot keep what is there: %w", err)
	}
	return "mv -f " + pasteable(old) + " " + pasteable(file), nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// pasteable is a text as one word for a shell.
func pasteable(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (in *Setup) needed(f newFile, same func([]byte) bool) (bool, error) {
	b, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot read what is there: %w", err)
	case string(b) == f.body || same(b):
		return false, nil
	case in.options.Force || string(b) == in.unintroduced():
		return true, nil
	}
	return false, &exit.Failure{
		Code: exit.Conflict, Says: f.path + " is there and says something else",
		Hint: "--force changes there what differs and keeps the rest, --out names another folder" + wording.When(f.path == in.Result.Config, "; or write into it what differs: "+in.differs()),
	}
}

// unintroduced is the configuration as an earlier run wrote it while the history
// was not signed yet.
func (in *Setup) unintroduced() string {
	bare := *in
	bare.Result.Introduction = ""
	return bare.config()
}

// listed reports whether a file of signers has the key already.
func (in *Setup) listed(b []byte) bool {
	if in.Result.key.openPGP {
		return bytes.Contains(b, bytes.TrimSpace([]byte(in.Result.key.public)))
	}
	return in.signerBefore() == in.Result.Signer
}

// says is that the configuration here asks for the same already, whatever else
// it says.
func (in *Setup) says() bool { return in.there != nil && in.before != nil && in.differs() == "" }

// differs are the keys of the configuration here that init would say otherwise.
func (in *Setup) differs() string {
	if in.there == nil || in.before == nil {
		return "source " + in.Result.Source
	}
	var out []string
	o, s := &in.Result, in.before
	rules := in.there.Policy.Value
	if in.policyBody != "" {
		rules = in.policyName()
	}
	for _, x := range []struct{ key, is, wanted string }{
		{"host", in.there.Host, o.Host},
		{"name", s.Name, o.Source},
		{"url", s.URL, o.URL},
		{"branch", s.Branch, o.Branch},
		{"path", s.Path, o.Path},
		{"trust.mode", s.Trust.Mode, o.Mode},
		{"policy", in.there.Policy.Value, rules},
		{"policy.profile", string(in.there.Rules.Profile), o.Profile},
		{"traffic.publish", in.there.Traffic.Publish, o.Publish},
		{"trust.introduction", string(s.Trust.Introduced()), string(o.Introduction)},
		{"env.dir", in.there.Env.Dir, cmp.Or(o.Env, in.there.Env.Dir)},
		{"engine.url", in.there.Engine.URL, cmp.Or(in.options.Engine, in.there.Engine.URL)},
	} {
		if x.is != x.wanted {
			out = append(out, x.key+": "+x.wanted)
		}
	}
	return strings.Join(out, ", ")
}

func (in *Setup) signersName() string {
	if in.Result.key.openPGP {
		return "keys.asc"
	}
	return "allowed_signers"
}

// config is the configuration, with what a person may want next as comments.
// Files are named relative to it, so that the folder can be copied to its host.
func (in *Setup) config() string {
	o := &in.Result
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written by gitring init; docs/reference/configuration.md has every key.")
	line("host: %s", scalar(o.Host))
	if e := in.engineURL(); e != config.DefaultEngineURL || in.there != nil && in.there.Engine.URL != e {
		line("engine: {url: %s}", scalar(e))
	}
	switch {
	case in.policyBody != "":
		line("policy: %s", scalar(in.policyName()))
	case o.Profile != string(policy.Compose), in.otherProfile():
		line("policy: {profile: %s}", o.Profile)
	}
	if o.Publish != ring.PublishDirect || in.there != nil && in.there.Traffic.Publish != o.Publish {
		line("traffic: {publish: %s}", o.Publish)
	}
	if o.Env != "" {
		line("env: {dir: %s}", scalar(in.envConfig()))
	}
	line("sources:")
	line("  - name: %s", scalar(o.Source))
	line("    url: %s", scalar(o.URL))
	line("    branch: %s", scalar(o.Branch))
	line("    path: %s", scalar(o.Path))
	switch u, _ := url.Parse(o.URL); u.Scheme {
	case "ssh":
		line("    auth: {ssh_key_file: deploy_key, known_hosts_file: known_hosts}")
	case "https":
		line("    # For a private repository, a token that may only read:")
		line("    #auth: {username: bot, password_file: git-token}")
	}
	line("    trust:")
	line("      mode: %s", o.Mode)
	if o.key.openPGP {
		line("      openpgp_keys: %s", in.signersName())
	} else {
		line("      allowed_signers: %s", in.signersName())
	}
	if o.Introduction != "" {
		line("      introduction: {commit: %s%s}", o.Introduction, wording.When(in.introducer() != "", ", signer: "+scalar(in.introducer())))
	}
	if forge := forgeOf(o.URL); forge != "" {
		line("    # The forge pokes this host, and hears how each commit fares:")
		line("    #webhook: {forge: %s, secret_file: webhook-secret}", forge)
		line("    #status: {forge: %s, token_file: status-token}", forge)
	}
	return b.String()
}

// introducer is who signed the introduction, as the daemon knows that person.
func (in *Setup) introducer() string {
	switch {
	case in.before != nil && in.before.Trust.Introduced() != "":
		return in.before.Trust.Introduction.Signer
	case in.Result.key.openPGP:
		return in.Result.Fingerprint
	}
	return in.Result.Signer
}

// scalar is a text as YAML takes it.
func scalar(s string) string {
	b, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSuffix(string(b), "\n")
}

// forgeOf knows the forges that say by their name what they are.
func forgeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	switch host := u.Hostname(); {
	case host == "github.com", strings.HasPrefix(host, "github."):
		return ring.GitHub
	case host == "codeberg.org", strings.HasPrefix(host, "forgejo."):
		return ring.Forgejo
	case host == "gitlab.com", strings.HasPrefix(host, "gitlab."):
		return ring.GitLab
	case host == "bitbucket.org":
		return ring.Bitbucket
	case host == "gitea.com", strings.HasPrefix(host, "gitea."):
		return ring.Gitea
	}
	return ""
}

// writeWhole writes a file that the daemon may read and only its owner write,
// whole or not at all.
func writeWhole(file, body string) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make %s: %w", dir, err)
	}
	if err := disk.WriteWhole(file, ".new-", []byte(body), 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	return nil
}

// wouldServe is what the daemon would say of the files; nil when it takes them.
func (in *Setup) wouldServe() error {
	cfg, err := config.Read(in.Result.Config)
	if err != nil {
		return err
	}
	s := cfg.Source(in.Result.Source)
	if s == nil {
		return nil // there before, with another name
	}
	_, err = gitsync.LoadTrust(s.Trust.TrustConfig(), s.Name, s.Branch)
	return err
}

// unwritten is told where the introduction was made, and a person's own configuration stays.
func (in *Setup) unwritten(err error) error {
	var why *exit.Failure
	if in.Made == "" || !errors.As(err, &why) {
		return err
	}
	return &exit.Failure{
		Code: why.Code, Says: fmt.Sprintf("the introduction %s was made, and not written down: %s", in.Made.Short(), why.Says),
		Hint: why.Hint + "; " + strings.Join(in.Result.Undo, "; ") + " undoes it",
	}
}

// introduce makes the signed, empty commit that trust begins with, when a person
// asked for it.
func (in *Setup) introduce(ctx context.Context) error {
	if !in.options.Introduce {
		if in.options.Yes || !in.person.Terminal || in.person.Machine {
			return nil // told as the next thing to do
		}
		ok, err := in.person.Confirm("the history is not signed: make one signed, empty commit that trust begins with?")
		if err != nil || !ok {
			return err
		}
	}
	head, err := in.CommitOf(ctx, "HEAD")
	if err != nil {
		return err
	}
	if head != in.Tip || in.Branch(ctx) == "" {
		return &exit.Failure{
			Code: exit.Conflict, Says: "HEAD is not the tip of " + in.Result.Branch + ", which the introduction has to be made on",
			Hint: "git switch " + in.Result.Branch + ", bring it up to date, and try again",
		}
	}
	tree, err := in.Git(ctx, "rev-parse", "--verify", "HEAD^{tree}")
	if err != nil {
		return err
	}
	sha, err := in.WriteCommit(ctx, checkout.NewCommit{
		Tree: tree, Parent: head, Subject: "Begin to trust signed commits",
		Body: []string{"All up to here is trusted as it is. From here on gitring carries out only\nwhat is signed."},
	}, "gpg.format="+in.Result.key.format(), "user.signingkey="+in.Result.key.where)
	if err != nil {
		return err
	}
	refusal, err := in.refusalOf(sha)
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	if err := in.Advance(ctx, head, sha, "gitring init"); err != nil {
		return err
	}
	in.Made, in.Result.Introduction, in.Result.Refusal = sha, sha, nil
	in.Result.Undo = append(in.Result.Undo, "git -C "+pasteable(in.Dir)+" reset --keep "+string(head))
	return nil
}
