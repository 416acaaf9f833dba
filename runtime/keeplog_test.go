package runtime

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// lastWords is the step that reads the end of an instance's log.
func lastWords(in ring.Instance, want *ring.Service, n int) ring.Action {
	a := enginetest.ActionOn(ring.DoLog, in)
	a.Want, a.Lines = want, n
	return a
}

func TestALogIsKeptWithoutTheValuesThatItsServiceUses(t *testing.T) {
	const old, multi = "hunter22", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----"
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage, Logs: strings.Join([]string{
		"token " + old, "url postgres://u:p%40ss+word@db", "MIIEpAIBAAKCAQEA", `{"pw":"a\u003cb\"c"}`, "basic " + base64.StdEncoding.EncodeToString([]byte(old)), "\x1b[31mred\x1b[0m\a bell", "plain",
	}, "\n") + "\n"})
	token := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	values := map[ring.Sealed]string{token: old}
	r.opts.Open = func(s ring.Sealed) (string, error) {
		if v, ok := values[s]; ok {
			return v, nil
		}
		return "", errors.New("it is not what it was")
	}
	r.opts.Values = func(app string) (map[string]string, error) {
		require.Equal(t, r.App, app)
		return map[string]string{multi: "KEY", "p@ss word": "PASSWORD", `a<b"c`: "ODD"}, nil
	}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Environment = map[string]string{"TOKEN": "a-" + token.String() + "-b", "OTHER": "x"}
	})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	want := []string{"token <TOKEN>", "url postgres://u:<PASSWORD>@db", "<KEY>", `{"pw":"<ODD>"}`, "basic <TOKEN>", "red bell", "plain"}
	require.Equal(t, want, r.Must(t, lastWords(in, a.Want, 200)).Log)
	require.Equal(t, want[5:], r.Must(t, lastWords(in, a.Want, 2)).Log, "the last ones")

	delete(values, token) // the value was changed since: the instance still has the old one
	require.Equal(t, want, r.Must(t, lastWords(in, a.Want, 200)).Log)

	sealed := *a.Want
	sealed.Spec.Command = []string{"serve", token.String()} // nobody can tell any more what it was
	require.Equal(t, []string{withheld}, r.Must(t, lastWords(in, &sealed, 200)).Log)
	require.Equal(t, []string{withheld}, r.Must(t, lastWords(in, nil, 200)).Log, "nothing is known of its version")

	r.opts.Values = func(string) (map[string]string, error) { return nil, errors.New("cannot read env.dir") }
	require.Equal(t, []string{withheld}, r.Must(t, lastWords(in, a.Want, 200)).Log)
	e := r.MustFail(t, lastWords(ring.Instance{ID: strings.Repeat("0", 64)}, a.Want, 1))
	require.NotNil(t, e)
}

func TestWhatIsKeptOfALogIsBoundedAndHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \n\n\r\t\x1b[m\x00é\u202e")), 0, 400, -1).Draw(t, "text")
		text = strings.Repeat(text, rapid.IntRange(1, 400).Draw(t, "times"))
		n := rapid.IntRange(1, 300).Draw(t, "lines")
		got := lastLines(text, n)
		size := 0
		for _, line := range got {
			size += len(line) + 1
			if len(line) > lineBytes || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\x1b\x00\u202e") {
				t.Fatalf("%q", line)
			}
		}
		if len(got) > n || size > keepBytes+1 {
			t.Fatalf("%d lines, %d bytes", len(got), size)
		}
	})
	require.Nil(t, lastLines("", 5))
	require.Equal(t, []string{"a", "", "b"}, lastLines("a\n\nb\n", 5))
	e := &ending{max: 10}
	for i := range 1000 {
		_, _ = fmt.Fprintf(e, "%d ", i)
	}
	require.True(t, strings.HasSuffix(string(e.b), "997 998 999 "))
	require.LessOrEqual(t, len(e.b), 3*e.max)
}

func TestTheEngineKeepsOneLogForAllRuns(t *testing.T) {
	r := realRig(t)
	token := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	r.opts.Open = func(ring.Sealed) (string, error) { return "hunter22", nil }
	for _, tty := range []bool{false, true} {
		a := r.CreateAction(func(s *ring.Service) {
			s.Name = fmt.Sprint("cries-", tty)
			s.Spec.Command = []string{"cry", "3"}
			s.Spec.Tty = tty
			s.Spec.Environment = map[string]string{"TOKEN": token.String()}
		})
		r.Must(t, a)
		of := func(s ring.Seen) ring.Instance {
			for _, in := range s.Instances {
				if in.Service == a.Service {
					return in
				}
			}
			return ring.Instance{}
		}
		ended := func(after time.Time) ring.Instance {
			s := r.WaitFor(t, "the exit", func(s ring.Seen) bool {
				r.cache.mark("")
				in := of(s)
				return in.Ended() && in.Finished.After(after)
			})
			return of(s)
		}
		first := ended(time.Time{})
		r.Must(t, enginetest.ActionOn(ring.DoStart, first))
		second := ended(first.Finished)
		step := lastWords(second, a.Want, ring.CrashLogLines)
		log := r.Must(t, step).Log
		require.Len(t, log, ring.CrashLogLines)
		require.Equal(t, "fatal: no luck with <TOKEN>", log[199])
		require.Equal(t, "line 299", log[198])
		step.Lines = 1000
		require.Len(t, r.Must(t, step).Log, 602, "of both runs")
		step.From = first.Finished.Add(second.Finished.Sub(first.Finished) / 2)
		require.Less(t, len(r.Must(t, step).Log), 602, "not of the first")
		step.From = time.Now().Add(time.Minute)
		require.Empty(t, r.Must(t, step).Log)
		step.From, step.To = time.Time{}, first.Started.Add(-time.Minute)
		require.Empty(t, r.Must(t, step).Log)
		var b strings.Builder
		require.NoError(t, r.Logs(t.Context(), first.ID, LogOptions{Tail: 1}, &b))
		require.Contains(t, b.String(), "no luck")
	}
}

func TestALogThatTheEngineDoesNotHandOverIsSaidSo(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage, Logs: "last words\n"})
	a := r.CreateAction(nil)
	r.Must(t, a)
	in := r.OnlyInstance(t)
	var tries int
	f.Fail(func(op string, _ int) (before, after error) {
		if op != "ContainerLogs" {
			return nil, nil
		}
		if tries++; tries > 1 {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		<-ctx.Done()
		return ctx.Err(), nil
	})
	step := lastWords(in, a.Want, 200)
	step.Timeout = 300 * time.Millisecond
	_, err := r.Do(t.Context(), step)
	require.ErrorContains(t, err, "cannot read the log of container "+in.Name)
	require.ErrorContains(t, err, "the engine did not hand it over within 300ms")
	step.Timeout = time.Minute
	require.Equal(t, []string{"last words"}, r.Must(t, step).Log, "and the next try has it")
}
