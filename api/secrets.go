package api

import (
	"bytes"
	"fmt"
	"os"
)

// secretBytes is the least a webhook's secret may have (docs/design/trust.md#webhooks).
const secretBytes = 32

// LoadSecrets reads the secret of a forge's webhook from its file, one per line: one,
// or two while the forge is being moved from the old to the new. No secret is
// ever part of an error.
func LoadSecrets(path, forge string) ([][]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the webhook's secret: %w", err)
	}
	var secrets [][]byte
	for i, line := range bytes.Split(raw, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(line) < secretBytes {
			return nil, fmt.Errorf("cannot use the webhook's secret in %s, line %d: it has %d bytes and needs %d; make one with: openssl rand -hex 32",
				path, i+1, len(line), secretBytes)
		}
		if forge == GitLab && bytes.HasPrefix(line, []byte(SigningKey)) {
			if _, err := standardKey(line); err != nil {
				return nil, fmt.Errorf("cannot use the webhook's signing token in %s, line %d: %w", path, i+1, err)
			}
		}
		secrets = append(secrets, line)
	}
	switch len(secrets) {
	case 0:
		return nil, fmt.Errorf("cannot use the webhook's secret in %s: the file is empty; make one with: openssl rand -hex 32", path)
	case 1, 2:
		return secrets, nil
	}
	return nil, fmt.Errorf("cannot use the webhook's secret in %s: it holds %d, and at most two are accepted", path, len(secrets))
}
