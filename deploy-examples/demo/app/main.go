// The demo's app: a small HTTP server that says which version it is.
//
//	GET /          hello from version 1, secret's fingerprint 4f1c09
//	GET /slow      the same, after a second: a request to be in flight with
//	GET /healthz   ok, or 503 while it is not ready
//
// "hello check" asks the last of a server beside it, and ends with status 1 where it is not ready.
//
// VERSION is the text it tells, GREETING stands in for "hello", BROKEN=1 makes a
// version that never becomes ready, and ERRORS is how many of 100 requests of
// GET / it answers with 500, evenly spread. Where a secret is mounted it tells a
// fingerprint, which says that the secret changed and not what it is. On SIGTERM it finishes the requests
// in flight, then ends with status 0. It logs a line at its start and one at its
// stop, so that `gitring logs` has something to show.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	address = ":8080"
	// drain is how long requests in flight may take after SIGTERM, within
	// Docker's default grace of 10 s.
	drain = 8 * time.Second
	slow  = time.Second
	// token is where Compose mounts the secret.
	token = "/run/secrets/token"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "check" {
		check()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	secret, err := os.ReadFile(token)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Fatal(err)
	}
	log.Printf("version %s listens on %s", os.Getenv("VERSION"), address)
	if err := serve(ctx, &http.Server{Addr: address, Handler: routes(os.Getenv, secret)}); err != nil {
		log.Fatal(err)
	}
}

// check ends with status 1 where the server beside it is not ready: a healthcheck for an engine
// that asks from inside.
func check() {
	res, err := http.Get("http://127.0.0.1" + address + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		log.Fatal(res.Status) //nolint:gocritic // the body closes with the process
	}
}

// fingerprint is the same for the same secret, and leads nobody back to it: a
// secret of many random bits is the key, and 24 bits of the hash are told.
func fingerprint(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("gitring demo"))
	return fmt.Sprintf("%x", mac.Sum(nil)[:3])
}

// routes answers for the version that the environment describes, with the secret
// that is mounted, if any.
func routes(env func(string) string, secret []byte) http.Handler {
	greeting := env("GREETING")
	if greeting == "" {
		greeting = "hello"
	}
	says := fmt.Sprintf("%s from version %s", greeting, env("VERSION"))
	if len(secret) > 0 {
		says += ", secret's fingerprint " + fingerprint(secret)
	}
	says += "\n"

	errors, _ := strconv.ParseInt(env("ERRORS"), 10, 64)
	var asked atomic.Int64

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n*errors/100 != (n-1)*errors/100 {
			http.Error(w, fmt.Sprintf("version %s fails on purpose", env("VERSION")), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, says)
	})
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(slow)
		fmt.Fprint(w, says)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if env("BROKEN") == "1" {
			http.Error(w, "this version is broken on purpose", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// serve runs until ctx ends, then lets what is in flight finish.
func serve(ctx context.Context, s *http.Server) error {
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		log.Print("told to stop: finishing the requests in flight")
	}
	last, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
