package show

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// A plan has no sentence, field or image twice, however much of it changes.
func TestAPlanSaysEachReasonOnce(t *testing.T) {
	rolled := func(service string) ring.ServiceChange {
		return ring.ServiceChange{
			Service: service, Class: ring.ChangeRoll, Reason: "image shop:1 -> shop:2, to be resolved, env LEVEL, replicas 2 -> 3; backup runs first",
			Fields: []ring.FieldChange{
				{Field: "image shop:1 -> shop:2, to be resolved", Class: ring.ChangeRoll},
				{Field: "env LEVEL", Class: ring.ChangeRoll, Values: &ring.ValueChange{From: "info", To: "debug"}},
				{Field: "replicas 2 -> 3", Class: ring.ChangeInPlace},
			},
		}
	}
	joined := ring.ServiceChange{
		Service: "vpn", Class: ring.ChangeRecreate, Reason: "network_mode, image vpn:1 to be resolved",
		Fields: []ring.FieldChange{{Field: "network_mode", Class: ring.ChangeRecreate}, {Field: "network_mode", Class: ring.ChangeRecreate}, {Field: "image vpn:1 to be resolved", Class: ring.ChangeRecreate}},
	}
	s := screen.New(false, 0)
	Changes(s, &ring.Changes{Source: "prod", Apps: []ring.AppChanges{{App: "shop", Services: []ring.ServiceChange{rolled("web"), rolled("worker"), joined}}}}, time.Now())
	says := s.String()
	require.Equal(t, 1, strings.Count(says, "to be resolved"), says)
	require.Contains(t, says, "\n  to be resolved: shop:2, vpn:1; what the tag means now is looked up first\n")
	for _, service := range []string{"web   ", "worker"} {
		require.Contains(t, says, "shop/"+service+`  roll      none  image shop:1 -> shop:2, env LEVEL "info" -> "debug", replicas 2 -> 3 (in place); backup runs first`)
	}
	require.Contains(t, says, "shop/vpn     recreate  -     network_mode\n", "the image is as before")
	s = screen.New(false, 0)
	alone := ring.ServiceChange{Service: "db", Class: ring.ChangeRoll, Reason: "image db:1 to be resolved", Fields: []ring.FieldChange{{Field: "image db:1 to be resolved", Class: ring.ChangeRoll}}}
	Changes(s, &ring.Changes{Source: "prod", Apps: []ring.AppChanges{{App: "shop", Services: []ring.ServiceChange{alone}}}}, time.Now())
	require.Contains(t, s.String(), "none  image db:1\n", "nothing else says why")
	for _, service := range []string{"shop/web", "shop/worker", "shop/vpn"} {
		require.Equal(t, 1, strings.Count(says, service+" "), "a row, and nothing below it: %s", says)
	}
}

// Who wrote two services is not told of three: a front stands before one, and status has no row of it.
func TestAPlanCountsServicesWithoutTheirFronts(t *testing.T) {
	c := &ring.Changes{Source: "prod", Commit: "0a85b19e", Apps: []ring.AppChanges{{App: "shop", Services: []ring.ServiceChange{
		{Service: "other", Class: ring.ChangeNone}, {Service: "web", Class: ring.ChangeNone}, {Service: "web-front", FrontOf: "web", Class: ring.ChangeNone},
	}}}}
	s := screen.New(false, 80)
	Plan(s, c, false, time.Now())
	require.Equal(t, "prod  nothing to change: 2 services are as 0a85b19 asks\n", s.String())
}
