package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

func TestWhatIsNotHereIsNamedWithWhatWasMeant(t *testing.T) {
	st := &ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{
		{Name: "shop", Services: []ring.ServiceStatus{{Name: "web"}, {Name: "db"}}}, {Name: "metrics"},
	}}}}
	for target, want := range map[string][2]string{
		"shpo":     {`no app "shpo" on edge-1`, `did you mean "shop"?`},
		"shpo/web": {`no app "shpo" on edge-1`, `did you mean "shop"?`},
		"shop/wbe": {`no service "shop/wbe" on edge-1`, `did you mean "shop/web"?`},
		"shop/zzz": {`no service "shop/zzz" on edge-1`, "gitring status lists what is here"},
		"other":    {`no app "other" on edge-1`, "gitring status lists what is here"},
	} {
		says, hint := api.Missing(st, target)
		require.Equal(t, want, [2]string{says, hint}, target)
	}
}
