package manifest

import (
	"path"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/go-units"
	"github.com/gitring/gitring/ring"
)

func longTmpfs(v types.ServiceVolumeConfig) ring.Mount {
	m := ring.Mount{Kind: ring.MountTmpfs, Target: v.Target, ReadOnly: v.ReadOnly}
	if v.Tmpfs != nil {
		m.Size, m.Mode = int64(v.Tmpfs.Size), v.Tmpfs.Mode
	}
	return m
}

// shortTmpfs is /path:size=64m,mode=1777,… as docker run takes it.
func (b *builderOf) shortTmpfs(service, s string) ring.Mount {
	target, options, _ := strings.Cut(s, ":")
	m := ring.Mount{Kind: ring.MountTmpfs, Target: path.Clean(target)}
	at := b.entryPlace(service, "tmpfs", func(n *node) bool { return n.text == s })
	if !path.IsAbs(target) || m.Target == "/" {
		b.bad(at, "mount at an absolute path below /", "services.%s.tmpfs %q is no target of a mount", service, head(target))
	}
	var rest []string
	for o := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(o, "=")
		var err error
		switch name {
		case "":
		case "ro":
			m.ReadOnly = true
		case "size":
			if m.Size, err = units.RAMInBytes(value); err != nil {
				m.Size = 0 // -1 would be judged as if it had been written
			}
			if err == nil && m.Size == 0 { // the kernel's word for no bound at all
				rest = append(rest, o)
			}
		case "mode":
			var mode uint64
			mode, err = strconv.ParseUint(value, 8, 32)
			m.Mode = uint32(mode)
		default:
			rest = append(rest, o)
		}
		if err != nil {
			b.bad(at, "write size=64m or mode=1777", "services.%s.tmpfs %q is no %s", service, head(value), name)
		}
	}
	m.Options = strings.Join(rest, ",")
	return m
}
