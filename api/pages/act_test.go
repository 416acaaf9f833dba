package pages

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// earlierWeb is what an undo of web would bring back.
func earlierWeb() *api.Earlier {
	return &api.Earlier{Commit: shaOld, Subject: "all: rebuild on the new base image", Signer: "bob@example.org", Completed: before(50 * time.Hour), Changes: ring.AppChanges{App: "web", Services: []ring.ServiceChange{
		{Service: "web", Class: ring.ChangeRoll, Reason: "image sha256:bb -> sha256:aa"},
		{Service: "worker", Class: ring.ChangeRecreate, Reason: "mount /data", Gap: "about 10s"},
		{Service: "cache", Class: ring.ChangeNone},
	}}}
}

// Whoever undoes sees first what comes back.
func TestAnUndoSaysWhatItBringsBack(t *testing.T) {
	f := rich()
	f.acts = []api.ActNow{{Verb: "undo", Back: earlierWeb()}}
	page := get(t, f.handler(everything), "/act/web?verb=undo").Body.String()
	before, _, found := strings.Cut(page, "<form")
	require.True(t, found, "it can be done")
	text := strings.Join(strings.Fields(tags.ReplaceAllString(before, " ")), " ")
	for _, want := range []string{"back to 69bc92e all: rebuild on the new base image", "signed by bob@example.org", "roll web image sha256:bb", "recreate worker", "a gap: about 10s", "As they are: 1 service"} {
		require.Contains(t, text, want)
	}
}

// Whoever holds an app is not told of what an undo would bring back: a hold brings back nothing.
func TestNoOtherActTellsOfAnUndo(t *testing.T) {
	f := rich()
	f.acts = []api.ActNow{{Verb: "undo", Back: earlierWeb()}}
	for _, verb := range []string{"hold", "release", "retry"} {
		page := get(t, f.handler(everything), "/act/web?verb="+verb).Body.String()
		require.Contains(t, page, "<form", verb)
		require.NotContains(t, page, "rebuild on the new base image", verb)
	}
}

// What waits for a hold of a person leads to where that ends, for who may do it.
func TestACommitThatWaitsForAHoldLeadsToItsRelease(t *testing.T) {
	f := rich()
	f.status.Sources[0].Next = &ring.Next{Commit: shaNow, Reason: "app db is held by root", Code: ring.WhyHeldByPerson, On: "db"}
	const link = `href="/act/db?verb=release">release…`
	require.Contains(t, get(t, f.handler(everything), "/plan").Body.String(), link, "where one reads what it would change")
	require.NotContains(t, get(t, f.handler(api.Viewer{Actor: "token/eve", Scopes: api.Scopes{api.ScopeRead}}), "/plan").Body.String(), link)
	require.Contains(t, get(t, f.handler(everything), "/").Body.String(), link)
	require.NotContains(t, get(t, f.handler(api.Viewer{Actor: "token/eve", Scopes: api.Scopes{api.ScopeRead}}), "/").Body.String(), link)
	f.status.Sources[0].Next.Code = ring.WhyImagePending
	require.NotContains(t, get(t, f.handler(everything), "/").Body.String(), link)
}

// Who wants the last deploy of a service back looks on its own page: an undo is of the whole app.
func TestTheUndoOfAnAppIsReachedFromItsServices(t *testing.T) {
	f := rich()
	f.acts = []api.ActNow{{Verb: "undo", Back: earlierWeb()}}
	text := func(path string) string {
		return strings.Join(strings.Fields(tags.ReplaceAllString(get(t, f.handler(everything), path).Body.String(), " ")), " ")
	}
	page := get(t, f.handler(everything), "/act/web/web").Body.String()
	require.Contains(t, page, `href="/act/web?verb=undo"`)
	require.Contains(t, text("/act/web/web"), "an undo is of all its services. Back to 69bc92e all: rebuild on the new base image")
	require.Contains(t, text("/act/web"), "Back to 69bc92e all: rebuild on the new base image")
	f.acts = []api.ActNow{{Verb: "undo", Why: "no other plan of web has completed on this host"}}
	require.NotContains(t, get(t, f.handler(everything), "/act/web/web").Body.String(), `href="/act/web?verb=undo"`)
	require.Contains(t, text("/act/web/web"), "undo web no other plan of web has completed on this host")
}

func TestARowOfThePlanSaysAFieldOnce(t *testing.T) {
	fields := []ring.FieldChange{{Field: "env GREETING"}, {Field: "image a -> b"}}
	for reason, want := range map[string]string{
		"env GREETING, image a -> b": "", "env GREETING, image a -> b; from the next run on": "from the next run on",
		"service vpn": "service vpn", "env GREETINGS": "env GREETINGS", "": "",
	} {
		require.Equal(t, want, beyondFields(reason, fields), reason)
	}
}

// A page offers what can be done now, and says of the rest why not.
func TestOnlyActsThatCanBeDoneAreOffered(t *testing.T) {
	f := rich()
	f.acts = []api.ActNow{
		{Verb: "hold"},
		{Verb: "retry"},
		{Verb: "run", Why: "web/web is no job"},
		{Verb: "release", Why: "nothing is overridden on web/web", Hint: "gitring status lists what stands"},
		{Verb: "promote", Why: "web/web waits for no yes <now>"},
		{Verb: "resume", Why: "web/web is not paused"},
	}
	h := f.handler(everything)
	page := get(t, h, "/act/web/web").Body.String()
	offers := func(verb string) bool { return strings.Contains(page, `href="/act/web/web?verb=`+verb+`"`) }
	for _, verb := range []string{"hold", "retry", "pause", "restart"} { // of the last two the daemon said nothing
		require.True(t, offers(verb), verb)
	}
	for _, verb := range []string{"release", "promote", "resume"} {
		require.False(t, offers(verb), verb)
	}
	require.Regexp(t, `(?s)Not now.*<dt>release</dt><dd>nothing is overridden on web/web.*gitring status lists what stands.*waits for no yes &lt;now&gt;`, page)
	require.NotContains(t, page, "is no job", "a job's act of a worker is nothing to tell of")

	page = get(t, h, "/act/web/web?verb=resume").Body.String()
	require.Contains(t, page, "web/web is not paused")
	require.NotRegexp(t, forms, page)

	// The daemon judges what is sent, and what was typed is not lost.
	f.actErr = api.Conflicting("", "cannot resume: web/web is not paused")
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/act/web/web", strings.NewReader("verb=resume&reason=typed"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), `value="typed"`)
}

// Of the daemon of an earlier release all is offered: it judges when it is asked.
func TestADaemonThatDoesNotTellItsActsIsAskedAllTheSame(t *testing.T) {
	f := rich()
	f.actsErr = api.NotFound("", "there is no such route")
	h := f.handler(everything)
	require.Contains(t, get(t, h, "/act/web").Body.String(), `?verb=undo"`)
	require.Regexp(t, forms, get(t, h, "/act/web?verb=undo").Body.String())
	f.actsErr = api.Denied("", "no")
	require.Equal(t, http.StatusForbidden, get(t, h, "/act/web").Code)
}

// Whoever says yes sees what the commit says, who signed it and all that it changes: what the
// page of the plan shows.
func TestAYesIsGivenToWhatIsSeen(t *testing.T) {
	f := rich()
	f.status.Sources[0].Next.Code, f.status.Sources[0].Next.Reason = ring.WhyAwaitingApproval, "it removes 3 of 4 services"
	h := f.handler(everything)
	main := func(path string) string {
		page := get(t, h, path).Body.String()
		_, page, _ = strings.Cut(page, "<main")
		return page
	}
	page, plan := main("/approve/"+string(shaNext)), main("/plan")
	for _, want := range []string{"api: fix the typo", "alice@example.org", "it removes 3 of 4 services", "9190630"} {
		require.Contains(t, page, want)
	}
	changes := regexp.MustCompile(`(?s)<li class="(create|roll|recreate|remove|in place)">.*?</li>`)
	shown := changes.FindAllString(plan, -1)
	require.NotEmpty(t, shown)
	for _, change := range shown {
		require.Contains(t, page, change, "the plan tells more than the page of the yes")
	}
	require.Contains(t, plan, "api: fix the typo")
}

// What changes is named by file and key, and by digest of an image; no value of a variable is shown.
func TestThePlanNamesWhatChangesAndNoValue(t *testing.T) {
	f := rich()
	page := get(t, f.handler(everything), "/plan").Body.String()
	for _, want := range []string{"apps/api/compose.yaml, apps/api/prod.yaml", "env GREETING", "sha256:11 -&gt; sha256:22"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, canary)
}

// What changes stands before the notes of apps that stay as they are, and what a commit awaits is
// said once.
func TestThePlanBeginsWithWhatChangesAndSaysItsWaitOnce(t *testing.T) {
	f := rich()
	f.status.Sources = f.status.Sources[:1]
	f.status.Sources[0].Next.Reason, f.status.Sources[0].Next.Code = "awaiting approval: removes 3 of 4 services", ring.WhyAwaitingApproval
	f.plan.Awaiting = "removes 3 of 4 services"
	f.plan.Apps = []ring.AppChanges{
		{App: "aaa", Notes: []string{"latest is pinned here"}, Services: []ring.ServiceChange{{Service: "web", Class: ring.ChangeNone}}},
		{App: "zzz", Services: []ring.ServiceChange{{Service: "web", Class: ring.ChangeRoll, Reason: "image"}}},
	}
	page := get(t, f.handler(everything), "/plan").Body.String()
	require.Equal(t, 1, strings.Count(page, "removes 3 of 4 services"), page)
	noted, changed := strings.Index(page, "latest is pinned here"), strings.Index(page, ">zzz<")
	require.Positive(t, changed)
	require.Less(t, changed, noted)
}
