//go:build unix

package runtime

import (
	"os"
	"syscall"
)

func owner(dir *os.Root, name string) (uid, gid int, err error) {
	st, err := dir.Lstat(name)
	if err != nil {
		return 0, 0, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return os.Getuid(), os.Getgid(), nil
	}
	return int(sys.Uid), int(sys.Gid), nil
}
