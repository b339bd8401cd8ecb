# Every target sets up what it needs by itself. Only Python >= 3.11 is assumed
# (and Go >= 1.26, or Kubernetes binaries, for what needs a control plane).
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SIMULATOR ?= 1
VM_CRD ?=
BENCH_SECONDS ?= 30
SOAK_MINUTES ?= 20
SOAK_SEED ?= 1
IMAGE ?=
STAND_IN ?= 0
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup lock lint format test test-fast cluster cluster-down demo demo-down bench prove-capacity trials explore faults soak earlier-life generate e2e e2e-kind image

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Bullpen needs Python >= 3.11; say which one with: make PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) (first time only)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

setup: $(VENV)/.installed  ## make the Python environment

lock:  ## resolve the dependencies anew into requirements.lock, and the controller's part of it
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --extra cli --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet -c requirements.lock -o requirements-controller.lock

lint: $(VENV)/.installed  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed  ## let ruff write the layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(VENV)/.installed  ## every level, on a real control plane
	$(BIN)/pytest --numprocesses auto -m "not cluster"
	$(BIN)/pytest -m cluster

test-fast: $(VENV)/.installed  ## the inner loop: no control plane, seconds
	$(BIN)/pytest --numprocesses auto -m "not cluster and not thorough"

cluster: $(VENV)/.installed  ## control plane, CRDs and the KubeVirt stand-in, without the controller
	@$(BIN)/python -m e2e.cluster up --simulator $(SIMULATOR) $(if $(VM_CRD),--vm-crd $(VM_CRD))

cluster-down: $(VENV)/.installed  ## stop what make cluster started
	@$(BIN)/python -m e2e.cluster down

demo: $(VENV)/.installed  ## see a pool fill and claims served, on this machine
	@$(BIN)/python -m e2e.demo up

demo-down: $(VENV)/.installed  ## stop what make demo started
	@$(BIN)/python -m e2e.demo down

bench: $(VENV)/.installed  ## the benchmarks, with their thresholds; BENCH_SECONDS=60 for longer streams
	@missed=0; for each in "handover --seconds $(BENCH_SECONDS)" scale; do $(BIN)/python -m benchmarks $$each || missed=1; done; exit $$missed

prove-capacity: $(VENV)/.installed  ## prove the warm-capacity engine in virtual time: under ten minutes
	@$(BIN)/python -m benchmarks.capacity

e2e: $(VENV)/.installed  ## the specs alone; on your cluster with KUBECONFIG=file, its image with IMAGE=name:tag
	$(if $(filter command line,$(origin KUBECONFIG)),BULLPEN_TEST_KUBECONFIG=$(abspath $(KUBECONFIG)) BULLPEN_E2E_KUBECONFIG=$(abspath $(KUBECONFIG))) BULLPEN_E2E_IMAGE=$(IMAGE) $(BIN)/pytest e2e/specs

e2e-kind: $(VENV)/.installed  ## the specs on a kind cluster with KubeVirt (STAND_IN=1: without it); needs a container engine
	@$(BIN)/python -m e2e.kind.run $(if $(filter 1,$(STAND_IN)),--stand-in)

image: $(VENV)/.installed  ## the controller's container image, IMAGE=name:tag
	@$(BIN)/python -m e2e.kind.engine build $(IMAGE)

trials: $(VENV)/.installed  ## bursts, kills, frozen leaders, outages, chaos at full size: a quarter of an hour
	@$(BIN)/python -m tests.trials

soak: $(VENV)/.installed  ## everything at random for SOAK_MINUTES=20: claims, kills, roll-outs, failures, people; SOAK_SEED=1
	@$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) --seed $(SOAK_SEED)

faults: $(VENV)/.installed  ## every fault at every step of every scenario, and the table: under half an hour
	@$(BIN)/python -m tests.faults --write .state/faults

earlier-life: $(VENV)/.installed  ## a start beside ten thousand VMs of an earlier life: minutes
	@$(BIN)/python -m tests.trials.earlier_life

explore: $(VENV)/.installed  ## the hand-over protocol through every interleaving, at full size: ten minutes
	@$(BIN)/python -m tests.protocol

generate: $(VENV)/.installed  ## CRD manifests, the chart's copies of them, and the state-machine page
	$(BIN)/python -m crds.generate
	@rm -f charts/bullpen/files/crds/*.yaml
	cp crds/manifests/*.yaml charts/bullpen/files/crds/
	$(BIN)/python -m statemachines.diagrams
