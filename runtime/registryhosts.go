package runtime

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/registry"
)

// registryHost is one place that has a registry's images, as the engine would ask it.
type registryHost struct {
	host     string // host:port
	mirror   bool   // of Docker Hub: it has bytes, and no last word
	plain    bool   // plain HTTP
	insecure bool   // whose certificate nobody looks at
}

// hubHost is where Docker Hub answers.
const hubHost = "registry-1.docker.io"

// registryHosts are the places to ask for an image of a registry, in the engine's order: the
// mirrors that it was given for Docker Hub, then the registry. conf is what the engine says of
// registries; nil is nothing.
func registryHosts(ctx context.Context, domain string, conf *registry.ServiceConfig) []registryHost {
	var out []registryHost
	if domain != "docker.io" {
		return append(out, asInsecure(ctx, registryHost{host: domain}, conf)...)
	}
	if conf != nil {
		for _, m := range conf.Mirrors {
			at, err := url.Parse(m)
			if err != nil || at.Host == "" || strings.Trim(at.Path, "/") != "" {
				continue
			}
			switch h := (registryHost{host: at.Host, mirror: true}); at.Scheme {
			case "https":
				out = append(out, asInsecure(ctx, h, conf)[0])
			case "http":
				h.plain = true
				out = append(out, h)
			}
		}
	}
	return append(out, registryHost{host: hubHost})
}

// asInsecure is a host, and where the engine does not insist on a certificate, the same one
// in clear behind it.
func asInsecure(ctx context.Context, h registryHost, conf *registry.ServiceConfig) []registryHost {
	if !isInsecure(ctx, h.host, conf) {
		return []registryHost{h}
	}
	h.insecure = true
	clear := h
	clear.plain = true
	return []registryHost{h, clear}
}

// isInsecure is the engine's own rule: a registry that its list names, or of which an address
// lies in a network that the list names.
func isInsecure(ctx context.Context, host string, conf *registry.ServiceConfig) bool {
	if conf == nil {
		return false
	}
	if i := conf.IndexConfigs[host]; i != nil {
		return !i.Secure
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", strings.Trim(name, "[]"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		return slices.ContainsFunc(conf.InsecureRegistryCIDRs, func(n *registry.NetIPNet) bool {
			return n != nil && (*net.IPNet)(n).Contains(a.Unmap().AsSlice())
		})
	})
}

// certsFolder is where the engine looks for the certificates of registries.
const certsFolder = "/etc/docker/certs.d"

// tlsOf is how a registry's certificate is judged, as the engine does: by the authorities of
// this host and those that lie in its own folder, with the client's own certificate there.
func tlsOf(folder string, h registryHost) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: h.insecure} //nolint:gosec // the engine's list says so
	dir := filepath.Join(folder, h.host)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		switch filepath.Ext(name) {
		case ".crt":
			body, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if c.RootCAs == nil {
				if c.RootCAs, err = x509.SystemCertPool(); err != nil {
					c.RootCAs = x509.NewCertPool()
				}
			}
			c.RootCAs.AppendCertsFromPEM(body)
		case ".cert":
			pair, err := tls.LoadX509KeyPair(name, strings.TrimSuffix(name, ".cert")+".key")
			if err != nil {
				return nil, err
			}
			c.Certificates = append(c.Certificates, pair)
		}
	}
	return c, nil
}
