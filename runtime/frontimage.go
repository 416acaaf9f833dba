package runtime

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// frontRepository is the name of the images of fronts. No registry is ever asked for one.
const frontRepository = "gitring/front"

// FrontTag is the engine's name of the image that is made of a front's program, by the
// program's SHA-256 in hex.
func FrontTag(sum string) string { return frontRepository + ":" + sum[:12] }

// ofFront reports whether an image is one of fronts, by its name.
func ofFront(image string) bool { return strings.HasPrefix(image, frontRepository+":") }

// epoch is the time of everything in a front's image: equal programs make equal images.
var epoch = time.Unix(0, 0).UTC()

// frontArchive is the image of a front as the engine loads it: one layer that holds the
// program and the folders to mount on. It is a function of its arguments alone.
func frontArchive(program []byte, arch, tag string) ([]byte, error) {
	layer, err := frontLayer(program)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "created": epoch.Format(time.RFC3339),
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", ring.FrontUser, ring.FrontUser), "Entrypoint": []string{ring.FrontProgram}, "WorkingDir": "/",
			"Labels": map[string]string{"org.opencontainers.image.title": "front of gitring"},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sumOf(layer)}},
		"history": []map[string]any{{"created": epoch.Format(time.RFC3339), "created_by": "gitring"}},
	})
	if err != nil {
		return nil, err
	}
	name := sumOf(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		body []byte
	}{{name, config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := frontFile(w, f.name, f.body, 0o644); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

func frontLayer(program []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range []string{path.Dir(ring.FrontProgram), ring.FrontBuilds, path.Dir(ring.FrontRun), ring.FrontRun, ring.FrontTables} {
		at := strings.TrimPrefix(dir, "/") + "/"
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: at, Mode: 0o755, ModTime: epoch}); err != nil {
			return nil, err
		}
	}
	if err := frontFile(w, strings.TrimPrefix(ring.FrontProgram, "/"), program, 0o555); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

func frontFile(w *tar.Writer, name string, body []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(body)), Mode: mode, ModTime: epoch}); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
