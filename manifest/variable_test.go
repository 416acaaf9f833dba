package manifest

import (
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func someVariables(values map[string]string) *variables {
	l := DefaultLimits()
	return newVariables(saidAll(values), &budget{left: l.TotalSize, text: l.Text})
}

func TestVariablesAreReplacedAsComposeDoes(t *testing.T) {
	values := map[string]string{"A": "one", "B_2": "two", "EMPTY": "", "a": "small"}
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"$A":                         "one",
		"x$A-y":                      "xone-y",
		"$a$A":                       "smallone",
		"${A}":                       "one",
		"${A}${B_2}":                 "onetwo",
		"$$A":                        "$A",
		"$$$A":                       "$one",
		"$":                          "$",
		"a$":                         "a$",
		"$1":                         "$1",
		"100$ {A}":                   "100$ {A}",
		"${A:-x}":                    "one",
		"${NO:-x}":                   "x",
		"${NO-x}":                    "x",
		"${EMPTY:-x}":                "x",
		"${EMPTY-x}":                 "",
		"${EMPTY:+x}":                "",
		"${EMPTY+x}":                 "x",
		"${A:+x}":                    "x",
		"${NO:+x}":                   "",
		"${NO+x}":                    "",
		"${A:?x}":                    "one",
		"${A?x}":                     "one",
		"${EMPTY?x}":                 "",
		"${NO:-}":                    "",
		"${NO:-${A}}":                "one",
		"${NO:-${NO2:-${B_2}}}":      "two",
		"${NO:-a b/c:d-e}":           "a b/c:d-e",
		"${NO:-http://$A:80/?x=y+z}": "http://one:80/?x=y+z",
		"${A:+${B_2}-$A}":            "two-one",
		`${NO:-{"a": 1}}`:            `{"a": 1}`,
		"${A} and ${NO:-x} and $B_2": "one and x and two",
	} {
		got, f := someVariables(values).replace(in, place{file: "f", line: 1})
		if f != nil || got != said(want) {
			t.Errorf("%q is %q (%v), want %q", in, got.plain, f, want)
		}
		library, err := template.Substitute(in, func(k string) (string, bool) { v, ok := values[k]; return v, ok })
		if err != nil || library != want {
			t.Errorf("%q: compose-go says %q (%v)", in, library, err)
		}
	}
	for _, in := range []string{"$NO", "${NO}", "${NO:-$NO2}", "${A:+$NO}", "${NO:?why}", "${EMPTY:?}", "x${NO?}"} {
		if _, f := someVariables(values).replace(in, place{file: "f", line: 7}); len(f) == 0 || f[0].code != ring.UndefinedVariable || f[0].line != 7 {
			t.Errorf("%q is not refused: %v", in, f)
		}
	}
	for _, in := range []string{"${", "${}", "${A", "${ A}", "${1}", "${A:}", "${A!x}", "${A:=x}", "${-x}"} {
		if _, f := someVariables(values).replace(in, place{file: "f", line: 7}); len(f) == 0 || f[0].code != ring.BadValue {
			t.Errorf("%q is not refused: %v", in, f)
		}
	}
}

// Whatever is built from the grammar comes out as compose-go says, as long as
// no variable is missing.
func TestVariablesEqualTheLibrary(t *testing.T) {
	values := map[string]string{"A": "one", "B": "", "C": "t-w:o?"}
	names := []string{"A", "B", "C"}
	rapid.Check(t, func(t *rapid.T) {
		in := someTemplate(t, names, 3)
		got, f := someVariables(values).replace(in, place{file: "f", line: 1})
		want, err := template.Substitute(in, func(k string) (string, bool) { v, ok := values[k]; return v, ok })
		if f != nil && err == nil || f == nil && (err != nil || got != said(want)) {
			t.Fatalf("%q is %q (%v), compose-go says %q (%v)", in, got.plain, f, want, err)
		}
	})
}

func someTemplate(t *rapid.T, names []string, depth int) string {
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0:
			b.WriteString(rapid.StringMatching(`[a-z /:.?+-]{0,6}`).Draw(t, "text"))
		case kind == 1:
			b.WriteString("$$")
		case kind == 2:
			b.WriteString("${" + name + "}")
		case kind == 3 && depth > 0:
			op := rapid.SampledFrom([]string{"-", ":-", "+", ":+"}).Draw(t, "op")
			b.WriteString("${" + name + op + someTemplate(t, names, depth-1) + "}")
		default:
			b.WriteString("$" + name + " ")
		}
	}
	return b.String()
}

func TestEnvFilesAreReadAsTheLibraryReadsThem(t *testing.T) {
	for _, in := range []string{
		"", "\n\n", "# only a comment", "A=1", "A=1\nB=2\n", "\uFEFFA=1\n", "A = 1 \n", "export A=1\n", "export\tA=1\n", "exported=1\n",
		"A: yaml\n", "A=a b c\n", "A=a #comment\n", "A=a#b\n", "A= # c\n", "A=\n", "A=\"\"\n", "A=''\n",
		"A='single $B'\n", "A=\"double\"\n", "A=\"two\nlines\"\nB=1\n", "A='two\nlines'\nB=1\n", "A=\"a\\nb\\tc\"\n", `A="a \" b"` + "\n",
		`A='a \' b'` + "\n", `A="\$HOME"` + "\n", "A=$$\n", "A=1\nB=$A\nC=${A}-${B}\n", "A=1\r\nB=2\r\n", "  A=1\n\tB=2\n",
		"A.B-C=1\n", "a1=x=y=z\n", "A=http://a.b/c?d=e&f=g\n", "A=\"x\" # c\nB=1\n", "A=\"x\"B=1\n", "# c\n# d\nA=1\n#", "A=a\\b\n", `A="a\\b"` + "\n", "A='#x'\n", "A=x\nA=y\n",
	} {
		v := someVariables(nil)
		f := v.envFile("f.env", []byte(in))
		want, err := dotenv.Parse(strings.NewReader(in))
		if (f != nil) != (err != nil) {
			t.Errorf("%q: got %v, the library says %v", in, f, err)
			continue
		}
		if d := cmp.Diff(want, v.texts()); f == nil && d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

func TestBadEnvFilesAreRefusedWithTheirLine(t *testing.T) {
	for in, line := range map[string]int{
		"A=1\n\n# c\nB C=1\n":   4,
		"A=\"1\n2\"\nB=$NO\n":   3,
		"A=1\nB='x\n\n":         2,
		"=1\n":                  1,
		"A=1\nB={}\n{\n":        3,
		"A=1\nB=${NO:?must}\n":  2,
		"A='ok'\nB=\"${NO}\"\n": 2,
		"a/b=1\n":               1,
	} {
		f := someVariables(nil).envFile("f.env", []byte(in))
		if len(f) == 0 || f[0].line != line || f[0].file != "f.env" {
			t.Errorf("%q: got %v, want line %d", in, f, line)
		}
	}
}

func TestARawEnvFileIsLiteral(t *testing.T) {
	v := someVariables(nil)
	if f := v.rawEnvFile("f", []byte("# c\nA=$B 'x' \"y\" # z\r\n\nC=\n")); f != nil {
		t.Fatal(f)
	}
	if d := cmp.Diff(map[string]string{"A": `$B 'x' "y" # z`, "C": ""}, v.texts()); d != "" {
		t.Error(d)
	}
}

func FuzzVariables(f *testing.F) {
	for _, s := range []string{"$A", "${A:-${B}}", "${A:?x}", "$$", "${", "${A:+}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := someVariables(map[string]string{"A": "x"})
		if got, fault := v.replace(s, place{file: "f", line: 1}); fault == nil && len(got.plain) > v.budget.text {
			t.Error("longer than it may be")
		}
		_ = someVariables(nil).envFile("f", []byte(s))
	})
}
