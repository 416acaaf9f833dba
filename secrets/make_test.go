package secrets

import (
	"errors"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// newAgeKeys are an X25519 identity and a post-quantum one, as lines of a key file.
func newAgeKeys() ([]string, error) {
	x, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	q, err := age.GenerateHybridIdentity()
	if err != nil {
		return nil, err
	}
	return []string{x.String(), q.String()}, nil
}

// requireCode holds an error to be a refusal that says what to do next.
func requireCode(t *testing.T, code ring.Code, err error) *ring.Refusal {
	t.Helper()
	var r *ring.Refusal
	require.True(t, errors.As(err, &r), "%v", err)
	require.Equal(t, code, r.Code, r.Says)
	require.NotEmpty(t, r.Says)
	require.NotEmpty(t, r.Hint)
	return r
}

// requireCodeOf holds an error to be a whole refusal, and is its code.
func requireCodeOf(t *testing.T, err error) ring.Code {
	t.Helper()
	var r *ring.Refusal
	if !errors.As(err, &r) || r.Says == "" || r.Hint == "" {
		t.Errorf("no whole refusal: %v", err)
		return "(no refusal)"
	}
	return r.Code
}
