//go:build !amd64 && !arm64

package gitsync

// processor is unknown here: the numbers of system calls are not those of others.
var processor struct {
	arch   uint32
	denied []uint32
}
