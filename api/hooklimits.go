package api

import "time"

// HookLimits bound what an address of the world can make the listener for webhooks
// read before anybody is authenticated. A zero field is its default
// (docs/design/trust.md#limits).
type HookLimits struct {
	Body   int64         // bytes of one body; 256 KiB
	Within time.Duration // to read one request; 5 s
	AtOnce int           // requests that are read at one time; 32. Of connections eight times as many
	Rate   int           // requests a second of one address; 10
}

// DefaultHookLimits are the defaults of all of them.
func DefaultHookLimits() HookLimits { return HookLimits{}.withDefaults() }

func (l HookLimits) withDefaults() HookLimits {
	if l.Body <= 0 {
		l.Body = 256 << 10
	}
	if l.Within <= 0 {
		l.Within = 5 * time.Second
	}
	if l.AtOnce <= 0 {
		l.AtOnce = 32
	}
	if l.Rate <= 0 {
		l.Rate = 10
	}
	return l
}
