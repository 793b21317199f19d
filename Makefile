# Duetime. `make` alone lists the targets; every target prepares .venv first.
.DEFAULT_GOAL := help
.PHONY: setup run momentum fleet test check quick-tests soak soak-kills soak-planners soak-upgrade soak-simulation mutants bench bench-guard fmt lint types types-python types-ui layers ui screenshots docs site manifests lock start start-scale start-fleet start-test key logs stop image-test clean help

# Modules are compiled once, not by each of the hundreds of processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
PYTEST_FLAGS ?=
# Twice the cores of a small machine: many tests wait for a process, a disk or a clock.
WORKERS ?= 4
# Of `make soak-simulation`, which takes a quarter of a second of CPU time for each.
SEEDS ?= 0-1999
# An idle worker takes tests from the busiest. Otherwise one worker gets all slow tests of the web UI.
PARALLEL = -n $(WORKERS) --dist worksteal
FAILED = -n 0 --last-failed --last-failed-no-failures=none -p tools.flaky_tests
# The suites of servers are not even collected: half of the tests, in every worker.
QUICK = tests/app tests/layers tests/stores tests/unit $(patsubst %,--ignore=tests/stores/test_%.py,mysql postgres redis)
ARGS ?=

setup: ## create .venv with the locked requirements (quick when nothing changed)
	@PYTHON="$(PYTHON)" tools/setup

run: ## start a node on a SQLite file: make run ARGS="--app tasks:app"
	@PYTHON="$(PYTHON)" tools/setup build
	$(BIN)/duetime serve $(ARGS)

momentum: ## start Momentum with a local LinkedIn: http://127.0.0.1:8081
	@PYTHON="$(PYTHON)" tools/setup build
	$(BIN)/momentum serve --demo $(ARGS)

fleet: setup ## start a fleet on this machine: make fleet ARGS="--broker redis"
	$(BIN)/python -m tests.servers.fleet $(ARGS)

test: setup ## everything: checks, then all tests, PostgreSQL included
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types layers
	@# Tests start servers, kill processes and wait for clocks: beside others one may fail for want of a processor.
	@# Those that failed run once more, one after another, and must pass then. The end of the run lists them.
	$(PYTEST) $(PARALLEL) $(PYTEST_FLAGS) || { [ $$? -eq 1 ] && $(PYTEST) $(FAILED) $(PYTEST_FLAGS); }

check: setup ## quick: checks, unit tests, the engine on memory and SQLite
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target quick-tests lint types layers

quick-tests: setup
	$(PYTEST) -q -m "not server and not slow" $(PARALLEL) $(PYTEST_FLAGS) $(QUICK)

soak: setup ## kill a planner, a worker and the broker under load: make soak ARGS="--broker nats"
	$(BIN)/python -m tests.faults.broker_kills $(ARGS)

soak-kills: setup ## kill workers at random, and the server, on every store: make soak-kills ARGS="--store sqlite --kills 40 --minutes 2"
	$(BIN)/python -m tests.faults.random_kills $(ARGS)

soak-planners: setup ## planners join, are killed, stopped and leave: make soak-planners ARGS="--leases etcd"
	$(BIN)/python -m tests.faults.planners $(ARGS)

soak-upgrade: setup ## two versions on one database through a migration, under kills: make soak-upgrade ARGS="--kills 100"
	$(BIN)/python -m tests.faults.two_versions $(ARGS)

soak-simulation: setup ## simulate many seeds: make soak-simulation SEEDS=0-4999 ARGS="--broker"
	$(BIN)/python -m duetime.testing.simulation --seeds $(SEEDS) --workers $(WORKERS) $(ARGS)

mutants: setup ## break the statements of each store; its tests must notice: make mutants ARGS="--store postgres"
	$(PYTEST) -q -n $(WORKERS) --dist loadgroup $(PYTEST_FLAGS) tests/mutants/find_mutants.py $(ARGS)

bench: setup ## measure speed: make bench ARGS="--help"
	$(BIN)/python -m bench $(ARGS)

bench-guard: setup ## what a job costs in instructions, against the baseline (valgrind): ARGS=--update writes it
	@$(BIN)/python -m bench.guard $(ARGS)

fmt: setup ## format Python and the web UI, and fix what the linter can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python tools/build_ui.py --format

lint: setup ## check style without changing files
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: types-python types-ui ## check types: mypy, and the web UI against the API

types-python: setup
	$(BIN)/mypy

types-ui: setup
	$(BIN)/python tools/ui_types.py --check
	$(BIN)/python tools/build_ui.py --check

layers: setup ## the rules of which package imports which
	$(BIN)/lint-imports --no-cache

ui: setup ## build the web UI, with its types from the API
	$(BIN)/python tools/ui_types.py
	$(BIN)/python tools/build_ui.py

screenshots: setup ## take the pictures of the documentation into docs/images/
	$(BIN)/python -m tests.ui.screenshots

docs: setup ## generate the reference pages from the code
	$(BIN)/python -m tools.reference

site: setup ## build the documentation as a static site with search: build/documentation/site
	$(BIN)/python tools/docs_site.py

manifests: setup ## render the Helm chart into deploy/kubernetes/
	$(BIN)/python -m tools.manifests

start: ## with containers: one node on a SQLite file
	@deploy/run start single

start-scale: ## with containers: two nodes on PostgreSQL behind a proxy
	@deploy/run start scale

start-fleet: ## with containers: PostgreSQL, RabbitMQ, API, planners, workers
	@deploy/run start fleet

start-test: ## with containers: one node and an HTTP agent, http://mock-agent:5678
	@deploy/run start test

key: ## one more API key for the containers
	@deploy/run key

logs: ## of the containers
	@deploy/run logs

stop: ## end the containers; their data stay
	@deploy/run stop

image-test: setup ## build the image without a registry and run it (root, Debian, some minutes)
	$(PYTEST) -n 0 $(PYTEST_FLAGS) tests/deploy/image_tests.py

lock: setup ## refresh the hashed requirements
	@tools/lock

clean: ## remove .venv, caches and built files
	rm -rf .venv dist build ui/node_modules src/duetime/_ui src/momentum/_ui .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
