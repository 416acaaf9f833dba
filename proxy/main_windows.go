package proxy

import (
	"fmt"
	"os"
)

// Main is the program of a front. Fronts run on Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "cannot run here: fronts run on Linux")
	return 2
}
