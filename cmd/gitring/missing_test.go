package main

import (
	"fmt"
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
		"shop/zzz": {`no service "shop/zzz" on edge-1`, "services of shop: shop/web, shop/db"},
		"other":    {`no app "other" on edge-1`, "apps here: shop, metrics"},
		"db":       {`no app "db" on edge-1`, "services of that name: shop/db"},
	} {
		says, hint := api.Missing(st, target)
		require.Equal(t, want, [2]string{says, hint}, target)
	}
}

// A hint with names has as many as a person reads.
func TestAHintNamesTwelveAtMost(t *testing.T) {
	st := &ring.Status{Host: "edge-1"}
	_, hint := api.Missing(st, "other")
	require.Equal(t, "gitring status lists what is here", hint)
	src := ring.SourceStatus{}
	for i := range 15 {
		src.Apps = append(src.Apps, ring.AppStatus{Name: fmt.Sprintf("app%02d", i)})
	}
	st.Sources = []ring.SourceStatus{src}
	_, hint = api.Missing(st, "zzzzzzzz")
	require.Regexp(t, `^apps here: app00, .*app11 and 3 more; gitring status lists all$`, hint)
}
