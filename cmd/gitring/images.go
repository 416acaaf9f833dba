package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

func imagesCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Move the images that a clone names to newer versions",
		Long:  "images works with the images that Compose files of a clone name.",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(imagesUpdateCmd(g))
	return cmd
}

type imagesFlags struct {
	checkout.ImageOptions
	repo string
}

func imagesUpdateCmd(g *globals) *cobra.Command {
	var f imagesFlags
	cmd := &cobra.Command{
		Use:   "update [app]",
		Short: "Make a signed commit that moves images to newer tags and digests",
		Long: "update asks the registries which tags of the same shape are newer, writes them into\n" +
			"the Compose files and .env of a clone, and makes one commit, signed with your own\n" +
			"Git settings. Tags and digests change, and no byte besides. A tag with a digest\n" +
			"gets the new digest. What is not committed here stays out of it.\n\n" +
			"It needs no daemon. Registries are signed in to as docker does, or as --config\n" +
			"says. Where --config or the clone's own setting gitring.config names what hosts\n" +
			"have, a commit that they would refuse is not made, and exit is 7. Exit 3 when\n" +
			"some registries did not say; the others' images are updated.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !slices.Contains(checkout.MoveKinds, f.To) {
				return usage(cmd, "--to is one of "+strings.Join(checkout.MoveKinds, ", "))
			}
			if f.Push && f.Branch != "" {
				return usage(cmd, "--branch pushes to a branch of its own, so --push has nothing to add")
			}
			return g.imagesUpdate(cmd.Context(), strings.Join(given, ""), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "repo", ".", "the clone")
	flags.StringVar(&f.To, "to", ring.MoveMinor, "how far a tag moves at most: patch, minor, major")
	flags.BoolVar(&f.Pin, "pin", false, "write digests beside all tags: name:tag@sha256:…")
	flags.BoolVar(&f.Push, "push", false, "push the commit to the branch's upstream, never with force")
	flags.StringVar(&f.Branch, "branch", "", "push the commit to this branch, and leave the clone as it is")
	flags.StringVarP(&f.Message, "message", "m", "", "why")
	flags.BoolVar(&f.DryRun, "dry-run", false, "show what the commit would change, and make none")
	return cmd
}

func (g *globals) imagesUpdate(ctx context.Context, app string, f imagesFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	reg, err := g.tagReader()
	if err != nil {
		return err
	}
	u := checkout.NewImagesUpdate(c, app, f.ImageOptions, reg)
	if err := u.CheckReady(ctx); err != nil {
		return err
	}
	if err := u.FindUpdates(ctx); err != nil {
		return err
	}
	tree, err := u.PrepareTree(ctx)
	if err != nil {
		return err
	}
	if !g.machine() {
		if err := g.showImageUpdates(&u.Result); err != nil {
			return err
		}
	}
	if tree != "" && !f.DryRun {
		u.Trust = g.hostsTrust(ctx, c, f.repo)
		if err := u.MakeCommit(ctx, tree); err != nil {
			return err
		}
	}
	return errors.Join(g.toldImages(u, tree != ""), notAllAsked(u))
}

// hostsTrust is what the configuration says of commits that --config names, or the clone itself;
// nil where none does. One that cannot be read is told, and keeps nobody from a commit.
func (g *globals) hostsTrust(ctx context.Context, c *checkout.Clone, repo string) *gitsync.Trust {
	if g.config == "" && c.Setting(ctx, checkout.ConfigSetting) == "" {
		return nil
	}
	trust, _, err := g.trust(ctx, trustFlags{repo: repo})
	if err != nil {
		g.notice("not held to what hosts accept: %s", err)
	}
	return trust
}

// toldImages says what came of it.
func (g *globals) toldImages(u *checkout.ImagesUpdate, newer bool) error {
	switch {
	case g.machine():
		return g.encode(u.Result)
	case u.Result.Already != "":
		g.notice("%s holds this change already, at %s: no commit was made", u.Result.Branch, u.Result.Already.Short())
	case u.Result.Commit != "":
		return g.madeCommit(u.Result.Commit, u.Result.Pushed, u.Up)
	case !newer && u.Failed() == 0:
		g.notice("nothing is newer")
	}
	return nil
}

func notAllAsked(u *checkout.ImagesUpdate) error {
	n := u.Failed()
	if n == 0 {
		return nil
	}
	return &exit.Failure{
		Code: exit.Unreachable, Says: fmt.Sprintf("the registry of %s did not say what is newer", wording.Counted(n, "image")),
		Hint: "the lines above say why; what the others have is done, and the next run takes the rest",
	}
}

// tagReader signs in as the configuration says, where one is named, else as docker does.
func (g *globals) tagReader() (*runtime.TagReader, error) {
	r := &runtime.TagReader{DockerConfig: config.DockerConfig(os.Getenv)}
	if g.config == "" {
		return r, nil
	}
	c, err := config.Read(g.config)
	if err != nil {
		return nil, err
	}
	r.DockerConfig, r.Helpers = c.Registries.DockerConfig, c.Registries.Helpers
	return r, nil
}

// showImageUpdates shows the diff, and what stays as it is.
func (g *globals) showImageUpdates(r *checkout.ImagesUpdated) error {
	s := g.screen()
	s.Quote(0, fittingDiff(r.Diff, s.LineWidth(), g.output == "wide"))
	if r.Diff != "" {
		s.Gap()
	}
	for _, l := range r.Left {
		color := screen.Yellow
		if l.Failed {
			color = screen.Red
		}
		s.Line(2, " ", screen.Painted("left", color), screen.Text(fmt.Sprintf("%s:%d %s: %s", l.File, l.Line, l.Image, l.Reason)))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

// wholeDigest is one that a line of a diff names.
var wholeDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// fittingDiff has digests short in lines that a terminal of that width would break within them.
func fittingDiff(diff string, width int, wide bool) string {
	if width == 0 || wide {
		return diff
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			line = wholeDigest.ReplaceAllStringFunc(line, func(d string) string { return show.Digest(d, false) + "…" })
		}
		b.WriteString(line)
	}
	return b.String()
}
