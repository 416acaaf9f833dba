package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/report"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

func configCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration of a daemon, or of a hub",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheckCmd(g))
	return cmd
}

func configCheckCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "check [file]",
		Short: "Say whether a daemon would start with a configuration, and what is wrong with it",
		Long: "check reads a configuration as the daemon does, with the policy, the keys of each\n" +
			"source and the secrets' files that it names. It needs no daemon, and asks no\n" +
			"remote and no engine. Who runs it has to be allowed to read those files. Exit 1\n" +
			"when anything is wrong, each with its line.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			file := g.configPath()
			if len(given) == 1 {
				file = given[0]
			}
			if config.IsHub(file) {
				return g.hubCheck(file)
			}
			cfg, err := config.Load(file)
			if err != nil {
				return err
			}
			return g.configCheck(file, cfg)
		},
	}
}

// checkedConfig is what "config check -o json" prints.
type checkedConfig struct {
	File    string   `json:"file"`
	Host    string   `json:"host"`
	Cluster string   `json:"cluster,omitempty"`
	Sources []string `json:"sources"`
	Profile string   `json:"profile"`
}

func (g *globals) configCheck(file string, cfg *config.Config) error {
	out := checkedConfig{File: file, Host: cfg.Host, Cluster: cfg.Engine.Cluster, Profile: string(cfg.Rules.Profile), Sources: []string{}}
	if cfg.Engine.Swarm() {
		if _, err := daemon.ClusterKey(cfg); err != nil {
			return err
		}
	}
	if cfg.Report != nil {
		if _, err := report.ReadToken(cfg.Report.TokenFile); err != nil {
			return err
		}
	}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if _, err := gitsync.LoadTrust(s.Trust.TrustConfig(), s.Name, s.Branch); err != nil {
			return fmt.Errorf("source %s: %w", s.Name, err)
		}
		if s.Webhook != nil {
			if _, err := api.LoadSecrets(s.Webhook.SecretFile, s.Webhook.Forge); err != nil {
				return fmt.Errorf("source %s: %w", s.Name, err)
			}
		}
		out.Sources = append(out.Sources, s.Name)
	}
	if err := daemon.CheckValues(cfg); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(out)
	}
	s := g.screen()
	s.Line(0, " ", screen.Text(file+":"), screen.Painted("nothing is wrong", screen.Green))
	s.Line(2, ", ", screen.Text("host "+out.Host+wording.When(out.Cluster != "", " of swarm "+out.Cluster)), screen.Text(wording.Plural(len(out.Sources), "source")+" "+strings.Join(out.Sources, ", ")), screen.Text("policy "+out.Profile))
	_, err := fmt.Fprint(g.out, s)
	return err
}
