// Command app is what the tests run in containers: a server that does as it is
// told, and the client that tells it.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	args := append(os.Args[1:], "")
	switch args[0] {
	case "serve":
		serve()
	case "sleep": // until it is told to end
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
	case "exit": // ends the server with a code
		get("/exit?code=" + args[1])
	case "health": // on, off: what check says from now on
		get("/health?set=" + args[1])
	case "check":
		if get("/health") != "on" {
			os.Exit(1)
		}
	case "say": // a text so many times, then a code
		n, _ := strconv.Atoi(args[2])
		fmt.Print(strings.Repeat(args[1], n))
		os.Exit(7)
	case "tell": // who, where and with what, on file descriptor 1, then a code
		wd, _ := os.Getwd()
		fmt.Printf("uid=%d cwd=%s %s=%s", os.Getuid(), wd, args[1], os.Getenv(args[1]))
		n, _ := strconv.Atoi(args[2])
		os.Exit(n)
	case "cry": // its secret, in colour, and the run it is in; then a code, or it stays
		for i := range 300 {
			fmt.Printf("line %d\n", i)
		}
		fmt.Printf("\x1b[31mfatal\x1b[0m: no luck with %s\n", os.Getenv("TOKEN"))
		if n, err := strconv.Atoi(args[1]); err == nil {
			os.Exit(n)
		}
		serve()
	case "read":
		b, err := os.ReadFile(args[1])
		die(err)
		fmt.Print(string(b))
	case "write":
		die(os.WriteFile(args[1], []byte(args[2]), 0o644))
	case "plant": // a link to the second in the place of the first, by each way that there is
		_ = os.Rename(args[1], args[1]+".was")
		_ = os.RemoveAll(args[1])
		die(os.Symlink(args[2], args[1]))
	case "resolve":
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		ips, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, args[1])
		die(err)
		fmt.Print(strings.Join(ips, " "))
	default:
		die(fmt.Errorf("unknown word %q", args[0]))
	}
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func get(path string) string {
	r, err := http.Get("http://127.0.0.1:8080" + path)
	if err != nil && strings.HasPrefix(path, "/exit") {
		return ""
	}
	die(err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	die(err)
	return string(b)
}

func serve() {
	fmt.Println("hello out")
	fmt.Fprintln(os.Stderr, "hello err")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGUSR1)
	go func() {
		<-stop
		os.Exit(0)
	}()
	var health atomic.Value
	health.Store("on")
	http.HandleFunc("/exit", func(_ http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.FormValue("code"))
		os.Exit(code)
	})
	http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {
		if s := r.FormValue("set"); s != "" {
			health.Store(s)
		}
		fmt.Fprint(w, health.Load())
	})
	for _, at := range strings.Fields(os.Getenv("LISTEN")) {
		listen(at)
	}
	die(http.ListenAndServe("127.0.0.1:8080", nil))
}

// listen waits on an address such as tcp/:80 or udp/:53 until the end.
func listen(at string) {
	network, address, _ := strings.Cut(at, "/")
	if network == "udp" {
		_, err := net.ListenPacket(network, address)
		die(err)
		return
	}
	_, err := net.Listen(network, address)
	die(err)
}
