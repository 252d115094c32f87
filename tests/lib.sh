# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # scripts that source it use the variables
# Functions that the shell tests share. A test sources this file, calls `check` once for each fact that
# it verifies, and ends with `finish`. The output is TAP, for prove. All files of a test are in $work.
# Processes that it starts by `start` or `begin` are ended when the test ends, for whatever reason.

set -u

# ignored_signals: prints a mask of the ignored signals, without glibc's own two (32, 33), which
# posix_spawn(3) makes the programs of make ignore, and which cannot be changed.
ignored_signals() {
	local mask
	mask=$(sed -n 's/^SigIgn:[[:blank:]]*//p' /proc/self/status)
	echo $((0x$mask & ~(3 << 31)))
}

# A shell cannot reset signals that nohup, or a script that runs this in the background, made it ignore;
# tests rely on signals to end processes.
if [ "$(ignored_signals)" -ne 0 ] && [ -z "${PROFIL_TEST_SIGNALS:-}" ]; then
	PROFIL_TEST_SIGNALS=default exec env --default-signal "$0" "$@"
fi
unset PROFIL_TEST_SIGNALS

export LC_ALL=C TERM=xterm
umask 022 # some rows are about who may read a file
export PYTHONDONTWRITEBYTECODE=1 # nothing is left among the sources
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
declare -A started=() # start times of the processes that the test started; -PID: a process group

# A prefix for commands: the kernel kills the command when the shell that started it ends, also by SIGKILL.
# Not for processes that outlive a subshell.
pdeathsig=(setpriv --pdeathsig KILL)

# A prefix for commands whose code made at run time is to have no names: an ended process that had the same PID,
# of another test maybe, may have left a map. The command stays the only process.
mapless=(perl -e 'unlink "/tmp/perf-$$.map"; exec @ARGV' --)

# check NAME COMMAND...: one test, which passes if the command succeeds. Prints its output if it fails.
check() {
	local name=$1
	shift
	local passed=
	"$@" >"$work/check.out" 2>&1 && passed=1
	if [ -e "$work/no_terminal" ]; then # whether it passed or not: what it asks for was not there
		rm "$work/no_terminal"
		skip "$name" "no terminal can be made here"
		return
	fi
	count=$((count + 1))
	if [ -n "$passed" ]; then
		echo "ok $count - $name"
	else
		failures=$((failures + 1))
		echo "not ok $count - $name"
		echo "# $*" | head -c 500
		echo
		sed 's/^/# /' "$work/check.out" | head -n 40
	fi
}

# skip NAME WHY: reports a test that cannot run here; a failure if the run is strict.
skip() {
	count=$((count + 1))
	if [ -n "${PROFIL_TEST_STRICT:-}" ]; then
		failures=$((failures + 1))
		echo "not ok $count - $1 (cannot run: $2)"
	else
		echo "ok $count - $1 # SKIP $2"
	fi
}

# has_terminals NAME: succeeds if a terminal can be made here, as in a container without /dev/ptmx it cannot. Otherwise there
# is a row instead of those of NAME. Rows that call `terminal` need not ask.
has_terminals() {
	python3 -S -c 'import pty; pty.openpty()' 2>/dev/null && return
	skip "$1" "no terminal can be made here"
	return 1
}

# runs_32_bit NAME: succeeds if 32-bit programs can be compiled and run here. Otherwise there is a row instead of those of
# NAME: it cannot run where the compiler makes none; it holds where the kernel executes none, whatever is installed, as in
# virtual machines under PVM: tests/kernels runs such programs on Debian's kernels.
runs_32_bit() {
	local status

	if ! [ -e "$work/runs_32_bit" ] &&
		! echo "int main(void) { return 0; }" | gcc -m32 -x c - -o "$work/runs_32_bit" 2>/dev/null; then
		skip "$1" "gcc -m32 does not work here"
		return 1
	fi
	"$work/runs_32_bit" 2>/dev/null
	status=$?
	[ "$status" -eq 0 ] || check "$1: this kernel executes none, ENOEXEC" test "$status" -eq 126
	[ "$status" -eq 0 ]
}

# check_rows: one row for each block on standard input, for commands whose output is compared. An empty line ends a block:
#
#   NAME diff of one profile alone is a mistake
#   RUN "$profiltool" diff a.pb.gz
#   STATUS 2
#   EXPECT diff takes two profiles
#
# RUN is a command of this shell; STATUS its exit status, 0 if absent; each EXPECT is a text in one line of its output, or
# of its messages if it fails: then it must print nothing else.
check_rows() {
	local key value name="" run="" code=0 texts=()
	while read -r key value || [ -n "$name" ]; do
		case $key in
		NAME) name=$value ;;
		RUN) run=$value ;;
		STATUS) code=$value ;;
		EXPECT) texts+=("$value") ;;
		"")
			[ -z "$name" ] || check "$name" row_holds "$run" "$code" "${texts[@]}"
			name="" run="" code=0 texts=()
			;;
		*) check "a row has no \"$key\"" false ;;
		esac
	done
}

# row_holds RUN STATUS EXPECT...: runs a row of check_rows.
row_holds() {
	local run=$1 code=$2 stream=$work/out text
	shift 2
	exits "$code" eval "$run" </dev/null || return
	if [ "$code" -ne 0 ]; then
		stream=$work/err
		[ ! -s "$work/out" ] || { echo "it printed:" && cat "$work/out" && return 1; }
	fi
	for text; do
		grep -qF -- "$text" "$stream" || { echo "not printed: $text" && cat "$stream" && return 1; }
	done
}

# check_recorded NAME COMMAND...: like check, for a test that needs a recording: skipped without root.
check_recorded() {
	if [ "$(id -u)" -eq 0 ]; then
		check "$@"
	else
		skip "$1" "recording needs root"
	fi
}

finish() {
	[ ! -s "$in_vain" ] || check "nothing is waited for in vain" diff /dev/null "$in_vain"
	echo "1..$count"
	exit $((failures > 0))
}

# with_pdeathsig COMMAND...: executes a command with this prefix, or runs a function without it; for
# subshells.
with_pdeathsig() {
	[ "$(type -t "$1")" = function ] || exec "${pdeathsig[@]}" "$@"
	"$@"
}

# start COMMAND...: runs a command in the background; sets $pid, which has the command's name by then. Its output is in
# $work/start.out.
start() {
	need_program "$1"
	with_pdeathsig "$@" >"$work/start.out" 2>&1 &
	pid=$!
	note_started "$pid"
	[ "$(type -t "$1")" = function ] || wait_for executes_command "$pid"
}

# need_program PROGRAM: ends the test if this is the path of a file that is not there: it would be waited for in vain.
need_program() {
	[[ $1 != */* || -x $1 ]] && return
	echo "no $1: make build/tests/progs/${1##*/}, or make test, which builds all" >&2
	exit 1
}

# executes_command PID: succeeds if a process that with_pdeathsig began is neither this shell nor the prefix any more,
# or is gone.
executes_command() {
	local this_shell=() words=()
	mapfile -d '' this_shell <"/proc/$BASHPID/cmdline"
	mapfile -d '' words <"/proc/$1/cmdline"
	[ ${#words[@]} -gt 0 ] || [ ! -e "/proc/$1/exe" ] || return # it has none for a moment of execve(2)
	[ "${words[*]}" != "${this_shell[*]}" ] && [ "${words[*]:0:${#pdeathsig[@]}}" != "${pdeathsig[*]}" ]
}

# start_ready COMMAND...: like start, and waits until the command has printed "ready".
start_ready() {
	: >"$work/start.out"
	start "$@"
	wait_for has_text ready "$work/start.out"
}

# note_started PID...: has these processes ended when the test ends, unless others have their numbers by
# then.
note_started() {
	local process
	for process; do
		find_start_time "$process"
		started[$process]=$start_time
	done
}

# find_start_time PID: sets $start_time to that of a process, in clock ticks since boot; empty if it is gone.
find_start_time() {
	local fields
	start_time=
	{ read -r fields <"/proc/${1#-}/stat"; } 2>/dev/null || return 0
	# proc(5)'s fields from the third on: the second, the program's name, may contain anything.
	# shellcheck disable=SC2086 # words
	set -- ${fields##*) }
	start_time=${20}
}

# find_cpu_ms PID: sets $cpu_ms to the CPU time of a process in milliseconds, in steps of 10. Fails if it is gone.
find_cpu_ms() {
	local fields
	{ read -r fields <"/proc/$1/stat"; } 2>/dev/null || return
	# shellcheck disable=SC2086 # words
	set -- ${fields##*) }
	cpu_ms=$(((${12} + ${13}) * 10))
}

# cpu_ms PID: prints it.
cpu_ms() {
	find_cpu_ms "$1" && echo "$cpu_ms"
}

# has_used PID MS: succeeds if a process has used that much CPU time, or has ended.
has_used() {
	! find_cpu_ms "$1" || [ "$cpu_ms" -ge "$2" ]
}

# wait_for_use PID MS: waits until a process has used that much more CPU time, or has ended. In two halves, the second from
# when the first one is seen to be over: where a host stops the machine for longer than all of it, the process's clock
# goes on, and no tick comes.
wait_for_use() {
	local used
	for _ in 1 2; do
		used=$(cpu_ms "$1") || return 0
		wait_for has_used "$1" $((used + $2 / 2)) || return
	done
}

# end_started PID: kills a started process, or group -PID, unless it has ended.
end_started() {
	find_start_time "$1"
	# A group may outlive its leader; its number is not reused then.
	if [ -n "$start_time" ]; then
		[ "$start_time" = "${started[$1]-$start_time}" ] || return 0
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

# own_build_id: prints the linker's option for a build ID that no other program has. Equal sources and options
# make equal build IDs, so a test would find what others put below /usr/lib/debug for a moment.
own_build_id() {
	echo "-Wl,--build-id=0x$(od -An -N20 -tx1 /dev/urandom | tr -d ' \n')"
}

# wait_for COMMAND...: repeats a command until it succeeds; fails after two minutes, for others may want
# the CPUs. Then the test fails, also if it goes on.
wait_for() {
	local end=$((SECONDS + 120)) ms=10
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "$*" >>"$in_vain"; return 1; }
		rest 0.0$ms
		[ $ms -ge 80 ] || ms=$((ms * 2))
	done
}

# rest SECONDS: sleep(1) without a process, which would take more CPU time than what is waited for: nobody writes there.
rest() {
	local REPLY
	[ -p "$nothing" ] || mkfifo "$nothing"
	read -rt "$1" 2>/dev/null <>"$nothing"
	[ $? -gt 128 ] || sleep "$1"
}
nothing=$work/.nothing
in_vain=$work/.in_vain
export nothing in_vain
export -f wait_for rest # for scripts that tests write

# has_text TEXT FILE: like grep -qF, without a process.
has_text() {
	local in_file=()
	mapfile -t in_file <"$2"
	[[ ${in_file[*]} == *"$1"* ]]
}

# listens SOCKET: whether a process accepts connections there. The file is there before, for a moment in which they are
# refused. 00010000 is the flag __SO_ACCEPTCON, which listen(2) sets.
listens() {
	grep -q " 00010000 .* $1\$" /proc/net/unix
}

# status COMMAND...: prints the exit status of a command, whose output is in $work/out and $work/err.
status() {
	"$@" >"$work/out" 2>"$work/err"
	echo $?
}

# exits CODE COMMAND...: succeeds if the command has this exit status; prints its messages if not.
exits() {
	local expected=$1 got
	shift
	if [[ $1 == */* ]]; then
		"$@" >"$work/out" 2>"$work/err"
		got=$?
	else
		got=$(status "$@") # a function may change the shell
	fi
	[ "$got" -eq "$expected" ] && return
	echo "exit status $got, not $expected: $*"
	cat "$work/err"
	return 1
}

# says TEXT: succeeds if the last command of `status` or `exits` printed TEXT on standard error.
says() {
	has_text "$1" "$work/err" && return
	echo "not printed: $1"
	cat "$work/err"
	return 1
}

# terminal COLUMNS[xROWS] COMMAND...: runs a command on a terminal of that size, and prints its output; with ROWS,
# what it prints on standard error, too. Where no terminal can be made, the row that uses it is skipped.
terminal() {
	python3 -S -c '
import fcntl, os, pty, struct, subprocess, sys, termios
try:
	master, slave = pty.openpty()
except OSError:
	open(os.environ["TMPDIR"] + "/no_terminal", "w")
	sys.exit(1)
columns, _, rows = sys.argv[1].partition("x")
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows or 50), int(columns), 0, 0))
child = subprocess.Popen(sys.argv[2:], stdout=slave, stderr=slave if rows else subprocess.DEVNULL)
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

# json EXPRESSION FILE: succeeds if a Python expression over the parsed JSON, `j`, is true.
json() {
	python3 -S -c "$read_json"'
value = eval(sys.argv[1])
print(value)
sys.exit(not value)' "$1" "$2"
}

# For Python: sets j to the JSON in the file of the second argument; read(PATH) is that of another. The module json
# imports others that take longer than all else that a row does: this is the part of it that reads.
read_json='
import sys
from _json import make_scanner
class how:
	strict, object_hook, object_pairs_hook, memo = True, None, None, {}
	parse_int, parse_float, parse_constant = int, float, float
def read(path):
	text = open(path, encoding="utf-8").read().strip()
	value, end = make_scanner(how)(text, 0)
	assert end == len(text), "more than one value"
	return value
j = read(sys.argv[2])
'

cleanup() {
	local p
	for p in "${!started[@]}"; do
		end_started "$p"
	done
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT

# begin NAME COMMAND...: starts a program that prints "ready" and then reads its standard input, which
# `send_line` writes. Its output is in $work/NAME.out; sets $pid.
begin() {
	local name=$1
	shift
	need_program "$1"
	mkfifo "$work/$name.in"
	: >"$work/$name.out"
	with_pdeathsig "$@" <>"$work/$name.in" >"$work/$name.out" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for has_text ready "$work/$name.out"
}

# send_line NAME LINE: writes a line to the standard input of a program that `begin` started.
send_line() {
	echo "$2" 1<>"$work/$1.in" # for reading too, so that this does not block if the program has ended
}

# record_begin NAME OPTION...: starts profiltool and waits until it records. Its output is in
# $work/NAME.json and $work/NAME.err; sets $recorder to its PID.
record_begin() {
	local name=$1
	shift
	"${pdeathsig[@]}" "$profiltool" "$@" >"$work/$name.json" 2>"$work/$name.err" &
	recorder=$!
	note_started "$recorder"
	wait_for records "$recorder"
}

# records PID: succeeds if that profiltool waits for events, which it does once it has attached, or is gone.
records() {
	local wchan=""
	read -r wchan <"/proc/$1/wchan"
	[[ $wchan == *poll* ]] || ! kill -0 "$1"
}

# All recordings of the machine, those of other checkouts too, get the kernel's records of all processes. A test that
# makes more than a buffer holds must not run while another one has stopped its recorder, or judges by records that
# are complete.
#
# share_buffers: until free_buffers, no other test makes that many.
# flood_buffers: until free_buffers, no other test relies on having its records.
# The lock is on a file that exists wherever something can be recorded, so nothing is left behind. Processes that
# are started meanwhile inherit the descriptor: only free_buffers ends it.
lock_buffers() {
	exec {buffers}</sys/kernel/btf/vmlinux && flock "$1" "$buffers"
}
share_buffers() {
	lock_buffers --shared
}
flood_buffers() {
	lock_buffers --exclusive
}
free_buffers() {
	flock --unlock "$buffers"
	exec {buffers}<&-
}

# fill_buffers: makes more records on each CPU than its buffer of 512 kB holds, but not more than others can read
# meanwhile. All are short, so that no other record finds room at the end, nor that of the loss: the kernel
# reports it when the buffer has been read.
fill_buffers() {
	python3 -c '
import os, time
cpus = sorted(os.sched_getaffinity(0))
for cpu in cpus:
	if os.fork() == 0:
		os.sched_setaffinity(0, [cpu])
		comm = os.open("/proc/self/comm", os.O_WRONLY)
		for i in range(20000):
			os.write(comm, b"%d" % i)
			if i % 200 == 0:
				time.sleep(.001)
		os._exit(0)
for cpu in cpus:
	os.wait()'
}

# until_used PID MS COMMAND...: runs a command that records, and ends it as Ctrl-C does once the process has used that
# much CPU time meanwhile, or is gone: beside others that want a CPU it may get none for a second. Unless $awake is set,
# the process rests while the kernel verifies the recorder's programs, and while names are found, which takes twice as
# long beside it where tests share a CPU; and from then on, until SIGCONT or the next recording.
until_used() {
	local target=$1 ms=$2
	shift 2
	[ -n "${awake:-}" ] || kill -STOP "$target"
	"${pdeathsig[@]}" "$@" &
	recorder=$!
	note_started "$recorder"
	wait_for records "$recorder"
	[ -n "${awake:-}" ] || kill -CONT "$target"
	wait_for_use "$target" "$ms"
	[ -n "${awake:-}" ] || kill -STOP "$target" 2>/dev/null
	kill -INT "$recorder" 2>/dev/null
	wait "$recorder"
}

# record_end: ends what record_begin began. Fails if it does not end well.
record_end() {
	kill -INT "$recorder"
	wait "$recorder"
}

# begin_recorded NAME OPTIONS COMMAND...: begins a program, and a recording of it with these options, into
# $work/NAME.pb.gz; sets ${recorder_of[NAME]} to the recorder's PID.
declare -A recorder_of
begin_recorded() {
	local name=$1 options=$2
	shift 2
	begin "$name" "$@" || return 1
	# shellcheck disable=SC2086 # several words
	record_begin "$name" -p "$pid" $options --json -o "$work/$name.pb.gz"
	recorder_of[$name]=$recorder
}

# recordings_end NAME...: waits for recordings of begin_recorded to end, as they must when their targets do.
recordings_end() {
	local name

	for name; do
		wait "${recorder_of[$name]}"
		check "$name: the recording ends with its target, and succeeds" test $? -eq 0
	done
}

# recorded EXPRESSION FILE: like `json`, for the output of record --json, with these additional names:
#   accounted       true if each user stack is complete, or counted with the cause of its end, or as cut off
#   whole           true if the account adds up exactly, and the functions' samples to `counted`
#   samples(NAME)   samples of the functions named NAME, or with that prefix if NAME ends in "*"
#   total(NAME)     samples with such a function anywhere in the stack: where an interrupt or a fault costs much, the
#                   kernel's functions have the samples themselves
#   images(NAME)    the base names of the images of these functions
#   ticked          ticks times their period: CPU time in nanoseconds
# and tests, which are true however busy the machine is:
#   ran(NAME...)    each of these functions has samples
#   ranks(NAME...)  and more of them than the next one
#   mostly(COUNT, of=ALL)  a number, or the samples with a function in their stacks, is more than 70 % of ALL samples
#                   (default: all that were counted)
#   nearly_all(COUNT, of=ALL)  the same of 95 %, but for three samples: only for how many stacks are whole
#   takes(NS, COUNT)  the ticks (or COUNT) are roughly those of so much CPU time: a quarter of them at least, for the
#                   machine may stand still while its clocks go on, and fewer than if any counted twice
#   at_most(NS)     there are no more ticks than so much time has
recorded() {
	python3 -S -c "$read_json"'
def rows(name):
	return [f for f in j["functions"]
		if f["name"] == name or name[-1] == "*" and f["name"].startswith(name[:-1])]
def samples(name):
	return sum(f["self"] for f in rows(name))
def total(name):
	return sum(f.get("total", f["self"]) for f in rows(name))
def images(name):
	return {f["image"].split("/")[-1] for f in rows(name)}
def ran(*names):
	return all(map(samples, names))
def ranks(*names):
	return all(samples(a) > samples(b) for a, b in zip(names, names[1:])) and ran(*names)
def mostly(count, of=None):
	count = total(count) if isinstance(count, str) else count
	return count > .7 * (j["counted"] if of is None else of)
def nearly_all(count, of=None):
	return count >= .95 * (j["counted"] if of is None else of) - 3
def takes(ns, count=None):
	count = j["ticks"] if count is None else count
	return ns / 4 <= count * j["period_ns"] <= 1.75 * ns + 3 * j["period_ns"]
def at_most(ns):
	return 0 < ticked <= 1.1 * ns + 3 * j["period_ns"]
ticked = j["ticks"] * j["period_ns"]
whole = (sum(f["self"] for f in j["functions"]) == j["counted"] and
	 j["ticks"] == j["counted"] + j["out_of_range"] + j["excluded"] + sum(j["lost"].values()))
stacks = j.get("stacks", {})
accounted = stacks.get("user") == sum(e["count"] for e in stacks.get("ends", [])) + \
	stacks.get("complete", 0) + stacks.get("truncated", 0)
value = eval(sys.argv[1])
if not value:
	for f in j["functions"][:10]:
		print(f["self"], f["name"], f["image"])
	print({k: v for k, v in j.items() if k != "functions"})
sys.exit(not value)' "$1" "$2"
}

# dumped KEY FILE: prints the value of KEY in the header that `dump` prints.
dumped() {
	"$profiltool" dump "$2" | sed -n "s/^$1 //p"
}

# Prints the number of a kernel thread; nothing in a PID namespace, which has none.
kernel_thread() {
	ps -e -o pid=,ppid=,comm= | awk '$2 == 2 && $3 ~ /^ksoftirqd/ { print $1; exit }'
}

# printed_cpu NAME: prints the CPU time in nanoseconds that a program started by `begin` has printed.
printed_cpu() {
	sed -n 's/^cpu_ns //p' "$work/$1.out"
}

# A child that a signal ends between fork and exec also runs its shell's trap, and must not clean up.
trap '[ "$BASHPID" = $$ ] && cleanup' EXIT
