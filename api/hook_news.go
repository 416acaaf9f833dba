package api

import (
	"encoding/json"
	"slices"
	"strings"
)

// news is what an authentic request is good for. It is never more than a hint, so what
// cannot be read counts as news: one look too many costs nothing, one too few a minute.
type news int

const (
	nothing news = iota
	moved        // the branch may have moved
	pulls        // a pull request may have changed
)

// A reader tells from the name of the event, "" where none was sent, and from the fewest
// fields of the body what the request is good for; the branch "" is any branch.
type reader func(event string, body []byte, branch string) news

// push is what is read of a push: which ref, and whether it is gone.
type push struct {
	Ref     string `json:"ref"`
	After   string `json:"after"`
	Deleted bool   `json:"deleted"`

	// GitLab's, for hooks of a whole instance, whose header names no event.
	Kind string `json:"object_kind"`
	Name string `json:"event_name"`
}

func (p *push) news(branch string) news {
	switch {
	case p.Ref == "":
		return moved // it does not say
	case p.Deleted, p.After != "" && strings.Trim(p.After, "0") == "":
		return nothing
	}
	return branchNews(p.Ref, branch)
}

// branchNews is of a whole ref, or of the bare name of a branch.
func branchNews(ref, branch string) news {
	name, whole := strings.CutPrefix(ref, "refs/heads/")
	if !whole && strings.HasPrefix(ref, "refs/") {
		return nothing // a tag, or a ref that no branch is
	}
	if branch == "" || name == branch {
		return moved
	}
	return nothing
}

func readPush(body []byte, branch string) news {
	var p push
	if json.Unmarshal(body, &p) != nil {
		return moved
	}
	return p.news(branch)
}

// gitHubNews is also Gitea's and Forgejo's.
func gitHubNews(event string, body []byte, branch string) news {
	switch event {
	case "push", "":
		return readPush(body, branch)
	case "pull_request":
		return pulls
	}
	return nothing
}

func gitLabNews(event string, body []byte, branch string) news {
	switch event {
	case "Push Hook":
		return readPush(body, branch)
	case "Merge Request Hook":
		return pulls
	case "System Hook", "":
	default:
		return nothing
	}
	var p push
	if json.Unmarshal(body, &p) != nil {
		return moved
	}
	kind := p.Kind
	if kind == "" {
		kind = p.Name
	}
	switch kind {
	case "push", "":
		return p.news(branch)
	case "merge_request":
		return pulls
	}
	return nothing
}

// genericNews needs no body; one of JSON with a ref is heeded.
func genericNews(_ string, body []byte, branch string) news { return readPush(body, branch) }

// mostChanges is of how many refs of one push are read. The lists are arrays, so that
// a body cannot make them longer; a push of as many refs counts as news.
const mostChanges = 64

// cloudPush is what is read of a push of Bitbucket Cloud. New is nil for what was deleted.
type cloudPush struct {
	Push struct {
		Changes [mostChanges]struct {
			Old *struct{} `json:"old"`
			New *struct {
				Type string `json:"type"` // branch, tag, …
				Name string `json:"name"`
			} `json:"new"`
		} `json:"changes"`
	} `json:"push"`
}

func bitbucketNews(event string, body []byte, branch string) news {
	switch event {
	case "repo:push", "":
	case "pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected":
		return pulls
	default:
		return nothing
	}
	var p cloudPush
	if json.Unmarshal(body, &p) != nil {
		return moved
	}
	told := 0
	for _, c := range p.Push.Changes {
		if c.Old != nil || c.New != nil {
			told++
		}
		if c.New != nil && c.New.Type == "branch" && branchNews("refs/heads/"+c.New.Name, branch) == moved {
			return moved
		}
	}
	return untold(told)
}

// dcPush is what is read of a push of Bitbucket Data Center, and of a mirror that caught up.
type dcPush struct {
	Changes [mostChanges]struct {
		Ref struct {
			ID string `json:"id"` // refs/heads/main
		} `json:"ref"`
		Type string `json:"type"` // ADD, UPDATE or DELETE
	} `json:"changes"`
}

// dcPulls are the events after which the plan of a pull request may be another one;
// comments and reviews are none of them.
var dcPulls = []string{"pr:opened", "pr:from_ref_updated", "pr:to_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted"}

func bitbucketDCNews(event string, body []byte, branch string) news {
	switch {
	case event == "repo:refs_changed", event == "mirror:repo_synchronized", event == "":
	case slices.Contains(dcPulls, event):
		return pulls
	default:
		return nothing
	}
	var p dcPush
	if json.Unmarshal(body, &p) != nil {
		return moved
	}
	told := 0
	for _, c := range p.Changes {
		if c.Ref.ID != "" {
			told++
		}
		if c.Ref.ID != "" && c.Type != "DELETE" && branchNews(c.Ref.ID, branch) == moved {
			return moved
		}
	}
	return untold(told)
}

// untold is the news of a push whose refs are none of ours: nothing, unless it named
// none, or more than are read.
func untold(told int) news {
	if told == 0 || told == mostChanges {
		return moved
	}
	return nothing
}
