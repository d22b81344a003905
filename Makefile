# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# The tools have a module of their own, so that the product does not get their
# dependencies. The go command builds them once. actionlint has one more: it needs
# other versions than the rest.
TOOL := $(GO) tool -modfile=tools/go.mod
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.0.0-dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Pages in which gRPC would show its calls: they call methods by their names, so that the
# linker would have to keep the methods of all types.
TAGS := grpcnotrace
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)'
# NVML is a library that most machines lack: its functions are looked up when they
# are called (lazy), which Go's linker does not do by itself for this program.
# go-nvml exports every symbol for that, also those of Go: NVML's are enough, and
# the others are a seventh of the program. The header marks half of what go-nvml
# binds as deprecated.
NVML := CGO_ENABLED=1 CGO_CFLAGS='-g -O2 -Wno-deprecated-declarations' $(GO)
NVML_FLAGS := -tags nvml,$(TAGS) -ldflags '$(LDFLAGS) -extldflags=-Wl,-z,lazy,--no-export-dynamic,--export-dynamic-symbol=nvml*'
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
TEST_TIMEOUT ?= 45m
RELEASES ?= 1.35 1.36 1.37
# go test, and at the end how many tests ran, and which were skipped and why.
TESTED := $(TOOL) gotestsum --format standard-quiet --
FUZZTIME ?= 30s
CASES ?= 20000
BENCHTIME ?= 1s

DEMO_CLUSTER ?= examples/cluster

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kubectl-dra
	$(BUILD) -o bin/ ./cmd/kubectl-dra

.PHONY: build-controller
build-controller: ## Build bin/dra-controller, which runs in a cluster (docs/controller.md)
	$(BUILD) -o bin/ ./cmd/dra-controller

.PHONY: build-nvml
build-nvml: ## Build bin/kubectl-dra with NVML, for nodes with GPUs (Linux, a C compiler)
	$(NVML) build -trimpath $(NVML_FLAGS) -o bin/ ./cmd/kubectl-dra

.PHONY: cross
cross: ## Build for all platforms, into dist/
	@for platform in $(PLATFORMS); do \
	  os=$${platform%/*} arch=$${platform#*/} ext=; \
	  if [ $$os = windows ]; then ext=.exe; fi; \
	  echo "dist/kubectl-dra-$$os-$$arch$$ext"; \
	  GOOS=$$os GOARCH=$$arch $(BUILD) -o "dist/kubectl-dra-$$os-$$arch$$ext" ./cmd/kubectl-dra; \
	done

.PHONY: demo
demo: build ## Ask why for a pod of the example cluster, and for the state of the cluster
	@ask() { \
	  printf '\n$$ kubectl dra %s\n' "$$*"; \
	  code=0; bin/kubectl-dra "$$@" || code=$$?; \
	  if [ $$code -gt 2 ]; then exit $$code; fi; \
	}; \
	ask why pod/upscale-0 -n media --snapshot "$(DEMO_CLUSTER)"; \
	ask status --snapshot "$(DEMO_CLUSTER)" | sed -n '1,16p'; \
	printf '\nThe first 14 lines; bin/kubectl-dra learn has ten exercises, docs/start.md goes through them.\n'

.PHONY: control-plane
control-plane: ## Build the Kubernetes that the tests start (minutes, once)
	@test/controlplane/build.sh >/dev/null

.PHONY: test
test: control-plane test-prometheus test-browser ## Run all tests; they start a real control plane
	$(TESTED) -timeout $(TEST_TIMEOUT) ./...
	if [ "$$($(GO) env GOOS)" = linux ] && command -v "$$($(GO) env CC)" >/dev/null; then $(NVML) test $(NVML_FLAGS) ./pkg/nodeprobe/nvidia; fi

# A module of its own, so that the product does not get the dependencies of Prometheus.
# Minutes the first time.
.PHONY: test-prometheus
test-prometheus: ## Test the alerts and the dashboard of config with Prometheus
	cd test/prometheus && $(GO) test -timeout $(TEST_TIMEOUT) ./...

# A module of its own, so that the product does not get what drives a browser.
.PHONY: test-browser
test-browser: ## Test the page of kubectl dra report in Chromium; skipped without it
	cd test/browser && $(GO) tool -modfile=../../tools/go.mod gotestsum --format standard-quiet -- -timeout $(TEST_TIMEOUT) ./...

.PHONY: test-node
test-node: control-plane ## Run the tests on a real node that they start; needs root and Linux
	@test/node/build.sh >/dev/null
	KUBECTL_DRA_TEST_NODE=1 $(TESTED) -count 1 -timeout $(TEST_TIMEOUT) ./test/node

# The older ones are real, built from their own code: minutes each, once.
.PHONY: test-releases
test-releases: control-plane ## Compare the verdicts with the schedulers of RELEASES (many minutes)
	@for release in $(filter-out 1.37,$(RELEASES)); do test/controlplane/build.sh "$$release" >/dev/null; done
	KUBECTL_DRA_TEST_RELEASES='$(RELEASES)' $(TESTED) -count 1 -timeout 1h -run 'TestWhyAgreesWithReleases|TestSchedulerPanics' ./test
	KUBECTL_DRA_TEST_RELEASES='$(RELEASES)' $(TESTED) -count 1 -timeout 2h -v ./test/allocators

.PHONY: bench
bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem -timeout $(TEST_TIMEOUT) ./pkg/... ./test

.PHONY: fuzz
fuzz: ## Ask about CASES new random clusters, then fuzz everything that parses, FUZZTIME each
	CASES=$(CASES) $(GO) test -count 1 -timeout $(TEST_TIMEOUT) ./pkg/explain -run '^(TestProperties|TestMembersProperty)$$' -v
	@grep -rl --include='*_test.go' '^func Fuzz' pkg | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for name in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | cut -c6-); do \
	    echo "$$dir $$name"; \
	    $(GO) test "./$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) </dev/null; \
	  done; \
	done

.PHONY: golden
golden: control-plane ## Regenerate the golden files and the transcripts in the documents; review by eye
	$(GO) test ./pkg/render ./pkg/render/explanation ./pkg/tui ./pkg/commands/nodeprobe -update
	$(GO) test ./pkg/commands -run 'TestPrompt$$' -update
	$(GO) test ./test -run 'TestScripts|TestDocuments|TestComparison|TestExplanations|TestVerbs|TestInventories' -update

.PHONY: pictures
pictures: ## Redraw the pictures in the documents, from what a terminal shows (tmux)
	$(GO) test ./test -count 1 -run 'TestPictures|TestDrawings' -update

.PHONY: docs
docs: ## Regenerate the documents that come from the commands and the types
	$(GO) test ./pkg/commands -run TestPages -update
	$(GO) test ./test -run TestContractIsWritten -update

.PHONY: generate
generate: ## Regenerate the generated code
	$(TOOL) deepcopy-gen --output-file zz_generated.deepcopy.go --go-header-file tools/boilerplate/header.go.txt ./pkg/api/v1alpha1 ./pkg/nodeprobe/cdi ./pkg/nodeprobe/kubelet ./pkg/nodeprobe/checkpoint ./pkg/nodeprobe/driver ./pkg/nodeprobe/nvidia ./pkg/nodeprobe
	LC_ALL=C; cat examples/cluster/*.yaml | gzip -9n >pkg/commands/learn_cluster.yaml.gz
	cp examples/manifests/gang.yaml pkg/commands/learn_gang.yaml
	$(TOOL) templ generate -path pkg/report -log-level error

.PHONY: release-check
release-check: control-plane ## Build a snapshot of the release, install it with krew, use it (many minutes)
	cd tools/release && $(GO) mod tidy -diff
	KUBECTL_DRA_TEST_RELEASE=1 $(GO) test -count 1 -timeout 3h -v ./test/release

.PHONY: krew-manifest
krew-manifest: ## Regenerate plugins.yaml, after a change of .goreleaser.yaml (many minutes)
	KUBECTL_DRA_TEST_RELEASE=1 $(GO) test -count 1 -timeout 3h ./test/release -update

.PHONY: release
release: ## Release the tag that is checked out; what there are no credentials for is skipped
	tools/release/release.sh

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Run the linters, and check the first sentences of comments
	$(TOOL) golangci-lint run
	$(GO) run ./internal/comments $$(git ls-files '*.go')

.PHONY: verify
verify: ## Check modules, formatting, lint, comments, generated code, workflows, the krew manifest, licences, vulnerabilities
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd tools/actionlint && $(GO) mod tidy -diff
	cd test/prometheus && $(GO) mod tidy -diff && $(GO) tool -modfile=../../tools/go.mod golangci-lint run
	cd test/browser && $(GO) mod tidy -diff && $(GO) tool -modfile=../../tools/go.mod golangci-lint run
	$(TOOL) golangci-lint fmt --diff
	$(TOOL) golangci-lint run
	$(GO) run ./internal/comments $$(git ls-files '*.go')
	if [ "$$($(GO) env GOOS)" = linux ] && command -v "$$($(GO) env CC)" >/dev/null; then $(TOOL) golangci-lint run --build-tags nvml ./pkg/nodeprobe/nvidia; fi
	tools/verify-generated.sh
	tools/verify-linker.sh $(TAGS)
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint -shellcheck= -pyflakes=
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint -shellcheck= -pyflakes= examples/conform/workflow.yml
	tools/verify-manifest.sh
	tools/verify-licenses.sh
	tools/verify-vulnerabilities.sh

.PHONY: licenses
licenses: ## Write THIRD_PARTY_LICENSES, which goes with the binaries, into bin/
	@mkdir -p bin
	tools/third-party-licenses.sh >bin/THIRD_PARTY_LICENSES
