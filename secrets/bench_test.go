package secrets

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hundred are as many encrypted files of ten values each, and the keys that open them.
func hundred(t testing.TB) (bodies [][]byte, keys Keys) {
	t.Helper()
	body, recipient, err := NewAgeKey(time.Now())
	require.NoError(t, err)
	keys, err = ParseAgeKeys("age.key", body)
	require.NoError(t, err)
	rule, err := RuleFor([]byte("creation_rules: [{age: '"+recipient+"'}]"), "x")
	require.NoError(t, err)
	for i := range 100 {
		plain := ""
		for j := range 10 {
			plain += fmt.Sprintf("NAME_%d=value %d of %d\n", j, j, i)
		}
		b, err := Encrypt(Env, []byte(plain), rule, nil, time.Now().UTC(), true)
		require.NoError(t, err)
		bodies = append(bodies, b)
	}
	return bodies, keys
}

func openAll(t testing.TB, bodies [][]byte, keys Keys) {
	t.Helper()
	for _, b := range bodies {
		f, err := Read(b)
		require.NoError(t, err)
		o, err := f.Open(keys)
		require.NoError(t, err)
		require.Len(t, o.Values, 10)
	}
}

// The bar is 100 ms for all (docs/testing/secrets-table.md).
func BenchmarkAHundredEncryptedFiles(b *testing.B) {
	bodies, keys := hundred(b)
	for b.Loop() {
		openAll(b, bodies, keys)
	}
}

// What was opened and is not held any more takes no room: no cache grows with each file.
func TestNothingOfAnOpenedFileStaysInMemory(t *testing.T) {
	bodies, keys := hundred(t)
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	openAll(t, bodies, keys)
	before := held()
	for range 10 {
		openAll(t, bodies, keys)
	}
	require.Less(t, held(), before+2<<20)
	runtime.KeepAlive(bodies)
}
