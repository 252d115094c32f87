#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Bad input and targets that cannot be profiled: the exit status, and a message that says what failed, on
# what, why, and how to fix it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

# refuses CODE TEXT ARG...: succeeds if profiltool exits with CODE at once, prints TEXT on standard error,
# and nothing on standard output.
refuses() {
	local code=$1 text=$2
	shift 2
	exits "$code" timeout 60 "$profiltool" "$@" && says "$text" && test ! -s "$work/out"
}

# usage TEXT ARG...: the same for what no profiltool understands, with a hint to the help.
usage() {
	refuses 2 "$@" && says "see profiltool record --help"
}

start sleep 1000
sleeper=$pid
wait_for grep -q nanosleep "/proc/$sleeper/wchan"

# --- Values ---

for value in 0 -1 "" 99999999999999999999 "$sleeper," ",$sleeper" "$sleeper,,$sleeper"; do
	check "-p \"$value\"" usage "-p takes process numbers" -p "$value"
done
for value in 0 -1 abc ""; do
	check "-t \"$value\"" usage "-t takes a thread number" -t "$value"
done
check "-f without -o" usage "-f needs -o" -p "$sleeper" -f pprof
for value in 0 -1 1e9 1000000000 abc 100001 99.5 "" 99999999999999999999; do
	check "-F \"$value\"" usage "1 to 100000 Hz" -p "$sleeper" -F "$value"
done
for value in 0 0.0 .0 -1 abc "" 1e3 inf nan 1. 1s; do
	check "-d \"$value\"" usage "-d takes seconds above 0" -p "$sleeper" -d "$value"
done
check "-e nothing" usage "-e takes one of auto, cpu-clock" -p "$sleeper" -e nothing
check "-E many" usage "-E takes a number of rows" -p "$sleeper" -E many
check "-o \"\"" usage "empty" -p "$sleeper" -o ""
check "-f nothing" refuses 2 "no format \"nothing\"" -p "$sleeper" -f nothing
check "-f nothing names the formats" says "gperftools, "

# --- Options without effect ---

# Whoever gives one expects something else than what would be printed. Refused before a file is read.
interval="--since +1s --for 1s"
while IFS='|' read -r option view arguments; do
	# shellcheck disable=SC2086 # words
	check "$option is not for $view" refuses 2 "$option is not for $view" $arguments "$work/x.pb.gz"
done <<END
--value|--against, which|report $interval --against before --value wall
--waker|--against, which|report $interval --against rest --waker sh
--delay|--against, which|report $interval --against rest --delay
--percent|--against, which|report $interval --against rest --percent 1
--cpu-time|--against, which|report $interval --against rest --cpu-time
--children|--against, which|report $interval --against rest --children
--sort|--against, which|report $interval --against rest --sort total
--value|--by time, which|report --by time --value wall
--value|--by time, which|report --by time:1s --json --value delay
--image|--by time|report --by time --image sh
--delay|--by time|report --by time --delay
--percent|--by time|report --by time:1s --percent 1
--sort|rows that are no code|report --by thread --sort total
--children|rows that are no code|report --sort comm --children
--children|rows that are no code|diff --by process --children $work/y.pb.gz
--image|trees|report --tree --image sh
--delay|trees|report --callers main --delay
--cpu-time|trees|report --callees main --cpu-time
--verbose|-q, which|report -q -v
--code|--no-code|web -o $work/x.html --no-code --code 5
--no-source|--no-code|web -o $work/x.html --no-source --no-code
--source-only|--json, which|annotate main --json --source-only
--source-path|--no-source|annotate main --no-source --source-path /tmp
--per-rate|changes without --per|changes --per-rate
--frequency|what was recorded before|top -F 9
--interval|what was recorded before|top --json -d 2
--kernel|what was recorded before|top --kernel
--call-graph|what was recorded before|top -g
--sort|--states, which|top --states --sort total
--by|--states, whose|top --states --by function
--sort|rows of code|top --sort wait
END
while read -r option arguments; do
	# shellcheck disable=SC2086 # words
	check "$option is not for record ${arguments/-p $sleeper/}" refuses 2 "$option is not for " record $arguments
done <<END
--max-overhead -p $sleeper --max-overhead 5
--no-times -p $sleeper --no-times
--native -p $sleeper --native --call-graph=none
--unwind-memory -p $sleeper --unwind-memory 5 --call-graph=fp
--wall -p $sleeper --wall --scale 0x10000
END
for command in "convert --no-times $work/x.pb.gz $work/x.folded" "merge --no-times $work/x.pb.gz -o $work/x.folded" \
	"record --no-times -p $sleeper -o $work/x.folded"; do
	# shellcheck disable=SC2086 # words
	check "--no-times is for pprof: ${command%% *}" refuses 2 "--no-times is for pprof, not for folded" $command
done
# What is shown anyway may be named, and the last of two kinds of rows counts.
same_rows() {
	diff <("$profiltool" report -q --by image - <<<"main;f 3") <("$profiltool" report -q --by line --by-image - <<<"main;f 3") &&
		diff <("$profiltool" report -q - <<<"main;f 3") <("$profiltool" report -q --by-image --by function - <<<"main;f 3")
}
check "of --by and --by-image the last one counts" same_rows

# --- Words ---

check "an unknown option" usage "unknown option: --nonsense" -p "$sleeper" --nonsense
for pair in --outptu:--output --frequenc=9:--frequency --inlin:--inline; do
	check "${pair%%:*} is no option" usage "did you mean ${pair#*:}?" -p "$sleeper" "${pair%%:*}"
done
check "a process that is named twice" exits 4 "$profiltool" -p "$sleeper,$sleeper" -p "$sleeper" -d 0.1
check "a process that is named twice: is one" \
	says "no tick fell into sleep (PID $sleeper), which"
check "an unknown letter" usage "unknown option: -Z" -p "$sleeper" -Z
check "an option without its value" usage "a value is missing after: -p" -p
check "an unknown command" refuses 2 "there is no command \"nonsense\"" nonsense
check "an unknown command: the hint" says "profiltool -p PID"
for pair in reprot:report repotr:report dif:diff flame-graph:flamegraph flamegrap:flamegraph \
	rcord:record convertt:convert checl:check tpo:top; do
	check "${pair%:*} is no command" refuses 2 "did you mean profiltool ${pair#*:}?" "${pair%:*}"
done
long=$(printf 'report%.0s' {1..100})
for word in "$long" x nonsense "" $'\xff\xfe'; do
	check "a word that is like no command" refuses 2 "there is no command" "$word"
	check "a word that is like no command: is like none" \
		test "$(grep -c 'did you mean' "$work/err")" -eq 0
done
check "nothing at all" refuses 2 "profiltool -p 1234"
for second in -a "-t 1" "-- true" true; do
	# shellcheck disable=SC2086 # several words
	check "-p with $second" usage "exclude each other" -p "$sleeper" $second
done
check "-a with a command" usage "exclude each other" -a true
check "--json and -o - at once" refuses 2 "both want standard output" -p "$sleeper" --json -o -
check "--json and -o - at once: the hint" says "-o FILE"
for command in report dump convert; do
	out=()
	[ $command = convert ] && out=("$work/out.pb.gz")
	check "$command without a file" refuses 2 "profiltool $command" "$command"
	check "$command --help" exits 0 "$profiltool" "$command" --help
	check "$command of a file that does not exist" refuses 1 "$work/none: No such file or directory" \
		"$command" "$work/none" "${out[@]}"
	check "$command of a file without a name" refuses 2 '""' "$command" "" "${out[@]}"
	check "$command of a directory" refuses 1 "$work" "$command" "$work" \
		"${out[@]}"
	check "$command of what is no profile" refuses 1 "/etc/passwd is a text file that is no profile" \
		"$command" /etc/passwd "${out[@]}"
done
for format in pprof dcpi; do
	check "convert -f $format to a file without a name" \
		refuses 2 'the name of the file to write is ""' convert -f $format "$work/none" ""
done
check "convert to a file without a name" refuses 2 'the name of the file to write is ""' \
	convert "$work/none" ""
check "no file came of it" test ! -e "$work/out.pb.gz"
check "--help" exits 0 "$profiltool" --help
check "--help is on standard output" grep -q "profiltool -p 1234" "$work/out"
check "--version" exits 0 "$profiltool" --version

# --- Frequencies above the kernel's limit ---

# The limit is the machine's: another stands in its place where only the tool sees it.
echo 500 >"$work/limit"
# shellcheck disable=SC2016 # the inner shell expands it
with_limit() {
	unshare -m sh -c 'mount --bind "$1" /proc/sys/kernel/perf_event_max_sample_rate && shift &&
		exec "$@"' sh "$work/limit" "$profiltool" "$@"
}
if unshare -m true 2>/dev/null; then
	check "a frequency above the kernel's limit" exits 1 with_limit -p "$sleeper" -F 501
	check "a frequency above the kernel's limit: says what the limit is" \
		says "above the kernel's limit of 500 Hz"
	check "a frequency above the kernel's limit: names the sysctl that fixes it" \
		says "sysctl kernel.perf_event_max_sample_rate=501"
	check "a frequency at the limit is taken" exits 4 with_limit -p "$sleeper" -F 500 -d 0.1
else
	skip "a frequency above the kernel's limit" "unshare -m does not work here"
fi

# --- Targets ---

# The number of a process that has ended.
true &
gone=$!
wait "$gone"
check "a process that does not exist" refuses 1 "process $gone: there is no such process" -p "$gone"
check "two that do not exist" refuses 1 "process $gone: there is no such process" -p "$gone,2147483647"
start sleep 1000
wait_for grep -q nanosleep "/proc/$pid/wchan"
check "one of three does not exist" exits 4 "$profiltool" -p "$gone,$sleeper,$pid" -d 0.1
check "one of three: it is left out" says "not recorded: cannot profile process $gone: there is no such process"
check "one of three: the others are recorded" says "sleep (PID $sleeper) and 1 more"
check "of many, the first are reported" exits 4 "$profiltool" -d 0.1 \
	-p "$sleeper,$(seq -s , 2147483000 2147483019)"
check "of many: five are named" test "$(grep -c 'not recorded: cannot' "$work/err")" -eq 5
check "of many: the number of the others is reported" says "not recorded: 15 more"
check "top: one of two does not exist" \
	exits 4 "$profiltool" top -p "$gone,$sleeper" --tables 1 -d 0.1
check "top: it is left out" says "not recorded: cannot profile process $gone: there is no such process"
check "a thread that does not exist" refuses 1 "thread $gone: there is no such thread" -t "$gone"
check "a number that no process can have" refuses 1 "there is no such process" -p 2147483647
check "how to find one" says "ps -e"

kernel_thread=$(kernel_thread)
if [ -n "$kernel_thread" ]; then
	check "a kernel thread" refuses 1 "is a kernel thread" -p "$kernel_thread"
	check "a kernel thread: the hint" says "--kernel"
	code=$(status "$profiltool" -p "$kernel_thread" --kernel -F 9999 -d 0.2)
	check "a kernel thread with --kernel" test "$code" = 0 -o "$code" = 4
else
	skip "a kernel thread" "none is to be seen here"
fi

# A zombie: its parent does not ask for it, once it is no shell any more.
bash -c 'until grep -qx sleep /proc/$$/comm; do :; done & echo $!; exec sleep 1000' >"$work/zombie" &
note_started $!
is_zombie() {
	zombie=$(cat "$work/zombie") && grep -q '^State:.Z' "/proc/$zombie/status"
}
wait_for is_zombie
check "a zombie" refuses 1 "it is a zombie" -p "$zombie"

begin shares "$progs/shares" 1
tid=$(basename "$(printf '%s\n' "/proc/$pid/task/"* | grep -v "/$pid\$")")
check "a thread given to -p" refuses 1 "$tid (shares) is not a process but a thread of process $pid" \
	-p "$tid"
check "a thread given to -p: the hint" says "-t $tid"
check "-t of a thread" exits 0 until_used "$tid" 500 "$profiltool" -t "$tid" -F 4999
stop "$pid"

check "itself asleep: no samples" exits 4 "$profiltool" -p "$sleeper" -F 999 -d 0.2 -o "$work/none.pb.gz"
check "no samples: reported" says "no samples"
check "no samples: the account is there" says "ticks 0 = counted 0"

# What it does instead. waits TEXT COMMAND...
waits() {
	local text=$1
	shift
	exits 4 "$@" && grep -qE "no samples: no tick fell into .*, which used 0\.[0-9]{3} s of CPU in [0-9]\.[0-9]{2} s: $text\$" \
		"$work/err" && return
	echo "not: $text"
	cat "$work/err"
	return 1
}
where=$(cat "/proc/$sleeper/wchan")
check "a process that sleeps" waits "it waits in $where" "$profiltool" -p "$sleeper" -d 0.1
check "a process that sleeps: what says more" says "--wall records for what it waits, and where"
check "a command that is over before a tick: what says more" exits 4 "$profiltool" -F 1 -q -- true
check "a command that is over before a tick: what says more" says "-F 9999 takes more samples of what is short"
first_says_who() {
	terminal 80x24 "$profiltool" record -p "$sleeper" -d 0.1 >"$work/screen"
	cat "$work/screen"
	sed 's/.*\x1b\[K//' "$work/screen" | head -n 1 | grep -q '^sleep (PID ' # without what the progress was
}
check "no samples on a terminal: the first line is about the process all the same" first_says_who
check "a thread that sleeps" waits "it waits in $where" "$profiltool" -t "$sleeper" -d 0.1
cat >"$work/threads.py" <<'PY'
import os, select, threading, time
for i in range(4):
	threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
threading.Thread(target=lambda: select.poll().poll(), daemon=True).start()
print("ready", flush=True)
os.read(os.pipe()[0], 1)
PY
check "a program of six threads" start_ready python3 -u "$work/threads.py"
# places PID: how many threads wait where, most first, as it is to be said
places() {
	for task in "/proc/$1/task"/*; do
		sed 's/\..*//' "$task/wchan" # poll_schedule_timeout.constprop.0
		echo
	done | sort | uniq -c | sort -k1,1nr -k2 | awk '{ text = text sprintf("%s%d%s %s in %s",
		NR > 1 ? ", " : "", $1, NR > 1 ? "" : " threads", $1 == 1 ? "waits" : "wait", $2) }
		END { print text }'
}
settled() {
	places "$pid" | grep -qE '^4 threads wait in [a-z]\w+, 1 waits in [a-z]\w+, 1 waits in [a-z]\w+$'
}
check "they all wait" wait_for settled
check "threads that wait in one place are counted" waits "$(places "$pid")" "$profiltool" -p "$pid" -d 0.1
check "of several processes, too" waits "$(places "$pid" | sed 's/^4/5/')" "$profiltool" \
	-p "$pid,$sleeper" -d 0.1
sleep 1000 &
stopped=$!
note_started "$stopped"
kill -STOP "$stopped"
wait_for grep -q '^State:.T' "/proc/$stopped/status"
check "a process that was stopped" waits "it is stopped by a signal" "$profiltool" -p "$stopped" -d 0.1

# A recording without samples in a pipe.
piped() {
	"$profiltool" record -p "$sleeper" -d 0.1 -o - 2>/dev/null | exits 4 "$profiltool" report "$@" -
}
check "record -o - | report -" piped
check "record -o - | report -: is an empty table" \
	test "$(cat "$work/out")" = "samples  %  cum%  function  image"
check "with a summary" grep -q '^profiltool: standard input: [0-9]' "$work/err"
check "record -o - | report -: that is reported" says "profiltool: standard input has no samples"
check "report -q: no summary" piped -q
check "only what is wrong" test "$(cat "$work/err")" = "profiltool: standard input has no samples"

# What ends while it is recorded.
begin ends "$progs/shares" 1 0.3 wait
record_begin ends -p "$pid" -F 999 -d 60 -o "$work/ends.pb.gz"
send_line ends go
wait "$recorder"
check "it ends before -d: written but incomplete" test $? -eq 3
check "it ends before -d: says when" grep -q 'incomplete: shares (PID [0-9]*) ended after [0-9.]* s' \
	"$work/ends.err"
check "it ends before -d: the table is there" grep -q 'burn_sixty  *shares' "$work/ends.json"
check "it ends before -d: the file is there" exits 0 "$profiltool" report "$work/ends.pb.gz"

begin ended "$progs/shares" 1 0.3 wait
record_begin ended -p "$pid" -F 999
send_line ended go
wait "$recorder"
check "it ends, without -d: done" test $? -eq 0
check "it ends, without -d: the table is there" grep -q 'burn_sixty  *shares' "$work/ended.json"

# Ends at once: whenever it does so, there is an answer.
codes=""
for delay in 0 0.01 0.03 0.05 0.1; do
	sleep "$delay" &
	codes+=$(status timeout 60 "$profiltool" -p $! -F 999)
done
check "it ends while profiltool attaches: few samples or none, or not there" test "${codes//[014]/}" = ""

# --- Permission ---

# A copy that the user nobody may read and run, wherever the tests are.
cp "$profiltool" "$work/profiltool"
chmod 755 "$work" "$work/profiltool"
if setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" --version >/dev/null 2>&1; then
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" "$@"
	}
	for target in "-p $sleeper" "-t $sleeper" -a "-- touch $work/touched"; do
		# shellcheck disable=SC2086 # several words
		check "as nobody, $target: not permitted" exits 5 as_nobody record -d 0.1 $target
		check "as nobody, $target: why" grep -qE "(Operation not permitted|Permission denied)$" "$work/err"
		check "as nobody, $target: the hint" says "profiltool check has the command"
	done
	check "as nobody: the command was not started" test ! -e "$work/touched"
	check "as nobody: help" exits 0 as_nobody --help
else
	skip "as nobody" "setpriv cannot become nobody here"
fi

# --- A file with capabilities ---

# With more of them than any hint gives: the user's own rights count all the same. Only nobody's group can run it.
mkdir -m 750 "$work/capable"
capable=$work/capable/profiltool
cp "$profiltool" "$capable"
cp "$progs/shares" "$work/shares"
chgrp 65534 "$work/capable" 2>/dev/null
all=cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_checkpoint_restore,cap_sys_admin,cap_dac_read_search,cap_dac_override
member=(setpriv --reuid=65534 --regid=65534 --clear-groups)
as_member() {
	"${member[@]}" "$@"
}
if setcap "$all=ep" "$capable" 2>/dev/null && as_member "$capable" --version >/dev/null 2>&1; then
	mkdir -m 777 "$work/members"
	cd "$work/members" || exit 1
	umask 077
	echo "root;secret 7" >"$work/secret.folded"
	echo "a secret of root's" >"$work/secret.c"
	ln -s "$work/secret.folded" link.folded
	umask 022
	for command in report dump annotate "flamegraph -o secret.svg"; do
		# shellcheck disable=SC2086 # several words
		check "capabilities: $command does not read root's file" exits 5 as_member "$capable" $command "$work/secret.folded"
	done
	check "capabilities: nor through a link" exits 5 as_member "$capable" report link.folded
	check "capabilities: diff does not" exits 5 as_member "$capable" diff "$work/secret.folded" "$work/secret.folded"
	check "capabilities: convert does not" exits 5 as_member "$capable" convert "$work/secret.folded" "$work/members/copy.pb.gz"
	check "capabilities: merge does not" exits 5 as_member "$capable" merge "$work/secret.folded" -o "$work/members/copy.pb.gz"
	check "capabilities: nothing was copied" test ! -e "$work/members/copy.pb.gz"
	printf '%s\n' "events: Samples" "fl=$work/secret.c" "fn=f" "1 10" >"$work/members/names.callgrind"
	as_member "$capable" annotate --source-only f "$work/members/names.callgrind" >"$work/out" 2>&1
	check "capabilities: annotate does not print a file that a profile names" test "$(grep -c "a secret" "$work/out")" -eq 0
	echo kept >"$work/kept.pb.gz"
	check "capabilities: -o does not replace root's file" exits 5 as_member "$capable" record -o "$work/kept.pb.gz" -- \
		"$work/shares" 1 0.1
	check "capabilities: it is untouched" test "$(cat "$work/kept.pb.gz")" = kept
	check "capabilities: -o into root's directory" exits 5 as_member "$capable" record -o "$work/new.pb.gz" -- "$work/shares" 1 0.1
	check "capabilities: a command is recorded" exits 0 as_member "$capable" record -F 999 -o own.pb.gz -- "$work/shares" 1 0.2
	check "capabilities: with its names" sh -c '"$1" report own.pb.gz | grep -q burn_sixty' - "$profiltool"
	check "capabilities: the file is the user's" test "$(stat -c %u own.pb.gz)" = 65534
	as_member "$capable" record -q -- grep ^Cap /proc/self/status >"$work/out" 2>&1
	check "capabilities: the command has none" test "$(grep -cE '^Cap[IPEA][a-z]+:[[:blank:]]*0+$' "$work/out")" -eq 4
	check "capabilities: every requirement is met" exits 0 as_member "$capable" check
	check "capabilities: the kernel's names, too" grep -q "^ok  *kernel names " "$work/out"
	check "capabilities: a process of another user's is recorded" sh -c '"$@" 2>&1 | grep -q "ticks 0 = counted 0"' - \
		"${member[@]}" "$capable" -p "$sleeper" -d 0.1
	# What a process has while it waits for its input, or records.
	mkfifo "$work/members/fifo"
	start "${member[@]}" "$capable" report "$work/members/fifo"
	check "capabilities: report has given them up" wait_for sh -c \
		'[ "$(readlink "/proc/$1/exe")" = "$2" ] && grep -q "^CapPrm:[[:blank:]]*0*$" "/proc/$1/status"' - "$pid" "$capable"
	stop "$pid"
	start "${member[@]}" "$capable" top -p "$sleeper" --tables 100 -d 0.1
	check "capabilities: top can record, and holds them back" wait_for sh -c \
		'[ "$(readlink "/proc/$1/exe")" = "$2" ] && grep -q "^CapEff:[[:blank:]]*0*$" "/proc/$1/status" &&
		 ! grep -q "^CapPrm:[[:blank:]]*0*$" "/proc/$1/status"' - "$pid" "$capable"
	stop "$pid"
	chmod u+s "$capable"
	check "set-user-ID: refused" exits 5 as_member "$capable" report own.pb.gz
	check "set-user-ID: what to do" says "chmod ug-s"
	cd "$top" || exit 1
else
	skip "a file with capabilities" "setcap or setpriv does not work here"
fi

finish
