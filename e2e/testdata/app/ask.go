package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// answer is what came of one request. Times are Unix nanoseconds; Head is 0
// when no head of an answer came.
type answer struct {
	URL         string
	Began       int64
	Head, Ended int64
	Code        int
	Body, Err   string
}

// ask requests every url of the query at once, each on a connection of its own,
// and tells what came of it.
func ask(w http.ResponseWriter, r *http.Request) {
	timeout, err := time.ParseDuration(r.FormValue("timeout"))
	if err != nil {
		timeout = 2 * time.Second
	}
	urls := r.URL.Query()["url"]
	answers := make([]answer, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { answers[i] = get(u, timeout) })
	}
	wg.Wait()
	_ = json.NewEncoder(w).Encode(answers)
}

func get(url string, timeout time.Duration) (a answer) {
	a = answer{URL: url, Began: time.Now().UnixNano()}
	defer func() { a.Ended = time.Now().UnixNano() }()
	c := http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: timeout}).DialContext,
	}}
	res, err := c.Get(url)
	if err != nil {
		a.Err = err.Error()
		return a
	}
	a.Head, a.Code = time.Now().UnixNano(), res.StatusCode
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	a.Body = string(b)
	if err != nil {
		a.Err = err.Error()
	}
	return a
}
