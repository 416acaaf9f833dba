package gitsync

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// pressed is one press of a button: who the forge says made the commit, and which
// of its keys is on it.
type pressed struct {
	*yard
	committer string // name <e-mail>
	key       string
}

func (p pressed) commit(of ring.SHA, message string, parents ...ring.SHA) ring.SHA {
	p.t.Helper()
	name, email, _ := strings.Cut(strings.TrimSuffix(p.committer, ">"), " <")
	args := []string{"-c", "gpg.format=ssh", "commit-tree", p.git("rev-parse", string(of)+"^{tree}"), "-m", message}
	if p.key != "" {
		args = append(args, "-S"+p.keys+"/"+p.key)
	}
	for _, q := range parents {
		args = append(args, "-p", string(q))
	}
	env := append(p.at(noon), "GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+email)
	return ring.SHA(p.run(env, p.dir, "git", args...))
}

// merged is a commit with the tree that git makes of two, to take the tree of.
func (p pressed) merged(a, b ring.SHA) ring.SHA {
	p.t.Helper()
	p.git("checkout", "-q", "--detach", string(a))
	p.git("merge", "-q", "--no-ff", "--no-commit", string(b))
	return p.edit("", "x", nil)
}

// TestWhatTheForgesReallyMake rebuilds the commits of GitHub, GitLab and
// Gitea/Forgejo: their messages, committers, signatures and parents.
func TestWhatTheForgesReallyMake(t *testing.T) {
	const (
		hub   = "GitHub <noreply@github.com>"
		tea   = "Gitea <gitea@git.acme.org>"
		carol = "Carol <carol@example.org>"
	)
	people := func(y *yard, at ring.SHA) ring.SHA {
		y.checkout(at, "work")
		y.edit("bob", "Add b", map[string]string{"web/b": "b"})
		return y.edit("alice", "Add c", map[string]string{"web/c": "c"})
	}
	meanwhile := func(y *yard, at ring.SHA) ring.SHA {
		y.checkout(at, "main")
		return y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
	}
	request := func(y *yard, n string, head ring.SHA) {
		y.git("update-ref", "refs/merge-requests/"+n+"/head", string(head))
	}
	images := Binding{Signer: "forge@example.org", Roles: []Role{RoleImages}}
	rows := []struct {
		name string
		bind []Binding // of the forge's key; none is a key that nobody knows
		push func(y *yard, a ring.SHA) ring.SHA
		want ring.Code
	}{
		{name: "GitHub, merge", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			return pressed{y, hub, "forge"}.commit(head, "Merge pull request #7 from acme/work\n\nAdd b and c", a, head)
		}},
		{name: "GitHub, squash of a branch that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			main, p := meanwhile(y, a), pressed{y, hub, "forge"}
			return p.commit(p.merged(main, head), "Fix #3: add b and c (#7)\n\n* Add b\n\n* Add c\n\n---------\n\nCo-authored-by: Bob <bob@example.org>", main)
		}},
		{name: "GitHub, rebase, which names no number", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			p := pressed{y, carol, ""}
			return p.commit(head, "Add c", p.commit(head+"^", "Add b", a))
		}, want: ring.Unsigned},
		{name: "GitHub, rebase of a last commit that names its number", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			p := pressed{y, carol, ""}
			return p.commit(head, "Add c (#7)", p.commit(head+"^", "Add b", a))
		}},
		{name: "GitHub, update branch, then merge", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, hub, "forge"}
			main := meanwhile(y, a)
			updated := p.commit(p.merged(head, main), "Merge branch 'main' into work", head, main)
			return p.commit(updated, "Merge pull request #7 from acme/work\n\nAdd b and c", main, updated)
		}},
		{name: "GitHub, a suggestion taken in the web page", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, hub, "forge"}
			taken := p.commit(y.craft(head, "x", "web/b", head), "Apply suggestions from code review\n\nCo-authored-by: Carol <carol@example.org>", head)
			return p.commit(taken, "Merge pull request #7 from acme/work\n\nAdd b and c", a, taken)
		}, want: ring.UnknownSigner},
		{name: "GitHub, a suggestion, squashed", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, hub, "forge"}
			taken := p.commit(y.craft(head, "x", "web/b", head), "Update web/b\n\nCo-authored-by: Carol <carol@example.org>", head)
			y.pull(7, taken)
			return p.commit(taken, "Add b and c (#7)", a)
		}, want: ring.UnknownSigner},
		{name: "GitHub, the bot's commit, merged", bind: []Binding{images}, push: func(y *yard, a ring.SHA) ring.SHA {
			y.checkout(a, "work")
			head := y.edit("forge", "Bump web from 1.0 to 1.1", map[string]string{"web/compose.yaml": "services:\n  web:\n    image: ghcr.io/acme/web:1.1\n"})
			return pressed{y, hub, "forge"}.commit(head, "Merge pull request #7 from acme/dependabot/docker/web-1.1", a, head)
		}},
		{name: "GitHub, the bot's commit, squashed", bind: []Binding{images}, push: func(y *yard, a ring.SHA) ring.SHA {
			y.checkout(a, "work")
			head := y.edit("forge", "Bump web from 1.0 to 1.1", map[string]string{"web/compose.yaml": "services:\n  web:\n    image: ghcr.io/acme/web:1.1\n"})
			y.pull(7, head)
			return pressed{y, hub, "forge"}.commit(head, "Bump web from 1.0 to 1.1 (#7)", a)
		}},
		{name: "GitHub, people's work under the key that is known for images", bind: []Binding{images}, push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			return pressed{y, hub, "forge"}.commit(head, "Add b and c (#7)", a)
		}},
		{name: "GitHub, a bot that does more than images", bind: []Binding{images}, push: func(y *yard, a ring.SHA) ring.SHA {
			y.checkout(a, "work")
			head := y.edit("forge", "Bump web", map[string]string{"web/compose.yaml": "services:\n  web:\n    image: ghcr.io/evil/web:1.1\n"})
			return pressed{y, hub, "forge"}.commit(head, "Merge pull request #7 from acme/dependabot/docker/web-1.1", a, head)
		}, want: ring.NotImagesOnly},
		{name: "GitHub, the web editor under the key that is known for images", bind: []Binding{images}, push: func(y *yard, a ring.SHA) ring.SHA {
			return pressed{y, hub, "forge"}.commit(y.craft(a, "x", "web/b", a), "Update web/b", a)
		}, want: ring.NotImagesOnly},
		{name: "GitLab, merge commit", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			return pressed{y, carol, ""}.commit(head, "Merge branch 'work' into 'main'\n\nAdd b and c\n\nCloses #3\n\nSee merge request acme/infra!7", a, head)
		}},
		{name: "GitLab, squash under a merge commit", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			request(y, "7", head)
			main, p := meanwhile(y, a), pressed{y, carol, ""}
			squashed := p.commit(head, "Add b and c", a)
			return p.commit(p.merged(main, head), "Merge branch 'work' into 'main'\n\nAdd b and c, fixes #3\n\nSee merge request acme/infra!7", main, squashed)
		}},
		{name: "GitLab, squash and fast-forward, with its reference in the template", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			request(y, "7", head)
			return pressed{y, carol, ""}.commit(head, "Add b and c, fixes #3\n\nSee merge request acme/infra!7", a)
		}},
		{name: "GitLab, squash and fast-forward, as the template is at first", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			request(y, "7", head)
			return pressed{y, carol, ""}.commit(head, "Add b and c", a)
		}, want: ring.Unsigned},
		{name: "GitLab, fast-forward of a branch that was up to date", push: people},
		{name: "GitLab, its rebase button, then fast-forward", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, carol, ""}
			main := meanwhile(y, a)
			tip := p.commit(p.merged(main, head), "Add c", p.commit(p.merged(main, head+"^"), "Add b", main))
			request(y, "7", tip)
			return tip
		}, want: ring.Unsigned},
		{name: "GitLab, a suggestion", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, carol, ""}
			taken := p.commit(y.craft(head, "x", "web/b", head), "Apply 1 suggestion(s) to 1 file(s)\n\nCo-authored-by: Carol <carol@example.org>", head)
			return p.commit(taken, "Merge branch 'work' into 'main'\n\nAdd b and c\n\nSee merge request acme/infra!7", a, taken)
		}, want: ring.Unsigned},
		{name: "Forgejo, merge", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			return pressed{y, tea, "forge"}.commit(head, "Merge pull request 'Add b and c' (#7) from work into main\n\nReviewed-on: https://git.acme.org/acme/infra/pulls/7", a, head)
		}},
		{name: "Forgejo, squash", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			return pressed{y, tea, "forge"}.commit(head, "Add b and c (#7)\n\nReviewed-on: https://git.acme.org/acme/infra/pulls/7\nCo-authored-by: Bob <bob@example.org>", a)
		}},
		{name: "Forgejo, rebase then merge commit, of a branch that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			main, p := meanwhile(y, a), pressed{y, tea, ""}
			copied := p.commit(p.merged(main, head), "Add c", p.commit(p.merged(main, head+"^"), "Add b", main))
			return p.commit(copied, "Merge pull request 'Add b and c' (#7) from work into main", main, copied)
		}},
		{name: "Forgejo, rebase then fast-forward, of a branch that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := people(y, a)
			y.pull(7, head)
			main, p := meanwhile(y, a), pressed{y, tea, ""}
			return p.commit(p.merged(main, head), "Add c", p.commit(p.merged(main, head+"^"), "Add b", main))
		}, want: ring.Unsigned},
		{name: "Forgejo, update by merge, then squash", push: func(y *yard, a ring.SHA) ring.SHA {
			head, p := people(y, a), pressed{y, tea, "forge"}
			main := meanwhile(y, a)
			updated := p.commit(p.merged(head, main), "Merge branch 'main' into work", head, main)
			y.pull(7, updated)
			return p.commit(updated, "Add b and c (#7)", main)
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			if len(r.bind) > 0 {
				y.allow("forge", "")
			} else {
				y.key("forge")
			}
			anchor := y.edit("alice", "one", map[string]string{"web/a": "1", "web/compose.yaml": "services:\n  web:\n    image: ghcr.io/acme/web:1.0\n"})
			tip := r.push(y, anchor)
			_, refusal, err := y.trust(forgeMerge, bound(r.bind...)).RangeWith(y, y.aids(), anchor, tip, noon, nil)
			require.NoError(t, err)
			if r.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal, "accepted")
			require.Equal(t, r.want, refusal.Code, refusal.Says)
			require.Contains(t, refusal.Hint, "vouch")
		})
	}
}
