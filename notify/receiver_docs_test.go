package notify

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func howTo(t *testing.T) string {
	page, err := os.ReadFile("../docs/how-to/notifications.md")
	require.NoError(t, err)
	return string(page)
}

func TestThePageNamesEveryFieldOfATemplate(t *testing.T) {
	page := howTo(t)
	m := reflect.TypeFor[Message]()
	for i := range m.NumField() {
		require.Contains(t, page, "`."+m.Field(i).Name+"`")
	}
	_, example, ok := strings.Cut(page, "template: ")
	require.True(t, ok)
	example, _, _ = strings.Cut(example, "\n")
	text, err := strconv.Unquote(example)
	require.NoError(t, err)
	_, err = parseTemplate(text)
	require.NoError(t, err)
}

func TestThePagesExampleOfACheckHolds(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl here")
	}
	_, script, ok := strings.Cut(howTo(t), "# check.sh")
	require.True(t, ok)
	script, _, _ = strings.Cut(script, "```")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	s := newHookSpeaker("h", Hook{SecretFile: filepath.Join(dir, "secret")})
	keys, err := s.keys()
	require.NoError(t, err)
	now, body := strconv.FormatInt(time.Now().Unix(), 10), `{"a": "b\n"}`
	run := func(at, signature, body string) error {
		cmd := exec.Command("sh", "-c", "# "+script, "check.sh", "id-1", at, signature)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(body)
		return cmd.Run()
	}
	require.NoError(t, run(now, "v1,other "+signed(keys, "id-1", now, []byte(body)), body))
	require.Error(t, run(now, signed(keys, "id-1", now, []byte(body)), body+" "))
	require.Error(t, run(now, signed([][]byte{[]byte("another")}, "id-1", now, []byte(body)), body))
	old := strconv.FormatInt(time.Now().Unix()-3600, 10)
	require.Error(t, run(old, signed(keys, "id-1", old, []byte(body)), body))
}

// The URLs of the page, with something in the place of what it leaves open.
func TestThePagesURLsAreTaken(t *testing.T) {
	fill := strings.NewReplacer("<token>", "tokentoken", "<webhook id>", "123", "<bot token>", "123456789:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<access token>", "tok",
		"<application token>", "A23456789012345", "<user key>", "user", "[user:password@]", "user:password@", "[/path]", "/path", "teams+https://…", "teams+https://h/x?sig=1", "path?…", "path?key=1",
		"<group>", "11111111-4444-4444-8444-cccccccccccc", "<tenant>", "22222222-4444-4444-8444-cccccccccccc", "<altId>", "33333333012222222222333333333344",
		"<groupOwner>", "44444444-4444-4444-8444-cccccccccccc", "<extraId>", "V2ESyCX", "<organisation>", "acme")
	seen := map[string]bool{}
	_, table, ok := strings.Cut(howTo(t), "## A chat's URL")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "Signs such as")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || !strings.Contains(cells[2], "`") {
			continue
		}
		raw := fill.Replace(strings.Trim(strings.TrimSpace(cells[2]), "`"))
		scheme, _, err := parseChatURL(raw)
		require.NoError(t, err, raw)
		seen[scheme] = true
	}
	for _, s := range ChatServices {
		require.True(t, seen[s], s)
	}
}
