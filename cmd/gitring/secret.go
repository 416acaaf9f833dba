package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/secrets"
	"github.com/gitring/gitring/wording"
)

// defaultAgeFile is where "secret keys --create" puts the key of a host.
const defaultAgeFile = "/etc/gitring/age.key"

func secretCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Encrypt files for hosts, and check encrypted ones",
		Long: "secret works with files that SOPS or age encrypted. It prepares a repository and\n" +
			"its keys; secrets.keys of the configuration opens them. Only refresh asks the\n" +
			"daemon: for values that providers of the host know.",
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) > 0 && slices.Contains([]string{"decrypt", "edit", "view", "show", "open"}, given[0]) {
				return &exit.Failure{
					Code: exit.Usage, Says: fmt.Sprintf("gitring has no secret %s: it never prints a secret", given[0]),
					Hint: "sops edit <file>, sops --decrypt <file> or age --decrypt -i <key> <file>; gitring secret check --age-file <key> tries whether a key opens it",
				}
			}
			return knownVerb(cmd, given)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(secretKeysCmd(g), secretEncryptCmd(g), secretCheckCmd(g), secretPlaceCmd(g), secretRefreshCmd(g))
	return cmd
}

func secretRefreshCmd(g *globals) *cobra.Command {
	var b by
	cmd := &cobra.Command{
		Use:   "refresh <app>",
		Short: "Ask providers for the values of an app again",
		Long: "refresh asks the programs of secrets.providers for each value that x-gitring.secrets\n" +
			"of the app names. A value that is another one is a new version and rolls as a\n" +
			"commit's would; where nothing changed, nothing happens. Where a provider does not\n" +
			"answer, the known value stays, and the exit code says so. It is journalled.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			why, err := g.why(cmd, b)
			if err != nil {
				return err
			}
			all, err := g.daemon().RefreshSecrets(cmd.Context(), api.SecretRefreshRequest{App: given[0], Reason: why})
			if err != nil {
				return asked(err)
			}
			return g.tellProvided(all)
		},
	}
	b.optional(cmd)
	return cmd
}

// tellProvided tells what came of asking providers, and fails where one did not answer.
func (g *globals) tellProvided(all []api.SecretNow) error {
	failed := 0
	for _, s := range all {
		if s.Error != "" {
			failed++
		}
	}
	if g.machine() {
		if err := g.encode(all); err != nil {
			return err
		}
	} else {
		s := g.screen()
		for _, of := range all {
			switch {
			case of.Error != "":
				s.Line(0, " ", screen.Painted(of.Ref+":", screen.Bold), screen.Text("no answer: "+of.Error))
			case of.Changed:
				s.Line(0, " ", screen.Painted(of.Ref+":", screen.Bold), screen.Text("changed, and rolls what uses it"))
			default:
				s.Line(0, " ", screen.Painted(of.Ref+":", screen.Bold), screen.Text("the same"))
			}
		}
		if _, err := fmt.Fprint(g.out, s); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &exit.Failure{
			Code: exit.Unreachable, Says: fmt.Sprintf("%s of %d did not answer; what was known stays", wording.Counted(failed, "value"), len(all)),
			Hint: "run the program of the provider by hand as the daemon's user",
		}
	}
	return nil
}

func secretPlaceCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "place",
		Short: "Write the files with secrets that containers mount",
		Long: "place writes the files of encrypted files again that containers of this host\n" +
			"mount, from a list that the daemon keeps, kept ciphertext and the keys. It asks no\n" +
			"engine, network or database: gitring-secrets.service runs it before the engine\n" +
			"starts. An engine does not start a container whose file is missing.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(g.configPath())
			if err != nil {
				return err
			}
			if err := dumpNothing(); err != nil {
				return err
			}
			placed, err := daemon.PlaceSecrets(cmd.Context(), c)
			if err == nil {
				g.notice("placed %s", wording.Counted(placed, "file"))
			}
			return err
		},
	}
}

// keyFlags name files of keys.
type keyFlags struct{ age, ssh, openpgp []string }

func (k *keyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&k.age, "age-file", nil, "a `file` of age identities; may be given again")
	cmd.Flags().StringSliceVar(&k.ssh, "ssh-file", nil, "a `file` with a private key of ssh; may be given again")
	cmd.Flags().StringSliceVar(&k.openpgp, "openpgp-file", nil, "a `file` of armoured private keys of OpenPGP; may be given again")
}

func (k *keyFlags) read() (all secrets.Keys, err error) {
	for _, of := range []struct {
		kind  secrets.KeyKind
		files []string
	}{{secrets.AgeFile, k.age}, {secrets.SSHFile, k.ssh}, {secrets.OpenPGPFile, k.openpgp}} {
		for _, file := range of.files {
			keys, err := secrets.ReadKeysOf(of.kind, file, keyOwner(file))
			if err != nil {
				return nil, err
			}
			all = append(all, keys...)
		}
	}
	return all, nil
}

// keyOwner is who may own a file of keys beside root: who asks, and for root whoever the daemon
// runs as.
func keyOwner(file string) int {
	user := os.Geteuid()
	if st, err := os.Lstat(file); err == nil && user == 0 {
		user, _, _ = disk.OwnersOf(st)
	}
	return user
}

// configured takes the files of secrets.keys of a configuration, where there is one.
func (k *keyFlags) configured(file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil // a laptop
	}
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	for _, of := range c.Secrets.Keys {
		switch {
		case of.AgeFile != "":
			k.age = append(k.age, of.AgeFile)
		case of.SSHFile != "":
			k.ssh = append(k.ssh, of.SSHFile)
		default:
			k.openpgp = append(k.openpgp, of.OpenPGPFile)
		}
	}
	return nil
}

func (k *keyFlags) none() bool { return len(k.age)+len(k.ssh)+len(k.openpgp) == 0 }

func secretKeysCmd(g *globals) *cobra.Command {
	var from keyFlags
	var create bool
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Print whom to encrypt for so that this host opens it",
		Long: "keys prints the recipients of files of keys, one a line, for .sops.yaml. Without\n" +
			"a flag it reads those of secrets.keys of the configuration, where it names any,\n" +
			"else " + defaultAgeFile + ". --create makes that file, or the one of --age-file,\n" +
			"where there is none yet.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.none() && !create {
				if err := from.configured(g.configPath()); err != nil {
					return err
				}
			}
			if from.none() {
				from.age = []string{defaultAgeFile}
			}
			if create {
				if len(from.age) != 1 || len(from.ssh)+len(from.openpgp) > 0 {
					return usage(cmd, "--create makes one file of age: name it with --age-file alone")
				}
				return g.createKey(from.age[0])
			}
			keys, err := from.read()
			if errors.Is(err, fs.ErrNotExist) {
				return &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "gitring secret keys --create makes one", Why: err}
			}
			if err != nil {
				return err
			}
			return g.showRecipients(keys.Recipients())
		},
	}
	from.add(cmd)
	cmd.Flags().BoolVar(&create, "create", false, "make the file")
	return cmd
}

func (g *globals) showRecipients(all []string) error {
	if g.machine() {
		return g.encode(all)
	}
	for _, r := range all {
		// .sops.yaml has fingerprints of OpenPGP alone, below pgp.
		if _, err := fmt.Fprintln(g.out, strings.TrimPrefix(r, "OpenPGP ")); err != nil {
			return err
		}
	}
	return nil
}

// createKey never writes over a file: what was encrypted for its key would be lost.
func (g *globals) createKey(file string) error {
	body, recipient, err := secrets.NewAgeKey(g.now())
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &exit.Failure{Code: exit.Conflict, Says: file + " is there already", Hint: "gitring secret keys --age-file " + file + " prints whom it is for"}
	}
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", file, err)
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = disk.Sync(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", file, errors.Join(err, os.Remove(file)))
	}
	g.notice("made %s: keep a copy where this host's disk is not", file)
	return g.showRecipients([]string{recipient})
}

// encryptFlags say how files are encrypted.
type encryptFlags struct {
	rules, form, as string
	public, apps    []string
	dropComments    bool
}

func secretEncryptCmd(g *globals) *cobra.Command {
	var by encryptFlags
	cmd := &cobra.Command{
		Use:   "encrypt <file>...",
		Short: "Encrypt files in place, for the recipients of .sops.yaml",
		Long: "encrypt writes each file anew as one of SOPS, for the recipients of the first\n" +
			"rule of .sops.yaml that matches. That file is looked for as sops does: here, then\n" +
			"in each folder above. - reads stdin and prints what it encrypted.\n\n" +
			"sops opens and edits what this wrote. Comments have no place in it: a file with\n" +
			"comments is refused unless --drop-comments is given.\n" +
			"--for says whose file it is, where a host follows more than one source: gitring_for\n" +
			"goes in among what is encrypted.\n" +
			"Exit 7 when a file or its rule is refused. Files before it are encrypted then.",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			for _, app := range by.apps {
				if app == "" || strings.ContainsAny(app, " ,\t\r\n") {
					return usage(cmd, "--for names an app")
				}
			}
			for _, file := range files {
				switch {
				case file == "-" && (len(files) > 1 || by.as == ""):
					return usage(cmd, "- stands alone, and --as says as which file")
				case file != "-" && by.as != "":
					return usage(cmd, "--as names what is read from stdin")
				}
			}
			return g.encryptFiles(files, by)
		},
	}
	cmd.Flags().StringVar(&by.rules, "rules", "", "the .sops.yaml to take (default: the nearest)")
	cmd.Flags().StringVar(&by.form, "form", "", "yaml, json, env, ini or binary (default: by the name, as sops does)")
	cmd.Flags().StringVar(&by.as, "as", "", "the `file` that stdin stands for")
	cmd.Flags().StringSliceVar(&by.public, "openpgp-keys", nil, "a `file` of armoured public keys of OpenPGP; may be given again")
	cmd.Flags().StringSliceVar(&by.apps, "for", nil, "the `app` that the file serves, as gitring_for; may be given again")
	cmd.Flags().BoolVar(&by.dropComments, "drop-comments", false, "leave comments out")
	_ = cmd.RegisterFlagCompletionFunc("form", cobra.FixedCompletions([]string{"yaml", "json", "env", "ini", "binary"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (g *globals) encryptFiles(files []string, by encryptFlags) error {
	public := secrets.PublicKeys{}
	for _, file := range by.public {
		body, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read the keys: %w", err)
		}
		more, err := secrets.ParsePublicKeys(file, body)
		if err != nil {
			return err
		}
		for fingerprint, key := range more {
			public[fingerprint] = key
		}
	}
	for _, file := range files {
		if file == "-" {
			return g.encryptStdin(by, public)
		}
		st, err := os.Lstat(file)
		if err == nil && !st.Mode().IsRegular() {
			return &exit.Failure{Code: exit.Usage, Says: file + " is no regular file", Hint: "name the file itself"}
		}
		plain, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		body, err := g.encrypted(file, plain, by, public)
		if err != nil {
			return err
		}
		if err := disk.WriteWhole(file, ".encrypt-", body, st.Mode().Perm()); err != nil {
			return fmt.Errorf("cannot write %s: %w", file, err)
		}
		g.notice("encrypted %s", file)
	}
	return nil
}

func (g *globals) encryptStdin(by encryptFlags, public secrets.PublicKeys) error {
	const most = 1 << 20
	plain, err := io.ReadAll(io.LimitReader(g.in, most+1))
	if err != nil {
		return fmt.Errorf("cannot read stdin: %w", err)
	}
	body, err := g.encrypted(by.as, plain, by, public)
	if err == nil {
		_, err = g.out.Write(body)
	}
	return err
}

// encrypted is a file by its rule. Refusals of the rule name .sops.yaml, others the file.
func (g *globals) encrypted(file string, plain []byte, by encryptFlags, public secrets.PublicKeys) ([]byte, error) {
	form := secrets.FormOfName(file)
	if by.form != "" {
		given, err := secrets.ParseForm(by.form)
		if err != nil {
			return nil, &exit.Failure{Code: exit.Usage, Says: err.Error(), Hint: "write --form yaml, json, env, ini or binary"}
		}
		form = given
	}
	rule, err := ruleFor(file, by.rules)
	if err != nil {
		return nil, err
	}
	rule.For = by.apps
	body, err := secrets.Encrypt(form, plain, rule, public, g.now(), by.dropComments)
	return body, refusedIn(file, err)
}

// refusedIn names the file of a refusal.
func refusedIn(file string, err error) error {
	var r *ring.Refusal
	if !errors.As(err, &r) {
		return err
	}
	at := r.Of("it")
	at.File = file
	return &at
}

// ruleFor is what a .sops.yaml says of a file: the one given, or the nearest from here up.
func ruleFor(file, given string) (secrets.Rule, error) {
	if given == "" {
		found, err := nearestRules()
		if err != nil {
			return secrets.Rule{}, err
		}
		given = found
	}
	body, err := os.ReadFile(given)
	if err != nil {
		return secrets.Rule{}, fmt.Errorf("cannot read the rules: %w", err)
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return secrets.Rule{}, fmt.Errorf("cannot find %s: %w", file, err)
	}
	base, err := filepath.Abs(filepath.Dir(given))
	if err != nil {
		return secrets.Rule{}, fmt.Errorf("cannot find %s: %w", given, err)
	}
	// As sops does: a file elsewhere is matched by its whole path.
	rule, err := secrets.RuleFor(body, strings.TrimPrefix(abs, strings.TrimSuffix(base, "/")+"/"))
	return rule, refusedIn(given, err)
}

func nearestRules() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder: %w", err)
	}
	for {
		file := filepath.Join(dir, ".sops.yaml")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", &exit.Failure{Code: exit.NotFound, Says: "there is no .sops.yaml here, nor in a folder above", Hint: "creation_rules: [{age: age1…}] in .sops.yaml; gitring secret keys prints the recipient on the host"}
		}
		dir = up
	}
}

// checkedFile is a line of "secret check".
type checkedFile struct {
	File string       `json:"file"`
	Form secrets.Form `json:"form,omitempty"`
	For  []string     `json:"for,omitempty"`
	// Values is how many it holds; 0 in the forms binary and age.
	Values int `json:"values,omitempty"`
	// Opened names the recipient that opened it; "" where no key was asked.
	Opened  string        `json:"opened,omitempty"`
	Refusal *ring.Refusal `json:"refusal,omitempty"`
}

func secretCheckCmd(g *globals) *cobra.Command {
	var with keyFlags
	cmd := &cobra.Command{
		Use:   "check [dir]",
		Short: "Check the encrypted files of a folder",
		Long: "check reads every encrypted file of a folder (default: the current one), without\n" +
			"what Git ignores, and says what gitring does not read of it. Whom a file is for\n" +
			"and how many values it holds is read without a key. With files of keys it opens\n" +
			"them too, and prints no value.\n" +
			"Exit 7 when anything is refused.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			keys, err := with.read()
			if err != nil {
				return err
			}
			return g.checkSecrets(strings.Join(given, ""), keys, !with.none())
		},
	}
	with.add(cmd)
	return cmd
}

func (g *globals) checkSecrets(dir string, keys secrets.Keys, open bool) error {
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("%s is no folder", dir), Hint: "gitring secret check [dir]"}
	}
	tree, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer tree.Close() //nolint:errcheck // opened to read only
	all := []checkedFile{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		// What is far beyond the limit of an encrypted file is not read to be looked at.
		if info, err := d.Info(); err != nil || info.Size() > 4<<20 {
			return err
		}
		body, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
		if _, is := secrets.FormOf(body); is {
			all = append(all, checkSecret(name, body, keys, open))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.showSecretsChecked(dir, all)
}

func checkSecret(name string, body []byte, keys secrets.Keys, open bool) checkedFile {
	c := checkedFile{File: name}
	c.Form, _ = secrets.FormOf(body)
	f, err := secrets.Read(body)
	if err == nil {
		c.For, c.Values = f.Recipients(), len(f.Names())
		if open {
			var opened *secrets.Opened
			if opened, err = f.Open(keys); err == nil {
				c.Opened = opened.By.Recipient
			}
		}
	}
	errors.As(refusedIn(name, err), &c.Refusal)
	return c
}

func (g *globals) showSecretsChecked(dir string, all []checkedFile) error {
	refused := 0
	for _, c := range all {
		if c.Refusal != nil {
			refused++
		}
	}
	err := g.encodeOr(all, func() error {
		if len(all) == 0 {
			g.notice("no encrypted file in %s", dir)
			return nil
		}
		s := g.screen()
		var rows [][]screen.Word
		for _, c := range all {
			is := screen.Text("not opened here")
			switch {
			case c.Refusal != nil:
				is = screen.Painted(string(c.Refusal.Code)+": "+c.Refusal.Says, screen.Red)
			case c.Opened != "":
				is = screen.Painted("opened", screen.Green)
			}
			rows = append(rows, []screen.Word{
				screen.Text(wording.PrintableLine(c.File, '?')), screen.Text(string(c.Form)), screen.Text(wording.When(c.Values > 0, fmt.Sprint(c.Values))),
				screen.Text(g.forWhom(c.For)), is,
			})
		}
		s.Table(0, []string{"FILE", "FORM", "VALUES", "FOR", ""}, rows)
		var told []string
		for _, c := range all {
			if c.Refusal != nil && c.Refusal.Hint != "" && !slices.Contains(told, c.Refusal.Hint) {
				told = append(told, c.Refusal.Hint)
				s.Line(0, " ", screen.Painted("hint:", screen.Dim), screen.Text(c.Refusal.Hint))
			}
		}
		_, err := fmt.Fprint(g.out, s)
		return err
	})
	if err == nil && refused > 0 {
		return exit.Outcome(exit.Refused)
	}
	return err
}

// forWhom are recipients as a column has room for them; whole with -o wide.
func (g *globals) forWhom(all []string) string {
	if g.output == "wide" {
		return wording.PrintableLine(strings.Join(all, ", "), '?')
	}
	var short []string
	for _, r := range all {
		r = wording.PrintableLine(r, '?')
		if kind, key, ok := strings.Cut(r, " "); ok && strings.HasPrefix(kind, "ssh-") {
			short = append(short, kind+" …"+key[max(0, len(key)-8):]) // all begin alike
			continue
		}
		short = append(short, wording.When(len(r) <= 20, r)+wording.When(len(r) > 20, r[:min(len(r), 16)]+"…"))
	}
	return strings.Join(short, ", ")
}

// encodeOr prints a value for a machine, or else what show prints.
func (g *globals) encodeOr(v any, show func() error) error {
	if g.machine() {
		return g.encode(v)
	}
	return show()
}
