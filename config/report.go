package config

import (
	"net/url"
	"strings"
)

// ReportConfig is the hub that this host reports to.
type ReportConfig struct {
	URL string `yaml:"url"`
	// TokenFile has a token of the hub with the scope report:<host>.
	TokenFile string `yaml:"token_file"`
	// Plain says that plain HTTP beyond this host is meant.
	Plain bool `yaml:"plain"`
}

// report judges where this host reports. Its token goes over nothing plain by mistake.
func (k *checker) report(r *ReportConfig) {
	if r == nil {
		return
	}
	const at = "report"
	if r.TokenFile == "" {
		k.wrong(at, "gitring token new <host> --scope report:<host> on the hub prints one; write it to a file of its own", "report.token_file is missing")
	}
	k.path(at+".token_file", &r.TokenFile)
	u, err := url.Parse(r.URL)
	switch {
	case r.URL == "":
		k.wrong(at, "url: https://hub.example.org", "report.url is missing")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		k.wrong(at+".url", "such as https://hub.example.org", "report.url: %q is no address of a hub, without path and query", withoutUser(r.URL))
	case u.Scheme == "http" && !isLoopback(u.Hostname()) && !r.Plain:
		k.wrong(at+".url", "write https://, or add plain: true inside a tailnet or WireGuard", "report.url: %q would show the token to whoever is between", r.URL)
	default:
		r.URL = strings.TrimRight(r.URL, "/")
	}
	if u != nil && u.Scheme == "https" && r.Plain {
		k.wrong(at+".plain", "take it out", "report.plain: the url is https")
	}
}
