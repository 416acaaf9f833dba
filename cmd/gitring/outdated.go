package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
)

func outdatedCmd(g *globals) *cobra.Command {
	var detailed, tags bool
	cmd := &cobra.Command{
		Use:   "outdated [app]",
		Short: "Show which images mean something newer by now",
		Long: "outdated asks the registries what the image of each service in force means now,\n" +
			"each image once, and shows it beside the digest that the service is pinned to. It\n" +
			"changes nothing; gitring refresh does. With --tags it also lists newer tags of the\n" +
			"same shape, which gitring images update writes into a commit. With\n" +
			"--detailed-exitcode it exits 2 when something is newer.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			newer, err := g.outdated(cmd.Context(), api.OutdatedQuery{App: strings.Join(given, ""), Tags: tags})
			if err == nil && newer && detailed {
				return exit.Outcome(changed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 0 when nothing is newer, 1 on errors, 2 when something is")
	cmd.Flags().BoolVar(&tags, "tags", false, "list newer tags of the same shape, too")
	return cmd
}

func (g *globals) outdated(ctx context.Context, q api.OutdatedQuery) (newer bool, err error) {
	if app := q.App; strings.Contains(app, "/") {
		return false, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%q is no app", app), Hint: "gitring outdated " + strings.Split(app, "/")[0]}
	}
	images, err := g.daemon().Outdated(ctx, q)
	if err != nil {
		return false, asked(err)
	}
	for _, i := range images {
		newer = newer || i.Newer || len(i.Tags) > 0
	}
	if g.machine() {
		return newer, g.encode(images)
	}
	s := g.screen()
	if wide := g.output == "wide"; q.Tags {
		showTags(s, images, wide)
	} else {
		showImages(s, images, wide)
	}
	_, err = fmt.Fprint(g.out, s)
	return newer, err
}

func showImages(s *screen.Screen, images []api.ImageNow, wide bool) {
	var rows [][]screen.Word
	for _, i := range images {
		rows = append(rows, []screen.Word{
			screen.Text(i.App + "/" + i.Service), newness(i), screen.Text(named(i.Image, wide)), screen.Text(show.Digest(i.Pinned, wide)), screen.Text(meansNow(i, wide)), screen.Text(i.Reason),
		})
	}
	s.Table(0, []string{"SERVICE", "NEWER", "IMAGE", "PINNED", "NOW", "REASON"}, rows)
}

// showTags leaves the digests out: what a person looks for is which version to move to.
func showTags(s *screen.Screen, images []api.ImageNow, wide bool) {
	var rows [][]screen.Word
	for _, i := range images {
		tags := screen.Painted(strings.Join(newestTags(i, wide), ", "), screen.Yellow)
		if len(i.Tags) == 0 {
			tags = screen.Text("-")
		}
		rows = append(rows, []screen.Word{
			screen.Text(i.App + "/" + i.Service), newness(i), screen.Text(named(i.Image, wide)), tags, screen.Text(cmp.Or(i.TagsReason, i.Reason)),
		})
	}
	s.Table(0, []string{"SERVICE", "TAG MOVED", "IMAGE", "NEWER TAGS", "REASON"}, rows)
}

// named is an image without the digest that its commit names beside a tag: that is PINNED, and two
// digests fit no line.
func named(image string, wide bool) string {
	if name, _, ok := strings.Cut(image, "@"); ok && !wide && ring.ParseImage(name).Tag != "" {
		return name
	}
	return image
}

// newestTags is the newest of each kind of move, or with wide all of them.
func newestTags(i api.ImageNow, wide bool) (out []string) {
	if wide {
		return i.Tags
	}
	seen := map[string]bool{}
	for _, tag := range i.Tags {
		if kind, _, _ := ring.TagMove(ring.ParseImage(i.Image).Tag, tag); !seen[kind] {
			seen[kind] = true
			out = append(out, tag)
		}
	}
	return out
}

// meansNow is the digest that a name means now, in full only where it is another.
func meansNow(i api.ImageNow, wide bool) string {
	if i.Now != "" && i.Now == i.Pinned {
		return "same"
	}
	return cmp.Or(show.Digest(i.Now, wide), "-")
}

// newness is no word about what nobody could say.
func newness(i api.ImageNow) screen.Word {
	switch {
	case i.Newer:
		return screen.Painted("yes", screen.Yellow)
	case i.Now == "":
		return screen.Painted("unknown", screen.Red)
	}
	return screen.Painted("no", screen.Green)
}
