package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// planOf is the plan of a story's next commit, before it is in force.
func planOf(t *testing.T, begin, next string) ring.Changes {
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
	return Plan(s.world(), offered, s.clock())
}

// planned is what a story's next commit would change, by "app/service".
func planned(t *testing.T, begin, next string) map[string]ring.ServiceChange {
	t.Helper()
	out := map[string]ring.ServiceChange{}
	for _, a := range planOf(t, begin, next).Apps {
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
	done := ring.Done{Kept: []ring.Kept{{Name: "volume shop_data"}, {Name: "data /srv/db"}}, Told: []string{"a key is left out"}, Drift: []string{"a file differs"}}
	known := map[string]ring.Kept{"data /srv/db": {App: "shop", Name: "data /srv/db", At: now.Add(-time.Hour)}}
	for _, err := range []error{nil, &ring.EngineError{Cause: ring.CauseCreate, Err: ErrNotFound}} {
		facts, events := Settle(NewRecent(), known, a, done, err, now)
		require.Equal(t, []ring.Fact{ring.Kept{App: "shop", Name: "volume shop_data", At: now}}, facts)
		told := map[string]string{}
		for _, e := range events {
			told[e.Reason] = e.Kind
		}
		require.Equal(t, ring.DriftKept, told["a file differs"], "journalled as drift")
		require.Equal(t, ring.InstanceStep, told["a key is left out"])
	}
}

func TestPlanNamesTheGapTheFieldsAndTheOrder(t *testing.T) {
	const begin = `service shop/db volume data port 5432 min_ready 1s
service shop/web depends_on db ready replicas 2
service shop/cache
service shop/old depends_on gone started
service shop/gone
version d1 ready after 3s
commit c1 shop/db=d1 shop/web=v1 shop/cache=v1 shop/old=v1 shop/gone=v1
rest`
	got := planned(t, begin, "service shop/db replicas 1 env A=1\nservice shop/web replicas 3 env B=1\nservice shop/cache live a\ncommit c2 shop/db=d1 shop/web=v2 -shop/old -shop/gone")
	db := got["shop/db"]
	require.Equal(t, ring.ChangeRecreate, db.Class)
	require.Regexp(t, `^stop up to 10s \+ start about [34]s, or 2m if it never becomes ready: host port 5432/tcp$`, db.Gap)
	require.Contains(t, []int{13, 14, 15}, db.GapSeconds)
	require.Equal(t, []ring.FieldChange{{Field: "env A", Class: ring.ChangeRecreate, Values: &ring.ValueChange{To: "1"}}}, db.Fields[:1])
	require.Empty(t, db.Order)
	web := got["shop/web"]
	require.Equal(t, ring.ChangeRoll, web.Class)
	require.Empty(t, web.Gap)
	require.Equal(t, "after db is ready", web.Order)
	require.Equal(t, []ring.FieldChange{
		{Field: "image v1 -> v2, to be resolved", Class: ring.ChangeRoll}, {Field: "env B", Class: ring.ChangeRoll, Values: &ring.ValueChange{To: "1"}}, {Field: "replicas 2 -> 3", Class: ring.ChangeInPlace},
	}, web.Fields)
	require.Equal(t, "after old is gone, stops within 10s", got["shop/gone"].Order)
	require.Equal(t, "stops within 10s", got["shop/old"].Order)
}

func TestPlanSaysWhatIsReloadedInPlace(t *testing.T) {
	got := planned(t, "service web live a\ncommit c1 web=v1\nrest", "service web live b\ncommit c2 web=v1")["web/web"]
	require.Equal(t, ring.ChangeInPlace, got.Class)
	require.Equal(t, "files of conf (exec reload)", got.Reason)
	require.Empty(t, got.Gap)
}

func TestPlanSaysWhichJobRunsFirst(t *testing.T) {
	have := ring.App{Name: "shop", Services: []ring.Service{{Name: "web"}}}
	next := ring.App{Name: "shop", After: []ring.AfterApp{{App: "db", Until: ring.ReadyDep}}, Services: []ring.Service{{Name: "web", Before: "migrate"}}}
	all := []ring.ServiceChange{{Service: "web", Class: ring.ChangeRoll}}
	orderChanges(all, &have, &next)
	require.Equal(t, "job migrate runs first", all[0].Order)
	require.Equal(t, "after app db is ready", orderOfApps(&next))
}

// What becomes a job is removed first, even where no field of its container differs.
func TestPlanSaysWhatBecomesAJobOrCeasesToBeOne(t *testing.T) {
	for _, tt := range []struct{ from, to, version, reason string }{
		{"worker", "job", "v1", "becomes a job: what runs is stopped and removed first"},
		{"worker", "job", "v2", "becomes a job: what runs is stopped and removed first"},
		{"worker", `cron "*/10 * * * *"`, "v1", "becomes a cron job: what runs is stopped and removed first"},
		{"job", "worker", "v1", "no longer a job: it keeps running"},
		{`cron "*/10 * * * *"`, "worker", "v2", "no longer a cron job: it keeps running"},
	} {
		begin := "service web " + tt.from + "\nversion v1 is good\ncommit c1 web=v1\nwait 1m"
		if tt.from == "job" {
			begin = "service web job\nversion v1 exits 0 after 1s\ncommit c1 web=v1\nrest"
		}
		got := planned(t, begin, "service web "+tt.to+"\ncommit c2 web="+tt.version)["web/web"]
		require.Equal(t, tt.reason, got.Reason)
		want := ring.ChangeCreate
		if tt.from == "worker" {
			want = ring.ChangeRecreate
		}
		require.Equal(t, want, got.Class, tt)
	}
}

func TestPlanSaysThatWhatBeginsToShareIsRecreatedOnce(t *testing.T) {
	got := planned(t, "service db volume data\ncommit c1 db=v1\nrest", "service db share\ncommit c2 db=v2")
	require.Equal(t, ring.ChangeRecreate, got["db/db"].Class)
	require.Contains(t, got["db/db"].Gap, "which the version before does not share")
	got = planned(t, "service db volume data share\ncommit c1 db=v1\nrest", "commit c2 db=v2")
	require.Equal(t, ring.ChangeRoll, got["db/db"].Class)
}

// A plan shows what a variable was and will be, as far as the commit says it to everybody.
func TestAPlanShowsValuesThatAreNoSecrets(t *testing.T) {
	sealed := ring.Sealed{}.String()
	for _, tt := range []struct {
		name, from, to string
		shown          bool
	}{
		{"LOG_LEVEL", "info", "debug", true},
		{"NEW", "", "1", true},
		{"DB_PASSWORD", "a", "b", false},
		{"API_KEY", "a", "b", false},
		{"DATABASE_URL", "postgres://db/shop", "postgres://shop:pw@db/shop", false},
		{"LEVEL", "info", sealed, false},
		{"CERT", "", "-----BEGIN CERTIFICATE", false},
		{"LINES", "a", "a\nb", false},
		{"LONG", "a", strings.Repeat("x", 61), false},
	} {
		fields := []ring.FieldChange{{Field: "env " + tt.name}, {Field: "label " + tt.name}}
		tellValues(fields, map[string]string{tt.name: tt.from}, map[string]string{tt.name: tt.to})
		require.Equal(t, tt.shown, fields[0].Values != nil, tt.name)
		require.Nil(t, fields[1].Values)
	}
}

// What was restored is what a next plan is compared with: the broken version runs no more.
func TestAPlanIsComparedWithWhatWasRestored(t *testing.T) {
	const begin = `service db volume data port 5432 env A=0 on_failure restore min_ready 1s
service web on_failure restore replicas 2
version d2 exits 1 after 1s
version w2 exits 1 after 1s
commit c1 db=d1 web=w1
rest
service db env A=1
commit c2 db=d2 web=w2
rest
expect 1 events rollout.restored db c2
expect 1 events rollout.restored web c2`
	back := planOf(t, begin, "service db env A=0\ncommit c3 db=d1 web=w1")
	require.True(t, back.Empty(), "%+v", back)
	for _, a := range back.Apps {
		require.Empty(t, a.Notes)
		for _, c := range a.Services {
			require.Equal(t, c.To, c.From)
			require.Empty(t, c.Gap+c.Reason)
		}
	}
	more := planned(t, begin, "service db env A=0\nservice web replicas 3\ncommit c3 db=d1 web=w1")["web/web"]
	require.Equal(t, ring.ChangeInPlace, more.Class)
	require.Equal(t, "replicas 2 -> 3", more.Reason)

	third := planned(t, begin, "service db env A=2\ncommit c3 db=d1 web=w3")
	require.Equal(t, ring.ChangeRecreate, third["db/db"].Class)
	require.Equal(t, []ring.FieldChange{{Field: "env A", Class: ring.ChangeRecreate, Values: &ring.ValueChange{From: "0", To: "2"}}, {Field: "image d1 to be resolved", Class: ring.ChangeRecreate}}, third["db/db"].Fields)
	require.Equal(t, "image w1 -> w3, to be resolved", third["web/web"].Reason)

	same := planOf(t, begin, "commit c3 db=d2 web=w2")
	require.True(t, same.Empty(), "what failed is not tried again: %+v", same)

	const approve = begin + "\napply approve"
	require.Empty(t, planOf(t, approve, "service db env A=0\ncommit c3 db=d1 web=w1").Awaiting, "nothing is to be approved")
	require.Contains(t, planOf(t, approve, "service db env A=0\nservice web replicas 3\ncommit c3 db=d1 web=w1").Awaiting, "would change in place 1")
	require.Contains(t, planOf(t, approve, "service db env A=0\ncommit c3 db=d1 web=w3").Awaiting, "would roll 1")
}

// A folder is planned as a commit is: what a person or the commit itself withholds is told with it.
func TestAPlanSaysWhatHoldsAnApp(t *testing.T) {
	const begin = "service shop/db\nservice shop/web\nservice blog\ncommit c1 shop/db=d1 shop/web=w1 blog=b1\nrest\n"
	plan := planOf(t, begin+"leave shop/\nwait 5s", "commit c2 shop/db=d1 shop/web=w2 blog=b2")
	require.Equal(t, "app shop: left to Compose by alice: a story", plan.Waits)
	for _, a := range plan.Apps {
		for _, c := range a.Services {
			if a.App == "blog" {
				require.Equal(t, ring.ChangeRoll, c.Class)
				continue
			}
			require.Equal(t, ring.ChangeNone, c.Class, "its containers run on")
			require.Equal(t, "left to Compose", c.Reason)
		}
		require.Equal(t, a.App == "blog", len(a.Notes) > 0)
	}
	plan = planOf(t, begin+"leave shop/\nwait 5s", "commit c2 -shop/db -shop/web blog=b1")
	require.True(t, plan.Empty(), "what left both is nobody's here: %+v", plan)

	plan = planOf(t, begin+"hold blog/", "commit c2 shop/db=d1 shop/web=w1 blog=b2")
	require.Regexp(t, `^app blog: held by alice until .*: a story$`, plan.Waits)
	require.False(t, plan.Empty())
	require.Empty(t, planOf(t, begin+"hold blog/", "commit c2 shop/db=d2 shop/web=w1 blog=b1").Waits, "nothing of it is withheld")
	plan = planOf(t, begin+"hold shop/web", "commit c2 shop/db=d2 shop/web=w2 blog=b2")
	require.Regexp(t, `^service shop/web: held by alice until .*: a story$`, plan.Waits, "of one service")
	require.Empty(t, planOf(t, begin+"hold shop/web", "commit c2 shop/db=d2 shop/web=w1 blog=b2").Waits, "it does not change")
	plan = planOf(t, begin+"hold blog/", "commit c2 shop/db=d1 shop/web=w1 -blog")
	require.Regexp(t, `^app blog: held by alice until .*: a story$`, plan.Waits)

	plan = planOf(t, begin+"hold shop/", "app blog held \"vacation\"\ncommit c2 shop/db=d2 shop/web=w1 blog=b2")
	require.Regexp(t, `^app blog: held: .*; app shop: held by alice until .*: a story$`, plan.Waits)
}

// The status names the trusted commit where a refused app alone is behind it, or holds the whole
// commit up, and not where something is on its way.
func TestTheCommitThatIsFollowedIsToldWhereAnAppIsRefused(t *testing.T) {
	status := func(lines string) ring.SourceStatus {
		t.Helper()
		s := newStory()
		for _, line := range strings.Split(lines, "\n") {
			require.NoError(t, s.tell(line), line)
		}
		return Diff(s.world(), s.clock()).Status.Sources[0]
	}
	const begin = "service shop/web on_failure restore min_ready 1s\nservice blog/web min_ready 1s\nversion w2 exits 1 after 1s\n" +
		"commit c1 shop/web=w1 blog/web=b1\nrest\n"
	const broken = begin + "commit c2 shop/web=w2 blog/web=b2\nrest\n"
	st := status(broken)
	require.Nil(t, st.Followed)
	require.Contains(t, st.Commit, "c2f")
	for _, apply := range []string{"", "apply commit\n"} {
		st = status(broken + apply + "commit c3 shop/web=w1 -blog/web refused blog\nwait 1m")
		require.Contains(t, st.Commit, "c2f")
		require.NotNil(t, st.Followed, apply)
		require.Contains(t, st.Followed.Commit, "c3f")
		require.Equal(t, "blog", st.Followed.App)
	}
	st = status(broken + "commit c3 shop/web=w1 blog/web=b2\nrest")
	require.Nil(t, st.Followed, "all are at it")
}
