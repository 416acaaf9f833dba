package manifest

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// SecretRef is a value that an app asks a provider of the host for.
type SecretRef struct {
	Source, App string
	Name        string // of the variable
	Ref         string // as written: provider:reference
}

// ProvidedValue is what is known of one. A value that is not Known has something in MAC that
// is no MAC of a value.
type ProvidedValue struct {
	Plain, MAC string
	Known      bool
	// Stand is what another host's plan says of it; nil where nobody says anything.
	Stand *SealedValue
	// Waits is why an app cannot be carried out before the value is known; "" where nobody
	// asks the provider here.
	Waits string
}

// secretsKey has, at the top of a Compose file, variables whose values a provider knows.
const secretsKey = "secrets"

// mostProvided is how many values of providers an app may name: each is a call on the host.
const mostProvided = 128

// mostProvidedOfAll is how many the apps of one commit may name together.
const mostProvidedOfAll = 1024

// boundAsks refuses apps that name more values of providers than are left for them, and has
// nobody asked for these. Apps that have their names already come first, and of the others
// those that name few: so who may write some folders cannot keep the apps of others waiting.
func boundAsks(outcomes []outcome, names map[string]string) {
	var asking []int
	for i, o := range outcomes {
		if len(o.asks) > 0 {
			asking = append(asking, i)
		}
	}
	has := func(o *outcome) int {
		if folder, ok := names[o.name]; ok && folder == path.Clean(o.path) {
			return 0
		}
		return 1
	}
	slices.SortFunc(asking, func(i, j int) int {
		a, b := &outcomes[i], &outcomes[j]
		return cmp.Or(cmp.Compare(has(a), has(b)), cmp.Compare(len(a.asks), len(b.asks)), cmp.Compare(a.path, b.path))
	})
	left := mostProvidedOfAll
	for _, i := range asking {
		o := &outcomes[i]
		if len(o.asks) <= left {
			left -= len(o.asks)
			continue
		}
		o.faults.add(ring.BadValue, o.at, "put several values into one reference, or give some apps a source of their own",
			"the apps of this commit name more than %d values of providers in x-gitring.secrets, and app %s comes after the others", mostProvidedOfAll, o.name)
		o.asks, o.awaits = nil, nil
	}
}

// variableName is what Compose takes as one.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// providedVariables sets the variables of x-gitring.secrets of the app's own files; the later
// file wins.
func (a *appReader) providedVariables(v *variables) {
	for _, f := range a.mains {
		top := f.root.get(extensionKey)
		for _, p := range top.mappingPairs() {
			if p.key != secretsKey {
				a.faults.add(ring.UnknownKey, p.place, "move it into a service or a volume", "x-gitring.%s stands at the top of the file, where only secrets is read", p.key)
			}
		}
		said := top.get(secretsKey)
		if top != nil && top.kind != mapping || said != nil && !said.null() && said.kind != mapping {
			a.faults.add(ring.BadValue, top.place, "x-gitring: {secrets: {DB_PASSWORD: \"vault:secret/shop/db\"}}", "x-gitring.secrets has to have names with references to a provider")
			continue
		}
		for _, p := range said.mappingPairs() {
			a.providedVariable(v, p)
		}
	}
}

// noteShadowed tells of values that are asked for and not used: who moved a value into a vault
// and left it in the env folder would look for its change in vain.
func (a *appReader) noteShadowed(v, host *variables) {
	for _, name := range sortedKeys(host.values) {
		if s, is := secretIn(v.values[name].sealed); is && s.From == ring.FromProvider {
			a.noteOnce(name + " is the value of the host's env folder, which wins over " + s.File)
		}
	}
}

func (a *appReader) providedVariable(v *variables, p pair) {
	at := p.place
	if !variableName.MatchString(p.key) {
		a.faults.add(ring.BadValue, at, "name it with letters, digits and _", "x-gitring.secrets.%s is no name of a variable", head(p.key))
		return
	}
	if p.val.null() || p.val.kind != scalar || !strings.Contains(p.val.text, ":") {
		a.faults.add(ring.BadValue, at, "write provider:reference, such as vault:secret/"+a.name+"/db", "x-gitring.secrets.%s has no reference to a provider", p.key)
		v.lose(p.key, at)
		return
	}
	if a.nameLost { // whose it is cannot be judged
		v.lose(p.key, at)
		return
	}
	if len(a.asks) == mostProvided {
		if !a.asksMore {
			a.faults.add(ring.BadValue, at, "put several values into one reference, or split the app", "x-gitring.secrets names more than %d values", mostProvided)
		}
		a.asksMore = true
		v.lose(p.key, at)
		return
	}
	a.asks = append(a.asks, p.val.text)
	of, r := a.settings.Secrets.Provided(SecretRef{Source: a.settings.Source, App: a.name, Name: p.key, Ref: p.val.text})
	if r != nil {
		a.faults.put(&fault{code: r.Code, place: at, says: "x-gitring.secrets." + p.key + ": " + r.Says, hint: r.Hint})
		v.lose(p.key, at)
		return
	}
	if of.Stand != nil {
		of.MAC, of.Plain, of.Known = of.Stand.MAC, of.Stand.stand(), true
	}
	s := ring.Sealed{From: ring.FromProvider, App: a.name, File: p.val.text, Name: p.key, MAC: of.MAC}
	switch {
	case of.Known && of.Plain == "":
		v.set(p.key, value{}, at)
		return
	case of.Known:
		a.hidden[hiddenValue{p.key, of.Plain}] = true
		a.plain[s] = of.Plain
	case of.Waits != "":
		a.awaits = append(a.awaits, of.Waits)
	default:
		a.noteOnce(p.key + " of " + p.val.text + ": not asked for here")
	}
	plain := of.Plain
	if !of.Known {
		plain = closedValue
	}
	v.set(p.key, value{plain: plain, sealed: s.String()}, at)
}
