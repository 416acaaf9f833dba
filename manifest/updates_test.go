package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func planOf(lines ...string) ring.Plan {
	plan, _ := Read(repo(web(lines...)), settings())
	return plan
}

func TestAPullPolicyByTheClockSaysHowOften(t *testing.T) {
	for _, x := range []struct {
		lines string
		want  *ring.Updates
		note  string
	}{
		{"pull_policy: daily", &ring.Updates{Word: "daily", Every: 24 * time.Hour}, "followed by the clock (daily)"},
		{"pull_policy: weekly", &ring.Updates{Word: "weekly", Every: 7 * 24 * time.Hour}, "two hosts may run two digests"},
		{"pull_policy: every_12h", &ring.Updates{Word: "every_12h", Every: 12 * time.Hour}, "(every_12h)"},
		{"pull_policy: every_1d12h", &ring.Updates{Word: "every_1d12h", Every: 36 * time.Hour}, "(every_1d12h)"},
		{"pull_policy: every_2w", &ring.Updates{Word: "every_2w", Every: 14 * 24 * time.Hour}, "(every_2w)"},
		{"pull_policy: every_30m", &ring.Updates{Word: "every_30m", Every: time.Hour}, "every hour, the shortest"},
		{"pull_policy: every_10s", &ring.Updates{Word: "every_10s", Every: time.Hour}, "every hour, the shortest"},
		{"pull_policy: refresh|pull_refresh_after: 36h", &ring.Updates{Word: "refresh 36h", Every: 36 * time.Hour}, "(refresh 36h)"},
		{"pull_policy: refresh|pull_refresh_after: 5m", &ring.Updates{Word: "refresh 5m", Every: time.Hour}, "every hour, the shortest"},
		{"pull_policy: daily|x-gitring: {updates: {min_age: 72h, window: 'Sat 02:00-05:00'}}", &ring.Updates{Word: "daily", Every: 24 * time.Hour, MinAge: 72 * time.Hour, Window: "Sat 02:00-05:00"}, "(daily)"},
		{"pull_policy: daily|x-gitring: {updates: {min_age: 3d}}", &ring.Updates{Word: "daily", Every: 24 * time.Hour, MinAge: 72 * time.Hour}, "(daily)"},
		{"pull_policy: daily|x-gitring: {updates: {min_age: 0}}", &ring.Updates{Word: "daily", Every: 24 * time.Hour}, "(daily)"},
		{"pull_policy: daily|pull_refresh_after: 5h", &ring.Updates{Word: "daily", Every: 24 * time.Hour}, "pull_refresh_after means nothing"},
		{"pull_policy: always", nil, ""},
		{"pull_policy: missing", nil, ""},
		{"pull_refresh_after: 5h", nil, "pull_refresh_after means nothing"},
	} {
		t.Run(x.lines, func(t *testing.T) {
			plan := planOf(append([]string{"image: a:1"}, strings.Split(x.lines, "|")...)...)
			require.Empty(t, plan.Refused)
			s := plan.Apps[0].Services[0]
			require.Equal(t, x.want, s.Updates)
			require.Contains(t, strings.Join(plan.Apps[0].Notes, "\n"), x.note)
		})
	}
}

func TestADigestIsFollowedByNobody(t *testing.T) {
	plan := planOf("image: a@sha256:"+strings.Repeat("0a", 32), "pull_policy: daily", "x-gitring: {updates: {min_age: 1h}}")
	require.Empty(t, plan.Refused)
	require.Nil(t, plan.Apps[0].Services[0].Updates)
	require.Contains(t, strings.Join(plan.Apps[0].Notes, "\n"), "asks nothing, because image names its digest")
}

func TestTheClockIsNoPartOfAVersion(t *testing.T) {
	once := planOf("image: a:1").Apps[0].Services[0]
	daily := planOf("image: a:1", "pull_policy: daily", "x-gitring: {updates: {min_age: 72h}}").Apps[0].Services[0]
	require.Equal(t, once.Written, daily.Written)
}
