package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// How the notes on what is new here begin.
const (
	NoRestartNote = "without restart: here always, where Compose does nothing: "
	PinnedNote    = "pinned to the digest that the tag has now: "
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
		if created && s.Kind == ring.Worker && saysNoRestart(s) {
			kept = append(kept, s.Name)
		}
		old, known := inForce(have, s.Name)
		moved := created || known && old.Spec.Image != s.Spec.Image
		if moved && s.Spec.PullPolicy != "always" && !strings.Contains(s.Spec.Image, "@") && !slices.Contains(tags, s.Spec.Image) {
			tags = append(tags, s.Spec.Image)
		}
	}
	if len(kept) > 0 {
		out = append(out, say(NoRestartNote+`%s; write restart: "no" for what ends by itself, which makes it a job`, strings.Join(kept, ", ")))
	}
	if len(tags) > 0 {
		out = append(out, say(PinnedNote+"%s; a change of the service, gitring refresh %s or pull_policy: always moves it", strings.Join(tags, ", "), app.Name))
	}
	return out
}

// saysNoRestart reports whether the file leaves the restart policy to the default.
func saysNoRestart(s *ring.Service) bool {
	_, restart := s.Places["restart"]
	_, condition := s.Places["deploy.restart_policy.condition"]
	return !restart && !condition && s.Restart.Policy == ring.Always
}
