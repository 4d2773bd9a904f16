# make run        judge the sample feed; needs only Python 3.11 or newer
# make extras     install the packages of all extras into .venv; make run installs those of the console and of serve
# make test       all checks and tests that a change must pass; needs Java 17 and Maven for Kafka and HBase, PostgreSQL
# make test-light  the same without servers; needs only Python
# make core       build and install the compiled engine; needs cargo and rustc 1.88 or newer; without it Python does its work
# make dist       the wheels of dupwatch and of the compiled engine, in dist; make dist DEPS=1 adds those of all packages
#                 that they need, for this Python and platform
# make wheels     the compiled engine as a wheel for every Linux on x86_64 with glibc 2.17 or newer, in core/target/wheels
# make test-load  long versions of some tests, then all examples and cases of those that draw some in make test
# make chaos      forty faults in the whole consumer, six ways, then 100,000 messages, half of them hostile, then on a cluster;
#                 takes two hours and a half; to repeat a run: make chaos SEED=123; a part: make chaos CHAOS="-k cluster"
# make stack-up   start Kafka and HBase on this machine; see also make stack-status and make stack-down; with CLUSTER=1
#                 three brokers and two region servers
# make compose-test  run docker-compose.yml with docker or podman; about 3 minutes, plus 10 to build the images once
# make helm-test  test the Helm chart, compare it with the Kubernetes overlays, and record that; Go builds Helm once
# make images REGISTRY=registry.example.org  build the images of the Kubernetes overlays and push them to that registry,
#                 with docker, or with ENGINE=podman
# make mutants SEED=1  120 random changes of the code, each against the tests that could notice it; takes about an hour
# make bench      compare the speed with other libraries; takes about 25 minutes, or less with make bench BENCH=--quick
# make pictures   make the pictures in docs/images again, from dupwatch demo; takes about a minute
# make format     format the code and fix what the linter can fix
# make clean      remove .venv, out, dist and all caches

PYTHON ?= python3
BIN := .venv/bin
OUT := out/sample
DIST := dist
WHEELS := core/target/wheels
# Without --no-compile pip compiles every module, which doubles the time; Python compiles what it imports.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PIP_WHEEL := $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(DIST)
# When make run began, in seconds, for what it says at its end.
BEGAN := $(if $(filter run,$(or $(MAKECMDGOALS),run)),$(shell date +%s))

# With this variable set, each of the many processes of the tests would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# The compiled engine is built and tested where cargo and a new enough rustc are installed, and always in CI.
CARGO := $(shell command -v cargo >/dev/null && $(or $(wildcard $(BIN)/python),$(PYTHON)) -m deploy.core.rust 2>/dev/null && echo yes)
WITH_CORE := $(if $(CARGO)$(CI),yes)
# The tests that draw some of their examples and cases in make test.
DRAWING := tests/unit tests/retrieval tests/protocol tests/contract tests/chaos/test_kept_set.py \
    tests/chaos/kafka/test_hostile_feed.py tests/cli/test_every_command.py tests/cli/test_secrets.py \
    tests/browser tests/cli/serve/test_contract.py tests/deploy/test_rules.py tests/deploy/kubernetes/test_overlays.py \
    tests/hbase/test_memory.py tests/console \
    $(patsubst %,tests/kafka/test_%.py,aborted_transactions backdating hostile_records poison run slow_store source unpacking)
MANIFEST := --manifest-path core/Cargo.toml --locked
CORE_SOURCES := core/Cargo.toml core/Cargo.lock core/build.rs core/pyproject.toml core/THIRD_PARTY \
    LICENSE NOTICE $(wildcard consumer/workers/*.tsv) $(shell find core/src core/build -name '*.rs' 2>/dev/null)

# Tests use an engine without link-time optimisation, with which cargo compiles every crate twice, once for the Python module
# and once for the engine's own tests, and with several code generation units, which are compiled side by side.
# `make core`, `make wheels` and `make bench` optimise.
ifneq ($(filter test test-light checks rust unit unit-light,$(MAKECMDGOALS)),)
export CARGO_PROFILE_RELEASE_LTO := off
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
endif
CORE := .venv/core$(if $(filter off,$(CARGO_PROFILE_RELEASE_LTO)),-of-tests).stamp

.PHONY: run test test-light test-load checks lint types contracts rust servers bytecode unit unit-light stack-up stack-down
.PHONY: images extras dist core rust-toolchain wheels stack-status bench chaos compose-test helm-test mutants pictures
.PHONY: format clean

run: .venv/run.stamp
	@rm -rf $(OUT) && mkdir -p $(OUT)
	@$(BIN)/dupwatch run --source sample/feed.jsonl --sink $(OUT)/verdicts.jsonl --store lmdb:$(OUT)/store --emit all --show
	@echo "A whole page, both Chinese scripts, texts without keywords, and a part (sample/pages_and_scripts.jsonl):"
	@$(BIN)/dupwatch run --source sample/pages_and_scripts.jsonl --sink $(OUT)/pages.jsonl --store lmdb:$(OUT)/pages \
	    --set source.body_format=article --set judge.parts=true --emit all --show
	@echo "Reposts under another headline and with a comment, found by the profile posts, not by news (sample/posts.jsonl):"
	@$(BIN)/dupwatch run --source sample/posts.jsonl --sink $(OUT)/posts.jsonl --store lmdb:$(OUT)/posts \
	    --set judge.profile=posts --emit all --show
	@echo "Banks: spam in a longer post, a slogan, and a notice that everybody may repeat (sample/known_texts.jsonl):"
	@$(BIN)/dupwatch run --source sample/known_texts.jsonl --sink $(OUT)/known.jsonl --store lmdb:$(OUT)/known \
	    --set banks.url=sample/banks.jsonl --emit all --show
# $(shell) runs before the first of these lines, when the packages are there; $$(date) runs now.
	@echo "Setting up took $$(($(shell date +%s) - $(BEGAN))) s, judging the samples $$(($$(date +%s) - $(shell date +%s))) s."

extras: .venv/extras.stamp

# The tests spend half of their time waiting for servers; run the checks meanwhile.
test: $(if $(WITH_CORE),rust-toolchain)
	@$(MAKE) --no-print-directory --jobs=3 servers bytecode $(if $(WITH_CORE),core)
	@$(MAKE) --no-print-directory --jobs=2 unit checks

test-light: $(if $(WITH_CORE),rust-toolchain core) checks unit-light

checks: lint types contracts $(if $(WITH_CORE),rust)

lint: .venv/test.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types: .venv/test.stamp
	$(BIN)/mypy

contracts: .venv/test.stamp
	$(BIN)/lint-imports

# In the profile of the build, so that crates are compiled once. All tests are in the library; without --lib cargo would
# also build the Python module again.
rust: export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
rust: core
	cargo fmt --manifest-path core/Cargo.toml --check
	cargo clippy $(MANIFEST) --release --all-targets --quiet -- -D warnings
	cargo test $(MANIFEST) --release --quiet --lib

# Java, Maven, the jars of the servers and of OpenAPI Generator, PostgreSQL, Chromium, Prometheus and kustomize. Reports
# what is missing and not installable.
servers: .venv/run.stamp
	@$(BIN)/python -m deploy.local.fetch >/dev/null
	@$(BIN)/python -m deploy.kubernetes.tools >/dev/null
	@$(BIN)/python -m deploy.openapi.generator

# Five workers would each compile all tests at the same time. What fails here fails in the run.
bytecode: .venv/test.stamp
	@$(BIN)/pytest --collect-only --quiet -n 0 >/dev/null 2>&1 || true

unit: servers .venv/test.stamp $(if $(WITH_CORE),core,no-core)
	REQUIRE_CORE=$(if $(WITH_CORE),1) $(BIN)/pytest

unit-light: .venv/test.stamp $(if $(WITH_CORE),core,no-core)
	REQUIRE_CORE=$(if $(WITH_CORE),1) $(BIN)/pytest -m "not servers and not load and not chaos and not compose and not helm"

test-load: servers .venv/test.stamp .venv/recipes.stamp
	TEST_LOAD_SEED=$(SEED) $(BIN)/pytest -n 0 -m load --log-cli-level=INFO $(LOAD)
	$(if $(LOAD),,TEST_ALL_EXAMPLES=1 $(BIN)/pytest $(DRAWING) -m "not load and not chaos")

chaos: servers .venv/test.stamp
	CHAOS_SEED=$(SEED) $(BIN)/pytest -m chaos -n 0 --capture=no tests/chaos/kafka $(CHAOS)

compose-test: .venv/test.stamp
	$(BIN)/pytest -m compose -n 0 --capture=no tests/compose $(COMPOSE_TESTS)

# make test checks that this was run: the comparison records digests of the chart and of the overlays.
helm-test: .venv/test.stamp
	$(BIN)/pytest -m helm -n 0 tests/deploy/helm
	$(BIN)/python -m deploy.helm.comparison

ENGINE ?= docker
# The images of docker-compose.yml by the names that the overlays have: REGISTRY/NAME:TAG.
IMAGE = $(REGISTRY)/$(1):$(shell sed -n 's|.* localhost/$(1):||p' docker-compose.yml | head -n 1)

images:
	@[ -n "$(REGISTRY)" ] || { echo "Name a registry: make images REGISTRY=registry.example.org" >&2; exit 2; }
	$(ENGINE) build -f deploy/docker/consumer.Dockerfile -t $(call IMAGE,dupwatch) .
	$(ENGINE) build -f deploy/docker/hbase.Dockerfile -t $(call IMAGE,dupwatch-hbase) .
	$(ENGINE) push $(call IMAGE,dupwatch)
	$(ENGINE) push $(call IMAGE,dupwatch-hbase)

core: rust-toolchain $(CORE)

# Before anything else, or what is missing would be said at the end of pages that pip prints.
rust-toolchain: | .venv/bin/python
	@$(BIN)/python -m deploy.core.rust

.PHONY: no-core
no-core:
	@echo "Without a Rust that is new enough (see make core) the compiled engine is neither built nor tested." >&2

# dupwatch is on no index: this folder is what it is installed from. `sha256sum --check SHA256SUMS` tells whether all of it
# has arrived elsewhere.
dist: .venv/run.stamp
	@mkdir -p $(DIST) && rm -f $(DIST)/*.whl $(DIST)/SHA256SUMS
	@$(PIP_WHEEL) --no-deps --no-build-isolation .
	@$(if $(CARGO),$(MAKE) --no-print-directory wheels WHEELS=$(DIST),$(BIN)/python -m deploy.core.rust || true)
	@$(if $(DEPS),$(PIP_WHEEL) --use-pep517 --require-hashes -r requirements-extras.lock)
	@cd $(DIST) && sha256sum *.whl >SHA256SUMS && echo "$(DIST) has $$(ls *.whl | wc -l) wheels."

wheels: rust-toolchain .venv/run.stamp
	@$(PIP) --require-hashes -r requirements-wheels.lock
	@PATH="$(CURDIR)/$(BIN):$$PATH" PYO3_PYTHON="$(CURDIR)/$(BIN)/python" $(BIN)/maturin build --release --locked --zig \
	    --compatibility manylinux2014 --manifest-path core/Cargo.toml --out $(WHEELS)

stack-up: .venv/run.stamp
	@$(BIN)/python -m deploy.local.fetch --servers-only >/dev/null
	@$(BIN)/python -m deploy.local.stack up $(if $(CLUSTER),--cluster)

stack-down: .venv/run.stamp
	@$(BIN)/python -m deploy.local.stack down

stack-status: .venv/run.stamp
	@$(BIN)/python -m deploy.local.stack status

mutants: servers .venv/mutation.stamp
	$(BIN)/python -m tests.mutation --seed $(SEED) $(MUTANTS)

bench: .venv/bench.stamp $(if $(CARGO),core)
	$(BIN)/python -m benchmarks.speed $(BENCH)

pictures: servers .venv/test.stamp
	$(BIN)/python -m tests.browser.pictures

format: .venv/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(if $(CARGO),cargo fmt --manifest-path core/Cargo.toml)

clean:
	rm -rf .venv out dist core/target .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dupwatch needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "This Python cannot create virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }

.venv/run.stamp: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Setting up .venv (once) ..." >&2
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/extras.stamp: requirements-extras.lock .venv/run.stamp | .venv/bin/python
	@echo "Installing the packages of all extras ..." >&2
	@$(PIP) --require-hashes -r requirements-extras.lock
	@touch $@

.venv/test.stamp: requirements-test.lock .venv/run.stamp | .venv/bin/python
	@echo "Installing test dependencies ..." >&2
	@$(PIP) --require-hashes -r requirements-test.lock
	@touch $@

$(CORE): $(CORE_SOURCES) requirements-core.lock .venv/run.stamp | rust-toolchain
	@echo "Building the compiled engine ..." >&2
	@$(PIP) --require-hashes -r requirements-core.lock
	@PATH="$(CURDIR)/$(BIN):$$PATH" PYO3_PYTHON="$(CURDIR)/$(BIN)/python" $(PIP) --no-deps --no-build-isolation --force-reinstall ./core
	@rm -f .venv/core.stamp .venv/core-of-tests.stamp
	@touch $@

.venv/bench.stamp: requirements-bench.lock .venv/run.stamp | .venv/bin/python
	@echo "Installing benchmark dependencies ..." >&2
	@$(PIP) --require-hashes -r requirements-bench.lock
	@touch $@

# The programs of sample/recipes/quix run in an environment of their own.
.venv/recipes.stamp: requirements-recipes.lock | .venv/bin/python
	@echo "Installing Quix Streams into .venv/recipes ..." >&2
	@$(BIN)/python -m venv --clear .venv/recipes
	@.venv/recipes/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-recipes.lock
	@touch $@

.venv/mutation.stamp: requirements-mutation.lock .venv/test.stamp | .venv/bin/python
	@echo "Installing mutation test dependencies ..." >&2
	@$(PIP) --require-hashes -r requirements-mutation.lock
	@touch $@
