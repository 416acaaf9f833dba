package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/proof"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/show"
)

// proveFlags are those of "gitring prove", in both of its ways.
type proveFlags struct {
	check string // the file that is checked; "" makes one
	from  string
	after string // an earlier proof
	most  int

	trust  checkout.Trustees
	mode   string
	inRepo string
	host   string
	head   string
	at     string
	maxAge time.Duration
}

// onlyChecking are the flags that mean nothing without --check.
var onlyChecking = []string{"allowed-signers", "openpgp-keys", "revoked-keys", "source", "mode", "signers-in-repo", "of-host", "journal-head", "at", "max-age"}

func proveCmd(g *globals) *cobra.Command {
	var f proveFlags
	cmd := &cobra.Command{
		Use:   "prove <container|app/service> [-o file]",
		Short: "Make a proof of who authorised what runs, or check one",
		Long: "prove writes a file that says who authorised what a container runs: its labels and\n" +
			"digest, the files of the commit that its version is computed from, the chain of\n" +
			"signed commits up to it, and the journal's hash chain. No secret is in it.\n\n" +
			"With --check it judges such a file by the keys that you name, and by nothing else:\n" +
			"no daemon, no network, no repository. What only the host says is listed as such.\n" +
			"Exit 7 when the proof does not hold.\n\n" +
			"-o names the file that is written; -o json writes the proof to stdout. With --check\n" +
			"it is the form of the answer, as everywhere.",
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: g.completeApps,
		RunE: func(cmd *cobra.Command, given []string) error {
			target := strings.Join(given, "")
			if f.check != "" && g.host != "" {
				return usage(cmd, "prove --check asks no daemon; --of-host says of which host the proof has to be")
			}
			if f.check != "" {
				return g.checkProof(cmd, target, f)
			}
			if target == "" {
				return usage(cmd, "prove wants a container or app/service, or --check and a file")
			}
			for _, name := range onlyChecking {
				if cmd.Flags().Changed(name) {
					return usage(cmd, "--"+name+" goes with --check")
				}
			}
			return g.prove(cmd.Context(), target, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.check, "check", "", "judge this file (- is stdin)")
	flags.StringVar(&f.from, "from", "", "where the chain begins; with --check a commit that you know")
	flags.StringVar(&f.after, "after", "", "an earlier proof of the same host, which this one continues")
	flags.IntVar(&f.most, "most", proof.MostMade, "how many bytes the file may have; older commits are left out")
	flags.StringVar(&f.trust.AllowedSigners, "allowed-signers", "", "an OpenSSH allowed_signers file, for --check")
	flags.StringVar(&f.trust.OpenPGPKeys, "openpgp-keys", "", "a file of armoured OpenPGP keys, for --check")
	flags.StringVar(&f.trust.RevokedKeys, "revoked-keys", "", "keys that never count, for --check")
	flags.StringVar(&f.trust.Source, "source", "", "the source of --config whose trust counts, for --check")
	flags.StringVar(&f.mode, "mode", gitsync.Strict, "strict, or forge-merge where a forge lands signed heads; for keys given here")
	flags.StringVar(&f.inRepo, "signers-in-repo", "", "the file with more signers in the repository, for keys given here")
	flags.StringVar(&f.host, "of-host", "", "the host that the proof has to be of")
	flags.StringVar(&f.head, "journal-head", "", "how the hash of the journal's last line begins, as the host showed it")
	flags.StringVar(&f.at, "at", "", "judge keys as of this time, such as 2026-01-31T12:00:00Z")
	flags.DurationVar(&f.maxAge, "max-age", 0, "refuse a proof that was made longer ago, by the host's clock")
	return cmd
}

// prove has the daemon make a proof.
func (g *globals) prove(ctx context.Context, target string, f proveFlags) error {
	r := api.ProofRequest{Target: target, Most: f.most}
	if f.from != "" {
		if !config.FullSHA.MatchString(f.from) {
			return notFull(f.from)
		}
		r.From = ring.SHA(f.from)
	}
	if f.after != "" {
		older, err := g.readProof(f.after)
		if err != nil {
			return err
		}
		if r.After, err = proof.LastLine(older); err != nil {
			return &exit.Failure{Code: exit.Error, Says: fmt.Sprintf("cannot use %s: %v", f.after, err)}
		}
	}
	made, err := g.daemon().Prove(ctx, r)
	if err != nil {
		return asked(err)
	}
	if made.Proof, err = compact(made.Proof); err != nil {
		return err
	}
	if g.machine() {
		if g.output == "yaml" {
			return &exit.Failure{Code: exit.Usage, Says: "a proof is JSON", Hint: "-o json, or -o and the name of a file"}
		}
		_, err := g.out.Write(made.Proof)
		return err
	}
	if g.file != "" {
		if err := disk.WriteWhole(g.file, ".proof-", made.Proof, 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", g.file, err)
		}
	}
	var p proof.Proof
	if err := json.Unmarshal(made.Proof, &p); err != nil {
		return fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	s := g.screen()
	show.ProofMade(s, &p, len(made.Proof), made.Doubts)
	if _, err := fmt.Fprint(g.out, s); err != nil {
		return err
	}
	if g.file == "" {
		g.notice("nothing was written; -o proof.json writes the file")
	} else {
		g.notice("wrote %s; check it anywhere with gitring prove --check %s --allowed-signers <file>", g.file, g.file)
	}
	return nil
}

// compact is a proof as it is read: on one line.
func compact(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	return append(b.Bytes(), '\n'), nil
}

func notFull(sha string) error {
	return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%q is no full commit id", sha), Hint: "all 40 hex digits, as git rev-parse prints them"}
}

// checkProof judges a file.
func (g *globals) checkProof(cmd *cobra.Command, target string, f proveFlags) error {
	ask, err := g.askedOf(cmd, target, f)
	if err != nil {
		return err
	}
	file, err := g.readProof(f.check)
	if err != nil {
		return err
	}
	if f.after != "" {
		if ask.Older, err = g.readProof(f.after); err != nil {
			return err
		}
	}
	found := proof.Check(file, ask)
	if g.machine() {
		err = g.encode(&found)
	} else {
		s := g.screen()
		show.Proof(s, &found)
		_, err = fmt.Fprint(g.out, s)
	}
	if err == nil && !found.Holds {
		err = exit.Outcome(exit.Refused)
	}
	return err
}

// askedOf is what a person who checks knows, and whom he trusts.
func (g *globals) askedOf(cmd *cobra.Command, target string, f proveFlags) (proof.Asked, error) {
	ask := proof.Asked{Now: g.now().UTC(), Wall: g.now().UTC(), Host: f.host, Head: f.head}
	if target != "" {
		app, service, err := targetOf(target)
		if err != nil {
			return ask, err
		}
		ask.ID = ring.ID(app, service)
	}
	if f.at != "" {
		at, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return ask, usage(cmd, fmt.Sprintf("--at %q is no time such as 2026-01-31T12:00:00Z", f.at))
		}
		ask.Now = at.UTC()
	}
	if f.maxAge < 0 {
		return ask, usage(cmd, "--max-age is negative")
	}
	if f.maxAge > 0 {
		ask.Oldest = ask.Wall.Add(-f.maxAge)
	}
	r, err := g.proofRules(cmd, f)
	if err != nil {
		return ask, err
	}
	if f.from != "" {
		if !config.FullSHA.MatchString(f.from) {
			return ask, notFull(f.from)
		}
		ask.From = []ring.SHA{ring.SHA(f.from)}
	} else {
		ask.From = slices.DeleteFunc([]ring.SHA{r.Config.MinCommit, r.Config.Introduction}, func(sha ring.SHA) bool { return sha == "" })
	}
	if !f.trust.ByHand() {
		ask.Source, ask.Branch, ask.Path = r.Followed()
	}
	r.Config.MinCommit = "" // where it is in the proof, the chain begins there
	ask.Trust, err = r.Trust()
	return ask, err
}

// targetOf reads app/service.
func targetOf(target string) (app, service string, err error) {
	app, service, _ = strings.Cut(target, "/")
	if app == "" || service == "" || strings.Contains(service, "/") {
		return "", "", &exit.Failure{Code: exit.Usage, Says: target + " names no service", Hint: "with --check name app/service, or nothing"}
	}
	return app, service, nil
}

// proofRules are whose signatures count: only what was typed says that, and no clone around.
func (g *globals) proofRules(cmd *cobra.Command, f proveFlags) (checkout.Rules, error) {
	file := g.config
	if file == "" && !f.trust.ByHand() {
		file = configFromEnv()
	}
	if file == "" && !f.trust.ByHand() {
		return checkout.Rules{}, &exit.Failure{
			Code: exit.Usage, Says: "nothing says whose signatures count",
			Hint: "name --allowed-signers or --openpgp-keys, or a --config",
		}
	}
	f.trust.Branch = config.DefaultBranch
	r, err := checkout.RulesOf(cmd.Context(), checkout.At(".", g.person()), f.trust, file)
	if err != nil {
		return r, err
	}
	if !f.trust.ByHand() {
		if cmd.Flags().Changed("mode") || f.inRepo != "" {
			return r, usage(cmd, "--mode and --signers-in-repo go with keys given here; --config says its own")
		}
		return r, nil
	}
	if f.mode != gitsync.Strict && f.mode != gitsync.ForgeMerge {
		return r, usage(cmd, fmt.Sprintf("--mode %q is neither strict nor forge-merge", f.mode))
	}
	r.Config.Mode, r.Config.SignersInRepo = f.mode, f.inRepo
	return r, nil
}

// readProof reads a file that may be hostile; - is stdin.
func (g *globals) readProof(name string) ([]byte, error) {
	var from io.Reader = g.in
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("there is no file %s", name)}
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the proof: %w", err)
		}
		defer f.Close() //nolint:errcheck // only read
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, proof.MostRead+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the proof: %w", err)
	}
	return b, nil
}
