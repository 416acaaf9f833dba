package gitsync

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// VerifyFile checks the armoured SSH signature of a whole file, made in a namespace by one of
// keys. It returns the fingerprint of that key. keys are lines of authorized_keys without
// options. A key in a certificate is none of them.
func VerifyFile(keys string, namespace string, body, signature []byte) (fingerprint string, err error) {
	allowed, err := keysOf(keys)
	if err != nil {
		return "", err
	}
	raw, err := unarmor(append(bytes.TrimSpace(signature), '\n'), beginSSH, endSSH, false)
	if err != nil {
		return "", fmt.Errorf("its signature cannot be read: %w", err)
	}
	sig, refusal := readSSHSignature("", raw)
	if refusal == nil {
		refusal = sshSignerOf(sig.PublicKey).sound("")
	}
	if refusal == nil {
		refusal = checkSSHForm("", sshSignerOf(sig.PublicKey), sig)
	}
	if refusal != nil {
		return "", errors.New(refusal.Says)
	}
	name := ssh.FingerprintSHA256(sig.PublicKey)
	if !allowed[string(sig.PublicKey.Marshal())] {
		return "", fmt.Errorf("it is signed by key %s, which is none of those that may", name)
	}
	if sig.Namespace != namespace {
		return "", fmt.Errorf("it is signed in namespace %q, not %q", clip(sig.Namespace), namespace)
	}
	if err := sshsig.Verify(bytes.NewReader(body), sig, sig.PublicKey, sig.HashAlgorithm, namespace); err != nil {
		return "", fmt.Errorf("its signature by key %s is over something else", name)
	}
	return name, nil
}

func keysOf(lines string) (map[string]bool, error) {
	out := map[string]bool{}
	for rest := []byte(lines); len(bytes.TrimSpace(rest)) > 0; {
		key, _, options, next, err := ssh.ParseAuthorizedKey(rest)
		if err != nil || len(options) > 0 {
			return nil, errors.New("the keys that may sign it cannot be read")
		}
		out[string(key.Marshal())] = true
		rest = next
	}
	return out, nil
}
