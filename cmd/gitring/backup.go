package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/store"
)

func backupCmd(g *globals) *cobra.Command {
	withConfig := false
	cmd := &cobra.Command{
		Use:   "backup file",
		Short: "Save what only this host knows, into one archive",
		Long: "backup writes the database, anchors, marks of jobs and keys of this host into one\n" +
			"archive, mode 0600. The daemon may run. It is for root or the daemon's user. No volume\n" +
			"and no data folder of an app is in it: those need a backup of their own.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error { return g.backup(cmd.Context(), given[0], withConfig) },
	}
	cmd.Flags().BoolVar(&withConfig, "with-config", false, "the folder of the configuration, too: it holds secrets")
	return cmd
}

func (g *globals) backup(ctx context.Context, file string, withConfig bool) error {
	cfg, err := g.served()
	if err != nil {
		return err
	}
	about := store.Backup{Host: cfg.Host, Gitring: ring.Release, At: g.now()}
	if withConfig {
		at, err := filepath.Abs(g.configPath())
		if err != nil {
			return fmt.Errorf("cannot find the configuration: %w", err)
		}
		about.Config = filepath.Dir(at)
	}
	leftOut, err := store.SaveTo(ctx, cfg.State, file, about)
	for _, name := range leftOut {
		g.notice("left out %s: it is no file", name)
	}
	if err != nil {
		return err
	}
	g.notice("wrote %s; the volumes and data folders of apps are not in it", file)
	return nil
}

func restoreCmd(g *globals) *cobra.Command {
	withConfig := false
	cmd := &cobra.Command{
		Use:   "restore file",
		Short: "Bring back what gitring backup saved, with the daemon stopped",
		Long: "restore puts an archive's database, anchors, marks of jobs and keys in their place.\n" +
			"The daemon has to be stopped, and the archive has to be of a host of this name.\n" +
			"No anchor goes back, and no marker of a job is removed, so nothing older is trusted\n" +
			"and no job runs twice. The database that is here is kept under another name.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error { return g.restore(cmd.Context(), given[0], withConfig) },
	}
	cmd.Flags().BoolVar(&withConfig, "with-config", false, "the configuration, too, where its files are not there")
	return cmd
}

func (g *globals) restore(ctx context.Context, file string, withConfig bool) error {
	if _, err := store.About(file); err != nil {
		return err
	}
	if withConfig {
		wrote, err := store.RestoreConfig(file)
		for _, name := range wrote {
			g.notice("wrote %s", name)
		}
		if err != nil {
			return err
		}
	}
	cfg, err := g.served()
	if err != nil {
		return err
	}
	release, err := store.Lock(cfg.State, cfg.Engine.URL, cfg.OwnerName())
	if err != nil {
		return &exit.Failure{Code: exit.Conflict, Says: err.Error(), Hint: "systemctl stop gitring; what runs keeps running", Why: err}
	}
	defer release()
	done, err := store.Restore(ctx, cfg.State, file, cfg.Host, g.now())
	if err != nil {
		return err
	}
	g.notice("restored the state of %s as of %s, made by gitring %s", done.Backup.Host, screen.Stamp(done.Backup.At), done.Backup.Gitring)
	for _, source := range done.Taken {
		g.notice("source %s is trusted up to where the backup has it", source)
	}
	for _, says := range done.Kept {
		g.notice("%s", says)
	}
	g.notice("added %d marks of jobs; those that were here stay", done.Marks)
	if done.Aside != "" {
		g.notice("the database that was here is kept as %s", done.Aside)
	}
	return nil
}
