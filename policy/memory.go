package policy

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// inode is about what one file without content costs a tmpfs, in bytes of the kernel's memory.
const inode = 1 << 10

// tmpfsAt is one tmpfs of a container.
type tmpfsAt struct {
	target string
	bytes  int64  // 0 is without a size: the kernel's half of the memory
	bad    string // the option that alone is beyond every bound, such as size=0
}

// tmpfsTogether judges all tmpfs of a container, in both forms that the engine takes:
// each fits, they fit together, and without a size the container's memory is their bound.
func tmpfsTogether(l *look) {
	var sum int64
	tmpfsMax := l.r.lists().TmpfsMax
	limited := l.v.FieldByName("Memory")
	for _, t := range tmpfsOf(l.v, tmpfsMax) {
		switch {
		case t.bad != "":
			l.find(finding{value: t.target + " " + t.bad, at: t.target})
		case t.bytes == 0 && !(limited.IsValid() && limited.Int() > 0):
			l.find(finding{value: t.target, at: t.target, note: true, risk: "has no size, and the service no memory limit: it may fill half of the host's memory"})
		case t.bytes > tmpfsMax:
			l.find(finding{value: fmt.Sprintf("%s size=%d", t.target, t.bytes), at: t.target})
		case sum+t.bytes > tmpfsMax:
			l.find(finding{value: fmt.Sprintf("%s size=%d", t.target, t.bytes), at: t.target, risk: "may fill more of the host's memory than one service may, together with the service's other tmpfs"})
		}
		sum = min(sum, math.MaxInt64-max(t.bytes, 0)) + max(t.bytes, 0)
	}
}

// tmpfsOf are the tmpfs of a HostConfig, by target: its map's, then its mounts'.
func tmpfsOf(host reflect.Value, most int64) []tmpfsAt {
	var out []tmpfsAt
	if older := host.FieldByName("Tmpfs"); older.IsValid() && older.Kind() == reflect.Map {
		all := map[string]string{}
		for it := older.MapRange(); it.Next(); {
			all[textOf(it.Key())] = textOf(it.Value())
		}
		for _, target := range sortedKeys(all) {
			out = append(out, tmpfsAsWritten(target, all[target], most))
		}
	}
	mounts := host.FieldByName("Mounts")
	for i := 0; mounts.IsValid() && i < mounts.Len(); i++ {
		m := deref(mounts.Index(i))
		if textOf(m.FieldByName("Type")) != "tmpfs" {
			continue
		}
		t := tmpfsAt{target: textOf(m.FieldByName("Target"))}
		if o := deref(m.FieldByName("TmpfsOptions")); o.IsValid() {
			if t.bytes = o.FieldByName("SizeBytes").Int(); t.bytes < 0 {
				t.bad = fmt.Sprintf("size=%d", t.bytes)
			}
		}
		out = append(out, t)
	}
	return out
}

// tmpfsAsWritten reads the kernel's words for one tmpfs. Of several sizes the largest
// counts: which one the kernel takes is not for us to say.
func tmpfsAsWritten(target, options string, most int64) tmpfsAt {
	t := tmpfsAt{target: target}
	for o := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(o), "=")
		unit := int64(0)
		switch strings.ToLower(name) {
		case "size":
			unit = 1
		case "nr_blocks":
			unit = 4 << 10
		case "nr_inodes":
			unit = inode
		default:
			continue
		}
		n, ok := kernelSize(value)
		if !ok || n <= 0 || n > most/unit { // 0 is without any bound
			t.bad = o
			continue
		}
		if unit != inode {
			t.bytes = max(t.bytes, n*unit)
		}
	}
	return t
}

// kernelSize reads a number as the kernel does: decimal, 0x… or 0…, and a unit. A share
// of the host's memory, such as 50%, is not known here.
func kernelSize(s string) (int64, bool) {
	digits, unit := strings.ToLower(s), int64(1)
	for i, u := range []string{"k", "m", "g", "t"} {
		if cut, ok := strings.CutSuffix(digits, u); ok {
			digits, unit = cut, 1<<(10*(i+1))
		}
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
