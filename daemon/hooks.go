package daemon

import (
	"sync"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/doctor"
)

// hooksCame are the webhooks that came since the daemon began, by source. The zero value is of
// none.
type hooksCame struct {
	mu  sync.Mutex // guards all
	all map[string]doctor.Webhook
}

func (h *hooksCame) came(source string, taken bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]doctor.Webhook{}
	}
	w := h.all[source]
	if taken {
		w.Taken = now
	} else {
		w.Refused++
	}
	h.all[source] = w
}

// of are those of the sources whose forge can knock here.
func (h *hooksCame) of(cfg *config.Config) (out []doctor.Webhook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; hears(cfg, s) {
			w := h.all[s.Name]
			w.Source = s.Name
			out = append(out, w)
		}
	}
	return out
}
