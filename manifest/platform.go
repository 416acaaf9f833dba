package manifest

import (
	"regexp"
	"strings"
)

// platforms are os/arch[/variant]. Only the form is checked: the registry knows
// what it has.
var platforms = regexp.MustCompile(`^[a-z0-9_.-]+/[a-z0-9_.-]+(/[a-z0-9_.-]+)?$`)

func platform(k *keyCheck) {
	p := strings.ToLower(k.text())
	switch {
	case p == "":
	case !platforms.MatchString(p):
		k.bad("write os/arch, such as linux/amd64 or linux/arm64/v8", "%q is no platform", head(k.text()))
	case !strings.HasPrefix(p, "linux/"):
		k.refuse("%s is not Linux, which is all that gitring runs", "write linux/amd64, or remove it", head(k.text()))
	}
}
