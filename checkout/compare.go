package checkout

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

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
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

// TrustAnchor is up to where one host trusts a source.
type TrustAnchor struct {
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

// NameHosts are the anchors with hosts that can be told apart: of several arguments that give
// themselves one name, each has its argument beside it.
func NameHosts(all []TrustAnchor) []TrustAnchor {
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

// TrustSplit is two histories that are trusted apart.
type TrustSplit struct {
	Source string `json:"source"`
	// Base is the newest commit that both have, or one of several where merges went
	// both ways; none: they have no commit in common.
	Base  ring.SHA    `json:"base,omitempty"`
	Sides []TrustSide `json:"sides"` // two
}

type TrustSide struct {
	Hosts   []string `json:"hosts"`
	Commit  ring.SHA `json:"commit"`
	First   ring.SHA `json:"first"`   // the oldest commit that the other side has not
	Commits int      `json:"commits"` // how many of these
}

// ComparedTrust is what "trust compare -o json" prints.
type ComparedTrust struct {
	Anchors []TrustAnchor `json:"anchors"`
	Splits  []TrustSplit  `json:"splits"`
}

// CompareIn compares anchors in a clone, a source at a time.
func CompareIn(repo string, sources []string, all []TrustAnchor) (ComparedTrust, error) {
	out := ComparedTrust{Anchors: all, Splits: []TrustSplit{}}
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

// NamesHost reports whether an argument names stdin, a file or what ssh takes for a host.
func NamesHost(of string) bool { return of == "-" || namesFile(of) || sshTarget.MatchString(of) }

// TrustOf reads what one host says of itself.
func TrustOf(ctx context.Context, in io.Reader, of string) ([]ring.TrustState, error) {
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
		why := cmp.Or(LastLine(errs.String()), err.Error())
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

// AnchorsOf are the sources of one host that are to be compared.
func AnchorsOf(of string, states []ring.TrustState, source string) ([]TrustAnchor, error) {
	var out []TrustAnchor
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
		out = append(out, TrustAnchor{Host: cmp.Or(s.Host, of), Source: s.Source, Branch: s.Branch, Commit: s.Trusted, Of: of})
	}
	if len(out) == 0 {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: strings.TrimRight(of+" has no source "+source, " "),
			Hint: "gitring trust show on the host lists its sources",
		}
	}
	return out, nil
}

// SharedSources are the names of the sources that two hosts or more trust a commit of.
func SharedSources(all []TrustAnchor) ([]string, error) {
	var names []string
	first := map[string]TrustAnchor{}
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
func haveSources(all []TrustAnchor) string {
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

// NotCompared are the sources that one host alone trusts a commit of, with that host.
func NotCompared(all []TrustAnchor, shared []string) []string {
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
func compareSource(o gitsync.Objects, source string, all []TrustAnchor) ([]TrustSplit, error) {
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
	var out []TrustSplit
	for i, a := range commits {
		for _, b := range commits[i+1:] {
			if p := pairs[[2]ring.SHA{a, b}]; p.Apart() && behind[a] == 0 && behind[b] == 0 {
				out = append(out, TrustSplit{Source: source, Base: p.Base, Sides: []TrustSide{
					{hosts[a], a, p.FirstA, p.A}, {hosts[b], b, p.FirstB, p.B},
				}})
			}
		}
	}
	return out, nil
}
