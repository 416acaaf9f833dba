package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
)

type initFlags struct {
	setupOptions
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

func (g *globals) init(ctx context.Context, f initFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	in := newSetup(c, f.setupOptions, g.asker())
	if err := in.find(ctx); err != nil {
		return err
	}
	if !g.machine() {
		if err := g.showFound(in); err != nil {
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
	return g.showDone(in)
}

// asker is who types a verb, for what asks questions.
func (g *globals) asker() asker {
	return asker{terminal: g.asks(), machine: g.machine(), in: g.in, ask: g.ask, confirm: g.confirm}
}
