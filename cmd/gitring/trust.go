package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func trustCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show and settle whom a source trusts, and up to where",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(trustShowCmd(g), trustAcceptCmd(g), trustReverifyCmd(g), trustCompareCmd(g))
	return cmd
}

func trustAcceptCmd(g *globals) *cobra.Command {
	var r api.AcceptRequest
	cmd := &cobra.Command{
		Use:   "accept <sha>",
		Short: "Trust a commit that the rules of the range refuse",
		Long: "accept moves the anchor of a source to the tip of its branch by a person's\n" +
			"decision: after a forced push, a range that is too large, or a state directory\n" +
			"that was lost. The tip itself has to be signed by a trusted key. Who, from where,\n" +
			"to where and why is journalled for good.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			sha, err := commitID(given[0])
			if err != nil {
				return err
			}
			if len(sha) != 40 {
				return &exit.Failure{
					Code: exit.Usage, Says: fmt.Sprintf("%q is no full commit id", given[0]),
					Hint: "all 40 hex digits: what is signed once may have several ids; git rev-parse, or gitring trust show -o json",
				}
			}
			if r.Reason, err = g.why(cmd, by{reason: r.Reason}); err != nil {
				return err
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
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal (required); a terminal asks for it")
	return cmd
}

func trustShowCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show [source]",
		Short: "Show whom each source trusts, and up to where",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			all, err := g.daemon().Trust(cmd.Context(), strings.Join(given, ""))
			if err != nil {
				return asked(err)
			}
			if g.machine() {
				return g.encode(all)
			}
			s := g.screen()
			for i, t := range all {
				if i > 0 {
					s.Gap()
				}
				showTrust(s, t, g.now())
			}
			_, err = fmt.Fprint(g.out, s)
			return err
		},
	}
}

func trustReverifyCmd(g *globals) *cobra.Command {
	var r api.ReverifyRequest
	cmd := &cobra.Command{
		Use:   "reverify",
		Short: "Hold the trusted history against the present keys",
		Long: "reverify verifies again every commit since trust began, under the keys and rules\n" +
			"of now, and lists those that would not pass. It takes nothing back: what is trusted\n" +
			"stays trusted, and what runs goes on. In mode forge-merge the whole history is judged\n" +
			"as one range, and heads are fetched again; of a head that the forge does not have any\n" +
			"more it cannot be told. Exit 7 when a commit would not pass or cannot be told.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := g.daemon().Reverify(cmd.Context(), r)
			if err != nil {
				return asked(err)
			}
			return g.showReverified(found)
		},
	}
	cmd.Flags().StringVar(&r.Source, "source", "", "the source, where there is more than one")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the journal")
	return cmd
}

func (g *globals) showReverified(found ring.Reverified) error {
	if g.machine() {
		if err := g.encode(found); err != nil {
			return err
		}
	} else {
		s := g.screen()
		s.Line(0, " ", screen.Painted(found.Source, screen.Bold), screen.Text(fmt.Sprintf("%d commits since %s, up to %s:", found.Commits, found.From.Short(), found.To.Short())),
			screen.Text(outOf(len(found.Refusals), len(found.Untold))))
		for _, r := range found.Refusals {
			showRefusal(s, 2, "", r)
		}
		for _, r := range found.Untold {
			showRefusal(s, 2, "cannot be told", r)
		}
		if _, err := fmt.Fprint(g.out, s); err != nil {
			return err
		}
	}
	if len(found.Refusals)+len(found.Untold) > 0 {
		return exit.Outcome(exit.Refused)
	}
	return nil
}

func outOf(refused, untold int) string {
	says := fmt.Sprintf("%d would not pass now, and stay trusted", refused)
	switch {
	case refused == 0 && untold == 0:
		return "all would pass now"
	case refused == 0:
		says = "none is known that would not pass now"
	}
	if untold > 0 {
		says += fmt.Sprintf("; of %d it cannot be told", untold)
	}
	return says
}

// showTrust is one source of "gitring trust show".
func showTrust(s *screen.Screen, t ring.TrustState, now time.Time) {
	upTo := "trusted up to nothing yet"
	if t.Trusted != "" {
		upTo = "trusted up to " + t.Trusted.Short()
	}
	version := ""
	if t.Version > 0 {
		version = fmt.Sprintf("trust_version %d", t.Version)
	}
	s.Line(0, "  ", screen.Painted(t.Source, screen.Bold), screen.Text(t.Branch), screen.Text("mode "+t.Mode), screen.Text(upTo), screen.Text(version))
	if t.Trusted != "" {
		s.Line(2, ", ", screen.Text(t.How), screen.Text(screen.Age(t.Since, now)), screen.Labelled("signed by ", t.Signer), screen.Labelled("tip ", string(t.Tip.Short())))
	}
	if b := t.Began; b != nil {
		s.Line(2, " ", screen.Text("began with "+b.SHA.Short()+", "+screen.Age(b.At, now)+":"), screen.Text(b.How))
	}
	for _, about := range []struct {
		what string
		sha  ring.SHA
	}{{"introduction", t.Introduction}, {"min_commit", t.MinCommit}} {
		if about.sha != "" {
			s.Line(2, " ", screen.Text(about.what), screen.Text(about.sha.Short()))
		}
	}
	if t.Warning != "" {
		s.Line(2, " ", screen.Painted("warning:", screen.Yellow), screen.Text(t.Warning))
	}
	if t.Reason != "" {
		s.Line(2, " ", screen.Text(t.Reason))
	}
	showRefusal(s, 2, "", t.Refusal)
	showSigners(s, t, now)
	showTrustFiles(s, t)
}

func showSigners(s *screen.Screen, t ring.TrustState, now time.Time) {
	if t.Mode == "disabled" {
		return
	}
	if len(t.Signers) == 0 {
		s.Line(2, " ", screen.Painted("no signers:", screen.Yellow), screen.Text("every commit is refused"))
		return
	}
	heads := []string{"SIGNER", "VALID", "KIND", "KEY", "MAY"}
	two := slices.ContainsFunc(t.Signers, func(one ring.TrustedSigner) bool { return one.InRepo })
	if two {
		heads = append(heads, "FROM")
	}
	var rows [][]screen.Word
	for _, one := range t.Signers {
		row := []screen.Word{screen.Text(one.Principal), validity(one, now), screen.Text(one.Kind), screen.Text(one.Fingerprint), screen.Text(granted(one.Grants))}
		if two {
			row = append(row, from(one))
		}
		rows = append(rows, row)
	}
	s.Table(2, heads, rows)
}

// from is which side names a key, where there are two: this host, or a commit that
// was signed.
func from(one ring.TrustedSigner) screen.Word {
	if one.InRepo {
		return screen.Painted(one.Place, screen.Yellow)
	}
	return screen.Text("this host")
}

// validity is when a key counts, as far as a person wants to know now.
func validity(one ring.TrustedSigner, now time.Time) screen.Word {
	switch {
	case one.Revoked != "":
		return screen.Painted("revoked", screen.Red)
	case one.Refused == ring.Revoker:
		return screen.Painted("refused: others may revoke it", screen.Red)
	case one.Refused != "":
		return screen.Painted("refused: "+string(one.Refused), screen.Red)
	case !one.Until.IsZero() && now.After(one.Until):
		return screen.Painted("expired "+screen.Stamp(one.Until), screen.Red)
	case !one.From.IsZero() && now.Before(one.From):
		return screen.Painted("from "+screen.Stamp(one.From), screen.Yellow)
	case !one.Until.IsZero():
		return screen.Text("until " + screen.Stamp(one.Until))
	}
	return screen.Text("always")
}

// granted is what a signer may do, on one line.
func granted(grants []ring.Grant) string {
	if len(grants) == 0 {
		return "nothing on this branch"
	}
	says := make([]string, len(grants))
	for i, g := range grants {
		says[i] = strings.Join(g.Roles, ", ")
		if len(g.Paths) > 0 {
			says[i] += " in " + strings.Join(g.Paths, ", ")
		}
	}
	return strings.Join(says, "; ")
}

func showTrustFiles(s *screen.Screen, t ring.TrustState) {
	for _, f := range t.Files {
		of := ""
		if f.Owner >= 0 {
			of = fmt.Sprintf("uid %d, mode %s", f.Owner, f.Mode)
		}
		count := ""
		if f.Key == "revoked_keys" {
			count = fmt.Sprintf("%d listed", t.Revoked)
		}
		s.Line(2, ", ", screen.Text(f.Key+" "+f.Path), screen.Text(of), screen.Text(count))
		if f.Wrong != "" {
			s.Line(4, " ", screen.Painted("wrong:", screen.Red), screen.Text(f.Wrong))
		}
	}
}
