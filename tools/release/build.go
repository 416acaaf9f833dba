package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// build compiles the program; nothing of the machine, its folders or its environment comes in.
func build(source, to string, t target, f facts) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	if err := buildFront(source, t); err != nil {
		return err
	}
	return goTool(source, t, os.Stderr, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", linkFlags(f), "-o", to, "./cmd/gitring")
}

// linkFlags are what the linker writes into the program: which release it is, and by whose
// signature it takes the next one.
func linkFlags(f facts) string {
	flags := fmt.Sprintf("-s -w -buildid= -X github.com/gitring/gitring/ring.Release=%s -X main.commit=%s -X main.date=%s",
		f.version, f.commit, f.date.Format(time.RFC3339))
	if f.signedBy != "" {
		flags += fmt.Sprintf(" -X 'github.com/gitring/gitring/upgrade.Keys=%s'", f.signedBy)
	}
	return flags
}

// buildFront has the source hold the program of fronts for the target, where it can have one.
func buildFront(source string, t target) error {
	cmd := exec.Command(filepath.Join(source, "scripts", "front.sh"))
	cmd.Dir, cmd.Env, cmd.Stderr = source, buildEnv(t), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build the front: %w", err)
	}
	return nil
}

func goTool(source string, t target, out *os.File, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = source, buildEnv(t), out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", args[0], err)
	}
	return nil
}

// buildEnv overrules what a developer's environment could change in the result.
func buildEnv(t target) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch,
		"GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
}

// collectExtras are the files beside the program: what the program itself writes for shells
// and man, and what the repository has for hosts.
func collectExtras(source, work string, f facts) (out []file, _ error) {
	here := target{runtime.GOOS, runtime.GOARCH}
	program := filepath.Join(work, here.String(), here.binary())
	if err := build(source, program, here, f); err != nil {
		return nil, err
	}
	for shell, name := range completionFiles {
		text, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("cannot make the completions of %s: %w", shell, err)
		}
		out = append(out, file{name: name, mode: 0o644, data: text})
	}
	pages := filepath.Join(work, "man")
	if text, err := exec.Command(program, "man", pages).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot make the man pages: %w: %s", err, text)
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "man/" + e.Name(), mode: 0o644, data: text})
	}
	for from, name := range map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md",
		"deploy-examples/systemd/gitring.service":         "systemd/gitring.service",
		"deploy-examples/systemd/gitring-secrets.service": "systemd/gitring-secrets.service",
		"deploy-examples/systemd/gitring-hub.service":     "systemd/gitring-hub.service",
		"deploy-examples/systemd/config.yaml":             "systemd/config.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(source, from))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: name, mode: 0o644, data: text})
	}
	return out, nil
}

var completionFiles = map[string]string{
	"bash": "completions/gitring.bash", "zsh": "completions/_gitring", "fish": "completions/gitring.fish",
}

// extrasFor leaves out what the target has no use for: systemd is Linux's, and the shells
// and man are not of Windows.
func extrasFor(t target, extras []file) (out []file) {
	for _, x := range extras {
		folder, _, nested := strings.Cut(x.name, "/")
		if folder == "systemd" && t.os != "linux" || nested && t.os == "windows" {
			continue
		}
		out = append(out, x)
	}
	return out
}
