package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// planned is what a story's next commit would change, by "app/service".
func planned(t *testing.T, begin, next string) map[string]ring.ServiceChange {
	t.Helper()
	s := newStory()
	for _, line := range strings.Split(begin, "\n") {
		require.NoError(t, s.tell(line), line)
	}
	last := s.src.Next
	for _, line := range strings.Split(next, "\n") {
		require.NoError(t, s.tell(line), line)
	}
	offered := s.src.Next
	require.NotEqual(t, last.Commit, offered.Commit, "a commit to plan")
	s.src.Next = last
	out := map[string]ring.ServiceChange{}
	for _, a := range Plan(s.world(), offered, s.clock()).Apps {
		for _, c := range a.Services {
			out[a.App+"/"+c.Service] = c
		}
	}
	return out
}

const joined = `service shop/vpn
service shop/app joins vpn
service shop/web
service shop/like follows web
version n1 is good
commit c1 shop/vpn=n1 shop/app=a1 shop/web=v1 shop/like=l1
rest`

func TestPlanSaysWhatMovesWithAnother(t *testing.T) {
	got := planned(t, joined, "commit c2 shop/vpn=n2")
	require.Equal(t, ring.ChangeRecreate, got["shop/vpn"].Class)
	require.Contains(t, got["shop/vpn"].Gap, "joined by app")
	require.Equal(t, ring.ChangeRecreate, got["shop/app"].Class)
	require.Equal(t, "service vpn", got["shop/app"].Reason)
	require.Contains(t, got["shop/app"].Gap, "joins vpn")
	require.Equal(t, ring.ChangeNone, got["shop/web"].Class)
	require.Equal(t, ring.ChangeNone, got["shop/like"].Class)
}

func TestPlanSaysWhatFollowsAnother(t *testing.T) {
	got := planned(t, joined, "commit c2 shop/web=v2")
	require.Equal(t, ring.ChangeRoll, got["shop/web"].Class)
	require.Equal(t, ring.ChangeRoll, got["shop/like"].Class)
	require.Equal(t, "service web", got["shop/like"].Reason)
	require.Equal(t, ring.ChangeNone, got["shop/vpn"].Class)
	require.Equal(t, ring.ChangeNone, got["shop/app"].Class)
}

func TestPlanExpectsTheGapOfAnImagesOwnVolumes(t *testing.T) {
	got := planned(t, "version d1 has volume /var/lib/db\nservice db\ncommit c1 db=d1\nrest", "commit c2 db=d2")
	require.Equal(t, ring.ChangeRecreate, got["db/db"].Class)
	require.Contains(t, got["db/db"].Gap, "/var/lib/db")
}

func TestDiffersNamesDataRootsAndVolumes(t *testing.T) {
	a := ring.App{Name: "db", DataRoot: "/srv/a", Volumes: []ring.Volume{{Key: "v"}}}
	b := ring.App{Name: "db", DataRoot: "/srv/b", Volumes: []ring.Volume{{Key: "v", External: "old"}}}
	s := ring.Service{Name: "db", Spec: ring.Spec{Mounts: []ring.Mount{
		{Kind: ring.MountData, Source: "d", Target: "/d"},
		{Kind: ring.MountVolume, Source: "v", Target: "/v"},
	}}}
	require.Equal(t, "data root, volume v", Differs(&a, &s, &b, &s))
}

// What an instance was given is remembered the first time, also where the step
// failed after it.
func TestWhatAnInstanceWasGivenIsRememberedOnce(t *testing.T) {
	now := time.Now()
	a := ring.Action{Kind: ring.DoCreate, App: "shop", Service: "db"}
	done := ring.Done{Kept: []ring.Kept{{Name: "volume shop_data"}, {Name: "data /srv/db"}}, Told: []string{"a file differs"}}
	known := map[string]ring.Kept{"data /srv/db": {App: "shop", Name: "data /srv/db", At: now.Add(-time.Hour)}}
	for _, err := range []error{nil, &ring.EngineError{Cause: ring.CauseCreate, Err: ErrNotFound}} {
		facts, events := Settle(NewRecent(), known, a, done, err, now)
		require.Equal(t, []ring.Fact{ring.Kept{App: "shop", Name: "volume shop_data", At: now}}, facts)
		told := false
		for _, e := range events {
			told = told || e.Reason == "a file differs"
		}
		require.True(t, told)
	}
}
