#!/bin/sh
# Ends one server of the tests once nobody uses it any more, also when its user was killed and could not clean up.
#
#   supervise.sh DIR PIDFILE LOCK IDLE
#
# A user holds a shared flock on DIR/lease; the kernel lets go of it when the user's process ends. This script waits until no
# lock is left, grants IDLE seconds to a next user, and then, under LOCK (which a new user takes before it joins), stops the
# server whose id is in PIDFILE and removes DIR.
trap '' HUP INT
dir=$1 pidfile=$2 lock=$3 idle=$4

# True while the process runs and works inside DIR: a number that another process got meanwhile is left alone.
ours() {
    case $(readlink "/proc/$1/cwd" 2>/dev/null) in "$dir" | "$dir"/*) return 0 ;; *) return 1 ;; esac
}

while [ -d "$dir" ]; do
    flock -x "$dir/lease" true 2>/dev/null || exit 0
    [ "$idle" -eq 0 ] || sleep "$idle"
    [ -d "$dir" ] || exit 0
    exec 9>>"$lock"
    flock -x 9
    if flock -n -x "$dir/lease" true; then
        read -r pid <"$pidfile" 2>/dev/null || pid=
        if [ -n "$pid" ] && ours "$pid"; then
            kill -QUIT "$pid"
            tries=0
            while ours "$pid" && [ "$tries" -lt 100 ]; do
                sleep 0.1
                tries=$((tries + 1))
            done
            ours "$pid" && kill -KILL "$pid"
        fi
        # A user killed while it set the server up leaves an initdb that still writes for a moment.
        tries=0
        until rm -rf "$dir" 2>/dev/null || [ "$tries" -ge 10 ]; do
            sleep 1
            tries=$((tries + 1))
        done
        sleep 1
        rm -rf "$dir"
        exit 0
    fi
    exec 9>&-
done
