# Every target makes the environment it needs first; `make help` lists them.
#   PYTHON=python3.13 make test   another interpreter (3.11 or newer)
#   VENV=/tmp/env make run        another place for the environment
#   make run ARGS="demo"          arguments for gputop
#   make test ARGS="-k units"     arguments for pytest

VENV ?= .venv
PYTHON ?=
ARGS ?=
export VENV PYTHON

BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	--python-version 3.11

.DEFAULT_GOAL := help
# `make -j` would take the terminal away from gputop.
.NOTPARALLEL:

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r name text; do \
		printf '  make %-14s %s\n' "$$name" "$$text"; done

.PHONY: run
run: ## Start gputop on what this machine has, or on its demo
	@sh scripts/environment run
	@$(BIN)/gputop $(ARGS)

.PHONY: test
test: environment ## Run the tests that need no server and no GPU
	$(PYTEST) -m "not bench and not gpu and not real_prometheus" $(ARGS)

.PHONY: test-servers
test-servers: environment ## Run the tests against a real Prometheus (skipped without one, unless CI=true)
	$(PYTEST) -m real_prometheus $(ARGS)

.PHONY: lint
lint: environment ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: environment ## Check types
	$(BIN)/pyright

.PHONY: contracts
contracts: environment ## Check which part may import which
	$(BIN)/lint-imports

.PHONY: check
check: lint types contracts test ## All of the above but the servers

.PHONY: bench
bench: environment ## Measure speed and memory beside nvitop and a bare Textual app
	$(PYTEST) -m bench -s -o faulthandler_timeout=0 $(ARGS)

.PHONY: gpu-check
gpu-check: environment ## Check against the real NVIDIA GPU of this machine
	GPUTOP_REQUIRE_GPU=1 $(BIN)/python -m tests.gpu.check $(ARGS)

.PHONY: screenshots
screenshots: environment ## Draw the pictures in screenshots/ anew
	GPUTOP_WRITE_SCREENSHOTS=1 $(PYTEST) tests/e2e -k screenshot $(ARGS)

.PHONY: docs
docs: environment ## Write docs/configuration.md and docs/keys.md anew from their tables
	$(BIN)/python -m gputop.config.document docs

.PHONY: lock
lock: environment ## Pin the newest dependencies anew
	$(LOCK) --upgrade --extra dev pyproject.toml -o requirements.lock
	echo "setuptools>=77" | $(LOCK) --constraint requirements.lock pyproject.toml - -o requirements-run.lock

.PHONY: environment
environment: ## Make or update the environment for development
	@sh scripts/environment dev

.PHONY: clean
clean: ## Remove the environment, caches and build results
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .coverage bench-results
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
