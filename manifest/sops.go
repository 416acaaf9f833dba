package manifest

import (
	"bytes"
	"regexp"

	"github.com/gitring/gitring/ring"
	"gopkg.in/yaml.v3"
)

// sopsMAC is what every file that SOPS encrypted ends with, in each of its forms.
var (
	sopsValue = []byte("ENC[AES256_GCM,data:")
	sopsLines = regexp.MustCompile(`(?m)^sops_mac\s*=\s*"?ENC\[AES256_GCM,data:`)
	sopsINI   = regexp.MustCompile(`(?m)^\[sops\]\s*$`)
	iniMAC    = regexp.MustCompile(`(?m)^mac\s*=\s*ENC\[AES256_GCM,data:`)
	yamlMAC   = regexp.MustCompile(`(?m)["']?\bmac["']?\s*:\s*["']?ENC\[AES256_GCM,data:`)
)

// sopsEncrypted reports whether SOPS encrypted a file: by its own metadata, and
// not by the file's name.
func sopsEncrypted(body []byte) bool {
	if !bytes.Contains(body, sopsValue) {
		return false
	}
	if sopsLines.Match(body) || sopsINI.Match(body) && iniMAC.Match(body) {
		return true
	}
	if !yamlMAC.Match(body) {
		return false
	}
	var file struct {
		SOPS struct {
			MAC string `yaml:"mac"`
		} `yaml:"sops"`
	}
	return yaml.Unmarshal(body, &file) == nil && bytes.HasPrefix([]byte(file.SOPS.MAC), sopsValue)
}

// ciphertext refuses a file that a container would be given as ciphertext.
func ciphertext(p string, at place) *fault {
	return &fault{
		code: ring.Unsupported, place: at, says: p + " is encrypted with SOPS, and this release does not decrypt it",
		hint: "put the values into the host's env folder (env.dir), and take the encrypted file out of what is mounted or read",
	}
}
