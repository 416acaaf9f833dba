package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/secrets"
)

// secretFiles opens encrypted files of commits, and the values that stand sealed in plans.
// nil opens none.
type secretFiles struct {
	keys          []limitedKeys
	host          []byte // the key of the keyed hashes
	interpolation map[string]string
	sources       int
	kept          *cipherStore // nil keeps nothing
	providers     *providers   // nil where none is known
}

// limitedKeys are those of one file of keys.
type limitedKeys struct {
	secrets.Keys
	sources, paths []string
}

// openedFile is what has to be kept of a file that was opened.
type openedFile struct {
	entry cipherEntry
	body  []byte
}

// readSecretKeys reads all files of keys that a configuration names.
func readSecretKeys(c *config.Config, user fileUser) (all []limitedKeys, err error) {
	for _, k := range c.Secrets.Keys {
		kind, file := keyPath(k)
		keys, err := secrets.ReadKeysOf(kind, file, user(file))
		if err != nil {
			return nil, &ring.HostError{Says: "secrets.keys: " + err.Error(), Hint: "gitring secret keys --create makes a key; chmod 600 " + file, Err: err}
		}
		all = append(all, limitedKeys{keys, k.Sources, k.Paths})
	}
	return all, nil
}

// newSecretFiles reads the keys, and what is kept of files that were opened.
func newSecretFiles(c *config.Config, host []byte) (s *secretFiles, err error) {
	s = &secretFiles{host: host, interpolation: c.Interpolation, sources: len(c.Sources)}
	if s.keys, err = readSecretKeys(c, self); err != nil {
		return nil, err
	}
	s.kept, err = openCipherStore(filepath.Join(c.State, "ciphertext"))
	return s, err
}

// hostKeyFile is where the key of the keyed hashes lies.
func hostKeyFile(c *config.Config) string {
	if c.Secrets.HostKeyFile != "" {
		return c.Secrets.HostKeyFile
	}
	return filepath.Join(c.State, "env.key")
}

// all are the keys without their limits.
func (s *secretFiles) all() (keys secrets.Keys) {
	for _, k := range s.keys {
		keys = append(keys, k.Keys...)
	}
	return keys
}

// print changes when what is opened may change.
func (s *secretFiles) print(of signersOf) string {
	sum := sha256.New()
	for _, k := range s.keys {
		fmt.Fprintf(sum, "%q %q %q\n", k.Recipients(), k.sources, k.paths)
	}
	fmt.Fprintf(sum, "%x %v %q %v %v", sha256.Sum256(s.host), of.limited, of.print, s.sources, s.providers.round())
	return hex.EncodeToString(sum.Sum(nil))
}

// signersOf is where the signers of a source may add files.
type signersOf struct {
	// limited reports whether one of them may on some paths only.
	limited bool
	// oneHand reports whether each of them may everywhere that patterns of paths reach, or
	// nowhere there; nil where that is not known, and so of no patterns.
	oneHand func(paths []string) bool
	print   string // changes whenever the rest may
}

// alike reports whether paths are in one hand.
func (s signersOf) alike(paths ...string) bool {
	return !s.limited || s.oneHand != nil && s.oneHand(paths)
}

// openerFor opens files of the commits of one source.
type openerFor struct {
	*secretFiles
	source  string
	signers signersOf
	// closed opens nothing: the commit is not verified, or nobody asks for values.
	closed bool
	// opened are the files that it opened, for one who keeps them; nil notes none.
	opened *[]openedFile
}

// openedBy are the files that were opened for these settings.
func openedBy(s manifest.Settings) []openedFile {
	if o, ok := s.Secrets.(openerFor); ok && o.opened != nil {
		return *o.opened
	}
	return nil
}

// Encrypted reports whether a file is encrypted.
func (o openerFor) Encrypted(body []byte) bool {
	_, is := secrets.FormOf(body)
	return is
}

func refusalOf(err error) *ring.Refusal {
	var r *ring.Refusal
	if errors.As(err, &r) {
		return r
	}
	return &ring.Refusal{Code: ring.SecretForm, OfFile: true, Says: "cannot be read: " + err.Error(), Hint: "encrypt it anew"}
}

// Open opens a file for an app, where it is the app's.
func (o openerFor) Open(f manifest.SecretFile) (*manifest.OpenedFile, *ring.Refusal) {
	read, err := secrets.Read(f.Body)
	if err != nil {
		return nil, refusalOf(err)
	}
	out := &manifest.OpenedFile{From: ring.FromSOPS, Lines: slices.Contains([]secrets.Form{secrets.Env, secrets.Binary, secrets.Age}, read.Form)}
	if read.Form == secrets.Age {
		out.From = ring.FromAge
	}
	if o.closed {
		o.close(out, read, f)
		return out, nil
	}
	opened, r := o.open1(read, f)
	if r != nil {
		return nil, r
	}
	out.Plain = opened.Plain
	out.MAC = func(path []string, value string) string { return ring.SealMAC(o.host, f.App, f.Path, path, value) }
	o.remember(f, opened)
	return out, nil
}

// close tells the names of a file that nobody opened, and what stands for their values: what
// is known of the same ciphertext at the same place, or something that is no MAC of a value.
func (o openerFor) close(out *manifest.OpenedFile, read *secrets.File, f manifest.SecretFile) {
	out.Closed = true
	for _, p := range read.Names() {
		if len(p) == 1 && p[0] != manifest.ForKey {
			out.Names = append(out.Names, p[0])
		}
	}
	out.Unopened = "not opened here"
	if len(o.keys) > 0 { // this host does open it, once somebody trusted the commit
		out.Unopened = "not opened for a plan"
	}
	var known cipherEntry
	if o.kept != nil {
		var same bool
		if known, same = o.kept.of(f.Source, f.App, f.Path, sumOf(f.Body)); same {
			out.Unopened = "" // all that a plan would say of it is known
		}
		if len(out.Names) == 0 { // of a form whose names are not readable
			for name := range known.MACs {
				if name != "" {
					out.Names = append(out.Names, name)
				}
			}
			slices.Sort(out.Names)
		}
	}
	out.MACOf = func(name string) string {
		if macs := known.MACs[name]; len(macs) > 0 {
			return macs[0]
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "not opened %q %q %x", f.App, name, sha256.Sum256(f.Body)))
		return ring.NotOpened(hex.EncodeToString(sum[:16]))
	}
}

// open1 opens a file with the keys that may open it, and says whose it is. Keys that cover
// the file by what the configuration says of them are tried first.
func (o openerFor) open1(read *secrets.File, f manifest.SecretFile) (*secrets.Opened, *ring.Refusal) {
	var covering, others secrets.Keys
	for _, k := range o.keys {
		switch {
		case !k.opens(o.source, f.Path):
		case o.covers(k):
			covering = append(covering, k.Keys...)
		default:
			others = append(others, k.Keys...)
		}
	}
	shared := o.sources == 1 && !o.signers.limited
	opened, err := read.Open(covering)
	covered := err == nil
	if !covered {
		if opened, err = read.Open(slices.Concat(covering, others)); err != nil {
			r := refusalOf(err)
			if r.Code == ring.SecretKey {
				if again, ok := o.again(f); ok {
					return again, nil
				}
			}
			return nil, r
		}
	}
	switch inFolder := !f.Another && (f.Folder == "." || f.Folder == "" || strings.HasPrefix(f.Path, f.Folder+"/")); {
	case shared, covered && inFolder, slices.Contains(opened.For, f.App):
		return opened, nil
	default:
		return nil, o.notForApp(read, f, opened, inFolder)
	}
}

func (o openerFor) notForApp(read *secrets.File, f manifest.SecretFile, opened *secrets.Opened, inFolder bool) *ring.Refusal {
	why := "the key that opens it is not bound to its source and path"
	switch {
	case f.Another:
		why = "it lies in the folder of another app"
	case !inFolder:
		why = "it lies outside of the app's folder"
	case slices.ContainsFunc(o.keys, func(k limitedKeys) bool { return o.hasLimits(k) && !o.covers(k) && k.opens(o.source, f.Path) }):
		why = "the key that opens it is also for paths on which other signers may add files, and they could have copied it"
	}
	if len(opened.For) > 0 {
		why = "its " + manifest.ForKey + " names other apps"
	}
	var hints []string
	if read.Form != secrets.Age && read.Form != secrets.Binary { // those have no place for it
		hints = append(hints, "add "+manifest.ForKey+": "+f.App+" to the encrypted values of the file")
	}
	if at := o.narrow(f); inFolder && at != "" {
		hints = append(hints, "bind a key of the host to "+at+" and to nothing else (secrets.keys: paths, sources)")
	}
	if len(hints) == 0 {
		hints = append(hints, "encrypt it in the form yaml, json, env or ini, which has a place for "+manifest.ForKey+": "+f.App)
	}
	return &ring.Refusal{Code: ring.SecretNotFor, OfFile: true, Says: "is not for app " + f.App + ": " + why, Hint: strings.Join(hints, ", or ")}
}

// narrow is what a key may be bound to so that it says whose a file is; "" where nothing does.
func (o openerFor) narrow(f manifest.SecretFile) string {
	for _, p := range []string{path.Join(f.Folder, "**"), f.Path} {
		if p != "**" && o.signers.alike(p) {
			return p
		}
	}
	return ""
}

// opens reports whether the limits of keys let them open a file.
func (k limitedKeys) opens(source, file string) bool {
	return (len(k.sources) == 0 || slices.Contains(k.sources, source)) &&
		(len(k.paths) == 0 || slices.ContainsFunc(k.paths, func(p string) bool { return ring.MatchPath(p, file) }))
}

// covers reports whether keys tell one app's files from another's. Ciphertext can be copied, so
// they do not where somebody may add files to a part of what they reach, and others to the rest.
func (o openerFor) covers(k limitedKeys) bool {
	if !o.hasLimits(k) {
		return false
	}
	_, paths := o.reach(k)
	return o.signers.alike(paths...)
}

// hasLimits reports whether keys have each limit that counts: one source where there are
// several, and paths where a signer is bound to some. All paths are no limit.
func (o openerFor) hasLimits(k limitedKeys) bool {
	sources, paths := o.reach(k)
	return (o.sources == 1 || len(sources) == 1) && (!o.signers.limited || len(paths) > 0 && !slices.Contains(paths, "**"))
}

// reach is what keys open, with all that the configuration says elsewhere of one of them: the
// same key twice is one key. None is all.
func (s *secretFiles) reach(k limitedKeys) (sources, paths []string) {
	same := slices.DeleteFunc(slices.Clone(s.keys), func(o limitedKeys) bool {
		return !slices.ContainsFunc(o.Recipients(), func(r string) bool { return slices.Contains(k.Recipients(), r) })
	})
	for _, o := range same {
		sources, paths = append(sources, o.sources...), append(paths, o.paths...)
	}
	if slices.ContainsFunc(same, func(o limitedKeys) bool { return len(o.sources) == 0 }) {
		sources = nil
	}
	if slices.ContainsFunc(same, func(o limitedKeys) bool { return len(o.paths) == 0 }) {
		paths = nil
	}
	slices.Sort(sources)
	return slices.Compact(sources), paths
}

// again opens newer ciphertext of the same values in place of a file whose key is gone. The
// file was judged when it was opened first.
func (o openerFor) again(f manifest.SecretFile) (*secrets.Opened, bool) {
	if o.kept == nil {
		return nil, false
	}
	known, ok := o.kept.of(f.Source, f.App, f.Path, sumOf(f.Body))
	if !ok {
		return nil, false
	}
	for _, e := range o.kept.like(known) {
		opened, err := o.openKept(e)
		if err == nil && slices.Contains(e.MACs[""], ring.SealMAC(o.host, f.App, f.Path, nil, string(opened.Plain))) {
			return opened, true
		}
	}
	return nil, false
}

func (s *secretFiles) openKept(e cipherEntry) (*secrets.Opened, error) {
	body, err := s.kept.read(e.Sum)
	if err != nil {
		return nil, err
	}
	read, err := secrets.Read(body)
	if err != nil {
		return nil, err
	}
	return read.Open(s.all())
}

// remember notes what has to be kept of a file before a plan with its values is in force.
func (o openerFor) remember(f manifest.SecretFile, opened *secrets.Opened) {
	if o.kept == nil || o.opened == nil {
		return
	}
	e := cipherEntry{Sum: sumOf(f.Body), Source: f.Source, App: f.App, File: f.Path, MACs: map[string][]string{}}
	for name, values := range valuesOf(opened.Plain, o.interpolation) {
		for _, value := range values {
			e.MACs[name] = append(e.MACs[name], ring.SealMAC(o.host, f.App, f.Path, pathOf(name), value))
		}
	}
	*o.opened = append(*o.opened, openedFile{e, f.Body})
}

func pathOf(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// valuesOf are the values of an opened file by their names: the whole under "", and
// variables in both readings of lines.
func valuesOf(plain []byte, interpolation map[string]string) map[string][]string {
	out := map[string][]string{}
	if len(plain) > 0 {
		out[""] = []string{string(plain)}
	}
	for _, raw := range []bool{false, true} {
		of, ok := manifest.SecretVariables(plain, interpolation, raw)
		if !ok {
			continue // it is no env file, or not in this reading
		}
		for name, value := range of {
			if value != "" && !slices.Contains(out[name], value) {
				out[name] = append(out[name], value)
			}
		}
	}
	return out
}

// keepOpened has on disk what was opened, as of a moment.
func (s *cipherStore) keepOpened(opened []openedFile, at time.Time) error {
	for _, o := range opened {
		o.entry.At = at
		if err := s.keep(o.entry, o.body); err != nil {
			return err
		}
	}
	return nil
}

// value is what stands behind a sealed value of an encrypted file.
func (s *secretFiles) value(v ring.Sealed) (string, error) {
	if s == nil || s.kept == nil {
		return "", fmt.Errorf("cannot open %s: no key of this host is configured", nameOf(v))
	}
	found := s.kept.with(v)
	if len(found) == 0 {
		return "", fmt.Errorf("cannot open %s: its encrypted file is not kept any more, so this version cannot be made again", nameOf(v))
	}
	var last error
	for _, e := range found {
		values, err := s.valuesIn(e)
		if errors.Is(err, errNotKeptHere) {
			value, err := s.askedAgain(v)
			if err == nil {
				return value, nil
			}
			last = err
			continue
		}
		if err != nil {
			last = err
			continue
		}
		for _, value := range values[v.Name] {
			if ring.SealMAC(s.host, v.App, v.File, pathOf(v.Name), value) == v.MAC {
				return value, nil
			}
		}
		last = errors.New("it holds another value now: the key of the host or the interpolation changed")
	}
	var r *ring.Refusal
	if errors.As(last, &r) {
		last = errors.New(r.Of("it").Says)
	}
	return "", fmt.Errorf("cannot open %s: %w", nameOf(v), last)
}

// nameOf is how people call a sealed value.
func nameOf(v ring.Sealed) string {
	if v.Name == "" {
		return v.File
	}
	return v.Name + " of " + v.File
}

// values are all values of an app that are kept, by what they are, with their names; and the
// MACs of those that no key opens any more.
func (s *secretFiles) values(app string) (out map[string]string, shut map[string]bool) {
	out, shut = map[string]string{}, map[string]bool{}
	if s == nil || s.kept == nil {
		return out, shut
	}
	known := map[string]bool{}
	for _, e := range s.kept.find(func(e *cipherEntry) bool { return e.App == app }) {
		if e.From == ring.FromProvider {
			s.providedValues(e, out, known, shut)
			continue
		}
		opened, err := s.openKept(e)
		note := known
		if err != nil {
			note = shut
		}
		for _, all := range e.MACs {
			for _, mac := range all {
				note[mac] = true
			}
		}
		if err != nil {
			continue
		}
		for name, values := range valuesOf(opened.Plain, s.interpolation) {
			for _, value := range values {
				if name == "" {
					name = e.File
				}
				out[value] = name
			}
		}
		for _, v := range opened.Values {
			if v.Sealed {
				out[v.Text] = strings.Join(v.Path, ".")
			}
		}
	}
	maps.DeleteFunc(shut, func(mac string, _ bool) bool { return known[mac] })
	return out, shut
}

// ClosedSecrets reads encrypted files for those who do not serve: names are known, and
// nothing is opened.
func ClosedSecrets(s manifest.Settings) manifest.Settings {
	key := make([]byte, EnvKeySize)
	_, _ = rand.Read(key) // never fails
	s.Secrets = openerFor{secretFiles: &secretFiles{host: key, sources: 1}, source: s.Source, closed: true}
	return s
}

// OpenSecrets opens encrypted files with the keys of a configuration, and keeps nothing. A
// key that cannot be read closes them: whoever asks may be somebody else than the daemon.
func OpenSecrets(c *config.Config, s manifest.Settings, hostKey []byte) manifest.Settings {
	keys, err := readSecretKeys(c, self)
	if err != nil || len(keys) == 0 {
		return ClosedSecrets(s)
	}
	if len(hostKey) == 0 {
		hostKey = make([]byte, EnvKeySize)
		_, _ = rand.Read(hostKey) // never fails
	}
	s.Secrets = openerFor{
		secretFiles: &secretFiles{keys: keys, host: hostKey, interpolation: c.Interpolation, sources: len(c.Sources)}, source: s.Source, signers: signersIn(c, s.Source),
	}
	return s
}

// signersIn is where signers may add files as far as a configuration says so. Without their
// keys nobody is known to be limited: whoever asks may have none.
func signersIn(c *config.Config, source string) signersOf {
	i := slices.IndexFunc(c.Sources, func(s config.SourceConfig) bool { return s.Name == source })
	if i < 0 || c.Sources[i].Trust == nil {
		return signersOf{}
	}
	of := c.Sources[i].Trust.TrustConfig()
	of.AnyOwner = true
	trust, err := gitsync.LoadTrust(of, source, c.Sources[i].Branch)
	if err != nil {
		return signersOf{}
	}
	h := trust.Hands()
	return signersOf{limited: h.LimitedFiles(), oneHand: h.OneHand, print: h.Print()}
}

// needSecrets are the services of an app that are made of encrypted files, sorted.
func (d *Daemon) needSecrets(app *ring.App) (names []string) {
	for i := range app.Services {
		s := &app.Services[i]
		macs := map[string]bool{}
		macsOfApp(&ring.App{Services: []ring.Service{*s}}, macs)
		for _, m := range s.Spec.Mounts {
			if list := d.contentStore.places.list; list != nil && list.has(m.Source) {
				macs[m.Source] = true
			}
		}
		if len(macs) > 0 {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// plainOf are the encrypted files that an app uses of a commit, opened, by path.
func (s *secretFiles) plainOf(app *ring.App, tree fs.FS) (map[string][]byte, error) {
	if s == nil || s.kept == nil {
		return nil, nil
	}
	out := map[string][]byte{}
	for _, e := range s.kept.find(func(e *cipherEntry) bool { return e.App == app.Name && e.Source == app.Source && e.From == "" }) {
		body, err := fs.ReadFile(tree, e.File)
		if err != nil || sumOf(body) != e.Sum {
			continue // of another commit
		}
		opened, err := s.openKept(e)
		for _, o := range s.kept.like(e) {
			if err == nil {
				break
			}
			opened, err = s.openKept(o)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot leave: %s cannot be opened: %w", e.File, err)
		}
		out[e.File] = opened.Plain
	}
	return out, nil
}
