# payonce: run it, test it, measure it. `make` on its own lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo serve test bench fmt lint setup

# Arguments for the command behind a target.
ARGS ?=
# Lints and tests are built with one set of features, so that no dependency is built twice.
FEATURES := --workspace --all-features
# The interpreter that the interop tests run the channels' SDKs with.
export PAYONCE_PYTHON ?= $(CURDIR)/.venv/bin/python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nArguments go through: make demo ARGS="--database postgres://… --channel alipay"\n'

demo: ## Play every failure story and print what was charged; the first build takes minutes
	@scripts/setup.sh demo
	@cargo run --locked -p payonce-cli -- demo $(ARGS)

serve: ## Run the service with the sandbox in one process, on an SQLite file
	@scripts/setup.sh demo
	@cargo run --locked -p payonce-cli -- serve --sandbox $(ARGS)

test: setup ## Format, lints, tidy checks and all tests; installs what they need on Debian
	cargo fmt --all --check
	cargo clippy --locked $(FEATURES) --all-targets -- -D warnings
	cargo run --locked --quiet -p xtask -- tidy
	cargo test --locked --quiet $(FEATURES) --doc
	scripts/test.sh $(FEATURES)

bench: ## Measure throughput and latency; figures also as JSON Lines under target/bench/
	@scripts/setup.sh test
	@scripts/bench.sh $(ARGS)

fmt: ## Format the code
	cargo fmt --all

lint: ## Lints and tidy checks
	cargo fmt --all --check
	cargo clippy --locked $(FEATURES) --all-targets -- -D warnings
	cargo run --locked --quiet -p xtask -- tidy

setup: ## Install what the tests need (Debian: PostgreSQL, PgBouncer, Python SDKs)
	@scripts/setup.sh test
