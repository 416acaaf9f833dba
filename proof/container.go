package proof

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// Labels that gitring and Compose own. Everything else that begins so is nobody's.
const (
	ownPrefix     = "gitring."
	composePrefix = "com.docker.compose."
	hooksLabel    = ownPrefix + "hooks"
	hashLabel     = composePrefix + "config-hash"
	imageLabel    = composePrefix + "image"
)

// Owned reports whether a label is one that no Compose file may set.
func Owned(label string) bool {
	return strings.HasPrefix(label, ownPrefix) || strings.HasPrefix(label, composePrefix)
}

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// labelled holds the labels to what the statement says the container is. It needs no commit.
func (s *Statement) labelled() (all []Fault) {
	for _, l := range []struct {
		name, want string
		code       Code
	}{
		{"host", s.Host, OtherHost},
		{"source", s.Source, LabelDiffers},
		{"app", s.App, OtherService},
		{"service", s.Service, OtherService},
		{"slot", strconv.Itoa(s.Slot), LabelDiffers},
		{"version", string(s.Version), LabelDiffers},
		{"commit", string(s.Commit), LabelDiffers},
		{"kind", string(s.Kind), LabelDiffers},
	} {
		if f := s.label(l.code, ownPrefix+l.name, l.want, "the proof is of"); f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// label holds one label to what it has to be, by the word of whom.
func (s *Statement) label(code Code, name, want, whose string) *Fault {
	got, ok := s.Container.Labels[name]
	switch {
	case !ok:
		return &Fault{Code: LabelMissing, Says: fmt.Sprintf("the container has no label %s; %s %s", name, whose, clip(want))}
	case got != want:
		return &Fault{Code: code, Says: fmt.Sprintf("label %s is %s, and %s %s", name, clip(got), whose, clip(want))}
	}
	return nil
}

// made holds the container to the service that the commit asks for.
func (s *Statement) made(c *Computed) (all []Fault) {
	add := func(f *Fault) {
		if f != nil {
			all = append(all, *f)
		}
	}
	const files = "the commit's files give"
	add(s.label(LabelDiffers, composePrefix+"project", c.App.Name, files))
	add(s.label(LabelDiffers, composePrefix+"service", c.Service.Name, files))
	add(s.label(LabelDiffers, composePrefix+"container-number", strconv.Itoa(s.Slot), files))
	add(s.label(LabelDiffers, composePrefix+"oneoff", "False", files))
	add(s.label(LabelDiffers, composePrefix+"project.working_dir", c.App.Path, files))
	add(s.label(LabelDiffers, composePrefix+"project.config_files", strings.Join(c.App.Files, ","), files))
	if c.Service.Kind != s.Kind {
		add(&Fault{Code: KindDiffers, Says: fmt.Sprintf("the proof is of a %s, and the commit's files give a %s", clip(string(s.Kind)), c.Service.Kind)})
	}
	if c.Service.Kind == ring.Worker && (s.Slot < 1 || s.Slot > c.Service.Replicas) {
		add(&Fault{Code: SlotUnknown, Says: fmt.Sprintf("the proof is of slot %d, and the commit asks for %d", s.Slot, c.Service.Replicas)})
	}
	all = append(all, s.hashes(c)...)
	add(s.hooks(c))
	all = append(all, s.users(c)...)
	add(s.named(c))
	return all
}

// hashes holds the labels that are hashes to their form, and to the image.
func (s *Statement) hashes(*Computed) (all []Fault) {
	if h, ok := s.Container.Labels[hashLabel]; ok && !hexHash.MatchString(h) {
		all = append(all, Fault{Code: LabelDiffers, Says: fmt.Sprintf("label %s is no hash: %s", hashLabel, clip(h))})
	}
	if id, ok := s.Container.Labels[imageLabel]; ok && id != s.Container.ImageID {
		all = append(all, Fault{Code: ImageDiffers, Says: fmt.Sprintf("label %s is %s, and the container runs %s", imageLabel, clip(id), clip(s.Container.ImageID))})
	}
	known := []string{"project", "service", "container-number", "oneoff", "project.working_dir", "project.config_files", "config-hash", "image"}
	own := []string{"host", "source", "app", "service", "slot", "version", "commit", "kind", "hooks"}
	for _, name := range slices.Sorted(maps.Keys(s.Container.Labels)) {
		rest, compose := strings.CutPrefix(name, composePrefix)
		mine, ours := strings.CutPrefix(name, ownPrefix)
		if compose && !slices.Contains(known, rest) || ours && !slices.Contains(own, mine) {
			all = append(all, Fault{Code: LabelAdded, Says: fmt.Sprintf("label %s is none that gitring sets", clip(name))})
		}
	}
	return all
}

// hooks holds the label with hooks, which gitring runs, to those of the commit.
func (s *Statement) hooks(c *Computed) *Fault {
	text, ok := s.Container.Labels[hooksLabel]
	spec := &c.Service.Spec
	if !ok && len(spec.PostStart)+len(spec.PreStop) == 0 {
		return nil
	}
	var said struct {
		PostStart []ring.Hook `json:"post_start"`
		PreStop   []ring.Hook `json:"pre_stop"`
	}
	if json.Unmarshal([]byte(text), &said) != nil || !reflect.DeepEqual(said.PostStart, spec.PostStart) || !reflect.DeepEqual(said.PreStop, spec.PreStop) {
		return &Fault{Code: LabelDiffers, Says: fmt.Sprintf("label %s is not what the commit's files give", hooksLabel)}
	}
	return nil
}

// users holds the labels of the Compose file to those of the container. Those with a
// sealed value are in no proof.
func (s *Statement) users(c *Computed) (all []Fault) {
	for _, name := range slices.Sorted(maps.Keys(c.Service.Spec.Labels)) {
		want := c.Service.Spec.Labels[name]
		if Owned(name) || ring.HasSealed(want) {
			continue
		}
		if f := s.label(LabelDiffers, name, want, "the commit's files say"); f != nil {
			all = append(all, *f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Container.Labels)) {
		if _, asked := c.Service.Spec.Labels[name]; !asked && !Owned(name) {
			all = append(all, Fault{Code: LabelAdded, Says: fmt.Sprintf("label %s is in the proof, and the commit's files do not ask for it", clip(name))})
		}
	}
	return all
}

// named holds the container's name to those that gitring gives.
func (s *Statement) named(c *Computed) *Fault {
	name := s.Container.Name
	if ring.IsContainerName(name, s.App, s.Service, s.Slot, s.Version) || ring.IsComposeName(name, s.App, s.Service, s.Slot) ||
		name != "" && name == c.Service.Spec.ContainerName {
		return nil
	}
	return &Fault{
		Code: NameDiffers, Says: fmt.Sprintf("the container is called %s, and gitring calls it %s", clip(name), ring.ComposeName(s.App, s.Service, s.Slot)),
	}
}

// imaged holds the images that the statement names to each other.
func (s *Statement) imaged() (all []Fault) {
	pin := s.Pins[s.Service]
	if s.Container.Image != pin.Image {
		all = append(all, Fault{Code: PinDiffers, Says: fmt.Sprintf("the container was made of %s, and the pin is %s", clip(s.Container.Image), clip(pin.Image))})
	}
	if strings.HasPrefix(pin.Image, "sha256:") && s.Container.ImageID != pin.Image {
		all = append(all, Fault{Code: ImageDiffers, Says: fmt.Sprintf("the pin is the image %s, and the container runs %s", clip(pin.Image), clip(s.Container.ImageID))})
	}
	if !strings.HasPrefix(s.Container.ImageID, "sha256:") || !hexHash.MatchString(s.Container.ImageID[len("sha256:"):]) {
		all = append(all, Fault{Code: ImageDiffers, Says: fmt.Sprintf("the container's image is no digest: %s", clip(s.Container.ImageID))})
	}
	if s.Verdict != nil && s.Verdict.Image != ring.VerdictKey(pin.Image) {
		all = append(all, Fault{Code: VerdictDiffers, Says: fmt.Sprintf("the verdict on signatures is of %s, and the pin is %s", s.Verdict.Image, pin.Image)})
	}
	return all
}

// written reports whether a digest is asked for, which is then the one that the pin has. The
// fault is that it is another one.
func (s *Statement) written(c *Computed) (named bool, _ *Fault) {
	_, want, named := strings.Cut(c.Service.Spec.Image, "@")
	if !named {
		return false, nil
	}
	if digest := (ring.Pin{Image: s.Pins[s.Service].Image}).Digest(); digest != want {
		return true, &Fault{Code: PinDiffers, Says: fmt.Sprintf("the commit asks for %s, and the pin is %s", clip(want), clip(digest))}
	}
	return true, nil
}

// signed reports whether the image is named by the commit alone. It is read once more with
// another letter for each one in a value of the host, so an image with any of those in it
// comes out as another one. Where the files cannot be read so, nobody can tell.
func (s *Statement) signed(commit *ring.Commit, c *Computed) bool {
	if len(s.Values.Interpolation)+len(s.Values.Facts) == 0 {
		return true
	}
	other := *s
	other.Values.Interpolation, other.Values.Facts = withOthers(s.Values.Interpolation), withOthers(s.Values.Facts)
	plan, _ := manifest.Read(commit, other.settings())
	app, ok := plan.App(s.App)
	if !ok {
		return false
	}
	service, ok := app.Service(s.Service)
	return ok && service.Spec.Image == c.Service.Spec.Image
}

// withOthers are values as long as these, and different at each letter and digit.
func withOthers(all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for name, text := range all {
		out[name] = strings.Map(func(r rune) rune {
			switch {
			case r >= '0' && r <= '9':
				return r ^ 1
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
				return ((r - 1) ^ 1) + 1 // a and b, c and d, up to y and z
			}
			return r
		}, text)
	}
	return out
}
