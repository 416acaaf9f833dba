package gitsync

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestVouch is rows V61 to V63 and what lies between them.
func TestVouch(t *testing.T) {
	rows := []struct {
		id, name string
		// push makes commits on the anchor, one of them unsigned as the forge's
		// web editor makes them.
		push func(y *yard, anchor ring.SHA) (tip ring.SHA)
		bind []Binding
		want ring.Code
		note string // of the commit vouched for
	}{
		{"V61", "an unsigned web edit, then a commit that vouches for it", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit on the web", map[string]string{"web/a": "2"})
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+string(web), nil)
		}, nil, "", "vouched by carol@example.org"},
		{"V61", "two web edits and one vouch", func(y *yard, _ ring.SHA) ring.SHA {
			a := y.edit("", "edit", map[string]string{"web/a": "2"})
			b := y.edit("", "edit", map[string]string{"web/a": "3"})
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+string(a)+"\nGitring-Vouch: "+string(b), nil)
		}, nil, "", "vouched by carol@example.org"},
		{"", "a web edit that the vouch does not name", func(y *yard, _ ring.SHA) ring.SHA {
			a := y.edit("", "edit", map[string]string{"web/a": "2"})
			y.edit("", "edit", map[string]string{"web/a": "3"})
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+string(a), nil)
		}, nil, ring.Unsigned, ""},
		{"V62", "a vouch by a signer without the role", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			return y.edit("dave", "vouch\n\nGitring-Vouch: "+string(web), nil)
		}, nil, ring.VouchNotAllowed, ""},
		{"V62", "a vouch that nobody signed", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			return y.edit("", "vouch\n\nGitring-Vouch: "+string(web), nil)
		}, nil, ring.Unsigned, ""},
		{"V63", "a vouch for a commit that is trusted already", func(y *yard, anchor ring.SHA) ring.SHA {
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+string(anchor), nil)
		}, nil, ring.VouchOutside, ""},
		{"V63", "a vouch for a commit on top of it", func(y *yard, _ ring.SHA) ring.SHA {
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+strings.Repeat("a", 40), nil)
		}, nil, ring.VouchOutside, ""},
		{"V63", "a vouch by a short id", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+web.Short(), nil)
		}, nil, ring.VouchOutside, ""},
		{"V63", "a vouch for a commit beside it, merged later", func(y *yard, anchor ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			y.checkout(anchor, "other")
			y.edit("carol", "vouch\n\nGitring-Vouch: "+string(web), nil)
			return y.merge("carol", string(web))
		}, nil, ring.VouchOutside, ""},
		{"", "a vouch within the signer's paths", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			return y.edit("dave", "vouch\n\nGitring-Vouch: "+string(web), nil)
		}, []Binding{{Signer: "dave@example.org", Roles: []Role{RoleCommit, RoleVouch}, Paths: []string{"web/**"}}}, "", "vouched by dave@example.org"},
		{"", "a vouch for a change outside of the signer's paths", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"db/a": "2"})
			return y.edit("dave", "vouch\n\nGitring-Vouch: "+string(web), nil)
		}, []Binding{{Signer: "dave@example.org", Roles: []Role{RoleCommit, RoleVouch}, Paths: []string{"web/**"}}}, ring.PathNotAllowed, ""},
		{"", "a trailer in the middle of a message is a sentence", func(y *yard, _ ring.SHA) ring.SHA {
			web := y.edit("", "edit", map[string]string{"web/a": "2"})
			return y.edit("carol", "vouch\n\nGitring-Vouch: "+string(web)+"\n\nand more text", nil)
		}, nil, ring.Unsigned, ""},
	}
	for _, r := range rows {
		t.Run(strings.TrimSpace(r.id+" "+r.name), func(t *testing.T) {
			y := newYard(t)
			y.allow("carol", "") // the first signer
			y.allow("dave", "")
			anchor := y.edit("carol", "one", map[string]string{"web/a": "1", "db/a": "1"})
			tip := r.push(y, anchor)
			all, refusal, err := y.trust(bound(r.bind...)).Range(y, anchor, tip, noon, nil)
			require.NoError(t, err)
			if r.want != "" {
				require.NotNil(t, refusal)
				require.Equal(t, r.want, refusal.Code, refusal.Says)
				return
			}
			require.Nil(t, refusal)
			require.Contains(t, all[0].Note, r.note)
			require.Contains(t, all[0].Note, tip.Short())
		})
	}
}
