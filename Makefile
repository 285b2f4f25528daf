# Everything works from a fresh clone on a machine with python3 (3.11+), git and make.
PYTHON ?= python3
BIN := .venv/bin
# Test processes side by side. Most tests wait for processes most of the time, so more than the cores.
WORKERS ?= 3
# AGAIN=1 runs only the tests that failed last time, with `make test` and with `make e2e`.
override AGAIN := $(if $(AGAIN),--last-failed --last-failed-no-failures=none)

.DEFAULT_GOAL := help
.PHONY: help dist sbom demo up test fuzz audit soak docs docs-linkcheck lint protos protos-check lock image bench bench-quick e2e chaos chaos-mutations manifests clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}'

demo: .venv/.run ## Schedule a small workload with six real processes, print where each pod went and why
	$(BIN)/moorage up --once --nodes deploy/demo/nodes.yaml --pods deploy/demo/pods.yaml --config deploy/demo/policy.yaml

up: .venv/.run ## The same, but keep it running: kubectl works against it until Ctrl-C
	$(BIN)/moorage up --nodes deploy/demo/nodes.yaml --pods deploy/demo/pods.yaml --config deploy/demo/policy.yaml

test: .venv/.dev ## Run every test that this machine can run
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(AGAIN) $(TESTS)

MINUTES ?= 30
soak: .venv/.dev ## Run under steady churn for MINUTES=30, fail if memory, descriptors or threads keep growing
	$(BIN)/python -m tools.soak --minutes $(MINUTES)

# All targets together, each for BUDGET seconds at most. SEED repeats a run; KEEP=1 adds the new cases to tools/fuzz/corpus.
CASES ?= 200000
fuzz: .venv/.fuzz ## Feed 200,000 mutated bodies, messages, policies ... to what reads them (CASES, BUDGET, SEED, TARGETS, KEEP=1)
	$(BIN)/python -m tools.fuzz --cases $(CASES) $(if $(BUDGET),--budget $(BUDGET)) $(if $(SEED),--seed $(SEED)) $(if $(TARGETS),--targets $(TARGETS)) $(if $(KEEP),--keep)

lint: .venv/.dev protos-check ## Check style, types, layers, protos and public API (also against the last release's), generated code, workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.:sdk $(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format -d --exit-code
	@rm -rf .venv/released && $(BIN)/python -m tools.release.released .venv/released protos buf.yaml
	$(BIN)/buf breaking --against .venv/released
	$(BIN)/python -m tools.release.public_api
	$(BIN)/zizmor --offline --quiet --no-progress --persona=pedantic .github
	$(BIN)/hadolint deploy/Dockerfile

# The same commit gives the same bytes. A release sets MOORAGE_HOME, the address of the repository's page.
BUILD := SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -d
dist: .venv/.dev ## Build wheel and source distribution into dist/packages, twice, and fail if the two differ
	@rm -rf dist/packages .venv/packages
	@$(BUILD) dist/packages && $(BUILD) .venv/packages
	@diff -r dist/packages .venv/packages
	$(BIN)/twine check --strict dist/packages/*

sbom: .venv/.dev ## Write the software bill of materials into dist: the locked dependencies, as CycloneDX
	@mkdir -p dist
	$(BIN)/python -W ignore -m cyclonedx_py requirements requirements-image.lock --pyproject pyproject.toml \
	  --mc-type application --output-reproducible -o dist/moorage-$$($(BIN)/python -c 'import moorage; print(moorage.__version__)').cdx.json

# Where the data about vulnerabilities cannot be reached, that is one line and no failure.
audit: .venv/.dev ## Check the dependencies: licences, known vulnerabilities (pip checks the hashes of the locks)
	$(BIN)/pip-licenses --summary
	@rm -f .venv/audit.json
	@$(BIN)/pip-audit --disable-pip -r requirements-dev.lock --progress-spinner off -f json -o .venv/audit.json 2> .venv/audit.log; code=$$?; \
	 if [ ! -s .venv/audit.json ]; then echo "known vulnerabilities: not checked, as pip-audit reaches no data (.venv/audit.log)"; exit 0; fi; \
	 tail -1 .venv/audit.log; echo "$$(grep -o '"skip_reason"' .venv/audit.json | wc -l) packages are unknown to pip-audit"; \
	 [ $$code = 0 ] || { cat .venv/audit.json; exit $$code; }

SPHINX := $(BIN)/sphinx-build -c docs -d .venv/docs/doctrees -j 2
docs: .venv/.dev ## Build the documentation site into .venv/docs/html; a warning is a failure
	$(SPHINX) -q -E -a -W --keep-going -b html . .venv/docs/html
	@$(BIN)/python -m tools.docs.site

docs-linkcheck: .venv/.dev ## Ask every external link of the documentation whether it is still there (needs the network)
	$(SPHINX) -q -b linkcheck . .venv/docs/linkcheck

PROTOS := $(wildcard protos/moorage/v1/*.proto)
define generate
	$(BIN)/python -m grpc_tools.protoc -Iprotos --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	  --python_out=$(1) --mypy_out=quiet:$(1) $(PROTOS)
	$(BIN)/python -m grpc_tools.protoc -Iprotos --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
	  --grpc_python_out=$(1) --mypy_grpc_out=quiet,only_async:$(1) $(filter-out %/types.proto %/journal.proto,$(PROTOS))
endef

protos: .venv/.dev ## Write the generated protobuf code again (sdk/moorage/v1)
	$(call generate,sdk)

protos-check: .venv/.dev
	@rm -rf .venv/protos && mkdir -p .venv/protos
	@$(call generate,.venv/protos)
	@diff -r -x __init__.py -x __pycache__ .venv/protos/moorage/v1 sdk/moorage/v1 \
	  || { echo "sdk/moorage/v1 is stale: run 'make protos' and commit the result"; exit 1; }

LOCK := $(or $(wildcard $(BIN)/uv),uv) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-annotate --no-header
lock: ## Resolve the dependencies again into requirements*.lock (needs uv)
	$(LOCK) pyproject.toml --group build -o requirements.lock
	$(LOCK) pyproject.toml --extra otel --group build --group dev --group docs -c requirements.lock -o requirements-dev.lock
	$(LOCK) pyproject.toml --extra otel -c requirements-dev.lock -o requirements-image.lock
	$(LOCK) --group pyproject.toml:build -c requirements.lock -o requirements-build.lock
	$(LOCK) --group pyproject.toml:fuzz -c requirements-dev.lock -o requirements-fuzz.lock

image: .venv/.dev ## Build the image into dist/image as an OCI layout, without a container engine (PYTHON_IMAGE: another base)
	$(BIN)/python -m tools.image $(if $(PYTHON_IMAGE),--python-image $(PYTHON_IMAGE))

bench: .venv/.dev ## Measure everything beside Go extenders, print tables and plots, fail if a budget is missed
	$(BIN)/python -m bench

bench-quick: .venv/.dev ## The same in a minute and a half: filter and prioritize only, few rounds
	$(BIN)/python -m bench --quick

e2e: WORKERS = 2
e2e: .venv/.dev ## Build a real control plane once, run the same scenarios on it, print a table
	$(BIN)/python -m tools.build
	$(BIN)/python -m bench.processes.goprograms
	MOORAGE_E2E=1 $(BIN)/pytest -n $(WORKERS) --dist loadgroup $(AGAIN) tests/scenarios tests/e2e tests/bench/edge

chaos: .venv/.dev ## Break Moorage's processes and links in every known way under load, judge by the audit log; FULL=1 MINUTES=n SEED=n
	PYTHONPATH=.:sdk $(BIN)/python -m tools.chaos $(if $(FULL),--full) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)") $(if $(REAL),--real) $(if $(WRITE),--write)

chaos-mutations: .venv/.dev ## Take out one safeguard after another, and show that make chaos fails then
	PYTHONPATH=.:sdk $(BIN)/python -m tools.chaos.mutations $(if $(ONLY),--only "$(ONLY)") $(if $(SEED),--seed $(SEED))

manifests: .venv/.dev ## Write deploy/install and deploy/files again from the chart (builds Helm on first use)
	$(BIN)/python -m tools.manifests.rendering

clean: ## Remove the virtual environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Moorage needs Python 3.11 or newer, %s is %s" % (sys.executable, sys.version.split()[0])) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Could not create .venv. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing the locked dependencies into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.run
	@echo "Installing the locked development tools into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

.venv/.fuzz: requirements-fuzz.lock .venv/.dev
	@echo "Installing the locked fuzzer into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	@touch $@
