# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # what it sets is for those who source it
# What the shell tests share. A test sources it, calls `check` once for each fact it verifies, and
# ends with `finish`. Output is TAP, for prove. Everything a test makes is in $work, and every
# process that it starts through `start` is ended when the test ends, however it ends.

set -u
export LC_ALL=C
unset NO_COLOR DEBUGINFOD_URLS

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${PROFIL_BUILD:-$top/build}
profiltool=$build/profiltool
progs=$build/tests/progs
data=${PROFIL_TEST_DATA:-$top/../shared/data}
work=$(mktemp -d "${TMPDIR:-/tmp}/profil-test.XXXXXX")
export TMPDIR=$work

count=0
failures=0
started=()

# check NAME COMMAND...: one test; passes when the command succeeds. Its output is shown if not.
check() {
	local name=$1
	shift
	count=$((count + 1))
	if "$@" >"$work/check.out" 2>&1; then
		echo "ok $count - $name"
	else
		failures=$((failures + 1))
		echo "not ok $count - $name"
		echo "# $*" | head -c 500
		echo
		sed 's/^/# /' "$work/check.out" | head -n 40
	fi
}

# skip NAME WHY: a test that cannot run here; a failure when the run is strict.
skip() {
	count=$((count + 1))
	if [ -n "${PROFIL_TEST_STRICT:-}" ]; then
		failures=$((failures + 1))
		echo "not ok $count - $1 (cannot run: $2)"
	else
		echo "ok $count - $1 # SKIP $2"
	fi
}

finish() {
	echo "1..$count"
	exit $((failures > 0))
}

# start COMMAND...: runs it in the background; $pid is its process. Output goes to $work/start.PID.
start() {
	"$@" >"$work/start.out" 2>&1 &
	pid=$!
	started+=("$pid")
}

# start_ready COMMAND...: the same, and waits until it has printed "ready".
start_ready() {
	: >"$work/start.out"
	start "$@"
	wait_for grep -q ready "$work/start.out"
}

# stop PID: ends a started process and waits for it.
stop() {
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# wait_for COMMAND...: until it succeeds, 20 seconds at most.
wait_for() {
	local end=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
}

# status COMMAND...: prints the exit status; the output goes to $work/out and $work/err.
status() {
	"$@" >"$work/out" 2>"$work/err"
	echo $?
}

# exits CODE COMMAND...: whether the command exits so; shows its messages when not.
exits() {
	local expected=$1 got
	shift
	got=$(status "$@")
	[ "$got" -eq "$expected" ] && return
	echo "exit status $got, not $expected: $*"
	cat "$work/err"
	return 1
}

# says TEXT: whether the last command run by `status` or `exits` had it in its messages.
says() {
	grep -qF -- "$1" "$work/err" && return
	echo "not said: $1"
	cat "$work/err"
	return 1
}

# json EXPRESSION FILE: evaluates a Python expression over the parsed JSON, `j`; true or false.
json() {
	python3 -c '
import json, sys
j = json.load(open(sys.argv[2]))
value = eval(sys.argv[1])
print(value)
sys.exit(not value)' "$1" "$2"
}

cleanup() {
	local p
	for p in "${started[@]}"; do
		kill -KILL "$p" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
