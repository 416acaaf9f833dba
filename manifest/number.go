package manifest

import (
	"fmt"
	"math"
	"strconv"

	"github.com/docker/go-units"
)

// The number checks below look at what is written, with its line. compose-go
// takes less: some numbers that it cannot hold it reads as 0 and says nothing.

// number is for a number from least to most.
func number(least, most int64) func(k *keyCheck) {
	return func(k *keyCheck) {
		n, ok := wholeOf(k.key.val)
		if ok && n >= least && n <= most {
			return
		}
		hint := fmt.Sprintf("write a whole number from %d to %d", least, most)
		if most == math.MaxInt64 {
			hint = fmt.Sprintf("write a whole number from %d on", least)
		}
		k.bad(hint, "%q is not such a number", head(k.text()))
	}
}

// wholeOf is the number that a node holds, as a number or as a text.
func wholeOf(n *node) (int64, bool) {
	if n == nil || n.kind != scalar || n.tag != tagInt && n.tag != "!!str" {
		return 0, false
	}
	v, err := strconv.ParseInt(fmt.Sprint(n.value()), 10, 64)
	return v, err == nil
}

// fraction is for a number of CPUs.
func fraction(k *keyCheck) {
	f, err := strconv.ParseFloat(fmt.Sprint(k.key.val.value()), 64)
	if err != nil || !(f >= 0 && f <= 1e6) {
		k.bad("write a number such as 0.5", "%q is no number of CPUs", head(k.text()))
	}
}

// nanos is a number of CPUs in billionths. compose-go keeps it in 32 bits, so
// that what was written is the shortest number that comes to it.
func nanos(cpus float32) int64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(cpus), 'g', -1, 32), 64)
	if err != nil {
		return 0
	}
	return int64(math.Round(f * 1e9))
}

// amount is for a size in bytes. unlimited says that it may be -1.
func amount(unlimited bool) func(k *keyCheck) {
	return func(k *keyCheck) {
		n, ok := bytesOf(k.key.val)
		switch {
		case ok && (n >= 0 || unlimited && n == -1):
		case unlimited:
			k.bad("write a size such as 512m or 2g, or -1 for no limit", "%q is no size", head(k.text()))
		default:
			k.bad("write a size such as 512m or 2g", "%q is no size", head(k.text()))
		}
	}
}

func bytesOf(n *node) (int64, bool) {
	if v, ok := wholeOf(n); ok {
		return v, true
	}
	if n.kind != scalar || n.tag != "!!str" {
		return 0, false
	}
	v, err := units.RAMInBytes(n.text)
	return v, err == nil
}
