package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// A state that is lost takes the journal's word on the signer with it. The commit is verified
// again, and who signed it is known.
func TestWhoSignedIsKnownAfterAJournalThatIsLost(t *testing.T) {
	const trusted, older, other = ring.SHA("a1b2c3d4"), ring.SHA("b2c3d4e5"), ring.SHA("c3d4e5f6")
	st := &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Trusted: older, Commit: trusted, Signer: "alice@example.org"}}}
	inForce := map[string]ring.InForce{"shop": {App: ring.App{Name: "shop", Source: "prod", Commit: older}, Signer: "bob@example.org"}}
	of := func(source string, c ring.SHA) string {
		return signerOf(inForce, st, &api.CommitNow{Source: source, Commit: c})
	}
	require.Equal(t, "alice@example.org", of("prod", trusted))
	require.Equal(t, "bob@example.org", of("prod", older), "not who signed the newest")
	require.Empty(t, of("prod", other))
	require.Empty(t, of("staging", trusted))
}
