package manifest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// hostEnv is the folder of one app in the host's env folder.
type hostEnv struct {
	app   string
	files map[string][]byte
	key   []byte
	over  map[string]value // the configuration's interpolation
	limit Limits
	// known is what a plan says of the values where nobody has them: by file and name. nil
	// where the files are here.
	known map[string]map[string]SealedValue
}

// SealedValues are values of the host's env folder, or of encrypted files, as a plan says
// them: by the folder (an app's, or SharedEnv) or by the app, then by file, then by name.
// The whole of a file has no name.
type SealedValues map[string]map[string]map[string]SealedValue

// SealedValue is one of them. Nothing can be told from it but whether it changed.
type SealedValue struct {
	MAC string `json:"mac,omitempty"` // "" is an empty value
	// Words reports whether a shell would take it for several words.
	Words bool `json:"words,omitempty"`
}

// Put notes a value.
func (s SealedValues) Put(folder, file, name string, v SealedValue) {
	if s[folder] == nil {
		s[folder] = map[string]map[string]SealedValue{}
	}
	if s[folder][file] == nil {
		s[folder][file] = map[string]SealedValue{}
	}
	s[folder][file][name] = v
}

// stand is what stands for the value: not empty where it is not, and as many words.
func (v SealedValue) stand() string {
	switch {
	case v.MAC == "":
		return ""
	case v.Words:
		return closedValue
	}
	return closedWord
}

// SealedOf are the values of one folder of the host's env folder, as a plan says them.
func SealedOf(folder string, files map[string][]byte, key []byte, interpolation map[string]string) SealedValues {
	h := hostEnv{app: folder, files: files, key: key, over: saidAll(interpolation), limit: sealLimits}
	out := SealedValues{}
	for file := range files {
		out.Put(folder, file, "", h.said(file, "", string(files[file])))
		of, f := h.variables(file, false)
		if f != nil {
			if of, f = h.variables(file, true); f != nil {
				continue
			}
		}
		for name, plain := range of {
			out.Put(folder, file, name, h.said(file, name, plain))
		}
	}
	return out
}

func (h *hostEnv) said(file, name, plain string) SealedValue {
	if plain == "" {
		return SealedValue{}
	}
	return SealedOpened(h.sealed(file, name, plain).MAC, plain)
}

// SealedOpened is what may be told of a value that is known.
func SealedOpened(mac, plain string) SealedValue {
	split, ok := words(plain)
	return SealedValue{MAC: mac, Words: !ok || len(split) != 1 || split[0] != plain}
}

// filesOf are the files that a plan says something of, without what is in them.
func filesOf(known map[string]map[string]SealedValue) map[string][]byte {
	out := make(map[string][]byte, len(known))
	for file := range known {
		out[file] = []byte{}
	}
	return out
}

// Seal gives every value of an app's files in the host's env folder by what
// stands for it in a plan: each variable of a file, and the file as a whole under
// the name "". A variable may refer to earlier ones of its file and to
// interpolation, and to nothing else, so a plan's values can be opened without
// its commit. A file that is no env file is only a whole.
func Seal(app string, files map[string][]byte, key []byte, interpolation map[string]string) (map[ring.Sealed]string, *ring.Refusal) {
	h := hostEnv{app: app, files: files, key: key, over: saidAll(interpolation), limit: sealLimits}
	out := map[ring.Sealed]string{}
	keep := func(file string, of map[string]string) {
		for name, plain := range of {
			if plain != "" {
				out[h.sealed(file, name, plain)] = plain
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if f := h.keyless(file); f != nil {
			return nil, f.refusal("", app)
		}
		keep(file, map[string]string{"": string(files[file])})
		of, f := h.variables(file, false)
		if f != nil && file == dotEnv {
			return nil, f[0].refusal("", app)
		}
		if f == nil {
			keep(file, of)
		}
		if of, f := h.variables(file, true); f == nil {
			keep(file, of)
		}
	}
	return out, nil
}

// sealLimits are what no configuration raises them above: a plan that was read
// under its own can always be opened. The folder is the host's.
var sealLimits = Limits{TotalSize: 64 << 20, Text: 16 << 20}.withDefaults()

const dotEnv = ".env"

// SharedFolder is the folder in the host's env folder that holds, by source, what all
// apps of the source may use. No app can be called so.
const SharedFolder = "_shared"

// SharedEnv is the folder of a source in the host's env folder, where sealed values have
// an app's name.
func SharedEnv(source string) string { return SharedFolder + "/" + source }

// where is how a refusal names a file of the folder.
func (h *hostEnv) where(file string) string { return "<env.dir>/" + h.path(file) }

// path is a file's below the folder.
func (h *hostEnv) path(file string) string { return path.Join(h.app, file) }

func (h *hostEnv) keyless(file string) *fault {
	if len(h.key) > 0 || h.known != nil {
		return nil
	}
	return &fault{
		code: ring.BadValue, place: place{file: h.where(file)}, says: "the host's env folder has values for app " + h.app + ", but there is no key to seal them with",
		hint: "start the daemon, which makes the key, or read the commit without env.dir",
	}
}

// variables are those of one file, as they are; of one with faults those that
// could be read. What a fault tells holds nothing of the file but the line.
func (h *hostEnv) variables(file string, raw bool) (of map[string]string, all []*fault) {
	if f := h.keyless(file); f != nil {
		return nil, []*fault{f}
	}
	if h.known != nil {
		of = map[string]string{}
		for name, v := range h.known[file] {
			if name != "" {
				of[name] = v.stand()
			}
		}
		return of, nil
	}
	return hiddenVariables(h.over, h.limit, h.where(file), h.files[file], raw)
}

// hiddenVariables are those of a file whose values are nobody's to read.
func hiddenVariables(over map[string]value, limit Limits, where string, body []byte, raw bool) (of map[string]string, all []*fault) {
	v := newVariables(over, &budget{left: limit.Expanded, text: limit.Text})
	read := v.envFile
	if raw {
		read = v.rawEnvFile
	}
	for _, f := range read(where, body) {
		if f != untold {
			f = unreadHost(f.code, f.place)
		}
		all = append(all, f)
	}
	for _, b := range v.bare { // no note may tell what stands there: it may be the rest of a secret
		all = append(all, unreadHost(ring.BadValue, b.at))
	}
	of = make(map[string]string, len(v.values))
	for name, val := range v.values {
		if !val.lost {
			of[name] = val.plain
		}
	}
	return of, all
}

// unreadHost refuses a line and tells nothing of it.
func unreadHost(code ring.Code, at place) *fault {
	return &fault{
		code: code, place: at, says: "the line cannot be read as NAME=value, or refers to a variable that is not set",
		hint: "write NAME='value': in single quotes a dollar is a dollar; a line may refer to earlier ones and to the configuration's interpolation",
	}
}

// sealed is what stands for a value. The hash is over its place too: that two
// values are equal is nobody's business.
func (h *hostEnv) sealed(file, name, plain string) ring.Sealed {
	if h.known != nil {
		return ring.Sealed{App: h.app, File: file, Name: name, MAC: h.known[file][name].MAC}
	}
	mac := hmac.New(sha256.New, h.key)
	for _, part := range []string{h.app, file, name, plain} {
		sum := sha256.Sum256([]byte(part))
		mac.Write(sum[:])
	}
	return ring.Sealed{App: h.app, File: file, Name: name, MAC: hex.EncodeToString(mac.Sum(nil)[:16])}
}

// value is a value as it is, and as it stands in a plan; nothing is sealed as nothing.
func (h *hostEnv) value(file, name, plain string) value {
	if plain == "" {
		return value{}
	}
	return value{plain: plain, sealed: h.sealed(file, name, plain).String()}
}

// whole is a file of the folder as one value.
func (h *hostEnv) whole(file string) (value, *fault) {
	if f := h.keyless(file); f != nil {
		return value{}, f
	}
	if h.known != nil {
		return h.value(file, "", h.known[file][""].stand()), nil
	}
	return h.value(file, "", string(h.files[file])), nil
}

// sealedText is a sealed value inside a message, quoted or not, cut off or not.
var sealedText = regexp.MustCompile(`(?:\x1b|\\x1b|\\u001b|\\e)(?:env|sops|age|exec):([^:\s]*):([^:\s]*):([^:\s]*)(?::[0-9a-f]*)?(?:\x1b|\\x1b|\\u001b|\\e)?`)

// told is a text for people: a sealed value is called by the variable's name.
func told(s string) string {
	return sealedText.ReplaceAllStringFunc(s, func(token string) string {
		m := sealedText.FindStringSubmatch(token)
		name, err := url.QueryUnescape(or2(m[3], m[2]))
		if err != nil || strings.Contains(name, ring.SealMark) {
			return "${…}"
		}
		return "${" + name + "}"
	})
}
