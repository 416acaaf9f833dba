// The tests' app, in an image from scratch: what it does is said by its first
// argument and its environment.
//
//	app [serve]     a small HTTP server, see serve.go
//	app job         a job, see job.go
//	app ask         asks other instances for the test, from inside their network, see ask.go
//	app reload FILE has the server read its file again, see conf.go
//	app check URL   exits with 0 when the URL answers 200
//	app tell N WORD… repeats words in all forms and exits with N, see tell.go
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	verb := "serve"
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "serve":
		exit(serve())
	case "job":
		job()
	case "ask":
		exit(http.ListenAndServe(":8080", http.HandlerFunc(ask)))
	case "reload":
		exit(reload(os.Args[2]))
	case "check":
		os.Exit(check(os.Args[2]))
	case "tell":
		tell(os.Args[2], os.Args[3:])
	}
	exit(fmt.Errorf("no such verb: %s", verb))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func check(url string) int {
	c := http.Client{Timeout: 2 * time.Second}
	r, err := c.Get(url)
	if err != nil {
		return 1
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

// millis is a variable as a duration, 0 when it is not set.
func millis(name string) time.Duration {
	var n int
	fmt.Sscan(os.Getenv(name), &n)
	return time.Duration(n) * time.Millisecond
}
