#!/usr/bin/env bash
# Runs all tests with cargo-nextest, or with cargo test where it is not installed. Arguments go to the runner; its own closing
# line is the last one printed.
set -euo pipefail
cd "$(dirname "$0")/.."

if cargo nextest --version >/dev/null 2>&1; then
    profile=default
    [ -z "${CI:-}" ] || profile=ci
    exec cargo nextest run --locked --profile "$profile" "$@"
fi
printf 'test: cargo-nextest is not installed, using cargo test\n' >&2
# --show-output: suites print what they ran and what they skipped.
exec cargo test --locked --no-fail-fast --tests "$@" -- --show-output
