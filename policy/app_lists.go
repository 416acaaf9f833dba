package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

// Rules of a service that no field of a payload shows.
var (
	registriesRule = rule{name: "images.registries", key: "image", grade: escape, risk: "is an image of a registry that this host does not name", lets: "every registry"}
	tagsRule       = rule{name: "images.tags", key: "image", grade: escape, risk: "names no digest, so another image can stand behind it tomorrow", lets: "tags, which are resolved and pinned"}
	signaturesRule = rule{name: "images.signatures", key: "image", grade: forbidden, risk: "is an image that this host wants no instance of", lets: "every image"}
	latestRule     = rule{name: "images.latest", key: "image", grade: escape, risk: "names no version", lets: "every tag"}
	movingRule     = rule{name: "images.moving", key: "pull_policy", grade: escape, risk: "asks the registry for a newer image without a commit", lets: "every pull policy"}
	secretsRule    = rule{name: "secrets.in", key: "environment", grade: escape, risk: "holds a value of the host where this host wants none", lets: "values of the host in files, environment, command and labels"}
	hooksRule      = rule{name: "hooks.exec", key: "post_start", grade: escape, risk: "runs a command in the container beside its program", lets: "all"}
	publishRule    = rule{name: "traffic.fronts", key: "x-gitring.publish", grade: escape, risk: "has gitring carry its requests by a front", lets: "fronts"}
	internalRule   = rule{name: "traffic.internal", key: "x-gitring.route.internal", grade: escape, risk: "gives the service's names on its networks to a front", lets: "fronts that have them"}
	pidsRule       = rule{name: "limits.pids_max", key: "pids_limit", grade: limit, risk: "may start more processes than one service may have here", lets: "any number"}
)

var serviceRules = []rule{registriesRule, signaturesRule, tagsRule, latestRule, movingRule, secretsRule, hooksRule, publishRule, internalRule, pidsRule}

// listed holds one service to the lists that no payload shows.
func (l *Lists) listed(s *ring.Service, about func(rule) *look) {
	image := s.Spec.Image
	if s.FrontOf != "" && image == ring.FrontImage {
		l.sealed(s, about) // its labels and variables are the service's, all else is gitring's own
		return
	}
	about(frontsRule).frontImage(image) // no payload names it before it is pinned
	n := ring.ParseImage(image)
	l.from(image, n, about)
	if l.RequireDigest && n.Digest == "" {
		about(tagsRule).find(finding{value: image, instead: "write the image as name:tag@sha256:…"})
	}
	if l.DenyLatest && n.Digest == "" && (n.Tag == "" || n.Tag == "latest") {
		about(latestRule).find(finding{value: image, instead: "name a version"})
	}
	if p := s.Spec.PullPolicy; l.DenyMoving && p == "always" {
		about(movingRule).find(finding{value: p})
	}
	if u := s.Updates; l.DenyMoving && u != nil {
		about(movingRule).find(finding{value: u.Word, instead: "name the image by its digest, or let a commit move its tag"})
	}
	l.sealed(s, about)
	if l.DenyFronts && s.Route != nil {
		about(publishRule).find(finding{value: ring.PublishFront, instead: "write x-gitring: {publish: direct}"})
	}
	if l.DenyInternal && s.Route != nil && s.Route.Internal {
		about(internalRule).find(finding{value: "true", instead: "leave it out: other services then reach the instances as before"})
	}
	if l.DenyHooks {
		for _, key := range []string{"post_start", "pre_stop"} {
			if key == "post_start" && len(s.Spec.PostStart) > 0 || key == "pre_stop" && len(s.Spec.PreStop) > 0 {
				about(hooksRule).find(finding{value: key, key: key})
			}
		}
	}
	if l.PidsMax > 0 {
		if n := pidsOf(s); n <= 0 || n > l.PidsMax {
			about(pidsRule).find(finding{value: strconv.FormatInt(n, 10), instead: "say pids_limit: " + strconv.FormatInt(l.PidsMax, 10)})
		}
	}
}

// from holds where an image is from to the lists.
func (l *Lists) from(image string, n ring.ImageName, about func(rule) *look) {
	switch {
	case n.AtLinkLocal():
		about(registriesRule).find(finding{
			value: image, risk: "is an image of a registry at an address of this link alone, where clouds answer for a host's credentials",
			instead: "name a registry by its host", grade: forbidden,
		})
		return
	case !slices.ContainsFunc(l.Registries, func(pattern string) bool { return ring.ImageMatches(pattern, n.Name) }):
		about(registriesRule).find(finding{value: image, instead: "use an image of what images.registries of this host names"})
	}
	rule := imagesign.For(l.Signatures, image)
	switch {
	case rule == nil:
	case rule.Deny:
		about(signaturesRule).find(finding{
			value: image, risk: "is an image that images.signatures of this host denies (" + rule.At + ")", instead: "use an image that a rule of images.signatures lets pass",
		})
	case rule.Asks() && n.Name == "":
		about(signaturesRule).find(finding{
			value: image, risk: "is an image of this host alone, and images.signatures asks for a signature (" + rule.At + "), which only a registry has",
			instead: "write the image as name:tag@sha256:…",
		})
	}
}

// sealed holds the values of the host in a service to the places where this host wants them.
func (l *Lists) sealed(s *ring.Service, about func(rule) *look) {
	for _, at := range sealedAt(s) {
		if !slices.Contains(l.SecretsIn, at.kind) {
			about(secretsRule).find(finding{value: at.key, key: at.key, instead: "put it into a file: secrets: with environment:, or a file of the host's env folder"})
		}
	}
}

// sealed is a place of a service that holds a value of the host.
type sealed struct{ kind, key string }

// sealedAt are the places of a service that hold a value of the host and are no file.
func sealedAt(s *ring.Service) []sealed {
	var out []sealed
	add := func(kind, key, value string) {
		if ring.HasSealed(value) {
			out = append(out, sealed{kind, key})
		}
	}
	for _, name := range sortedKeys(s.Spec.Environment) {
		add("env", "environment."+name, s.Spec.Environment[name])
	}
	for _, name := range sortedKeys(s.Spec.Labels) {
		add("labels", "labels."+name, s.Spec.Labels[name])
	}
	for _, name := range sortedKeys(s.Spec.Annotations) {
		add("labels", "annotations."+name, s.Spec.Annotations[name])
	}
	if s.Spec.Logging != nil {
		for _, name := range sortedKeys(s.Spec.Logging.Options) {
			add("labels", "logging.options."+name, s.Spec.Logging.Options[name])
		}
	}
	add("command", "command", strings.Join(s.Spec.Command, " ")+s.Spec.CommandText)
	add("command", "entrypoint", strings.Join(s.Spec.Entrypoint, " ")+s.Spec.EntrypointText)
	if s.Spec.Healthcheck != nil {
		add("command", "healthcheck", strings.Join(s.Spec.Healthcheck.Test, " "))
	}
	return slices.Concat(out, sealedInHooks("post_start", s.Spec.PostStart), sealedInHooks("pre_stop", s.Spec.PreStop))
}

// sealedInHooks are those of the hooks under one key.
func sealedInHooks(key string, hooks []ring.Hook) (out []sealed) {
	for _, h := range hooks {
		if ring.HasSealed(strings.Join(h.Command, " ")) {
			out = append(out, sealed{"command", key})
		}
		for _, name := range sortedKeys(h.Environment) {
			if ring.HasSealed(h.Environment[name]) {
				out = append(out, sealed{"env", key + ".environment." + name})
			}
		}
	}
	return out
}

func pidsOf(s *ring.Service) int64 {
	if s.Spec.Resources == nil || s.Spec.Resources.PidsLimit == nil {
		return 0
	}
	return *s.Spec.Resources.PidsLimit
}
