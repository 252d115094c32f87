#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous while a user runs code of files that take gigabytes of memory, or minutes, to read: windows are
# written in time, and say what they lack.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../control_group.sh
. "$(dirname "$0")/../control_group.sh"

if [ "$(id -u)" != 0 ]; then
	skip "hostile files" "recording needs root"
	finish
fi
chmod 755 "$work"
cp "$build/profild" "$progs/hostile_files" "$work"
chmod 755 "$work/profild" "$work/hostile_files"
mkdir -m 777 "$work/made"
host=$(uname -n)
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

with=()
# record NAME: starts profild in $work/NAME, by the command $with; $daemon is its process.
record() {
	directory=$work/$1
	"${pdeathsig[@]}" "${with[@]}" "$work/profild" --continuous --verbose --window 2 --directory "$directory" \
		--metrics "$work/$1.prom" 2>"$directory.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -qE "records (cpu-clock|tick) into" "$directory.err"
}

has_windows() {
	[ "$(find "$directory/$host" -name '*.pb.gz' ! -name '.*' | wc -l)" -ge "$1" ]
}

# peak_below MIB: the daemon lives, and its memory was never more.
peak_below() {
	sed -n 's/^VmHWM:[[:blank:]]*/peak: /p' "/proc/$daemon/status"
	[ "$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$daemon/status")" -lt $(($1 * 1024)) ]
}

# read_below MIB: so much it has read since it began.
read_below() {
	grep rchar "/proc/$daemon/io"
	[ "$(sed -n 's/^rchar: //p' "/proc/$daemon/io")" -lt $(($1 << 20)) ]
}

end_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
}

odd=$work/made/$'\e[2J\nprofild: forged'
mkdir -m 777 "$odd"
check "40 libraries with a symbol table of 1,000 MiB" start_ready "${nobody[@]}" "$work/hostile_files" "$odd" 40 1000
hostile=$pid
check "profild records" record sparse
check "sparse tables: windows are written" wait_for has_windows 4
# 40 GiB are there to be read; in each window a user's files have 256 MiB, and all programs of a machine take less.
check "sparse tables: little of them is read" read_below 2000
check "sparse tables: with little memory" peak_below 250
check "sparse tables: -v says what is not read" \
	grep -q "forged/hostile[0-9]*.so: not read: its symbols take more than" "$directory.err"
check "sparse tables: ... without a line or an escape sequence of a path" \
	test "$(grep -cE $'^profild: forged|\e' "$directory.err")" -eq 0
check "sparse tables: ... and for whom the others wait" \
	grep -q "forged/hostile[0-9]*.so: not read in this window: files of " "$directory.err"
check "sparse tables: --status says it" sh -c '"$1" --status --directory "$2" | grep -q "^symbols unread *[1-9]"' - \
	"$work/profild" "$directory"
check "sparse tables: so do the metrics" grep -q '^profil_symbol_files_unread_total [1-9]' "$work/sparse.prom"
check "sparse tables: the recording ends in order" end_daemon
stop "$hostile"
rm -rf "$work/made"/*

check "a library whose header changes" start_ready "${nobody[@]}" "$work/hostile_files" "$work/made" 1 1 flip
hostile=$pid
check "profild records it" record flip
check "a header that changes: windows are written" wait_for has_windows 8
check "a header that changes: with little memory" peak_below 150
check "a header that changes: the recording ends in order" end_daemon
stop "$hostile"

# Three containers of a user whose state file takes a gigabyte of memory at each read, and one of a user who has few.
if ! make_control_group || ! unshare -Cm true 2>/dev/null; then
	skip "state files of containers" "no control group, or no namespaces, can be made here"
	finish
	exit
fi
id=$(printf '%064d' 0)
storage=.local/share/containers/storage/overlay-containers
mkdir -p "$work"/{hostile,honest}/$storage
printf '[%s[]]' "$(yes '[],' | head -n 5000000 | tr -d '\n')" >"$work/hostile/$storage/containers.json"
printf '[{"id": "%s", "names": ["mail"]}]' "$id" >"$work/honest/$storage/containers.json"
printf '%s:x:%d:%d::%s:/bin/sh\n' hostile 65534 65534 "$work/hostile" honest 65533 65533 "$work/honest" >"$work/passwd"
# burn USER CONTAINER: runs a program of a user in a container; $pid is its process.
burn() {
	mkdir -p "$group/user.slice/user-$1.slice/libpod-$2.scope" || return
	nice -n 19 setpriv --reuid="$1" --regid="$1" --clear-groups sh -c 'while :; do :; done' &
	pid=$!
	note_started "$pid"
	echo "$pid" >"$group/user.slice/user-$1.slice/libpod-$2.scope/cgroup.procs"
}
# For the daemon, $group is the root of control groups.
with=(sh -c 'echo $$ >"$0/cgroup.procs" && exec unshare -Cm sh -c '\''
	mount --make-rprivate / && mount --bind "$0" /etc/passwd && exec "$@"'\'' "$@"' "$group" "$work/passwd")
check "an honest user's container" burn 65533 "$id"
burning=("$pid")
for i in 1 2 3; do
	burn 65534 "$(printf '%064d' "$i")"
	burning+=("$pid")
done
check "state files: profild records" record state
check "state files: windows are written" wait_for has_windows 4
check "state files: with little memory" peak_below 250
check "state files: the recording ends in order" end_daemon
check "state files: the honest user's container has its name" sh -c '"$1" report --by container "$2" | grep -q mail' - \
	"$profiltool" "$directory"
for pid in "${burning[@]}"; do
	stop "$pid"
done

finish
