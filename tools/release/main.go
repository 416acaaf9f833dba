package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.source, "source", ".", "the checkout of gitring")
	flag.StringVar(&o.out, "out", "bin/dist", "the folder to make; what it held is removed")
	flag.StringVar(&o.key, "key", "", "an SSH key to sign the checksums with; its public half is enough where an agent has the key")
	flag.StringVar(&o.maintainer, "maintainer", "", "who answers for the packages, as Name <mail>; a signed release needs it")
	targets := flag.String("targets", strings.Join(allTargets, ","), "which of these to make")
	flag.Parse()
	o.targets = strings.FieldsFunc(*targets, func(r rune) bool { return r == ',' || r == ' ' })
	if err := release(o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct {
	source, out, key string
	maintainer       string // "" is nobody, where nothing is signed
	targets          []string
}

// target is what a program runs on.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

// binary is the program's file name.
func (t target) binary() string {
	if t.os == "windows" {
		return "gitring.exe"
	}
	return "gitring"
}

func parseTargets(words []string) (out []target, _ error) {
	for _, w := range words {
		system, arch, ok := strings.Cut(w, "/")
		if !ok {
			return nil, fmt.Errorf("%q is no target: write it as linux/amd64", w)
		}
		out = append(out, target{system, arch})
	}
	if len(out) == 0 {
		return nil, errors.New("no target to make")
	}
	return out, nil
}

// release makes everything in a folder beside the one asked for, which it replaces at the end.
func release(o options) error {
	targets, err := parseTargets(o.targets)
	if err != nil {
		return err
	}
	if err := checkMaintainer(o.maintainer, o.key != ""); err != nil {
		return err
	}
	f, err := factsOf(o.source)
	if err != nil {
		return err
	}
	f.maintainer = cmp.Or(o.maintainer, nobody)
	if o.key != "" {
		if f.signedBy, err = publicKey(o.key); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(o.out), ".dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	made := filepath.Join(work, "made")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	say("gitring %s, commit %.7s", f.version, f.commit)

	extras, err := collectExtras(o.source, work, f)
	if err != nil {
		return err
	}
	images := map[string][]byte{}
	for _, t := range targets {
		if err := releaseOf(o.source, work, made, t, f, extras, images); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if len(images) > 0 {
		if err := writeImage(filepath.Join(made, "gitring_"+f.version+"_image.tar"), images, f); err != nil {
			return fmt.Errorf("container image: %w", err)
		}
		say("made the container image")
	}
	if err := writeInstaller(o.source, made, o.key, f); err != nil {
		return err
	}
	if err := writeSums(made); err != nil {
		return err
	}
	if o.key != "" {
		if err := signAll(made, o.key); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.Rename(made, o.out); err != nil {
		return err
	}
	if o.key == "" {
		say("made %s, not signed: DIST_KEY names no key, and install.sh refuses a release without a signature", o.out)
		return nil
	}
	say("made %s, signed", o.out)
	return nil
}

// releaseOf makes what one target gets, and adds its program to images where it has one.
func releaseOf(source, work, made string, t target, f facts, extras []file, images map[string][]byte) error {
	at := filepath.Join(work, t.String(), t.binary())
	if err := build(source, at, t, f); err != nil {
		return err
	}
	program, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	licences, err := collectLicences(source, t)
	if err != nil {
		return err
	}
	name := "gitring_" + f.version + "_" + t.String()
	content := append([]file{{name: t.binary(), mode: 0o755, data: program}, {name: "THIRD_PARTY_LICENSES", mode: 0o644, data: licences}},
		extrasFor(t, extras)...)
	if err := writeArchive(filepath.Join(made, name), t, content, f); err != nil {
		return err
	}
	bom, err := billOfMaterials(at, program, f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(made, name+".cdx.json"), bom, 0o644); err != nil {
		return err
	}
	if t.os == "linux" {
		for _, format := range []string{"deb", "rpm"} {
			if err := writePackage(filepath.Join(made, name+"."+format), format, t, content, f); err != nil {
				return fmt.Errorf("%s: %w", format, err)
			}
		}
		images[t.arch] = program
	}
	say("made %s", name)
	return nil
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// allTargets are what a release has. The daemon runs on Linux; the others get the client.
var allTargets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}
