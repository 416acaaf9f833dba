package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sumsFile  = "SHA256SUMS"
	namespace = "gitring-release"
	principal = "release@gitring"
)

// writeSums writes SHA256SUMS in the form of sha256sum.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), b.Bytes(), 0o644)
}

// sign writes <path>.sig with the key, or with the agent's where the key is a public one.
func sign(path, key string) error {
	out, err := exec.Command("ssh-keygen", "-Y", "sign", "-f", key, "-n", namespace, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot sign with %s: %s", key, strings.TrimSpace(string(out)))
	}
	return nil
}

// signAll signs each file by itself, for who takes one alone, and the checksums of all.
func signAll(dir, key string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := sign(filepath.Join(dir, e.Name()), key); err != nil {
			return err
		}
	}
	return nil
}

// allowedSigner is the line of allowed_signers that a release's signature is verified by.
func allowedSigner(key string) (string, error) {
	public, err := publicKey(key)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s namespaces=%q %s", principal, namespace, public), nil
}

// publicKey is the public half of a key, its type and itself.
func publicKey(key string) (string, error) {
	public, err := os.ReadFile(strings.TrimSuffix(key, ".pub") + ".pub")
	if err != nil {
		if public, err = exec.Command("ssh-keygen", "-y", "-P", "", "-f", key).Output(); err != nil {
			return "", fmt.Errorf("cannot read the public key of %s: put it beside it as %s.pub", key, key)
		}
	}
	words := strings.Fields(string(public))
	if len(words) < 2 {
		return "", fmt.Errorf("%s.pub is not a public key of SSH", strings.TrimSuffix(key, ".pub"))
	}
	return words[0] + " " + words[1], nil
}

// writeInstaller puts install.sh into the release, with the version and the key in it.
func writeInstaller(source, made, key string, f facts) error {
	text, err := os.ReadFile(filepath.Join(source, "scripts/install.sh"))
	if err != nil {
		return err
	}
	signer := ""
	if key != "" {
		if signer, err = allowedSigner(key); err != nil {
			return err
		}
	}
	filled := string(text)
	for empty, full := range map[string]string{
		"\nrelease_key=''\n":     "\nrelease_key='" + signer + "'\n",
		"\nrelease_version=''\n": "\nrelease_version='" + f.version + "'\n",
	} {
		if strings.Count(filled, empty) != 1 {
			return fmt.Errorf("scripts/install.sh has no place for %s", strings.TrimSpace(empty))
		}
		filled = strings.Replace(filled, empty, full, 1)
	}
	return os.WriteFile(filepath.Join(made, "install.sh"), []byte(filled), 0o755)
}
