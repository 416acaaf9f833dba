// Command front is the program in the container that stands before a service: the front's
// supervisor, its proxy and its health check. It imports package proxy alone, and so stays small.
package main

import (
	"os"

	"github.com/gitring/gitring/proxy"
)

func main() { os.Exit(proxy.Main(os.Args[1:])) }
