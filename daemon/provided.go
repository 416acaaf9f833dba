package daemon

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// asked are the providers of the host; nil where it has none.
func (s *secretFiles) asked() *providers {
	if s == nil {
		return nil
	}
	return s.providers
}

// Provided is what is known of a value that an app asks a provider for.
func (o openerFor) Provided(r manifest.SecretRef) (manifest.ProvidedValue, *ring.Refusal) {
	of, refusal := o.providers.checked(r.App, r.Ref)
	if refusal != nil {
		return manifest.ProvidedValue{}, refusal
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "not asked %q %q %q", r.App, r.Name, r.Ref))
	out := manifest.ProvidedValue{MAC: ring.NotOpened(hex.EncodeToString(sum[:16]))}
	if o.providers == nil {
		return out, nil
	}
	value, known, waits := o.providers.value(of, !o.closed)
	if known {
		out.MAC = ring.SealMAC(o.host, r.App, r.Ref, []string{r.Name}, value)
	}
	if o.closed { // nobody verified who asks: it is told apart, and not handed out
		return out, nil
	}
	out.Plain, out.Known, out.Waits = value, known, waits
	if known && value != "" {
		o.rememberProvided(r, of, out)
	}
	return out, nil
}

// rememberProvided notes a value that has to be kept before a plan with it is in force. Of
// one that may not be kept only its MAC is.
func (o openerFor) rememberProvided(r manifest.SecretRef, of askedFor, v manifest.ProvidedValue) {
	if o.kept == nil || o.opened == nil {
		return
	}
	e := cipherEntry{From: ring.FromProvider, Source: r.Source, App: r.App, File: r.Ref, By: o.providers.saidBy(of), MACs: map[string][]string{r.Name: {v.MAC}}}
	for _, newest := range o.kept.provided(r.Ref, r.App) { // of the variable: another one may have the same reference
		if _, is := newest.MACs[r.Name]; !is || newest.Source != r.Source {
			continue
		}
		if newest.has(ring.Sealed{App: r.App, File: r.Ref, Name: r.Name, MAC: v.MAC}) && (newest.By == "" || newest.By == e.By) {
			return
		}
		break
	}
	var body []byte
	if o.providers.of[of.provider].Keep == config.KeepSealed {
		var err error
		if body, err = sealProvided(o.host, e, v.Plain); err != nil {
			return // the plan that needs it is not kept either, which is told
		}
		e.Sum = sumOf(body)
	}
	*o.opened = append(*o.opened, openedFile{e, body})
}

// sealProvided is a value as it is kept on this host: encrypted, and bound to where it
// belongs.
func sealProvided(host []byte, e cipherEntry, value string) ([]byte, error) {
	aead, err := providedCipher(host)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, []byte(value), e.bound()), nil
}

// openProvided is the value in what sealProvided made.
func openProvided(host []byte, e cipherEntry, body []byte) (string, error) {
	aead, err := providedCipher(host)
	if err != nil {
		return "", err
	}
	if len(body) < aead.NonceSize() {
		return "", errors.New("cannot open a kept value: it is cut off")
	}
	plain, err := aead.Open(nil, body[:aead.NonceSize()], body[aead.NonceSize():], e.bound())
	if err != nil {
		return "", errors.New("cannot open a kept value: it was changed, or the key of the host is another one")
	}
	return string(plain), nil
}

func providedCipher(host []byte) (cipher.AEAD, error) {
	key, err := providerKey(host)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// bound is what a kept value belongs to.
func (e *cipherEntry) bound() []byte { return fmt.Appendf(nil, "%q %q %q", e.App, e.File, e.MACs) }

// provided are the kept values of a reference for an app, or for any app where app is "", the
// newest first.
func (s *cipherStore) provided(ref, app string) []cipherEntry {
	return s.find(func(e *cipherEntry) bool {
		return e.From == ring.FromProvider && e.File == ref && (app == "" || e.App == app)
	})
}

// learned is the value of a reference that an earlier process was told.
func (s *secretFiles) learned(of askedFor) (learnedValue, bool) {
	for _, e := range s.kept.provided(of.String(), of.app) {
		if values, err := s.valuesIn(e); err == nil {
			for _, all := range values {
				return learnedValue{all[0], e.By, e.At}, true
			}
		}
	}
	return learnedValue{}, false
}

// valuesIn are the values of an entry, by their names. One of a provider that is not kept is
// asked for again.
func (s *secretFiles) valuesIn(e cipherEntry) (map[string][]string, error) {
	if e.From != ring.FromProvider {
		opened, err := s.openKept(e)
		if err != nil {
			return nil, err
		}
		return valuesOf(opened.Plain, s.interpolation), nil
	}
	if e.Sum == "" {
		return nil, errNotKeptHere
	}
	body, err := s.kept.read(e.Sum)
	if err != nil {
		return nil, err
	}
	value, err := openProvided(s.host, e, body)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for name := range e.MACs {
		out[name] = []string{value}
	}
	return out, nil
}

// errNotKeptHere is of a value whose provider is asked at each create.
var errNotKeptHere = errors.New("cannot open a value that is not kept: its provider has keep: none")

// askedAgain is the value of a provider that has keep: none.
func (s *secretFiles) askedAgain(v ring.Sealed) (string, error) {
	if s.providers == nil {
		return "", errNotKeptHere
	}
	of, r := s.providers.checked(v.App, v.File)
	if r != nil {
		return "", errors.New(r.Says)
	}
	value, err := s.providers.askNow(of)
	if err != nil {
		return "", err
	}
	if ring.SealMAC(s.host, v.App, v.File, pathOf(v.Name), value) != v.MAC {
		return "", errors.New("its provider has another value now, which comes with the next look at the source")
	}
	return value, nil
}

// askNow asks a provider at once, for who waits.
func (p *providers) askNow(of askedFor) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(p.of[of.provider].Timeout)+providerPatience)
	defer cancel()
	_, err := p.ask(ctx, of)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.all[of]; a != nil && a.known {
		return a.value, nil
	}
	return "", errors.New("no app asks for it any more")
}

// providerPatience is how long a call may wait for its turn.
const providerPatience = time.Minute

// providedValues adds the value of a provider to those of an app, or its MAC to those that
// are not known.
func (s *secretFiles) providedValues(e cipherEntry, out map[string]string, known, shut map[string]bool) {
	values, err := s.valuesIn(e)
	for name, macs := range e.MACs {
		if errors.Is(err, errNotKeptHere) {
			values, err = s.rememberedValue(e, name)
		}
		for _, mac := range macs {
			if err == nil {
				known[mac] = true
			} else {
				shut[mac] = true
			}
		}
	}
	for name, all := range values {
		for _, value := range all {
			out[value] = name
		}
	}
}

// rememberedValue is one that this process was told and that is kept nowhere else.
func (s *secretFiles) rememberedValue(e cipherEntry, name string) (map[string][]string, error) {
	of, r := s.providers.checked(e.App, e.File)
	if s.providers == nil || r != nil {
		return nil, errNotKeptHere
	}
	value, known, _ := s.providers.value(of, false)
	if !known || ring.SealMAC(s.host, e.App, e.File, pathOf(name), value) != e.MACs[name][0] {
		return nil, errNotKeptHere
	}
	return map[string][]string{name: {value}}, nil
}

// lacksValue reports whether a file of a content has a value that is not known yet.
func lacksValue(c ring.Content) bool {
	for _, f := range c.Files {
		if !f.Sealed {
			continue
		}
		body, err := f.Read()
		if err == nil && slices.ContainsFunc(ring.SealedIn(string(body)), func(s ring.Sealed) bool { return s.From == ring.FromProvider && !s.Opened() }) {
			return true
		}
	}
	return false
}

// refreshSecrets asks the providers of an app's values again, at once. A value that is another
// one is a new version, which rolls as a commit's would.
func (d *Daemon) refreshSecrets(ctx context.Context, p api.Peer, r api.SecretRefreshRequest) ([]api.SecretNow, error) {
	if d.secrets.providers == nil {
		return nil, api.Conflicting("secrets.providers of its configuration names programs that know values", "cannot refresh: this host has no provider of secrets")
	}
	all := d.secrets.providers.ofApp(r.App)
	if st, _ := d.loop.Status(); len(all) == 0 {
		if _, here := api.Narrow(&st, r.App); !here {
			return nil, d.noSuch(r.App, "")
		}
		return nil, api.NotFound("x-gitring.secrets of a Compose file names values of providers", "cannot refresh: app %s asks no provider for a value", r.App)
	}
	at := time.Now().UTC()
	if err := d.store.Record(ctx, nil, []ring.Event{{At: at, Kind: ring.RefreshAsked, App: r.App, Actor: p.Actor(), Reason: strings.TrimSuffix("values of providers: "+r.Reason, ": ")}}); err != nil {
		return nil, fmt.Errorf("cannot note who asked: %w", err)
	}
	out := make([]api.SecretNow, len(all))
	var asks sync.WaitGroup
	for i, of := range all {
		asks.Go(func() {
			out[i].Ref = of.String()
			var err error
			if out[i].Changed, err = d.secrets.providers.ask(ctx, of); err != nil {
				out[i].Error = err.Error()
			}
		})
	}
	asks.Wait()
	return out, nil
}

// providedTo are the newest values that providers said for an app, by the names of variables,
// of the references that it has.
func (s *secretFiles) providedTo(app *ring.App, refs []string) (map[string]string, error) {
	if s == nil || s.kept == nil {
		return nil, nil
	}
	out := map[string]string{}
	for _, ref := range refs {
		for _, e := range s.kept.provided(ref, app.Name) {
			for name, macs := range e.MACs {
				if _, has := out[name]; has || e.Source != app.Source {
					continue // of an older value
				}
				value, err := s.value(ring.Sealed{From: ring.FromProvider, App: app.Name, File: ref, Name: name, MAC: macs[0]})
				if err != nil {
					return nil, fmt.Errorf("cannot leave: %w", err)
				}
				out[name] = value
			}
		}
	}
	return out, nil
}
