//go:build linux

package gitsync

import kernel "golang.org/x/sys/unix"

// processor is this one's name in the kernel; the filter checks it before it takes
// a number for a system call.
const processor uint32 = kernel.AUDIT_ARCH_AARCH64
