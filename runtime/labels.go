package runtime

import (
	"maps"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Labels that gitring puts on the engine (docs/design/host.md#names-and-labels). What changes
// lives in the store, never in labels.
const (
	labelHost       = "gitring.host"
	labelSource     = "gitring.source"
	labelApp        = "gitring.app"
	labelService    = "gitring.service"
	labelSlot       = "gitring.slot"
	labelVersion    = "gitring.version"
	labelCommit     = "gitring.commit"
	labelKind       = "gitring.kind"
	labelHooks      = "gitring.hooks"      // only where a service has hooks
	labelDefinition = "gitring.definition" // of a network

	// Compose's own, so that its tools and others see what they expect.
	composeProject    = "com.docker.compose.project"
	composeService    = "com.docker.compose.service"
	composeNumber     = "com.docker.compose.container-number"
	composeOneOff     = "com.docker.compose.oneoff"
	composeHash       = "com.docker.compose.config-hash"
	composeImage      = "com.docker.compose.image"
	composeWorkingDir = "com.docker.compose.project.working_dir"
	composeFiles      = "com.docker.compose.project.config_files"
	composeNetwork    = "com.docker.compose.network"
	composeVolume     = "com.docker.compose.volume"
)

// own are the user's labels, without those that are for gitring or Compose to
// set: with another's config-hash Compose would offer to make a volume anew.
func own(user map[string]string) map[string]string {
	l := map[string]string{}
	for k, v := range user {
		if !strings.HasPrefix(k, "gitring.") && !strings.HasPrefix(k, "com.docker.compose.") {
			l[k] = v
		}
	}
	return l
}

// containerLabels are the user's own and ours; ours win, so that no manifest
// can make a container look like another's.
//
// Compose's hash is the one that it makes itself of the folder that leave writes, so
// that it then takes the container for its own, as it is. Where that cannot be known it is
// the version's: every command of Compose's wants one to be there.
func containerLabels(at site, a ring.Action) map[string]string {
	_, hash, _ := strings.Cut(string(a.Version), ":")
	if h, _ := a.Of.ComposeHash(a.Want, ring.Composing{DataRoot: at.data, Owners: a.Owners}); h != "" {
		hash = h
	}
	l := own(a.Want.Spec.Labels)
	maps.Copy(l, map[string]string{
		labelHost:         at.host,
		labelSource:       a.Of.Source,
		labelApp:          a.App,
		labelService:      a.Service,
		labelSlot:         strconv.Itoa(a.Slot),
		labelVersion:      string(a.Version),
		labelCommit:       string(a.Commit),
		labelKind:         string(a.Want.Kind),
		composeProject:    a.App,
		composeService:    a.Service,
		composeNumber:     strconv.Itoa(a.Slot),
		composeOneOff:     "False",
		composeHash:       hash,
		composeWorkingDir: a.Of.Path,
		composeFiles:      strings.Join(a.Of.Files, ","),
	})
	if id := a.Want.Image.ID; id != "" {
		l[composeImage] = id
	}
	if h := hooksFor(a.Version, a.Want.Spec).label(); h != "" {
		l[labelHooks] = h
	}
	return l
}

func networkLabels(host, app string, n ring.Network) map[string]string {
	l := own(n.Labels)
	maps.Copy(l, map[string]string{
		labelHost:       host,
		labelApp:        app,
		labelDefinition: n.Definition(),
		composeProject:  app,
		composeNetwork:  n.Key,
	})
	return l
}

// volumeLabels say where the Compose file stands too: a volume outlives its
// containers, and an app that is given another name must be known by it.
func volumeLabels(host string, app *ring.App, key string, user map[string]string) map[string]string {
	l := own(user)
	maps.Copy(l, map[string]string{
		labelHost:         host,
		labelSource:       app.Source,
		labelApp:          app.Name,
		composeProject:    app.Name,
		composeVolume:     key,
		composeWorkingDir: app.Path,
		composeFiles:      strings.Join(app.Files, ","),
	})
	return l
}
