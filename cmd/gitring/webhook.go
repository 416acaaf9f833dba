package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/screen"
)

func webhookCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Show how a forge is to tell of pushes",
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(webhookURLCmd(g))
	return cmd
}

func webhookURLCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "url [source]",
		Short: "Show what to enter at the forge for its webhook",
		Long: "url reads the configuration and prints, for each source with a webhook or for the\n" +
			"named one, what the forge asks for: the address, the content type, the events and\n" +
			"which file the secret is in. The secret itself is never printed.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error { return g.webhookURL(strings.Join(given, "")) },
	}
}

// entered is what a person enters at a forge.
type entered struct {
	Source      string `json:"source"`
	Forge       string `json:"forge"`
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
	Events      string `json:"events"`
	Field       string `json:"secret_field"`
	File        string `json:"secret_file"`
}

func (g *globals) webhookURL(source string) error {
	c, err := config.Read(g.configPath())
	if err != nil {
		return err
	}
	if source != "" && c.Source(source) == nil {
		return &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%s has no source %q", g.configPath(), source), Hint: "its sources: " + strings.Join(sourceNamesOf(c), ", ")}
	}
	var all []entered
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Webhook == nil || source != "" && s.Name != source {
			continue
		}
		field, err := secretField(s.Webhook)
		if err != nil {
			g.notice("%v", err)
		}
		all = append(all, entered{
			Source: s.Name, Forge: s.Webhook.Forge, URL: webhookBase(c) + api.HookPath(s.Name), ContentType: "application/json",
			Events: hookEventsOf(s), Field: field, File: s.Webhook.SecretFile,
		})
	}
	if len(all) == 0 {
		return &exit.Failure{Code: exit.NotFound, Says: "no webhook is configured for " + cmp.Or(source, "any source"), Hint: "give the source a webhook: {forge: github, secret_file: …}; see docs/how-to/webhooks.md"}
	}
	if c.Listen.URL == "" {
		g.notice("listen.url is not set: this is where gitring listens, and the forge has to reach it; see docs/how-to/webhooks.md")
	}
	if g.machine() {
		return g.encode(all)
	}
	s := g.screen()
	for i, e := range all {
		if i > 0 {
			s.Gap()
		}
		s.Line(0, "  ", screen.Painted(e.Source, screen.Bold), screen.Text(e.Forge))
		s.Table(2, []string{"ENTER", "AS"}, [][]screen.Word{
			{screen.Text("URL"), screen.Text(e.URL)},
			{screen.Text("content type"), screen.Text(e.ContentType)},
			{screen.Text("events"), screen.Text(e.Events)},
			{screen.Text(e.Field), screen.Text("a line of " + e.File)},
		})
	}
	_, err = fmt.Fprint(g.out, s)
	return err
}

// sourceNamesOf are the names of the sources.
func sourceNamesOf(c *config.Config) []string {
	var names []string
	for i := range c.Sources {
		names = append(names, c.Sources[i].Name)
	}
	return names
}

// webhookBase is where the world reaches the listener, as far as the configuration says.
func webhookBase(c *config.Config) string {
	if c.Listen.URL != "" {
		return c.Listen.URL
	}
	host, port, err := net.SplitHostPort(c.Listen.HTTP)
	if err == nil && host == "" {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + c.Listen.HTTP
}

// hookEvents are the events to choose at each forge, in its own words: those of a push,
// and those of a pull request.
var hookEvents = map[string][2]string{
	api.GitHub:      {"Pushes", "Pull requests"},
	api.GitLab:      {"Push events", "Merge request events"},
	api.Gitea:       {"Push", "Pull Request, Pull Request Synchronized"},
	api.Forgejo:     {"Push", "Pull Request, Pull Request Synchronized"},
	api.Bitbucket:   {"Repository: Push", "Pull request: Created, Updated, Merged, Declined"},
	api.BitbucketDC: {"Repository: Push", "Pull request: Opened, Source branch updated, Modified, Merged, Declined"},
	api.Generic:     {"whenever the branch moved, with the header " + api.TimedHeader + ": t=<Unix seconds>,v1=<hex HMAC-SHA256 of \"<t>.<body>\">", ""},
}

// hookEventsOf are those of a source; those of pull requests only where their plan is shown.
func hookEventsOf(s *config.SourceConfig) string {
	e := hookEvents[s.Webhook.Forge]
	if s.Status != nil && s.Status.PullRequests && e[1] != "" {
		return e[0] + ", " + e[1]
	}
	return e[0]
}

// secretField is what the forge calls the field of the secret, which for GitLab
// depends on the secret. An error says what is wrong with the file, and not what is in it.
func secretField(h *config.Webhook) (string, error) {
	field := "secret"
	if h.Forge == api.GitLab {
		field = "secret token"
	}
	secrets, err := api.LoadSecrets(h.SecretFile, h.Forge)
	if errors.Is(err, fs.ErrPermission) { // whoever sets up the forge need not be root
		return field, nil
	}
	if err != nil {
		return field, err
	}
	for _, secret := range secrets {
		if h.Forge == api.GitLab && bytes.HasPrefix(secret, []byte(api.SigningKey)) {
			field = "signing token"
		}
	}
	return field, nil
}
