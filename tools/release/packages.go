package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

//go:embed packaging
var packaging embed.FS

// writePackage makes a deb or an rpm. Its scripts make the system user, and start nothing.
func writePackage(to, format string, t target, content []file, f facts) error {
	work, err := os.MkdirTemp("", "gitring-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	scripts := map[string]string{}
	for _, name := range []string{"postinstall.sh", "preremove.sh"} {
		text, err := packaging.ReadFile("packaging/" + name)
		if err != nil {
			return err
		}
		scripts[name] = filepath.Join(work, name)
		if err := os.WriteFile(scripts[name], text, 0o755); err != nil {
			return err
		}
	}
	contents := files.Contents{{Destination: "/etc/gitring", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755}}}
	for i, x := range content {
		place := installedAt(x.name)
		if place == "" {
			continue
		}
		if strings.HasSuffix(place, ".gz") {
			if x.data, err = gzipped(x.data); err != nil {
				return err
			}
		}
		from := filepath.Join(work, fmt.Sprint(i))
		if err := os.WriteFile(from, x.data, 0o644); err != nil {
			return err
		}
		contents = append(contents, &files.Content{
			Source: from, Destination: place,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: x.mode, MTime: f.date},
		})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "gitring", Arch: t.arch, Platform: "linux", Version: f.version, MTime: f.date,
		Section: "admin", Priority: "optional", License: "Apache-2.0",
		Maintainer: f.maintainer, Homepage: "https://github.com/gitring/gitring",
		Description: "runs what a signed commit asks for, and keeps it running\n" +
			"gitring follows a branch of a Git repository, trusts only what allowed keys\n" +
			"signed, and keeps the containers of this host equal to it.",
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Depends:    map[string][]string{"deb": {"passwd"}, "rpm": {"shadow-utils"}}[format],
			Recommends: []string{"git"},
			Contents:   contents,
			Scripts:    nfpm.Scripts{PostInstall: scripts["postinstall.sh"], PreRemove: scripts["preremove.sh"]},
			RPM:        nfpm.RPM{BuildHost: "gitring", Summary: "runs what a signed commit asks for, and keeps it running"},
		},
	})
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	return writeWhole(to, func(w io.Writer) error { return packager.Package(info, w) })
}

// installedAt is the place on a host of a file of the archive; "" is none.
func installedAt(name string) string {
	base := path.Base(name)
	switch path.Dir(name) {
	case "man":
		return "/usr/share/man/man1/" + base + ".gz"
	case "systemd":
		if strings.HasSuffix(base, ".service") {
			return "/usr/lib/systemd/system/" + base
		}
		return "/usr/share/doc/gitring/examples/" + base
	case "completions":
		return map[string]string{
			"gitring.bash": "/usr/share/bash-completion/completions/gitring",
			"_gitring":     "/usr/share/zsh/site-functions/_gitring",
			"gitring.fish": "/usr/share/fish/vendor_completions.d/gitring.fish",
		}[base]
	}
	switch base {
	case "gitring":
		return "/usr/bin/gitring"
	case "LICENSE":
		return "/usr/share/doc/gitring/copyright"
	case "THIRD_PARTY_LICENSES":
		return "/usr/share/doc/gitring/THIRD_PARTY_LICENSES.gz"
	}
	return ""
}

// gzipped is the text compressed, with no name and no time in it.
func gzipped(text []byte) ([]byte, error) {
	var b bytes.Buffer
	g, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := g.Write(text); err != nil {
		return nil, err
	}
	if err := g.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
