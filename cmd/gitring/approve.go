package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func approveCmd(g *globals) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "approve <sha>",
		Short: "Say yes to a plan that waits for a person",
		Long: "approve lets a plan go on that a guard holds, such as one that removes more than\n" +
			"half of what runs. gitring plan shows what it would do. It is journalled.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			sha, err := commitID(given[0])
			if err != nil {
				return err
			}
			if err := g.daemon().Approve(cmd.Context(), api.ApproveRequest{Commit: sha, Reason: reason}); err != nil {
				return asked(err)
			}
			g.notice("approved %s", sha.Short())
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the journal")
	return cmd
}

func trustCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show and settle up to where a source is trusted",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(trustShowCmd(g), trustAcceptCmd(g))
	return cmd
}

func trustAcceptCmd(g *globals) *cobra.Command {
	var r api.AcceptRequest
	cmd := &cobra.Command{
		Use:   "accept <sha>",
		Short: "Trust a commit that the rules of the range refuse",
		Long: "accept moves the anchor of a source to the tip of its branch by a person's\n" +
			"decision: after a forced push, or a range that is too large. The tip itself has\n" +
			"to verify. Who, from where, to where and why is journalled for good.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			sha, err := commitID(given[0])
			if err != nil {
				return err
			}
			if strings.TrimSpace(r.Reason) == "" {
				return usage(cmd, "--reason is required")
			}
			r.Commit = sha
			if err := g.daemon().Accept(cmd.Context(), r); err != nil {
				return asked(err)
			}
			g.notice("trusted up to %s", sha.Short())
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Source, "source", "", "the source, where there is more than one")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal (required)")
	return cmd
}

func trustShowCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show [source]",
		Short: "Show up to where each source is trusted",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return g.showTrust(cmd.Context(), strings.Join(given, ""))
		},
	}
}

// trusted is what "trust show -o json" prints of a source.
type trusted struct {
	Source  string        `json:"source"`
	Branch  string        `json:"branch"`
	Tip     ring.SHA      `json:"tip,omitempty"`
	Trusted ring.SHA      `json:"trusted,omitempty"`
	Signer  string        `json:"signer,omitempty"` // of the commit in force
	Warning string        `json:"warning,omitempty"`
	Refusal *ring.Refusal `json:"refusal,omitempty"`
}

func (g *globals) showTrust(ctx context.Context, source string) error {
	st, err := g.status(ctx, "")
	if err != nil {
		return err
	}
	list := []trusted{}
	var names []string
	for _, src := range st.Sources {
		names = append(names, src.Name)
		if source == "" || src.Name == source {
			list = append(list, trusted{
				Source: src.Name, Branch: src.Branch, Tip: src.Tip, Trusted: src.Trusted,
				Signer: src.Signer, Warning: src.Trust, Refusal: src.Refusal,
			})
		}
	}
	if len(list) == 0 && source != "" {
		return &failure{code: exitNotFound, says: fmt.Sprintf("no source %q on %s", source, st.Host), hint: nearest(source, names)}
	}
	if g.machine() {
		return g.encode(list)
	}
	s := g.screen()
	for _, t := range list {
		s.line(0, "  ", word{t.Source, bold}, w(t.Branch), w("trusted up to "+cmp.Or(t.Trusted.Short(), "nothing yet")))
		s.line(2, ", ", said("in force signed by ", t.Signer), said("tip ", t.Tip.Short()))
		if t.Warning != "" {
			s.line(2, " ", word{"warning:", yellow}, w(t.Warning))
		}
		showRefusal(s, 2, "", t.Refusal)
	}
	_, err = fmt.Fprint(g.out, s)
	return err
}

var someSHA = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// commitID is a commit as people copy it: 7 digits or more.
func commitID(s string) (ring.SHA, error) {
	sha := strings.ToLower(s)
	if !someSHA.MatchString(sha) {
		return "", &failure{code: exitUsage, says: fmt.Sprintf("%q is no commit id", s), hint: "7 to 40 hex digits; gitring status shows it"}
	}
	return ring.SHA(sha), nil
}
