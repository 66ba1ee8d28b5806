# Python 3.11 or newer, git and make are enough: the first target that needs it builds .venv from
# the lock. "make help" lists what there is.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
LOCK := .ci/requirements.lock
PEERS := .ci/benchmarks.lock
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo test check format dev lock docs bench crash chaos e2e browser clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z.]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The stamp carries the lock's date: a new lock rebuilds, and nothing else does.
.venv/locked: $(LOCK) pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/it")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv/locked ## a sample platform, a sample ERP, repeats, delays, one crash, a closing table
	$(BIN)/laufzettel demo

test: .venv/locked ## all tests but the slow suites below
	$(PYTEST) -n $(WORKERS) --ignore=tests/benchmarks --ignore=tests/browser

check: .venv/locked ## lint, format, types, import layers, tidiness: before every commit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(PYTEST) -q tests/tidy
	.ci/audit

format: .venv/locked ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

dev: .venv/locked ## only build .venv
	@echo "next: . .venv/bin/activate"

crash: .venv/locked ## hours: every point, pair of points and fault, a whole fleet, a million events
	$(PYTEST) -n $(WORKERS) tests/crash tests/e2e/test_fleet.py tests/e2e/test_fault_table.py \
	  tests/contract/test_interleavings.py tests/contract/test_sequencer_storm.py --all-pairs

chaos: .venv/locked ## the core in a million steps of trouble on a virtual clock, each seed repeatable
	$(BIN)/python -m tests.simulation --steps $(or $(STEPS),1000000) --first $(or $(SEED),0)

e2e browser: .venv/locked ## real processes; the console in Chromium
	$(PYTEST) tests/$@

bench: .venv/locked ## what it costs, as ratios within one run; KEEP=1 writes the figures down
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(PEERS)
	$(PYTEST) -q -s tests/benchmarks $(if $(KEEP),--keep-figures)

docs: .venv/locked ## the generated pages
	$(BIN)/python docs/make_requirements.py
	$(BIN)/python docs/make_profiles.py
	$(BIN)/python docs/make_dashboard.py

lock: .venv/locked ## take the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --quiet -o $(LOCK)
	$(BIN)/uv pip compile pyproject.toml --extra bench --constraint $(LOCK) --universal \
	  --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --quiet -o $(PEERS)

clean: ## remove .venv and what the tools left
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
