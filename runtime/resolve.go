package runtime

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/distribution/reference"

	"github.com/gitring/gitring/ring"
)

var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// neverPull and alwaysAsk are Compose's words that change what is asked; the
// default, and "missing", is to ask once and keep the answer.
const (
	neverPull = "never"
	alwaysAsk = "always"
)

// asking is what is asked for: an image by name, for a service.
type asking struct {
	ring.Action
	name     reference.Named // with its tag
	platform platform        // that the service asks for; zero is the machine's own
	machine  platform
}

// onHost is what this host has under the name.
type onHost struct {
	id     string // "" is nothing
	pulled bool   // a registry knows it, or did
	has    []platform
	// digests are those under which registries have it: it came from there, or was pushed.
	digests     []string
	repoDigests []string // the same, each with its repository
	// known is the name with the digest by which its own registry has it; "" where it is
	// this host's alone.
	known string
	// inForce is the service's present pin, where it is this very image.
	inForce ring.Pin
}

// answer is what the registry said.
type answer struct {
	no     string // "not found", "denied"; "" when it has the image
	digest reference.Canonical
	has    []platform
}

// askFunc asks a registry; it is an error when there is no answer.
type askFunc func(ctx context.Context, e engine, name reference.Named) (answer, error)

// resolve says what an image's name means now. What cannot move is itself; what
// only this host has is pinned by its ID; anything else is the registry's to
// say, and its silence is never replaced by something else.
//
// The pin of an image for many platforms is the digest of its index, and the
// platform goes along at pull and create: it is the digest that everyone sees
// who asks for the tag, that signatures are made for and that can be compared
// with one request, and the engine tells no other.
func (d *Docker) resolve(ctx context.Context, e engine, a ring.Action, ask askFunc) (ring.Done, error) {
	if a.Image == ring.FrontImage { // our own: it names the format, and no registry has it
		return ring.Done{Pin: ring.Pin{Image: ring.FrontImage}}, nil
	}
	q, have, err := d.asking(ctx, e, a)
	if err != nil {
		return ring.Done{}, err
	}
	pin, asks, err := decide(q, have, nil)
	if asks {
		said, away := ask(ctx, e, q.name)
		if away != nil {
			return d.goOn(ctx, e, q, away)
		}
		pin, _, err = decide(q, have, &said)
	}
	return ring.Done{Pin: pin}, err
}

// goOn is the image in force where no registry answers: a service that only changes
// otherwise does not wait for one. Whoever asks for what is newest, by a refresh or by
// pull_policy always, waits.
func (d *Docker) goOn(ctx context.Context, e engine, q asking, away error) (ring.Done, error) {
	old := q.Want
	toKnow := q.Version == "" // nothing is deployed by it
	if toKnow || old == nil || old.Pin.Image == "" || old.Written == string(q.Version) || old.Spec.Platform != q.Platform || q.PullPolicy == alwaysAsk {
		return ring.Done{}, away
	}
	have, err := d.onHost(ctx, e, old.Pin.Image)
	if err != nil || have.id == "" || !fits(have.has, q.platform, q.machine) {
		return ring.Done{}, away
	}
	pin := old.Pin
	pin.Note = fmt.Sprintf("registry %s does not answer, so the image in force is kept; gitring refresh %s asks again", reference.Domain(q.name), q.App)
	return ring.Done{Pin: pin}, nil
}

func (d *Docker) asking(ctx context.Context, e engine, a ring.Action) (asking, onHost, error) {
	q := asking{Action: a, platform: parsePlatform(a.Platform)}
	if !imageID.MatchString(a.Image) {
		name, err := reference.ParseNormalizedNamed(a.Image)
		if err != nil {
			return q, onHost{}, refused(a, ring.CauseImagePull, ring.BadValue,
				fmt.Sprintf("%q is no image name: %v", a.Image, err), "write name:tag, or name@sha256:…")
		}
		q.name = reference.TagNameOnly(name)
	}
	var err error
	if q.machine, err = d.machine(ctx, e); err != nil {
		return q, onHost{}, err
	}
	have, err := d.saidSince(ctx, e, a.Image, a.Asked)
	have.known = knownAs(q.name, have.repoDigests)
	if err != nil || have.id == "" || a.Want == nil || a.Want.Pin.Image == "" {
		return q, have, err
	}
	if a.Want.Pin.Image == have.id { // it is its own name
		have.inForce = a.Want.Pin
		return q, have, nil
	}
	now, err := d.saidSince(ctx, e, a.Want.Pin.Image, a.Asked)
	if now.id == have.id {
		have.inForce = a.Want.Pin
	}
	return q, have, err
}

// knownAs is a name with the digest under which its own repository has an image; "" where
// none has.
func knownAs(name reference.Named, repoDigests []string) string {
	if name == nil {
		return ""
	}
	for _, known := range repoDigests {
		at, err := reference.ParseNormalizedNamed(known)
		if err != nil || at.Name() != name.Name() {
			continue
		}
		if fixed, is := at.(reference.Digested); is {
			if canonical, err := reference.WithDigest(name, fixed.Digest()); err == nil {
				return reference.FamiliarString(canonical)
			}
		}
	}
	return ""
}

// decide is the pin, or that the registry has to be asked, or a refusal. said is
// nil until it was asked.
func decide(q asking, have onHost, said *answer) (pin ring.Pin, ask bool, err error) {
	here := have.id != ""
	usable := here && fits(have.has, q.platform, q.machine)
	if q.name == nil { // an ID
		if !here {
			return pin, false, imageNotHere(q.Action)
		}
		if !usable {
			return pin, false, otherPlatform(q, have.has)
		}
		return ring.Pin{Image: q.Image}, false, nil
	}
	_, fixed := q.name.(reference.Digested)
	switch {
	case q.PullPolicy == neverPull && !here:
		return pin, false, neverPulled(q.Action)
	case q.PullPolicy == neverPull && !usable:
		return pin, false, otherPlatform(q, have.has)
	case fixed:
		return ring.Pin{Image: q.Image}, false, nil
	case q.PullPolicy == neverPull && q.Asks != nil && have.known != "":
		return ring.Pin{Image: have.known, Note: "as this host has it, pull_policy is never"}, false, nil // what may be signed is a digest
	case q.PullPolicy == neverPull:
		return ring.Pin{Image: have.id, Note: "this host's own image, pull_policy is never"}, false, nil
	case usable && !have.pulled && q.PullPolicy != alwaysAsk:
		return ring.Pin{Image: have.id, Note: "this host's own image, no registry has it"}, false, nil
	case said == nil:
		return pin, true, nil
	case said.no == "" && !fits(said.has, q.platform, q.machine):
		return pin, false, otherPlatform(q, said.has)
	case said.no == "" && usable && have.inForce.Image != "" && slices.Contains(have.digests, said.digest.Digest().String()):
		return have.inForce, false, nil // the same image under its name at the registry
	case said.no == "":
		return ring.Pin{Image: reference.FamiliarString(said.digest)}, false, nil
	}
	// From here the registry said no.
	switch {
	case usable && have.inForce.Image != "":
		pin = have.inForce
		pin.Note = "the registry says " + said.no + "; the image in force is kept"
		return pin, false, nil
	case usable:
		return ring.Pin{Image: have.id, Note: "the registry says " + said.no + "; this host's own image is used"}, false, nil
	case here:
		return pin, false, otherPlatform(q, have.has)
	}
	return pin, false, registryRefusal(q.Action, q.name, said.no, ", and it is not on this host")
}

func imageNotHere(a ring.Action) error {
	return refused(a, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s is not on this host, and no registry has it", a.Image),
		"build or load it on the host again, or name an image of a registry")
}

func neverPulled(a ring.Action) error {
	return refused(a, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s is not on this host, and pull_policy is never", a.Image),
		"build or load it on the host, or remove pull_policy")
}

// otherPlatformHere is the limit of engines without containerd's image store: of
// one index they keep one platform, and give its digest to no other.
func otherPlatformHere(q asking) error {
	return refused(q.Action, ring.CauseImagePull, ring.Conflict,
		fmt.Sprintf("image %s is on this host for another platform, and the engine keeps one platform of a digest", q.Image),
		"name the image of the wanted platform by its own digest (docker manifest inspect lists them), or remove the other one from this host")
}

// otherPlatform refuses an image that this machine would only find out about
// when nothing of it starts. Who runs foreign programs on purpose says so.
func otherPlatform(q asking, has []platform) error {
	if q.platform != (platform{}) {
		return refused(q.Action, ring.CauseImagePull, ring.ImageNotFound,
			fmt.Sprintf("image %s is not for platform %s but for %s", q.Image, q.platform, listed(has)),
			"take platform out, or name an image that has it")
	}
	return refused(q.Action, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s is for %s, and this host is %s", q.Image, listed(has), q.machine),
		fmt.Sprintf("name an image for %s, or write `platform: %s` where this host can run it", q.machine, has[0]))
}
