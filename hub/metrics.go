package hub

import (
	"context"

	"github.com/gitring/gitring/metrics"
	"github.com/gitring/gitring/ring"
)

const contentType = metrics.ContentType

// scrape is one page. Of a host whose status cannot be read only what the hub itself knows is on it.
func (h *Hub) scrape(context.Context) (string, error) {
	h.scraping.Lock() // one at a time: it reads the status of each host
	defer h.scraping.Unlock()
	now := h.Now()
	var hosts []metrics.HubHost
	for _, s := range h.shownRows() {
		s.mu.Lock()
		one := metrics.HubHost{Host: s.key, Silent: isSilent(now, s.now.Seen), Seen: s.now.Seen, Ahead: s.now.Ahead}
		s.mu.Unlock()
		one.Status = func() *ring.Status {
			if one.Silent {
				return nil
			}
			_, st, err := readKept(s.dir)
			if err != nil {
				return nil
			}
			return st
		}
		hosts = append(hosts, one)
	}
	return metrics.HubText(now, hosts, &h.counts), nil
}
