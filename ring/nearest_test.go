package ring

import "testing"

func TestTheNearestWordIsTheOneThatWasMeant(t *testing.T) {
	keys := []string{"policy", "poll", "sources", "status", "env", "yaml", "table"}
	for word, want := range map[string]string{
		"pol": "poll", "poli": "policy", "souces": "sources", "staus": "status", "statsu": "status", "xml": "", "nev": "env",
		"": "", "q": "", "frobnicate": "", "sourcesss": "sources", "TABLE": "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Meant("x", []string{"a", "b"}); got != "known here: a, b" {
		t.Error(got)
	}
	if got := Meant("x", nil); got != "" {
		t.Error(got)
	}
}

func TestTheNearestWordIsOfferedWhenItIsNear(t *testing.T) {
	verbs := []string{"status", "sync", "approve", "trust"}
	for given, want := range map[string]string{
		"stauts": `did you mean "status"?`, "snyc": `did you mean "sync"?`, "aprove": `did you mean "approve"?`,
		"tru": `did you mean "trust"?`, "zzzzz": "known here: status, sync, approve, trust", "": "known here: status, sync, approve, trust",
	} {
		if got := Meant(given, verbs); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
