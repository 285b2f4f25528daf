# Everything works from a fresh clone on a machine with python3 (3.11+), git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where Python does not keep what it compiled, each process and each test worker compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
# Test processes side by side. Most tests wait most of the time, so more than the cores; those of a real control plane do less.
WORKERS ?= 5
# AGAIN=1 runs only the tests that failed last time. REPORT=file writes their results as JUnit does.
override AGAIN := $(if $(AGAIN),--last-failed --last-failed-no-failures=none)
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadgroup $(AGAIN) $(if $(REPORT),--junitxml=$(REPORT) --durations=30)

.DEFAULT_GOAL := help
.PHONY: help dist sbom demo up test test-all test-beyond nightly nightly-autoscaler nightly-chaos nightly-e2e nightly-groups nightly-older nightly-oldest nightly-scheduler coverage matrix fuzz audit soak docs docs-linkcheck lint lint-types lint-style lint-released protos lock image bench bench-quick bench-peers e2e chaos chaos-mutations manifests clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}'

demo: $(VENV)/.run ## Schedule a small workload with six real processes, print where each pod went and why
	$(BIN)/moorage up --once --nodes deploy/demo/nodes.yaml --pods deploy/demo/pods.yaml --config deploy/demo/policy.yaml

up: $(VENV)/.run ## The same, but keep it running: kubectl works against it until Ctrl-C
	$(BIN)/moorage up --nodes deploy/demo/nodes.yaml --pods deploy/demo/pods.yaml --config deploy/demo/policy.yaml

# What `make test` leaves to `make test-all`: packages, type checkers, pages, walkthroughs, the monitored run, the browser, tools.
BEYOND := tests/bench tests/deploy/test_distributions.py tests/deploy/test_pytest_plugin.py tests/deploy/test_typing.py \
  tests/deploy/test_wheel.py tests/docs tests/gateway/inspector/test_page.py tests/gateway/inspector/test_pages_of_a_gateway.py \
  tests/cli/skeleton/test_written_plugins.py tests/cli/up/test_packages.py tests/monitoring/test_real_metrics.py tests/soak tests/tools

test: $(VENV)/.dev ## Run the tests of behaviour in a few minutes; TESTS=... selects files or folders
	$(PYTEST) $(or $(TESTS),$(BEYOND:%=--ignore=%))

test-all: export MOORAGE_EXAMPLES := 100
test-all: test test-beyond ## Run every test that this machine can run: also packages, type checkers, walkthroughs, browser, tools

test-beyond: $(VENV)/.dev
	$(PYTEST) $(BEYOND)

# Over the tests in process, without threads (see pyproject.toml): processes would have to count too. So what runs in
# either alone counts as not covered: cli/up, which tests/cli/up runs whole; services/annotator/serving.py
# (tests/annotator/test_service.py); gateway/scheduling/tracing.py, moorage_host/tracing/otel.py (tests/scenarios/test_tracing.py).
# A test that times out ends its worker, which loses what it has counted: so there is more time. One file is left out: beside
# a thread that keeps the processor, the handler of the alarm does not get through coverage's code before the next signal.
NOT_COVERED := tests/host/plugins/test_threads.py
COVERED := $(addprefix tests/,sdk host gateway filter scorer binder annotator sandbox cli scenarios/test_capacity.py)
coverage: $(VENV)/.dev ## Measure the branch coverage of the tests in process, fail below the floor in pyproject.toml
	@$(if $(AGAIN),,rm -f .coverage)
	$(PYTEST) $(COVERED) $(BEYOND:%=--ignore=%) --ignore=$(NOT_COVERED) -o timeout=600 --cov --cov-append --cov-report= --cov-fail-under=0
	$(BIN)/coverage html -q --fail-under=0 -d .venv/coverage
	$(BIN)/coverage report

# Each is run, also after one that failed.
NIGHTLY := coverage fuzz chaos nightly-chaos nightly-e2e nightly-groups nightly-autoscaler nightly-older nightly-oldest nightly-scheduler soak matrix
nightly: export MOORAGE_EXAMPLES := 500
nightly: ## Run what takes hours: fuzz, chaos, soak, layouts, image, release, recordings, older Kubernetes, other Pythons
	$(MAKE) --keep-going $(NIGHTLY)

nightly-chaos:
	$(MAKE) chaos REAL=1

nightly-e2e:
	$(MAKE) e2e E2E="$(E2E_NIGHTLY)"

nightly-groups:
	$(MAKE) e2e FEATURE_GATES=GenericWorkload=true RUNTIME_CONFIG=scheduling.k8s.io/v1beta1=true

nightly-autoscaler: $(VENV)/.dev
	$(BIN)/python -m tools.build karpenter
	$(MAKE) e2e E2E=tests/e2e/autoscaler

nightly-older:
	$(MAKE) e2e KUBERNETES=1.36
	$(MAKE) e2e KUBERNETES=1.36 E2E="tests/e2e/golden/test_golden_scores.py tests/e2e/golden/test_policy_merge.py"

# 1.35 has no pod groups, and resources of device classes behind a gate.
NOT_OF_1_35 := tests/scenarios/explain/test_groups.py tests/e2e/placement/test_groups.py
nightly-oldest:
	$(MAKE) e2e KUBERNETES=1.35 FEATURE_GATES=DRAExtendedResource=true E2E="$(E2E) $(NOT_OF_1_35:%=--ignore=%)"

# What 1.30 does in other words, or not at all: see docs/reference/compatibility.md.
NOT_OF_1_30 := test_rejections.py::test_a_plugin_brings_back \
  test_rejections.py::test_a_rejected_pod_is_tried_again_when_the_policy_changes
nightly-scheduler:
	$(MAKE) e2e SCHEDULER=1.30 E2E="tests/scenarios tests/e2e/placement/test_placement.py $(NOT_OF_1_30:%=--deselect=tests/scenarios/%)"

# Each has a virtual environment of its own.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
matrix: ## Run `make test` with each of PYTHONS="python3.13 python3.14 ..." that this machine has
	@failed=; for python in $(PYTHONS); do \
	   $$python -c '' 2>/dev/null || { echo "$$python is not installed"; continue; }; \
	   $(MAKE) test PYTHON=$$python VENV=.venv-$$python || failed="$$failed $$python"; \
	 done; [ -z "$$failed" ] || { echo "make test failed with$$failed"; exit 1; }

MINUTES ?= 30
soak: $(VENV)/.dev ## Run under steady churn for MINUTES=30, fail if memory, descriptors, threads or tasks keep growing
	MOORAGE_SOAK=$(MINUTES) $(BIN)/pytest -q -o log_cli=true -o log_cli_level=INFO tests/soak

# In CI Hypothesis would draw the same cases each night, and keep none: see tests/conftest.py.
fuzz: export MOORAGE_EXAMPLES := 2500
fuzz: $(VENV)/.dev ## Feed mutated bodies, messages, policies ... to what reads them, a hundred times as many as `make test`
	env -u CI $(PYTEST) -o timeout=1800 tests/fuzz

# Side by side: mypy takes longest where nothing is cached. Each part writes in one piece.
lint: $(VENV)/.dev ## Check style, types, layers, protos and public API (also against the last release's), generated code, workflows
	@$(MAKE) --no-print-directory -k -j 2 --output-sync=target lint-types lint-style lint-released $(VENV)/.protos

lint-types:
	$(BIN)/mypy

lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=.:sdk $(BIN)/lint-imports
	$(BIN)/pytest -q -p no:cacheprovider tests/docs/test_language.py tests/docs/test_waits.py
	$(BIN)/zizmor --offline --quiet --no-progress --persona=pedantic .github
	$(BIN)/hadolint deploy/Dockerfile

lint-released:
	$(BIN)/buf lint
	$(BIN)/buf format -d --exit-code
	@rm -rf .venv/released && $(BIN)/python -m tools.release.released .venv/released protos buf.yaml
	$(BIN)/buf breaking --against .venv/released
	$(BIN)/python -m tools.release.public_api

# The same commit gives the same bytes. A release sets MOORAGE_HOME, the address of the repository's page.
BUILD := SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -d
dist: $(VENV)/.dev ## Build wheel and source distribution into dist/packages, twice, and fail if the two differ
	@rm -rf dist/packages .venv/packages
	@$(BUILD) dist/packages && $(BUILD) .venv/packages
	@diff -r dist/packages .venv/packages
	$(BIN)/twine check --strict dist/packages/*

sbom: $(VENV)/.dev ## Write the software bill of materials into dist: the locked dependencies, as CycloneDX
	@mkdir -p dist
	$(BIN)/python -W ignore -m cyclonedx_py requirements requirements-image.lock --pyproject pyproject.toml \
	  --mc-type application --output-reproducible -o dist/moorage-$$($(BIN)/python -c 'import moorage; print(moorage.__version__)').cdx.json

# Where the data about vulnerabilities cannot be reached, that is one line and no failure.
audit: $(VENV)/.dev ## Check the dependencies: licenses, known vulnerabilities (pip checks the hashes of the locks)
	$(BIN)/pip-licenses --summary
	@rm -f .venv/audit.json
	@$(BIN)/pip-audit --disable-pip -r requirements-dev.lock --progress-spinner off -f json -o .venv/audit.json 2> .venv/audit.log; code=$$?; \
	 if [ ! -s .venv/audit.json ]; then echo "known vulnerabilities: not checked, as pip-audit reaches no data (.venv/audit.log)"; exit 0; fi; \
	 tail -1 .venv/audit.log; echo "$$(grep -o '"skip_reason"' .venv/audit.json | wc -l) packages are unknown to pip-audit"; \
	 [ $$code = 0 ] || { cat .venv/audit.json; exit $$code; }

SPHINX := $(BIN)/sphinx-build -c docs -d .venv/docs/doctrees -j 2
docs: $(VENV)/.dev ## Build the documentation site into .venv/docs/html; a warning is a failure
	$(SPHINX) -q -E -a -W --keep-going -b html . .venv/docs/html
	@$(BIN)/python -m tools.docs.site

docs-linkcheck: $(VENV)/.dev ## Ask every external link of the documentation whether it is still there (needs the network)
	$(SPHINX) -q -b linkcheck . .venv/docs/linkcheck

PROTOS := $(wildcard protos/moorage/v1/*.proto)
define generate
	$(BIN)/python -m grpc_tools.protoc -Iprotos --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	  --python_out=$(1) --mypy_out=quiet:$(1) $(PROTOS)
	$(BIN)/python -m grpc_tools.protoc -Iprotos --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	  --grpc_python_out=$(1) --mypy_grpc_out=quiet,only_async:$(1) $(filter-out %/types.proto,$(PROTOS))
endef

protos: $(VENV)/.dev ## Write the generated protobuf code again (sdk/moorage/v1)
	$(call generate,sdk)

$(VENV)/.protos: $(PROTOS) $(wildcard sdk/moorage/v1/*.py*) $(VENV)/.dev
	@rm -rf .venv/protos && mkdir -p .venv/protos
	@$(call generate,.venv/protos)
	@diff -r -x __init__.py -x __pycache__ .venv/protos/moorage/v1 sdk/moorage/v1 \
	  || { echo "sdk/moorage/v1 is stale: run 'make protos' and commit the result"; exit 1; }
	@touch $@

LOCK := $(or $(wildcard $(BIN)/uv),uv) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-strip-extras --no-annotate --no-header
lock: ## Resolve the dependencies again into requirements*.lock (needs uv)
	$(LOCK) pyproject.toml --group build -o requirements.lock
	$(LOCK) pyproject.toml --extra otel --extra mcp --group build --group dev --group docs -c requirements.lock -o requirements-dev.lock
	$(LOCK) pyproject.toml --extra otel -c requirements-dev.lock -o requirements-image.lock
	$(LOCK) --group pyproject.toml:build -c requirements.lock -o requirements-build.lock
	$(LOCK) --group pyproject.toml:peers -c requirements-dev.lock -o requirements-peers.lock

image: $(VENV)/.dev ## Build the image into dist/image as an OCI layout, without a container engine (PYTHON_IMAGE: another base)
	$(BIN)/python -m tools.image $(if $(PYTHON_IMAGE),--python-image $(PYTHON_IMAGE))

bench: $(VENV)/.dev ## Measure everything beside Go extenders, print tables, fail if a budget is missed
	$(BIN)/python -m bench

bench-quick: $(VENV)/.dev ## The same in a minute and a half: filter and prioritize only, few rounds
	$(BIN)/python -m bench --quick

# Both Go extenders are built from checkouts of their repositories; what is not given is left out.
bench-peers: $(VENV)/.peers ## Measure beside extenders that people run: TOPOLVM=folder GPUSHARE=folder (checkouts), FastAPI
	$(BIN)/python -m bench peers $(if $(TOPOLVM),--topolvm $(TOPOLVM)) $(if $(GPUSHARE),--gpushare $(GPUSHARE))

# Recordings are compared each night: what a program says changes with its version only. So are releases rehearsed.
E2E_NIGHTLY := tests/e2e/golden tests/e2e/renderings tests/e2e/test_version_skew.py \
  $(patsubst %,tests/e2e/packaging/test_%.py,image new_plugin platforms release tutorial)
E2E = tests/scenarios tests/e2e $(E2E_NIGHTLY:%=--ignore=%) --ignore=tests/e2e/autoscaler/test_many.py
e2e: WORKERS = 3
e2e: $(VENV)/.dev ## Build a real control plane once, run the same scenarios on it; KUBERNETES=1.36, SCHEDULER=1.30, FEATURE_GATES, RUNTIME_CONFIG
	$(BIN)/python -m tools.build
	$(BIN)/python -m bench.processes.goprograms
	MOORAGE_E2E=1 $(PYTEST) $(E2E)

chaos: $(VENV)/.dev ## Break Moorage's processes and links in every known way under load, judge by the audit log; FULL=1 MINUTES=n SEED=n
	PYTHONPATH=.:sdk $(BIN)/python -m tools.chaos $(if $(FULL),--full) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)") $(if $(REAL),--real) $(if $(RESULT),--result $(RESULT))

chaos-mutations: $(VENV)/.dev ## Take out one safeguard after another, and show that make chaos fails then
	PYTHONPATH=.:sdk $(BIN)/python -m tools.mutations chaos $(if $(ONLY),--only "$(ONLY)") $(if $(SEED),--seed $(SEED))

manifests: $(VENV)/.dev ## Write deploy/install and deploy/files again from the chart (builds Helm on first use)
	$(BIN)/python -m tools.manifests.rendering

clean: ## Remove the virtual environment and caches
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Moorage needs Python 3.11 or newer, %s is %s" % (sys.executable, sys.version.split()[0])) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not create $(VENV). On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/.run: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	@echo "Installing the locked development tools into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.peers: requirements-peers.lock $(VENV)/.dev
	@echo "Installing the locked FastAPI into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-peers.lock
	@touch $@
