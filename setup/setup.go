package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Options are what a person says of a set-up before anything is asked.
type Options struct {
	Out                                              string // the folder to write to
	Host, URL, Branch, Path, Source, Landing, Signer string
	Key, Generate, Engine                            string
	SetGit, Introduce, Force, Yes                    bool
	SearchFile, EnvFiles                             bool
	Profile, Folders, Grants, Publish                string
}

// Result is what "init -o json" prints.
type Result struct {
	Repository   string        `json:"repository"`
	Config       string        `json:"config"`
	Host         string        `json:"host"`
	Source       string        `json:"source"`
	URL          string        `json:"url"`
	Branch       string        `json:"branch"`
	Path         string        `json:"path"`
	Mode         string        `json:"mode"`
	Profile      string        `json:"profile"`
	Publish      string        `json:"publish"`
	Folders      []string      `json:"folders,omitempty"` // that all apps may write to
	Grants       int           `json:"grants,omitempty"`
	Withheld     []Withheld    `json:"withheld,omitempty"`    // of what apps ask for, where most was granted
	Search       string        `json:"search_file,omitempty"` // a gitring.yaml that would find more apps, or leave some out
	NotRead      []string      `json:"not_read,omitempty"`
	LeftOut      []LeftOut     `json:"left_out,omitempty"`  // apps that one host cannot run beside those that are kept
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
	Git          []GitSetting  `json:"git"`
	Next         []string      `json:"next"`
	// Commands are those in each of Next, as they stand there.
	Commands [][]string `json:"-"`

	key signingKey
}

// Setup is one set-up.
type Setup struct {
	*checkout.Clone
	person  Person
	options Options
	Result  Result
	before  *config.SourceConfig // what a configuration here says already; nil when there is none
	there   *config.Config
	Tip     ring.SHA // of the branch that is followed
	Made    ring.SHA // the introduction commit, when one was made

	hostValues  []hostFile
	examples    []example // of env files that the host may need
	policyBody  string    // of the policy to write
	ungrantable bool      // each app that asks for something has mistakes, too: no grant lets it pass
	onlyRoot    bool      // each app that asks for something asks for root on the host, too: most grants none
	searchPath  string    // of gitring.yaml in the clone
	searchWhy   string    // what the proposed one does
	searchHere  bool      // it is in the work tree, and not in the commit
	writeSearch bool
	runs        map[string]bool // apps that Compose runs here; nil where nobody looked
}

// Person is how questions reach a person.
type Person struct {
	Terminal bool // somebody is there
	Machine  bool // what comes of it is for a program
	In       io.Reader
	Ask      func(question, proposal string) (string, error)
	Confirm  func(question string) (bool, error)
}

// New sets a host up from a clone.
func New(c *checkout.Clone, f Options, person Person) *Setup {
	return &Setup{Clone: c, options: f, person: person}
}

// Find settles what was typed and what a person says, and looks what is there.
func (in *Setup) Find(ctx context.Context) error {
	if in.options.Introduce { // before a key is made, and before anything is shown
		if err := in.Named(ctx); err != nil {
			return err
		}
	}
	if err := in.answer(ctx); err != nil {
		return err
	}
	if err := in.history(ctx); err != nil {
		return err
	}
	return in.look(ctx)
}

// CarryOut does what goes beyond looking, the files last: what fails before
// leaves none.
func (in *Setup) CarryOut(ctx context.Context) error {
	files, err := in.files()
	if err != nil {
		return err
	}
	if in.Result.Refusal != nil && in.Result.Introduction == "" {
		if err := in.introduce(ctx); err != nil {
			return err
		}
		if files, err = in.files(); err != nil {
			return in.unwritten(err)
		}
	}
	toWrite := names(files)
	if n := len(in.hostValues); n > 0 {
		toWrite = append(toWrite, fmt.Sprintf("%s below %s", wording.Counted(n, "file"), in.Result.Env))
	}
	if len(toWrite) > 0 && in.asks() {
		ok, err := in.person.Confirm("write " + strings.Join(toWrite, " and ") + "?")
		if err != nil || !ok {
			left := &exit.Failure{Code: exit.Conflict, Says: "left as it was"}
			if in.Made != "" {
				left.Says, left.Hint = "nothing was written, and the introduction was made", strings.Join(in.Result.Undo, "; ")+" undoes it"
			}
			return cmp.Or(err, error(left))
		}
	}
	var folder string
	if len(files) > 0 {
		folder = filepath.Dir(files[0].path)
	}
	_, gone := os.Lstat(folder)
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
		in.Result.Undo = append(in.Result.Undo, undo)
		in.Result.Wrote = append(in.Result.Wrote, file.path)
	}
	if errors.Is(gone, fs.ErrNotExist) && len(files) > 0 { // empty by then, or not init's alone
		in.Result.Undo = append(in.Result.Undo, "rmdir "+pasteable(folder))
	}
	return in.signByDefault(ctx)
}

// outFolder is where the files go.
func (f Options) outFolder() (string, error) {
	dir := f.Out
	if dir == "" && os.Geteuid() == 0 {
		dir = filepath.Dir(config.DefaultFile)
	}
	abs, err := filepath.Abs(cmp.Or(dir, "gitring"))
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", dir, err)
	}
	return abs, nil
}

// KeyPlace is what user.signingKey says: a file, a fingerprint, or the key itself.
func (o *Result) KeyPlace() string { return o.key.where }

// NeedsTouch reports whether each commit asks for a touch.
func (o *Result) NeedsTouch() bool { return o.key.onSecurityKey() }
