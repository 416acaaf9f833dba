package gitsync

import kernel "golang.org/x/sys/unix"

// processor is what the filter of system calls has to know of this one.
var processor = struct {
	arch   uint32
	denied []uint32
}{arch: kernel.AUDIT_ARCH_AARCH64}
