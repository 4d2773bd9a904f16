# make run        judge the sample feed, needs Python 3.11+ alone
# make test       everything that must hold before a change is taken; needs Java 17 and Maven, for Kafka and HBase
# make test-core  the same without servers, needs Python alone
# make test-load  the long forms of some tests, one after the other; about 25 minutes on two cores of its own
# make chaos      forty faults in the whole consumer, six ways, then 100,000 messages of which half are hostile; takes an hour and
#                 a half, the same again: make chaos SEED=123
# make stack-up   Kafka and HBase on this machine; make stack-status, make stack-down
# make compose-test  docker-compose.yml for real, with docker or podman; takes about 3 minutes, and 6 more for the images once
# make mutants SEED=1  120 changes of the code drawn by a seed, each against the tests that could see it; takes about an hour
# make bench      side by side with what else there is; takes about 25 minutes, quick ones: make bench BENCH=--quick

PYTHON ?= python3
BIN := .venv/bin
OUT := out/sample
# Python compiles what is imported when it is; pip would compile all there is, which takes as long as the rest.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Where the environment says otherwise every one of the tests' many processes would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-core test-load checks lint types contracts servers unit unit-core stack-up stack-down stack-status bench
.PHONY: chaos compose-test mutants format clean

run: .venv/run.stamp
	@rm -rf $(OUT) && mkdir -p $(OUT)
	@$(BIN)/dupwatch run --source sample/feed.jsonl --sink $(OUT)/verdicts.jsonl --store lmdb:$(OUT)/store --emit all --show

# The tests wait for their servers half of the time; the checks use it.
test:
	@$(MAKE) --no-print-directory --jobs=2 servers .venv/test.stamp
	@$(MAKE) --no-print-directory --jobs=2 unit checks

test-core: checks unit-core

checks: lint types contracts

lint: .venv/test.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types: .venv/test.stamp
	$(BIN)/mypy

contracts: .venv/test.stamp
	$(BIN)/lint-imports

# Java, Maven and the servers' jars, Chromium, Prometheus, kustomize. Where something is missing and may not be installed, it says what.
servers: .venv/run.stamp
	@$(BIN)/python -m deploy.local.fetch >/dev/null
	@$(BIN)/python -m deploy.kubernetes.tools >/dev/null

unit: servers .venv/test.stamp
	$(BIN)/pytest

unit-core: .venv/test.stamp
	$(BIN)/pytest -m "not servers and not load and not chaos and not compose"

test-load: servers .venv/test.stamp
	TEST_LOAD_SEED=$(SEED) $(BIN)/pytest -n 0 -m load --log-cli-level=INFO $(LOAD)

chaos: servers .venv/test.stamp
	CHAOS_SEED=$(SEED) $(BIN)/pytest -m chaos -n 0 --capture=no tests/chaos/kafka $(CHAOS)

compose-test: .venv/test.stamp
	$(BIN)/pytest -m compose -n 0 --capture=no tests/compose $(COMPOSE_TESTS)

stack-up: .venv/run.stamp
	@$(BIN)/python -m deploy.local.fetch --servers-only >/dev/null
	@$(BIN)/python -m deploy.local.stack up

stack-down: .venv/run.stamp
	@$(BIN)/python -m deploy.local.stack down

stack-status: .venv/run.stamp
	@$(BIN)/python -m deploy.local.stack status

mutants: servers .venv/mutation.stamp
	$(BIN)/python -m tests.mutation --seed $(SEED) $(MUTANTS)

bench: .venv/bench.stamp
	$(BIN)/python -m benchmarks.speed $(BENCH)

format: .venv/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dupwatch needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "This Python makes no virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

.venv/run.stamp: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Setting up .venv (once) ..." >&2
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/test.stamp: requirements-test.lock .venv/run.stamp | .venv/bin/python
	@echo "Adding what the tests need ..." >&2
	@$(PIP) --require-hashes -r requirements-test.lock
	@touch $@

.venv/bench.stamp: requirements-bench.lock .venv/run.stamp | .venv/bin/python
	@echo "Adding what is measured against ..." >&2
	@$(PIP) --require-hashes -r requirements-bench.lock
	@touch $@

.venv/mutation.stamp: requirements-mutation.lock .venv/test.stamp | .venv/bin/python
	@echo "Adding what changes the code that tests are tried on ..." >&2
	@$(PIP) --require-hashes -r requirements-mutation.lock
	@touch $@
