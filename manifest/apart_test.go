package manifest

import (
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-shellwords"
)

// The oracle is compose-go: it splits the text with the values in it.
func TestATextWithAHostsValuesIsSplitAsByCompose(t *testing.T) {
	for _, c := range []struct {
		command, value string
		apart          bool   // not what the text comes to with its values as one word each
		note           string // where the value stays one word
	}{
		{command: "run $ARGS", value: "--a --b=c"},
		{command: "run $ARGS"},
		{command: "run $ARGS", value: "word"},
		{command: `run "$ARGS"`, value: "two words"},
		{command: `run $ARGS`, value: "two words", apart: true},
		{command: `run --x=$ARGS end`, value: `a "b c" d`, apart: true},
		{command: `run $ARGS`, value: `a\b`, apart: true},
		{command: `run $ARGS`, value: `it's`, note: "is one word here"},
		{command: `run $ARGS`, value: `a;b`, note: "is one word here"},
	} {
		c.apart = c.apart || c.value == "--a --b=c"
		line := "ARGS='" + c.value + "'\n"
		if strings.Contains(c.value, "'") {
			line = "ARGS=" + c.value + "\n"
		}
		a, _ := onlyApp(t, withHost(map[string]string{".env": line}), map[string]string{
			"web/compose.yaml": "services: {web: {image: a, command: '" + c.command + "', entrypoint: ['$ARGS', x]}}\n",
		})
		s := serviceOf(t, a, "web").Spec
		open := func(text string) string {
			out, err := ring.Open(text, func(ring.Sealed) (string, error) { return c.value, nil })
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if (s.CommandText != "") != c.apart || s.EntrypointText != "" || c.note != "" && !strings.Contains(strings.Join(a.Notes, "\n"), c.note) {
			t.Errorf("%s with %s: text %q, %q, notes %q", c.command, c.value, s.CommandText, s.EntrypointText, a.Notes)
		}
		if c.note != "" {
			continue
		}
		var want types.ShellCommand
		if err := want.DecodeMapstructure(strings.ReplaceAll(c.command, "$ARGS", c.value)); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		if s.CommandText != "" {
			split, err := shellwords.Parse(open(s.CommandText))
			if err != nil {
				t.Fatal(err)
			}
			got = split
		} else {
			for _, w := range s.Command {
				got = append(got, open(w))
			}
		}
		if d := cmp.Diff([]string(want), got); d != "" {
			t.Errorf("%s with %s: %s", c.command, c.value, d)
		}
	}
}
