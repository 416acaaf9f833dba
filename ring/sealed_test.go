package ring

import (
	"errors"
	"fmt"
	"strings"
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

func TestASealedValueSaysWhereItComesFrom(t *testing.T) {
	for from, word := range map[SealedFrom]string{FromEnvFolder: "env", FromSOPS: "sops", FromAge: "age", FromProvider: "exec"} {
		s := Sealed{From: from, App: "a", File: "f", Name: "db.password", MAC: "00ff"}
		text := s.String()
		if text != SealMark+word+":a:f:db.password:00ff"+SealMark {
			t.Fatalf("%q", text)
		}
		if _, err := Open(text, func(o Sealed) (string, error) {
			if o != s {
				t.Fatalf("opened %+v", o)
			}
			return "", nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"\x1bfile:a:f:n:00\x1b", "\x1b:a:f:n:00\x1b", "\x1bsops:a:f:n\x1b", "\x1bSOPS:a:f:n:00\x1b"} {
		if got, err := Open(text, func(Sealed) (string, error) { return "value", nil }); err == nil {
			t.Fatalf("%q was opened to %q", text, got)
		}
	}
}

// The numbers are of Python's hmac over each part with its length before it, eight bytes,
// the highest first.
func TestTheMACOfASealedValueIsFrozen(t *testing.T) {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	for _, tt := range []struct {
		file  string
		path  []string
		value string
		want  string
	}{
		{"db.enc.env", []string{"PASSWORD"}, "hunter2", "98e0a92529a6468205b6917cef131966"},
		{"secrets.enc.yaml", []string{"db", "password"}, "hunter2", "498e11013d858b2ececf8d849975060f"},
		{"tls.key.age", nil, "-----BEGIN", "c66647920422ec397a1d2be3b4264a31"},
	} {
		if got := SealMAC(key, "shop", tt.file, tt.path, tt.value); got != tt.want {
			t.Errorf("%s: %s", tt.file, got)
		}
	}
}

func TestNoLetterMovesFromANameIntoAValue(t *testing.T) {
	seen := map[string]string{}
	// Every way to cut one text into an app, a file, a path and a value.
	const text = "abcabc"
	for i := range len(text) + 1 {
		for j := i; j <= len(text); j++ {
			for k := j; k <= len(text); k++ {
				for _, path := range [][]string{{text[j:k]}, {text[j:k], ""}, {"", text[j:k]}, strings.Split(text[j:k], "")} {
					parts := fmt.Sprintf("%q %q %q %q", text[:i], text[i:j], path, text[k:])
					mac := SealMAC([]byte("key"), text[:i], text[i:j], path, text[k:])
					if was, twice := seen[mac]; twice && was != parts {
						t.Fatalf("%s and %s have one MAC", was, parts)
					}
					seen[mac] = parts
				}
			}
		}
	}
	if len(seen) < 200 {
		t.Fatalf("%d lists of parts", len(seen))
	}
	if SealMAC([]byte("k"), "a", "b", nil, "c") == SealMAC([]byte("l"), "a", "b", nil, "c") {
		t.Fatal("the key counts for nothing")
	}
}
