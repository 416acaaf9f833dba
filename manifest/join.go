package manifest

import (
	"strings"
)

func networkMode(k *keyCheck) {
	switch mode := k.text(); {
	case mode == "none" || mode == "":
	case mode == "host":
		k.deny("host: the container shares the host's network, with every service on it")
	case strings.HasPrefix(mode, "container:"):
		k.deny("container: the container joins the network of a container of others")
	default:
		k.refuse("%s is not carried out by this release", "use networks:, or network_mode: none", head(mode))
	}
}

// namespace is for pid, ipc, uts and userns_mode.
func namespace(k *keyCheck) {
	key := k.chain[len(k.chain)-1]
	switch mode := k.text(); {
	case mode == "":
	case mode == "host":
		k.deny("host: the container shares the host's %s namespace", strings.TrimSuffix(key, "_mode"))
	case strings.HasPrefix(mode, "container:"):
		k.deny("container: the container joins the %s namespace of a container of others", key)
	default:
		k.refuse("%s is not carried out by this release", "remove it", head(mode))
	}
}

func volumesFrom(k *keyCheck) {
	for _, w := range k.key.val.words() {
		if strings.HasPrefix(w, "container:") {
			k.deny("container: the container gets the volumes of a container of others")
			return
		}
	}
	if !k.key.val.asksNothing() {
		k.refuse("is not carried out by this release", "mount the same volumes in both services")
	}
}
