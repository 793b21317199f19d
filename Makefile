# Duetime. `make` alone lists what there is; every target prepares .venv by itself.
.DEFAULT_GOAL := help
.PHONY: setup run test check quick-tests bench fmt lint types layers ui screenshots docs lock clean help

# Modules are compiled once, not by each of the hundreds of processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
PYTEST_FLAGS ?=
# One more than the cores of a small machine: many tests wait for a process, a disk or a clock.
WORKERS ?= 3
# A worker that has nothing left takes over from the busiest; without that, all of the slow tests of the web UI, near the end, go to one.
PARALLEL = -n $(WORKERS) --dist worksteal
ARGS ?=

setup: ## make .venv with the locked requirements (quick when nothing changed)
	@PYTHON="$(PYTHON)" tools/setup

run: setup ## start a node on a SQLite file: make run ARGS="--app tasks:app"
	$(BIN)/duetime serve $(ARGS)

test: setup lint types layers ## everything: checks, then all tests, PostgreSQL included
	$(PYTEST) $(PARALLEL) $(PYTEST_FLAGS)

check: setup ## the quick loop: checks, unit tests, the engine on memory and SQLite
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target quick-tests lint types layers

quick-tests: setup
	$(PYTEST) -q -m "not postgres and not slow" $(PARALLEL) $(PYTEST_FLAGS) tests/app tests/layers tests/stores tests/unit

bench: setup ## measure speed: make bench ARGS="--help"
	$(BIN)/python -m bench $(ARGS)

fmt: setup ## format the code and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: setup ## style, without changing anything
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## mypy, strict; and the web UI against the API
	$(BIN)/mypy
	$(BIN)/python tools/ui_types.py --check
	$(BIN)/python tools/build_ui.py --check

layers: setup ## the dependency law
	$(BIN)/lint-imports --no-cache

ui: setup ## the web UI anew, with its types from the API
	$(BIN)/python tools/ui_types.py
	$(BIN)/python tools/build_ui.py

screenshots: setup ## pictures of every page into docs/images/
	$(BIN)/python -m tests.ui.screenshots

docs: setup ## write the reference pages anew from the code
	$(BIN)/python tools/reference.py

lock: setup ## refresh the hashed requirements
	@tools/lock

clean: ## remove .venv, caches and built files
	rm -rf .venv dist build ui/node_modules src/duetime/_ui .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
