package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// facts are what Git says of the commit that is released.
type facts struct {
	version string
	commit  string
	date    time.Time // of the commit; the time of everything that is made
	// maintainer is not Git's word, but that of whoever makes the release.
	maintainer string
	// signedBy is the public key that signs the release, as in authorized_keys; "" is none.
	signedBy string
}

// nobody stands in packages that nobody signed.
const nobody = "nobody answers for this build <nobody@gitring.example>"

var nameAndMail = regexp.MustCompile(`^[^<>\s][^<>\n]* <[^<>@\s]+@[^<>@\s]+\.[^<>@\s.]+>$`)

// checkMaintainer refuses to sign packages that name nobody whom people can write to.
func checkMaintainer(who string, signed bool) error {
	switch {
	case who == "" && signed:
		return errors.New("a signed release names who answers for its packages: DIST_MAINTAINER='Name <mail>'")
	case who != "" && (!nameAndMail.MatchString(who) || strings.HasSuffix(who, ".example>")):
		return fmt.Errorf("%q is nobody to write to: DIST_MAINTAINER is 'Name <mail>'", who)
	}
	return nil
}

// describedTag is an answer of "git describe --long".
var describedTag = regexp.MustCompile(`^v(.+)-(\d+)-(g[0-9a-f]+)$`)

// versionOf is the tag's where the commit has one. After a tag it sorts behind it, and
// before the first tag it sorts ahead of the release that is being prepared.
func versionOf(described, prepared, commit string, date time.Time) string {
	if m := describedTag.FindStringSubmatch(described); m != nil {
		if m[2] == "0" {
			return m[1]
		}
		return m[1] + "+" + m[2] + "." + m[3]
	}
	return prepared + "-dev." + date.Format("20060102") + ".g" + commit[:7]
}

var preparedVersion = regexp.MustCompile(`(?m)^var Release = "([^"]+)"$`)

// versionFile is where the source says its version.
const versionFile = "ring/release.go"

func factsOf(source string) (f facts, _ error) {
	changed, err := git(source, "status", "--porcelain")
	if err != nil {
		return f, err
	}
	if changed != "" {
		return f, errors.New("the work tree has changes that no commit has, so nobody could make the same release again: commit them first")
	}
	if f.commit, err = git(source, "rev-parse", "HEAD"); err != nil {
		return f, err
	}
	seconds, err := git(source, "log", "-1", "--format=%ct")
	if err != nil {
		return f, err
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return f, err
	}
	f.date = time.Unix(epoch, 0).UTC()
	text, err := os.ReadFile(filepath.Join(source, versionFile))
	if err != nil {
		return f, err
	}
	prepared := preparedVersion.FindSubmatch(text)
	if prepared == nil {
		return f, errors.New(versionFile + " names no version")
	}
	described, err := git(source, "describe", "--tags", "--long", "--abbrev=7", "--match", "v[0-9]*")
	if err != nil {
		described = "" // no tag yet
	}
	f.version = versionOf(described, string(prepared[1]), f.commit, f.date)
	return f, nil
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask git %s: %s", args[0], strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
