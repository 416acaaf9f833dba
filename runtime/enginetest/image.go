package enginetest

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

type fakeImage struct {
	Image
	id      string
	digests []string
}

// familiar is a name as the engine keeps it: without what goes without saying.
func familiar(name string) string {
	n, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	if d, ok := n.(reference.Digested); ok { // a tag beside a digest says nothing
		return reference.FamiliarName(n) + "@" + d.Digest().String()
	}
	return reference.FamiliarString(reference.TagNameOnly(n))
}

// repository is a name without tag and digest.
func repository(name string) string {
	n, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	return reference.FamiliarName(n)
}

func (m *Client) image(name string) *fakeImage {
	if i := m.images[name]; i != nil {
		return i
	}
	return m.images[familiar(name)]
}

func (m *Client) addImage(i Image) *fakeImage {
	img := &fakeImage{Image: i, id: "sha256:" + m.id("image")}
	m.images[img.id] = img
	name := familiar(i.Name)
	m.images[name] = img
	if i.Digest != "" {
		img.digests = []string{repository(name) + "@" + i.Digest}
		m.images[img.digests[0]] = img
	}
	return img
}

func (m *Client) ImageInspect(ctx context.Context, name string, _ ...client.ImageInspectOption) (image.InspectResponse, error) {
	return call(ctx, m, "ImageInspect", func() (image.InspectResponse, error) {
		i := m.image(name)
		if i == nil {
			return image.InspectResponse{}, Refuse(cerrdefs.ErrNotFound, "No such image: %s", name)
		}
		return i.inspect()
	})
}

// inspect is what an engine says of an image, by way of the engine's own words.
func (i *fakeImage) inspect() (out image.InspectResponse, err error) {
	p, volumes := parsePlatform(i.Platform), map[string]struct{}{}
	for _, v := range i.Volumes {
		volumes[v] = struct{}{}
	}
	b, err := json.Marshal(map[string]any{
		"Id": i.id, "RepoTags": []string{i.Name}, "RepoDigests": i.digests, "Os": p.os, "Architecture": p.arch,
		"Config": map[string]any{"Volumes": volumes, "Labels": i.Labels},
	})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

// remote is an image of the registry, by tag or by digest.
func (m *Client) remote(name string) (Image, error) {
	want := familiar(name)
	for k, i := range m.registry {
		if familiar(k) != want && repository(k)+"@"+i.Digest != want {
			continue
		}
		return i, i.Refuse
	}
	return Image{}, Refuse(cerrdefs.ErrNotFound, "manifest unknown: manifest unknown")
}

func (m *Client) DistributionInspect(ctx context.Context, name, _ string) (registry.DistributionInspect, error) {
	return call(ctx, m, "DistributionInspect", func() (registry.DistributionInspect, error) {
		i, err := m.remote(name)
		if err != nil {
			return registry.DistributionInspect{}, err
		}
		said := registry.DistributionInspect{Descriptor: ocispec.Descriptor{Digest: digest.Digest(i.Digest)}}
		for _, written := range append([]string{i.Platform}, i.Others...) {
			p := parsePlatform(written)
			said.Platforms = append(said.Platforms, ocispec.Platform{OS: p.os, Architecture: p.arch})
		}
		return said, nil
	})
}

// ImagePull takes of an index what is for the platform, of a single image what
// there is, as engines do.
func (m *Client) ImagePull(ctx context.Context, name string, o image.PullOptions) (io.ReadCloser, error) {
	return call(ctx, m, "ImagePull", func() (io.ReadCloser, error) {
		i, err := m.remote(name)
		if err != nil {
			return nil, err
		}
		if want := parsePlatform(o.Platform); slices.ContainsFunc(i.Others, func(other string) bool { return o.Platform != "" && parsePlatform(other).is(want) }) {
			i.Platform = o.Platform
		}
		m.addImage(i)
		return io.NopCloser(strings.NewReader(`{"status":"Pull complete"}` + "\n")), nil
	})
}

// ImageLoad takes the names of an archive's images; what is in their layers is not read.
func (m *Client) ImageLoad(ctx context.Context, archive io.Reader, _ ...client.ImageLoadOption) (image.LoadResponse, error) {
	return call(ctx, m, "ImageLoad", func() (image.LoadResponse, error) {
		tags, err := archived(archive)
		if err != nil {
			return image.LoadResponse{}, Refuse(cerrdefs.ErrInvalidArgument, "Error processing tar file: %v", err)
		}
		for _, tag := range tags {
			m.addImage(Image{Name: tag})
		}
		return image.LoadResponse{Body: io.NopCloser(strings.NewReader(`{"stream":"Loaded image"}` + "\n")), JSON: true}, nil
	})
}

// archived are the names in the manifest of an archive as docker save writes one.
func archived(archive io.Reader) (tags []string, err error) {
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return tags, nil
		case err != nil:
			return nil, err
		case h.Name != "manifest.json":
			continue
		}
		var images []struct{ RepoTags []string }
		if err := json.NewDecoder(r).Decode(&images); err != nil {
			return nil, err
		}
		for _, i := range images {
			tags = append(tags, i.RepoTags...)
		}
	}
}

// ImageList lists images by the one filter that is asked for: reference, a repository.
func (m *Client) ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error) {
	return call(ctx, m, "ImageList", func() ([]image.Summary, error) {
		var out []image.Summary
		for _, name := range slices.Sorted(maps.Keys(m.images)) {
			if i := m.images[name]; name != i.id && slices.Contains(o.Filters.Get("reference"), repository(name)) {
				out = append(out, image.Summary{ID: i.id, RepoTags: []string{name}})
			}
		}
		return out, nil
	})
}

// ImageRemove takes a name away, and the image with its last one, unless a
// container uses it.
func (m *Client) ImageRemove(ctx context.Context, name string, o image.RemoveOptions) ([]image.DeleteResponse, error) {
	return call(ctx, m, "ImageRemove", func() ([]image.DeleteResponse, error) {
		key := familiar(name)
		i := m.images[key]
		if i == nil {
			return nil, Refuse(cerrdefs.ErrNotFound, "No such image: %s", name)
		}
		names := 0
		for k, x := range m.images {
			if x == i && k != i.id {
				names++
			}
		}
		for _, c := range m.containers {
			if c.image == i && names == 1 && !o.Force {
				return nil, Refuse(cerrdefs.ErrConflict, "conflict: unable to remove repository reference %q (must force) - container %s is using its referenced image", name, c.c.ID)
			}
		}
		delete(m.images, key)
		if names == 1 {
			delete(m.images, i.id)
		}
		return []image.DeleteResponse{{Untagged: key}}, nil
	})
}

// platform is one in the words of image manifests; what is not said is "".
type platform struct{ os, arch string }

// parsePlatform reads os/arch, with whatever stands behind it, or one of the two.
func parsePlatform(written string) platform {
	first, rest, both := strings.Cut(written, "/")
	switch {
	case both:
		arch, _, _ := strings.Cut(rest, "/")
		return platform{first, arch}
	case first == "" || first == "linux" || first == "windows":
		return platform{os: first}
	}
	return platform{"linux", first}
}

// is reports whether an image for p is one that was asked for as want: what is not said
// of either is not held against it.
func (p platform) is(want platform) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(p.os, want.os) && same(p.arch, want.arch)
}
