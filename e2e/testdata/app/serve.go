package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// serve answers on :8080 until SIGTERM, then finishes what is in flight and
// ends with status 0.
//
//	VERSION       what GET / tells
//	BROKEN=1      it never becomes ready
//	READY_AFTER   milliseconds until it is ready
//	GATE          a file without which it is not ready; POST /write makes one
//	EXIT_AFTER    milliseconds until it ends by itself, with status 3
//	DATA          a folder that it must have for itself, see data.go
//	STOP_AFTER    milliseconds that it takes to stop
//	ABRUPT=1      it ends at once when it is told to stop, whatever is in flight
//	ERRORS        how many of 100 requests of GET / and POST /echo it answers with 500
//	CONF          a file that it reads at its start and at SIGUSR1, see conf.go
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if dir := os.Getenv("DATA"); dir != "" {
		d, err := own(dir)
		if err != nil {
			return err
		}
		defer d.release()
	}
	if after := millis("EXIT_AFTER"); after > 0 {
		time.AfterFunc(after, func() { os.Exit(3) })
	}
	s := &http.Server{Addr: ":8080", Handler: routes(time.Now())}
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if os.Getenv("ABRUPT") == "1" {
		os.Exit(0)
	}
	last, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	err := s.Shutdown(last)
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	time.Sleep(millis("STOP_AFTER"))
	return err
}

// open reports whether a gate is open; no gate is.
func open(gate string) bool {
	_, err := os.Stat(gate)
	return gate == "" || err == nil
}

func routes(began time.Time) http.Handler {
	mux := http.NewServeMux()
	conf := readConf()
	mux.Handle("GET /conf", conf)
	errors, _ := strconv.Atoi(os.Getenv("ERRORS"))
	var asked atomic.Int64
	// head says which version answers, and begins an error where it is the turn of one.
	head := func(w http.ResponseWriter) {
		w.Header().Set("Version", os.Getenv("VERSION"))
		if int(asked.Add(1)%100) < errors {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		head(w)
		fmt.Fprint(w, os.Getenv("VERSION"))
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		head(w)
		_, _ = w.Write(b)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if os.Getenv("BROKEN") == "1" || conf.unready() || time.Since(began) < millis("READY_AFTER") || !open(os.Getenv("GATE")) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	// The head at once, the body after ms: a request to be in flight with.
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.FormValue("ms"))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Duration(ms) * time.Millisecond)
		fmt.Fprint(w, "done")
	})
	// Another protocol on the same connection, as of a websocket: lines come back.
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(c, os.Getenv("VERSION"), " ", line)
		}
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(r.FormValue("path"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(b)
	})
	mux.HandleFunc("POST /write", func(w http.ResponseWriter, r *http.Request) {
		if err := os.WriteFile(r.FormValue("path"), []byte(r.FormValue("text")), 0o644); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	})
	mux.HandleFunc("POST /exit", func(_ http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.FormValue("code"))
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339Nano), "told to exit, after", time.Since(began))
		os.Exit(code)
	})
	return mux
}
