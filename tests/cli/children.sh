#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording children, programs that execute others, and commands that profiltool starts.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

# run NAME OPTIONS COMMAND...: records a program that was begun, from before it burns to its end.
run() {
	begin_recorded "$@" && send_line "$1" go
}

# --- fork, exec ---

run family "-F 999" "$progs/family" fork 0.5
run alone "-F 999 --no-inherit" "$progs/family" fork 0.5
run exec "-F 999" "$progs/family" exec 0.4 "$progs/shares" 2 0.4
run thread_exec "-F 999" "$progs/family" thread-exec 0.4 "$progs/shares" 1 0.4 stay
recordings_end family alone exec thread_exec

check "a thread and a child that start during the recording are counted" recorded "whole and \
	ran('burn_parent', 'burn_thread', 'burn_child')" "$work/family.json"
check "the ticks make up the CPU time of parent and child" recorded "takes($(printed_cpu family))" "$work/family.json"
check "--no-inherit: the thread counts, the child does not" recorded "whole and \
	samples('burn_child') == 0 and ran('burn_parent', 'burn_thread')" "$work/alone.json"
check "a program that becomes another: both have their names and files" recorded "whole and \
	ran('burn_before') and images('burn_before') == {'family'} and \
	ran('burn_sixty') and images('burn_sixty') == {'shares'}" "$work/exec.json"

cpu_ns=$(dumped cpu_ns "$work/thread_exec.pb.gz")
used_ns=$(printed_cpu thread_exec)
# Each has half of it: without one of them it is half, with one twice one and a half. The start before the recording
# and the end after the program has printed its time take longer where the host takes the CPU.
check "a thread that is not the leader becomes a program: both are in the account of CPU time, once" \
	awk "BEGIN { exit !($cpu_ns > .75 * $used_ns && $cpu_ns < 1.25 * $used_ns) }"
check "a thread that is not the leader becomes a program: both have their names" recorded "whole and \
	images('burn_before') == {'family'} and images('burn_sixty') == {'shares'}" "$work/thread_exec.json"

# --- Children that ran before ---

# A server whose first process waits for its children, one of which has a child of its own. A signal has it start one more.
start bash -c 'trap "\"\$1\" 1 0 lazier &" USR1
	"$1" 1 0 lazier & "$1" 1 0 lazier & bash -c "\"\$1\" 1 0 lazier & wait" - "$1" & while :; do wait; done' - "$progs/shares"
server=$pid
descendants() { # PID...: children, and theirs
	local of

	of=$(pgrep -d, -P "$1") || return
	echo "$of"
	descendants "$of"
}
# burners: prints the PIDs of the descendants that burn.
burners() {
	descendants "$server" | tr , '\n' | while read -r p; do
		grep -q shares "/proc/$p/comm" && echo "$p"
	done | sort -n | xargs
}
burn() { # COUNT
	[ "$(burners | wc -w)" -eq "$1" ]
}
wait_for burn 3
check "a server's first process: no samples" exits 4 "$profiltool" record -p "$server" -F 99 -d 1
check "a server's first process: its children are said to be missing at the start" \
	says "4 child processes run already, and are not recorded: --children takes them, too"
check "a server's first process: their CPU time is reported at the end" \
	says "3 child processes, which ran before, used "
check "top of a server's first process: no samples" exits 4 "$profiltool" top -p "$server" -F 99 --tables 1
check "top of a server's first process: its children are said to be missing" says "3 child processes, which ran before, used "
record_begin all_children --children -p "$server" -F 999 -g --json -o "$work/all_children.pb.gz"
kill -USR1 "$server"
wait_for burn 4
for child in $(burners); do
	wait_for_use "$child" 100
done
record_end
check "--children: succeeds" test $? -eq 0
"$profiltool" report --by process --json "$work/all_children.pb.gz" >"$work/all_children.by" 2>"$work/err"
check "--children: those that ran before, theirs, and one that is forked later" json \
	"{r['pid'] for r in j['rows']} >= {int(p) for p in '$(burners)'.split()}" "$work/all_children.by"
check "--children: all have names" recorded "whole and ran('burn_sixty', 'burn_thirty') and \
	not [f for f in rows('0x*') if f['image'].endswith('/shares')]" "$work/all_children.json"
check "--children: nothing is said to be missing" test "$(grep -c "child process" "$work/all_children.err")" -eq 0
check "--children: those of top, too" exits 0 "$profiltool" top --children -p "$server" --tables 1 -d 2
check "--children needs a process" exits 2 "$profiltool" record -a --children -d 1
check "--children needs a process: reported" says "--children is for processes"
check "--children and --no-inherit exclude each other" exits 2 "$profiltool" record -i --children -p "$server" -d 1
"$profiltool" record -i -p "$server" -F 99 -d 0.5 >"$work/out" 2>"$work/err"
check "without children: nothing is said of them" test "$(grep -c "child process" "$work/err")" -eq 0
for child in $(burners); do
	kill "$child"
done
stop "$server"

# --- Commands ---

command_recorded() {
	local name=$1
	shift
	"$profiltool" record -F 999 --json -o "$work/$name.pb.gz" "$@" \
		>"$work/$name.json" 2>"$work/$name.err" </dev/null
}

# A child prints nothing where the table goes: "cpu_ns N" must not be in the JSON.
program_quietly() {
	cat >"$work/$1" <<EOF
#!/bin/sh
$2
EOF
	chmod 755 "$work/$1"
}

program_quietly short "for i in 1 2 3 4 5 6 7 8 9 10; do $progs/shares 1 0.04 >/dev/null; done; true"
check "children that become a program and end at once: succeeds" \
	command_recorded short -F 4999 -- "$work/short"
check "they have names, though all have ended" recorded "whole and ran('burn_sixty') and \
	images('burn_sixty') == {'shares'}" "$work/short.json"

program_quietly pipeline "$progs/shares 1 1 | cat >/dev/null & $progs/family swarm 1 300 \
	</dev/null >/dev/null; echo go | $progs/family swarm 1 300 | cat >/dev/null; wait"
check "a shell's pipelines: succeeds" command_recorded pipeline -- sh -c "$work/pipeline; true"
check "all of them count" recorded "whole and takes(0.6e9, samples('burn_sixty')) and \
	takes(1e9, samples('burn_child'))" "$work/pipeline.json"

"$profiltool" record -F 4999 -o "$work/first.pb.gz" -- "$progs/shares" 1 1 stay \
	>"$work/first.out" 2>"$work/first.err"
"$profiltool" report --json "$work/first.pb.gz" >"$work/first.json" 2>/dev/null
check "a command is recorded from its first instruction to its last" recorded \
	"takes($(printed_cpu first), $(dumped ticks "$work/first.pb.gz"))" "$work/first.json"

# --- Its status ---

burn="$progs/shares 1 0.1 >/dev/null"
check "a command's status is not returned" \
	exits 0 "$profiltool" record -F 999 -- sh -c "$burn; exit 7"
check "a command's status is not returned: reported" says "sh ended with status 7"
check "nor is a signal that ended it" exits 0 "$profiltool" record -F 999 -- sh -c "$burn; kill -SEGV \$\$"
check "nor is a signal that ended it: reported, too" says "sh was ended by signal 11"
check "status 0 needs no word" exits 0 "$profiltool" record -F 999 -- sh -c "$burn; exit 0"
check "status 0 needs no word: gets none" test "$(grep -c 'status' "$work/err")" -eq 0
check "words after the command are the command's own" \
	exits 0 "$profiltool" record -F 999 sh -c "$burn; test \$0 = -d" -d
check "words after the command are the command's own: it ends with status 0" \
	test "$(grep -c 'status' "$work/err")" -eq 0

check "a command that does not exist" exits 1 "$profiltool" record -- "$work/none"
check "a command that does not exist: is named, with the reason" \
	says "$work/none: No such file or directory"
check "a name that is not in PATH" exits 1 "$profiltool" record -- no-such-program-here
check "says where to look" says "PATH"
: >"$work/plain"
check "a file that cannot be run" exits 1 "$profiltool" record -- "$work/plain"
check "a file that cannot be run: is named, with the reason of that" \
	says "$work/plain: Permission denied"
check "a file that cannot be run: what to do" says "chmod +x"
printf '#!/no/such/shell\n' >"$work/lost"
chmod 755 "$work/lost"
check "a script without its interpreter" exits 1 "$profiltool" record -- "$work/lost"
check "a script without its interpreter: is named" \
	says "cannot run $work/lost: its interpreter /no/such/shell: No such file"
check "no command and no process" exits 2 "$profiltool" record
check "says how" says "-p PID"
check "nor an empty one" exits 2 "$profiltool" record --

# A command gets the signals and descriptors that it would get from a shell.
check "a command's signals are as they were" exits 0 "$profiltool" record -F 999 -- \
	sh -c "$burn; grep -E '^Sig(Blk|Ign)' /proc/self/status >$work/signals.is"
check "none blocked or ignored" cmp "$work/signals.is" <(grep -E '^Sig(Blk|Ign)' /proc/self/status)
check "a command's descriptors are as they were" exits 0 "$profiltool" record -F 999 -- \
	sh -c "$burn; ls /proc/self/fd >$work/fds.is"
check "no others are open" cmp "$work/fds.is" <(sh -c 'ls /proc/self/fd </dev/null')

# -d ends the recording, not the command.
check "-d ends the recording of a command that goes on" exits 0 "$profiltool" record -F 999 -d 2 -- \
	sh -c "echo \$\$ >$work/left; exec $progs/shares 1 60"
check "a message says that it goes on" says "is still running; recording has stopped"
wait_for test -s "$work/left"
left=$(cat "$work/left")
note_started "$left"
check "the command is left running" \
	grep -q '^State:.*[RSZ]' "/proc/$left/status"
kill -KILL "$left"

# --- Everything ---

begin one "$progs/shares" 1
one=$pid
begin two "$progs/family" exec 100 true
two=$pid
send_line two go
"$profiltool" -a -F 999 -d 3 --json -o "$work/all.pb.gz" >"$work/all.json" 2>"$work/all.err"
check "-a: succeeds" test $? -eq 0
stop "$one"
stop "$two"
check "-a: sees two processes that nobody named" recorded "whole and \
	'$progs/shares' in [f['image'] for f in rows('burn_sixty')] and \
	'$progs/family' in [f['image'] for f in rows('burn_before')]" "$work/all.json"
check "-a: with their numbers" bash -c "'$profiltool' dump '$work/all.pb.gz' >'$work/all.dump' && \
	grep -q '\[$one/' '$work/all.dump' && grep -q '\[$two/$two ' '$work/all.dump'"

# --- Children that live shorter than a tick's period ---

# The clock is the CPU's: it does not begin anew in each child.
begin swarm "$progs/family" swarm 1.2 3
record_begin swarm -p "$pid" -F 99 --json
send_line swarm go
wait "$recorder"
check "children shorter than the period: the ticks make up their CPU time" \
	recorded "whole and takes($(printed_cpu swarm))" "$work/swarm.json"

finish
