package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// clientOf is a client whose front's run folder is that of b.
func clientOf(t *testing.T, b *bench, changed func()) (*Client, ring.FrontAt) {
	t.Helper()
	state := shortDir(t)
	c := NewClient(state, changed)
	c.user = os.Geteuid()
	at := ring.FrontAt{Container: "id1", Name: "app-web-front-1-x", Service: "app/web"}
	dir := filepath.Join(state, "fronts", ring.FrontID(at.Name))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "table"), 0o755))
	if b != nil {
		require.NoError(t, os.Rename(b.f.RunDir, filepath.Join(dir, "run")))
		require.NoError(t, os.Symlink(filepath.Join(dir, "run"), b.f.RunDir)) // where the front finds it still
	} else {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o755))
	}
	return c, at
}

func TestTheClientRoutesAndSees(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("one")
	poked := make(chan struct{}, 100)
	c, at := clientOf(t, b, func() { poked <- struct{}{} })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	table := b.table
	table.Generation, table.Instances = 7, []ring.FrontInstance{{Name: "one", State: ring.FrontActive}, {Name: "nobody", State: ring.FrontWarm}}
	s, err := c.Route(ctx, at, table)
	require.NoError(t, err)
	require.EqualValues(t, 7, s.Generation)
	require.Equal(t, table, *s.Table)
	require.True(t, s.Instances[0].Reached)
	require.False(t, s.Instances[1].Reached)
	require.Contains(t, s.Instances[1].Why, "nobody")

	// On disk first, for nobody but the front to read.
	file := filepath.Join(c.fronts, ring.FrontID(at.Name), "table", "table.json")
	st, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o400), st.Mode())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1)

	// A number that is not larger changes nothing, and its error says which the front has.
	for _, g := range []int64{7, 3} {
		table.Generation = g
		_, err = c.Route(ctx, at, table)
		var old *OldTable
		require.ErrorAs(t, err, &old)
		require.EqualValues(t, 7, old.FrontGeneration())
	}

	c.Watch([]ring.FrontAt{at})
	b.eventually("seen", func() bool { return c.Seen()["id1"].Generation == 7 })
	require.NotNil(t, c.Seen()["id1"].Table)
	<-poked
	c.Watch(nil)
	require.Empty(t, c.Seen())
	stop()
	require.NoError(t, <-ended)
}

// A daemon speaks to proxies of releases before it, which say less, and of releases after it,
// which say more. So each side takes what it knows and leaves the rest.
func TestProxiesOfOtherReleasesAreSpokenTo(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, said := range map[string]string{
		"older": `{"generation":7,"process":"0a","build":"sha256:` + sum + `","connections":3,"queued":0,"cut":0,"full":false,"instances":[{"name":"one","reached":true,"in_flight":2,"counts":{"requests":9}}],"ports":[]}`,
		"newer": `{"generation":7,"process":"0a","build":"sha256:` + sum + `","connections":3,"queued":0,"cut":0,"full":false,"quic":{"flows":1},
			"instances":[{"name":"one","reached":true,"in_flight":2,"shadow":true,"counts":{"requests":9,"answers_6xx":4}},{"name":"one","reached":false}],
			"ports":[{"port":80,"carry":"quic"}],"table":{"generation":7,"service":"app/web","ports":[{"port":80,"carry":"quic"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c, at := clientOf(t, nil, nil)
			l, err := net.Listen("unix", filepath.Join(c.fronts, ring.FrontID(at.Name), "run", ring.FrontSocket))
			require.NoError(t, err)
			var told map[string]any
			serveOn(t, l, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					told = nil
					if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
						t.Error(err)
					}
				}
				_, _ = io.WriteString(w, said)
			})
			table := ring.FrontTable{Generation: 7, Service: "app/web", Ports: []ring.FrontPort{{Port: 80, Carry: "auto"}}, Instances: []ring.FrontInstance{{Name: "one", State: ring.FrontActive}}}
			s, err := c.Route(t.Context(), at, table)
			require.NoError(t, err)
			require.EqualValues(t, 7, told["generation"])
			require.Equal(t, table, *s.Table)
			require.Equal(t, []int{3, 0}, []int{s.Connections, s.Crashes})
			require.Len(t, s.Instances, 1)
			require.True(t, s.Instances[0].Reached)
			require.Equal(t, 2, s.Instances[0].InFlight)
			require.EqualValues(t, 9, s.Instances[0].Counts.Requests)
			require.Empty(t, s.Ports, "what it cannot name it does not believe")
		})
	}
	t.Run("a table of a newer daemon", func(t *testing.T) {
		got, err := readTable([]byte(`{"generation":7,"service":"app/web","ports":[{"port":80,"carry":"auto","tls":true}],"instances":[{"name":"one","state":"active","zone":"a"}],"mirror":{"to":"b"}}`))
		require.NoError(t, err)
		require.Equal(t, []ring.FrontInstance{{Name: "one", State: ring.FrontActive}}, got.Instances)
	})
}

func TestAFrontThatDoesNotAnswerIsNotSeen(t *testing.T) {
	c, at := clientOf(t, nil, nil)
	_, err := c.Route(t.Context(), at, ring.FrontTable{Generation: 1, Service: "a/b", Ports: []ring.FrontPort{{Port: 80, Carry: "auto"}}})
	require.ErrorContains(t, err, "cannot")
	require.FileExists(t, filepath.Join(c.fronts, ring.FrontID(at.Name), "table", "table.json"), "it is on disk for a front that starts later")
	require.Empty(t, c.Seen())
}

// A front that was taken over has its run folder to itself. Whatever it puts there, the
// client connects to nothing else.
func TestAHostileSocketLeadsNowhere(t *testing.T) {
	secret := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(secret, "engine.sock"))
	require.NoError(t, err)
	defer l.Close()
	reached := make(chan struct{}, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			reached <- struct{}{}
			_ = c.Close()
		}
	}()
	for name, make := range map[string]func(run string) error{
		"a link to another socket": func(run string) error {
			return os.Symlink(filepath.Join(secret, "engine.sock"), filepath.Join(run, ring.FrontSocket))
		},
		"a link that leads up": func(run string) error {
			return os.Symlink("../../../../"+filepath.Base(secret)+"/engine.sock", filepath.Join(run, ring.FrontSocket))
		},
		"the folder is a link": func(run string) error {
			return errors.Join(os.Rename(run, run+".was"), os.Symlink(secret, run), os.Link(filepath.Join(secret, "engine.sock"), filepath.Join(secret, ring.FrontSocket)))
		},
		"a file":   func(run string) error { return os.WriteFile(filepath.Join(run, ring.FrontSocket), []byte("x"), 0o600) },
		"a folder": func(run string) error { return os.Mkdir(filepath.Join(run, ring.FrontSocket), 0o700) },
		"nothing":  func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c, at := clientOf(t, nil, nil)
			require.NoError(t, make(filepath.Join(c.fronts, ring.FrontID(at.Name), "run")))
			_, err := c.ask(t.Context(), at)
			require.ErrorContains(t, err, "cannot")
			select {
			case <-reached:
				t.Error("somebody else's socket was connected to")
			default:
			}
		})
	}
	t.Run("a socket of another user", func(t *testing.T) {
		c, at := clientOf(t, nil, nil)
		l, err := net.Listen("unix", filepath.Join(c.fronts, ring.FrontID(at.Name), "run", ring.FrontSocket))
		require.NoError(t, err)
		defer l.Close()
		c.user = os.Geteuid() + 1
		_, err = c.ask(t.Context(), at)
		require.ErrorContains(t, err, "is of user")
	})
}

// What a front answers is bounded, whatever it is.
func TestNonsenseOfAFrontIsBounded(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":                      "",
		"no HTTP":                      "hello\r\n\r\n",
		"without end":                  "HTTP/1.1 200 OK\r\n\r\n{\"says\":\"" + strings.Repeat("x", 3<<20),
		"a list":                       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
		"a table that it does not say": "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"generation\":5}",
		"another status":               "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			c, at := clientOf(t, nil, nil)
			l, err := net.Listen("unix", filepath.Join(c.fronts, ring.FrontID(at.Name), "run", ring.FrontSocket))
			require.NoError(t, err)
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			}()
			_, err = c.ask(t.Context(), at)
			require.Error(t, err)
		})
	}
	now := time.Now()
	got := bounded(ring.FrontSeen{
		Generation: -4, Process: "../x", Build: "sha256:x", Connections: -1, Queued: 1 << 40, Cut: -9, QueuedSince: now.Add(time.Hour),
		Instances: []ring.FrontInstanceSeen{
			{Name: "a", Why: "x\x1b[2J" + strings.Repeat("y", 500), InFlight: -3, Counts: ring.FrontCounts{Requests: -1, Heads: make([]int64, 500)}},
			{Name: "a"},
			{Name: "../b"},
		},
		Ports: []ring.FrontPortSeen{{Port: 0, Carry: "auto"}, {Port: 80, Carry: "<b>"}, {Port: 80, Carry: "tcp"}},
		Table: &ring.FrontTable{Generation: 9},
	}, now)
	require.Equal(t, ring.FrontSeen{
		At: now, Queued: 1 << 30,
		Instances: []ring.FrontInstanceSeen{{Name: "a", Why: "x?[2J" + strings.Repeat("y", 195), Counts: ring.FrontCounts{Heads: make([]int64, len(ring.FrontBuckets)+1)}}},
		Ports:     []ring.FrontPortSeen{{Port: 80, Carry: "tcp"}},
	}, got)
}
