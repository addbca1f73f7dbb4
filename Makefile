# Two commands for a newcomer: make demo, make test. Everything they need is set up on the way.

.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
READY := .venv/.ready

# pytest arguments: make test ARGS='-k expression'
ARGS ?=

# make chaos: how many faults, and which run; UNPROTECTED=barrier is a negative control
FAULTS ?= 500
SEED ?= 1
UNPROTECTED ?=

# make e2e-kind: KEEP=1 leaves the cluster running; KIND, KIND_NODE_IMAGE, KIND_NAME, KUBECTL: docs/install.md
KEEP ?=
export KEEP

# make parity: how many (Pod, node) pairs
PAIRS ?= 10000

# make image: pin BASE_IMAGE by digest for a release; PYTHON_VERSION is that of its python3
BASE_IMAGE ?= docker.io/library/python:3.13-slim-bookworm
PYTHON_VERSION ?= 3.13
IMAGE ?= allaboard:0.1.0
ARCHITECTURE ?= $(shell uname -m)
WHEEL_PLATFORMS = $(foreach libc,2_17 2_28 2_34,--platform manylinux_$(libc)_$(ARCHITECTURE)) \
	--platform manylinux2014_$(ARCHITECTURE)
DOCKER ?= docker

.PHONY: help
help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## show the main job on a real control plane with fake GPU nodes
	@$(PYTHON) -m e2e.demo

.PHONY: test
test: build helm ## run all tests, those against the real control plane too (ARGS go to pytest)
	@$(PYTHON) -m pytest $(ARGS)

.PHONY: bench
bench: build ## boarding speed as a ratio against kube-scheduler alone (3 minutes; NODES=504 ROUNDS=3)
	@$(PYTHON) -m bench.boarding

.PHONY: chaos
chaos: build ## faults over gangs on a real control plane, judged by the checker (FAULTS=500 SEED=1)
	@$(PYTHON) -m e2e.chaos --faults $(FAULTS) --seed $(SEED) --quiet $(if $(UNPROTECTED),--unprotected $(UNPROTECTED))

.PHONY: parity
parity: build ## the planner's verdicts against kube-scheduler's (PAIRS=10000: about 6 minutes; SEED=1)
	@PAIRS=$(PAIRS) SEED=$(SEED) $(PYTHON) -m pytest tests/parity -s

.PHONY: wheels
wheels: setup ## the image's content: wheels as locked, for PYTHON_VERSION, and the SBOM
	@rm -rf dist/image && mkdir -p dist/image/wheels
	@.venv/bin/uv export --quiet --frozen --no-dev --no-emit-project --output-file dist/image/requirements.txt
	@.venv/bin/uv export --quiet --frozen --no-dev --format cyclonedx1.5 --preview-features sbom-export \
		--output-file dist/image/sbom.cdx.json
	@.venv/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
		--python-version $(PYTHON_VERSION) $(WHEEL_PLATFORMS) --dest dist/image/wheels -r dist/image/requirements.txt
	@.venv/bin/uv build --quiet --wheel --out-dir dist/image/wheels

.PHONY: image
image: wheels ## build the image IMAGE from BASE_IMAGE (docker)
	@$(DOCKER) build --quiet --build-arg BASE_IMAGE=$(BASE_IMAGE) --tag $(IMAGE) .

.PHONY: e2e-kind
e2e-kind: image build ## the scenes on a kind cluster, Allaboard in Pods (KIND_NODE_IMAGE, KEEP=1)
	@KUBECTL=$${KUBECTL:-$$($(PYTHON) -m allaboard local which kubectl)} IMAGE=$(IMAGE) $(PYTHON) -m e2e.kind

.PHONY: manifests
manifests: setup ## write anew the manifests that follow from code
	@$(PYTHON) -m allaboard.ship

.PHONY: manifests-check
manifests-check: build helm ## kustomize and Helm render the same, and a real API server takes it
	@$(PYTHON) -m pytest tests/ship

.PHONY: check
check: setup ## lint, formatting, types, layers
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports

.PHONY: setup
setup: $(READY) ## make .venv, with allaboard and python in its bin

$(READY): uv.lock pyproject.toml .ci/bootstrap
	@.ci/bootstrap
	@touch $@

.PHONY: build
build: setup ## build the control plane's binaries once, into the user's cache (minutes)
	@$(PYTHON) -m allaboard.local build >/dev/null

.PHONY: helm
helm: setup ## build Helm once, for the chart's tests
	@$(PYTHON) -m allaboard.local build helm >/dev/null

.PHONY: clean
clean: ## remove .venv and tool caches (built binaries stay in the user's cache)
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
