package doctor

import (
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	mib = 1 << 20

	leastRoom   = 100 * mib
	littleRoom  = 1024 * mib
	fewInodes   = 10_000
	leastInodes = 500
	oldBackup   = 30 * 24 * time.Hour

	skewed = 30 * time.Second
	wrong  = 5 * time.Minute
)

func stateChecks(s *Seen) []Check {
	return []Check{
		folderCheck(&s.Folder), diskSortCheck(&s.Folder), frontsCheck(&s.Fronts), roomCheck(&s.Disk), inodeCheck(&s.Disk),
		journalCheck(s.Journal), storeCheck(s.Status), configCheck(s.Status), backupCheck(&s.Backup, s.Now), trialCheck(&s.Trial, s.Now),
	}
}

func folderCheck(f *Folder) Check {
	c, skipped := a("state", "owner and mode").unless(f.Asked)
	switch {
	case skipped:
		return c
	case f.Mode&0o077 != 0:
		return c.is(Fail, "chmod 0700 "+f.Path, "%s has mode %04o: others may read it", f.Path, f.Mode)
	case f.Owner >= 0 && f.User >= 0 && f.Owner != f.User:
		return c.is(Warn, "chown it to the daemon's user", "%s belongs to user %d, and user %d asks", f.Path, f.Owner, f.User)
	}
	return c.is(OK, "", "%s has mode %04o", f.Path, f.Mode)
}

func diskSortCheck(f *Folder) Check {
	c, skipped := a("state", "file system").unless(f.Asked)
	switch {
	case skipped:
		return c
	case f.FileSort == "tmpfs":
		return c.is(Fail, "give state a folder on a disk", "%s is in memory: a reboot empties it", f.Path)
	case f.FileSort != "":
		return c.is(Fail, "give state a folder on a local disk: locks and SQLite need one", "%s is on %s", f.Path, f.FileSort)
	}
	return c.is(OK, "", "a local one")
}

func frontsCheck(f *Fronts) Check {
	c, skipped := a("state", "fronts can run").unless(f.Asked)
	switch {
	case skipped:
		return c
	case f.NoExec:
		return c.is(Warn, "mount it without noexec, or set publish: direct: a front runs the program that lies there", "%s is on a mount with noexec", f.Path)
	}
	return c.is(OK, "", "programs in %s may run", f.Path)
}

func roomCheck(d *Disk) Check {
	c, skipped := a("state", "room").unless(d.Asked)
	switch {
	case skipped:
		return c
	case d.Free < leastRoom:
		return c.is(Fail, "make room there: without it nothing is deployed or healed", "%d MiB are free", d.Free/mib)
	case d.Free < littleRoom:
		return c.is(Warn, "make room there soon", "%d MiB are free", d.Free/mib)
	}
	return c.is(OK, "", "%d MiB are free", d.Free/mib)
}

func inodeCheck(d *Disk) Check {
	c, skipped := a("state", "inodes").unless(d.Asked)
	switch {
	case skipped:
		return c
	case !d.Counts:
		return c.is(OK, "", "the file system does not count them")
	case d.Inodes < leastInodes:
		return c.is(Fail, "remove files there: no new one can be made", "%d are left", d.Inodes)
	case d.Inodes < fewInodes:
		return c.is(Warn, "remove files there soon", "%d are left", d.Inodes)
	}
	return c.is(OK, "", "%d are left", d.Inodes)
}

func journalCheck(j Asked) Check {
	c := a("state", "journal")
	switch {
	case !j.Asked:
		return c.is(Skip, "", "nobody could ask")
	case j.Err != "":
		return c.is(Fail, "somebody or something changed it: compare with a backup", "%s", j.Err)
	}
	return c.is(OK, "", "its chain is whole")
}

func storeCheck(st *ring.Status) Check {
	c, skipped := a("state", "writable").noDaemon(st)
	switch {
	case skipped:
		return c
	case st.Store != "":
		return c.is(Fail, "nothing is done until it can be written down", "%s", st.Store)
	}
	return c.is(OK, "", "the last decision was written down")
}

func configCheck(st *ring.Status) Check {
	c, skipped := a("state", "configuration").noDaemon(st)
	switch {
	case skipped:
		return c
	case st.Config != "":
		return c.is(Fail, "gitring config check tells of each mistake", "not read anew: %s", st.Config)
	case st.ConfigDiffers:
		return c.is(Warn, "systemctl reload gitring takes it up", "its file was changed since it was read")
	}
	return c.is(OK, "", "what runs is what its file says")
}

func backupCheck(b *Backup, now time.Time) Check {
	c, skipped := a("state", "backup").unless(b.Asked)
	const hint = "gitring backup <file> makes one, while the daemon runs"
	switch {
	case skipped:
		return c
	case b.At.IsZero() && b.Since.IsZero():
		return c.is(Skip, "", "none is known, and since when gitring is here is not known either")
	case b.At.IsZero() && now.Sub(b.Since) > oldBackup:
		return c.is(Warn, hint, "gitring made none yet")
	case b.At.IsZero():
		return c.is(OK, "", "none yet: this host is young")
	case now.Sub(b.At) > oldBackup:
		return c.is(Warn, hint, "the last one is %d days old", int(now.Sub(b.At).Hours()/24))
	}
	return c.is(OK, "", "the last one was made %s", b.At.UTC().Format(time.DateOnly))
}

func trialCheck(t *Trial, now time.Time) Check {
	c, skipped := a("state", "upgrade").unless(t.Asked)
	switch {
	case skipped:
		return c
	case t.On && now.After(t.Until):
		return c.is(Warn, "sudo gitring upgrade --resume finishes it, or puts it back", "gitring %s is on trial since longer than any upgrade takes", t.To)
	case t.On:
		return c.is(OK, "", "gitring %s is on trial, until %s at the latest", t.To, t.Until.UTC().Format(time.TimeOnly))
	}
	return c.is(OK, "", "none is under way")
}

func clockChecks(s *Seen) []Check {
	c, skipped := a("clock", "synchronised").unless(s.Clock.Asked)
	switch {
	case skipped:
	case !s.Clock.Synced:
		c = c.is(Warn, "run systemd-timesyncd or chrony: expiry of keys and grants goes by this clock", "nothing keeps it")
	default:
		c = c.is(OK, "", "the kernel says so")
	}
	out := []Check{c}
	for i := range s.Skews {
		out = append(out, skewCheck(&s.Skews[i]))
	}
	return out
}

func skewCheck(k *Skew) Check {
	c, skipped := a("clock", "against "+k.Host).unless(k.Asked)
	const hint = "one of the two clocks is wrong; ask a third"
	by := k.By.Abs().Round(time.Second)
	switch {
	case skipped:
		return c
	case by >= wrong:
		return c.is(Fail, hint, "%s apart", by)
	case by >= skewed:
		return c.is(Warn, hint, "%s apart", by)
	}
	return c.is(OK, "", "%s apart", by)
}
