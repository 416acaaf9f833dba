package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// What a hub takes where nobody says otherwise.
const (
	DefaultHubFile  = "/etc/gitring/hub.yaml"
	defaultHubState = "/var/lib/gitring-hub"
)

// Hub is the configuration of a hub (docs/reference/configuration.md#a-hub). One that LoadHub
// returned is complete, as a Config is.
type Hub struct {
	State  string    `yaml:"state"`
	Listen HubListen `yaml:"listen"`
	API    APIConfig `yaml:"api"`

	File string `yaml:"-"`
}

// HubListen says where a hub can be reached: at one door, as a daemon's listen.api is.
type HubListen struct {
	API *ListenAPI `yaml:"api"`
}

// LoadHub reads the configuration of a hub. Its error is a Mistakes when the file says something
// that cannot be carried out.
func LoadHub(path string) (*Hub, error) {
	body, err := ReadLimited(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ring.HostError{
			Says: fmt.Sprintf("cannot read the hub's configuration: %v", err),
			Hint: "--config names another file; docs/how-to/a-hub.md has one to begin with", Err: err,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the hub's configuration: %w", err)
	}
	h, wrong := parseHub(path, body)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if err := (&Config{File: path}).Owned(); err != nil {
		return nil, err
	}
	return h, nil
}

func parseHub(path string, body []byte) (*Hub, Mistakes) {
	h := &Hub{File: path}
	at, wrong := decodeInto(h, path, body, `begin with "listen:" and "api:"; see docs/how-to/a-hub.md`)
	if len(wrong) > 0 {
		return nil, wrong
	}
	orElse(&h.State, defaultHubState)
	k := &checker{file: path, lines: at, env: os.Getenv}
	if abs, err := filepath.Abs(filepath.Dir(path)); err == nil {
		k.dir = abs
	}
	k.folder("state", &h.State)
	k.path("api.tokens", &h.API.Tokens)
	if h.Listen.API == nil {
		k.wrong("listen", "listen: {api: {address: 127.0.0.1:9482}}", "listen.api is missing: nobody could report, and nobody look")
	}
	k.listenAPI(&Config{Listen: Listen{API: h.Listen.API}, API: h.API})
	k.oidc(h.API.OIDC, h.Listen.API)
	return h, k.mistakes.sorted()
}

// IsHub reports whether a file is the configuration of a hub: it has keys of one, and neither a host
// nor sources.
func IsHub(path string) bool {
	body, err := ReadLimited(path)
	if err != nil {
		return false
	}
	var said map[string]any
	if yaml.Unmarshal(body, &said) != nil || len(said) == 0 {
		return false
	}
	known := KnownKeys("Hub")
	for key := range said {
		if !slices.Contains(known, key) {
			return false
		}
	}
	return true
}
