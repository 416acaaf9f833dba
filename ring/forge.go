package ring

// Forges, as the configuration names them.
const (
	GitHub      = "github"
	GitLab      = "gitlab"
	Gitea       = "gitea"
	Forgejo     = "forgejo"
	Bitbucket   = "bitbucket"    // Cloud
	BitbucketDC = "bitbucket-dc" // Data Center
)
