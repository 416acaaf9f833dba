package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

func approveCmd(g *globals) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "approve <sha>|<digest>",
		Short: "Say yes to a plan that waits for a person",
		Long: "approve lets a plan go on that a guard holds, such as one that removes more than\n" +
			"half of what runs, where that is more than two services. Where waves wait, it lets the\n" +
			"plan pass them. gitring plan shows what it would do. With the beginning of a digest,\n" +
			"as status shows it, a tag that moved there is followed. It is journalled.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			sha, err := approvable(given[0])
			if err != nil {
				return err
			}
			if err := g.daemon().Approve(cmd.Context(), api.ApproveRequest{Commit: sha, Reason: reason}); err != nil {
				return asked(err)
			}
			if someDigest.MatchString(string(sha)) {
				g.notice("approved %s", sha)
				return nil
			}
			g.notice("approved %s", sha.Short())
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the journal")
	return cmd
}

var someDigest = regexp.MustCompile(`^sha256:[0-9a-f]{8,64}$`)

// approvable is a commit, or the digest that a tag moved to, as people copy it.
func approvable(s string) (ring.SHA, error) {
	if digest := strings.ToLower(s); someDigest.MatchString(digest) {
		return ring.SHA(digest), nil
	}
	return commitID(s)
}

var someSHA = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// commitID is a commit as people copy it: 7 digits or more.
func commitID(s string) (ring.SHA, error) {
	sha := strings.ToLower(s)
	if !someSHA.MatchString(sha) {
		return "", &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%q is no commit id", s), Hint: "7 to 40 hex digits; gitring status shows it"}
	}
	return ring.SHA(sha), nil
}
