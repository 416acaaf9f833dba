package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// data is a folder as a database owns it: two processes on it would be the end
// of it. Its journal says who came, who went, and who was one too many.
type data struct {
	lock    *os.File
	journal string
}

// own takes the folder, or writes down that somebody else holds it.
func own(dir string) (*data, error) {
	d := &data{journal: filepath.Join(dir, "journal")}
	var err error
	if d.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, d.say("held"))
	}
	return d, d.say("start")
}

func (d *data) release() {
	if err := d.say("stop"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = d.lock.Close()
}

// say writes one line whole and has it on disk before it returns.
func (d *data) say(what string) error {
	f, err := os.OpenFile(d.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	_, err = fmt.Fprintf(f, "%s %s %s %d\n", what, os.Getenv("VERSION"), host, time.Now().UnixMilli())
	return errors.Join(err, f.Sync(), f.Close())
}
