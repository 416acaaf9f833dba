package runtime

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestWhatAFailedCheckPrintedIsToldWithoutSecrets(t *testing.T) {
	const token, key = "hunter22", "correct horse"
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage, Logs: "plain\n"})
	sealed := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	r.opts.Open = func(ring.Sealed) (string, error) { return token, nil }
	r.opts.Values = func(string) (map[string]string, error) { return map[string]string{key: "KEY"}, nil }
	own := map[string]string{}
	r.opts.Printed = func(string) map[string]string { return own }
	a := r.CreateAction(func(s *ring.Service) { s.Spec.Environment = map[string]string{"TOKEN": sealed.String()} })
	r.Must(t, a)
	in := r.OnlyInstance(t)

	got, err := r.Printed(t.Context(), in.ID, a.Want)
	require.NoError(t, err)
	require.Empty(t, got, "nothing failed")

	f.FailCheck(in.ID, "1\n2\n3\nno \x1b[31mroute to "+token+"\n"+key+" is wrong\nbye\n")
	own["up"] = strings.Repeat("x", ring.PrintedCap-10) + "\nx" + key[:8] // cut off in a value
	want := []string{"2", "3", "no route to <TOKEN>", "<KEY> is wrong", "bye"}
	got, err = r.Printed(t.Context(), in.ID, a.Want)
	require.NoError(t, err)
	require.Equal(t, want, got[0].Lines, "its last lines")
	require.NotContains(t, strings.Join(got[1].Lines, ""), "corr", "nor the beginning of one where the text was cut off")
	delete(own, "up")
	require.Equal(t, want, r.Must(t, lastWords(in, a.Want, 5)).Checked, "the record of a failure has it too")

	got, err = r.Printed(t.Context(), in.ID, nil)
	require.NoError(t, err)
	require.Equal(t, []ring.CheckPrinted{{Lines: []string{withheldCheck}}}, got, "nothing is known of its version")
	r.opts.Values = func(string) (map[string]string, error) { return nil, errors.New("cannot read env.dir") }
	got, err = r.Printed(t.Context(), in.ID, a.Want)
	require.NoError(t, err)
	require.Equal(t, []ring.CheckPrinted{{Lines: []string{withheldCheck}}}, got)
	f.SetHealth(in.ID, "healthy")
	got, err = r.Printed(t.Context(), in.ID, a.Want)
	require.NoError(t, err)
	require.Empty(t, got)
}
