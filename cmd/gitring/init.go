package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/setup"
)

type initFlags struct {
	setup.Options
	repo                        string
	hook                        bool
	allowedSigners, openPGPKeys string // of the hook
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
	flags.StringVar(&f.Out, "out", "", "the folder to write to (default /etc/gitring as root, else ./gitring)")
	flags.StringVar(&f.Host, "host", "", "the host's name in labels and commit statuses")
	flags.StringVar(&f.URL, "url", "", "where hosts fetch from")
	flags.StringVar(&f.Branch, "branch", "", "the branch that hosts follow")
	flags.StringVar(&f.Path, "path", "", "the folder of the repository that this host reads")
	flags.StringVar(&f.Source, "source", "", "the source's name; with --hook the source of --config")
	flags.StringVar(&f.Landing, "landing", "", "how changes land: push, merge (button) or squash (button)")
	flags.StringVar(&f.Signer, "signer", "", "who signs, as the host shows it")
	flags.StringVar(&f.Key, "key", "", "the signing key: an SSH public key file, or an OpenPGP fingerprint")
	flags.StringVar(&f.Generate, "generate-key", "", "make a signing key of this `kind`: ed25519, or ed25519-sk on a security key")
	flags.Lookup("generate-key").NoOptDefVal = "ed25519"
	flags.StringVar(&f.Engine, "engine", "", "the engine to look at and to write down (default $DOCKER_HOST, else "+config.DefaultEngineURL+")")
	flags.BoolVar(&f.SetGit, "set-git-config", false, "sign in this clone by default")
	flags.BoolVar(&f.Introduce, "introduce", false, "make the signed, empty commit that begins trust in an unsigned history")
	flags.StringVar(&f.Profile, "profile", "", "who owns this host: owner (who signs owns it) or compose (who signs changes apps alone)")
	flags.StringVar(&f.Publish, "publish", "", "who has the ports of apps by default: front (a container of gitring's keeps them open) or direct")
	flags.StringVar(&f.Folders, "folders", "", "folders of the host that all apps may write to, with commas between, or none")
	flags.StringVar(&f.Grants, "grants", "", "what the apps ask for beside: all, most (but for apps that need root) or none")
	flags.BoolVar(&f.SearchFile, "search-file", false, "write a gitring.yaml in the clone, where apps lie deeper than is searched or are set aside")
	flags.BoolVar(&f.EnvFiles, "env-files", false, "copy the env files that lie beside the apps, and that Git does not hold, to the host's env folder")
	flags.BoolVar(&f.Force, "force", false, "change files that differ; what init does not ask about stays")
	flags.BoolVarP(&f.Yes, "yes", "y", false, "take the proposals")
	flags.BoolVar(&f.hook, "hook", false, "write a pre-push hook, and nothing else")
	flags.StringVar(&f.allowedSigners, "allowed-signers", "", "of --hook: an OpenSSH allowed_signers file")
	flags.StringVar(&f.openPGPKeys, "openpgp-keys", "", "of --hook: a file of armoured OpenPGP keys")
	return cmd
}

func (g *globals) init(ctx context.Context, f initFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	in := setup.New(c, f.Options, g.asker())
	if err := in.Find(ctx); err != nil {
		return err
	}
	if !g.machine() {
		if err := g.showFound(in); err != nil {
			return err
		}
	}
	if err := in.CarryOut(ctx); err != nil {
		return err
	}
	in.ListNext(ctx)
	if g.machine() {
		return g.encode(in.Result)
	}
	return g.showDone(in)
}

// asker is who types a verb, for what asks questions.
func (g *globals) asker() setup.Person {
	return setup.Person{Terminal: g.asks(), Machine: g.machine(), In: g.in, Ask: g.ask, Confirm: g.confirm}
}
