# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # what it sets is for those who source it
# What the shell tests share. A test sources it, calls `check` once for each fact it verifies, and
# ends with `finish`. Output is TAP, for prove. Everything a test makes is in $work, and every
# process that it starts through `start` or `begin` is ended when the test ends, however it ends.

set -u

# ignored_signals: a mask of those that are ignored, but for the two of glibc itself (32, 33), which
# posix_spawn(3) has make's programs ignore, and nobody can change.
ignored_signals() {
	local mask
	mask=$(sed -n 's/^SigIgn:[[:blank:]]*//p' /proc/self/status)
	echo $((0x$mask & ~(3 << 31)))
}

# What nohup, or a script that runs this in the background, lets a process ignore, a shell cannot
# take back; tests rely on it that signals end what they are sent to.
if [ "$(ignored_signals)" -ne 0 ] && [ -z "${PROFIL_TEST_SIGNALS:-}" ]; then
	PROFIL_TEST_SIGNALS=default exec env --default-signal "$0" "$@"
fi
unset PROFIL_TEST_SIGNALS

export LC_ALL=C TERM=xterm
unset NO_COLOR DEBUGINFOD_URLS

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${PROFIL_BUILD:-$top/build}
profiltool=$build/profiltool
progs=$build/tests/progs
data=$top/tests/data
work=$(mktemp -d "${TMPDIR:-/tmp}/profil-test.XXXXXX")
export TMPDIR=$work

count=0
failures=0
declare -A started=() # the processes that the test has started, and when; -PID: a process group

# In front of a command: it is killed when the shell that starts it ends, by SIGKILL as well. Not
# for what is to outlive a subshell.
leash=(setpriv --pdeathsig KILL)

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

# check_recorded NAME COMMAND...: a test of what was recorded here, which `make check` as a user cannot.
check_recorded() {
	if [ "$(id -u)" -eq 0 ]; then
		check "$@"
	else
		skip "$1" "recording needs root"
	fi
}

finish() {
	echo "1..$count"
	exit $((failures > 0))
}

# leashed COMMAND...: so, unless it is a function, in a subshell of its own.
leashed() {
	[ "$(type -t "$1")" = function ] || exec "${leash[@]}" "$@"
	"$@"
}

# stolen_since: the nanoseconds that the host has not let this machine run, in steps of 10 ms, since
# stolen_mark: since the last program was started. Meanwhile ticks come late, or several as one; and
# the kernel charges nobody for that time, so that there are more ticks for the CPU time that it knows.
stolen_mark() {
	stolen_before=0
	stolen_before=$(stolen_since)
}
stolen_since() {
	local stolen

	read -r _ _ _ _ _ _ _ _ stolen _ </proc/stat
	echo $((stolen * 10000000 - stolen_before))
}
stolen_mark

# start COMMAND...: runs it in the background; $pid is its process. Output goes to $work/start.PID.
start() {
	stolen_mark
	leashed "$@" >"$work/start.out" 2>&1 &
	pid=$!
	note_started "$pid"
}

# start_ready COMMAND...: the same, and waits until it has printed "ready".
start_ready() {
	: >"$work/start.out"
	start "$@"
	wait_for grep -q ready "$work/start.out"
}

# note_started PID...: they are ended when the test ends. By then their numbers may be others'.
note_started() {
	local process
	for process; do
		find_birth "$process"
		started[$process]=$birth
	done
}

# find_birth PID: sets $birth to when it was born, in ticks since the machine was; empty: it is gone.
find_birth() {
	local fields
	birth=
	{ read -r fields <"/proc/${1#-}/stat"; } 2>/dev/null || return 0
	# Behind the program's name, which may hold anything, proc(5)'s fields from the third on.
	# shellcheck disable=SC2086 # words
	set -- ${fields##*) }
	birth=${20}
}

# cpu_ms PID: the CPU time that it has used, in milliseconds, in steps of 10.
cpu_ms() {
	local fields
	{ read -r fields <"/proc/$1/stat"; } 2>/dev/null || return
	# shellcheck disable=SC2086 # words
	set -- ${fields##*) }
	echo $(((${12} + ${13}) * 10))
}

# has_used PID MS: whether that is so much; or it has ended.
has_used() {
	local used
	! used=$(cpu_ms "$1") || [ "$used" -ge "$2" ]
}

# end_started PID: kills it, unless it has ended.
end_started() {
	find_birth "$1"
	# A group may have lost its first process; nobody else can have the number then.
	if [ -n "$birth" ]; then
		[ "$birth" = "${started[$1]-$birth}" ] || return 0
	elif [[ $1 != -* ]]; then
		return 0
	fi
	kill -KILL -- "$1" 2>/dev/null
}

# stop PID: ends a started process and waits for it.
stop() {
	end_started "$1"
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

# terminal COLUMNS COMMAND...: runs it with its output on a terminal so wide, and prints what came
# there.
terminal() {
	python3 -c '
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(sys.argv[1]), 0, 0))
child = subprocess.Popen(sys.argv[2:], stdout=slave, stderr=subprocess.DEVNULL)
os.close(slave)
output = b""
try:
	while True:
		output += os.read(master, 65536)
except OSError: # it has ended
	pass
os.write(1, output.replace(b"\r\n", b"\n"))
sys.exit(child.wait())' "$@"
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
	for p in "${!started[@]}"; do
		end_started "$p"
	done
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

# begin NAME COMMAND...: starts a program that prints "ready" and then waits for what `tell` sends
# to its standard input. Its output is in $work/NAME.out; $pid is its process.
begin() {
	local name=$1
	shift
	mkfifo "$work/$name.in"
	: >"$work/$name.out"
	stolen_mark
	leashed "$@" <>"$work/$name.in" >"$work/$name.out" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for grep -q ready "$work/$name.out"
}

# tell NAME LINE: sends a line to a program that was begun.
tell() {
	echo "$2" 1<>"$work/$1.in" # with a reader, so as not to wait for one that has ended
}

# record_begin NAME OPTION...: starts profiltool and waits until it records. Its output is in
# $work/NAME.json and $work/NAME.err; $recorder is its process.
record_begin() {
	local name=$1
	shift
	stolen_mark
	"${leash[@]}" "$profiltool" "$@" >"$work/$name.json" 2>"$work/$name.err" &
	recorder=$!
	note_started "$recorder"
	wait_for records "$recorder"
}

# records PID: whether that profiltool waits for events: it does so once it has attached.
records() {
	grep -q poll "/proc/$1/wchan" || ! kill -0 "$1"
}

# recorded EXPRESSION FILE: as `json`, for what record --json prints, with these names besides:
#   whole           the account adds up to the tick, and the functions' samples to what was counted
#   samples(NAME)   of the functions whose name is NAME, or begins so when NAME ends in "*"
#   share(NAME)     the same in percent of all
#   images(NAME)    the base names of the files that they are in
#   ticked          the CPU time that the ticks stand for, in nanoseconds
# and whether a number can be so, or is too far off to be chance (tests/chance.py):
#   is_share(COUNT, LOW, HIGH, of=ALL)  of the samples (ALL, or all that were counted), the part LOW,
#                   or one between LOW and HIGH, is in COUNT, a number or a function
#   is_cpu(NS, COUNT, tasks=N, least=L, most=M)  the ticks (or COUNT) are those of that CPU time, in
#                   N threads and processes that begin or end meanwhile; or of L to M times as much
recorded() {
	PYTHONPATH=$top/tests stolen_ns=$(stolen_since) python3 -c '
import chance, json, os, sys
j = json.load(open(sys.argv[2]))
def rows(name):
	return [f for f in j["functions"]
		if f["name"] == name or name[-1] == "*" and f["name"].startswith(name[:-1])]
def samples(name):
	return sum(f["self"] for f in rows(name))
def share(name):
	return 100 * samples(name) / max(1, j["counted"])
def images(name):
	return {os.path.basename(f["image"]) for f in rows(name)}
def is_share(count, low, high=None, of=None):
	count = samples(count) if isinstance(count, str) else count
	return chance.is_share(count, j["counted"] if of is None else of, low, high)
def is_cpu(ns, count=None, tasks=1, least=1, most=1):
	stolen = int(os.environ["stolen_ns"])
	return chance.is_rate(j["ticks"] if count is None else count,
		(ns * least - stolen) / j["period_ns"] - tasks,
		(ns * most + stolen) / j["period_ns"] + 1)
ticked = j["ticks"] * j["period_ns"]
whole = (sum(f["self"] for f in j["functions"]) == j["counted"] and
	 j["ticks"] == j["counted"] + j["out_of_range"] + j["excluded"] + sum(j["lost"].values()))
value = eval(sys.argv[1])
if not value:
	for f in j["functions"][:10]:
		print(f["self"], f["name"], f["image"])
	print({k: v for k, v in j.items() if k != "functions"})
sys.exit(not value)' "$1" "$2"
}

# dumped KEY FILE: the value of a line of the header that `dump` prints.
dumped() {
	"$profiltool" dump "$2" | sed -n "s/^$1 //p"
}

# told_cpu NAME: the CPU time in nanoseconds that a program which was begun has printed.
told_cpu() {
	sed -n 's/^cpu_ns //p' "$work/$1.out"
}

# A child that a signal ends between fork and exec runs the trap of its shell, too: not its affair.
trap '[ "$BASHPID" = $$ ] && cleanup' EXIT
