package config

import (
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// SocketOf reads no more of a configuration than it needs: whoever asks for
// the status of a daemon shall get it while the file is being edited.
func SocketOf(config string) string {
	body, err := ReadLimited(config)
	if err != nil {
		return ""
	}
	var c struct {
		Listen struct {
			Socket string `yaml:"socket"`
		} `yaml:"listen"`
	}
	if yaml.Unmarshal(body, &c) != nil || c.Listen.Socket == "" {
		return ""
	}
	k := &checker{env: os.Getenv}
	if k.dir, err = filepath.Abs(filepath.Dir(config)); err != nil {
		return ""
	}
	k.path("listen.socket", &c.Listen.Socket)
	if len(k.mistakes) > 0 {
		return ""
	}
	return c.Listen.Socket
}
