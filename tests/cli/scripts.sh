#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Scripts without an option: the functions of a process or command whose interpreter is known have names, others are
# recorded without stacks.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/control_group.sh
. "$top/tests/control_group.sh"

export LC_ALL=C.UTF-8
cd "$work" || exit
python=/usr/bin/python3
if [ "$(id -u)" -ne 0 ]; then
	skip "names of scripts" "recording needs root"
	finish
fi
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
	skip "names of scripts" "$python is not Python 3.11 to 3.14"
	finish
fi

cat >hot.py <<'EOF2'
#!/usr/bin/env python3
import sys, time

def hot():
    return sum(i * i for i in range(1000))

def work(seconds):
    while time.process_time() < seconds:
        hot()

print("ready", flush=True)
work(float(sys.argv[1]))
EOF2
chmod +x hot.py
mkdir bin && ln -s "$python" bin/python3 # before what else is in PATH
export PATH=$work/bin:$PATH

# named FILE: succeeds if the busiest function of a table with stacks is the script's.
named() {
	grep -A1 '^self' "$1" | grep -qE ' hot(\.<locals>\.<genexpr>)? +hot\.py$' || { cat "$1" && return 1; }
}

# record_used PID OPTION...: records until the process has used some CPU time; the table is in `out`.
record_used() {
	until_used "$1" 300 "$profiltool" record "${@:2}" >out 2>err
}

# flat FILE: succeeds if a table has no stacks.
flat() {
	grep -q '^samples .*cum%' "$1"
}

# command OPTION... -- COMMAND...: records it.
command_recorded() {
	exits 0 "$profiltool" record "$@"
}

# --- Commands ---

check "a command that runs a script" command_recorded -- python3 hot.py 0.5
check "its functions have names without -g" named out
check "that stacks were recorded is said, and how to do without" \
	says "call stacks were recorded, to name the functions of scripts, or queries; without: --call-graph=none"
check "a file that begins with #! and env" command_recorded -- ./hot.py 0.5
check "its functions have names" named out
check "a script behind other programs" command_recorded -- nice -n 1 env A=b timeout 60 python3 hot.py 0.5
check "its functions, too" named out
check "--call-graph=none" command_recorded --call-graph=none -- python3 hot.py 0.5
check "--call-graph=none: no stacks" flat out
check "--call-graph=none: the functions of the interpreter, and a hint" says "recorded with -g, Python 3.11 to 3.14"
check "--native without -g" command_recorded --native -- python3 hot.py 0.5
check "--native without -g: both the interpreter's function and the script's" \
	eval 'grep -q " hot " out && grep -q _PyEval_EvalFrameDefault out'
check "a format that has no names" command_recorded -o hot.prof -- python3 hot.py 0.5
check "a format that has no names: no stacks" flat out
check "a shell that starts the script" command_recorded -- sh -c "python3 hot.py 0.5; :"
check "a shell that starts the script: a hint that is right" says "recorded with -g, Python 3.11 to 3.14"
check "a program that runs no script" command_recorded -- "$progs/shares" 1 0.3
check "a program that runs no script: no stacks" flat out
check "a command that is not there" exits 1 "$profiltool" record -- no_such_command

# --- Processes ---

start_ready ./hot.py 1000
script=$pid
check "a process that runs a script" record_used "$script" -p "$script"
check "a process: its functions have names without -g" named out
check "a process: JSON" record_used "$script" -p "$script" --json
check "a process: stacks are in JSON" json '(j["stacks"]["complete"] == j["stacks"]["user"] > 0) and (
	any(f["name"] == "work" and f["total"] > f["self"] for f in j["functions"]))' out
if make_control_group; then
	echo "$script" >"$group/cgroup.procs"
	check "a control group whose process runs a script" record_used "$script" --cgroup "$group"
	check "a control group: names" named out
	mkdir "$group/none"
	start "$progs/shares" 1
	echo "$pid" >"$group/none/cgroup.procs"
	check "a control group whose processes run no script" record_used "$pid" --cgroup "$group/none"
	check "a control group whose processes run no script: no stacks" flat out
	stop "$pid"
else
	skip "a script in a control group" "no control group can be made here"
fi
user=$((60000 + $$ % 500))
chmod 755 "$work"
start_ready setpriv --reuid=$user --regid=65534 --clear-groups python3 "$work/hot.py" 1000
check "a user whose processes run a script" record_used "$pid" -u "$user"
check "a user: names" named out
stop "$pid"
check "a thread" record_used "$script" -t "$script"
check "a thread: names" named out
start "$progs/shares" 1
other=$pid
check "one of two processes runs a script" record_used "$script" -p "$other,$script"
check "one of two processes: names" grep -qE '^ +[1-9][0-9]* .* hot +hot\.py$' out
check "a process that runs no script" record_used "$other" -p "$other"
check "a process that runs no script: no stacks" flat out
check "with --scale the histogram" record_used "$script" --scale 0x10000 -p "$script"
check "with --scale: no stacks" flat out
check "the whole machine" record_used "$script" -a
check "the whole machine: no stacks" flat out

stop "$other"
kill -CONT "$script"
check "top" exits 0 "$profiltool" top -p "$script" --tables 3 -d 0.5
check "top: names without -g" grep -qE "^ +[1-9][0-9]* .* hot(\.<locals>\.<genexpr>)? +hot\.py$" out
check "top --call-graph=none" exits 0 "$profiltool" top -p "$script" --tables 2 -d 0.5 --call-graph=none
check "top --call-graph=none: the interpreter's functions" grep -q _PyEval_EvalFrameDefault out
check "top --by line" exits 0 "$profiltool" top -p "$script" --tables 2 -d 0.5 --by line
check "top --by line: the script's lines" grep -qE '/hot\.py +5 +hot ' out
check "top --by source" exits 0 "$profiltool" top -p "$script" --tables 2 -d 0.5 --by source
check "top --by source: the script" grep -qE '/hot\.py +hot\.py$' out
check "top -g of the whole machine" exits 0 "$profiltool" top -g --tables 2 -d 1 -E 0
check "top -g of the whole machine: the script's functions" grep -qE ' hot\.py$' out
stop "$script"

# --- Source in a container, whose files others do not see ---

mkdir inside kept && cp hot.py kept/inside.py
chmod 755 "$work" # annotate shows root only sources that all may read
start_ready unshare -m sh -c "mount -t tmpfs -o mode=755 none inside && cp kept/inside.py inside &&
	exec python3 \"$work/inside/inside.py\" 1000"
check "a script in a container" record_used "$pid" -o inside.pb.gz -p "$pid"
# has_source NAME: annotate shows the script's line 5.
has_source() {
	exits 0 "$profiltool" annotate "$@" -s hot inside.pb.gz &&
		grep -qE ' 5 +return sum\(i \* i for i in range\(1000\)\)' out
}
check "annotate shows its source while it runs" has_source
sed 's/^import.*/&\n&/' hot.py >inside/inside.py && touch -d "1 hour ago" inside/inside.py
check "and not another file that has its path here" has_source
stop "$pid"
check "once it has ended, what is here" exits 0 "$profiltool" annotate -s hot inside.pb.gz
check "that it is another file is said" says \
	"the function does not begin where it did: $work/inside/inside.py; it is another file, or was changed"
rm inside/inside.py
check "nothing is here" exits 0 "$profiltool" annotate -s hot inside.pb.gz
check "nothing is here: --source-path" says "source file not found: $work/inside/inside.py; --source-path names"
check "--source-path names a copy" has_source --source-path kept
check "of a copy, nothing is said" [ "$(grep -c "begin where" err)" = 0 ]

# --- Versions that are not known: said with their number, and nothing is guessed ---

# interpreter VERSION FREE_THREADED: makes bin/python3, a program that has what tells an interpreter's version:
# Py_Version, 0 for none, and the offsets for debuggers, which say whether it is free-threaded.
interpreter() {
	rm -f bin/python3
	${CC:-gcc} -rdynamic "$(own_build_id)" -o bin/python3 -x c - <<-EOF2
		#include <time.h>
		struct { char cookie[8]; unsigned long version, free_threaded; long more[1000]; } _PyRuntime =
			{ "xdebugpy", $1, $2 };
		char PyCode_Type[400];
		#if $1
		const unsigned long Py_Version = $1;
		#endif
		int main(void)
		{
			while (clock() < CLOCKS_PER_SEC / 4)
				for (volatile int i = 0; i < 1000000; i++)
					;
			return 0;
		}
	EOF2
}
for version in "0 0 Python before version 3.11" "0x030f02f0 0 Python 3.15.2" "0x030e01f0 1 free-threaded Python 3.14.1" \
	"0x040001f0 0 Python 4.0.1"; do
	read -r number free_threaded name <<<"$version"
	check "$name" interpreter "$number" "$free_threaded"
	check "$name: recorded" command_recorded -- python3
	check "$name: no stacks" flat out
	check "$name: is said, and what to do" says \
		"in C functions of the interpreter: $name is not supported: run it by Python 3.11 to 3.14, not free-threaded"
	check "$name: recorded with -g" command_recorded -g -- python3
	check "$name: with -g, the same" says "in C functions of the interpreter: $name is not supported"
done

finish
