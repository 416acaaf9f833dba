package manifest

import (
	"testing"
)

// Whatever two files include and extend of each other, Read ends, and what it
// gives is whole or refused with a place.
func FuzzUnfold(f *testing.F) {
	for _, s := range [][2]string{
		{"include: [inc.yaml]\nservices: {web: {image: a, extends: x}}\n", "services: {x: {image: b, volumes: ['./a:/a']}}\n"},
		{"include: [{path: [inc.yaml, inc.yaml], project_directory: sub, env_file: [e.env]}]\n", "include: [compose.yaml]\n"},
		{"services: {web: {extends: {file: inc.yaml, service: x}}}\n", "services: {x: {extends: {file: compose.yaml, service: web}}}\n"},
		{"services: {web: {image: a, secrets: [{source: s, target: t}], configs: [c]}}\nsecrets: {s: {file: inc.yaml}}\nconfigs: {c: {content: $A}}\n", "x"},
		{"services: {web: {image: a, label_file: inc.yaml, env_file: [{path: inc.yaml, required: false}]}}\n", "A=$A\n"},
		{"services: {web: &w {image: a, extends: {service: v}}, v: *w}\n", ""},
		{"include: [inc.yaml]\nservices: {web: }\n", "services: {web: [1]}\nnetworks: 3\n"},
		{"include: {a: b}\nservices: {web: {image: a, extends: [1], env_file: {a: b}, label_file: {c: d}, volumes: 1}}\n", "a"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, compose, inc string) {
		s := withHost(map[string]string{".env": "A=hidden\n", "e.env": "B=hidden\n", "raw": inc})
		s.Limits.Nodes = 5_000
		s.Env["app"] = s.Env["web"]
		plan, contents := Read(repo(map[string]string{"app/compose.yaml": compose, "app/inc.yaml": inc, "app/sub/inc.yaml": inc}), s)
		for name, r := range plan.Refused {
			if r.Code == "" || r.Says == "" || r.File == "" || r.App != name {
				t.Errorf("a refusal without its place: %+v", r)
			}
		}
		for _, a := range plan.Apps {
			checkApp(t, a, contents)
		}
	})
}
