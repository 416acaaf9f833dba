package notify

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// TokenState is what a forge says of the token by which it is told things.
type TokenState struct {
	Refused bool   // the forge does not know it, or not any more
	Says    string // why, where it is refused
	Expires time.Time
	// Left is how many requests it may make for now, of Limit; both are 0 where nobody tells.
	Left, Limit int
}

// tokenPaths is what each forge is asked, by kind. It changes nothing, and asks for no more
// than that the token is somebody's: a 403 says that it is, and may not see this.
var tokenPaths = map[string]string{
	"github": "/rate_limit", "gitlab": "/personal_access_tokens/self", "gitea": "/user", "forgejo": "/user", "bitbucket": "/user",
}

// CheckToken asks the forge whether it takes the token. known is false for a kind of forge that
// has no way to say so.
func (f Forge) CheckToken(ctx context.Context) (s TokenState, known bool, err error) {
	path, known := tokenPaths[f.Kind]
	if !known {
		return s, false, nil
	}
	var told struct {
		Expires string `json:"expires_at"`
	}
	a, err := f.call(ctx, http.MethodGet, path, nil, &told)
	switch {
	case a.code == http.StatusUnauthorized:
		return TokenState{Refused: true, Says: err.Error()}, true, nil
	case err != nil && a.code != http.StatusForbidden && a.code != http.StatusNotFound:
		return s, true, err
	}
	s.Expires = firstTime(told.Expires, a.header.Get("Github-Authentication-Token-Expiration"))
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		left, leftErr := strconv.Atoi(a.header.Get(prefix + "Remaining"))
		limit, limitErr := strconv.Atoi(a.header.Get(prefix + "Limit"))
		if leftErr == nil && limitErr == nil && limit > 0 {
			s.Left, s.Limit = left, limit
		}
	}
	return s, true, nil
}

// firstTime is the first of texts that is a time as a forge writes one; zero for none.
func firstTime(texts ...string) time.Time {
	for _, text := range texts {
		for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
			if at, err := time.Parse(layout, text); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}
