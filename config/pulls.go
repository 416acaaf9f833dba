package config

import "fmt"

// pulls keeps two sources from telling the same pull request, each over the other:
// there is one comment and one status of a host.
func (k *checker) pulls(sources []SourceConfig) {
	type place struct{ api, repo, branch string }
	first := map[place]string{}
	for i := range sources {
		s := &sources[i]
		if s.Status == nil || !s.Status.PullRequests {
			continue
		}
		at := place{s.Status.APIURL, s.Status.Repo, s.Branch}
		if other, taken := first[at]; taken {
			k.wrong(fmt.Sprintf("sources[%d].status.pull_requests", i), "let one of the two sources tell them",
				"status.pull_requests: source %q tells the pull requests into %s of %s already", other, s.Branch, s.Status.Repo)
			continue
		}
		first[at] = s.Name
	}
}
