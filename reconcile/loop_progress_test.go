package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// While a pull runs the status says how far it is, without a look at the
// engine for it; afterwards it does not.
func TestLoopTellsHowFarAPullIs(t *testing.T) {
	playSlow(t, 0, func(t *testing.T, h *slowHost, l *Loop) {
		h.with(func() {
			h.takes = func(a ring.Action) time.Duration {
				if a.Kind == ring.DoPull {
					return 8 * time.Second
				}
				return time.Millisecond
			}
		})
		offer(t, l, tree("c1", "a=v1"))
		time.Sleep(3 * time.Second)
		var pull ring.Action
		looks := 0
		h.with(func() {
			looks = h.looks
			for _, a := range h.steps {
				if a.Kind == ring.DoPull {
					pull = a
				}
			}
		})
		if pull.Image == "" {
			t.Fatal("nothing is pulled")
		}
		for _, says := range []string{"1MB of 3MB, 0 of 2 layers", "2MB of 3MB, 1 of 2 layers"} {
			l.Progress(pull.Target(), says)
			time.Sleep(50 * time.Millisecond)
			st, _ := l.Status()
			want := "pulling " + pull.Image + " (" + says + ")"
			if got := st.Sources[0].Apps[0].Reason; got != want {
				t.Errorf("the app's reason is %q, want %q", got, want)
			}
			if got := st.Sources[0].Next.Reason; !strings.HasSuffix(got, want) {
				t.Errorf("next is %q, want …%q", got, want)
			}
		}
		h.with(func() {
			if h.looks != looks {
				t.Errorf("%d looks at the engine for nothing", h.looks-looks)
			}
		})
		time.Sleep(8 * time.Second)
		st, _ := l.Status()
		if got := st.Sources[0].Apps[0].Reason; strings.Contains(got, "layers") {
			t.Errorf("after the pull the reason is %q", got)
		}
	})
}
