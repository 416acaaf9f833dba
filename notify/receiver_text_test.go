package notify

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func said(t *testing.T, text string, n Note) string {
	t.Helper()
	tpl, err := parseTemplate(text)
	require.NoError(t, err)
	out, err := spellOut(tpl, "edge-1", n)
	require.NoError(t, err)
	return out
}

func TestAMessageSaysWhatWhereWhyAndWhatToDoNext(t *testing.T) {
	n := Note{Kind: ring.RolloutRestored, Source: "prod", App: "web", Service: "api", Commit: "ab12cd3e4f", Reason: "kept 1234567: not ready within 30s", At: noon}
	require.Equal(t, "edge-1: web/api: a rollout failed, and the version before it was kept (ab12cd3)\nkept 1234567: not ready within 30s\ngitring inspect web/api, then push a commit that repairs it", said(t, "", n))
	n = Note{Kind: ring.JobRecovered, App: "db", Service: "backup", Reason: "a run succeeded", At: noon, Count: 3, Since: noon.Add(-48 * time.Hour)}
	require.Equal(t, "edge-1: db/backup: the job succeeds again\na run succeeded\n3 more times since 2026-02-27 12:00 UTC", said(t, "", n))
	n = summed([]Note{{Kind: ring.AppCrashLooping, App: "a", Service: "w", At: noon}, {Kind: ring.JobFailed, App: "b", Service: "j", At: noon}}, 5)
	require.Equal(t, "edge-1: 7 messages at once\na/w: crashes again and again\nb/j: a job failed\nand 5 more\ngitring status and gitring events say more", said(t, "", n))
	for _, kind := range append(ChatEvents, kindTest) {
		require.NotEmpty(t, spokenKinds[kind].what, kind)
	}
}

// What a commit's author wrote can mention nobody, link nowhere and mark nothing up.
func TestTheTextOfARepositoryIsOnlyText(t *testing.T) {
	n := Note{
		Kind: ring.RolloutFailed, App: "web", Service: "web", At: noon,
		Reason: "@everyone <!channel> <@U123> [click](https://evil.example) **bold** `code` <script>alert(1)</script> \x1b[31m \u202e a\nb {{.Host}} |x| ~y~ &amp; é",
	}
	out := said(t, "{{.Reason}}", n)
	for _, sign := range []string{"@", "<", "](", "://", "*", "`", "\x1b", "\u202e", "\n", "{{", "|", "~", "&", "é", "[", "]", "edge-1"} {
		require.NotContains(t, out, sign)
	}
	require.Contains(t, out, "everyone")
	n.App, n.Service, n.Source, n.Commit = "@here", "<b>", "[x]", "@channe"
	require.NotContains(t, said(t, "{{.App}}{{.Service}}{{.Source}}{{.Subject}}{{.Commit}}", n), "@")
	for _, split := range []string{"https:\x01//evil.example", "https:\x7f//evil.example", "ht\x00tps:/\x1b/evil.example", "https:\n//evil.example", ":\x01:\x02/\x03/x"} {
		require.NotContains(t, asText(split), "://", "%q", split)
	}
	require.NotContains(t, asText("\u202eexe.gnp\u2066\u200b\ufeff\uff20here \u2028 \u0085"), "here \u2028")
	require.Equal(t, "?exe.gnp????here ? ?", strings.TrimSpace(asText("\u202eexe.gnp\u2066\u200b\ufeff\uff20here é ö")))
	require.Equal(t, "image web:1.2-rc_3 -> sha256:ab, 50% of 2/4 (exit 1)", asText("image web:1.2-rc_3 → sha256:ab, 50% of 2/4 (exit 1)"))
}

func TestAMessageIsBoundedWhateverTheTemplateSays(t *testing.T) {
	n := Note{Kind: ring.RolloutFailed, App: "web", Service: "web", At: noon, Reason: strings.Repeat("long ", 5000)}
	require.LessOrEqual(t, len([]rune(said(t, "", n))), messageLimit)
	require.LessOrEqual(t, len([]rune(said(t, strings.Repeat("{{.Reason}}", 500), n))), messageLimit)
	require.LessOrEqual(t, len([]rune(said(t, strings.Repeat("é", 5000), n))), messageLimit)
}

func TestATemplateIsTriedBeforeItIsNeeded(t *testing.T) {
	for text, want := range map[string]string{
		"{{.Nothing}}":                 "Nothing",
		"{{if}}":                       "missing value",
		"{{.Host":                      "unclosed action",
		"{{template \"x\"}}":           "template is not for messages",
		"{{readFile \"/etc/passwd\"}}": "not defined",
		"{{env \"HOME\"}}":             "not defined",
		"  ":                           "says nothing",
		"{{if eq .Event \"summary\"}}{{.Bad}}{{end}}x": "Bad",
		"{{index .Also 5}}":                            "index out of range",
	} {
		_, err := parseTemplate(text)
		require.ErrorContains(t, err, want, text)
	}
	require.Equal(t, "@oncall web", said(t, "@oncall {{.App}}", Note{Kind: ring.JobFailed, App: "web", At: noon}), "the operator may mention whom they like")
}

// A process that hangs is gone after its time, and says so.
func TestAChatThatHangsIsCutOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	s := &chatSpeaker{host: "h", urlFile: written(t, "generic://"+l.Addr().String()+"/x?disabletls=yes"), run: workerProcess("")}
	s.text, err = parseTemplate("")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan reply, 1)
	go func() { done <- s.say(ctx, Note{Kind: kindTest, At: noon, Source: "x"}) }()
	c := <-accepted
	children := childrenOf(t, os.Getpid())
	require.Len(t, children, 1)
	line, err := os.ReadFile("/proc/" + children[0] + "/cmdline")
	require.NoError(t, err)
	require.Equal(t, "gitring\x00"+WorkerVerb+"\x00", string(line), "no secret is in its arguments")
	cancel()
	require.Equal(t, reply{away: true, says: "generic: no answer within 20s"}, <-done)
	require.Empty(t, childrenOf(t, os.Getpid()))
	_, err = io.ReadAll(c)
	require.NoError(t, c.Close())
	_ = err
}

func childrenOf(t *testing.T, pid int) (out []string) {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	require.NoError(t, err)
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			out = append(out, strings.Fields(string(b))...)
		}
	}
	return out
}

func TestTheProcessTellsAChatThatAnswers(t *testing.T) {
	c := newOneChat(t)
	s := &chatSpeaker{host: "h", urlFile: written(t, "generic://"+strings.TrimPrefix(c.URL, "http://")+"/x?disabletls=yes"), run: workerProcess("")}
	var err error
	s.text, err = parseTemplate("")
	require.NoError(t, err)
	require.Equal(t, reply{taken: true}, s.say(context.Background(), Note{Kind: kindTest, At: noon, Source: "notify", Reason: "asked for by ops"}))
	require.Equal(t, "h: notify: a test, as a person asked\nasked for by ops", c.got[0].Body)
	c.status = 404
	a := s.say(context.Background(), Note{Kind: kindTest, At: noon})
	require.Equal(t, "generic: it answered 404", a.says)
}

// A template is run by the daemon: none may take its memory or its time.
func TestATemplateCannotRunForEver(t *testing.T) {
	double := "{{$x := .Host}}" + strings.Repeat("{{$x = print $x $x}}", 40) + "x"
	for text, want := range map[string]string{
		"x{{range 1000000000000}}{{end}}":                                       "range goes over .Also",
		"x{{with 1000000000000}}{{range .}}{{end}}{{end}}":                      "range goes over .Also",
		"x{{$n := 1000000000000}}{{range $n}}{{end}}":                           "range goes over .Also",
		"x{{if true}}{{else}}{{range $i := .Count}}{{end}}{{end}}":              "range goes over .Also",
		"x{{range .Also}}{{range $.Also}}{{range $.Also}}{{end}}{{end}}{{end}}": "a range in a range",
		"x{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}":          "not for messages",
		"x{{block \"a\" .}}{{end}}":                                             "not for messages",
		double:                                                                  "longer than a message",
		"x{{printf \"%999999999d\" 1}}":                                         "at most 3 digits",
		"x{{printf \"%*d\" 999999999 1}}":                                       "at most 3 digits",
	} {
		_, err := parseTemplate(text)
		require.ErrorContains(t, err, want, text)
	}
	n := summed([]Note{{Kind: ring.JobFailed, App: "a", Service: "b", At: noon}, {Kind: ring.JobFailed, App: "c", Service: "d", At: noon}}, 0)
	require.Equal(t, "a/b 05;c/d 05;", said(t, `{{range $i, $a := .Also}}{{print $a.Subject}} {{printf "%02d" 5}};{{else}}x{{end}}`, n))
}

// What a template has of the URL is struck out however it is spelled, and what we
// would say anyway is not.
func TestNoPartOfAURLIsSaidHoweverItIsSpelled(t *testing.T) {
	for raw, parts := range map[string][]string{
		"ntfy://us%65rname:p%40ss%2Fword@ntfy.sh/t%6Fpicname?priority=h": {"username", "us%65rname", "p@ss/word", "p%40ss%2Fword", "topicname", "t%6Fpicname"},
		"slack://hook:T00000000-B11111111-XXXXXXXXXXXX@webhook":          {"T00000000-B11111111-XXXXXXXXXXXX", "XXXXXXXXXXXX", "B11111111"},
		"generic+https://h/x?key=s%65cret1&@Authorization=Bearer+abcdef": {"secret1", "s%65cret1", "Bearer abcdef", "Bearer+abcdef"},
		"telegram://123456789:AAaaaaaaaaaaaaaaaaa@telegram?chats=1":      {"AAaaaaaaaaaaaaaaaaa", "123456789"},
	} {
		for _, p := range parts {
			require.NotContains(t, withoutSecrets("a "+p+" b", raw, "edge-1: web: down"), p, raw)
		}
	}
	own := "edge-1: web/web: a rollout failed\ngitring inspect web/web"
	require.Equal(t, own, withoutSecrets(own, "ntfy://gitring:rollout@ntfy.sh/gitring", own))
}
