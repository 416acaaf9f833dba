package daemon

import (
	"syscall"

	"github.com/gitring/gitring/doctor"
)

// File systems that no state may be on, by the kernel's number (statfs(2)).
var notLocal = map[int64]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb", 0x517b: "smb", 0x01021994: "tmpfs", 0x858458f6: "tmpfs",
	0x65735546: "fuse", 0x00c36400: "ceph", 0x01021997: "9p", 0x5346414f: "afs",
}

// probeDisk asks for the sort and the room of the file system of a folder.
func probeDisk(dir string) (string, doctor.Disk) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", doctor.Disk{Asked: answer(err)}
	}
	return notLocal[int64(s.Type)&0xffffffff], doctor.Disk{
		Asked: answer(nil), Free: s.Bavail * uint64(s.Bsize), Inodes: s.Ffree, Counts: s.Files > 0, //nolint:gosec // a size is no negative number
	}
}

// noExec is the flag of a mount that lets no program run (statfs(2), ST_NOEXEC).
const noExec = 8

// probeFronts asks whether the program of fronts may run where it lies: a bind mount of the
// folder has the flags of the mount that it is on.
func probeFronts(dir string) doctor.Fronts {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	return doctor.Fronts{Asked: answer(err), Path: dir, NoExec: s.Flags&noExec != 0}
}

// notSynced is the kernel's flag that nothing keeps its clock (adjtimex(2)).
const notSynced = 0x0040

// probeClock reads what the kernel says of its clock, and sets nothing.
func probeClock() doctor.Clock {
	var t syscall.Timex
	_, err := syscall.Adjtimex(&t)
	return doctor.Clock{Asked: answer(err), Synced: t.Status&notSynced == 0}
}
