package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/store"
	"github.com/gitring/gitring/upgrade"
)

// How long parts of an upgrade may take.
const (
	rehearseWithin   = 3 * time.Minute
	upgradeStarts    = upgrade.StartWithin // until the first whole look; it migrates the database before
	upgradeAsks      = 5 * time.Second
	upgradeEvery     = time.Second
	longestProbation = time.Hour
)

// upgradeAsk is what a person asks of an upgrade.
type upgradeAsk struct {
	file, unit               string
	check, allowRoll, resume bool
	probation                time.Duration
}

func upgradeCmd(g *globals) *cobra.Command {
	a := upgradeAsk{}
	cmd := &cobra.Command{
		Use:   "upgrade [file]",
		Short: "Put a new release in place, on trial, and take it back where it fails",
		Long: "upgrade takes a release, an archive or a program alone, with its signature beside it\n" +
			"as file.sig. It is for root, on the host. It verifies the signature, rehearses the new\n" +
			"program on a copy of the database, and stops when it would change what runs. Then it\n" +
			"replaces the program and restarts the daemon by systemd. For a minute the new one looks\n" +
			"and decides and changes nothing. Where it fails, the old program and its database come\n" +
			"back. What runs is not touched. Exit 5 when this host is not for it, or it would roll.\n" +
			"The running program knows the key of releases; one built by make build knows none.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if (len(given) == 1) == a.resume {
				return usage(cmd, "name the file of a release, or --resume what an upgrade left")
			}
			if a.probation < time.Second || a.probation > longestProbation {
				return usage(cmd, "--probation is between 1s and "+longestProbation.String())
			}
			if len(given) == 1 {
				a.file = given[0]
			}
			return g.upgrade(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&a.check, "check", false, "verify and rehearse, and change nothing")
	f.BoolVar(&a.allowRoll, "allow-roll", false, "also when services would be rolled")
	f.BoolVar(&a.resume, "resume", false, "finish an upgrade that was broken off, or put it back")
	f.DurationVar(&a.probation, "probation", upgrade.Probation, "how long the new release has to do well")
	f.StringVar(&a.unit, "unit", "gitring.service", "the daemon's unit of systemd")
	return cmd
}

func (g *globals) upgrade(ctx context.Context, a upgradeAsk) error {
	var release upgrade.Release
	if a.file != "" {
		var err error
		if release, err = upgrade.Open(a.file, upgrade.Keys); err != nil {
			return err
		}
		g.notice("%s is signed by %s", a.file, release.SignedBy)
	}
	if os.Geteuid() != 0 {
		return &exit.Failure{Code: exit.Error, Says: "cannot upgrade: only root can replace the program", Hint: "sudo gitring upgrade …"}
	}
	unit, err := upgrade.Place(ctx, upgrade.Systemd{Name: a.unit}, upgrade.InContainer)
	if err != nil {
		return err
	}
	free, err := upgrade.Lock(unit.Program)
	if err != nil {
		return &exit.Failure{Code: exit.Conflict, Says: err.Error(), Why: err}
	}
	defer free()
	u, err := g.upgrader(&unit, a)
	if err != nil {
		return err
	}
	if left, err := u.Resume(ctx, unit); err != nil || a.resume {
		if err == nil && !left {
			g.notice("no upgrade of %s was broken off", unit.Program)
		}
		return err
	} else if left {
		if unit, err = upgrade.Place(ctx, upgrade.Systemd{Name: a.unit}, upgrade.InContainer); err != nil {
			return err
		}
	}
	if unit.PID == 0 || unit.Failed {
		return &exit.Failure{Code: exit.Error, Says: fmt.Sprintf("cannot upgrade: the daemon does not run: %s is %s", unit.Name, unit.State), Hint: "systemctl start " + unit.Name + "; then upgrade, or replace the program by hand"}
	}
	plan, err := u.Check(ctx, unit, release.Program)
	if err != nil || a.check {
		if err == nil {
			g.notice("gitring %s would change nothing that %s would not; nothing was changed", plan.To, plan.From)
		}
		return errors.Join(err, u.Forget(unit))
	}
	return u.Run(ctx, unit, plan)
}

// upgrader is wired for the daemon of a unit: its configuration is the one that it was
// started with.
func (g *globals) upgrader(unit *upgrade.Unit, a upgradeAsk) (*upgrade.Upgrader, error) {
	if len(unit.Args) == 0 { // it does not run
		unit.Args = []string{"--config", g.configPath()}
	}
	for _, v := range unit.Env {
		if dir, ok := strings.CutPrefix(v, "CREDENTIALS_DIRECTORY="); ok {
			if err := os.Setenv("CREDENTIALS_DIRECTORY", dir); err != nil { // as the daemon reads its files
				return nil, err
			}
		}
	}
	file, socket := g.configPath(), ""
	for i, w := range unit.Args {
		for name, to := range map[string]*string{"--config": &file, "--socket": &socket} {
			if value, ok := strings.CutPrefix(w, name+"="); ok {
				*to = value
			} else if w == name && i+1 < len(unit.Args) {
				*to = unit.Args[i+1]
			}
		}
	}
	cfg, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	if socket == "" {
		socket = cfg.Listen.Socket
	}
	client := api.NewClient(socket)
	return &upgrade.Upgrader{
		Manager: upgrade.Systemd{Name: a.unit}, Ask: client.Status,
		Rehearse: func(ctx context.Context, program string, u upgrade.Unit) (upgrade.Rehearsal, error) {
			return upgrade.Rehearse(ctx, program, u, rehearseWithin)
		},
		KeepPrev:    func(ctx context.Context) error { return store.KeepPrev(ctx, cfg.State) },
		PutBackPrev: func() error { return store.PutBackPrev(cfg.State) },
		State:       cfg.State, AllowRoll: a.allowRoll, Probation: a.probation,
		StartWithin: upgradeStarts, Every: upgradeEvery, AskWithin: upgradeAsks, Say: g.notice,
	}, nil
}
