package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// calm waits until the machine had little to do for a third of a second, at most
// as long as -calm says: other people's work is not what is measured.
func (b *bench) calm(ctx context.Context) error {
	until := time.Now().Add(b.settings.calm)
	busy, all := cpuTime()
	for time.Now().Before(until) {
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		busyNow, allNow := cpuTime()
		if 8*(busyNow-busy) <= allNow-all {
			return nil
		}
		busy, all = busyNow, allNow
	}
	return nil
}

// cpuTime is the machine's, in ticks: not idle, and in all. Both are zero where
// the kernel does not tell.
func cpuTime() (busy, all int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 { // "cpu", and guests, which are in user time
			continue
		}
		all += n
		if i != 4 && i != 5 { // idle, and waiting for a disk
			busy += n
		}
	}
	return busy, all
}
