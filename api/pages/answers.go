package pages

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// Answers are what the API answers to one viewer: an error of it is an *api.Error, or
// *api.ErrUnreachable. What the viewer may not see is not in them, or is an error that is
// api.ErrDenied. Logs is asked without Follow only. An *api.Client is such Answers.
type Answers interface {
	Status(ctx context.Context) (ring.Status, error)
	Events(ctx context.Context, q api.EventQuery, each func(ring.Event) error) error
	Commits(ctx context.Context, q api.HistoryQuery) ([]api.CommitNow, error)
	Inspect(ctx context.Context, q api.InspectQuery) (ring.Explained, error)
	Logs(ctx context.Context, q api.LogQuery, w io.Writer) error
	Jobs(ctx context.Context, q api.JobQuery) ([]api.JobNow, error)
	Crashes(ctx context.Context, q api.CrashQuery) ([]api.CrashGroup, error)
	Traffic(ctx context.Context, q api.TrafficQuery) ([]api.FrontNow, error)
	Trust(ctx context.Context, source string) ([]ring.TrustState, error)
	Plan(ctx context.Context, r api.PlanRequest) (ring.Changes, error)
	Acts(ctx context.Context, q api.ActsQuery) ([]api.ActNow, error)
	Doctor(ctx context.Context) (doctor.Report, error)

	Act(ctx context.Context, r api.ActRequest) (api.Acted, error)
	Approve(ctx context.Context, r api.ApproveRequest) error
	Refresh(ctx context.Context, r api.RefreshRequest) ([]api.ImageNow, error)
	Sync(ctx context.Context, source string) error
}

// SignInWith is an issuer that people sign in with. An error of both is an *api.Error.
type SignInWith struct {
	// Issuer is its URL.
	Issuer string
	// Begin is where the browser goes, and Finish where it wanted to go before.
	Begin  func(w http.ResponseWriter, r *http.Request, then string) (address string, err error)
	Finish func(w http.ResponseWriter, r *http.Request) (then string, err error)
}

// Options are what pages need of the one who serves them.
type Options struct {
	// Answers are those for a viewer.
	Answers func(v api.Viewer) Answers
	// Viewer is who asks; false where nobody is signed in.
	Viewer func(r *http.Request) (api.Viewer, bool)
	// SignIn begins a session with a token; an error is an *api.Error. nil is where one does not
	// sign in with a token: then nobody but a viewer sees anything.
	SignIn func(w http.ResponseWriter, r *http.Request, token string) error
	// OIDC is nil where nobody signs in with an issuer.
	OIDC *SignInWith
	// SignOut ends the session; nil is where there is none to end.
	SignOut func(w http.ResponseWriter)
	Now     func() time.Time

	// Under is the path that all pages are under, where they are of one host of many; "" is none.
	Under string
	// Stored are pages of what a hub keeps of a host: its status and its journal. What those do not
	// tell is on none of them, and neither is an act.
	Stored bool
	// Notice is what is to be known of every page, such as that the host is silent; nil or "" is
	// nothing. Where there is one, no state keeps its colour.
	Notice func() string
	// Stream is what live pages listen to; "" is /v1/stream.
	Stream string
	// KeptBytes bounds what is kept of pages; 0 is 4 MiB.
	KeptBytes int
}
