package secrets

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultSuffix is of names that stay in clear where a file says nothing else.
const defaultSuffix = "_unencrypted"

// metadata is what SOPS writes beside the values.
type metadata struct {
	age, openpgp []wrapped
	cloud        []string // keys of clouds that are in it too
	mac          string
	modified     string
	version      string
	selection    selection
	onlySealed   bool // the MAC covers what is encrypted, and nothing else
}

// wrapped is the file's own key, encrypted for one recipient.
type wrapped struct{ recipient, key string }

// Metadata is read strictly: SOPS takes names in any case and converts types, so that a
// reader who overlooks something would judge another file than SOPS does.
var cloudKeys = []string{"kms", "gcp_kms", "hckms", "azure_kv", "hc_vault"}

// semver is strict, as SOPS's own check of the version is.
var semver = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$`)

// readMetadata reads a mapping of metadata, whose flat forms were unfolded before.
func readMetadata(b branch) (metadata, error) {
	var m metadata
	for _, e := range b {
		if err := m.take(e); err != nil {
			return m, err
		}
	}
	return m, m.whole(b)
}

func (m *metadata) take(e entry) error {
	var err error
	switch {
	case e.name == "mac":
		m.mac, err = metaText(e)
	case e.name == "lastmodified":
		m.modified, err = metaText(e)
	case e.name == "version":
		m.version, err = metaText(e)
	case e.name == "age":
		m.age, err = wrappedKeys(e, "recipient", "enc")
	case e.name == "pgp":
		m.openpgp, err = wrappedKeys(e, "fp", "enc", "created_at")
	case slices.Contains(cloudKeys, e.name):
		var n int
		if n, err = cloudEntries(e); n > 0 {
			m.cloud = append(m.cloud, e.name)
		}
	case e.name == "mac_only_encrypted":
		m.onlySealed, err = metaBool(e)
	case slices.Contains(selectionNames, e.name):
		err = m.selection.take(e)
	case e.name == "key_groups" && !isEmpty(e.value), e.name == "shamir_threshold" && !isEmpty(e.value):
		err = faultOfFile(e.line, "is encrypted for key groups (Shamir)", "give one list of keys in .sops.yaml, then sops rotate")
	case e.name == "key_groups", e.name == "shamir_threshold":
	default:
		err = faultOfForm(e.line, "its metadata has "+oneLine(e.name)+", which gitring does not know", "encrypt it with sops 3.9 to 3.13")
	}
	return err
}

// whole holds what was read to what must be there.
func (m *metadata) whole(b branch) error {
	at, err := time.Parse(time.RFC3339, m.modified)
	switch {
	case m.mac == "":
		return &macMissing
	case err != nil || at.Format(time.RFC3339) != m.modified:
		return faultOfForm(lineOf(b, "lastmodified"), "its lastmodified is no time as SOPS writes it", "encrypt it anew")
	case !semver.MatchString(m.version):
		return faultOfForm(lineOf(b, "version"), "its version is none of SOPS", "encrypt it anew")
	case len(m.age)+len(m.openpgp) == 0 && len(m.cloud) > 0:
		return faultOfFile(lineOf(b, m.cloud[0]), "is for keys of a cloud alone ("+strings.Join(m.cloud, ", ")+")", "add an age recipient of this host to .sops.yaml, then sops updatekeys")
	case len(m.age)+len(m.openpgp) == 0:
		return faultOfFile(0, "names nobody who can open it", "encrypt it anew")
	}
	return m.selection.whole(b)
}

func lineOf(b branch, name string) int {
	e, _ := b.find(name)
	return e.line
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case list:
		return len(v) == 0
	case int:
		return v == 0
	case string:
		return v == "" || v == "0"
	}
	return false
}

func metaText(e entry) (string, error) {
	if text, ok := e.value.(string); ok {
		return text, nil
	}
	return "", faultOfForm(e.line, "its "+oneLine(e.name)+" is no text", "encrypt it anew")
}

// metaBool takes the text that env and ini have for it, too.
func metaBool(e entry) (bool, error) {
	switch e.value {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return false, faultOfForm(e.line, "its "+e.name+" is neither true nor false", "encrypt it anew")
}

// metaRows are the mappings of a list, with text values of these names only.
func metaRows(e entry, names ...string) ([]map[string]string, error) {
	bad := faultOfForm(e.line, "its list "+e.name+" is not as SOPS writes it", "encrypt it anew")
	rows, ok := e.value.(list)
	if !ok && e.value != nil {
		return nil, bad
	}
	var out []map[string]string
	for _, row := range rows {
		b, ok := row.value.(branch)
		if !ok {
			return nil, bad
		}
		texts := map[string]string{}
		for _, v := range b {
			text, ok := v.value.(string)
			if !ok || !slices.Contains(names, v.name) {
				return nil, bad
			}
			texts[v.name] = text
		}
		if made, has := texts["created_at"]; has || slices.Contains(names, "created_at") {
			if _, err := time.Parse(time.RFC3339, made); err != nil {
				return nil, bad
			}
		}
		out = append(out, texts)
	}
	return out, nil
}

func wrappedKeys(e entry, recipient, key string, more ...string) ([]wrapped, error) {
	rows, err := metaRows(e, append(more, recipient, key)...)
	var out []wrapped
	for _, row := range rows {
		if row[recipient] == "" || row[key] == "" {
			return nil, faultOfForm(e.line, "its list "+e.name+" has an entry without "+recipient+" or "+key, "encrypt it anew")
		}
		out = append(out, wrapped{recipient: row[recipient], key: row[key]})
	}
	return out, err
}

// cloudEntries counts the keys of a cloud. They are not used, but must be as SOPS reads them.
func cloudEntries(e entry) (int, error) {
	rows, err := metaRows(e, "arn", "role", "aws_profile", "resource_id", "vault_address", "engine_path", "key_name",
		"vault_url", "name", "version", "key_id", "created_at", "enc")
	for _, row := range rows {
		if id, has := row["key_id"]; has && !huaweiKey.MatchString(id) || e.name == "hckms" && !has {
			return 0, faultOfForm(e.line, "its list hckms is not as SOPS writes it", "encrypt it anew")
		}
	}
	return len(rows), err
}

var huaweiKey = regexp.MustCompile(`^[a-z0-9-]+:[0-9a-fA-F-]{36}$`)

// flatName is a name of env and ini metadata: age__list_0__map_enc, or a plain one.
var flatName = regexp.MustCompile(`^([a-z_]+?)(?:__list_(0|[1-9]\d{0,3})__map_([a-z_]+))?$`)

// unfold makes of flat names what yaml and json have.
func unfold(flat branch) (branch, error) {
	var out branch
	lists := map[string]list{}
	for _, e := range flat {
		m := flatName.FindStringSubmatch(e.name)
		switch {
		case m == nil && strings.HasPrefix(e.name, "key_groups__"):
			return nil, faultOfFile(e.line, "is encrypted for key groups (Shamir)", "give one list of keys in .sops.yaml, then sops rotate")
		case m == nil:
			return nil, faultOfForm(e.line, "its metadata has "+oneLine(e.name)+", which gitring does not know", "encrypt it anew")
		case m[2] == "":
			out = append(out, e)
			continue
		}
		at, _ := strconv.Atoi(m[2])
		if at > len(flat) {
			return nil, faultOfForm(e.line, fmt.Sprintf("its list %s has gaps", m[1]), "encrypt it anew")
		}
		for len(lists[m[1]]) <= at {
			lists[m[1]] = append(lists[m[1]], entry{value: branch(nil)})
		}
		row := &lists[m[1]][at]
		row.value = append(row.value.(branch), entry{name: m[3], line: e.line, value: e.value})
		row.line = e.line
	}
	return joinLists(out, lists)
}

func joinLists(out branch, lists map[string]list) (branch, error) {
	for name, rows := range lists {
		if _, both := out.find(name); both {
			return nil, faultOfForm(rows[0].line, "its metadata has "+name+" as a list and as a value", "encrypt it anew")
		}
		for _, row := range rows {
			if row.line == 0 {
				return nil, faultOfForm(0, "its list "+name+" has gaps", "encrypt it anew")
			}
		}
		out = append(out, entry{name: name, line: rows[0].line, value: rows})
	}
	return out, nil
}
