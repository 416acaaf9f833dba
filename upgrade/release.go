package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
)

// Keys are the SSH keys that may sign a release, as lines of authorized_keys with ";" for the
// end of a line. -ldflags "-X 'github.com/gitring/gitring/upgrade.Keys=…'" builds them in; a
// program that has none takes no upgrade.
var Keys string

// namespace is what "make dist" gives to ssh-keygen -Y sign.
const namespace = "gitring-release"

// How large a release and its signature may be.
const (
	mostRelease   = 256 << 20
	mostSignature = 64 << 10
)

// Release is a program whose signature was verified.
type Release struct {
	Program  []byte
	SignedBy string // the fingerprint of the key
}

// Open reads a release, a program alone or an archive of "make dist", and verifies <file>.sig
// over all of it before anything else looks at a byte. keys are as in Keys.
func Open(file, keys string) (r Release, err error) {
	if strings.Trim(keys, "; ") == "" {
		return r, &exit.Failure{
			Code: exit.Conflict, Says: "cannot upgrade: no key of a release is built into this program",
			Hint: "it is no release of make dist with DIST_KEY; put another program in its place by hand: docs/how-to/upgrade.md",
		}
	}
	signature, err := readBounded(file+".sig", mostSignature)
	if err != nil {
		return r, &exit.Failure{
			Code: exit.Error, Says: fmt.Sprintf("cannot verify %s: %v", file, err), Hint: "a release has its signature beside it, as " + path.Base(file) + ".sig", Why: err,
		}
	}
	body, err := readBounded(file, mostRelease)
	if err != nil {
		return r, fmt.Errorf("cannot read the release: %w", err)
	}
	if r.SignedBy, err = gitsync.VerifyFile(strings.ReplaceAll(keys, ";", "\n"), namespace, body, signature); err != nil {
		return r, &exit.Failure{
			Code: exit.Error, Says: fmt.Sprintf("cannot trust %s: %v", file, err), Hint: "download it and its .sig again, from where releases are published", Why: err,
		}
	}
	if r.Program, err = programIn(body); err != nil {
		return r, fmt.Errorf("cannot use %s: %w", file, err)
	}
	return r, nil
}

func readBounded(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", file)
	}
	body, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("%s is larger than %d MiB", file, most>>20)
	}
	return body, nil
}

// programIn is the program of an archive, or the file itself where it is none.
func programIn(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		if len(body) == 0 {
			return nil, errors.New("it is empty")
		}
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(io.LimitReader(z, 2*mostRelease)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no program in it")
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || path.Base(h.Name) != "gitring" || strings.Count(h.Name, "/") > 1 {
			continue
		}
		if h.Size > mostRelease {
			return nil, errors.New("the program in it is too large")
		}
		return io.ReadAll(t)
	}
}
