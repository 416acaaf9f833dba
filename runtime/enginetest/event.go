package enginetest

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// listener is one reader of events. What it does not read in time is lost:
// events are hints.
type listener struct {
	filter filters.Args
	out    chan events.Message
	errs   chan error
	once   sync.Once
}

func (l *listener) end(err error) { l.once.Do(func() { l.errs <- err }) }

func (l *listener) wants(e events.Message) bool {
	return l.filter.MatchKVList("label", e.Actor.Attributes) &&
		l.filter.ExactMatch("type", string(e.Type)) &&
		(l.filter.ExactMatch("event", string(e.Action)) || l.filter.FuzzyMatch("event", string(e.Action)))
}

// emit tells every listener; with the lock held.
func (m *Client) emit(action string, c *fakeContainer) { m.emitWith(action, c, nil) }

// emitWith tells more than the labels of the container.
func (m *Client) emitWith(action string, c *fakeContainer, more map[string]string) {
	e := events.Message{
		Type: events.ContainerEventType, Action: events.Action(action), TimeNano: m.now().UnixNano(),
		Actor: events.Actor{ID: c.c.ID, Attributes: map[string]string{}},
	}
	maps.Copy(e.Actor.Attributes, c.c.Config.Labels)
	e.Actor.Attributes["name"] = strings.TrimPrefix(c.c.Name, "/")
	maps.Copy(e.Actor.Attributes, more)
	m.tell(e)
}

// tell is an event, as all who listen hear it; with the lock held.
func (m *Client) tell(e events.Message) {
	for _, l := range m.listeners {
		if !l.wants(e) {
			continue
		}
		select {
		case l.out <- e:
		default:
		}
	}
}

func (m *Client) Events(ctx context.Context, o events.ListOptions) (<-chan events.Message, <-chan error) {
	l := &listener{filter: o.Filters, out: make(chan events.Message, 1024), errs: make(chan error, 1)}
	err := m.do(ctx, "Events", func() error {
		m.listeners = append(m.listeners, l)
		return nil
	})
	if err != nil {
		l.end(err)
		return l.out, l.errs
	}
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		for i, x := range m.listeners {
			if x == l {
				m.listeners = append(m.listeners[:i:i], m.listeners[i+1:]...)
				break
			}
		}
		m.mu.Unlock()
		l.end(ctx.Err())
	})
	return l.out, l.errs
}
