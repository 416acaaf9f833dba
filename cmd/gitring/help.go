package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/screen"
)

// helpGroup is a group of verbs in the help, in the order of a person's questions.
type helpGroup struct {
	id, title string
	verbs     []string
}

var helpGroups = []helpGroup{
	{"look", "What runs, and why:", []string{"status", "ui", "inspect", "logs", "history", "events", "crashes", "jobs", "traffic", "outdated"}},
	{"change", "Deploy:", []string{"plan", "sync", "approve", "refresh", "run", "retry"}},
	{"hand", "Take it into your own hands:", []string{"undo", "pause", "resume", "restart", "rollout", "hold", "release", "scale"}},
	{"many", "On many hosts:", []string{"fleet", "hub"}},
	{"write", "In a clone, before a push:", []string{"init", "validate", "verify", "vouch", "rollback", "images", "secret"}},
	{"trust", "Trust and policy:", []string{"trust", "policy", "prove"}},
	{"move", "From Compose, and back:", []string{"adopt", "leave"}},
	{"host", "The daemon and its host:", []string{"serve", "config", "webhook", "notify", "outbox", "token", "doctor", "metrics", "backup", "restore", "upgrade", "rehearse", "version", "completion", "help"}},
}

// examples are lines that a person can paste after the program, by the path of a command.
var examples = map[string]string{
	"status":          "status\nstatus web --watch\nstatus --problems\nstatus -o json",
	"ui":              "ui\nui --host ssh://edge-1\nui --read-only --listen 127.0.0.1:8081",
	"inspect":         "inspect web/api\ninspect web/api/2",
	"logs":            "logs web/api -f\nlogs web --tail 50",
	"history":         "history\nhistory web -n 10",
	"events":          "events -f\nevents --app web --tail 20",
	"crashes":         "crashes\ncrashes web/api --logs",
	"jobs":            "jobs\njobs web/backup",
	"traffic":         "traffic\ntraffic web/api --watch",
	"traffic upgrade": "traffic upgrade",
	"outdated":        "outdated\noutdated web --tags",
	"plan":            "plan\nplan .\nplan HEAD~1 --detailed-exitcode",
	"sync":            "sync --wait\nsync prod --wait --timeout 5m",
	"approve":         "approve ab12cd3 --reason 'moving out'",
	"refresh":         "refresh web",
	"run":             "run web/backup --wait",
	"retry":           "retry web/api",
	"undo":            "undo web --for 4h --reason 'checkout answers 500'",
	"pause":           "pause web/api --reason 'the graphs look odd'",
	"resume":          "resume web/api",
	"restart":         "restart web/api",
	"rollout promote": "rollout promote web/api",
	"rollout abort":   "rollout abort web/api --reason 'errors in the log'",
	"hold":            "hold web --for 30m --reason 'disk is being replaced'",
	"release":         "release web",
	"scale":           "scale web/api=4 --for 2h --reason 'sale'",
	"fleet status":    "fleet status\nfleet status --on 'edge-*' --phase Degraded",
	"fleet plan":      "fleet plan HEAD",
	"fleet version":   "fleet version",
	"fleet doctor":    "fleet doctor",
	"fleet refresh":   "fleet refresh web --on '*' --reason 'a new base image'",
	"fleet sync":      "fleet sync",
	"fleet events":    "fleet events -f",
	"fleet hold":      "fleet hold web --on 'edge-*' --for 30m --reason 'a new uplink'",
	"fleet release":   "fleet release web --on '*' --reason 'done'",
	"hub":             "hub --config /etc/gitring/hub.yaml",
	"token new":       "token new ci --scope read --for 30d --add\ntoken new edge-1 --scope report:edge-1 --add --config hub.yaml",
	"token list":      "token list",
	"token revoke":    "token revoke k4bq2rxa",
	"secret keys":     "secret keys --create\nsecret keys --ssh-file /etc/ssh/ssh_host_ed25519_key",
	"secret encrypt":  "secret encrypt apps/shop/db.env\nsecret encrypt - --as db.env < db.env > db.enc.env",
	"secret check":    "secret check\nsecret check --age-file /etc/gitring/age.key",
	"secret place":    "secret place --config /etc/gitring/config.yaml",
	"secret refresh":  "secret refresh shop --reason 'the password was changed'",
	"init":            "init",
	"validate":        "validate\nvalidate --profile owner",
	"verify":          "verify HEAD\nverify main..HEAD --config /etc/gitring/config.yaml",
	"vouch":           "vouch --push",
	"rollback":        "rollback web --push",
	"images update":   "images update --dry-run\nimages update web --to patch --pin --push",
	"trust show":      "trust show",
	"trust accept":    "trust accept 1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b --reason moved",
	"trust compare":   "trust compare edge-1 edge-2",
	"prove":           "prove web/api -o proof.json\nprove --check proof.json --allowed-signers ~/allowed_signers",
	"policy suggest":  "policy suggest",
	"policy check":    "policy check\npolicy check HEAD~1",
	"policy explain":  "policy explain web",
	"policy test":     "policy test",
	"adopt":           "adopt shop --compare\nadopt shop --reason 'moving to Git'",
	"leave":           "leave shop --reason 'back to Compose'",
	"serve":           "serve --config /etc/gitring/config.yaml",
	"config check":    "config check\nconfig check ./config.yaml",
	"outbox list":     "outbox list",
	"notify test":     "notify test",
	"doctor":          "doctor",
	"metrics":         "metrics",
	"upgrade":         "upgrade ./gitring_0.2.0_linux_amd64.tar.gz --check\nupgrade ./gitring_0.2.0_linux_amd64.tar.gz",
	"rehearse":        "rehearse",
	"backup":          "backup /root/gitring.tar.gz --with-config",
	"restore":         "restore /root/gitring.tar.gz",
	"webhook url":     "webhook url",
	"completion":      "completion bash > ~/.local/share/bash-completion/completions/gitring",
}

// arrange puts every verb into its group, with its examples.
func arrange(root *cobra.Command) {
	of := map[string]string{}
	for _, g := range helpGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			of[verb] = g.id
		}
	}
	for _, c := range root.Commands() {
		c.GroupID = of[c.Name()]
		exemplify(c)
	}
	root.SetHelpCommandGroupID(of["help"])
	root.Example = indented("status           # what runs, and whether it is what Git asks for\n" +
		"inspect web/api  # why one service is as it is, and what to do\n" +
		"sync --wait      # fetch now, and follow the rollout to its end")
}

func exemplify(c *cobra.Command) {
	if lines, ok := examples[nameOf(c)]; ok {
		c.Example = indented(lines)
	}
	for _, sub := range c.Commands() {
		exemplify(sub)
	}
}

// nameOf is how a command is called, without the program: "trust show".
func nameOf(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// indented are lines of the help, each a call of the program.
func indented(lines string) string {
	const call = "  gitring" + " "
	return call + strings.ReplaceAll(lines, "\n", "\n"+call)
}

// helpWidth is that of a terminal nobody made wider.
const helpWidth = 80

// usageBegins is what stands between the text of a help and its lists.
const usageBegins = "\nUsage:\n"

// showNarrow prints what show prints of a command, in lines that fit a terminal.
func showNarrow(c *cobra.Command, show func()) {
	out := c.OutOrStdout()
	var b bytes.Buffer
	c.SetOut(&b)
	show()
	c.SetOut(out)
	fmt.Fprint(out, narrowed(b.String()))
}

// described is a line of the help that has a name, and in a column of its own what it means.
var described = regexp.MustCompile(`^ +(?:-\w, )?[-\w<>\[\]|.]+(?: \w+(?:\[="\w+"\])?)?  +(?:\S)`)

// narrowed breaks the lines of a help text that are too wide: text anew, by its
// paragraphs, and what describes a flag or a verb below its own column. Examples are
// pasted, and stay whole.
func narrowed(help string) string {
	text, rest, found := strings.Cut(help, usageBegins)
	if !found {
		return help
	}
	var parts []string
	for part := range strings.SplitSeq(text, "\n\n") {
		parts = append(parts, reflowed(part))
	}
	var lines []string
	for line := range strings.SplitSeq(rest, "\n") {
		hang := 2
		if at := described.FindString(line); at != "" {
			hang = len(at) - 1
		}
		if !strings.HasPrefix(line, "  gitring ") {
			line = screen.WrappedUnder(line, helpWidth, hang)
		}
		lines = append(lines, line)
	}
	return strings.Join(parts, "\n\n") + usageBegins + strings.Join(lines, "\n")
}

// reflowed is a paragraph with its lines broken anew where one is too wide. One with
// columns or steps of its own is left as it is.
func reflowed(part string) string {
	wide, own := false, false
	for line := range strings.SplitSeq(part, "\n") {
		wide = wide || screen.WidthOf(line) > helpWidth
		own = own || strings.HasPrefix(line, " ")
	}
	if !wide || own {
		return part
	}
	end := part[len(strings.TrimRight(part, "\n")):]
	return screen.WrappedUnder(strings.Join(strings.Fields(part), " "), helpWidth, 0) + end
}
