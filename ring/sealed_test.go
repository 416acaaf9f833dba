package ring

import (
	"errors"
	"testing"
)

func TestSealedValuesAreOpenedWhereTheyStand(t *testing.T) {
	s := Sealed{App: "a", File: "conf/x y:1.env", Name: "PW", MAC: "00ff"}
	text := "postgres://u:" + s.String() + "@db/" + s.String()
	got, err := Open(text, func(o Sealed) (string, error) {
		if o != s {
			t.Fatalf("opened %+v", o)
		}
		return "p\x1bw", nil
	})
	if err != nil || got != "postgres://u:p\x1bw@db/p\x1bw" {
		t.Fatalf("%q, %v", got, err)
	}
	if got, err := Open("plain", nil); got != "plain" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := Open(text[:len(text)-3], func(Sealed) (string, error) { return "", nil }); err == nil {
		t.Fatal("a cut token was opened")
	}
	want := errors.New("gone")
	if _, err := Open(text, func(Sealed) (string, error) { return "", want }); !errors.Is(err, want) {
		t.Fatal(err)
	}
}
