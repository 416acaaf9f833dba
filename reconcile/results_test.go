package reconcile

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// docs/design/rollout.md#checks: results of checks are kept for people. A decision is made of a
// World, and nothing in it, however deep, is such a result; nor a status.
func TestNoDecisionReadsResultsOfChecksOrAStatus(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(at reflect.Type) {
		if seen[at] || at == reflect.TypeFor[ring.Unread]() { // a record that waits for its log, and is handed on as it is
			return
		}
		seen[at] = true
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(at.Elem())
		case reflect.Map:
			walk(at.Key())
			walk(at.Elem())
		case reflect.Struct:
			for i := range at.NumField() {
				walk(at.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[World]())
	require.True(t, seen[reflect.TypeFor[ring.Health]()], "the walk finds what decisions do read")
	for _, never := range []reflect.Type{reflect.TypeFor[ring.Result](), reflect.TypeFor[ring.Status](), reflect.TypeFor[ring.ServiceStatus](), reflect.TypeFor[ring.Crash]()} {
		require.False(t, seen[never], never)
	}
}
