#!/usr/bin/env bash
# Builds the benchmark in release mode and runs it: figures as a table here, as JSON Lines in target/bench/.
# Arguments go to the benchmark: --rounds N, --seconds S.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet -p payonce-bench
exec target/release/payonce-bench "$@"
