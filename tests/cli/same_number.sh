#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous, and processes that have the number of an earlier one, as in a server that starts workers again and
# again: the functions of scripts, and code made at run time, have the names of the process that runs. A file of names
# that another one replaces.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

python=/usr/bin/python3
if [ "$(id -u)" -ne 0 ]; then
	skip "names of processes with one number" "recording needs root"
	finish
fi
if ! [ -x "$progs/jitter" ]; then
	skip "names of processes with one number" "no tests/progs/jitter"
	finish
fi

maps=()
cleanup_maps() {
	[ ${#maps[@]} = 0 ] || rm -f "${maps[@]}"
}
trap '[ "$BASHPID" = $$ ] && { cleanup; cleanup_maps; }' EXIT

# Prints "ready" and a number. For each line of standard input that follows, a child has this number, and the line as its
# name: it executes the command, or burns some time, and ends. The command reads lines of its own.
cat >"$work/same.py" <<'EOF2'
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def fork_as(pid):
    tids = (ctypes.c_int * 1)(pid)
    args = (ctypes.c_uint64 * 11)()
    args[4] = 17                                  # exit_signal: SIGCHLD
    args[8] = ctypes.addressof(tids); args[9] = 1 # set_tid, its size
    while True:
        child = libc.syscall(435, args, ctypes.sizeof(args)) # clone3
        if child >= 0: return child
        if ctypes.get_errno() != errno.EEXIST: raise OSError(ctypes.get_errno(), "clone3")
def leaf_work(until):
    x = 0
    while time.process_time() < until:
        for i in range(20000): x += i * i
    return x
def handle_request(until): return leaf_work(until)
def read_line():
    line = b""
    while (c := os.read(0, 1)) not in (b"", b"\n"): line += c
    return line.decode()
pid = os.fork()
if not pid: os._exit(0)
os.waitpid(pid, 0)
print("ready", pid, flush=True)
count = 0
while comm := read_line():
    if not fork_as(pid):
        libc.prctl(1, 9) # PR_SET_PDEATHSIG, SIGKILL
        open("/proc/self/comm", "w").write(comm)
        if len(sys.argv) > 1: os.execv(sys.argv[1], sys.argv[1:])
        handle_request(time.process_time() + 0.5)
        os._exit(0)
    os.waitpid(pid, 0)
    count += 1
    print("ended", count, flush=True)
EOF2

windows() {
	find "$work/archive" -name '*.pb.gz' ! -name '.*' | wc -l
}
has_windows() {
	[ "$(windows)" -ge "$1" ]
}
# functions COMM: those of processes with this name, in the archive.
functions() {
	"$profiltool" report -q --comm "$1" "$work/archive" 2>/dev/null
}
ran() {
	functions "$1" | grep -q " $2 "
}

"${pdeathsig[@]}" "$build/profild" --continuous --verbose --directory "$work/archive" --window 1 \
	2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
check "a daemon records" wait_for grep -q "records .* into" "$work/daemon.err"

# --- Functions of scripts ---

if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
	begin workers "$python" "$work/same.py"
	send_line workers "one$$"
	wait_for grep -q "ended 1" "$work/workers.out"
	check "a worker: names" wait_for ran "one$$" leaf_work
	check "windows in which it is forgotten" wait_for has_windows $(($(windows) + 4))
	send_line workers "two$$"
	wait_for grep -q "ended 2" "$work/workers.out"
	send_line workers "three$$"
	wait_for grep -q "ended 3" "$work/workers.out"
	check "a worker with its number: names" wait_for ran "two$$" leaf_work
	check "one that follows at once: names" wait_for ran "three$$" leaf_work
	check "none is without names" [ "$(functions "two$$" | grep -cF '[python]')" = 0 ]
	check "none that follows at once is without names" [ "$(functions "three$$" | grep -cF '[python]')" = 0 ]
else
	skip "names of workers" "$python is not Python 3.11 to 3.14"
fi

# --- Code made at run time ---

# run_jitter NAME NUMBER: the next process with the number has code; its file gives it this name.
run_jitter() {
	local one
	send_line jitters jitter
	wait_for has_lines "$work/jitters.out" $(($2 * 3 - 1))
	send_line jitters go
	wait_for has_lines "$work/jitters.out" $(($2 * 3))
	one=$(tail -n 1 "$work/jitters.out" | cut -d' ' -f2)
	echo "$one 40 $1" >"$map.new"
	mv "$map.new" "$map"
	check "process $2 with one number: the name of its code" wait_for ran jitter "$1"
	send_line jitters end
	wait_for grep -q "ended $2" "$work/jitters.out"
}
has_lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}
begin jitters "$python" "$work/same.py" "$progs/jitter" anon 0.5 late
map=/tmp/perf-$(sed -n 's/^ready \([0-9]*\)$/\1/p' "$work/jitters.out").map
maps+=("$map" "$map.new")
run_jitter "first$$" 1
run_jitter "second$$" 2

start_ready "$progs/jitter" anon 300
read -r _ one two <"$work/start.out"
map=/tmp/perf-$pid.map
maps+=("$map" "$map.new")
echo "$one 40 before$$" >"$map"
check "a file of names" wait_for ran jitter "before$$"
printf '%s 40 before%d\n%s 40 after%d\n' "$one" $$ "$two" $$ >"$map.new"
mv "$map.new" "$map"
check "another file in its place" wait_for ran jitter "after$$"
stop "$pid"

kill -TERM "$daemon"
wait "$daemon"
check "the daemon ends" [ $? -eq 0 ]
finish
