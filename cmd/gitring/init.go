package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

type initFlags struct {
	repo, out                                        string
	host, url, branch, path, source, landing, signer string
	key, generate, engine                            string
	setGit, introduce, force, yes                    bool
	hook                                             bool
	searchFile, envFiles                             bool
	profile, folders, grants                         string
	allowedSigners, openPGPKeys                      string // of the hook
}

func initCmd(g *globals) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set up a host from a repository that exists already",
		Long: "init looks at the clone around: which apps it holds, which of them run on this\n" +
			"engine already, who signs. It asks what it cannot know, writes allowed_signers and\n" +
			"config.yaml, and says what the first plan would do. On the engine it changes\n" +
			"nothing. Run again, it changes nothing anywhere.\n\n" +
			"Every question has a flag, and --yes takes the proposals; without a terminal and\n" +
			"--yes it says which flags are missing. What goes beyond the two files is done only\n" +
			"when asked for: --generate-key, --set-git-config, --introduce, --search-file,\n" +
			"--env-files, and a policy with --folders and --grants.\n\n" +
			"--hook writes a pre-push hook instead, which runs verify and validate for what is\n" +
			"pushed, by --config or the keys given.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hook {
				return g.initHook(cmd.Context(), f)
			}
			if g.config != "" || f.allowedSigners != "" || f.openPGPKeys != "" {
				return usage(cmd, "--config and keys are for --hook; --out says where the configuration is written")
			}
			return g.init(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "repo", ".", "the clone")
	flags.StringVar(&f.out, "out", "", "the folder to write to (default /etc/gitring as root, else ./gitring)")
	flags.StringVar(&f.host, "host", "", "the host's name in labels and commit statuses")
	flags.StringVar(&f.url, "url", "", "where hosts fetch from")
	flags.StringVar(&f.branch, "branch", "", "the branch that hosts follow")
	flags.StringVar(&f.path, "path", "", "the folder of the repository that this host reads")
	flags.StringVar(&f.source, "source", "", "the source's name; with --hook the source of --config")
	flags.StringVar(&f.landing, "landing", "", "how changes land: push, merge (button) or squash (button)")
	flags.StringVar(&f.signer, "signer", "", "who signs, as the host shows it")
	flags.StringVar(&f.key, "key", "", "the signing key: an SSH public key file, or an OpenPGP fingerprint")
	flags.StringVar(&f.generate, "generate-key", "", "make a signing key: ed25519, or ed25519-sk on a security key")
	flags.Lookup("generate-key").NoOptDefVal = "ed25519"
	flags.StringVar(&f.engine, "engine", "", "the engine to look at and to write down (default $DOCKER_HOST, else "+config.DefaultEngineURL+")")
	flags.BoolVar(&f.setGit, "set-git-config", false, "sign in this clone by default")
	flags.BoolVar(&f.introduce, "introduce", false, "make the signed, empty commit that begins trust in an unsigned history")
	flags.StringVar(&f.profile, "profile", "", "who owns this host: owner (who signs owns it) or compose (who signs changes apps alone)")
	flags.StringVar(&f.folders, "folders", "", "folders of the host that all apps may write to, with commas between, or none")
	flags.StringVar(&f.grants, "grants", "", "what the apps ask for beside: all, most (nothing that gives root) or none")
	flags.BoolVar(&f.searchFile, "search-file", false, "write a gitring.yaml in the clone, where apps lie deeper than is searched or are set aside")
	flags.BoolVar(&f.envFiles, "env-files", false, "copy the env files that lie beside the apps, and that Git does not hold, to the host's env folder")
	flags.BoolVar(&f.force, "force", false, "overwrite files that differ")
	flags.BoolVarP(&f.yes, "yes", "y", false, "take the proposals")
	flags.BoolVar(&f.hook, "hook", false, "write a pre-push hook, and nothing else")
	flags.StringVar(&f.allowedSigners, "allowed-signers", "", "of --hook: an OpenSSH allowed_signers file")
	flags.StringVar(&f.openPGPKeys, "openpgp-keys", "", "of --hook: a file of armoured OpenPGP keys")
	return cmd
}

// initialised is what "init -o json" prints.
type initialised struct {
	Repository   string        `json:"repository"`
	Config       string        `json:"config"`
	Host         string        `json:"host"`
	Source       string        `json:"source"`
	URL          string        `json:"url"`
	Branch       string        `json:"branch"`
	Path         string        `json:"path"`
	Mode         string        `json:"mode"`
	Profile      string        `json:"profile"`
	Folders      []string      `json:"folders,omitempty"` // that all apps may write to
	Grants       int           `json:"grants,omitempty"`
	Search       string        `json:"search_file,omitempty"` // a gitring.yaml that would find more apps, or leave some out
	NotRead      []string      `json:"not_read,omitempty"`
	Env          string        `json:"env,omitempty"`       // the folder for values that Git does not hold
	EnvFiles     []string      `json:"env_files,omitempty"` // of the clone: the apps read them, and nobody copied them
	Signer       string        `json:"signer"`
	Fingerprint  string        `json:"fingerprint"`
	Introduction ring.SHA      `json:"introduction,omitempty"`
	Refusal      *ring.Refusal `json:"refusal,omitempty"` // why the history is not trusted as it is
	Apps         []string      `json:"apps"`
	Engine       string        `json:"engine,omitempty"` // why nobody can say what runs; "" when it answers
	Plan         *ring.Changes `json:"plan"`
	Wrote        []string      `json:"wrote,omitempty"`
	Undo         []string      `json:"undo,omitempty"` // commands, for what was done
	Git          []gitSetting  `json:"git"`
	Next         []string      `json:"next"`

	key signingKey
}

func (g *globals) init(ctx context.Context, f initFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	in := &initial{g: g, Clone: c, f: f}
	if err := in.answer(ctx); err != nil {
		return err
	}
	if err := in.history(ctx); err != nil {
		return err
	}
	if err := in.look(ctx); err != nil {
		return err
	}
	if !g.machine() {
		if err := in.showFound(); err != nil {
			return err
		}
	}
	if err := in.carryOut(ctx); err != nil {
		return err
	}
	in.next(ctx)
	if g.machine() {
		return g.encode(in.out)
	}
	return in.showDone()
}

// initial is one set-up.
type initial struct {
	g *globals
	*checkout.Clone
	f      initFlags
	out    initialised
	before *config.SourceConfig // what a configuration here says already; nil when there is none
	there  *config.Config
	tip    ring.SHA // of the branch that is followed
	made   ring.SHA // the introduction commit, when one was made

	hostValues  []hostFile
	policyBody  string // of the policy to write
	searchPath  string // of gitring.yaml in the clone
	searchWhy   string // what the proposed one does
	searchHere  bool   // it is in the work tree, and not in the commit
	writeSearch bool
}

// carryOut does what goes beyond looking, the files last: what fails before
// leaves none.
func (in *initial) carryOut(ctx context.Context) error {
	files, err := in.files()
	if err != nil {
		return err
	}
	if in.out.Refusal != nil && in.out.Introduction == "" {
		if err := in.introduce(ctx); err != nil {
			return err
		}
		if files, err = in.files(); err != nil {
			return err
		}
	}
	toWrite := names(files)
	if n := len(in.hostValues); n > 0 {
		toWrite = append(toWrite, fmt.Sprintf("%s below %s", wording.Counted(n, "file"), in.out.Env))
	}
	if len(toWrite) > 0 && in.f.yes && !in.g.machine() {
		in.g.notice("writing %s", strings.Join(toWrite, " and "))
	}
	if len(toWrite) > 0 && in.asks() {
		ok, err := in.g.confirm("write " + strings.Join(toWrite, " and ") + "?")
		if err != nil || !ok {
			left := &exit.Failure{Code: exit.Conflict, Says: "left as it was"}
			if in.made != "" {
				left.Says, left.Hint = "nothing was written, and the introduction was made", strings.Join(in.out.Undo, "; ")+" undoes it"
			}
			return cmp.Or(err, error(left))
		}
	}
	if len(toWrite) > 0 {
		if err := in.putValues(); err != nil { // before the configuration names it
			return err
		}
	}
	for _, file := range files {
		undo, err := keepOld(file.path)
		if err != nil {
			return err
		}
		if err := writeWhole(file.path, file.body); err != nil {
			return err
		}
		in.out.Undo = append(in.out.Undo, undo)
		in.out.Wrote = append(in.out.Wrote, file.path)
	}
	return in.signByDefault(ctx)
}

// outFolder is where the files go.
func (f initFlags) outFolder() (string, error) {
	dir := f.out
	if dir == "" && os.Geteuid() == 0 {
		dir = filepath.Dir(config.DefaultFile)
	}
	abs, err := filepath.Abs(cmp.Or(dir, "gitring"))
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", dir, err)
	}
	return abs, nil
}
