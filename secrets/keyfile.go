package secrets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/disk"
)

// maxKeyFile is far above any real file of keys.
const maxKeyFile = 1 << 20

// KeyKind is how a file of keys is written.
type KeyKind string

// The kinds of files of keys, by their names in the configuration.
const (
	AgeFile     KeyKind = "age_file"
	SSHFile     KeyKind = "ssh_file"
	OpenPGPFile KeyKind = "openpgp_file"
)

// keyFault is an error of a key file: it names the file and never what stands in it.
func keyFault(place string, line int, says string) error {
	if line > 0 {
		place = fmt.Sprintf("%s:%d", place, line)
	}
	return fmt.Errorf("cannot use the key file %s: %s", place, says)
}

// ReadKeys reads the keys of a file that nobody can read or write but root and the user that
// gitring runs as.
func ReadKeys(kind KeyKind, path string) (Keys, error) { return ReadKeysOf(kind, path, os.Geteuid()) }

// ReadKeysOf is ReadKeys where gitring runs as another user than who asks.
func ReadKeysOf(kind KeyKind, path string, user int) (Keys, error) {
	if says := publicIn(path); says != "" {
		return nil, keyFault(path, 0, says)
	}
	body, err := disk.ReadOwned(path, disk.Owned{User: user, Closed: ClosedTo(path), Most: maxKeyFile})
	if err != nil {
		return nil, err
	}
	switch kind {
	case AgeFile:
		return ParseAgeKeys(path, body)
	case SSHFile:
		return ParseSSHKey(path, body)
	case OpenPGPFile:
		return ParseOpenPGPKeys(path, body)
	}
	return nil, fmt.Errorf("cannot read %s: gitring knows no key file of the kind %s", path, kind)
}

// publicIn says that a file has a public key, where it has: that opens nothing, and its mode is
// nobody's fault.
func publicIn(path string) string {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() > maxKeyFile {
		return ""
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if strings.HasPrefix(first, "ssh-") || strings.HasPrefix(first, "ecdsa-") || strings.HasPrefix(first, "age1") || strings.HasPrefix(first, "-----BEGIN PGP PUBLIC KEY") {
		return "it is a public key, which opens nothing: name the file of the private key. Its line can stand in .sops.yaml as it is"
	}
	return ""
}

// ClosedTo are the bits of a mode that a key file may not have. A credential of systemd may
// show the bit of a group: it is the mask of the list that lets in the unit's user alone.
func ClosedTo(path string) os.FileMode {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return 0o037
	}
	return 0o077
}
