package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A path is followed as the kernel does it, and no further than a folder that a
// container may write to: whatever lies there counts only if it is no link.
func TestNoPathIsFollowedThroughALinkThatAContainerMayHavePlanted(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(p string) string { return filepath.Join(root, p) }
	for _, dir := range []string{"app/data/sub/deep", "pool/data", "etc"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	for name, to := range map[string]string{
		"srv": "pool", "app/data/up": "..", "app/data/etc": at("etc"), "app/data/dangling": "/nowhere", "app/data/sub/etc": "../../../etc",
		"loop": "loop", "pool/root": at("pool/../etc"), "chain": "app/data/etc",
	} {
		require.NoError(t, os.Symlink(to, at(name)))
	}
	written := []string{at("app/data")}
	for _, tt := range []struct{ path, to, says string }{
		{"app/data", "app/data", ""},
		{"app/data/sub/deep", "app/data/sub/deep", ""},
		{"pool/data", "pool/data", ""},
		{"srv/data", "pool/data", ""}, // the host's own hand
		{"srv/root", "etc", ""},
		{"srv/missing/x", "pool/missing/x", "no such file"},
		{"app/data/missing", "app/data/missing", "no such file"},
		{"app/data/etc", "", "is a link"},
		{"app/data/etc/passwd", "", "is a link"},
		{"app/data/up", "", "is a link"},
		{"app/data/dangling", "", "is a link"},
		{"app/data/sub/etc", "", "is a link"},
		{"app/data/sub/../etc", "", "is a link"},
		{"chain", "", "is a link"}, // leads into the folder, and out of it
		{"loop", "", "too many levels"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			to, err := walkPath(root+"/"+tt.path, written)
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.says)
			}
			if tt.to != "" {
				require.Equal(t, at(tt.to), to)
			}
			var planted *plantedLink
			require.Equal(t, tt.says == "is a link", err != nil && asLink(err, &planted), "%v", err)
		})
	}
}

func asLink(err error, to **plantedLink) bool {
	p, ok := err.(*plantedLink)
	*to = p
	return ok
}

func TestARefusedLinkIsNamedWithWhereItLeads(t *testing.T) {
	err := &plantedLink{link: "/srv/app/up", to: "/mnt/big/up", folder: "/srv/app"}
	require.EqualError(t, err, "/srv/app/up is a link to /mnt/big/up, in the folder /srv/app that a container may write to")
	h := hostMounts{}
	var no *ring.EngineError
	require.ErrorAs(t, h.denied(ring.HostMount{Source: "/srv/app/up/x", Target: "/data"}, err), &no)
	require.Equal(t, "mounts.links: /srv/app/up/x at /data: "+err.Error(), no.Refusal.Says)
	require.Equal(t, "remove the link /srv/app/up, or mount /mnt/big/up itself", no.Refusal.Hint)
}

// Where the kernel lacks openat2 the same paths are refused.
func TestAPathIsOpenedPartByPartWithoutLinks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	require.NoError(t, os.Symlink("a", filepath.Join(root, "l")))
	require.NoError(t, os.Symlink("b", filepath.Join(root, "a/l")))
	for path, fine := range map[string]bool{"a/b": true, "a": true, "l/b": false, "a/l": false, "l": false, "a/b/c": false} {
		fd, err := openPartByPart(filepath.Join(root, path))
		require.Equal(t, fine, err == nil, "%s: %v", path, err)
		if err == nil {
			require.NoError(t, os.NewFile(uintptr(fd), path).Close())
		}
	}
}
