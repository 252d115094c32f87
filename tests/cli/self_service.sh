#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Users without privileges record their own processes through profild --record: what they get, and what an attacker
# does not get.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# Copies that every user may run, wherever the tests are.
chmod 755 "$work"
cp "$build/profild" "$profiltool" "$progs/chains" "$progs/shares" "$progs/hostile" "$progs/services" "$work"
cp "${BASH_SOURCE[0]%.sh}.py" "$work/client.py"
chmod 755 "$work"/*
python=$(PATH=/usr/bin:/bin:$PATH command -v python3) # one that every user may run
socket=$work/socket
mkdir -m 777 "$work/files"
export PROFIL_RECORD_SOCKET=$socket

user=65534 other=65533
nobody=(setpriv "--reuid=$user" "--regid=$user" --clear-groups)
somebody=(setpriv "--reuid=$other" "--regid=$other" --clear-groups)
if ! "${nobody[@]}" true 2>/dev/null; then
	skip "all of it" "setpriv cannot become nobody here"
	finish
	exit
fi

# prints TEXT COMMAND...: succeeds if the command does, and prints the text.
prints() {
	local text=$1
	shift
	"$@" >"$work/prints" 2>&1 && grep -qF -- "$text" "$work/prints" && return
	cat "$work/prints"
	return 1
}

# fails_with TEXT COMMAND...: the same of one that fails.
fails_with() {
	local text=$1
	shift
	! "$@" >"$work/prints" 2>&1 && grep -qF -- "$text" "$work/prints" && return
	cat "$work/prints"
	return 1
}

# lacks_mapping FILE NAME: succeeds if no mapping is of a file with that name.
lacks_mapping() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
paths = [m["path"] for m in json.load(sys.stdin)["mappings"]]
print(paths)
assert paths and not any(p.endswith(sys.argv[1]) for p in paths)' "/$2"
}

# begin_daemon OPTION...: $daemon is its process.
begin_daemon() {
	: >"$work/daemon.err" # the one before was ready, too
	"${pdeathsig[@]}" "$work/profild" --record --verbose --socket "$socket" "$@" >"$work/daemon.out" 2>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q ready "$work/daemon.err"
}

end_daemon() {
	kill "$daemon"
	wait "$daemon"
}

# Whether it makes no recording.
idle() {
	! pgrep -P "$daemon" >/dev/null
}

tool() {
	timeout 300 "${nobody[@]}" "$work/profiltool" "$@"
}

# client STEP...: a client without manners, as nobody
client() {
	timeout 300 "${nobody[@]}" "$python" "$work/client.py" "$socket" "$@"
}

# answers TEXT STEP...: whether the last message that the client gets has the text.
answers() {
	local text=$1
	shift
	client "$@" >"$work/answer" 2>&1
	tail -n 1 "$work/answer" | grep -q -- "$text" || {
		cat "$work/answer"
		return 1
	}
}

# functions FILE: "NAME IMAGE" of each function
functions() {
	"$profiltool" report "$1" 2>"$work/functions.err" | awk '{ print $5, $6 }'
}

has_function() {
	functions "$1" | grep -qxF -- "$2" || {
		functions "$1"
		return 1
	}
}

lacks_function() {
	! functions "$1" | grep -F -- "$2"
}

# Whether all samples that have a user have the same.
all_of_user() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
users = {s["labels"].get("tags", {}).get("user") for s in json.load(sys.stdin)["stacks"]} - {None}
print(users)
assert len(users) == 1'
}

# No address of the kernel, in what was written: frames, mappings, and raw bytes.
lacks_kernel_addresses() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["stacks"]
for stack in d["stacks"]:
	assert all(int(pc, 16) < 1 << 47 for pc in stack["pcs"]), stack
for m in d["mappings"]:
	assert int(m["start"]) < 1 << 47 if isinstance(m["start"], int) else int(m["start"], 16) < 1 << 47, m'
}

# --- What users get ---

check "no profild: check says how to have one" fails_with "systemctl enable --now profil-record.socket" tool check
# A recording is on its user's account until its process has ended, which may be after the client.
begin_daemon --max-starts 10000 --max-recordings 100 --max-all-recordings 1000

check "check: records itself, and succeeds" prints "profild records them for this user:" tool check
check "a command is recorded" prints "recording through profild" \
	tool record -g -F 999 -o "$work/files/command.pb.gz" -- "$work/chains" set 100
check "a command: its call chain" [ "$(functions "$work/files/command.pb.gz" |
	grep -cxE '(inner|middle|outer|set|main) chains')" = 5 ]
check "a command: its whole stacks" prints "100.00 % of the user stacks" "$profiltool" report -v "$work/files/command.pb.gz"
check "a command that cannot be run: is told" fails_with "cannot run" tool record -- "$work/files"

"${nobody[@]}" "$work/chains" set >"$work/set.out" &
chains=$!
note_started "$chains"
wait_for grep -qx chains "/proc/$chains/comm" # before, it is not the user's
tool record -g -F 999 -p "$chains" -o "$work/files/process.pb.gz" >"$work/process.table" 2>"$work/process.err" &
recorder=$!
note_started "$recorder"
wait_for grep -q ", the first $chains, " "$work/daemon.err"
wait_for_use "$chains" 100
kill "$chains"
wait "$recorder"
status=$?
check "a process is recorded until it ends" test "$status" -eq 0
check "a process: inner" has_function "$work/files/process.pb.gz" "inner chains"

# begin_recording PID OPTION...: records it in the background, until it has had some ticks: $recorder.
begin_recording() {
	local target=$1
	shift
	"${nobody[@]}" "$work/profiltool" record -g -F 999 -p "$target" "$@" >"$work/recorder.out" 2>"$work/recorder.err" &
	recorder=$!
	note_started "$recorder"
	wait_for grep -q ", the first $target, " "$work/daemon.err"
	wait_for_use "$target" 100
}
end_recording() {
	kill -INT "$recorder"
	wait "$recorder"
}

# begin_program PROGRAM COMMAND...: as nobody, in the background; before it executes PROGRAM, it is not this user's: $pid.
begin_program() {
	local program=$1
	shift
	"${nobody[@]}" "$@" >"$work/program.out" &
	pid=$!
	note_started "$pid"
	wait_for grep -qx "$program" "/proc/$pid/comm"
}

# replace NAME: another program takes the place of a file.
replace() {
	cp "$work/shares" "$work/files/new"
	mv "$work/files/new" "$work/files/$1"
}

# Files at whose paths there is another one by now.
cp "$work/chains" "$work/files/replaced"
begin_program replaced "$work/files/replaced" set
replace replaced
begin_recording "$pid" -o "$work/files/replaced.pb.gz"
end_recording
check "a program that was replaced: its own names, and whole stacks" \
	[ "$(functions "$work/files/replaced.pb.gz" | grep -cxE '(inner|middle|outer|set|main) replaced')" = 5 ]
tool top -g -p "$pid" -d 0.2 --tables 500 >"$work/top.out" 2>"$work/top.err" &
top_pid=$!
note_started $top_pid
check "a program that was replaced: top has its names" wait_for grep -q ' inner ' "$work/top.out"
pkill -INT -P $top_pid
wait $top_pid
stop "$pid"
cp "$work/chains" "$work/files/swapped"
begin_program swapped "$work/files/swapped" set
begin_recording "$pid" -o "$work/files/swapped.pb.gz"
replace swapped
stop "$pid"
wait "$recorder"
check "a program that was replaced, and has ended: no name is the other's" grep -q "another file has its path here" "$work/recorder.err"

# Another file at the same path, in a mount namespace.
if "${nobody[@]}" unshare -Urm mount --bind "$work/shares" "$work/chains" 2>/dev/null; then
	cp "$work/chains" "$work/files/shown"
	begin_program shown unshare -Urm sh -c "mount --bind '$work/shares' '$work/files/shown' && exec '$work/files/shown' 1 0"
	begin_recording "$pid" -o "$work/files/shown.pb.gz"
	end_recording
	stop "$pid"
	check "a mount namespace: the names of the file that is there" has_function "$work/files/shown.pb.gz" "burn_sixty shown"
else
	skip "mount namespaces" "users cannot make them here"
fi

if [ -x "$progs/jitter" ]; then
	cp "$progs/jitter" "$work"
	begin_program jitter "$work/jitter" anon 60
	wait_for grep -q ready "$work/program.out"
	read -r _ one _ <"$work/program.out"
	echo "$one 40 one" >"/tmp/perf-$pid.map"
	begin_recording "$pid" -o "$work/files/jitter.pb.gz"
	end_recording
	stop "$pid"
	rm "/tmp/perf-$pid.map"
	check "code made at run time: its names" has_function "$work/files/jitter.pb.gz" "one [jit"
else
	skip "code made at run time" "no tests/progs/jitter"
fi

tool record -g -F 999 -o "$work/files/kernel.pb.gz" -- "$work/chains" kernel 100 >"$work/kernel.out" 2>&1
check "ticks in the kernel: counted without a place" has_function "$work/files/kernel.pb.gz" "[kernel] [kernel.kallsyms]"
check "ticks in the kernel: one row" [ "$(functions "$work/files/kernel.pb.gz" | grep -c 'kernel.kallsyms')" = 1 ]
check "ticks in the kernel: the stack that asked" has_function "$work/files/kernel.pb.gz" "ask chains"
check "ticks in the kernel: no address" lacks_kernel_addresses "$work/files/kernel.pb.gz"

tool record --wall -o "$work/files/wall.pb.gz" -- sh -c 'sleep 0.1; sleep 0.1' >"$work/wall.out" 2>&1
check "--wall: the account of all threads" grep -q "wall: 3 threads" "$work/wall.out"
check "--wall: no address of the kernel" lacks_kernel_addresses "$work/files/wall.pb.gz"

# waits_hold FILE EXPRESSION: whether it is true of s, all waits, and their wakers, each with its PID (0: none), label of the
# waker, wall time and what it ended.
waits_hold() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
d = json.load(sys.stdin)
at = {v["type"]: i for i, v in enumerate(d["values"])}
s = [(int(s["labels"].get("pid", 0)), s["labels"].get("tags", {}).get("waker", ""), s["values"][at["wall"]], s["values"][at["woke"]])
	for s in d["stacks"]]
print(s)
assert eval(sys.argv[1])' "$2"
}

# A process that another user wakes: it is in read(2) before that.
begin woken "${nobody[@]}" sh -c 'echo ready; exec cat'
woken=$pid
wait_for grep -qx "cat" "/proc/$woken/comm"
tool record --chains -g -v -o "$work/files/woken.pb.gz" -p "$woken" >"$work/woken.table" 2>"$work/woken.err" &
recorder=$!
note_started "$recorder"
wait_for grep -q ", the first $woken, " "$work/daemon.err"
wait_for grep -q "^State:.S" "/proc/$woken/status"
send_line woken x
wait_for grep -qx x "$work/woken.out"
kill "$woken"
wait "$recorder"
check "--chains: who woke it is another process" waits_hold "$work/files/woken.pb.gz" \
	"any(waker == 'another process' and wall > 0 for pid, waker, wall, woke in s)"
check "--chains: which one it was is nowhere" waits_hold "$work/files/woken.pb.gz" "{pid for pid, *_ in s} <= {0, $woken}"
no_others() {
	"$profiltool" dump --json "$work/files/woken.pb.gz" | python3 -c '
import json, sys
tags = [s["labels"].get("tags", {}) for s in json.load(sys.stdin)["stacks"]]
print(tags)
assert any("waker" in t for t in tags)
assert {t["waker_tid"] for t in tags if "waker_tid" in t} <= {sys.argv[1]}' "$woken"
}
check "--chains: nor is its number" no_others
check "--chains: what others did ends the chain" prints "woken by another process" \
	"$profiltool" why -q -p "$woken" --since +0s "$work/files/woken.pb.gz"

# Three processes of the user's that wait for each other.
begin services "${nobody[@]}" "$work/services"
wait_for grep -qx ready "$work/services.out"
tool why -p "$pid,$(pgrep -P "$pid" -d ,)" >"$work/chain.out" 2>"$work/chain.err" &
recorder=$!
note_started "$recorder"
wait_for grep -q "recording your processes" "$work/chain.err"
send_line services go
wait "$pid"
wait "$recorder"
check "why records a user's processes" grep -qE '^ .*  back blocked: lock,.* (held|woken) by holder' "$work/chain.out"
check "why -t does not" fails_with "profiltool why -p PROCESS" tool why -t services -d 1

# One of the user's closes itself, and then wakes another one.
cat >"$work/closes.py" <<-'END'
	import ctypes, os, sys, time
	ends = os.pipe()
	if os.fork() == 0:
	    os.read(ends[0], 1)
	    os._exit(0)
	time.sleep(0.02)
	ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
	time.sleep(0.02)
	os.write(ends[1], b"x")
	os.wait()
	print(os.getpid())
END
tool record --wall -g -o "$work/files/closes.pb.gz" -- "$python" "$work/closes.py" >"$work/closes.out" 2>&1
closes=$(grep -xE '[0-9]+' "$work/closes.out")
check "--wall: what woke it before it closed itself is there" waits_hold "$work/files/closes.pb.gz" \
	"any(pid == $closes and wall > 0 for pid, waker, wall, woke in s)"
# It has made the other one: that one's first wait is its doing.
check "--wall: what it woke then is not" waits_hold "$work/files/closes.pb.gz" \
	"(sum(woke for pid, waker, wall, woke in s if pid == $closes) <
		max(wall for pid, waker, wall, woke in s if waker == 'another process'))"

"${nobody[@]}" "$work/shares" 1 0 lazy >"$work/shares.out" &
target=$!
note_started $target
wait_for grep -q ready "$work/shares.out"
tool top -p $target -d 0.2 --tables 500 >"$work/top.out" 2>"$work/top.err" &
top_pid=$!
note_started $top_pid
check "top shows a process" wait_for grep -q burn_sixty "$work/top.out"
pkill -INT -P $top_pid
wait $top_pid
check "top ends" wait_for idle

# --- What they do not get ---

check "another user's process: is refused" fails_with "process $$ is closed to user $user" tool record -p $$
check "another user's process: exit code 5" exits 5 tool record -p $$
check "another user's process: top is refused alike" fails_with "process $$ is closed to user $user" tool top -p $$ --tables 1
check "another user's process: top names no other cause" test "$(grep -c eBPF: "$work/prints")" -eq 0
check "of several processes one that is closed: none is recorded" \
	answers "process $$ is closed" connect pid=$target pid=$$ request
"${somebody[@]}" sleep 1000 >"$work/other.out" &
other_pid=$!
note_started $other_pid
check "a process of another user without privileges: is refused" fails_with "is closed to user" tool record -p $other_pid
begin closed "${nobody[@]}" "$python" "$work/client.py" "$socket" closed hold
check "a process that is not dumpable: is refused" fails_with "is closed to user" tool record -p "$pid"
send_line closed x
for option in -a "--cgroup /" "-t $target" "-p $target --kernel" "-p $target --children" "-p $target --ask-runtimes" \
	"-p $target --scale 0x10000" "-p $target --victim comm:x"; do
	# shellcheck disable=SC2086 # several words
	check "$option: what is not served is named" fails_with "you may not record" tool record $option -d 1
done
check "more ticks than are allowed: are refused" fails_with "more than the 1000" tool record -F 1001 -p $target
check "root: is not served" prints "root is not served" "$python" "$work/client.py" "$socket" connect

# A program that another user's rights come with
cp "$work/shares" "$work/suid"
chown $other "$work/suid"
chmod 4755 "$work/suid"
"${nobody[@]}" "$work/suid" 1 0 >"$work/suid.out" &
suid=$!
note_started $suid
wait_for grep -q ready "$work/suid.out"
if [ "$(stat -c %u "/proc/$suid/status")" != "$user" ]; then
	check "a set-user-ID program: is refused" fails_with "is closed to user" tool record -p $suid
	stop $suid
	check "an exec of a set-user-ID program: ends the recording" tool record -g -F 999 -o "$work/files/exec.pb.gz" -- \
		sh -c "echo \$\$ >'$work/files/executes'; '$work/chains' set 100; exec '$work/suid' 1 0"
	kill "$(cat "$work/files/executes")" # the command goes on
	check "an exec of a set-user-ID program: what was before is there" has_function "$work/files/exec.pb.gz" "inner chains"
	check "an exec of a set-user-ID program: nothing of it" lacks_function "$work/files/exec.pb.gz" suid
	check "an exec of a set-user-ID program: none of its mappings" lacks_mapping "$work/files/exec.pb.gz" suid
	check "a child that executes one: is recorded around it" tool record -g -F 999 -o "$work/files/child.pb.gz" -- \
		sh -c "'$work/suid' 1 0.05; '$work/chains' set 100"
	check "a child that executes one: what is the user's" has_function "$work/files/child.pb.gz" "inner chains"
	check "a child that executes one: nothing of it" lacks_function "$work/files/child.pb.gz" suid
	tool record --wall -g -o "$work/files/around.pb.gz" -- sh -c \
		"for i in 1 2 3 4 5 6 7 8 9 10; do '$work/suid' 1 0.01; done; '$work/chains' set 10" >"$work/around.out" 2>&1
	check "children that execute one: what was before has no other user" all_of_user "$work/files/around.pb.gz"
	check "a command that is one: nothing is recorded" exits 4 tool record -g -- "$work/suid" 1 1

	# Its user may stop what records: here while its programs are loaded, when the process has been checked.
	loads() {
		worker=$(pgrep -P "$daemon") && [ -n "$(find "/proc/$worker/fd" -lname "anon_inode:bpf*")" ]
	}
	is_closed() {
		[ "$(stat -c %u "/proc/$pid/status")" != "$user" ]
	}
	for flags in 2 98; do
		begin late$flags "${nobody[@]}" sh -c "echo ready; read -r _; exec '$work/suid' 1 0"
		"${nobody[@]}" "$python" "$work/client.py" "$socket" connect "pid=$pid" flags=$flags request receive >"$work/late.out" 2>&1 &
		client=$!
		note_started $client
		wait_for loads
		"${nobody[@]}" kill -STOP "$worker"
		send_line late$flags x
		wait_for is_closed
		"${nobody[@]}" kill -CONT "$worker"
		check "executed between the check and the first tick (flags $flags): is not recorded" \
			wait_for grep -q "process $pid is closed to user\|^result 2" "$work/late.out"
		stop "$client"
		stop "$pid"
		wait_for idle
	done
else
	skip "set-user-ID programs" "the file system is mounted nosuid"
fi

# A user namespace: the client in it must not reach the user's processes outside
if "${nobody[@]}" unshare -Ur true 2>/dev/null; then
	check "out of a user namespace: is refused" fails_with "is not in the client's user namespace" \
		timeout 300 "${nobody[@]}" unshare -Ur "$work/profiltool" record -p $target
	check "inside a user namespace: is recorded" timeout 300 "${nobody[@]}" unshare -Ur \
		"$work/profiltool" record -g -F 999 -o "$work/files/space.pb.gz" -- "$work/chains" set 100
	check "inside a user namespace: its names" has_function "$work/files/space.pb.gz" "inner chains"
	check "a process in a user namespace of the user's: is recorded" timeout 300 "${nobody[@]}" \
		"$work/profiltool" record -g -F 999 -o "$work/files/inner.pb.gz" -- unshare -Ur "$work/chains" set 100
	check "a process in a user namespace of the user's: its names" has_function "$work/files/inner.pb.gz" "inner chains"
else
	skip "user namespaces" "users cannot make them here"
fi

# --- Requests ---

check "a request: is answered" answers "result 1" connect pid=$target request stop
# Each on a connection of its own
invalid=(
	"none of a process that runs"		"ended request"
	"none of a process that runs"		"file request"
	"0 descriptors came with a request for 0"	"request"
	"1 descriptors came with a request for 2"	"pid=$target count=2 request"
	"more than 64 processes"		"fds=65 request"
	"protocol version 99"			"pid=$target version=99 request"
	"a field of the request is invalid"	"pid=$target flags=65536 request"
	"a field of the request is invalid"	"pid=$target stacks=9 request"
	"a field of the request is invalid"	"pid=$target waits=101 request"
	"a field of the request is invalid"	"pid=$target flags=224 request"
	"32 bytes are no request with 1 labels"	"pid=$target version=4 labels=1 request"
	"no request with 4294967295 labels"	"pid=$target version=4 labels=4294967295 request"
	"are no request with 9 labels"		"pid=$target version=4 label=a=x label=b=x label=c=x label=d=x label=e=x label=f=x label=g=x label=h=x label=i=x request"
	"352 bytes are no request with 1 labels"	"pid=$target version=3 label=a=x request"
	"a label of the request has no end"	"pid=$target version=4 label=a=$(printf 'x%.0s' {1..400}) request"
	"--label takes NAME="			"pid=$target version=4 label=a=$(printf 'x%.0s' {1..200}) request"
	"--label takes NAME="			"pid=$target version=4 label=. request"
	"gives \"a\" two variables"		"pid=$target version=4 label=a=x label=a=y request"
	"has no frequency"			"pid=$target frequency=0 request"
	"more than the 1000"			"pid=$target frequency=4294967295 request"
	" 1 bytes are no request"		"pid=$target size=1 request"
	" 31 bytes are no request"		"pid=$target size=31 request"
	" 33 bytes are no request"		"pid=$target size=33 request"
	" 60000 bytes are no request with 0 labels"	"pid=$target size=60000 request"
	" 31 bytes are no request"		"bytes=31"
	"protocol version"			"bytes=32"
	"unsupported protocol version"		"bytes=60000"
)
steps=()
for ((i = 1; i < ${#invalid[@]}; i += 2)); do
	# shellcheck disable=SC2206 # several words
	steps+=(connect ${invalid[i]} close)
done
client "${steps[@]}" >"$work/answers" 2>&1
mapfile -t answers < <(grep -v '^ready$' "$work/answers")
for ((i = 0; i < ${#invalid[@]}; i += 2)); do
	check "${invalid[i + 1]}: is refused" grep -qF -- "${invalid[i]}" <<<"${answers[i / 2]:-}"
done
check "a command that does not exist ends the recording" answers "gone\|has gone" connect pid=$target request bytes=1
check "profild is idle" wait_for idle
check "profild serves on" answers "result 1" connect pid=$target request stop

# --- Limits, and clients that go ---

end_daemon
begin_daemon --max-recordings 1
begin held "${nobody[@]}" "$python" "$work/client.py" "$socket" connect pid=$target request hold
check "one recording too many: is refused" answers "has 1 recordings already" connect pid=$target request
worker=$(pgrep -P "$daemon")
check "the process that records: it has two capabilities" grep -q "^CapPrm:.0*c000000000$" "/proc/$worker/status"
check "the process that records: it is the user's" grep -q "^Uid:.$user.$user.$user.$user$" "/proc/$worker/status"
check "the process that records: the kernel kills it if it is late" grep -q "^signal: 9/" "/proc/$worker/timers"
check "the process that records: the kernel ends it first where memory is short" grep -qx 1000 "/proc/$worker/oom_score_adj"
check "the process that records: its user cannot read it" exits 1 "${nobody[@]}" cat "/proc/$worker/maps"
"${nobody[@]}" kill -STOP "$worker"
check "its user stops it: others are served" timeout 300 "${somebody[@]}" "$work/profiltool" record -F 999 -- "$work/chains" set 100
kill -KILL "$pid"
"${nobody[@]}" kill -CONT "$worker"
check "the client is killed: the recording ends" wait_for idle

# What records may wait, too, for a file of the target. Who waits for it can end that.
is_ended() {
	kill -TERM "$recorder" 2>/dev/null
	! kill -0 "$recorder" 2>/dev/null
}
has_socket() {
	[ -n "$(find "/proc/$recorder/fd" -lname 'socket:*')" ]
}
"${nobody[@]}" "$work/profiltool" record -p $target >"$work/waits.out" 2>"$work/waits.err" &
recorder=$!
note_started "$recorder"
wait_for grep -q "recording through profild" "$work/waits.err"
worker=$(pgrep -P "$daemon")
kill -STOP "$worker"
check "a recording that does not answer: signals end profiltool" wait_for is_ended
check "a recording that does not answer: this is said" grep -q "waited for profild" "$work/waits.err"
kill -CONT "$worker"
check "a recording that does not answer: it ends, too" wait_for idle
kill -STOP "$daemon"
"${nobody[@]}" "$work/profiltool" top -p $target >"$work/waits.out" 2>"$work/waits.err" &
recorder=$!
note_started "$recorder"
check "profild does not answer: profiltool waits for it" wait_for has_socket
check "profild does not answer: signals end profiltool" wait_for is_ended
wait "$recorder"
check "profild does not answer: top ends as it does without samples" test $? -eq 4
kill -CONT "$daemon"
end_daemon

begin_daemon --max-starts 4 --max-recordings 100 --max-all-recordings 1000
check "too many recordings within a minute: are refused" answers "within a minute" \
	connect request connect request connect request connect request connect request
end_daemon

# profild itself closes the connection of who is refused, with what is on its way there. Who connects before it has the
# socket can send descriptors on every kernel.
mkfifo "$work/later"
# shellcheck disable=SC2016 # is for the other shell
"${pdeathsig[@]}" python3 "$top/tests/activate.py" SOCK_SEQPACKET "$socket" bash -c 'read -r <"$0" && exec "$@"' "$work/later" \
	"$work/profild" --record --verbose --max-recordings 1 >"$work/daemon.out" 2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
wait_for test -S "$socket"
begin served "${nobody[@]}" "$work/hostile" "$socket" connect ready
served=$pid
begin lingers "${nobody[@]}" "$work/hostile" "$socket" connect linger=1000 ready
check "a descriptor that takes long to close: was sent" test -z "$(grep refused "$work/lingers.out")"
kill -STOP "$pid" # its connection does not end
echo >"$work/later"
wait_for grep -q ready "$work/daemon.err"
wait_for grep -q "before profild had accepted" "$work/daemon.err"
check "a descriptor that takes long to close: others are served" \
	timeout 300 "${somebody[@]}" "$work/profiltool" record -F 999 -- "$work/chains" set 100
kill -KILL "$served" "$pid"
end_daemon
rm "$socket"

begin_daemon --max-all-recordings 1 --max-duration 1 --max-starts 10000
check "the longest time: what was counted is there" answers "result 3" connect pid=$target request receive
wait_for idle
tool record -p $target >"$work/longest.out" 2>&1 # it may be without samples
check "the longest time: profiltool says it" grep -q "records no longer than this" "$work/longest.out"
end_daemon

begin_daemon --max-all-recordings 1
begin held_by_all "${nobody[@]}" "$python" "$work/client.py" "$socket" connect pid=$target request hold
check "all recordings are in use: others are refused" fails_with "all users have 1 recordings" \
	timeout 300 "${somebody[@]}" "$work/profiltool" record -p $other_pid
kill -KILL "$pid"
check "its client is killed: profild is idle" wait_for idle

# Connections without a request take nothing of what others may have, however many users one person can be.
client connect receive >"$work/waits_long.out" 2>&1 &
waits_long=$!
note_started $waits_long
wait_for grep -q ready "$work/waits_long.out"
check "a connection without a request: takes no place" \
	timeout 300 "${somebody[@]}" "$work/profiltool" record -F 999 -- "$work/chains" set 100
check "a connection without a request: is closed" wait_for grep -q "no request came" "$work/waits_long.out"
wait $waits_long
begin space "${nobody[@]}" unshare -U sh -c 'echo ready; exec sleep 1000'
if echo "0 200000 8" >"/proc/$pid/uid_map" && echo "0 200000 8" >"/proc/$pid/gid_map"; then # as newuidmap(1) does
	begin many nsenter -U -t "$pid" --setuid 0 --setgid 0 "$python" "$work/client.py" "$socket" idle=200 hold
	check "idle connections of eight user IDs: one person's" wait_for grep -q "128 of them for one of user $user" "$work/many.out"
	check "idle connections of eight user IDs: others are recorded" \
		timeout 300 "${somebody[@]}" "$work/profiltool" record -F 999 -- "$work/chains" set 100
	stop "$pid"
else
	skip "idle connections of eight user IDs" "user namespaces cannot have them here"
fi
begin held_last "${nobody[@]}" "$python" "$work/client.py" "$socket" connect pid=$target request hold
worker=$(pgrep -P "$daemon")
kill -KILL "$daemon"
check "profild is killed: so ends the recording" wait_for test ! -e "/proc/$worker/exe"
wait "$daemon" 2>/dev/null
begin_daemon
end_daemon
check "the socket is removed" [ ! -e "$socket" ]
check "without profild: what is missing is named" fails_with "profild(8), --record" tool record -p $target

check "the unit's socket is the one that profiltool looks for" grep -q \
	"^#define RECORD_SOCKET.*\"$(sed -n 's/^ListenSequentialPacket=//p' "$top/user/daemon/profil-record.socket")\"" \
	"$top/user/record/service.h"

finish
