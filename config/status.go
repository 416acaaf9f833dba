package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/notify"
)

// ForgeStatus is the way out to a forge. APIURL and Repo are derived from the
// source's url when they are not given.
type ForgeStatus struct {
	Forge string `yaml:"forge"`
	// TokenFile or App is given, never both.
	TokenFile string     `yaml:"token_file"`
	App       *GitHubApp `yaml:"app"`
	APIURL    string     `yaml:"api_url"`
	Repo      string     `yaml:"repo"` // as the forge writes it
	// URL is where a status leads a reader; "" is nowhere.
	URL string `yaml:"url"`
	// Username makes it basic authentication, on Bitbucket Cloud alone.
	Username    string `yaml:"username"`
	Deployments bool   `yaml:"deployments"`
	// PullRequests is for open ones: what landing them would do here.
	PullRequests bool `yaml:"pull_requests"`
}

// GitHubApp is an installation of a GitHub App.
type GitHubApp struct {
	ID             string `yaml:"id"` // the App's number, or its client id
	Installation   string `yaml:"installation"`
	PrivateKeyFile string `yaml:"private_key_file"`
}

var (
	appID        = regexp.MustCompile(`^[A-Za-z0-9.]{1,40}$`)
	installation = regexp.MustCompile(`^[0-9]{1,20}$`)
)

// status completes what the file leaves out. home is listen.url.
func (k *checker) status(at string, s *ForgeStatus, source, home string) {
	if s == nil {
		return
	}
	k.forge(at, "status", s.Forge, notify.Kinds())
	k.credential(at, s)
	if s.Deployments && !notify.Deploys(s.Forge) && s.Forge != "" {
		k.wrong(at+".deployments", "take it out; the commit status is posted all the same", "status.deployments: %s keeps no list of deployments", s.Forge)
	}
	if s.Username != "" && s.Forge != notify.Bitbucket {
		k.wrong(at+".username", "take it out; the token alone says who it is", "status.username is for bitbucket alone")
	}
	if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil) {
		k.wrong(at+".url", "https://edge-1.example.org, say: it is shown to whoever may read the repository", "status.url: %q is no address for a reader", s.URL)
	}
	if !slices.Contains(notify.Kinds(), s.Forge) || source == "" {
		return // wrong anyway
	}
	f, err := notify.NewForge(s.Forge, source, s.APIURL, s.Repo, s.TokenFile)
	if err != nil {
		k.wrong(at, "", "%v", err)
		return
	}
	s.APIURL, s.Repo = f.APIURL, f.Repo
	if page := f.Page(); page != "" { // a status has to lead somewhere
		orElse(&s.URL, home)
		orElse(&s.URL, page)
	}
}

// credential is a token or, on GitHub, an App.
func (k *checker) credential(at string, s *ForgeStatus) {
	k.path(at+".token_file", &s.TokenFile)
	if s.App == nil {
		if s.TokenFile == "" {
			k.wrong(at, "a file with a token that may write commit statuses and nothing else; docs/how-to has a page for each forge", "status.token_file is missing")
		}
		return
	}
	if s.TokenFile != "" {
		k.wrong(at+".app", "keep one of the two", "status.app: there is a token_file too")
	}
	if s.Forge != notify.GitHub {
		k.wrong(at+".app", "give token_file instead", "status.app is for github alone")
	}
	for _, missing := range []struct{ key, value string }{
		{"id", s.App.ID}, {"installation", s.App.Installation}, {"private_key_file", s.App.PrivateKeyFile},
	} {
		if strings.TrimSpace(missing.value) == "" {
			k.wrong(at+".app", "docs/how-to/forge-github.md says where each of them stands", "status.app.%s is missing", missing.key)
		}
	}
	if s.App.ID != "" && !appID.MatchString(s.App.ID) {
		k.wrong(at+".app.id", "the App's number or client id, from its settings", "status.app.id: %q is no App", s.App.ID)
	}
	if s.App.Installation != "" && !installation.MatchString(s.App.Installation) {
		k.wrong(at+".app.installation", "the number at the end of the address of the installation's settings", "status.app.installation: %q is no number", s.App.Installation)
	}
	k.path(at+".app.private_key_file", &s.App.PrivateKeyFile)
}

// WayOut is the forge of a source whose configuration was checked; false
// when it has none.
func WayOut(s *SourceConfig) (notify.Forge, bool) {
	st := s.Status
	if st == nil {
		return notify.Forge{}, false
	}
	f := notify.Forge{
		Kind: st.Forge, APIURL: st.APIURL, Repo: st.Repo, TokenFile: st.TokenFile,
		TargetURL: st.URL, Branch: s.Branch, Username: st.Username, Deployments: st.Deployments, PullRequests: st.PullRequests,
	}
	if a := st.App; a != nil {
		f.App = &notify.App{ID: a.ID, Installation: a.Installation, KeyFile: a.PrivateKeyFile}
	}
	return f, true
}

// Warnings are what the configuration of a source allows and nobody should want.
func (s *SourceConfig) Warnings() []string {
	if s.sharesToken() {
		return []string{"the token that writes statuses also reads Git; give status.token_file one of its own"}
	}
	return nil
}

// sharesToken reports whether what reads Git may also write statuses: whoever gets
// hold of one has both.
func (s *SourceConfig) sharesToken() bool {
	return s.Status != nil && s.Status.TokenFile != "" && s.Status.TokenFile == s.Auth.PasswordFile
}
