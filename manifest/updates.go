package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/gitring/gitring/ring"
)

// updatesWords is x-gitring updates of one service, as written.
type updatesWords struct {
	place  place
	minAge *time.Duration
	window string
}

var updatesKeys = []string{"min_age", "window"}

// longestAge bounds min_age: what is followed later than that is followed by a commit.
const longestAge = 365 * 24 * time.Hour

func (d *decoder) updates(n *node, u *updatesWords) {
	u.place = n.place
	d.keys(n, "updates", updatesKeys)
	if m := n.get("min_age"); !m.null() {
		text := d.text(m, "min_age")
		v, ok := spanOf(text)
		if text == "0" {
			v, ok = 0, true
		}
		if m.kind == scalar && (!ok || v > longestAge) {
			d.bad(m.place, "write a duration such as 72h or 3d, at most 365d", "min_age: %q is no duration", head(text))
		}
		u.minAge = &v
	}
	if w := n.get("window"); !w.null() {
		u.window = d.text(w, "window")
		if _, err := ring.ParseWindow(u.window); err != nil && w.kind == scalar {
			d.bad(w.place, `write days and hours such as "Sat 02:00-05:00", "Mon-Fri 22:00-04:00" or "02:00-05:00"; the host's clock counts`, "window: %q is no time of the week", head(u.window))
			u.window = ""
		}
	}
}

var (
	spanWord  = regexp.MustCompile(`^([0-9]{1,6}[wdhms])+$`)
	spanParts = regexp.MustCompile(`([0-9]+)([wdhms])`)
)

// spanOf reads the durations of pull_policy: "12h", "1w2d".
func spanOf(s string) (time.Duration, bool) {
	if !spanWord.MatchString(s) {
		return 0, false
	}
	units := map[string]time.Duration{"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	var sum time.Duration
	for _, part := range spanParts.FindAllStringSubmatch(s, -1) {
		n, _ := strconv.Atoi(part[1]) // at most six digits
		sum += min(time.Duration(n), longestAge/time.Second) * units[part[2]]
		sum = min(sum, 10*longestAge)
	}
	return sum, true
}

// pullRefresh is the word of Compose that has its interval in another key.
const pullRefresh = types.PullPolicyRefresh

// everyOf is the interval of a pull_policy by the clock; ok is false for another word. That of
// refresh stands in another key.
func everyOf(policy string) (every time.Duration, ok bool) {
	switch policy {
	case "daily":
		return 24 * time.Hour, true
	case "weekly":
		return 7 * 24 * time.Hour, true
	}
	if words, every := strings.CutPrefix(policy, "every_"); every {
		v, ok := spanOf(words)
		return v, ok && v > 0 && v <= longestAge
	}
	return 0, false
}

// updates is how the tag of a service's image is followed by the clock; nil is never.
func (b *builderOf) updates(c types.ServiceConfig, x *extras) *ring.Updates {
	every, ok := everyOf(c.PullPolicy)
	word := c.PullPolicy
	if c.PullPolicy == pullRefresh {
		if every, ok = b.refreshAfter(c); !ok {
			return nil
		}
		word += " " + c.PullRefreshAfter
	} else if c.PullRefreshAfter != "" {
		b.note("%s: pull_refresh_after means nothing without pull_policy: refresh", c.Name)
	}
	if !ok {
		if x.updates.place.line > 0 && !b.lost("services", c.Name, "pull_policy") {
			b.bad(x.updates.place, "add pull_policy: daily, weekly or every_12h, or remove it", "services.%s: updates bounds a pull_policy by the clock, and there is none", c.Name)
		}
		return nil
	}
	if ring.ParseImage(c.Image).Digest != "" {
		b.note("%s: pull_policy %s asks nothing, because image names its digest", c.Name, word)
		return nil
	}
	u := ring.Updates{Word: word, Every: max(every, ring.LeastUpdates), Window: x.updates.window}
	if every < ring.LeastUpdates {
		b.note("%s: pull_policy %s is carried out as every hour, the shortest", c.Name, word)
	}
	if x.updates.minAge != nil {
		u.MinAge = *x.updates.minAge
	}
	b.note("%s: the tag of %s is followed by the clock (%s): each host asks by itself, so two hosts may run two digests of this commit", c.Name, c.Image, word)
	return &u
}

// refreshAfter is the interval of pull_policy: refresh.
func (b *builderOf) refreshAfter(c types.ServiceConfig) (time.Duration, bool) {
	every, ok := spanOf(c.PullRefreshAfter)
	if ok && every > 0 && every <= longestAge {
		return every, true
	}
	if b.lost("services", c.Name, "pull_refresh_after") {
		return 0, false
	}
	const hint = "write pull_refresh_after: 24h, or pull_policy: daily"
	if c.PullRefreshAfter == "" {
		b.bad(b.place("services", c.Name, "pull_policy"), hint, "services.%s: pull_policy refresh does not say how often", c.Name)
		return 0, false
	}
	b.bad(b.place("services", c.Name, "pull_refresh_after"), hint, "services.%s: pull_refresh_after %q is no duration", c.Name, head(c.PullRefreshAfter))
	return 0, false
}
