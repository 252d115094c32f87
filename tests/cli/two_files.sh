#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two files with one path: an old and a new build side by side, with and without build IDs, and a library in two mount
# namespaces. Each tick is named by the file that its process has mapped: there is no chance about it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip "two files with one path" "it needs root and mount namespaces"
	finish
fi

# compile OPTION... <SOURCE
compile() {
	gcc -std=gnu11 -O1 -g -fno-omit-frame-pointer -x c - "$@"
}
# burn NAME: a function that uses the CPU.
burn() {
	echo 'volatile unsigned long sink;'
	# A new build has others before it.
	[[ $1 != *new* ]] || echo '__attribute__((noinline, used)) static void other(void) { sink++; sink += 2; sink += 3; }'
	echo "__attribute__((noinline)) static void $1(void) { for (int i = 0; i < 100000; i++) sink += i; }"
}
# begin_one FUNCTIONS COMMAND...: starts a program that has only these functions, or in other files than the two.
processes=() has=()
begin_one() {
	local functions=$1
	shift
	start_ready "$@" || return
	processes+=("$pid")
	has+=("$pid=$functions")
}
# roll NAME OPTION: two builds of $work/NAME, the new one put in the place of the old one, which goes on.
roll() {
	local build
	for build in old new; do
		{ burn "${build}_$1" && printf '%s\n' "#include <unistd.h>" \
			"int main(void) { for (write(1, \"ready\\n\", 6);;) ${build}_$1(); }"; } |
			compile "$2" -o "$work/$1.new" && mv "$work/$1.new" "$work/$1" &&
			begin_one "${build}_$1,main" "$work/$1" || return
	done
}
check "two builds of a program, side by side" roll shop -Wl,--build-id
check "two builds without build IDs" roll bare -Wl,--build-id=none

# One file has the library's path here, another one in a mount namespace, which is stripped: what it has is unnamed.
mkdir "$work/lib" "$work/guest"
for place in lib guest; do
	{ burn "${place}_new" && echo "void work(void) { ${place}_new(); }"; } |
		compile -shared -fPIC -Wl,--build-id -o "$work/$place/libwork.so"
done
strip "$work/guest/libwork.so"
compile -o "$work/worker" -L "$work/lib" -lwork -Wl,-rpath,"$work/lib" <<-'EOF_C'
	#include <unistd.h>
	void work(void);
	int main(void) { for (write(1, "ready\n", 6);;) work(); }
EOF_C
check "a library" begin_one "lib_new,work,work@plt,main" "$work/worker"
check "another one at its path, in a mount namespace" begin_one "libwork.so+,work,work@plt,main" \
	unshare -m --propagation private sh -c 'mount --bind "$1/guest" "$1/lib" && exec "$1/worker"' - "$work"

# judge FILE...: in user space, all ticks of each process are in its own functions, and there are some.
judge() {
	local file
	for file; do
		"$profiltool" dump --json "$file" >"$work/dumped" || return
		python3 -c '
import json, sys
has = {int(pid): names.split(",") for pid, names in (arg.split("=") for arg in sys.argv[2:])}
right, wrong = {pid: 0 for pid in has}, []
for s in json.load(open(sys.argv[1]))["stacks"]:
	labels = s.get("labels", {})
	pid = labels.get("pid")
	if pid not in has or labels.get("kernel"):
		continue
	name = s["functions"][0][0].split(" ")[0]
	ok = name in has[pid] or any(n[-1] == "+" and name.startswith(n) for n in has[pid])
	right[pid] += ok * s["count"]
	wrong += [] if ok else [(pid, name, s["count"])]
print(right, "wrong:", wrong)
sys.exit(bool(wrong) or not all(right.values()))' "$work/dumped" "${has[@]}" || return
	done
}

# while_used COMMAND...: has each process use the CPU, and then runs the command.
while_used() {
	local process
	kill -CONT "${processes[@]}"
	for process in "${processes[@]}"; do
		wait_for_use "$process" 20 || return
	done
	"$@"
	kill -STOP "${processes[@]}"
}
kill -STOP "${processes[@]}"
record_begin pids record -q -F 999 -p "$(IFS=, && echo "${processes[*]}")" -o "$work/pids.pb.gz"
check "by PID: recorded" while_used record_end
check "by PID: all ticks have the names of their own file" judge "$work/pids.pb.gz"
record_begin all record -q -F 999 -g -a -o "$work/all.pb.gz"
check "the whole machine: recorded" while_used record_end
check "the whole machine: all ticks have the names of their own file" judge "$work/all.pb.gz"
"${pdeathsig[@]}" "$build/profild" --continuous --verbose --directory "$work/windows" --window 600 -F 997 2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
check "an archive: begun" wait_for grep -q "records cpu-clock into" "$work/daemon.err"
end_daemon() {
	kill -TERM "$daemon" && wait "$daemon"
}
check "an archive: recorded" while_used end_daemon
check "an archive: all ticks have the names of their own file" judge "$work"/windows/*/*/*.pb.gz
check "merged" "$profiltool" merge -o "$work/merged.pb.gz" "$work/pids.pb.gz" "$work/all.pb.gz" "$work"/windows/*/*/*.pb.gz
check "merged: all ticks have the names of their own file" judge "$work/merged.pb.gz"

# builds FILE: of which builds the library is, and how many files without a build ID there are.
builds() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
m = json.load(sys.stdin)["mappings"]
print(*sorted({x["build_id"] for x in m if x["path"].endswith("/lib/libwork.so")}), len({x["file"] for x in m if x["path"].endswith("/bare")}))'
}
expected=$(for place in lib guest; do readelf -n "$work/$place/libwork.so" | sed -n 's/.*Build ID: //p'; done | sort | tr '\n' ' ')2
for file in pids all merged; do
	check "$file: two builds of the library, and two files without one" [ "$(builds "$work/$file.pb.gz")" = "$expected" ]
done

check "a namespace's file is not here when it is reported" exits 0 "$profiltool" report "$work/pids.pb.gz"
check "a namespace's file is not here when it is reported: said as it is" \
	says "without symbols: another file has its path here (build ID differs)"
finish
