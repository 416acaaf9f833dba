// A stand-in for the programs of many images, in an image from scratch: it
// waits as a server would, answers every health check, and ends as a task does.
//
//	idle [server's arguments]    waits until it is told to stop
//	idle sh|migrate|backup …     a task: says so and ends with 0
//	pg_isready, curl, sh, …      a tool by another name: ends with 0
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	switch name := filepath.Base(os.Args[0]); {
	case name != "idle" && name != "cron.sh":
		os.Exit(0)
	case len(os.Args) > 1 && slices.Contains([]string{"sh", "migrate", "backup"}, os.Args[1]):
		fmt.Println("done:", os.Args[1:])
		os.Exit(0)
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGQUIT, os.Interrupt)
	fmt.Println("waits:", os.Args[1:])
	<-told
}
