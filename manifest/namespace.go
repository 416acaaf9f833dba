package manifest

// hostOnly is for a namespace that is the container's own or the host's: uts
// and userns_mode.
func hostOnly(k *keyCheck) {
	if mode := k.text(); mode != "" && mode != "host" {
		k.bad("write host, or remove it", "%q is no such namespace", head(mode))
	}
}
