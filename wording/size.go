package wording

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sizeUnits are those of an amount of bytes that people read, the largest first.
var sizeUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// ExactSize is a limit as somebody set it, such as "64 MiB": in the largest unit that
// divides it, so that nothing of it is rounded away.
func ExactSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// RoundSize is an amount that was measured, such as "1.5 GiB": in the largest unit that
// it fills, with one digit after the point where it is not even.
func RoundSize(n int64) string {
	for _, u := range sizeUnits {
		if n < u.size {
			continue
		}
		if n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
		return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
	}
	return fmt.Sprintf("%d B", max(0, n))
}

// ShortSize is an amount in a column of a table, such as "512MiB": what is below a GiB has
// no digit after the point.
func ShortSize(n int64) string {
	for _, u := range sizeUnits {
		if n < u.size && u.size > 1<<10 {
			continue
		}
		digits := 0
		if u.size == 1<<30 {
			digits = 1
		}
		return fmt.Sprintf("%.*f%s", digits, float64(n)/float64(u.size), u.name)
	}
	return ""
}

// settingUnits are those of a size in a configuration, the smallest first.
var settingUnits = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// SettingSize is a size as a configuration has it, such as "512MiB": what ParseSize reads.
func SettingSize(n int64) string {
	power := 0
	for n > 0 && n%1024 == 0 && power+1 < len(settingUnits) {
		n, power = n/1024, power+1
	}
	return strconv.FormatInt(n, 10) + settingUnits[power]
}

// ParseSize reads a size of a configuration: a whole number of one of the units. It
// reports whether there is one that fits.
func ParseSize(s string) (int64, bool) {
	digits := strings.TrimRight(s, "BKMGTi ")
	power := slices.Index(settingUnits, strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if power < 0 || err != nil || n > math.MaxInt64>>(10*power) {
		return 0, false
	}
	return n << (10 * power), true
}
