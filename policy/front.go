package policy

import (
	"cmp"
	"path"
	"reflect"
	"slices"

	"github.com/gitring/gitring/ring"
)

// frontRepository is the name of the images that gitring makes for fronts.
const frontRepository = "docker.io/gitring/front"

var frontsRule = rule{
	name: "images.fronts", key: "image", grade: forbidden, check: func(l *look) {
		if len(l.req.Front) == 0 {
			l.frontImage(l.text())
		}
	},
	risk: "is the image of gitring's own fronts", lets: "all but `gitring/front`",
}

// frontImage finds the image of fronts where another service has it.
func (l *look) frontImage(image string) {
	if ring.ParseImage(image).Name == frontRepository {
		l.find(finding{value: image, instead: "name an image of your own"})
	}
}

// frontMount reports whether a bind is one that gitring itself gives this very front: by
// exact equality, with nothing more open than there. Its label for SELinux is gitring's too.
func (q *Request) frontMount(b bind) bool {
	return cmp.Or(b.propagation, "rprivate") == "rprivate" && path.Clean(b.source) == b.source &&
		slices.Contains(q.Front, ring.HostMount{Source: b.source, Target: b.target, ReadOnly: b.readOnly})
}

// frontsOwn reports whether the field of a front holds what gitring itself gives every front,
// to the letter. A host's lists are for what authors say.
func (l *look) frontsOwn() bool {
	if l.req.FrontOf == "" {
		return false
	}
	switch l.path {
	case "HostConfig.LogConfig.Type":
		return l.text() == "json-file"
	case "HostConfig.SecurityOpt":
		return reflect.DeepEqual(l.v.Interface(), []string{"no-new-privileges=true"})
	case "HostConfig.Sysctls":
		return reflect.DeepEqual(l.v.Interface(), map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"})
	}
	return false
}

// frontSource reports whether a path is the source of such a mount.
func (q *Request) frontSource(source string) bool {
	return slices.ContainsFunc(q.Front, func(m ring.HostMount) bool { return plain(m.Source) == source })
}
