#!/usr/bin/env bash
# Installs what payonce needs on a Debian machine. Safe to repeat: what is there already is left alone and not mentioned.
#
#   scripts/setup.sh demo    what `make demo` and `make serve` need: a C compiler, and Rust, which is only checked for
#   scripts/setup.sh test    also what the tests need: PostgreSQL's server programs, PgBouncer, flock, Python with the channels' SDKs
#
# It starts no service and makes no database cluster: tests run servers of their own, on loopback, and stop them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly POLICY=/usr/sbin/policy-rc.d
readonly NO_CLUSTER=/etc/postgresql-common/createcluster.d/payonce-setup.conf
undo=()

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
    say "$1"
    say "hint: $2"
    exit 2
}

clean_up() {
    local path
    for path in "${undo[@]}"; do
        as_root rm -f "$path"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "installing needs root, and there is no sudo" "run 'scripts/setup.sh $mode' once as root"
    fi
}

# SQLite and the crypto library are built from source.
check_rust() {
    command -v cargo >/dev/null || fail "no Rust toolchain (cargo)" "install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or later with rustup"
}

has_postgres() {
    local bin
    for bin in /usr/lib/postgresql/*/bin; do
        [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] && return 0
    done
    command -v initdb >/dev/null && command -v postgres >/dev/null
}

has_pgbouncer() { [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null; }

# The interpreter to make the virtual environment with: Debian's own where it can, else the one on PATH.
pick_python() {
    local candidate
    for candidate in /usr/bin/python3 python3; do
        if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# Debian starts what it installs, and makes a cluster "main" along with PostgreSQL. Neither is wanted here, so both are
# switched off while the packages are unpacked; settings that the machine had before stay.
hold_services_back() {
    if [ ! -e "$POLICY" ]; then
        undo+=("$POLICY")
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
        as_root chmod 755 "$POLICY"
    fi
    undo+=("$NO_CLUSTER")
    as_root mkdir -p "$(dirname "$NO_CLUSTER")"
    printf 'create_main_cluster = false\n' | as_root tee "$NO_CLUSTER" >/dev/null
}

install_packages() {
    local missing=()
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    if [ "$mode" = test ]; then
        has_postgres || missing+=(postgresql)
        has_pgbouncer || missing+=(pgbouncer)
        pick_python >/dev/null || missing+=(python3 python3-venv)
        command -v flock >/dev/null || missing+=(util-linux)
        command -v curl >/dev/null || missing+=(curl)
    fi
    [ "${#missing[@]}" -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "missing: ${missing[*]}, and there is no apt-get" "install them with this system's package manager"
    say "installing with apt-get: ${missing[*]}"
    trap clean_up EXIT
    hold_services_back
    as_root apt-get update -q >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
    clean_up
    undo=()
    command -v cc >/dev/null || fail "there is still no C compiler (cc)" "look at apt-get's output above"
    [ "$mode" = test ] || return 0
    has_postgres || fail "PostgreSQL's server programs are still missing" "look at apt-get's output above"
    has_pgbouncer || fail "PgBouncer is still missing" "look at apt-get's output above"
}

pip_install() {
    # --no-compile: one SDK has thousands of modules, of which the tests import a few.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "$@" >&2
}

install_python_packages() {
    local python stamp wanted
    python=$(pick_python) || fail "no python3 with venv" "apt-get install python3 python3-venv"
    wanted=$(cat tests/interop/requirements*.txt; "$python" --version)
    stamp=.venv/payonce-setup
    if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    say "making .venv with the channels' SDKs for the interop tests"
    "$python" -m venv --clear .venv
    pip_install --requirement tests/interop/requirements.txt
    pip_install --use-pep517 --no-deps --target .venv/python-alipay-sdk --requirement tests/interop/requirements-python-alipay-sdk.txt
    printf '%s\n' "$wanted" >"$stamp"
}

mode=${1:-}
case $mode in
demo)
    check_rust
    install_packages
    ;;
test)
    check_rust
    install_packages
    install_python_packages
    ;;
*)
    fail "unknown mode '$mode'" "scripts/setup.sh demo | test"
    ;;
esac
