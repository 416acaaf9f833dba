# make demo and make test are all that a newcomer needs; make help lists the rest.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null | sed 's/^v//' || true)
OUT     ?= bin/gitring
LDFLAGS := -s -w $(if $(VERSION),-X github.com/gitring/gitring/ring.Release=$(VERSION))
GOBUILD := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'

# Package tests that talk to the engine each make their own names, so two run
# side by side; more than two only wait for the same engine.
PARALLEL ?= 2
# The packages that take longest begin first, so that none of them is left to run alone at the end.
LONGEST  := ./e2e ./reconcile ./gitsync ./cmd/gitring
N        ?= 200000
SEED     ?=
FUZZTIME ?= 30s
BENCHTIME ?= 1s
BENCH    ?=
E2E      ?= .
# What runs the tests of make test: .ci/run has scripts/again.sh here.
AGAIN    ?=

.PHONY: help
help: ## say what there is
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | while IFS=$$'\t' read -r t d; do \
		fold -s -w 60 <<<"$$d" | sed 's/ *$$//' | while IFS= read -r line; do printf '  %-17s %s\n' "$$t" "$$line"; t=; done; done

.PHONY: demo demo-ui demo-status demo-push demo-secret demo-canary demo-unsigned demo-broken demo-revert demo-down
.PHONY: demo-swarm
demo-swarm: go build ## three engines in namespaces, one signed push, a node that ends, and the app whole again
	@scripts/demo-swarm.sh

.PHONY: demo-fleet demo-fleet-status demo-fleet-down
demo: go engine build ## a host, a signed repository and an app, live in a minute
	@scripts/demo.sh up
demo-ui: ## the demo: its dashboard, by a new address that works once
	@scripts/demo.sh ui
demo-status: ## the demo: how things are
	@scripts/demo.sh status
demo-push: ## the demo: a signed commit, a rolling update
	@scripts/demo.sh push
demo-secret: ## the demo: a secret changes by a signed commit, encrypted
	@scripts/demo.sh secret
demo-canary: ## the demo: a version whose answers fail is taken back
	@scripts/demo.sh canary
demo-unsigned: ## the demo: a commit that nobody signed is refused
	@scripts/demo.sh unsigned
demo-broken: ## the demo: a version that never becomes ready is restored
	@scripts/demo.sh broken
demo-revert: ## the demo: take the last commit back
	@scripts/demo.sh revert
demo-down: ## the demo: remove everything that it made, a fleet too
	@scripts/demo-fleet.sh down
	@scripts/demo.sh down
demo-fleet: go engine build ## three hosts, the canary first: a good push, and one that goes no further
	@scripts/demo-fleet.sh up
demo-fleet-status: ## the fleet: every host in one row
	@scripts/demo-fleet.sh status
demo-fleet-down: ## the fleet: end and remove everything that it made
	@scripts/demo-fleet.sh down

.PHONY: go
go:
	@scripts/go.sh

.PHONY: engine
engine: ## make sure of a Docker Engine
	@scripts/engine.sh

.PHONY: front
front: go # the program of fronts, which every build embeds
	@scripts/front.sh

.PHONY: build
build: front ## bin/gitring, static
	@$(GOBUILD) -o $(OUT) ./cmd/gitring

.PHONY: man
man: build ## bin/man, a man page for each command
	@$(OUT) man $(dir $(OUT))man

.PHONY: test
# As the binary is built, so that nothing is compiled twice: for the tests, and for
# what they run. What confines itself does it whole without cgo only.
test: export CGO_ENABLED = 0
test: export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath
# A compiler ends before its garbage matters: collecting less is a fifth less work. What
# is tested collects as it does elsewhere.
test: export GOGC = 300
test test-beside: GOTEST = $(AGAIN) go test -exec 'env -u GOGC' -vet=off -count=1
test: front engine sops oidc ## all that a developer needs to believe a change
	@scripts/needs.sh
	@go vet ./... # all that go test would ask, and more: so it need not
	@GITRING_ENGINE_TESTS=1 scripts/beside.sh make -s test-beside AGAIN='$(AGAIN)' -- $(GOTEST) -p $(PARALLEL) -timeout 40m $(LONGEST) ./...

.PHONY: test-beside
# What make test runs beside its packages, which wait for the engine and for each other: a
# browser waits, too, and so does a Podman.
test-beside:
	@make -s podman-suite AGAIN='$(AGAIN)'
	@scripts/browser.sh $(GOTEST) -timeout 10m ./api/pages/browsertest
	@cd tools/release && $(AGAIN) go test -count=1 ./...
	@cd tools/otlp && $(AGAIN) go test -count=1 ./...
	@AGAIN='$(AGAIN)' scripts/race.sh

.PHONY: screenshots
screenshots: front ## docs/images, a picture of each page of the dashboard; SHOTS=folder for all of them
	@GITRING_SCREENSHOTS='$(abspath $(or $(SHOTS),docs/images))' GITRING_SCREENSHOTS_ALL=$(if $(SHOTS),1) scripts/browser.sh go test -count=1 -timeout 10m -run '^TestPicturesOfEveryPage$$$$' ./api/pages/browsertest

.PHONY: e2e
e2e: front engine compose ## the faults of docs/testing/reliability.md, often, on real engines
	@scripts/needs.sh
	@scripts/oidc.sh
	@GITRING_ENGINE_TESTS=1 GITRING_E2E_LONG=1 go test -count=1 -v -timeout 90m -run '$(E2E)' ./e2e

.PHONY: podman
podman: front podman-suite ## the suite of engines on a Podman of Debian's, the demo's story, and that an old one is refused; three minutes
	@GITRING_ENGINE_TESTS=1 GITRING_E2E_LONG=1 go test -exec '$(CURDIR)/scripts/podman.sh trixie' -count=1 -timeout 5m -run 'OnPodman$$$$' ./e2e
	@GITRING_ENGINE_TESTS=1 go test -exec '$(CURDIR)/scripts/podman.sh bookworm' -count=1 -timeout 2m -run '^TestAnOldPodmanIsRefused$$$$' ./runtime

.PHONY: podman-suite
podman-suite: # where this machine has Debian's packages
	@! scripts/podman.sh can || GITRING_ENGINE_TESTS=1 $(AGAIN) go test -exec '$(CURDIR)/scripts/podman.sh trixie env -u GOGC' -vet=off -count=1 -timeout 10m -parallel 4 -run '^TestEngineConforms$$$$' ./runtime

.PHONY: swarm
swarm: front ## the tests of a swarm, on three engines of their own; ten minutes, and GITRING_SWARM_UPDATES=200 GITRING_SWARM_LEADERS=20 an hour
	@GITRING_ENGINE_TESTS=1 go test -c -o bin/runtime.test ./runtime
	@cd runtime && ../scripts/swarm.sh 3 ../bin/runtime.test -test.v -test.timeout 10m -test.run '^TestOnSwarm'
	@cd runtime && ../scripts/swarm.sh 4 ../bin/runtime.test -test.v -test.timeout 5m -test.run '^TestLastOnSwarm'
	@scripts/needs.sh
	@GITRING_ENGINE_TESTS=1 go test -c -o bin/e2e.test ./e2e
	@cd e2e && GITRING_ENGINE_TESTS=1 ../scripts/swarm.sh 3 ../bin/e2e.test -test.v -test.timeout 60m -test.run 'Swarm'

.PHONY: compose
compose: go ## bin/docker-compose, for the tests that run Compose beside gitring
	@scripts/compose.sh

.PHONY: proxies
proxies: go ## Caddy and Traefik, for the tests that put them before a front; half an hour the first time
	@scripts/proxies.sh

.PHONY: record
record: front engine compose ## what Compose asks the engine for, which the tests hold gitring to, anew
	@GITRING_ENGINE_TESTS=1 GITRING_RECORD=1 go test -count=1 -v -timeout 20m -run '^TestTheEngineIsAskedForWhatComposeAsksFor$$$$' ./e2e

.PHONY: cosign
cosign: go ## bin/cosign2, bin/cosign3 and bin/notation, and holds the judge of signatures to them; half an hour the first time
	@scripts/cosign.sh
	@go test -count=1 -v -timeout 20m -run '^(TestNothingIsAcceptedThatCosignRefuses|TestCosignJudges.*|TestNotationJudges.*)$$$$' ./runtime

.PHONY: oidc
oidc: go ## bin/oidc-provider, for the tests that sign in with one that is not ours
	@scripts/oidc.sh

.PHONY: sops
sops: go ## bin/sops, for the tests that hold gitring's reader to it
	@scripts/sops.sh

.PHONY: unit
unit: front ## the tests that need no engine
	@go test ./...

.PHONY: race
race: front engine sops ## the tests under the race detector
	@scripts/needs.sh
	@GITRING_ENGINE_TESTS=1 go test -race -p $(PARALLEL) -timeout 30m ./...

.PHONY: sim
sim: go ## more of the simulation: make sim N=1000000; SEED=… to replay one, WIDE=1 to have all of them wide, WIDE=person|damage|refused|ports with that
	@GITRING_SIM_N=$(N) GITRING_SIM_SEED=$(SEED) GITRING_SIM_WIDE=$(or $(WIDE),$(GITRING_SIM_WIDE)) go test -count=1 -timeout 0 -run TestSimulation ./reconcile

.PHONY: mutants
MUTANTS ?= all
mutants: export GITRING_MUTANTS = $(MUTANTS)
mutants: go ## make each bug of the catalogue and see a test go red; MUTANTS=floor for some
	@go test -count=1 -v -timeout 0 -run '^TestEveryMutantIsCaught$$$$' .

.PHONY: bench
bench: go engine build ## the figures of docs/testing/performance.md; a part with BENCH="-run push"
ifeq ($(BENCH),)
	@GITRING_ENGINE_TESTS=1 go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
endif
	@CGO_ENABLED=0 go run -trimpath ./bench -bin $(OUT) $(BENCH) # static: its image is from scratch

.PHONY: fuzz
fuzz: go ## every fuzz test for FUZZTIME
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: dist dist-check
DIST_KEY     ?=
DIST_MAINTAINER ?=
DIST_OUT     ?= bin/dist
DIST_TARGETS ?=
dist: go ## what people download, in bin/dist; DIST_KEY=… signs it, and wants DIST_MAINTAINER='Name <mail>'
	@cd tools/release && nice go run . -source '$(CURDIR)' -out '$(abspath $(DIST_OUT))' $(if $(DIST_KEY),-key '$(abspath $(DIST_KEY))') $(if $(DIST_MAINTAINER),-maintainer '$(DIST_MAINTAINER)') $(if $(DIST_TARGETS),-targets '$(DIST_TARGETS)')
dist-check: go ## make a release twice, in two folders, compare it, and have apt and dnf install it
	@scripts/needs.sh git ssh-keygen rpm debootstrap
	@cd tools/release && GITRING_DIST_LONG=1 nice go test -count=1 -v -timeout 60m ./...

.PHONY: lint
lint: go ## gofumpt, vet, golangci-lint
	@scripts/lint.sh

.PHONY: image
image: go ## a container image of gitring for this engine, from scratch
	@scripts/image.sh
