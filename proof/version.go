package proof

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Computed is what the files of a commit come to.
type Computed struct {
	App     ring.App
	Service ring.Service // with its version
}

// Compute reads the app of a statement out of a commit, and computes the version of its
// service. Nothing of what the statement says of labels is asked. The error is a *Fault.
func Compute(c *ring.Commit, s *Statement) (*Computed, error) {
	plan, contents := manifest.Read(c, s.settings())
	switch refused := plan.Refused[s.App]; {
	case plan.Refusal != nil && plan.Refusal.Code == ring.Unreadable:
		return nil, &Fault{
			Code: FilesDiffer, Says: fmt.Sprintf("%s of commit %s is not in the proof, or is not as the commit has it", clip(plan.Refusal.File), shortOf(c.SHA)),
			Hint: "the file was changed or left out; ask for the proof again",
		}
	case plan.Refusal != nil:
		return nil, refusedFault(c.SHA, plan.Refusal)
	case refused != nil:
		return nil, refusedFault(c.SHA, refused)
	}
	app, ok := plan.App(s.App)
	if !ok {
		return nil, &Fault{Code: ServiceMissing, Says: fmt.Sprintf("commit %s has no app %s", shortOf(c.SHA), clip(s.App))}
	}
	app.DataRoot = s.Values.DataRoot
	v := versions{app: &app, pins: s.Pins, under: map[string]bool{}}
	if err := v.of(s.Service); err != nil {
		var f *Fault
		if errors.As(err, &f) {
			return nil, f
		}
		return nil, &Fault{Code: ServiceMissing, Says: err.Error()}
	}
	service, _ := app.Service(s.Service)
	if name := unsaid(&app, contents); name != "" {
		return nil, &Fault{
			Code: VersionDiffers, Says: fmt.Sprintf("the version depends on %s, of which the proof says nothing", clip(name)),
			Hint: "it was left out; ask for the proof again",
		}
	}
	return &Computed{App: app, Service: service}, nil
}

// unsaid is a value in a service whose version was computed that has no hash in the
// statement; "" is none.
func unsaid(app *ring.App, contents map[string]ring.Content) (name string) {
	look := func(text string) {
		for _, v := range ring.SealedIn(text) {
			if !v.Opened() {
				name = cmp.Or(name, v.Name+wording.When(v.Name != "", " of ")+v.File)
			}
		}
	}
	for i := range app.Services {
		s := &app.Services[i]
		if s.Version == "" { // none of the statement's
			continue
		}
		eachTextOf(&s.Spec, look)
		for _, m := range s.Spec.Mounts {
			for _, f := range contents[m.Source].Files {
				if !f.Sealed {
					continue
				}
				if body, err := f.Read(); err == nil {
					look(string(body))
				}
			}
		}
	}
	return name
}

// refusedFault is what the commit's own files are refused for.
func refusedFault(sha ring.SHA, r *ring.Refusal) *Fault {
	return &Fault{
		Code: Code(r.Code), Says: fmt.Sprintf("the files of commit %s cannot be carried out: %s", shortOf(sha), wording.FoldedLine(r.Says)),
		Hint: "the host read them with other values of its own than the proof has, or never read them",
	}
}

// versions computes those of a service and of all that lead it.
type versions struct {
	app   *ring.App
	pins  map[string]Pin
	under map[string]bool // being computed
}

func (v *versions) of(name string) error {
	var s *ring.Service
	for i := range v.app.Services {
		if v.app.Services[i].Name == name {
			s = &v.app.Services[i]
		}
	}
	switch {
	case s == nil:
		return fmt.Errorf("app %s has no service %s in this commit", clip(v.app.Name), clip(name))
	case s.Version != "":
		return nil
	case v.under[name]:
		return fmt.Errorf("the version of service %s depends on itself", clip(name))
	}
	v.under[name] = true
	for _, leader := range s.Spec.Leaders() {
		if err := v.of(leader); err != nil {
			return err
		}
	}
	pin, ok := v.pins[name]
	if !ok || pin.Image == "" {
		return &Fault{Code: PinDiffers, Says: fmt.Sprintf("the proof names no image for service %s", clip(name))}
	}
	s.Spec.Mark, s.Pin = pin.Mark, ring.Pin{Image: pin.Image}
	s.Version = ring.VersionOf(v.app, s, s.Pin)
	return nil
}

// Needs are the services of an app whose pins a version depends on, the service itself
// first.
func Needs(app *ring.App, service string) []string {
	out, met := []string{service}, map[string]bool{service: true}
	for i := 0; i < len(out); i++ {
		s, ok := app.Service(out[i])
		if !ok {
			continue
		}
		for _, l := range s.Spec.Leaders() {
			if !met[l] {
				met[l] = true
				out = append(out, l)
			}
		}
	}
	return out
}
