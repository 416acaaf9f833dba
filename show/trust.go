package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// Trust is one source of "gitring trust show".
func Trust(s *screen.Screen, t ring.TrustState, now time.Time) {
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
	Refusal(s, 2, "", t.Refusal)
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
