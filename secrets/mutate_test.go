package secrets

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutations is how many files are made by default; GITRING_SECRET_MUTATIONS asks for more.
const mutations = 2000

// TestNothingIsOpenedThatSOPSRefuses changes encrypted files as an attacker, an editor or a
// merge would. What gitring opens the real sops must open too, to the same values. The
// converse does not hold: gitring is stricter, and how often with which code is printed.
// GITRING_SEED begins elsewhere; a failure names its own.
func TestNothingIsOpenedThatSOPSRefuses(t *testing.T) {
	n, seed := mutations, int64(1)
	for name, to := range map[string]func(int64){"GITRING_SECRET_MUTATIONS": func(v int64) { n = int(v) }, "GITRING_SEED": func(v int64) { seed = v }} {
		if text := os.Getenv(name); text != "" {
			v, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			to(v)
		}
	}
	b := newBench(t)
	seeds := b.seeds()
	next, tally := make(chan int64), &tally{verdicts: map[string]int{}}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for s := range next {
				b.try(seeds, s, tally)
			}
		})
	}
	for i := range n {
		next <- seed + int64(i)
	}
	close(next)
	workers.Wait()
	for _, v := range slices.Sorted(maps.Keys(tally.verdicts)) {
		t.Logf("%6d %s", tally.verdicts[v], v)
	}
	if n >= 1000 {
		require.Greater(t, tally.verdicts["(opened)"], n/25, "too few opened to mean anything")
		require.Less(t, tally.verdicts["(opened)"], n*3/4, "too few refused to mean anything")
	}
}

type tally struct {
	sync.Mutex
	verdicts map[string]int
}

type seedFile struct {
	name string
	form Form
	body string
}

// seeds are files of each form and kind of key, and some with other rules of what is
// encrypted.
func (b *bench) seeds() (out []seedFile) {
	for _, form := range forms {
		for _, kind := range b.kinds {
			out = append(out, seedFile{kind.name, form, string(b.encrypt(form, plains[form], kind.flag, kind.recipient))})
		}
		if form == Binary {
			continue
		}
		for _, rule := range []string{
			"mac_only_encrypted: true, encrypted_regex: ^(pass|PASS|port)", "unencrypted_regex: ^(port|list|QUOTED)$", "encrypted_suffix: word", "unencrypted_suffix: ORD",
		} {
			out = append(out, seedFile{rule, form, string(b.encryptBy(form, rule))})
		}
	}
	return out
}

// encryptBy has sops encrypt by a rule of .sops.yaml.
func (b *bench) encryptBy(form Form, rule string) []byte {
	config := fmt.Sprintf("creation_rules: [{age: %s, %s}]\n", b.kinds[0].recipient, rule)
	require.NoError(b.t, os.WriteFile(b.path("rule.yaml"), []byte(config), 0o600))
	out, err := b.run([]byte(plains[form]), b.sops, "--config", b.path("rule.yaml"), "encrypt", "--input-type", typeOf(form), "--output-type", typeOf(form), "/dev/stdin")
	require.NoError(b.t, err)
	return out
}

// try makes one file and holds gitring's answer to that of sops.
func (b *bench) try(seeds []seedFile, seed int64, tally *tally) {
	r := rand.New(rand.NewSource(seed)) //nolint:gosec // it only has to be the same again
	from := seeds[r.Intn(len(seeds))]
	body := from.body
	for range 1 + r.Intn(2) {
		body = mutated(r, body)
	}
	verdict := "(same)"
	if body != from.body {
		verdict = b.judge(from, seed, body)
	}
	tally.Lock()
	tally.verdicts[verdict]++
	tally.Unlock()
}

// judge is what gitring says, or "(opened)" where sops opens it to the same values.
func (b *bench) judge(from seedFile, seed int64, body string) string {
	form, is := FormOf([]byte(body))
	if !is {
		return "(not encrypted)"
	}
	f, err := Read([]byte(body))
	var got *Opened
	if err == nil {
		got, err = f.Open(b.keys)
	}
	if err != nil {
		return string(requireCodeOf(b.t, err))
	}
	into := JSON
	if form == Binary {
		into = Binary
	}
	plain, err := b.decrypt(form, into, []byte(body))
	if err != nil {
		b.t.Errorf("seed %d (%s, %s): gitring opens what sops refuses: %v\n%s", seed, form, from.name, err, body)
		return "(looser)"
	}
	var want, is2 []string
	if form == Binary {
		want, is2 = []string{string(plain)}, []string{string(got.Plain)}
	} else {
		want = jsonTexts(b.t, plain)
		for _, v := range got.Values {
			is2 = append(is2, strings.Join(v.Path, "/")+"="+number(v.Text))
		}
	}
	if !slices.Equal(want, is2) {
		b.t.Errorf("seed %d (%s, %s): gitring has %q where sops has %q\n%s", seed, form, from.name, is2, want, body)
		return "(looser)"
	}
	return "(opened)"
}

var (
	aSealedValue = regexp.MustCompile(`ENC\[AES256_GCM,[^\]]*\]`)
	aLabel       = regexp.MustCompile(`type:[a-z]+\]`)
	aSpace       = regexp.MustCompile(`[ \t]+`)
	aName        = regexp.MustCompile(`(?m)^[\t ]*"?([A-Za-z_]\w*)"?\s*[:=]`)
	aNumber      = regexp.MustCompile(`\d+`)
)

// tokens are what a parser may trip over.
var tokens = []string{
	"#", ";", "&a ", "*a", "<<: ", "---\n", "...\n", "!!str ", "!!binary ", "\\n", "\n", "\r", "\r\n", "\t", " ", "\ufeff", "\u00a0", "\u2028", "=", ":", "\"", "'", "`", "\\", "[", "]", "{", "}", ",", "%YAML 1.1\n",
	"[sops]\n", "[DEFAULT]\n", "sops_mac=x\n", "sops:\n", "a: b\n", "a = b\n", "a=b\n", "a=\n", "a: \"\"\n", "\"a\": \"\",", "\"a\": null,", "a: null\n", "a: ~\n", "b:\n    - \n", "0x10", "1e3", "NaN", ".inf", "null", "~", "\xff", "\x00",
	"mac_only_encrypted: true\n", "    mac_only_encrypted: true\n", "    MAC_only_encrypted: true\n", "sops_mac_only_encrypted=true\n", "mac_only_encrypted = true\n", "\"mac_only_encrypted\": true,", "\"Mac\": \"\",",
	"    shamir_threshold: 0\n", "    shamir_threshold: 2\n", "sops_shamir_threshold=2\n", "    key_groups: []\n", "    kms: []\n", "    pgp: []\n", "    encrypted_regex: .*\n", "    unencrypted_suffix: d\n",
	"# ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\n", "#ENC[\n", "; note\n", "# note\n", " # note", "//",
}

// mutated is a text with one change.
func mutated(r *rand.Rand, s string) string {
	at := func() int { return r.Intn(len(s) + 1) }
	line := func() (from, to int) {
		i := at()
		from = strings.LastIndexByte(s[:i], '\n') + 1
		to = len(s)
		if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
			to = i + n + 1
		}
		return from, to
	}
	pick := func(p *regexp.Regexp) (from, to int, ok bool) {
		all := p.FindAllStringIndex(s, -1)
		if len(all) == 0 {
			return 0, 0, false
		}
		one := all[r.Intn(len(all))]
		return one[0], one[1], true
	}
	put := func(from, to int, text string) string { return s[:from] + text + s[to:] }
	if s == "" {
		return "a"
	}
	switch r.Intn(14) {
	case 0: // one bit
		i := r.Intn(len(s))
		return put(i, i+1, string([]byte{s[i] ^ 1<<r.Intn(7)}))
	case 1: // one letter of base64 for another
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
		i := r.Intn(len(s))
		return put(i, i+1, string(letters[r.Intn(len(letters))]))
	case 2: // a line away
		from, to := line()
		return put(from, to, "")
	case 3: // a line twice, or somewhere else too
		from, to := line()
		i, _ := line()
		return put(i, i, s[from:to])
	case 4, 5: // a token at the beginning of a line, or anywhere
		token := tokens[r.Intn(len(tokens))]
		i, _ := line()
		if r.Intn(2) == 0 {
			i = at()
		}
		return put(i, i, token)
	case 6: // two values for each other
		a, b, ok := pick(aSealedValue)
		c, d, _ := pick(aSealedValue)
		if ok && b <= c {
			return s[:a] + s[c:d] + s[b:c] + s[a:b] + s[d:]
		}
		return s
	case 7: // another type
		if a, b, ok := pick(aLabel); ok {
			return put(a, b, "type:"+[]string{"str", "int", "float", "bool", "bytes", "time", "comment", "none"}[r.Intn(8)]+"]")
		}
		return s
	case 8, 9: // other spaces
		if a, b, ok := pick(aSpace); ok {
			return put(a, b, []string{" ", "  ", "\t", "", strings.Repeat(" ", b-a+4)}[r.Intn(5)])
		}
		return s
	case 10: // a value in clear, or empty
		if a, b, ok := pick(aSealedValue); ok {
			return put(a, b, []string{"", "1", "true", "clear", "null", "[" + s[a:b] + "]"}[r.Intn(6)])
		}
		return s
	case 11: // another name
		if a, b, ok := pick(aName); ok {
			name := s[a:b]
			return put(a, b, []string{strings.ToUpper(name), strings.Replace(name, "_unencrypted", "", 1), "x" + name, strings.ToLower(name)}[r.Intn(4)])
		}
		return s
	case 12: // another number
		if a, b, ok := pick(aNumber); ok {
			return put(a, b, []string{"0", "1", "00", "3", fmt.Sprint(r.Int63()), "-1", "1.0", "0x1"}[r.Intn(8)])
		}
		return s
	}
	i, j := at(), at() // a piece away
	return put(min(i, j), min(max(i, j), min(i, j)+1+r.Intn(80), len(s)), "")
}
