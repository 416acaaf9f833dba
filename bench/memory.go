package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
)

// memory is an engine that only remembers: it answers at once, so that what is
// measured with it is gitring, and a thousand containers cost nothing. Its rows
// have the fields, and so the size, of a real engine's.
type memory struct {
	server *http.Server

	mu         sync.Mutex // guards what follows
	containers []*box
	names      map[string]*box // by name and ID
	networks   []map[string]any
	list, nets []byte // as last asked for; nil after a change
}

// box is a container of memory.
type box struct {
	id, name, network string
	config            map[string]any
	state, policy     string
	started           string
}

const never = "0001-01-01T00:00:00Z"

func newMemory(socket string) (*memory, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	m := &memory{names: map[string]*box{}}
	m.server = &http.Server{Handler: m.routes(), ReadHeaderTimeout: time.Minute}
	go func() { _ = m.server.Serve(l) }()
	return m, nil
}

func (m *memory) close() { _ = m.server.Close() }

// What it runs on, and the one image that is on it.
var (
	machine = map[string]any{"Version": "memory", "ApiVersion": "1.41", "MinAPIVersion": "1.41", "Os": runtime.GOOS, "Arch": runtime.GOARCH}
	image   = map[string]any{"Id": "sha256:" + digest("image"), "Os": runtime.GOOS, "Architecture": runtime.GOARCH}
)

func (m *memory) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(r *http.Request) any{
		"/_ping":                        func(*http.Request) any { return "OK" },
		"GET /version":                  func(*http.Request) any { return machine },
		"GET /info":                     func(*http.Request) any { return map[string]any{"MemTotal": 8 << 30} },
		"GET /images/{name...}":         func(*http.Request) any { return image },
		"GET /containers/json":          func(*http.Request) any { return m.rows() },
		"GET /networks":                 func(*http.Request) any { return m.subnets() },
		"GET /containers/{id}/json":     func(r *http.Request) any { return m.inspect(r.PathValue("id")) },
		"POST /containers/create":       m.create,
		"POST /containers/{id}/start":   func(r *http.Request) any { return m.set(r, "running", "") },
		"POST /containers/{id}/update":  m.update,
		"POST /networks/create":         m.network,
		"POST /containers/{id}/stop":    func(r *http.Request) any { return m.set(r, "exited", "") },
		"GET /networks/{id}":            func(*http.Request) any { return nil },
		"DELETE /containers/{id...}":    func(*http.Request) any { return nil },
		"POST /containers/{id}/restart": func(r *http.Request) any { return m.set(r, "running", "") },
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { reply(w, answer(r)) })
	}
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		r.URL.Path = apiVersion.ReplaceAllString(r.URL.Path, "")
		mux.ServeHTTP(w, r)
	})
}

// reply sends bytes as they are, nothing as 404, and the rest as JSON.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	switch v := v.(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"no such thing"}`))
	case []byte:
		_, _ = w.Write(v)
	default:
		_ = json.NewEncoder(w).Encode(v)
	}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (m *memory) create(r *http.Request) any {
	b := &box{name: r.URL.Query().Get("name"), state: "created", policy: "no", started: never}
	if json.NewDecoder(r.Body).Decode(&b.config) != nil {
		return nil
	}
	at, _ := b.config["HostConfig"].(map[string]any)
	b.network, _ = at["NetworkMode"].(string)
	b.id = digest(b.name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.containers = append(m.containers, b)
	m.names[b.id], m.names[b.name], m.list = b, b, nil
	return map[string]any{"Id": b.id}
}

func (m *memory) set(r *http.Request, state, policy string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.names[r.PathValue("id")]
	if b == nil {
		return nil
	}
	if state == "running" && b.state != state {
		b.started = time.Now().UTC().Format(time.RFC3339Nano)
	}
	if state != "" {
		b.state = state
	}
	if policy != "" {
		b.policy = policy
	}
	m.list = nil
	return []byte("{}")
}

func (m *memory) update(r *http.Request) any {
	var u struct{ RestartPolicy struct{ Name string } }
	if json.NewDecoder(r.Body).Decode(&u) != nil {
		return nil
	}
	return m.set(r, "", u.RestartPolicy.Name)
}

func (m *memory) network(r *http.Request) any {
	var n map[string]any
	if json.NewDecoder(r.Body).Decode(&n) != nil {
		return nil
	}
	n["Id"] = digest(fmt.Sprint("network ", n["Name"]))
	n["Containers"], n["Options"] = map[string]any{}, map[string]any{}
	n["Created"], n["Scope"] = time.Now().UTC().Format(time.RFC3339Nano), "local"
	m.mu.Lock()
	defer m.mu.Unlock()
	m.networks, m.nets = append(m.networks, n), nil
	return map[string]any{"Id": n["Id"]}
}

func (m *memory) subnets() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nets == nil {
		m.nets, _ = json.Marshal(append([]map[string]any{}, m.networks...))
	}
	return m.nets
}

// rows is the list of containers.
func (m *memory) rows() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list != nil {
		return m.list
	}
	list := []map[string]any{}
	for _, b := range m.containers {
		status := "Created"
		if b.state == "running" {
			status = "Up 3 minutes"
		}
		list = append(list, map[string]any{
			"Id": b.id, "Names": []string{"/" + b.name}, "Image": b.config["Image"], "ImageID": b.config["Image"],
			"Command": "/bench app", "Created": 1_700_000_000, "Ports": []any{}, "Labels": b.config["Labels"],
			"State": b.state, "Status": status, "HostConfig": map[string]any{"NetworkMode": b.network},
			"NetworkSettings": map[string]any{"Networks": b.endpoints()}, "Mounts": []any{},
		})
	}
	m.list, _ = json.Marshal(list)
	return m.list
}

func (b *box) endpoints() map[string]any {
	return map[string]any{b.network: map[string]any{
		"IPAMConfig": nil, "Links": nil, "Aliases": nil, "NetworkID": digest("network " + b.network), "EndpointID": b.id,
		"Gateway": "10.0.0.1", "IPAddress": "10.0.0.2", "IPPrefixLen": 28, "IPv6Gateway": "", "GlobalIPv6Address": "",
		"GlobalIPv6PrefixLen": 0, "MacAddress": "02:42:0a:00:00:02", "DriverOpts": nil,
	}}
}

func (m *memory) inspect(id string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.names[strings.TrimPrefix(id, "/")]
	if b == nil {
		return nil
	}
	return map[string]any{
		"Id": b.id, "Name": "/" + b.name, "Created": "2026-01-01T00:00:00Z", "Config": b.config,
		"HostConfig":      map[string]any{"NetworkMode": b.network, "RestartPolicy": map[string]any{"Name": b.policy}},
		"State":           map[string]any{"Status": b.state, "Running": b.state == "running", "StartedAt": b.started, "FinishedAt": never},
		"NetworkSettings": map[string]any{"Networks": b.endpoints()},
	}
}
