package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
)

// NotifyConfig is one receiver of notifications: a chat, or a web hook.
type NotifyConfig struct {
	// Name is remembered with what the receiver was told; the default is its
	// place in the list, from 1.
	Name    string         `yaml:"name"`
	URLFile string         `yaml:"url_file"` // of a chat: slack://…, as shoutrrr has it
	Webhook *NotifyWebhook `yaml:"webhook"`
	OTLP    *NotifyOTLP    `yaml:"otlp"`
	// Events are kinds and patterns such as rollout.*; empty is the list of the
	// reference for a chat, and everything for a web hook.
	Events   []string `yaml:"events"`
	Apps     []string `yaml:"apps"`     // empty is all
	Template string   `yaml:"template"` // of a chat; "" is ours
}

// NotifyWebhook takes events as CloudEvents, signed.
type NotifyWebhook struct {
	URLFile      string `yaml:"url_file"`
	SecretFile   string `yaml:"secret_file"`
	AllowPrivate bool   `yaml:"allow_private"`
}

// NotifyOTLP takes the trace of each commit.
type NotifyOTLP struct {
	URLFile string `yaml:"url_file"` // https://host:4318/v1/traces
}

// mostReceivers is far above what anybody needs: each is a goroutine.
const mostReceivers = 50

// notify judges the receivers. Their files are read when the daemon starts.
func (k *checker) notify(all []NotifyConfig) {
	if len(all) > mostReceivers {
		k.wrong("notify", "", "notify: %d receivers are more than %d", len(all), mostReceivers)
	}
	seen := map[string]int{}
	for i := range all {
		at := fmt.Sprintf("notify[%d]", i)
		r := &all[i]
		orElse(&r.Name, strconv.Itoa(i+1))
		if !SourceName.MatchString(r.Name) {
			k.wrong(at+".name", "lower-case letters, digits, '_' and '-', at most 63, beginning with a letter or digit", "name: %q is no name for a receiver", r.Name)
		}
		if first, taken := seen[r.Name]; taken {
			k.wrong(at+".name", "each receiver needs a name of its own", "name: %q is taken by the receiver in line %d", r.Name, first)
		}
		seen[r.Name] = k.lines.at(at)
		k.receiver(at, r)
	}
}

func (k *checker) receiver(at string, r *NotifyConfig) {
	switch {
	case r.Webhook != nil && r.URLFile != "":
		k.wrong(at, "url_file for a chat, or webhook for a machine", "this receiver has url_file and webhook")
	case r.OTLP != nil && (r.Webhook != nil || r.URLFile != ""):
		k.wrong(at, "give each a receiver of its own", "this receiver has otlp and something else")
	case r.OTLP != nil:
		k.notifyOTLP(at, r)
	case r.Webhook == nil && r.URLFile == "":
		k.wrong(at, "url_file: a file with the URL of a chat, such as slack://…, or webhook: {url_file: …, secret_file: …}", "this receiver has neither url_file nor webhook")
	case r.Webhook != nil:
		k.notifyWebhook(at+".webhook", r.Webhook)
		if r.Template != "" {
			k.wrong(at+".template", "take it out: a web hook is sent CloudEvents", "template: does nothing for a web hook")
		}
	}
	k.path(at+".url_file", &r.URLFile)
	for j, p := range r.Events {
		if !notify.KnownPattern(p) {
			k.wrong(fmt.Sprintf("%s.events[%d]", at, j), ring.Meant(p, ring.EventKinds), "events: %q is no event; a pattern is such as rollout.* or *", p)
		}
	}
	for j, app := range r.Apps {
		if !SourceName.MatchString(app) {
			k.wrong(fmt.Sprintf("%s.apps[%d]", at, j), "the app's name, as gitring status shows it", "apps: %q is no name of an app", app)
		}
	}
	if r.Template != "" {
		if err := notify.CheckTemplate(r.Template); err != nil {
			k.wrong(at+".template", "docs/how-to/notifications.md lists what a template may use", "template: %s", strings.TrimPrefix(err.Error(), "cannot use the template: "))
		}
	}
}

func (k *checker) notifyWebhook(at string, w *NotifyWebhook) {
	if w.URLFile == "" {
		k.wrong(at, "a file with the URL, such as https://hooks.example.org/gitring", "webhook.url_file is missing")
	}
	if w.SecretFile == "" {
		k.wrong(at, "head -c 32 /dev/urandom | base64 > /etc/gitring/hook-secret", "webhook.secret_file is missing")
	}
	k.path(at+".url_file", &w.URLFile)
	k.path(at+".secret_file", &w.SecretFile)
}

func (k *checker) notifyOTLP(at string, r *NotifyConfig) {
	if r.OTLP.URLFile == "" {
		k.wrong(at+".otlp", "a file with the URL of a collector, such as http://127.0.0.1:4318/v1/traces", "otlp.url_file is missing")
	}
	k.path(at+".otlp.url_file", &r.OTLP.URLFile)
	if len(r.Events) > 0 {
		k.wrong(at+".events", "take it out: a trace is made of all that a commit does", "events: does nothing for otlp")
	}
	if r.Template != "" {
		k.wrong(at+".template", "take it out: a trace has no words", "template: does nothing for otlp")
	}
}

// Receivers are those of the configuration as notify has them.
func (c *Config) Receivers() (out []notify.Receiver) {
	for _, r := range c.Notify {
		one := notify.Receiver{Name: r.Name, Events: slices.Clone(r.Events), Apps: slices.Clone(r.Apps), URLFile: r.URLFile, Template: r.Template}
		if w := r.Webhook; w != nil {
			one.Hook = &notify.Hook{URLFile: w.URLFile, SecretFile: w.SecretFile, AllowPrivate: w.AllowPrivate}
		}
		if r.OTLP != nil {
			one.OTLP = &notify.OTLP{URLFile: r.OTLP.URLFile}
		}
		out = append(out, one)
	}
	return out
}
