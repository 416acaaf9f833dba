package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

// conf is the file that CONF names, as it was when the server started or was
// last told by SIGUSR1 to read it again: GET /conf tells it, what it holds at
// that moment. A text with "unready" in it is taken, and ends readiness.
type conf struct{ text atomic.Value }

func readConf() *conf {
	c := &conf{}
	c.text.Store("")
	path := os.Getenv("CONF")
	if path == "" {
		return c
	}
	read := func() {
		if b, err := os.ReadFile(path); err == nil {
			c.text.Store(string(b))
		}
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGUSR1)
	read()
	go func() {
		for range again {
			read()
		}
	}()
	return c
}

func (c *conf) ServeHTTP(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.text.Load()) }

func (c *conf) unready() bool { return strings.Contains(c.text.Load().(string), "unready") }

// reload looks at the file before it has the server read it: one with "broken"
// in it is refused, and the server never hears of it.
func reload(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.Contains(string(b), "broken") {
		return fmt.Errorf("line 1: %s", strings.TrimSpace(string(b)))
	}
	return syscall.Kill(1, syscall.SIGUSR1)
}
