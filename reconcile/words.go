package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

func say(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// keysThat are the keys of which is says so, sorted.
func keysThat[K cmp.Ordered, V any](m map[K]V, is func(K) bool) (out []K) {
	for k := range m {
		if is(k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func firstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// put has m made when something is first put into it: at rest there is nothing to say.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// roomForMore has room for one more, and for as many again where there is none: append's own
// steps are small, and a look in which a thousand rollouts begin would copy its actions,
// which are large, a dozen times.
func roomForMore[T any](all []T) []T {
	if len(all) < cap(all) {
		return all
	}
	return slices.Grow(all, max(4, len(all)))
}

// manyMore is from how many on there may well be one for each.
const manyMore = 64

// roomForAll is roomForMore, where there may be one for each of so many: what has become many
// gets the room for all at once. An action is a kilobyte, and each doubling copies them all.
func roomForAll[T any](all []T, each int) []T {
	if len(all) < cap(all) || len(all) < manyMore || len(all) >= each {
		return roomForMore(all)
	}
	return slices.Grow(all, each-len(all))
}

// clock is a time as reasons name it.
func clock(u time.Time) string { return u.UTC().Format("2006-01-02 15:04") + " UTC" }

func utc(u time.Time) time.Time {
	if u.IsZero() {
		return u
	}
	return u.UTC()
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
