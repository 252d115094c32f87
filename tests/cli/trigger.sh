#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous --trigger: the seconds around SIGUSR2, load, pressure and a command's status become a file of their
# own; what others could make of the command; limits.
# shellcheck disable=SC2317,SC2016 # functions are called by check; shells expand

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/control_group.sh
. "$top/tests/control_group.sh"

profild=$build/profild
directory=$work/archive
host=$(uname -n)

# --- Options ---

refuses() {
	exits 2 "$profild" --continuous --directory "$work/none" --trigger "$1" && says "${2:---trigger: takes pressure:RESOURCE:PERCENT}"
}
for what in x signal pressure pressure:cpu pressure:cpu: pressure:cpu:0 pressure:cpu:x pressure::5 load:5 load:a/b:-1 command: \
	command load:a:1000001; do
	check "--trigger $what" refuses "$what"
done
for option in --trigger-before --trigger-after; do
	for value in x -1 301; do
		check "$option $value" exits 2 "$profild" --continuous "$option" "$value"
	done
done
for value in 0 61 x; do
	check "--trigger-limit $value" exits 2 "$profild" --continuous --trigger-limit "$value"
done
many=()
for i in {1..17}; do
	many+=(--trigger "load:x:$i")
done
check "17 triggers" exits 2 "$profild" --continuous "${many[@]}"
check "17 triggers: why" says "can be given 16 times"
check "triggers without times" exits 2 "$profild" --continuous --directory "$work/none" --retain-times 0 --trigger load:x:1
check "triggers without times: why" says "--retain-times 0"
check "without a mode" exits 2 "$profild" --trigger load:x:1
check "without a mode: named" says "--trigger goes with --continuous"

if [ "$(id -u)" != 0 ]; then
	skip "recording" "recording needs root"
	finish
fi
check "a resource that there is not" refuses pressure:disk:5 "resources are cpu, memory and io"
check "a resource with a path" refuses pressure:../stat:5 "resources are cpu, memory and io"
check "all these make no files" test -z "$(find "$work/none" -name '*.pb.gz' 2>/dev/null)"
rm -rf "$work/none"

# --- Commands that others could choose ---

# denied PATH PART: it is not run, because others can change PART, and the exit status is 5.
denied() {
	exits 5 "$profild" --continuous --directory "$work/none" --trigger "command:$1" && says "cannot run $1: other users can change $2"
}
command=$work/command
printf '#!/bin/sh\nexit 0\n' >"$command"
chmod 755 "$command"
mkdir "$work/theirs" "$work/open"
cp "$command" "$work/theirs"
cp "$command" "$work/open"
cp "$command" "$work/of_nobody"
cp "$command" "$work/writable"
ln -s "$command" "$work/link"
ln -s "$command" "$work/link_of_nobody"
ln -s "$work/theirs/command" "$work/link_to_theirs"
chown 65534 "$work/theirs" "$work/of_nobody"
chown -h 65534 "$work/link_of_nobody"
chmod 777 "$work/open"
chmod 757 "$work/writable"
check "a command that another user owns" denied "$work/of_nobody" "$work/of_nobody"
check "a command that others may write" denied "$work/writable" "$work/writable"
check "a command in another user's directory" denied "$work/theirs/command" "$work/theirs"
check "a command in a directory that others may write" denied "$work/open/command" "$work/open"
check "another user's link to a command" denied "$work/link_of_nobody" "$work/link_of_nobody"
check "root's link to another user's directory" denied "$work/link_to_theirs" "$work/theirs"
check "a way through another user's directory" denied "$work/theirs/../command" "$work/theirs"
check "a relative path" refuses command:bin/true "it is not an absolute path"
check "a command that there is not" exits 1 "$profild" --continuous --directory "$work/none" --trigger "command:$work/no"
check "a command that there is not: named" says "cannot run $work/no: No such file or directory"
check "a command that is a directory" exits 5 "$profild" --continuous --directory "$work/none" --trigger command:/usr/bin

# --- A daemon; $daemon is its process ---

# begin_daemon OPTION...: starts it in a new $directory, or $again, without windows that end by themselves.
begin_daemon() {
	local length

	for length in 3600 3500 3400; do
		[ $((length - $(date +%s) % length)) -lt 300 ] || break
	done
	[ -n "${again:-}" ] || rm -rf "$directory"
	: >"$work/daemon.err"
	"${pdeathsig[@]}" "$profild" --continuous --verbose --directory "$directory" --window "$length" "$@" 2>>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q "records cpu-clock into" "$work/daemon.err"
	begun_ns=$(date +%s%N)
}

end_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
}

logged() {
	wait_for grep -qE -- "$1" "$work/daemon.err" && return
	cat "$work/daemon.err"
	return 1
}

# logged_times COUNT TEXT: so many lines of the log have it.
logged_times() {
	[ "$(grep -cF -- "$2" "$work/daemon.err")" -eq "$1" ] && return
	cat "$work/daemon.err"
	return 1
}

has_recorded() {
	[ $(($(date +%s%N) - begun_ns)) -ge "$1"000000000 ]
}

# files NAME: the files of this trigger.
files() {
	find "$directory/$host" -name "*-trigger-$1.pb.gz" | sort
}

# examine EXPRESSION FILE: whether it is true of `dump --json`, j, with t, all times.
examine() {
	"$profiltool" dump --json "$2" >"$work/dump.json" 2>"$work/err" || { cat "$work/err"; return 1; }
	python3 -S -c '
import json, sys
j = json.load(open(sys.argv[2]))
t = [j["time_ns"] + time for s in j["stacks"] for time in s.get("times_ns", [])]
value = eval(sys.argv[1])
if not value:
	print({k: j.get(k) for k in ("time_ns", "duration_ns", "samples", "comments")}, len(t), min(t), max(t))
sys.exit(not value)' "$1" "$work/dump.json"
}

# --- SIGUSR2 ---

begin_daemon --trigger-before 2 --trigger-after 2 --trigger-limit 3 --metrics "$work/metrics.prom"
start "$progs/shares" 1 1000 lazier
burner=$pid
wait_for has_recorded 2
wait_for_use "$burner" 100 # there are ticks in the seconds before it
before_ns=$(date +%s%N)
kill -USR2 "$daemon"
check "SIGUSR2: said" logged "trigger signal: keeps 2 seconds before and 2 after it"
after_ns=$(date +%s%N)
check "SIGUSR2: its file is named" logged "trigger signal: wrote $directory/$host/20..-..-../......-trigger-signal.pb.gz"
file=$(files signal)
check "SIGUSR2: there is one" test -s "$file"
check "SIGUSR2: it has the seconds before and after" examine \
	"j['duration_ns'] == 4 * 10 ** 9 and $before_ns <= j['time_ns'] + 2 * 10 ** 9 <= $after_ns" "$file"
check "SIGUSR2: each tick has its time" examine "len(t) == j['samples'] == sum(s['count'] for s in j['stacks']) > 0" "$file"
check "SIGUSR2: which is in these seconds" examine \
	"j['time_ns'] <= min(t) and max(t) < j['time_ns'] + j['duration_ns']" "$file"
check "SIGUSR2: before and after" examine "min(t) < j['time_ns'] + 2 * 10 ** 9 < max(t)" "$file"
check "SIGUSR2: no tick is there twice" examine "len(t) <= $(nproc) * (4 * 97 + 2)" "$file"
check "SIGUSR2: what ran is named" sh -c '"$1" report --comm shares "$2" | grep -q burn_sixty' - "$profiltool" "$file"
check "SIGUSR2: the file says why it is there" examine "'trigger=signal' in j['comments']" "$file"
not_twice() {
	local windows

	mapfile -t windows < <(find "$directory/$host" -name '[0-9]*.pb.gz' ! -name '*-*')
	"$profiltool" merge -q -o "$work/all.pb.gz" "${windows[@]}" && "$profiltool" report --json "$work/all.pb.gz" >"$work/all.json" &&
		"$profiltool" report --json "$directory" >"$work/asked.json" 2>"$work/err" &&
		json "j['counted'] == $(sed -n 's/^ *"counted": \([0-9]*\).*/\1/p' "$work/all.json")" "$work/asked.json"
}
check "the archive's reports do not count them twice" not_twice

kill -USR2 "$daemon"
wait_for logged_times 2 "trigger signal: wrote"
kill -USR2 "$daemon"
wait_for logged_times 3 "trigger signal: wrote"
kill -USR2 "$daemon"
check "too many in an hour: said" logged "trigger signal: not kept: none of 3 in an hour is left for it"
kill -USR1 "$daemon" # the state is written with a window
counted() {
	"$profild" --status --json --directory "$directory" >"$work/status.json"
	json "(j['triggers_total'], j['triggers_refused_total'], j['triggers_failed_total']) == (3, 1, 0)" "$work/status.json"
}
check "--status counts them" wait_for counted
last=$(files signal | tail -n 1)
check "--status names the last" sh -c '"$1" --status --directory "$2" | grep -qxF "                 the last is $3"' - \
	"$profild" "$directory" "${last#"$directory/$host/"}"
check "the metrics name it, too" wait_for grep -qxF \
	"profil_last_trigger_info{file=\"${last#"$directory/$host/"}\",trigger=\"signal\"} 1" "$work/metrics.prom"
check "the metrics count them" wait_for grep -qx "profil_triggers_refused_total 1" "$work/metrics.prom"
check "no more files than that" test "$(files signal | wc -l)" -eq 3
end_daemon
again=yes begin_daemon --trigger-limit 3
kill -USR2 "$daemon"
check "those before a new start count, too" logged "trigger signal: not kept: none of 3 in an hour is left for it"
end_daemon
again=yes begin_daemon --trigger-before 60 --trigger-after 0 --trigger-limit 4
wait_for_use "$burner" 100
kill -USR2 "$daemon"
check "but no others" logged "trigger signal: wrote"
end_daemon

begin_daemon --trigger-after 300
kill -USR2 "$daemon"
logged "trigger signal: keeps" >"$work/out"
kill -USR2 "$daemon"
check "a second one meanwhile: said" logged "trigger signal: in the file of trigger signal, before it"
wait_for_use "$burner" 100
end_daemon
check "a second one meanwhile: there is one file" test "$(files signal | wc -l)" -eq 1
check "an end while seconds are awaited: the file has those that there are" examine "0 < len(t) == j['samples']" "$(files signal)"

begin_daemon --retain-times 0
kill -USR2 "$daemon"
check "SIGUSR2 without times: said" logged "trigger signal: --retain-times 0 keeps no times of ticks"
end_daemon

# --- A command ---

command=$work/slow
mkfifo "$work/never" # nobody writes to it: what reads it hangs
cat >"$command" <<-END
	#!/bin/sh
	exec >>"$work/slow.out" 2>&1
	echo \$\$ >"$work/slow.pid"
	cat "$work/never" &
	echo \$! >"$work/slow.left"
	echo >>"$work/slow.runs"
	[ ! -e "$work/looks" ] || [ -e "$work/looked" ] || . "$work/looks"
	[ ! -e "$work/hangs" ] || exec cat "$work/never"
	read -r code <"$work/slow.exit"
	exit "\$code"
END
# A command that has not ended when the next run is due hangs: this one looks around only where it is to hang.
cat >"$work/looks.later" <<-END
	grep -E '^(Cap[^B]..|NoNewPrivs|SigBlk|SigIgn)' /proc/self/status >"$work/slow.status"
	env | sort >"$work/slow.env"
	ls /proc/self/fd >"$work/slow.fds"
	{ printf 1234567890123456 >/proc/\$PPID/fd/3; } 2>"$work/slow.watcher"
	echo >"$work/looked"
END
chmod 755 "$command"
# ends_with STATUS: from its next run on. A run reads the whole file.
ends_with() {
	echo "$1" >"$work/slow.next"
	mv "$work/slow.next" "$work/slow.exit"
}
ends_with 0
runs() {
	[ "$(wc -l <"$work/slow.runs")" -ge "$1" ]
}
# runs_again: waits until two more runs have begun, so that one has ended.
runs_again() {
	wait_for runs $(($(wc -l <"$work/slow.runs") + 2))
}
: >"$work/slow.runs"
every=2 # a command that takes as long hangs, which on a busy machine one of 1 s seemed to
begin_daemon --trigger-before 1 --trigger-after 0 --trigger "command:$command:$every"
runs_again
check "a command that exits with 0" logged_times 0 trigger
gone() {
	! kill -0 "$(cat "$1")" 2>/dev/null
}
ends_with 3
check "another status is a trigger" logged "trigger command:$command:$every: wrote $directory/$host/.*-trigger-command.pb.gz"
runs_again
check "one that stays so is none" logged_times 1 "keeps 1 seconds before"
ends_with 0
runs_again
cp "$work/slow.left" "$work/left"
touch "$work/hangs"
check "a command that hangs is a trigger" wait_for logged_times 2 "trigger command:$command:$every: wrote"
runs_again
check "what it has left is killed" wait_for gone "$work/left"
mv "$work/looks.later" "$work/looks"
wait_for test -e "$work/looked"
# The two signals of libc's own, 32 and 33, are as whoever runs this test has them.
without_rights() {
	sed 's/[[:blank:]]//g' "$work/slow.status" >"$work/out"
	cat "$work/out"
	[ "$(grep -cE '^(Cap...:0000000000000000|NoNewPrivs:1|SigBlk:0000000000000000|SigIgn:0000000[01][08]0000000)$' "$work/out")" -eq 7 ]
}
check "it runs without capabilities, and cannot get any" without_rights
check "it has no variables of profild's" test -z "$(grep -vE '^(PATH|PWD|OLDPWD|SHLVL|_)=' "$work/slow.env")"
check "it has no descriptors of profild's" test "$(paste -sd ' ' "$work/slow.fds")" = "0 1 2 3" # 3: ls
check "it cannot report triggers by the watcher's" grep -q "Permission denied" "$work/slow.watcher"
rm "$work/hangs"
runs_again
chmod o+w "$command"
check "a command that others may change later is not run" logged "cannot run $command: other users can change $command"
chmod o-w "$command"
runs_again
watcher() {
	pgrep -P "$daemon" -x profild-watcher
}
touch "$work/hangs"
wait_for logged_times 3 "trigger command:$command:$every: wrote"
runs_again
first=$(watcher)
kill -KILL "$first"
check "the watcher is killed: said" logged "the process that looks for triggers has ended"
check "the watcher is killed: so is its command" wait_for gone "$work/slow.pid"
rm "$work/hangs"
end_started "$(cat "$work/slow.left")" # what the command had started is nobody's now
kill -USR1 "$daemon"
check "the watcher is killed: there is another" wait_for watcher
runs_again
ends_with 1
check "the watcher is killed: triggers come again" wait_for logged_times 4 "trigger command:$command:$every: wrote"
touch "$work/hangs"
runs_again
cp "$work/slow.left" "$work/left"
end_daemon
check "the end of profild ends a command, and what it has started" wait_for gone "$work/left"
check "the end ends it" test -z "$(pgrep -x profild-watcher -P "$daemon")"

rm "$work/hangs"
ends_with 0
begin_daemon --trigger-limit 2 --trigger-before 1 --trigger-after 0 --trigger "command:$command:$every"
runs_again
ends_with 1
wait_for logged_times 1 "trigger command:$command:$every: wrote"
ends_with 0
runs_again
ends_with 1
check "one that comes again leaves room for others: said" logged "trigger command:$command:$every: not kept: none of 2 in an hour"
kill -USR2 "$daemon"
check "one that comes again leaves room for others: SIGUSR2 is kept" logged "trigger signal: wrote"
kill -USR2 "$daemon"
check "but no more than may be kept" logged "trigger signal: not kept: none of 2 in an hour"
end_daemon

# --- Load and pressure ---

place=$(mount_of cgroup cpuacct)
place=${place:-$(mount_of cgroup2 '.*')}
if [ -n "$place" ]; then
	name=profil-load-$$
	begin_daemon --trigger-before 1 --trigger-after 0 --trigger "load:$name:5"
	check "a control group that may come later: said" logged "there is no control group $name yet"
	groups=("$place/$name")
	trap '[ "$BASHPID" = $$ ] && { remove_control_groups; cleanup; }' EXIT
	mkdir "$place/$name"
	wait_for has_recorded 3
	check "an idle group is no trigger" logged_times 0 "trigger load"
	with_pdeathsig sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" 1 1000' - "$place/$name" "$progs/shares" >"$work/out" &
	note_started $!
	check "the load of a control group is a trigger" logged "trigger load:$name:5: wrote $directory/$host/.*-trigger-load.pb.gz"
	end_daemon
	remove_control_groups
else
	skip "the load of a control group" "no cgroup file system is mounted"
fi
if grep -q total= /proc/pressure/cpu 2>/dev/null; then
	for _ in $(seq "$(($(nproc) + 1))"); do
		start "$progs/shares" 1 1000
	done
	begin_daemon --trigger-before 1 --trigger-after 1 --trigger pressure:cpu:1
	check "pressure is a trigger" logged "trigger pressure:cpu:1: wrote $directory/$host/.*-trigger-pressure.pb.gz"
	end_daemon
else
	skip "pressure is a trigger" "this kernel has no /proc/pressure"
fi
stop "$burner"

finish
