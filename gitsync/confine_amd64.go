package gitsync

import kernel "golang.org/x/sys/unix"

// processor is what the filter of system calls has to know of this one.
var processor = struct {
	arch   uint32
	denied []uint32
}{kernel.AUDIT_ARCH_X86_64, []uint32{kernel.SYS_FORK, kernel.SYS_VFORK, kernel.SYS_IOPL, kernel.SYS_IOPERM, kernel.SYS_LINK, kernel.SYS_SYMLINK, kernel.SYS_MKNOD}}
