package secrets

import (
	"testing"
)

// FuzzRead holds the reader to never end the program, and to keep to its limits, whatever
// it reads.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"a: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\nsops:\n    mac: x\n    lastmodified: \"2026-01-02T03:04:05Z\"\n    version: 3.13.3\n    age: []\n",
		`{"a": 1, "sops": {"mac": "x", "lastmodified": "2026-01-02T03:04:05Z", "version": "3.13.3", "age": [{"recipient": "a", "enc": "b"}]}}`,
		`{"data": "x", "sops": {"mac": "x", "lastmodified": "2026-01-02T03:04:05Z", "version": "3.13.3"}}`,
		"A=b\nsops_mac=x\nsops_lastmodified=2026-01-02T03:04:05Z\nsops_version=3.13.3\nsops_age__list_0__map_enc=x\nsops_age__list_0__map_recipient=y\n",
		"[a]\nb = c\n[sops]\nmac = x\nlastmodified = 2026-01-02T03:04:05Z\nversion = 3.13.3\npgp__list_0__map_fp = y\n",
		"age-encryption.org/v1\n-> X25519 abc\nAAAA\n--- mac\n",
		"-----BEGIN AGE ENCRYPTED FILE-----\nYQ==\n-----END AGE ENCRYPTED FILE-----\n",
	} {
		f.Add([]byte(text))
	}
	keys := Keys{}
	lines, err := newAgeKeys()
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range lines {
		k, err := ParseAgeKeys("key", []byte(line))
		if err != nil {
			f.Fatal(err)
		}
		keys = append(keys, k...)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		form, is := FormOf(body)
		file, err := Read(body)
		switch {
		case err != nil:
			requireCodeOf(t, err)
			return
		case !is || file.Form != form:
			t.Fatalf("%q was read as %s", body, file.Form)
		}
		if len(file.Names()) > maxValues {
			t.Fatal("more names than there may be")
		}
		if opened, err := file.Open(keys); err == nil {
			t.Fatalf("opened without the key that it is for: %q", opened.Plain)
		}
	})
}
