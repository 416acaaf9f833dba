package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Pull is an open pull or merge request into a source's branch, as its forge tells
// of it. Nothing of it is believed but where to look.
type Pull struct {
	Number int
	// Head is the commit that it offers; of Bitbucket Cloud's list only its start.
	Head ring.SHA
	// Ref is where the source's own remote has it; "" where it has not: then the head
	// is never read.
	Ref string
	// Fork says that the branch is in another repository, or that it is not known
	// where.
	Fork bool
}

// maxPulls is how many open ones are looked at: first those from branches of the
// repository itself, each the last updated first. It is a page of the list, too.
const maxPulls = 50

// Lists are gone through this far. Comments of one pull request are looked through
// for ours, the list of pull requests for those from the repository's own branches.
const (
	commentsOfPage = 100
	maxPages       = 10
)

// shortPage is what is asked for where a page was longer than is read: whoever may
// write on a forge may write 64 KiB into each of its entries.
const shortPage = 10

// page is how many entries of a list are asked for at once.
func (f Forge) page(usual int) int {
	if f.few {
		return shortPage
	}
	return usual
}

// remark is a comment as the forge has it.
type remark struct {
	id      string
	version int // of its text, for the forges that ask for it
	author  string
	text    string
}

// puller is what of pull requests tells one forge from another; it stands beside
// the driver. Paths, numbers and authors are the forge's own.
type puller interface {
	// open is the path of a page of the list of open ones into f.Branch, from 1; take
	// reads the answer, and more says that another page may have some.
	open(f Forge, page int) string // of f.page(maxPulls)
	take(f Forge, body []byte) (pulls []Pull, more bool, err error)
	// whole is the full id of a head.
	whole(ctx context.Context, f Forge, p Pull) (ring.SHA, error)
	// me is whom the forge takes us for.
	me(ctx context.Context, f Forge) (string, error)
	// remarks is one page of comments, from 1, of f.page(commentsOfPage); more says
	// that there is another.
	remarks(ctx context.Context, f Forge, number, page int) (all []remark, more bool, err error)
	add(ctx context.Context, f Forge, number int, text string) (remark, error)
	edit(ctx context.Context, f Forge, number int, at remark, text string) (remark, error)
	// marker is a line that nobody sees, and longest what a comment may have.
	marker(what string) string
	longest() int
}

var pullers = map[string]puller{
	GitHub: githubPulls{}, GitLab: gitlabPulls{}, Gitea: giteaPulls{}, Forgejo: giteaPulls{},
	Bitbucket: bitbucketPulls{}, BitbucketDC: bitbucketDCPulls{},
}

// listed is what a forge said of its open pull requests.
type listed struct {
	pulls []Pull
	etag  string
	same  bool // nothing changed since the list with the etag that was sent
}

// listPulls asks for the open ones. Strangers may open as many as they like: none of
// them is in the way of one from the repository's own branches.
func (f Forge) listPulls(ctx context.Context, etag string) (listed, error) {
	f.doing = "read pull requests"
	of, ok := pullers[f.Kind]
	if !ok {
		return listed{}, outcome{permanent: true, says: fmt.Sprintf("cannot list the pull requests of %q", f.Kind)}
	}
	out, err := f.listPages(ctx, of, etag)
	if o, ok := errors.AsType[outcome](err); ok && o.long && !f.few {
		f.few = true
		out, err = f.listPages(ctx, of, etag)
	}
	return out, err
}

func (f Forge) listPages(ctx context.Context, of puller, etag string) (listed, error) {
	var out listed
	var own, forks []Pull
	more := true
	for page := 1; more && page <= maxPages && len(own) < maxPulls; page++ {
		raw, a, same, err := f.get(ctx, of.open(f, page), etag)
		if err != nil || same {
			out.same = same
			return out, err
		}
		if out.etag = ""; page == 1 { // of the first page, so of no use where there are more
			out.etag = a.header.Get("Etag")
		}
		etag = ""
		var some []Pull
		if some, more, err = of.take(f, raw); err != nil {
			return out, outcome{says: fmt.Sprintf("the forge answered %d with a list that cannot be read; see status.api_url", a.code)}
		}
		for _, p := range some {
			if p.Fork {
				forks = append(forks, p)
			} else {
				own = append(own, p)
			}
		}
	}
	out.pulls = slices.Concat(own, forks)
	out.pulls = out.pulls[:min(len(out.pulls), maxPulls)]
	return out, nil
}

// get is a call that may be answered with "as before".
func (f Forge) get(ctx context.Context, path, etag string) (raw []byte, a answer, same bool, err error) {
	d, err := driverOf(f.Kind)
	if err != nil {
		return nil, answer{}, false, outcome{permanent: true, says: err.Error()}
	}
	judge := func(a answer, body string) (outcome, bool) {
		if same = etag != "" && a.code == http.StatusNotModified; same {
			return outcome{done: true}, true
		}
		return d.judge(a, body)
	}
	var kept keptRaw
	a, err = f.withToken(ctx, func(token string) (answer, error) {
		return f.request(ctx, http.MethodGet, path, nil, &kept, func(h http.Header) {
			d.dress(h, f, token)
			if etag != "" {
				h.Set("If-None-Match", etag)
			}
		}, judge)
	})
	return kept, a, same, err
}

// keptRaw is an answer that is decoded later. Unlike json.RawMessage it has to be JSON
// all the same.
type keptRaw []byte

// UnmarshalJSON keeps a copy.
func (k *keptRaw) UnmarshalJSON(b []byte) error {
	*k = append((*k)[:0], b...)
	return nil
}

// ourRemark looks for our comment: one that we wrote, whatever others copied from it.
// The zero remark is none; where there are more comments than are looked through, that
// is not known, and nobody writes a second one for that.
func (f Forge) ourRemark(ctx context.Context, number int, me, marker string) (remark, error) {
	f.doing = "read the comments of pull requests"
	found, err := f.lookThrough(ctx, number, me, marker)
	if o, ok := errors.AsType[outcome](err); ok && o.long && !f.few {
		f.few = true
		found, err = f.lookThrough(ctx, number, me, marker)
	}
	if o, ok := errors.AsType[outcome](err); ok && o.long {
		o.permanent = true // it is this one's comments
		err = o
	}
	return found, err
}

func (f Forge) lookThrough(ctx context.Context, number int, me, marker string) (remark, error) {
	of := pullers[f.Kind]
	for page := 1; page <= maxPages; page++ {
		all, more, err := of.remarks(ctx, f, number, page)
		if err != nil {
			return remark{}, err
		}
		for _, r := range all {
			if r.author == me && me != "" && hasLine(r.text, marker) {
				return r, nil
			}
		}
		if !more {
			return remark{}, nil
		}
	}
	return remark{}, outcome{permanent: true, says: fmt.Sprintf("number %d has more comments than are looked through for ours", number)}
}
