# `make up` to use it, `make test` to test it, `make quick` while working on it, `make check` for
# everything that CI runs.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin

# Without compiled bytecode every start costs five times as much.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup dev up demo quick test long test-postgres programs check lint types layers e2e-clients prove bench docs lock clean

help:  ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Interlock needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

# The packages are locked with their hashes; --no-deps says that the lock is the whole truth.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
.venv/runtime: .venv/pyvenv.cfg requirements.txt pyproject.toml
	$(INSTALL) --require-hashes -r requirements.txt
	$(INSTALL) --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

.venv/dev: .venv/runtime requirements-dev.txt
	$(INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@

setup: .venv/runtime  ## Make the environment; the command is .venv/bin/interlock

dev: .venv/dev

up: setup  ## Set up and start the server with the console
	@$(BIN)/interlock up

demo: setup  ## A scripted agent plays a workflow: kill -9, a rewind, a blocked attempt, a resume
	@$(BIN)/interlock demo

# Clients that others wrote, locked like the packages: the MCP inspector, the protocol's conformance suite, and the agent clients.
CLIENTS := tests/inspector/node_modules/.stamp tests/conformance/node_modules/.stamp tests/e2e/node_modules/.stamp

# More processes than most machines have cores: a third of the time they wait for other processes.
PYTEST := $(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

# How much is tried, and what is left out in a hurry: tests/effort.py.
quick: dev  ## Run the core, the adapters and the use cases without PostgreSQL
	@INTERLOCK_TEST_EFFORT=quick $(PYTEST) --numprocesses 2 --quiet tests/test_*.py tests/core tests/store tests/workspace tests/app

test: dev programs $(CLIENTS)  ## Install what the tests need and run them all, with fixed seeds
	@$(PYTEST)

long: dev programs $(CLIENTS)  ## Run them with ten times the examples and rounds, and other seeds
	@INTERLOCK_TEST_EFFORT=long $(PYTEST) --timeout 7200
	@$(MAKE) -s test-postgres

# `make test` tries the contract of a store, what is killed, and what is marked `both_stores` with both
# engines, on clusters that the tests start and throw away. Here everything else that does not depend
# on files is tried with PostgreSQL as well.
test-postgres: dev  ## Run the tests of the surfaces once more, with their stores in PostgreSQL
	@INTERLOCK_TEST_STORE=postgres $(PYTEST) \
		tests/store tests/app tests/mcp tests/hooks tests/cli tests/server/test_live_changes.py tests/server/test_mcp_http.py \
		tests/server/test_processes.py tests/server/test_worker.py tests/server/test_group_commit.py

# The browser tests need Chromium, and those of poolers pgbouncer; without them they say so and are skipped.
# The headless shell is Chromium without its own windows and menus, which cost half of the time.
programs:  ## Install Debian's Chromium and pgbouncer for the tests, if they are missing
	@if ! (command -v chromium-headless-shell && command -v pgbouncer) >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		(apt-get update -qq && apt-get install -y -qq chromium-headless-shell pgbouncer) >/dev/null 2>&1 || true; fi
	@command -v chromium-headless-shell chromium >/dev/null || echo 'NOT TESTED: Chromium is not here, so the console is not seen in a browser' >&2
	@command -v pgbouncer >/dev/null || echo 'NOT TESTED: pgbouncer is not here, so the store is not tried behind a pooler' >&2

# npm may be missing, or may not answer: the tests that need it then say so and are skipped.
NPM := npm install --silent --no-save --ignore-scripts --no-fund --no-audit --fetch-retries=1
tests/%/node_modules/.stamp: tests/%/package-lock.json
	@start=$$SECONDS; if command -v npm >/dev/null && (cd tests/$* && $(NPM)); then \
		touch $@; echo "npm: tests/$*, $$((SECONDS - start)) s"; \
	else echo 'NOT TESTED: npm is not here or did not answer, so tests/$* has no client to test with' >&2; fi

# The conformance suite needs Node 22; where there is an older one, a newer comes with it.
tests/conformance/node_modules/.stamp: NPM += $(shell node -e 'process.exit(+(parseInt(process.versions.node) < 22))' 2>/dev/null && echo --omit=optional)

check: dev  ## Everything that CI runs, in the order that fails fastest
	@for suite in lint types layers; do start=$$SECONDS; \
		$(MAKE) -s $$suite || exit 1; echo "$$suite: $$((SECONDS - start)) s"; done
	@$(MAKE) -s test

lint: dev
	@$(BIN)/ruff check src tests bench docs
	@$(BIN)/ruff format --check --quiet src tests bench docs || { echo 'run: ruff format src tests bench docs'; exit 1; }

types: dev
	@$(BIN)/pyright --warnings

layers: dev
	@$(BIN)/lint-imports

# A part of it is in `make test`.
e2e-clients: dev tests/e2e/node_modules/.stamp  ## Drive the real agent clients, without network, against a scripted model
	@INTERLOCK_TEST_CLIENTS=whole $(PYTEST) tests/e2e

prove: dev  ## Break the code in every known way and see the tests notice
	$(BIN)/python -m tests.prove

bench: dev  ## Measure, and print one table
	$(BIN)/python -m bench

docs: dev  ## Write the reference from the code
	$(BIN)/python docs/reference/generate.py

lock: .venv/dev  ## Resolve the dependencies anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra setup pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra setup --extra dev --extra driver pyproject.toml -o requirements-dev.txt

clean:  ## Remove what the other targets made
	rm -rf .venv tests/inspector/node_modules tests/conformance/node_modules tests/e2e/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
