package health

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/gitring/gitring/ring"
)

// asksOf is the short hash of what a check asks and what for: its streak speaks
// of nothing else. Intervals, timeouts and thresholds may change under it.
func asksOf(c ring.Check) string {
	asks := ring.Check{For: c.For, HTTP: c.HTTP, TCP: c.TCP, Exec: c.Exec, GRPC: c.GRPC, Docker: c.Docker}
	b, err := json.Marshal(asks)
	if err != nil {
		panic(err) // texts and numbers
	}
	h := fnv.New64a()
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}
