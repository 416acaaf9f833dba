package api

import (
	"container/list"
	"sync"
	"time"
)

// How many deliveries are remembered, and for how long.
const (
	mostDeliveries = 10_000
	deliveriesFor  = 24 * time.Hour
)

// deliveries remembers the numbers of authentic requests, for the log to say that one
// came again. Nothing depends on it: a replay is one more hint.
type deliveries struct {
	mu    sync.Mutex // guards what follows
	seen  map[string]*list.Element
	order list.List // of seenDelivery, the one seen longest ago in front
}

type seenDelivery struct {
	id string
	at time.Time
}

// again remembers id and says that it was seen within a day. The id "" never was.
func (d *deliveries) again(id string, now time.Time) bool {
	if id == "" {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.order.Front(); e != nil; e = d.order.Front() {
		if d.order.Len() <= mostDeliveries && now.Sub(e.Value.(seenDelivery).at) < deliveriesFor {
			break
		}
		d.drop(e)
	}
	e, known := d.seen[id]
	if known {
		d.drop(e)
	}
	if d.seen == nil {
		d.seen = map[string]*list.Element{}
	}
	d.seen[id] = d.order.PushBack(seenDelivery{id, now})
	return known
}

func (d *deliveries) drop(e *list.Element) {
	delete(d.seen, e.Value.(seenDelivery).id)
	d.order.Remove(e)
}
