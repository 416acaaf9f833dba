package runtime

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each text has the value as some program repeats it, written out by hand.
func TestAValueIsStruckOutInEachFormThatProgramsRepeatIt(t *testing.T) {
	o := &opener{opened: map[string]string{"p/w \"x\"": "PASSWORD", "first-line\nsecond-line\n": "CERT", "abc": "SHORT"}}
	for text, want := range map[string]string{
		`bad password p/w "x"!`:               `bad password <PASSWORD>!`,
		`{"pw": "p/w \"x\""}`:                 `{"pw": "<PASSWORD>"}`,
		`https://h/?pw=p%2Fw+%22x%22&a`:       `https://h/?pw=<PASSWORD>&a`,
		`https://u:p%2Fw%20%22x%22@h`:         `https://u:<PASSWORD>@h`,
		`Authorization: Basic cC93ICJ4Ig==.`:  `Authorization: Basic <PASSWORD>.`,
		`token cC93ICJ4Ig.`:                   `token <PASSWORD>.`,
		"line 2: second-line is wrong":        "line 2: <CERT> is wrong",
		`first-line\nsecond-line\n`:           `<CERT>`,
		"abc is in every sentence":            "abc is in every sentence",
		"what holds nothing stays as it is ü": "what holds nothing stays as it is ü",
	} {
		require.Equal(t, want, o.redact(text))
	}
}

// What nothing opens on this host is no fault of a version: it is told as what the host lacks,
// by its name, and nothing is made.
func TestWhatNothingOpensIsToldAndNothingIsMade(t *testing.T) {
	r := fakeRig(t)
	r.Docker.opts.Open = func(s ring.Sealed) (string, error) {
		return "", errors.New("cannot open " + s.Name + ": it is for another key")
	}
	e := r.MustFail(t, r.CreateAction(func(s *ring.Service) {
		s.Spec.Environment = map[string]string{"PW": ring.Sealed{From: ring.FromSOPS, App: r.App, File: "db.enc.env", Name: "PASSWORD", MAC: strings.Repeat("a", 32)}.String()}
	}))
	require.ErrorContains(t, e, "cannot open PASSWORD: it is for another key")
	require.NotNil(t, e.Refusal)
	require.False(t, e.Permanent, "it is tried again")
	require.Empty(t, r.Seen(t).Instances)
}
