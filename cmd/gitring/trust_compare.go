package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// Bounds of what a host may say, and of how many commits are compared.
const (
	maxTrustState = 8 << 20
	maxSSHErrors  = 64 << 10
	maxAnchors    = 32 // of a source, that differ: each pair of them is a walk over history
)

// A sshTarget is what ssh takes for a host, and nothing that it takes for an option.
var sshTarget = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f][0-9A-Fa-f:]*)$|` +
	`^ssh://([A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func trustCompareCmd(g *globals) *cobra.Command {
	var source, repo string
	cmd := &cobra.Command{
		Use:   "compare <host|file>...",
		Short: "Tell in a clone whether several hosts trust the same history",
		Long: "compare takes what several hosts trust and tells whether each commit is an ancestor\n" +
			"of the next. A forge that shows two hosts two histories is found out so; one host\n" +
			"alone cannot see it. Sources are compared by name.\n\n" +
			"A host is asked over ssh for \"gitring trust show -o json\". A file holds what that\n" +
			"printed: its name has a slash in it, or ends in .json. - is stdin.\n\n" +
			"Exit 0 for one history, 5 for several, 4 when the clone lacks a commit.",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return g.trustCompare(cmd, given, source, repo)
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "compare this source alone")
	cmd.Flags().StringVar(&repo, "repo", ".", "the clone")
	return cmd
}

// trustAnchor is up to where one host trusts a source.
type trustAnchor struct {
	Host   string   `json:"host"`
	Source string   `json:"source"`
	Branch string   `json:"branch"`
	Commit ring.SHA `json:"commit,omitempty"` // none: it trusts nothing yet
	// Behind is how many commits the newest one that descends from it has more; 0 for
	// such a newest one.
	Behind int `json:"behind"`
	// Of is the argument that it was read from: hosts may have one name.
	Of string `json:"of"`
}

// named are the anchors with hosts that can be told apart: of several arguments that give
// themselves one name, each has its argument beside it.
func named(all []trustAnchor) []trustAnchor {
	of := map[string]string{}
	twice := map[string]bool{}
	for _, a := range all {
		if known, ok := of[a.Host]; ok && known != a.Of {
			twice[a.Host] = true
		}
		of[a.Host] = a.Of
	}
	out := slices.Clone(all)
	for i := range out {
		if twice[out[i].Host] {
			out[i].Host += " (" + out[i].Of + ")"
		}
	}
	return out
}

// trustSplit is two histories that are trusted apart.
type trustSplit struct {
	Source string `json:"source"`
	// Base is the newest commit that both have, or one of several where merges went
	// both ways; none: they have no commit in common.
	Base  ring.SHA    `json:"base,omitempty"`
	Sides []trustSide `json:"sides"` // two
}

type trustSide struct {
	Hosts   []string `json:"hosts"`
	Commit  ring.SHA `json:"commit"`
	First   ring.SHA `json:"first"`   // the oldest commit that the other side has not
	Commits int      `json:"commits"` // how many of these
}

// comparedTrust is what "trust compare -o json" prints.
type comparedTrust struct {
	Anchors []trustAnchor `json:"anchors"`
	Splits  []trustSplit  `json:"splits"`
}

func (g *globals) trustCompare(cmd *cobra.Command, given []string, source, repo string) error {
	if n := slices.Index(given, "-"); n >= 0 && slices.Contains(given[n+1:], "-") {
		return usage(cmd, "stdin is named twice")
	}
	for _, of := range given { // before anybody is asked for a password
		if !namesHost(of) {
			return usage(cmd, fmt.Sprintf("%q is neither a host for ssh nor the name of a file", of))
		}
	}
	var all []trustAnchor
	for _, of := range given {
		states, err := trustOf(cmd.Context(), cmd.InOrStdin(), of)
		if err != nil {
			return err
		}
		found, err := anchorsOf(of, states, source)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	all = named(all)
	sources, err := sharedSources(all)
	if err != nil {
		return err
	}
	out, err := compareIn(repo, sources, all)
	if err != nil {
		return err
	}
	return g.showCompared(out, sources)
}

// compareIn compares anchors in a clone, a source at a time.
func compareIn(repo string, sources []string, all []trustAnchor) (comparedTrust, error) {
	out := comparedTrust{Anchors: all, Splits: []trustSplit{}}
	o, err := gitsync.OpenRepo(repo)
	if err != nil {
		return out, &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone, or name one with --repo"}
	}
	for _, name := range sources {
		splits, err := compareSource(o, name, out.Anchors)
		if err != nil {
			return out, err
		}
		out.Splits = append(out.Splits, splits...)
	}
	return out, nil
}

// namesHost reports whether an argument names stdin, a file or what ssh takes for a host.
func namesHost(of string) bool { return of == "-" || namesFile(of) || sshTarget.MatchString(of) }

// trustOf reads what one host says of itself.
func trustOf(ctx context.Context, in io.Reader, of string) ([]ring.TrustState, error) {
	var b []byte
	var err error
	switch {
	case of == "-":
		b, err = io.ReadAll(io.LimitReader(in, maxTrustState+1))
	case namesFile(of):
		b, err = readAtMost(of, maxTrustState+1)
	default:
		b, err = overSSH(ctx, of)
	}
	if err != nil {
		return nil, err
	}
	if len(b) > maxTrustState {
		return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("what %s says is larger than %d bytes", of, maxTrustState)}
	}
	var states []ring.TrustState
	if err := json.Unmarshal(b, &states); err != nil {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: fmt.Sprintf("what %s says is no list of sources: %v", of, err),
			Hint: "on the host: gitring trust show -o json",
		}
	}
	return states, nil
}

// namesFile reports whether an argument names a file. Its name alone tells: a clone
// that holds a file "edge-1" must not answer for the host edge-1.
func namesFile(of string) bool {
	if strings.HasPrefix(of, "ssh://") {
		return false
	}
	return strings.Contains(of, "/") || strings.HasSuffix(of, ".json")
}

func readAtMost(file string, n int64) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("cannot find the file %s", file), Hint: "on the host: gitring trust show -o json > " + file}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return b, nil
}

// overSSH asks a host. What ssh asks the person goes by their terminal.
func overSSH(ctx context.Context, target string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh", "-T", "-o", "ConnectTimeout=20", "--", target, "gitring trust show -o json")
	errs := &firstBytes{room: maxSSHErrors}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, &exit.Failure{
			Code: exit.Unreachable, Says: fmt.Sprintf("cannot run ssh to %s: %v", target, err),
			Hint: "give the host's answer as a file: gitring trust show -o json > host.json",
		}
	}
	b, err := io.ReadAll(io.LimitReader(out, maxTrustState+1))
	if len(b) > maxTrustState {
		_ = cmd.Process.Kill() // the caller refuses an answer of this size
		_ = cmd.Wait()
		return b, nil
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		why := cmp.Or(lastLine(errs.String()), err.Error())
		hint := "this has to work: ssh " + target + " gitring trust show -o json; or give its answer as a file"
		if st, statErr := os.Stat(target); statErr == nil && !st.IsDir() {
			hint = "if the file is meant: gitring trust compare ./" + target
		}
		return nil, &exit.Failure{Code: exit.Unreachable, Says: fmt.Sprintf("cannot ask %s: %s", target, why), Hint: hint}
	}
	return b, nil
}

// firstBytes keeps the first bytes that are written to it, and drops the others.
type firstBytes struct {
	strings.Builder
	room int
}

func (f *firstBytes) Write(b []byte) (int, error) {
	kept := b[:min(len(b), f.room-f.Len())]
	f.WriteString(string(kept))
	return len(b), nil
}

// anchorsOf are the sources of one host that are to be compared.
func anchorsOf(of string, states []ring.TrustState, source string) ([]trustAnchor, error) {
	var out []trustAnchor
	for _, s := range states {
		if source != "" && s.Source != source {
			continue
		}
		if s.Source == "" || s.Trusted != "" && !config.FullSHA.MatchString(string(s.Trusted)) {
			return nil, &exit.Failure{
				Code: exit.Usage, Says: fmt.Sprintf("what %s says names no source, or no commit by its full id", of),
				Hint: "on the host: gitring trust show -o json",
			}
		}
		out = append(out, trustAnchor{Host: cmp.Or(s.Host, of), Source: s.Source, Branch: s.Branch, Commit: s.Trusted, Of: of})
	}
	if len(out) == 0 {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: strings.TrimRight(of+" has no source "+source, " "),
			Hint: "gitring trust show on the host lists its sources",
		}
	}
	return out, nil
}

// sharedSources are the names of the sources that two hosts or more trust a commit of.
func sharedSources(all []trustAnchor) ([]string, error) {
	var names []string
	first := map[string]trustAnchor{}
	for _, a := range all {
		if a.Commit == "" {
			continue
		}
		one, known := first[a.Source]
		switch {
		case !known:
			first[a.Source] = a
			continue
		case one.Branch != a.Branch:
			return nil, &exit.Failure{
				Code: exit.Usage,
				Says: fmt.Sprintf("of source %s, %s follows branch %s and %s follows %s", a.Source, one.Host, one.Branch, a.Host, a.Branch),
				Hint: "compare hosts that follow the same branch, or another source with --source",
			}
		case !slices.Contains(names, a.Source):
			names = append(names, a.Source)
		}
	}
	if len(names) == 0 {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: "no two of these trust a commit of a source of the same name: " + haveSources(all),
			Hint: "name two hosts or more that follow the same source",
		}
	}
	return names, nil
}

// haveSources is which host has which sources, such as "edge-1 has lab and prod".
func haveSources(all []trustAnchor) string {
	var says []string
	for i, a := range all {
		if i > 0 && all[i-1].Host == a.Host {
			says[len(says)-1] += " and " + a.Source
			continue
		}
		says = append(says, a.Host+" has "+a.Source)
	}
	return strings.Join(says, ", ")
}

// notCompared are the sources that one host alone trusts a commit of, with that host.
func notCompared(all []trustAnchor, shared []string) []string {
	var says []string
	for _, a := range all {
		if a.Commit != "" && !slices.Contains(shared, a.Source) {
			says = append(says, fmt.Sprintf("%s (only on %s)", a.Source, a.Host))
		}
	}
	return says
}

// compareSource finds the newest commits of a source, those that no other one
// descends from, and how each two of them parted. It sets Behind of the others.
func compareSource(o gitsync.Objects, source string, all []trustAnchor) ([]trustSplit, error) {
	hosts := map[ring.SHA][]string{}
	var commits []ring.SHA
	for _, a := range all {
		if a.Source != source || a.Commit == "" {
			continue
		}
		if _, _, err := o.Raw(a.Commit); errors.Is(err, gitsync.ErrMissing) {
			return nil, &exit.Failure{
				Code: exit.NotFound,
				Says: fmt.Sprintf("%s trusts %s of source %s, which is not in this clone", a.Host, a.Commit.Short(), source),
				Hint: "git fetch; if it is still missing, only that host was shown it, or the source is another repository's: --source",
			}
		} else if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", a.Commit.Short(), err)
		}
		if hosts[a.Commit] == nil {
			commits = append(commits, a.Commit)
		}
		hosts[a.Commit] = append(hosts[a.Commit], a.Host)
	}
	if len(commits) > maxAnchors {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: fmt.Sprintf("%d different commits of source %s are more than %d", len(commits), source, maxAnchors),
			Hint: "compare fewer hosts at a time",
		}
	}
	behind := map[ring.SHA]int{} // of those from which another one descends
	pairs := map[[2]ring.SHA]gitsync.Parting{}
	for i, a := range commits {
		for _, b := range commits[i+1:] {
			p, err := gitsync.Part(o, a, b)
			if errors.Is(err, gitsync.ErrMissing) {
				return nil, &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "where the clone is shallow: git fetch --unshallow"}
			}
			if err != nil {
				return nil, err
			}
			switch pairs[[2]ring.SHA{a, b}] = p; {
			case p.A == 0:
				behind[a] = max(behind[a], p.B)
			case p.B == 0:
				behind[b] = max(behind[b], p.A)
			}
		}
	}
	for i := range all {
		if all[i].Source == source {
			all[i].Behind = behind[all[i].Commit]
		}
	}
	var out []trustSplit
	for i, a := range commits {
		for _, b := range commits[i+1:] {
			if p := pairs[[2]ring.SHA{a, b}]; p.Apart() && behind[a] == 0 && behind[b] == 0 {
				out = append(out, trustSplit{Source: source, Base: p.Base, Sides: []trustSide{
					{hosts[a], a, p.FirstA, p.A}, {hosts[b], b, p.FirstB, p.B},
				}})
			}
		}
	}
	return out, nil
}

func (g *globals) showCompared(out comparedTrust, sources []string) error {
	if g.machine() {
		if err := g.encode(out); err != nil {
			return err
		}
	} else {
		s := g.screen()
		var rows [][]screen.Word
		for _, a := range out.Anchors {
			where := "newest"
			switch {
			case a.Commit == "":
				where = "trusts nothing yet"
			case a.Behind > 0:
				where = fmt.Sprintf("%d behind", a.Behind)
			}
			rows = append(rows, []screen.Word{screen.Text(a.Host), screen.Text(a.Source), screen.Text(a.Branch), screen.Text(a.Commit.Short()), screen.Text(where)})
		}
		s.Table(0, []string{"HOST", "SOURCE", "BRANCH", "TRUSTED", ""}, rows)
		for _, split := range out.Splits {
			s.Gap()
			from := "which have no commit in common"
			if split.Base != "" {
				from = "which parted after " + split.Base.Short()
			}
			s.Line(0, " ", screen.Painted("apart:", screen.Red), screen.Text("two histories of "+split.Source+" are trusted,"), screen.Text(from))
			for _, side := range split.Sides {
				of := fmt.Sprintf("%s to %s (commits: %d)", side.First.Short(), side.Commit.Short(), side.Commits)
				s.Line(2, " ", screen.Text(strings.Join(side.Hosts, ", ")+":"), screen.Text(of))
			}
		}
		if len(out.Splits) == 0 {
			s.Gap()
			says := "one history: each trusted commit is an ancestor of the next"
			if len(sources) > 1 {
				says = fmt.Sprintf("one history each of %s: each trusted commit is an ancestor of the next", strings.Join(sources, ", "))
			}
			s.Line(0, " ", screen.Text(says))
		}
		if others := notCompared(out.Anchors, sources); len(others) > 0 {
			s.Line(0, " ", screen.Painted("not compared:", screen.Yellow), screen.Text(strings.Join(others, ", ")))
		}
		if _, err := fmt.Fprint(g.out, s); err != nil {
			return err
		}
	}
	if len(out.Splits) > 0 {
		return exit.Outcome(exit.Conflict)
	}
	return nil
}
