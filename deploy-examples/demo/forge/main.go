// The demo of a fleet needs a place where its hosts tell each other how a commit fared. A
// forge is that place, and this program is none: it speaks the two calls of Gitea's API that
// set and read the statuses of a commit, for whoever has the token. It keeps them in memory,
// and knows no repository, no user and no page.
//
//	forge <file of the token>
//
// It listens on a free port of loopback, and writes its address.
package main

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// longest bounds the body of one status, and most how many are kept.
	longest = 16 << 10
	most    = 10_000
)

// status is what somebody said of a commit, by the names that Gitea takes and gives.
type status struct {
	ID          int    `json:"id"`
	Context     string `json:"context"`
	State       string `json:"state,omitempty"`  // as it is set
	Status      string `json:"status,omitempty"` // as it is read
	Description string `json:"description"`
}

// statuses are the words said of commits, in the order in which they came.
type statuses struct {
	token string

	mu   sync.Mutex // guards what follows
	kept int
	of   map[string][]status // by commit
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: forge <file of the token>")
	}
	token, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal("cannot read the token: ", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal("cannot listen: ", err)
	}
	fmt.Println("http://" + l.Addr().String() + "/api/v1")
	s := &http.Server{Handler: routes(strings.TrimSpace(string(token))), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	log.Fatal(s.Serve(l))
}

func routes(token string) http.Handler {
	s := &statuses{token: token, of: map[string][]status{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/repos/{owner}/{repo}/statuses/{sha}", s.let(s.set))
	mux.HandleFunc("GET /api/v1/repos/{owner}/{repo}/commits/{sha}/status", s.let(s.read))
	return mux
}

// let lets in whoever has the token.
func (s *statuses) let(in http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("token "+s.token)) != 1 {
			http.Error(w, `{"message":"token is required"}`, http.StatusUnauthorized)
			return
		}
		in(w, r)
	}
}

func (s *statuses) set(w http.ResponseWriter, r *http.Request) {
	var said status
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longest)).Decode(&said)
	if err != nil || !slices.Contains([]string{"pending", "success", "failure", "error"}, said.State) {
		http.Error(w, `{"message":"this is no status"}`, http.StatusUnprocessableEntity)
		return
	}
	said.Status, said.State = said.State, ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == most {
		s.kept, s.of = 0, map[string][]status{}
	}
	s.kept++
	said.ID = s.kept
	s.of[r.PathValue("sha")] = append(s.of[r.PathValue("sha")], said)
	answer(w, http.StatusCreated, said)
}

// read tells the newest status of each context. All of a demo's fit one page.
func (s *statuses) read(w http.ResponseWriter, r *http.Request) {
	newest := []status{}
	s.mu.Lock()
	for _, said := range slices.Backward(s.of[r.PathValue("sha")]) {
		if !slices.ContainsFunc(newest, func(n status) bool { return n.Context == said.Context }) {
			newest = append(newest, said)
		}
	}
	s.mu.Unlock()
	if page := r.FormValue("page"); page != "" && page != "1" {
		newest = newest[:0]
	}
	answer(w, http.StatusOK, map[string]any{"sha": r.PathValue("sha"), "statuses": newest})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
