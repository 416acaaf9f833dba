package runtime

import (
	"context"
	"sync"

	"github.com/distribution/reference"

	"github.com/gitring/gitring/ring"
)

// Asker resolves images as steps do, and asks no registry twice for one name.
// It changes nothing. Its methods may be called from many goroutines.
type Asker struct {
	d *Docker

	mu   sync.Mutex
	said map[string]func() (answer, error) // guarded by mu; by name
	tags *TagReader                        // guarded by mu; nil until the first one asks
}

// Asker has not asked anything yet.
func (d *Docker) Asker() *Asker {
	return &Asker{d: d, said: map[string]func() (answer, error){}}
}

// Resolve is what carrying out a resolve would pin now. An error that holds a
// *ring.Refusal is a no; any other is no answer.
func (k *Asker) Resolve(ctx context.Context, a ring.Action) (ring.Pin, error) {
	e, err := k.d.ready(ctx)
	if err != nil {
		return ring.Pin{}, err
	}
	done, err := k.d.resolve(ctx, e, a, k.ask)
	return done.Pin, err
}

// Tags are those of the repository of an image, asked of its registry as the engine would.
func (k *Asker) Tags(ctx context.Context, image string) ([]string, error) {
	e, err := k.d.ready(ctx)
	if err != nil {
		return nil, err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return nil, fault("cannot ask the engine for its registries", "", err)
	}
	k.mu.Lock()
	if k.tags == nil {
		k.tags = &TagReader{DockerConfig: k.d.opts.DockerConfig, Helpers: k.d.opts.Helpers, certs: k.d.certs}
	}
	reader := k.tags
	reader.conf = info.RegistryConfig
	if name, err := reference.ParseNormalizedNamed(image); err == nil {
		reader.conf = registriesOf(e, reader.conf, reference.Domain(name))
	}
	k.mu.Unlock()
	return reader.Tags(ctx, image)
}

func (k *Asker) ask(ctx context.Context, e engine, name reference.Named) (answer, error) {
	k.mu.Lock()
	once := k.said[name.String()]
	if once == nil {
		once = sync.OnceValues(func() (answer, error) { return k.d.askRegistry(ctx, e, name) })
		k.said[name.String()] = once
	}
	k.mu.Unlock()
	return once()
}
