package manifest

import (
	"sort"
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
)

// met walks the schema as a Compose file could, down to the first key that is
// not carried out, and gives the pattern of every key on the way.
func met(s *shape, pattern string, depth int, out map[string]bool) {
	if depth > 12 {
		return
	}
	for key, sub := range s.known {
		p := join(pattern, key)
		out[p] = true
		if c, ok := classes[p]; ok && (c.code != "" || c.ignored != "") {
			continue
		}
		met(sub, p, depth+1, out)
	}
	for _, n := range s.named {
		met(n.shape, join(pattern, "*"), depth+1, out)
	}
	if s.items != nil {
		met(s.items, join(pattern, "*"), depth+1, out)
	}
}

func TestEveryKeyOfTheSchemaIsClassed(t *testing.T) {
	keys := map[string]bool{}
	met(composeShape(), "", 0, keys)
	if len(keys) < 150 {
		t.Fatalf("only %d keys were met: the schema is not walked", len(keys))
	}
	for p := range keys {
		c, ok := classes[p]
		if !ok {
			t.Errorf("key %s of Compose has no class: it would be refused without a sentence of its own", p)
		}
		if c.code != "" && (c.says == "" || c.hint == "") {
			t.Errorf("key %s is refused without saying why or what to do", p)
		}
	}
	for p := range classes {
		if !keys[p] {
			t.Errorf("class of %s is of no key that Compose knows", p)
		}
	}
}

func TestSchemaKnowsWhatTheTypesKnow(t *testing.T) {
	for _, key := range []string{"services.*.image", "services.*.privileged", "services.*.deploy.update_config.order", "volumes.*.driver_opts", "networks.*.ipam.config.*.subnet"} {
		if _, ok := classes[key]; !ok {
			t.Errorf("no class of %s", key)
		}
	}
}

// plainUse is a value for a key of a service that asks for something.
var plainUse = map[string]string{
	"annotations": "{a: b}", "blkio_config": "{weight: 300}", "build": ".", "cap_add": "[NET_ADMIN]", "cap_drop": "[ALL]",
	"cgroup": "host", "cgroup_parent": "x", "configs": "[a]", "container_name": "web1", "cpu_count": "2", "cpu_percent": "50",
	"cpu_period": "1000", "cpu_quota": "1000", "cpu_rt_period": "1000", "cpu_rt_runtime": "1000", "cpu_shares": "10", "cpus": "0.5",
	"cpuset": "'0'", "credential_spec": "{file: /etc/passwd}", "develop": "{watch: [{path: x, action: sync, target: /x}]}", "device_cgroup_rules": "['c 1:3 mr']",
	"devices": "[/dev/sda]", "dns": "1.1.1.1", "dns_opt": "[a]", "dns_search": "a", "domainname": "a", "extends": "{service: x, file: /etc/passwd}",
	"external_links": "[x]", "gpus": "all", "group_add": "['999']", "ipc": "'container:x'", "isolation": "x", "label_file": "/etc/passwd",
	"links": "[db]", "mac_address": "x", "mem_limit": "1g", "mem_reservation": "1g", "mem_swappiness": "1", "memswap_limit": "1g",
	"models": "[x]", "network_mode": "'container:x'", "oom_kill_disable": "true", "oom_score_adj": "1", "pid": "'container:x'", "pids_limit": "1",
	"platform": "linux/amd64", "post_start": "[{command: x}]", "pre_start": "[{command: x}]", "pre_stop": "[{command: x}]",
	"privileged": "true", "provider": "{type: x}", "pull_refresh_after": "1h", "read_only": "true", "runtime": "x", "secrets": "[a]",
	"security_opt": "['seccomp:unconfined']", "shm_size": "1g", "stdin_open": "true", "storage_opt": "{a: b}", "sysctls": "{a: b}",
	"tty": "true", "ulimits": "{nofile: 1}", "umask": "1", "use_api_socket": "true", "userns_mode": "host", "uts": "host",
	"volumes_from": "['container:x']", "attach": "true",
}

// A key that is not carried out is refused wherever a service has it, by its
// name, on its line, with its code: nothing of it can reach the engine.
func TestEveryKeyThatIsNotCarriedOutIsRefused(t *testing.T) {
	var keys []string
	for p, c := range classes {
		if key, ok := strings.CutPrefix(p, "services.*."); ok && !strings.Contains(key, ".") && c.code != "" {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		value, ok := plainUse[key]
		if !ok {
			t.Errorf("no example of %s", key)
			continue
		}
		image := "image: nginx"
		if key == "build" {
			image = "user: x" // beside an image it is let be
		}
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    " + image + "\n    " + key + ": " + value + "\n"}), settings())
		r := plan.Refused["web"]
		if r == nil || len(plan.Apps) != 0 {
			t.Errorf("%s: %s was not refused", key, value)
			continue
		}
		if want := classes["services.*."+key].code; r.Code != want || r.Line != 4 || r.File != "web/compose.yaml" || !strings.Contains(r.Says, "services.web."+key) {
			t.Errorf("%s is refused as %v", key, r)
		}
	}
	for _, key := range []string{"ipc", "pid", "network_mode", "volumes_from"} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n    " + key + ": " + plainUse[key] + "\n"}), settings())
		if r := plan.Refused["web"]; r == nil || r.Code != ring.PolicyDenied || r.Line != 4 {
			t.Errorf("%s is refused as %v", key, r)
		}
	}
}

// What asks for nothing is no reason to refuse: false, null and empty.
func TestAKeyThatAsksForNothingIsNoFault(t *testing.T) {
	for _, line := range []string{"privileged: false", "use_api_socket: false", "cap_add: []", "devices: []", "read_only: false", "secrets: []", "tty: false", "attach: false", "pid: ''", "sysctls: {}", "deploy: {labels: {}}"} {
		plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services:\n  web:\n    image: nginx\n    " + line + "\n"}), settings())
		if len(plan.Apps) != 1 {
			t.Errorf("%s is refused: %v", line, plan.Refused["web"])
		}
	}
}
