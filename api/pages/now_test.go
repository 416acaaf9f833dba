package pages

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestAHostOnTrialSaysSoAndWhatToDo(t *testing.T) {
	f := rich()
	require.NotContains(t, get(t, f.handler(everything), "/").Body.String(), "on trial")
	f.status.Trial = &ring.Trial{From: "0.1.0", Looks: 3}
	page := get(t, f.handler(everything), "/").Body.String()
	require.Regexp(t, `<p class="trouble wait" role="alert"><strong>on trial</strong> upgraded from 0\.1\.0;[^<]*gitring upgrade --resume</p>`, page)
}

func TestThePageOfNowSaysWhatIsWrongFirst(t *testing.T) {
	f := &fake{status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Sync: ring.SyncSynced, Apps: []ring.AppStatus{
		{Name: "api", Health: ring.Healthy, Services: []ring.ServiceStatus{{Name: "api", Kind: ring.Worker, Phase: ring.PhaseReady, Ready: 1, Wanted: 1}}},
		{Name: "web", Health: ring.Degraded, Services: []ring.ServiceStatus{{Name: "web", Kind: ring.Worker, Phase: ring.PhaseDegraded, Reason: "slot 1 exited", Wanted: 2}}},
	}}}}}
	h := f.handler(api.Viewer{Actor: "token/ci", Scopes: api.Scopes{api.ScopeRead}})
	page := get(t, h, "/")
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	text := page.Body.String()
	require.Regexp(t, `(?s)Degraded.*slot 1 exited.*Healthy`, text)

	// The same, packed.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip, br")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	z, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	packed, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, text, string(packed))
	require.Equal(t, 1, f.asked["status"], "a status was asked for more than once within a moment")
}

// Who signed what is wanted has not signed what runs in its place.
func TestTheHeadSaysWhoSignedWhatRuns(t *testing.T) {
	f := rich()
	h := f.handler(everything)
	head := func(page string) string {
		_, rest, _ := strings.Cut(page, `aria-label="source prod"`)
		head, _, _ := strings.Cut(rest, "</header>")
		return tags.ReplaceAllString(head, "")
	}
	text := head(get(t, h, "/").Body.String())
	require.Contains(t, text, "9190630")
	require.Contains(t, text, "signed by alice@example.org")
	require.Contains(t, text, "69bc92e still runs, signed by bob@example.org: web/web, shop/shop")

	of := func(app string) string {
		_, rest, found := strings.Cut(get(t, h, "/").Body.String(), `id="app-`+app+`"`)
		require.True(t, found, app)
		head, _, _ := strings.Cut(rest, "</header>")
		return tags.ReplaceAllString(head, "")
	}
	require.Contains(t, of("web"), "wants 9190630 by alice@example.org", "it runs another one")
	require.NotContains(t, of("db"), "wants")

	f.asked["commits"] = 0
	f.status.Sources[0].Checked = noon
	h.Now = func() time.Time { return noon.Add(time.Second) }
	require.Contains(t, head(get(t, h, "/").Body.String()), "signed by bob@example.org")
	require.Zero(t, f.asked["commits"], "a signer never changes, and was asked for again")

	f = rich()
	f.commits = nil
	require.Contains(t, head(get(t, f.handler(everything), "/").Body.String()), "69bc92e still runs: web/web")
	f = large(ring.Healthy)
	require.NotContains(t, get(t, f.handler(everything), "/").Body.String(), "still runs")
	require.LessOrEqual(t, f.asked["commits"], commitsBeside, "of many commits that nobody knows some are asked for at once")
}

// Who asks who signed what runs is answered for healthy apps, too, without a question more than a few.
func TestHealthyAppsSayWhoSignedWhatTheyRun(t *testing.T) {
	f := rich()
	src := &f.status.Sources[0]
	at := slices.IndexFunc(src.Apps, func(a ring.AppStatus) bool { return appMark(&a).Tone == toneGood })
	require.GreaterOrEqual(t, at, 0)
	app := &src.Apps[at]
	row := func() string {
		_, rest, found := strings.Cut(get(t, f.handler(everything), "/").Body.String(), `id="app-`+app.Name+`"`)
		require.True(t, found)
		row, _, _ := strings.Cut(rest, "</div>")
		return strings.Join(strings.Fields(tags.ReplaceAllString(row, " ")), " ")
	}
	for i := range app.Services {
		app.Services[i].Commit, app.Services[i].Running = src.Commit, src.Commit
	}
	require.Contains(t, row(), src.Commit.Short()+" by "+src.Signer)
	old := f.commits[len(f.commits)-1]
	for i := range app.Services {
		app.Services[i].Commit, app.Services[i].Running = old.Commit, old.Commit
	}
	require.Contains(t, row(), old.Commit.Short()+" by "+old.Signer)
	require.NotContains(t, row(), src.Commit.Short())
}

// The mark of the host, and the icon of the tab, are of the host, whatever page is looked at.
func TestTheHostsMarkIsTheSameOnEveryPage(t *testing.T) {
	body, icon := regexp.MustCompile(`<body class="([a-z]*)"`), regexp.MustCompile(`<link rel="icon"[^>]* href="([^"]*)"`)
	marks := func(f *fake) []string {
		h := f.handler(everything)
		var all []string
		for _, path := range []string{
			"/", "/plan", "/history", "/jobs", "/crashes", "/trust", "/doctor", "/nothing", "/app/exporter", "/act/exporter", "/act/exporter/exporter?verb=hold",
			"/commit/" + string(shaOld), "/approve/" + string(shaNext), "/sync/tools", "/svc/exporter/exporter", "/logs/exporter/exporter",
		} {
			page := get(t, h, path).Body.String()
			all = append(all, body.FindStringSubmatch(page)[1]+icon.FindStringSubmatch(page)[1])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	wrong := marks(rich())
	require.Len(t, wrong, 1, "the mark changes by page")
	require.Contains(t, wrong[0], "bad")
	f := rich()
	f.status.Sources, f.status.Backup = f.status.Sources[1:], ""
	well := marks(f)
	require.Len(t, well, 1)
	require.Contains(t, well[0], "good")
}

// What doctor found is said where people look, without another run of it.
func TestNowSaysWhatDoctorFound(t *testing.T) {
	f := rich()
	f.status.Sources, f.status.Backup = f.status.Sources[1:], ""
	f.status.Doctor = "2 checks fail, as of 2026-11-26 14:31 UTC"
	page := get(t, f.handler(everything), "/").Body.String()
	require.Regexp(t, `<p class="trouble bad" role="alert"><strong>doctor</strong> 2 checks fail, as of 2026-11-26 14:31 UTC <a href="/doctor">`, page)
	require.Contains(t, page, `<body class="bad"`, "the host is green while its doctor fails")
	require.Zero(t, f.asked["doctor"])
}

// A note has a colour of its own, whatever it stands in.
func TestANoteHasAColourOfItsOwn(t *testing.T) {
	notes := regexp.MustCompile(`class="(warning|override|trouble)([^"]*)"`)
	n := 0
	walk(t, rich().handler(everything), func(path string, w *httptest.ResponseRecorder) {
		for _, m := range notes.FindAllStringSubmatch(w.Body.String(), -1) {
			n++
			require.Contains(t, ranks, strings.TrimSpace(m[2]), "%s: a %s takes the colour of what is around it", path, m[1])
		}
	})
	require.Greater(t, n, 5)
}

// A job's next run has its day, and the time in the zone that its schedule is in.
func TestTheNextRunOfAJobHasItsDayAndItsZone(t *testing.T) {
	h := rich().handler(everything)
	for _, path := range []string{"/", "/app/jobs", "/svc/jobs/nightly", "/jobs"} {
		text := tags.ReplaceAllString(get(t, h, path).Body.String(), "")
		require.Contains(t, text, "Fri 27 Nov 03:00 UTC (Fri 04:00 Europe/Berlin)", path)
	}
	for _, path := range []string{"/", "/svc/jobs/hourly", "/jobs"} { // it is due today
		require.Contains(t, tags.ReplaceAllString(get(t, h, path).Body.String(), ""), "Thu 26 Nov 15:00 UTC", path)
	}
}

// Whoever asks why a run failed gets from its mark to its row, and from there to what it printed.
func TestARunThatFailedLeadsToWhatItPrinted(t *testing.T) {
	page := get(t, rich().handler(everything), "/jobs").Body.String()
	require.Regexp(t, `class="when bad"[^>]*>.*<a href="#job-jobs-nightly"><span class="quiet">failed </span>`, page)
	require.Contains(t, page, `id="job-jobs-nightly"`)
	require.Equal(t, 1, strings.Count(page, `exit 1, after 3 tries · <a href="/logs/jobs/nightly">what it printed</a>`))
	require.Equal(t, 1, strings.Count(page, "what it printed"), "of those that came out well nobody asks")
	reader := api.Viewer{Actor: "token/eve", Scopes: api.Scopes{api.ScopeRead}}
	require.NotContains(t, get(t, rich().handler(reader), "/jobs").Body.String(), "what it printed")
}

// So does whoever asks on Now why a version was taken back.
func TestARolloutThatFailedLeadsToWhatItsVersionPrinted(t *testing.T) {
	const link = `<a href="/crashes?app=web&amp;service=web">what it printed</a>`
	require.Equal(t, 1, strings.Count(get(t, rich().handler(everything), "/").Body.String(), link))
	reader := api.Viewer{Actor: "token/eve", Scopes: api.Scopes{api.ScopeRead}}
	require.NotContains(t, get(t, rich().handler(reader), "/").Body.String(), "what it printed")
}

// The page that is looked at first has what a check says that fails now, for who may read logs.
func TestNowHasWhatAFailingCheckPrints(t *testing.T) {
	f := &fake{status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Sync: ring.SyncApplying, Apps: []ring.AppStatus{
		{Name: "shop", Health: ring.Progressing, Services: []ring.ServiceStatus{
			{Name: "web", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 1, Instances: []ring.InstanceStatus{{Slot: 1, State: ring.SlotStarting}}},
			{Name: "db", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Instances: []ring.InstanceStatus{{Slot: 1, State: ring.SlotReady}}},
		}},
	}}}}, inspect: map[string]ring.Explained{
		"shop/web": {Instances: []ring.ExplainedInstance{{Printed: []ring.CheckPrinted{{Lines: []string{"no route to <db>"}}}}}},
		"shop/db":  {Instances: []ring.ExplainedInstance{{Printed: []ring.CheckPrinted{{Lines: []string{"of a service that is well"}}}}}},
	}}
	page := get(t, f.handler(everything), "/").Body.String()
	require.Contains(t, page, "no route to &lt;db&gt;")
	require.NotContains(t, page, "of a service that is well")
	reader := api.Viewer{Actor: "token/eve", Scopes: api.Scopes{api.ScopeRead}}
	require.NotContains(t, get(t, f.handler(reader), "/").Body.String(), "no route")
}

// A rollout that did not complete is not under way.
func TestAPlanTellsWhatGoesOnFromWhatEnded(t *testing.T) {
	f := rich()
	f.status.Sources = f.status.Sources[:1]
	move := func(service, phase string) ring.Move {
		return ring.Move{App: "web", Service: service, Phase: phase, Commit: shaNow, Updated: 1, Wanted: 2, Reason: "r"}
	}
	f.plan.UnderWay = []ring.Move{move("moves", ring.RolloutProgressing), move("back", ring.RolloutIsRestored), move("paused", ring.RolloutPaused)}
	page := get(t, f.handler(everything), "/plan").Body.String()
	_, rest, found := strings.Cut(page, "<h3>Under way</h3>")
	require.True(t, found)
	goesOn, ended, found := strings.Cut(rest, "<h3>Did not come to its end</h3>")
	require.True(t, found)
	require.Contains(t, goesOn, "web/moves")
	require.NotContains(t, goesOn, "web/back")
	require.NotContains(t, goesOn, "web/paused")
	require.Contains(t, ended, "web/back")
	require.Contains(t, ended, "web/paused")
}

// The newest bar of each service names its commit on the screen, and no name lies over another.
func TestABarNamesItsCommit(t *testing.T) {
	bars := []bar{{X: 980, Width: 20, Commit: "aaaaaaa"}, {X: 940, Width: 6, Commit: "bbbbbbb"}, {X: 500, Width: 6, Commit: "ccccccc"}, {X: 480, Width: 6, Commit: "ddddddd"}, {X: 0, Width: 300, Commit: "eeeeeee"}}
	labels, tall := labelsOf(bars)
	require.True(t, tall)
	require.Equal(t, []label{{"100.0%", "aaaaaaa", true, 12}, {"94.6%", "bbbbbbb", true, 25}, {"50.0%", "ccccccc", false, 12}, {"48.0%", "ddddddd", false, 25}, {"0.0%", "eeeeeee", false, 12}}, labels)
	page := get(t, rich().handler(everything), "/history").Body.String()
	lanes := strings.Split(page, `<div class="lane" role="listitem">`)[1:]
	require.NotEmpty(t, lanes)
	for _, lane := range lanes {
		require.Regexp(t, `<text x="[0-9.]+%" y="[0-9]+"[^>]*>[0-9a-f]{7}</text>`, lane)
	}
}

// What ran and was not ready did not crash: a crash is an exit, or a kill.
func TestWhatWasOnlyNotReadyIsNoCrash(t *testing.T) {
	f := rich()
	c := ring.Crash{ID: "web/web", Slot: 1, At: before(time.Hour), ExitCode: ring.NoExit, Class: "unready", Crashes: 2, Reason: "not ready within 30s", Signature: "unhealthy"}
	f.crashes = []api.CrashGroup{{App: "web", Service: "web", Count: 2, First: before(time.Hour), Last: before(time.Hour), Slots: []int{1}, Newest: c}}
	e := f.inspect["web/web"]
	e.Crash = &c
	f.inspect["web/web"] = e
	h := f.handler(everything)
	page := get(t, h, "/crashes").Body.String()
	require.Contains(t, page, "not ready, 2 times")
	require.NotContains(t, page, "2 crashes")
	page = get(t, h, "/svc/web/web").Body.String()
	require.Contains(t, page, "Last failure")
	require.NotContains(t, page, "Last crash")
	f = rich()
	require.Contains(t, get(t, f.handler(everything), "/crashes").Body.String(), "4 crashes")
	require.Contains(t, get(t, f.handler(everything), "/svc/web/web").Body.String(), "Last crash")
}

func TestDoubtsOfACommitStandOnThePages(t *testing.T) {
	f := rich()
	f.status.Sources[0].Doubts = []string{`fleet.yaml:4: waves: "edgy-*" names no host`}
	f.plan.Doubts = f.status.Sources[0].Doubts
	h := f.handler(everything)
	for _, path := range []string{"/", "/plan"} {
		require.Regexp(t, `<p class="warning wait"><strong>warning</strong> fleet.yaml:4: waves: &#34;edgy-\*&#34; names no host`, get(t, h, path).Body.String(), path)
	}
}

func TestThePageOfAServiceSaysWhoSignedWhatRuns(t *testing.T) {
	text := tags.ReplaceAllString(get(t, rich().handler(everything), "/svc/web/web").Body.String(), "")
	require.Contains(t, text, "of commit 9190630, signed by alice@example.org")
	require.Contains(t, text, "of commit 69bc92e, signed by bob@example.org")
}

// What waits for a yes, and what was refused, did nothing here that a revert could take back.
func TestOnlyWhatDidSomethingCanBeReverted(t *testing.T) {
	f := rich()
	f.commits[0].Outcome = api.OutcomeAwaiting
	page := get(t, f.handler(everything), "/history").Body.String()
	require.NotContains(t, page, "git revert "+shaNext.Short())
	require.NotContains(t, page, "git revert 5d0c7be")
	require.Contains(t, page, "git revert "+shaNow.Short())
}

// A front is gitring's, not the person's: it has no row beside its service, unless it is what is wrong.
func TestAFrontHasARowOnlyWhereItIsWrong(t *testing.T) {
	front := ring.ServiceStatus{Name: "web" + ring.FrontSuffix, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1}
	web := ring.ServiceStatus{Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Front: &ring.FrontStatus{Phase: ring.FrontServes}}
	own := ring.ServiceStatus{Name: "mail" + ring.FrontSuffix, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1}
	app := ring.AppStatus{Name: "shop", Services: []ring.ServiceStatus{web, front, own}}
	require.False(t, isFoldedFront(&app, &app.Services[0]))
	require.True(t, isFoldedFront(&app, &app.Services[1]))
	require.False(t, isFoldedFront(&app, &app.Services[2]), "a service of that name stands before nothing")
	app.Services[1].Phase = ring.PhaseDegraded
	require.False(t, isFoldedFront(&app, &app.Services[1]), "it is what is wrong")
	app.Services[0].Phase = ring.PhaseDegraded
	require.False(t, isFoldedFront(&app, &app.Services[1]), "it is wrong, too")
}

// The only app that is down stands before those that are refused and still serve, and has their colour.
func TestWhatIsDownStandsBeforeWhatServes(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	app := func(name, health string, ready int, refused *ring.Refusal) ring.AppStatus {
		sv := ring.ServiceStatus{Name: name, Kind: ring.Worker, Phase: ring.PhaseReady, Ready: ready, Wanted: 1}
		if ready == 0 {
			sv.Phase, sv.Instances = ring.PhaseProgressing, []ring.InstanceStatus{{Slot: 1, State: ring.SlotStarting, Failing: true}}
		}
		return ring.AppStatus{Name: name, Health: health, Refusal: refused, Services: []ring.ServiceStatus{sv}}
	}
	f := &fake{status: ring.Status{Host: "edge-1", At: at, Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Sync: ring.SyncApplying, Apps: []ring.AppStatus{
		app("films", ring.Healthy, 1, &ring.Refusal{Code: "PolicyViolation", Says: "no"}), app("held", ring.Held, 1, nil), app("wiki", ring.Progressing, 0, nil),
	}}}}}
	page := get(t, f.handler(everything), "/").Body.String()
	require.Regexp(t, `(?s)href="/app/wiki".*href="/app/films".*href="/app/held"`, page)
	require.NotContains(t, page, `class="shape half"`, "it looks as if all went well")
	word, says, _ := HostWord(&f.status)
	require.Equal(t, ring.Degraded+" wiki", word+" "+says)
}
