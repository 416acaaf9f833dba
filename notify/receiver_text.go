package notify

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// messageLimit is below the limit of every service: Pushover's 1024 characters
// are the least (pushover.net/api, "Limits").
const messageLimit = 1000

// Message is what a template of a receiver may use. Every text in it is of plain
// signs: what a commit's author wrote mentions nobody and links nowhere.
type Message struct {
	Event   string // such as rollout.failed; "summary" for many at once
	Host    string
	Source  string
	App     string
	Service string
	Subject string // app/service, app or source
	Commit  string // 7 digits; "" where there is none
	What    string // in plain words: "a rollout failed"
	Reason  string
	Next    string // what to do next
	Count   int    // how often it was repeated since Since, and not told
	Since   string // when it began; "" where that is not known
	At      string // when it happened
	Also    []Message
	Total   int // of a summary: how many there were
}

// spokenKinds is what kinds of events mean, and what to do next: %s is the subject, or
// its app.
var spokenKinds = map[string]struct{ what, next string }{
	ring.CommitRefused:     {"a commit is refused", "gitring status says why and what to do; what ran before goes on"},
	ring.AppRefused:        {"the app is refused", "gitring status says where; what ran before goes on"},
	ring.PlanAwaiting:      {"a plan waits for a person", "gitring plan, then gitring approve %c"},
	ring.RolloutFailed:     {"a rollout failed", "gitring inspect %s"},
	ring.RolloutRestored:   {"a rollout failed, and the version before it was kept", "gitring inspect %s, then push a commit that repairs it"},
	ring.RolloutRecovered:  {"well again after a rollout that failed", ""},
	ring.AppCrashLooping:   {"crashes again and again", "gitring crashes %s"},
	ring.AppContested:      {"somebody else keeps changing its containers", "stop the other tool, or gitring hold %s --reason '…'"},
	ring.AppIsDegraded:     {"not what its plan asks", "gitring inspect %s"},
	ring.AppRecovered:      {"well again", ""},
	ring.DriftSeen:         {"changed by hand", "gitring inspect %s"},
	ring.DriftHealed:       {"changed by hand, and put in order again", ""},
	ring.DriftKept:         {"the app changed a file of the commit, and it stays so", ""},
	ring.JobFailed:         {"a job failed", "gitring jobs %s"},
	ring.JobRecovered:      {"the job succeeds again", ""},
	ring.OverrideExpiring:  {"what a person set ends soon", "gitring status shows it"},
	ring.SourceStale:       {"its remote does not answer", "gitring status says why; what runs goes on"},
	ring.SourceRecovered:   {"well again", ""},
	ring.SourceOld:         {"no commit came for longer than max_age", "look at the branch from elsewhere; where it is only quiet: git commit --allow-empty -S"},
	ring.SourceRenewed:     {"a commit came again", ""},
	ring.WaveStuck:         {"a commit waits too long for other hosts", "look at the host that it names, or gitring approve %c"},
	ring.WaveHeld:          {"a commit failed on a host of an earlier wave", "push a commit that mends it, or gitring approve %c"},
	ring.WaveWaiting:       {"a commit waits for other hosts", ""},
	ring.WavePassed:        {"a commit need wait for other hosts no more", ""},
	ring.TrustIsDegraded:   {"a key that signed what runs was revoked", "gitring trust show"},
	ring.RolloutBegan:      {"a rollout began", ""},
	ring.RolloutCompleted:  {"a rollout completed", ""},
	ring.RolloutSuperseded: {"a newer commit took the place of a rollout", ""},
	ring.CommitAccepted:    {"a commit is trusted", ""},
	ring.AppInForce:        {"a plan is in force", ""},
	ring.JobSucceeded:      {"a job succeeded", ""},
	kindTrace:              {"a commit settled", ""},
	kindTest:               {"a test, as a person asked", ""},
}

const defaultTemplate = `{{if eq .Event "summary"}}{{.Host}}: {{.Total}} messages at once
{{range .Also}}{{.Subject}}: {{.What}}
{{end}}{{if gt .Total (len .Also)}}and {{less .Total (len .Also)}} more
{{end}}gitring status and gitring events say more
{{else}}{{.Host}}: {{.Subject}}: {{.What}}{{if .Commit}} ({{.Commit}}){{end}}
{{with .Reason}}{{.}}
{{end}}{{if .Count}}{{.Count}} more times{{with .Since}} since {{.}}{{end}}
{{end}}{{with .Next}}{{.}}
{{end}}{{end}}`

// ownTemplate is ours, parsed.
var ownTemplate = template.Must(parseTemplate(""))

// parseTemplate takes a receiver's template, "" for ours, and tries it on one
// message and on a summary.
func parseTemplate(text string) (*template.Template, error) {
	if text == "" {
		text = defaultTemplate
	}
	t, err := template.New("template").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use the template: %w", errors.New(strings.TrimPrefix(err.Error(), "template: ")))
	}
	if err := tame(t); err != nil {
		return nil, fmt.Errorf("cannot use the template: %w", err)
	}
	n := Note{Kind: ring.RolloutFailed, Source: "prod", App: "web", Service: "web", Reason: "not ready within 30s", At: time.Unix(0, 0), Since: time.Unix(0, 0), Count: 2}
	for _, n := range []Note{n, summed([]Note{n, n}, 0)} {
		if _, err := spellOut(t, "host", n); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// spellOut puts a note into words: at most messageLimit of them, on lines of plain
// signs as far as they are not the template's own.
func spellOut(t *template.Template, host string, n Note) (string, error) {
	var out limited
	if err := t.Execute(&out, messageOf(host, n)); err != nil && !errors.Is(err, errLimit) {
		return "", fmt.Errorf("cannot use the template: %w", errors.New(strings.TrimPrefix(err.Error(), "template: ")))
	}
	text := strings.TrimSpace(wording.DropControls(strings.ToValidUTF8(out.String(), "?"), "\n"))
	if text == "" {
		return "", errors.New("cannot use the template: it says nothing")
	}
	if r := []rune(text); len(r) > messageLimit {
		text = string(r[:messageLimit-3]) + "..."
	}
	return text, nil
}

var errLimit = errors.New("long enough")

// limited takes what a message can hold and a little more, and then no more: a
// template cannot fill the memory.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := 8*messageLimit - l.Len(); len(b) > room {
		n, _ := l.Buffer.Write(b[:room])
		return n, errLimit
	}
	return l.Buffer.Write(b)
}

func messageOf(host string, n Note) Message {
	says := spokenKinds[n.Kind]
	m := Message{
		Event: n.Kind, Host: host, Source: asText(n.Source), App: asText(n.App), Service: asText(n.Service),
		Subject: asText(subjectOf(ring.Event{Source: n.Source, App: n.App, Service: n.Service})), Commit: asText(n.Commit.Short()),
		What: says.what, Reason: asText(n.Reason), Count: n.Count, Since: spokenTime(n.Since), At: spokenTime(n.At), Total: n.Total,
	}
	if m.What == "" {
		m.What = strings.NewReplacer(".", " ", "_", " ").Replace(n.Kind)
	}
	m.Next = strings.NewReplacer("%s", m.Subject, "%c", m.Commit).Replace(says.next)
	var all []string
	for _, a := range n.Also {
		also := messageOf(host, a)
		m.Also = append(m.Also, also)
		all = append(all, also.Subject+" "+also.What)
	}
	if n.Total > 0 { // for templates that know no summaries
		m.Subject, m.What, m.Reason = fmt.Sprintf("%d messages", n.Total), "many at once", strings.Join(all, "; ")
	}
	return m
}

func spokenTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// asText keeps a text to signs that no chat takes for anything but text: no
// mention, no markup, no link. What becomes of names and versions stays readable.
func asText(s string) string {
	s = wording.DropControls(s, "\n\t\r") // first: what they part would come together
	s = strings.Join(strings.Fields(spelled.Replace(s)), " ")
	s = strings.NewReplacer("://", ": //", "@", "(at)", "[", "(", "]", ")", "<", "(", "{", "(", "}", ")").Replace(s)
	return plainSigns(s, " ._/-:;,+()%='#?>")
}
