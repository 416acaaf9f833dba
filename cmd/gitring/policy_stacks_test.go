package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/policy"
)

// What people run at home, and asks for more than an app gets. Each passes unchanged under
// owner, and under compose with what suggest prints.
var homeStacks = map[string]struct {
	files map[string]string
	roots []string // what the owner says that apps may share
	never string   // what the owner takes out of mounts.never by hand
	grant int      // how many grants suggest prints then
}{
	"a media stack on one folder": {roots: []string{"/mnt/media"}, grant: 2, files: map[string]string{
		"sonarr/compose.yaml":      "services: {sonarr: {image: sonarr, volumes: ['./config:/config', '/mnt/media:/data']}}\n",
		"radarr/compose.yaml":      "services: {radarr: {image: radarr, volumes: ['./config:/config', '/mnt/media:/data']}}\n",
		"qbittorrent/compose.yaml": "services: {qb: {image: qb, volumes: ['./config:/config', '/mnt/media/torrents:/data/torrents']}}\n",
		"jellyfin/compose.yaml":    "services: {jellyfin: {image: jellyfin, volumes: ['./config:/config', '/mnt/media/library:/media:ro']}}\n",
	}},
	"a media stack on one folder, by grants alone": {grant: 3, files: map[string]string{
		"sonarr/compose.yaml": "services: {sonarr: {image: sonarr, volumes: ['/mnt/media:/data']}}\n",
		"radarr/compose.yaml": "services: {radarr: {image: radarr, volumes: ['/mnt/media:/data']}}\n",
		"plex/compose.yaml":   "services: {plex: {image: plex, volumes: ['/mnt/media:/data:ro']}}\n",
	}},
	"Traefik with its dashboard and socket": {grant: 1, files: map[string]string{"traefik/compose.yaml": `
services:
  traefik:
    image: traefik:v3
    ports: ["80:80", "443:443"]
    volumes: ["/var/run/docker.sock:/var/run/docker.sock:ro", "./letsencrypt:/letsencrypt"]
    labels:
      traefik.http.routers.dashboard.rule: Host(` + "`traefik.example.org`" + `)
      traefik.http.routers.dashboard.service: api@internal
`}},
	"an app that joins proxy_default": {files: map[string]string{
		"proxy/compose.yaml": "services: {proxy: {image: caddy, ports: ['80:80']}}\n",
		"web/compose.yaml":   "services: {web: {image: nginx, networks: [proxy_default]}}\nnetworks: {proxy_default: {external: true}}\n",
	}},
	"cadvisor that sees sys and devices": {grant: 4, files: map[string]string{"cadvisor/compose.yaml": `
services:
  cadvisor:
    image: cadvisor
    volumes: ["/var/run:/var/run:ro", "/sys:/sys:ro", "/dev/disk/:/dev/disk:ro"]
    devices: [/dev/kmsg]
`}},
	"cadvisor as its own page has it": {grant: 6, never: "mounts: {never: [-/, -/var/lib/docker]}\n", files: map[string]string{"cadvisor/compose.yaml": `
services:
  cadvisor:
    image: cadvisor
    privileged: true
    ports: ["8080:8080"]
    volumes: ["/:/rootfs:ro", "/var/run:/var/run:ro", "/sys:/sys:ro", "/var/lib/docker/:/var/lib/docker:ro"]
    devices: [/dev/kmsg]
`}},
}

func TestWhatPeopleRunAtHomePassesUnchanged(t *testing.T) {
	for name, tt := range homeStacks {
		t.Run(name, func(t *testing.T) {
			c := commitOf(tt.files)
			plan, refusals := judged(t, policy.Owner, tt.files)
			require.Empty(t, refusals)
			require.Len(t, plan.Apps, len(tt.files))

			rules := tt.never
			for _, root := range tt.roots {
				rules += "mounts: {bind_roots: [+" + root + "]}\n"
			}
			j := judgeOfPolicy(t, rules)
			s := j.Suggest(c, onProd)
			require.Empty(t, s.Refused)
			require.Equal(t, tt.grant, s.Grants(), "%s", s.Yaml(nil, admission.EmptyReason))
			given := judgeOfPolicy(t, rules+reasoned(&s))
			plan, refusals = given.Look(c, onProd)
			require.Empty(t, refusals)
			require.Len(t, plan.Apps, len(tt.files))
			for i := range s.Apps {
				for k := range s.Apps[i].Grants {
					_, less := judgeOfPolicy(t, rules+reasoned(without(&s, i, k))).Look(c, onProd)
					require.NotEmpty(t, less, "%v is not needed", s.Apps[i].Grants[k])
				}
			}
		})
	}
}

// A host whose default runtime is NVIDIA's runs what asks for no card as before, and what
// asks for one by a grant of its cards.
func TestAHostWhoseDefaultRuntimeIsNvidiasPasses(t *testing.T) {
	files := map[string]string{
		"web/compose.yaml": "services: {web: {image: nginx}}\n",
		"llm/compose.yaml": "services: {llm: {image: ollama, environment: {NVIDIA_VISIBLE_DEVICES: all}}}\n",
	}
	on := func(body string) admission.Judge {
		j := judgeOfPolicy(t, body)
		j.Runtimes = &admission.EngineRuntimes{Ask: func() (string, []string, error) { return "nvidia", []string{"nvidia"}, nil }}
		return j
	}
	_, refusals := on("profile: owner\n").Look(commitOf(files), onProd)
	require.Empty(t, refusals)
	s := on("").Suggest(commitOf(files), onProd)
	require.Equal(t, 1, s.Grants())
	require.Equal(t, "gpus", s.Apps[0].Grants[0].Value)
	plan, refusals := on(reasoned(&s)).Look(commitOf(files), onProd)
	require.Empty(t, refusals)
	require.Len(t, plan.Apps, 2)
}
