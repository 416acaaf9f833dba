package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// loaded is one entry of manifest.json, which "docker load" of every engine reads.
type loaded struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeImage writes one archive that is both an OCI layout of all architectures and what
// "docker load" takes, where each architecture has a tag of its own.
func writeImage(to string, programs map[string][]byte, f facts) error {
	work, err := os.MkdirTemp("", "gitring-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tag := strings.ReplaceAll(f.version, "+", "-") // a tag has no "+"
	index, entries := v1.ImageIndex(empty.Index), []loaded{}
	for _, arch := range slices.Sorted(maps.Keys(programs)) {
		img, err := imageOf(arch, programs[arch], f)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		entry, err := loadedOf(img, "gitring:"+tag+"-"+arch)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	folder, err := layout.Write(work, empty.Index)
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})
	if err := folder.AppendIndex(index, named); err != nil {
		return err
	}
	manifest, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	content := []file{{name: "manifest.json", mode: 0o644, data: manifest}}
	err = filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(work, path)
		content = append(content, file{name: filepath.ToSlash(name), mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(content, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return writeWhole(to, func(w io.Writer) error { return tarOf(w, content, f.date) })
}

// imageOf has what the Dockerfile's last stage has: the program and CA certificates.
func imageOf(arch string, program []byte, f facts) (v1.Image, error) {
	var layer bytes.Buffer
	err := tarOf(&layer, []file{
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: "usr/bin/gitring", mode: 0o755, data: program},
	}, f.date)
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer: l, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: f.date}, CreatedBy: "make dist"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: f.date}
	config.Config.Entrypoint, config.Config.Cmd = []string{"/usr/bin/gitring"}, []string{"serve"}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "gitring",
		"org.opencontainers.image.version":  f.version,
		"org.opencontainers.image.revision": f.commit,
		"org.opencontainers.image.created":  f.date.Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://github.com/gitring/gitring",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(img, config)
}

// loadedOf names the blobs of an image by their places in the OCI layout.
func loadedOf(img v1.Image, tag string) (out loaded, _ error) {
	config, err := img.ConfigName()
	if err != nil {
		return out, err
	}
	layers, err := img.Layers()
	if err != nil {
		return out, err
	}
	out = loaded{Config: "blobs/sha256/" + config.Hex, RepoTags: []string{tag}}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return out, err
		}
		out.Layers = append(out.Layers, "blobs/sha256/"+digest.Hex)
	}
	return out, nil
}

// certificates are the roots that Mozilla trusts, as go.mod pins them, and not those of the
// machine. A root with a condition of its own is left out: a PEM file cannot say it.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}
