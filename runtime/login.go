package runtime

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
)

// Login is how a registry is signed in to, as the docker config file has it.
type Login struct {
	Helper  string // the program that knows, such as docker-credential-pass; "" is none
	Missing bool   // it is not on this process's PATH
	File    bool   // the file itself has them
}

// LoginOf says how the registry of an image is signed in to: by a helper of the host, else as
// the docker config file, or that of its folder, has it. It runs no helper.
func LoginOf(path string, helpers map[string]string, image string) (l Login, err error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return l, err
	}
	if name := HelperFor(helpers, reference.Domain(named)); name != "" {
		l.Helper = "docker-credential-" + name
		_, err := exec.LookPath(l.Helper)
		l.Missing = err != nil
		return l, nil
	}
	if path == "" {
		return l, nil
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, config.ConfigFileName)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	defer f.Close() //nolint:errcheck // only read
	cf, err := config.LoadFromReader(f)
	if err != nil {
		return l, errors.New(path + " is no docker config file") // its content is in no error
	}
	key := authKey(reference.Domain(named))
	store := cf.CredentialHelpers[key]
	if store == "" {
		store = cf.CredentialsStore
	}
	if store != "" {
		l.Helper = "docker-credential-" + store
		_, err := exec.LookPath(l.Helper)
		l.Missing = err != nil
		return l, nil
	}
	a := cf.AuthConfigs[key]
	l.File = a.Username != "" || a.IdentityToken != "" || a.RegistryToken != ""
	return l, nil
}
