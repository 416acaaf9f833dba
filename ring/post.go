package ring

import "strings"

// Phases of a post: what a state means where a forge has a word of its own for
// it. "" is what the state says.
const (
	PostRunning    = "running"    // pending, and under way: no longer queued
	PostSuperseded = "superseded" // error: a newer commit took its place
	PostTrouble    = "trouble"    // error of this host's own, which passes
)

// Open reports whether more is to come: what is told is not the outcome.
func (f Post) Open() bool { return f.State == PostPending || f.Phase == PostTrouble }

// Says is what a reader of the forge would see, to tell posts apart.
func (f Post) Says() string { return f.State + " " + f.Phase + " " + f.Description }

// Same reports whether a reader of the forge would see no difference.
func (f Post) Same(o Post) bool {
	return f.State == o.State && f.Phase == o.Phase && f.Description == o.Description
}

// App is whose outcome is told; "" of one that is of the whole host.
func (f Post) App() string {
	at, is := f.Environment()
	if !is {
		_, at, _ = strings.Cut(f.Context, "/")
	}
	_, app, _ := strings.Cut(at, "/")
	return app
}

// deployment begins the context of a post that is told to a forge's list of
// deployments instead of its commit statuses.
const deployment = "deployment "

// DeploymentContext is the context of an app's deployment on a host.
func DeploymentContext(host, app string) string { return deployment + host + "/" + app }

// Environment is <host>/<app> of a deployment, and false for a commit status.
func (f Post) Environment() (string, bool) { return strings.CutPrefix(f.Context, deployment) }
