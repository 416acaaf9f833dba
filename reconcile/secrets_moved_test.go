package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAPlanSaysWhichSecretChangedAndNothingOfIt(t *testing.T) {
	sealed := func(from ring.SealedFrom, name, mac string) string {
		return ring.Sealed{From: from, App: "shop", File: "shop/db.enc.env", Name: name, MAC: mac}.String()
	}
	pw := func(mac string) string { return sealed(ring.FromSOPS, "PW", mac) }
	for name, tt := range map[string]struct {
		from, to map[string]string
		want     []string
	}{
		"a new value":                {map[string]string{"A": pw("1")}, map[string]string{"A": pw("2")}, []string{"secret PW of shop/db.enc.env changed"}},
		"one secret in two":          {map[string]string{"A": pw("1"), "B": "x" + pw("1")}, map[string]string{"A": pw("2"), "B": "x" + pw("2")}, []string{"secret PW of shop/db.enc.env changed"}},
		"two secrets in one":         {map[string]string{"A": pw("1") + sealed(ring.FromAge, "", "1")}, map[string]string{"A": pw("2") + sealed(ring.FromAge, "", "2")}, []string{"secret PW of shop/db.enc.env changed", "secret shop/db.enc.env changed"}},
		"one that nobody opened":     {map[string]string{"A": pw("1")}, map[string]string{"A": pw(ring.NotOpened("2"))}, []string{"shop/db.enc.env changed: may roll"}},
		"other text around":          {map[string]string{"A": pw("1")}, map[string]string{"A": "x" + pw("2")}, []string{"env A"}},
		"another secret":             {map[string]string{"A": pw("1")}, map[string]string{"A": sealed(ring.FromSOPS, "OTHER", "1")}, []string{"env A"}},
		"it was in clear":            {map[string]string{"A": "x"}, map[string]string{"A": pw("1")}, []string{"env A"}},
		"it is in clear":             {map[string]string{"A": pw("1")}, map[string]string{"A": "x"}, []string{"env A"}},
		"new":                        {nil, map[string]string{"A": pw("1")}, []string{"env A"}},
		"of the host's folder":       {map[string]string{"A": sealed(ring.FromEnvFolder, "PW", "1")}, map[string]string{"A": sealed(ring.FromEnvFolder, "PW", "2")}, []string{"the host's PW in <env.dir>/shop/shop/db.enc.env changed"}},
		"nothing of it":              {map[string]string{"A": pw("1")}, map[string]string{"A": pw("1")}, nil},
		"beside what is no secret's": {map[string]string{"A": pw("1"), "B": "1"}, map[string]string{"A": pw("2"), "B": "2"}, []string{"secret PW of shop/db.enc.env changed", "env B"}},
	} {
		require.Equal(t, tt.want, keysMoved("env", tt.from, tt.to), name)
	}
	// So does a change of what is no variable and no label.
	for name, spec := range map[string]func(pw string) ring.Spec{
		"command":    func(pw string) ring.Spec { return ring.Spec{Command: []string{"run", "--password=" + pw}} },
		"entrypoint": func(pw string) ring.Spec { return ring.Spec{EntrypointText: "run --password=" + pw} },
		"healthcheck": func(pw string) ring.Spec {
			return ring.Spec{Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "ask", pw}}}
		},
		"logging": func(pw string) ring.Spec {
			return ring.Spec{Logging: &ring.Logging{Options: map[string]string{"token": pw}}}
		},
		"post_start": func(pw string) ring.Spec { return ring.Spec{PostStart: []ring.Hook{{Command: []string{"run", pw}}}} },
	} {
		app := &ring.App{Name: "shop"}
		before, after, other := ring.Service{Spec: spec(pw("1"))}, ring.Service{Spec: spec(pw("2"))}, ring.Service{Spec: spec("x" + pw("2"))}
		require.Equal(t, "secret PW of shop/db.enc.env changed", Differs(app, &before, app, &after), name)
		require.NotContains(t, Differs(app, &before, app, &other), "secret", name)
	}
}
