package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// How the notes on what is new here begin.
const (
	NoRestartNote = "no restart is written, so what ends is started again, which Compose does not do: "
	PinnedNote    = "pinned to the digest that the tag has when it is looked up: "
)

// newcomerNotes say of the services that a plan creates, or gives another image, what
// their authors may expect otherwise from Compose.
func newcomerNotes(have, app *ring.App, changes []ring.ServiceChange) (out []string) {
	var kept, tags []string
	for _, c := range changes {
		i := slices.IndexFunc(app.Services, func(s ring.Service) bool { return s.Name == c.Service })
		if i < 0 {
			continue
		}
		s := &app.Services[i]
		if s.FrontOf != "" { // no author wrote it
			continue
		}
		created := c.Class == ring.ChangeCreate
		if created && saysNoRestart(s) {
			kept = append(kept, s.Name)
		}
		old, known := inForce(have, s.Name)
		moved := created || known && c.Class != ring.ChangeNone && old.Spec.Image != s.Spec.Image
		if moved && s.Updates == nil && s.Spec.PullPolicy != "always" && !strings.Contains(s.Spec.Image, "@") && !slices.Contains(tags, s.Spec.Image) {
			tags = append(tags, s.Spec.Image)
		}
	}
	if len(kept) > 0 {
		out = append(out, noRestartSays(kept))
	}
	if len(tags) > 0 {
		out = append(out, say(PinnedNote+"%s; a change of the service, gitring refresh %s or pull_policy: always moves it", strings.Join(tags, ", "), app.Name))
	}
	return out
}

func noRestartSays(services []string) string {
	return say(NoRestartNote+`%s; write restart: "no" for what ends by itself, which makes it a job`, strings.Join(services, ", "))
}

// WithoutRestart is what a plan says of services that leave the restart policy to the default,
// here of all of these apps; "" for none.
func WithoutRestart(apps []ring.App) string {
	var kept []string
	for i := range apps {
		for j := range apps[i].Services {
			if s := &apps[i].Services[j]; s.FrontOf == "" && saysNoRestart(s) {
				kept = append(kept, apps[i].Name+"/"+s.Name)
			}
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return noRestartSays(kept)
}

// saysNoRestart reports whether the file leaves the restart policy of what stays up to the
// default.
func saysNoRestart(s *ring.Service) bool {
	_, restart := s.Places["restart"]
	_, condition := s.Places["deploy.restart_policy.condition"]
	return s.Kind == ring.Worker && !restart && !condition && s.Restart.Policy == ring.Always
}
