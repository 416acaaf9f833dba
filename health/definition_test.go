package health

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// settings are the fields of a check that say how often and how long it is asked, and
// what follows. Every other field is a probe.
var settings = []string{"Name", "For", "Interval", "Timeout", "Failures", "Successes", "OnFailure"}

// A kind of check that the manifest takes and nobody asks would keep its service from
// becoming ready for ever.
func TestEveryProbeIsAskedAndTellsChecksApart(t *testing.T) {
	seen := 0
	for f := range reflect.TypeFor[ring.Check]().Fields() {
		if slices.Contains(settings, f.Name) {
			continue
		}
		seen++
		t.Run(f.Name, func(t *testing.T) {
			c := ring.Check{}
			switch v := reflect.ValueOf(&c).Elem().FieldByName(f.Name); v.Kind() {
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			case reflect.Bool:
				v.SetBool(true)
			default:
				t.Fatalf("a probe of the type %s is new here", v.Type())
			}
			require.NotEqual(t, asksOf(ring.Check{}), asksOf(c), "asksOf leaves it out: an edited check keeps the streak of another one")
			if !c.Docker { // the engine asks that one
				require.NotEqual(t, nothingToAsk(), newProber(nil).ask(context.Background(), ring.Instance{}, c).says, "nobody asks it")
			}
		})
	}
	require.GreaterOrEqual(t, seen, 5)
}

// nothingToAsk is what is said of a check without a probe.
func nothingToAsk() string {
	return newProber(nil).ask(context.Background(), ring.Instance{}, ring.Check{}).says
}
