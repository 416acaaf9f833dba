package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// setupOptions are what a person says of a set-up before anything is asked.
type setupOptions struct {
	out                                              string // the folder to write to
	host, url, branch, path, source, landing, signer string
	key, generate, engine                            string
	setGit, introduce, force, yes                    bool
	searchFile, envFiles                             bool
	profile, folders, grants                         string
}

// initialised is what "init -o json" prints.
type initialised struct {
	Repository   string        `json:"repository"`
	Config       string        `json:"config"`
	Host         string        `json:"host"`
	Source       string        `json:"source"`
	URL          string        `json:"url"`
	Branch       string        `json:"branch"`
	Path         string        `json:"path"`
	Mode         string        `json:"mode"`
	Profile      string        `json:"profile"`
	Folders      []string      `json:"folders,omitempty"` // that all apps may write to
	Grants       int           `json:"grants,omitempty"`
	Search       string        `json:"search_file,omitempty"` // a gitring.yaml that would find more apps, or leave some out
	NotRead      []string      `json:"not_read,omitempty"`
	Env          string        `json:"env,omitempty"`       // the folder for values that Git does not hold
	EnvFiles     []string      `json:"env_files,omitempty"` // of the clone: the apps read them, and nobody copied them
	Signer       string        `json:"signer"`
	Fingerprint  string        `json:"fingerprint"`
	Introduction ring.SHA      `json:"introduction,omitempty"`
	Refusal      *ring.Refusal `json:"refusal,omitempty"` // why the history is not trusted as it is
	Apps         []string      `json:"apps"`
	Engine       string        `json:"engine,omitempty"` // why nobody can say what runs; "" when it answers
	Plan         *ring.Changes `json:"plan"`
	Wrote        []string      `json:"wrote,omitempty"`
	Undo         []string      `json:"undo,omitempty"` // commands, for what was done
	Git          []gitSetting  `json:"git"`
	Next         []string      `json:"next"`

	key signingKey
}

// initial is one set-up.
type initial struct {
	*checkout.Clone
	person asker
	f      setupOptions
	out    initialised
	before *config.SourceConfig // what a configuration here says already; nil when there is none
	there  *config.Config
	tip    ring.SHA // of the branch that is followed
	made   ring.SHA // the introduction commit, when one was made

	hostValues  []hostFile
	policyBody  string // of the policy to write
	searchPath  string // of gitring.yaml in the clone
	searchWhy   string // what the proposed one does
	searchHere  bool   // it is in the work tree, and not in the commit
	writeSearch bool
}

// asker is how questions reach a person.
type asker struct {
	terminal bool // somebody is there
	machine  bool // what comes of it is for a program
	in       io.Reader
	ask      func(question, proposal string) (string, error)
	confirm  func(question string) (bool, error)
}

// newSetup sets a host up from a clone.
func newSetup(c *checkout.Clone, f setupOptions, person asker) *initial {
	return &initial{Clone: c, f: f, person: person}
}

// find settles what was typed and what a person says, and looks what is there.
func (in *initial) find(ctx context.Context) error {
	if err := in.answer(ctx); err != nil {
		return err
	}
	if err := in.history(ctx); err != nil {
		return err
	}
	return in.look(ctx)
}

// carryOut does what goes beyond looking, the files last: what fails before
// leaves none.
func (in *initial) carryOut(ctx context.Context) error {
	files, err := in.files()
	if err != nil {
		return err
	}
	if in.out.Refusal != nil && in.out.Introduction == "" {
		if err := in.introduce(ctx); err != nil {
			return err
		}
		if files, err = in.files(); err != nil {
			return err
		}
	}
	toWrite := names(files)
	if n := len(in.hostValues); n > 0 {
		toWrite = append(toWrite, fmt.Sprintf("%s below %s", wording.Counted(n, "file"), in.out.Env))
	}
	if len(toWrite) > 0 && in.f.yes && !in.person.machine {
		in.Notice("writing %s", strings.Join(toWrite, " and "))
	}
	if len(toWrite) > 0 && in.asks() {
		ok, err := in.person.confirm("write " + strings.Join(toWrite, " and ") + "?")
		if err != nil || !ok {
			left := &exit.Failure{Code: exit.Conflict, Says: "left as it was"}
			if in.made != "" {
				left.Says, left.Hint = "nothing was written, and the introduction was made", strings.Join(in.out.Undo, "; ")+" undoes it"
			}
			return cmp.Or(err, error(left))
		}
	}
	if len(toWrite) > 0 {
		if err := in.putValues(); err != nil { // before the configuration names it
			return err
		}
	}
	for _, file := range files {
		undo, err := keepOld(file.path)
		if err != nil {
			return err
		}
		if err := writeWhole(file.path, file.body); err != nil {
			return err
		}
		in.out.Undo = append(in.out.Undo, undo)
		in.out.Wrote = append(in.out.Wrote, file.path)
	}
	return in.signByDefault(ctx)
}

// outFolder is where the files go.
func (f setupOptions) outFolder() (string, error) {
	dir := f.out
	if dir == "" && os.Geteuid() == 0 {
		dir = filepath.Dir(config.DefaultFile)
	}
	abs, err := filepath.Abs(cmp.Or(dir, "gitring"))
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", dir, err)
	}
	return abs, nil
}

// keyPlace is what user.signingKey says: a file, a fingerprint, or the key itself.
func (o *initialised) keyPlace() string { return o.key.where }

// needsTouch reports whether each commit asks for a touch.
func (o *initialised) needsTouch() bool { return o.key.onSecurityKey() }
