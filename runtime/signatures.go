package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/imagesign"
)

// mostPages is how many pages of referrers are read.
const mostPages = 8

// signatures reads what one registry has of the signatures of an image, and counts them.
type signatures struct {
	c      *registryClient
	digest string
	tally  *imagesign.Tally
	asked  []string // the places that were asked, for people
}

// read asks for bundles, and for the older form where these are not enough. An error is no
// answer: nobody knows then whether the image is signed.
func (s *signatures) read(ctx context.Context) error {
	if err := s.bundles(ctx); err != nil || s.tally.Enough() {
		return err
	}
	return s.simple(ctx)
}

// bundles reads the Sigstore bundles that refer to the image.
func (s *signatures) bundles(ctx context.Context) error {
	all, err := s.referrers(ctx)
	if err != nil {
		return err
	}
	if len(all) > imagesign.MostReferrers {
		s.tally.Add(imagesign.Bundle, nil, fmt.Errorf("%d bundles or more, and above %d none counts", len(all), imagesign.MostReferrers))
		return nil
	}
	layers := 0
	for _, d := range all {
		m, err := s.manifest(ctx, d.Digest.String())
		if err != nil {
			return err
		}
		if m == nil || m.Subject == nil || m.Subject.Digest.String() != s.digest {
			continue
		}
		for _, l := range m.Layers {
			if layers++; layers > imagesign.MostLayers {
				s.tally.Add(imagesign.Bundle, nil, fmt.Errorf("more than %d layers", imagesign.MostLayers))
				return nil
			}
			if !strings.HasPrefix(l.MediaType, imagesign.BundleTypes) {
				continue
			}
			body, err := s.layer(ctx, imagesign.Bundle, l)
			if err != nil {
				return err
			}
			if body == nil {
				continue
			}
			signers, err := imagesign.JudgeBundle(body, s.digest, s.tally.Rule.Keys)
			if s.tally.Add(imagesign.Bundle, signers, err); s.tally.Enough() {
				return nil
			}
		}
	}
	return nil
}

// referrers are the manifests that may hold bundles about the image: by the API, or where the
// registry has none, by the list that is kept under a tag.
func (s *signatures) referrers(ctx context.Context) ([]ocispec.Descriptor, error) {
	path := "/v2/" + s.c.repo + "/referrers/" + s.digest + "?artifactType=application%2Fvnd.dev.sigstore.bundle.v0.3%2Bjson"
	var out []ocispec.Descriptor
	for page := 0; path != "" && page < mostPages; page++ {
		a, err := s.c.get(ctx, path, ocispec.MediaTypeImageIndex)
		if errors.Is(err, errTooLarge) {
			s.tally.Add(imagesign.Bundle, nil, errors.New("a list of referrers of "+err.Error()))
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if page == 0 && !hasReferrers(&a) {
			return s.listed(ctx)
		}
		if a.status != http.StatusOK {
			return nil, &statusError{a.status}
		}
		s.askedAt(page == 0, "the referrers of %s", s.digest)
		found, err := bundlesIn(a.body)
		if err != nil {
			s.tally.Add(imagesign.Bundle, nil, err)
			return nil, nil
		}
		if out = append(out, found...); len(out) > imagesign.MostReferrers {
			return out, nil
		}
		path = a.next
	}
	return out, nil
}

// hasReferrers reports whether an answer is one of a registry that knows the question. One
// that does not says so in many ways.
func hasReferrers(a *registryAnswer) bool {
	switch a.status {
	case http.StatusOK:
		return a.kind == ocispec.MediaTypeImageIndex
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return false
	}
	return a.status < 300 || a.status >= 400
}

// listed are those of the list under a tag, which stands for the API.
func (s *signatures) listed(ctx context.Context) ([]ocispec.Descriptor, error) {
	tag := strings.Replace(s.digest, ":", "-", 1)
	s.askedAt(true, "tag %s", tag)
	a, err := s.c.manifest(ctx, tag, ocispec.MediaTypeImageIndex)
	if errors.Is(err, errTooLarge) {
		s.tally.Add(imagesign.Bundle, nil, errors.New("a list of referrers of "+err.Error()))
		return nil, nil
	}
	if err != nil || a == nil {
		return nil, err
	}
	found, err := bundlesIn(a.body)
	if err != nil {
		s.tally.Add(imagesign.Bundle, nil, err)
		return nil, nil
	}
	return found, nil
}

// bundlesIn are the manifests of an index that may hold a bundle. One without a type may.
func bundlesIn(body []byte) ([]ocispec.Descriptor, error) {
	var index ocispec.Index
	if err := json.Unmarshal(body, &index); err != nil {
		return nil, errors.New("a list of referrers that cannot be read")
	}
	var out []ocispec.Descriptor
	for _, d := range index.Manifests {
		if d.ArtifactType == "" || strings.HasPrefix(d.ArtifactType, imagesign.BundleTypes) {
			out = append(out, d)
		}
	}
	return out, nil
}

// simple reads the signatures that lie beside the image under a tag made of its digest.
func (s *signatures) simple(ctx context.Context) error {
	tag := strings.Replace(s.digest, ":", "-", 1) + ".sig"
	s.askedAt(true, "tag %s", tag)
	m, err := s.manifest(ctx, tag)
	if err != nil || m == nil {
		return err
	}
	if len(m.Layers) > imagesign.MostLayers {
		s.tally.Add(imagesign.Simple, nil, fmt.Errorf("%d layers, and above %d none counts", len(m.Layers), imagesign.MostLayers))
		return nil
	}
	for _, l := range m.Layers {
		sig := l.Annotations[imagesign.SimpleSignature]
		if l.MediaType != imagesign.SimpleType || sig == "" {
			continue
		}
		body, err := s.layer(ctx, imagesign.Simple, l)
		if err != nil {
			return err
		}
		if body == nil {
			continue
		}
		signers, err := imagesign.JudgeSimple(body, sig, s.digest, s.tally.Rule.Keys)
		if s.tally.Add(imagesign.Simple, signers, err); s.tally.Enough() {
			return nil
		}
	}
	return nil
}

// manifest reads one by its tag or digest; nil where there is none, or none that can be read.
func (s *signatures) manifest(ctx context.Context, ref string) (*ocispec.Manifest, error) {
	if strings.Contains(ref, ":") && !imageID.MatchString(ref) {
		return nil, nil
	}
	a, err := s.c.manifest(ctx, ref, ocispec.MediaTypeImageManifest)
	if errors.Is(err, errTooLarge) {
		s.tally.Add(imagesign.Bundle, nil, errors.New("a manifest of "+err.Error()))
		return nil, nil
	}
	if err != nil || a == nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(a.body, &m); err != nil || m.MediaType != "" && m.MediaType != ocispec.MediaTypeImageManifest {
		s.tally.Add(imagesign.Bundle, nil, errors.New("a manifest that cannot be read"))
		return nil, nil
	}
	return &m, nil
}

// layer reads one; nil where it is too large or not there.
func (s *signatures) layer(ctx context.Context, f imagesign.Form, d ocispec.Descriptor) ([]byte, error) {
	if d.Size > imagesign.MostBytes {
		s.tally.Add(f, nil, errors.New("a signature of "+errTooLarge.Error()))
		return nil, nil
	}
	a, err := s.c.blob(ctx, d.Digest.String())
	if errors.Is(err, errTooLarge) {
		s.tally.Add(f, nil, errors.New("a signature of "+err.Error()))
		return nil, nil
	}
	if err != nil || a == nil {
		return nil, err
	}
	return a.body, nil
}

func (s *signatures) askedAt(first bool, place string, what any) {
	if first {
		s.asked = append(s.asked, fmt.Sprintf(place, what))
	}
}
