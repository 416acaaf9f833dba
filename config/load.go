package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// maxConfig is far above any configuration and far below what would hurt.
const maxConfig = 1 << 20

// Load reads the configuration that a daemon is to serve. Its error is a Mistakes when the file
// says something that cannot be carried out. GITRING_SOCKET wins over listen.socket.
func Load(path string) (*Config, error) {
	c, err := Read(path)
	if err != nil {
		return nil, err
	}
	if wrong := c.Owned(); wrong != nil {
		return nil, wrong
	}
	if socket := os.Getenv("GITRING_SOCKET"); socket != "" {
		if c.Listen.Socket, err = filepath.Abs(socket); err != nil {
			return nil, fmt.Errorf("cannot find GITRING_SOCKET: %w", err)
		}
	}
	return c, nil
}

// Read is Load for those who do not serve: they need not own the file.
func Read(path string) (*Config, error) {
	body, err := ReadLimited(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ring.HostError{
			Says: fmt.Sprintf("cannot read the configuration: %v", err),
			Hint: "--config or GITRING_CONFIG names another file; in a clone, gitring init writes one", Err: err,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return Parse(path, body, os.Getenv)
}

// ReadLimited is a file of at most 1 MiB.
func ReadLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxConfig {
		return nil, fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return body, nil
}

// Parse is all of Read but the reading.
func Parse(path string, body []byte, env func(string) string) (*Config, error) {
	c := &Config{File: path}
	if wrong := c.decode(body); len(wrong) > 0 {
		return nil, wrong
	}
	c.setDefaults(env)
	if wrong := c.check(env); len(wrong) > 0 {
		return nil, wrong
	}
	return c, nil
}

func (c *Config) decode(body []byte) (wrong Mistakes) {
	c.lines, wrong = decodeInto(c, c.File, body, "begin with \"host:\" and \"sources:\"; see docs/reference/configuration.md")
	if len(wrong) == 0 {
		c.print = PrintOf(body)
	}
	return wrong
}

// decodeInto reads a file of one document into a configuration; hint is how one begins.
func decodeInto(into any, file string, body []byte, hint string) (lines, Mistakes) {
	dec := yaml.NewDecoder(bytes.NewReader(body))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil, Mistakes{{File: file, Line: 1, Says: "the configuration is empty", Hint: hint}}
	}
	if err != nil {
		return nil, fromYAML(file, err)
	}
	var rest yaml.Node
	switch err := dec.Decode(&rest); {
	case err == nil:
		return nil, Mistakes{{
			File: file, Line: rest.Line, Says: "a second document begins here",
			Hint: "the configuration is one document: take the line --- out",
		}}
	case !errors.Is(err, io.EOF):
		return nil, fromYAML(file, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(body, &root); err != nil {
		return nil, fromYAML(file, err)
	}
	at := lines{}
	at.walk("", &root)
	return at, nil
}

// Print is PrintOf what was read.
func (c *Config) Print() string { return c.print }

// PrintOf tells two configurations apart by what they say besides the policy, which a
// daemon reads again by itself. Comments, order and spelling make no difference. It is ""
// for one that cannot be read.
func PrintOf(body []byte) string {
	var said map[string]any
	if yaml.Unmarshal(body, &said) != nil {
		return ""
	}
	delete(said, "policy")
	plain, err := yaml.Marshal(said)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(plain))
}

// lines are by path, such as "sources[0].trust.mode".
type lines map[string]int

// walk expects a document that was decoded before, so that no alias contains
// itself.
func (l lines) walk(path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.DocumentNode:
		for _, in := range n.Content {
			l.walk(path, in)
		}
	case yaml.AliasNode:
		l.walk(path, n.Alias)
	case yaml.SequenceNode:
		for i, in := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			l[at] = in.Line
			l.walk(at, in)
		}
	case yaml.MappingNode:
		l.walkMapping(path, n)
	}
}

func (l lines) walkMapping(path string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			l.walk(path, value)
			continue
		}
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		l[at] = key.Line
		l.walk(at, value)
	}
}

// at is the line of a path, or of the nearest thing around it that is there.
func (l lines) at(path string) int {
	for path != "" {
		if n, ok := l[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// Mistake is one thing that is wrong with the configuration.
type Mistake struct {
	File string
	Line int // from 1; 0 is the whole file
	Says string
	Hint string
}

// Error is the place and the sentence.
func (m Mistake) Error() string {
	if m.Line == 0 {
		return m.File + ": " + m.Says
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Says)
}

// Mistakes are all that is wrong with the configuration, by line.
type Mistakes []Mistake

// Error is a line for each.
func (ms Mistakes) Error() string {
	says := make([]string, len(ms))
	for i, m := range ms {
		says[i] = m.Error()
	}
	return strings.Join(says, "\n")
}

func (ms Mistakes) sorted() Mistakes {
	slices.SortStableFunc(ms, func(a, b Mistake) int { return a.Line - b.Line })
	return ms
}

var (
	atLine     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	noField    = regexp.MustCompile(`^field (.*) not found in type config\.(\w+)$`)
	wrongType  = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
	twiceGiven = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
)

// fromYAML puts the library's errors into our words.
func fromYAML(file string, err error) Mistakes {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return Mistakes{yamlMistake(file, err.Error())}
	}
	var ms Mistakes
	for _, says := range several.Errors {
		ms = append(ms, yamlMistake(file, says))
	}
	return ms.sorted()
}

func yamlMistake(file, says string) Mistake {
	m := Mistake{File: file, Says: strings.TrimPrefix(says, "yaml: ")}
	if p := atLine.FindStringSubmatch(says); p != nil {
		m.Line, _ = strconv.Atoi(p[1])
		m.Says = p[2]
	}
	if p := noField.FindStringSubmatch(m.Says); p != nil {
		m.Says = fmt.Sprintf("unknown key %q", p[1])
		m.Hint = ring.Meant(p[1], KnownKeys(p[2]))
		if p[1] == "ingress" && p[2] == "Config" {
			m.Hint = "write traffic: {publish: front}; see docs/reference/configuration.md#traffic"
		}
		return m
	}
	if p := twiceGiven.FindStringSubmatch(m.Says); p != nil {
		m.Says = fmt.Sprintf("key %q is given twice, first in line %s", p[1], p[2])
		m.Hint = "keep one of the two"
		return m
	}
	if p := wrongType.FindStringSubmatch(m.Says); p != nil {
		m.Says = fmt.Sprintf("%s where %s belongs", spoken(p[1], p[2]), spokenType(p[3]))
	}
	m.Hint = "see docs/reference/configuration.md"
	return m
}

func spoken(tag, value string) string {
	switch tag {
	case "seq":
		return "a list"
	case "map":
		return "a mapping"
	}
	return strconv.Quote(value)
}

func spokenType(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map"), strings.HasPrefix(t, "config."):
		return "a mapping"
	case t == "string":
		return "a text"
	case t == "bool":
		return "true or false"
	}
	return "a number"
}

// configTypes are the types whose keys a configuration may hold.
var configTypes = []any{
	Config{},
	EnvConfig{},
	SecretsConfig{},
	SecretKey{},
	Registries{},
	EngineConfig{},
	Prune{},
	PruneImages{},
	Listen{},
	TrafficConfig{},
	FrontConfig{},
	ListenAPI{},
	ListenTLS{},
	APIConfig{},
	ReportConfig{},
	Hub{},
	HubListen{},
	SourceConfig{},
	AppConfig{},
	AuthConfig{},
	TrustRules{},
	Require{},
	Introduction{},
	Webhook{},
	ForgeStatus{},
	NotifyConfig{},
	NotifyWebhook{},
	GitHubApp{},
}

// KnownKeys are the keys that a type of the configuration holds, by the type's name.
func KnownKeys(typeName string) []string {
	for _, v := range configTypes {
		t := reflect.TypeOf(v)
		if t.Name() != typeName {
			continue
		}
		var keys []string
		for i := range t.NumField() {
			if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" && key != "-" {
				keys = append(keys, key)
			}
		}
		return keys
	}
	return nil
}

// Duration is a time.Duration that wants its unit.
type Duration time.Duration

// UnmarshalYAML takes what time.ParseDuration takes, and whole days before it: 30d,
// 1d12h.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := parseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || v < 0 {
		return &yaml.TypeError{Errors: []string{
			fmt.Sprintf("line %d: %q is no duration such as 72h or 10m", n.Line, n.Value),
		}}
	}
	*d = Duration(v)
	return nil
}

// parseDuration is time.ParseDuration with days of 24 hours.
func parseDuration(s string) (time.Duration, error) {
	whole, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(whole, 10, 16)
	if err != nil || n > maxDays {
		return 0, fmt.Errorf("%q is no number of days up to %d", whole, maxDays)
	}
	days := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d >= 24*time.Hour {
		return 0, fmt.Errorf("%q after the days is no duration of less than a day", rest)
	}
	return days + d, nil
}

// maxDays is a hundred years, far below what a time.Duration holds.
const maxDays = 36_500

// ReadSource reads a configuration, and gives it with one of its sources; with "" the only one.
func ReadSource(file, name string) (*Config, *SourceConfig, error) {
	c, err := Read(file)
	if err != nil {
		return nil, nil, err
	}
	if name == "" && len(c.Sources) == 1 {
		return c, &c.Sources[0], nil
	}
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Name)
	}
	if name == "" {
		return nil, nil, &exit.Failure{
			Code: exit.Usage, Says: file + " has more than one source",
			Hint: "--source with one of " + strings.Join(names, ", "),
		}
	}
	if s := c.Source(name); s != nil {
		return c, s, nil
	}
	return nil, nil, &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("no source %q in %s", name, file), Hint: ring.Meant(name, names)}
}
