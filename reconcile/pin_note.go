package reconcile

import "github.com/gitring/gitring/ring"

// pinNote is how an image was found, where that is worth telling; "" where it
// is what the registry says, as always.
func pinNote(service, written string, p ring.Pin) string {
	if p.Note == "" {
		return ""
	}
	return say("image %s of %s: %s", written, service, p.Note)
}

// pinNotes are those of an app in force.
func pinNotes(a *ring.App) (out []string) {
	for i := range a.Services {
		s := &a.Services[i]
		if note := pinNote(s.Name, s.Spec.Image, s.Pin); note != "" {
			out = append(out, note)
		}
	}
	return out
}
