package reconcile

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A field that is added and not compared would leave an older count, check or knob
// to be brought back. The oracle is what a restart would read.
func TestAServiceIsTheSameOnlyIfEveryFieldOfItIs(t *testing.T) {
	written := func(s ring.Service) string {
		s.Changed, s.Line = "", 0 // which commit asked, and where it says so, changes nothing
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return string(b)
	}
	versioned := func(s ring.Service) ring.Service {
		s.Written = ring.WrittenHash(s.Spec)
		s.Version = ring.VersionOf(&ring.App{Name: "shop"}, &s, s.Pin)
		return s
	}
	for name, at := range schema() {
		t.Run(name, func(t *testing.T) {
			was, will := versioned(plain()), plain()
			another(reflect.ValueOf(&will).Elem().FieldByIndex(at), 7)
			if name != "written" && name != "version" {
				will = versioned(will)
			}
			require.Equal(t, written(was) == written(will), sameService(&was, &will))
			var again ring.Service
			b, err := json.Marshal(will)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &again))
			require.True(t, sameService(&will, &again), "as a daemon reads it after a restart")
		})
	}
}
