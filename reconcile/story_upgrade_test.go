package reconcile

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// withoutCodes are facts as a release wrote them that knew no codes of reasons.
func withoutCodes(f ring.Facts) (out ring.Facts, struck int) {
	out = copyFacts(f)
	struck = strikeCodes(reflect.ValueOf(&out).Elem())
	return out, struck
}

// strikeCodes empties each field that is a code of a reason, at whatever depth, and says
// how many there were. Values of maps are written anew: they cannot be changed in place.
func strikeCodes(v reflect.Value) (struck int) {
	code := reflect.TypeFor[ring.ReasonCode]()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if !f.CanSet() {
				continue
			}
			if f.Type() == code && f.String() != "" {
				f.SetString("")
				struck++
				continue
			}
			struck += strikeCodes(f)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			row := reflect.New(v.Type().Elem()).Elem()
			row.Set(v.MapIndex(key))
			if n := strikeCodes(row); n > 0 {
				v.SetMapIndex(key, row)
				struck += n
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			struck += strikeCodes(v.Index(i))
		}
	}
	return struck
}

func TestCodesAreStruck(t *testing.T) {
	f := ring.NewFacts()
	f.Verdicts["shop/web v1"] = ring.Verdict{Reason: "it failed", Code: ring.WhyProgramEnded}
	out, struck := withoutCodes(f)
	require.Equal(t, 1, struck)
	require.Equal(t, ring.Verdict{Reason: "it failed"}, out.Verdicts["shop/web v1"])
	require.Equal(t, ring.WhyProgramEnded, f.Verdicts["shop/web v1"].Code, "the original stays")
}
