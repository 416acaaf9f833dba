package api

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(doorEngine) != "" {
		serveDoor()
		return
	}
	if os.Getenv(floodsDoor) != "" {
		flood()
		return
	}
	goleak.VerifyTestMain(m)
}
