package secrets

import (
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gitring/gitring/ring"
)

// onlySealedStart begins the hash of a MAC that covers encrypted values alone, so that one
// kind of MAC never passes as the other. It is the SHA-256 of "sops".
var onlySealedStart = []byte{
	0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
	0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
}

// File is an encrypted file that was read and not opened: the names in it, and whom it is for.
type File struct {
	Form Form
	body []byte // of a file of age
	tree branch // without metadata
	meta metadata
	kind []string // kinds of recipients of a file of age
}

// Value is one value of an opened file.
type Value struct {
	Path []string // names from the top; what stands in a list has the list's path
	Line int
	Text string
	// Sealed is false for what the file has in clear.
	Sealed bool
}

// Opened is an opened file.
type Opened struct {
	// By names the key that opened it.
	By Key
	// Plain is the file as programs read it: as sops decrypt writes it, but for comments and
	// spaces.
	Plain []byte
	// Values are in the order of the file; none for the forms binary and age.
	Values []Value
	// For are the apps that the file says it serves, by its encrypted name ForKey. That
	// name is in neither Plain nor Values.
	For []string
}

// ForKey is the name in an encrypted file by which it says which apps it serves: one, a
// list, or several with commas between.
const ForKey = "gitring_for"

// Read reads an encrypted file without a key; a *ring.Refusal says what is not carried out.
func Read(body []byte) (*File, error) {
	form, ok := FormOf(body)
	switch {
	case !ok:
		return nil, faultOfFile(0, "is not encrypted", "encrypt it with sops, or with gitring secret encrypt <file>")
	case len(body) > maxFile:
		return nil, faultOfFile(0, "is larger than 1 MiB", "keep large files out of Git, or split it")
	case !isUTF8(body):
		return nil, faultOfFile(0, "is written in UTF-16", "write it as UTF-8: have sops and age write the file (-i, -o), and not the shell")
	case form == Age:
		return readAge(body)
	case !isMarked(body):
		return nil, &ring.Refusal{
			Code: ring.SecretMAC, OfFile: true, Says: "has encrypted values, and no metadata of SOPS with a MAC",
			Hint: "take the last good version back, or encrypt it anew",
		}
	case !utf8.Valid(body):
		return nil, faultOfFile(0, "is no UTF-8", "convert it, then encrypt")
	}
	f := &File{Form: form}
	meta, err := f.parse(body)
	if err != nil {
		return nil, err
	}
	f.meta, err = readMetadata(meta)
	return f, err
}

// parse has the tree of the file, and its metadata apart.
func (f *File) parse(body []byte) (meta branch, err error) {
	switch f.Form {
	case YAML:
		f.tree, err = parseYAML(body)
	case JSON, Binary:
		f.tree, err = parseJSON(body)
	case Env:
		return f.parseEnv(body)
	default:
		f.tree, err = parseINI(body)
	}
	if err != nil {
		return nil, err
	}
	top, _ := f.tree.find(metaName)
	meta, ok := top.value.(branch)
	if !ok {
		return nil, faultOfForm(top.line, "its metadata is no mapping", "encrypt it anew")
	}
	f.tree = f.tree.without(metaName)
	if f.Form == INI {
		return unfold(unescaped(meta))
	}
	return meta, nil
}

func (f *File) parseEnv(body []byte) (meta branch, err error) {
	all, err := parseEnv(body)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		name, is := strings.CutPrefix(e.name, envPrefix)
		if !is {
			f.tree = append(f.tree, e)
			continue
		}
		meta = append(meta, entry{name: name, line: e.line, value: e.value})
	}
	return unfold(meta)
}

// unescaped has the line breaks of metadata in ini.
func unescaped(b branch) branch {
	out := slices.Clone(b)
	for i, e := range out {
		if text, ok := e.value.(string); ok {
			out[i].value = strings.ReplaceAll(text, escapedBreak, "\n")
		}
	}
	return out
}

// Names are the key paths of the values that the file holds, which need no key to be read;
// none for the forms binary and age.
func (f *File) Names() (paths [][]string) {
	if f.Form == Binary || f.Form == Age {
		return nil
	}
	_ = eachValue(f.tree, nil, func(e *entry, path []string) error {
		paths = append(paths, slices.Clone(path))
		return nil
	})
	return paths
}

// Recipients are whom the file is for, as people write them in .sops.yaml.
func (f *File) Recipients() []string {
	if f.Form == Age {
		return f.kind
	}
	var out []string
	for _, w := range f.meta.age {
		out = append(out, w.recipient)
	}
	for _, w := range f.meta.openpgp {
		out = append(out, "OpenPGP "+w.recipient)
	}
	return append(out, f.meta.cloud...)
}

// Open decrypts every value and holds the whole to its MAC; there is no partial opening.
func (f *File) Open(keys Keys) (*Opened, error) {
	if f.Form == Age {
		return f.openAge(keys)
	}
	key, by, err := f.meta.unwrap(keys)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, f.closed(keys)
	}
	o := &opening{key: key, meta: f.meta, mac: sha512.New()}
	if f.meta.onlySealed {
		o.mac.Write(onlySealedStart)
	}
	tree := cloneTree(f.tree).(branch)
	if err := eachValue(tree, nil, o.value); err != nil {
		return nil, err
	}
	if err := o.checkMAC(); err != nil {
		return nil, err
	}
	if f.Form != Binary {
		if err := onlyTexts(o.values); err != nil {
			return nil, err
		}
	}
	out := &Opened{By: by, Values: o.values}
	out.takeFor(f.Form)
	out.Plain, err = f.write(tree.withoutFor(f.Form))
	if f.Form == Binary {
		out.Values = nil
	}
	return out, err
}

// onlyTexts refuses a value that is no UTF-8: what reads it next, SOPS among them, would put
// another letter in the place of what it cannot read.
func onlyTexts(values []Value) error {
	for _, v := range values {
		if !utf8.ValidString(v.Text) {
			return faultOfForm(v.Line, shownPath(v.Path)+" is no text in UTF-8", "convert it, or encrypt the file as binary: sops encrypt --input-type binary")
		}
	}
	return nil
}

func (f *File) write(tree branch) ([]byte, error) {
	switch f.Form {
	case YAML:
		return writeYAML(tree)
	case JSON:
		return writeJSON(tree)
	case Env:
		return writeEnv(tree)
	case INI:
		return writeINI(tree)
	}
	data, _ := tree.find("data")
	text, ok := data.value.(string)
	if !ok {
		return nil, faultOfForm(data.line, "its data is no text", "encrypt it anew")
	}
	return []byte(text), nil
}

// closed is the refusal of a file that no key opens, with whom it is for and who this host is.
func (f *File) closed(keys Keys) error {
	has, made := "this host has no key", "gitring secret keys --create makes one; name it in secrets.keys of the configuration"
	hint := made + ", add it to .sops.yaml, then sops updatekeys <file>"
	if f.Form == Age {
		hint = made + ", then encrypt the file again with age for it"
	}
	if names := keys.Recipients(); len(names) > 0 {
		has = "this host has " + strings.Join(shortened(names), ", ")
		hint = "add " + names[0] + " to .sops.yaml, then sops updatekeys <file>"
		if f.Form == Age { // sops reads no such file
			hint = "encrypt it again with age, for this host too: -r " + names[0]
		}
	}
	return closedFile("is for "+strings.Join(shortened(f.Recipients()), ", ")+"; "+has, hint)
}

// shortened are recipients as a sentence can have them.
func shortened(names []string) []string {
	const most = 26
	out := make([]string, 0, len(names))
	for _, n := range names {
		n = oneLine(n)
		if len(n) > most {
			n = n[:most] + "…"
		}
		out = append(out, n)
	}
	return out
}

// eachValue calls do for each value, in the order that SOPS hashes them, and ends with the
// first error.
func eachValue(entries []entry, path []string, do func(e *entry, path []string) error) error {
	for i := range entries {
		e := &entries[i]
		at := path
		if e.name != "" {
			at = append(slices.Clone(path), e.name)
		}
		if err := eachBelow(e, at, do); err != nil {
			return err
		}
	}
	return nil
}

func eachBelow(e *entry, path []string, do func(e *entry, path []string) error) error {
	switch v := e.value.(type) {
	case branch:
		return eachValue(v, path, do)
	case list:
		return eachValue(v, path, do)
	}
	return do(e, path)
}

func cloneTree(v any) any {
	switch v := v.(type) {
	case branch:
		out := slices.Clone(v)
		for i := range out {
			out[i].value = cloneTree(out[i].value)
		}
		return out
	case list:
		out := slices.Clone(v)
		for i := range out {
			out[i].value = cloneTree(out[i].value)
		}
		return out
	}
	return v
}

// opening is one file while its values are decrypted.
type opening struct {
	key    []byte
	meta   metadata
	mac    hash.Hash
	values []Value
}

func (o *opening) value(e *entry, path []string) error {
	sealed := o.meta.selection.encrypts(path)
	if sealed && e.value != nil {
		v, err := o.decrypt(e, path)
		if err != nil {
			return err
		}
		e.value = v
	}
	text, ok := textOf(e.value)
	if !ok {
		return nil // null: SOPS neither hashes nor encrypts it
	}
	if sealed || !o.meta.onlySealed {
		o.mac.Write([]byte(text))
	}
	o.values = append(o.values, Value{Path: path, Line: e.line, Text: plainText(e.value), Sealed: sealed})
	return nil
}

// decrypt is the value that stands encrypted in e.
func (o *opening) decrypt(e *entry, path []string) (any, error) {
	text, ok := e.value.(string)
	if !ok {
		return nil, faultOfValue(path, e.line, "stands in clear where its name is one to be encrypted")
	}
	if text == "" {
		return "", nil // SOPS does not encrypt what is empty
	}
	s, ok := parseSealed(text)
	if !ok {
		return nil, faultOfValue(path, e.line, "is no encrypted value, and its name is one to be encrypted")
	}
	if says := s.formFault(); says != "" {
		return nil, faultOfForm(e.line, shownPath(path)+" "+says, "encrypt it anew")
	}
	clear, err := s.open(o.key, placeOf(path))
	if err != nil {
		return nil, faultOfValue(path, e.line, "was changed, or moved from another place")
	}
	v, err := typed(clear, s.label)
	if err != nil {
		return nil, faultOfValue(path, e.line, "is not of the type that it says")
	}
	return v, nil
}

// checkMAC holds all that was hashed to what the file says.
func (o *opening) checkMAC() error {
	s, ok := parseSealed(o.meta.mac)
	if !ok || s.formFault() != "" || s.label != "str" {
		return faultOfValue(nil, 0, "its MAC is none of SOPS")
	}
	want, err := s.open(o.key, o.meta.modified)
	if err != nil {
		return faultOfValue(nil, 0, "its MAC was changed, or is of another time")
	}
	if subtle.ConstantTimeCompare([]byte(want), fmt.Appendf(nil, "%X", o.mac.Sum(nil))) != 1 {
		return faultOfValue(nil, 0, "a value was added, taken out, moved or changed: the MAC does not hold")
	}
	return nil
}
