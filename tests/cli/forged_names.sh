#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Users who try to name the code of others: with a debug file, or with a program, that their own mount namespace
# shows at a path of root's, and that has the build ID of root's.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if ! "${nobody[@]}" unshare -Urm mount --bind /usr/lib/debug /usr/lib/debug 2>/dev/null; then
	skip "users who forge names" "a user cannot make a mount namespace, or there is no /usr/lib/debug"
	finish
fi
chmod 755 "$work"
mkdir "$work/evil"

cat >"$work/burn.c" <<'EOF_C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) void FUNCTION(void)
{
	for (volatile unsigned long i = 0; i < 10000; i++)
		;
}

/* Burns; with an argument it only waits, with two it has also mapped a file. */
int main(int count, char **arguments)
{
	if (count > 2 && mmap(NULL, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			      open(arguments[2], O_RDONLY), 0) == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	if (count > 1)
		pause();
	for (;;)
		FUNCTION();
}
EOF_C

# programs NAME OPTION: root's program NAME, with the function "genuine", and that of the user, with "forged", at the
# same addresses.
programs() {
	gcc -std=gnu11 -O1 -g -static "$2" -DFUNCTION=genuine "$work/burn.c" -o "$work/$1" &&
		gcc -std=gnu11 -O1 -g -static "$2" -DFUNCTION=forged "$work/burn.c" -o "$work/evil/$1" &&
		chown 65534:65534 "$work/evil/$1"
}

# forge SOURCE TARGET COMMAND...: runs a command of the user's where SOURCE is seen at TARGET; waits until it is ready.
forge() {
	# shellcheck disable=SC2016 # "$" is for the inner shell
	start_ready "${nobody[@]}" unshare -Urm sh -ec 'mount --bind "$1" "$2"; shift 2; exec "$@"' sh "$@"
}

# genuine NAME: runs root's program until it has used a third of a second; sets $pid.
genuine() {
	start_ready "$work/$1"
	wait_for has_used "$pid" 330
	stop "$pid"
}

# samples IMAGE FILE FUNCTION: prints how many samples the functions in an image have whose names contain FUNCTION.
samples() {
	"$profiltool" report --image "$1" --json "$2" >"$work/rows.json" 2>/dev/null
	json '[sum(f["self"] for f in j["functions"] if "'"$3"'" in f["name"])]' "$work/rows.json" | tr -d '[]'
}

# is_named IMAGE FILE NAME: the image has samples in functions whose names contain NAME, none that is "forged".
is_named() {
	local named forged
	named=$(samples "$1" "$2" "$3")
	forged=$(samples "$1" "$2" forged)
	echo "samples: $named, forged: $forged"
	[ "$named" -gt 0 ] && [ "$forged" = 0 ]
}

record=(record -a -F 997 --format pprof)

# The debug file of a stripped program, which root and the user run: the user's, then root's that every user may write.
# by_debug_file NAME [OWNER MODE]
by_debug_file() {
	local id
	programs "$1" "$(own_build_id)" || return
	strip "$work/$1"
	id=$(readelf -n "$work/$1" | sed -n 's/.*Build ID: //p')
	mkdir -p "$work/evil/debug/.build-id/${id:0:2}"
	objcopy --only-keep-debug "$work/evil/$1" "$work/evil/debug/.build-id/${id:0:2}/${id:2}.debug"
	chown -R "${2:-65534}" "$work/evil"
	chmod -R "${3:-u=rwX,og=rX}" "$work/evil"
	record_begin "$1" "${record[@]}" -o "$work/$1.pb.gz"
	forge "$work/evil/debug" /usr/lib/debug "$work/$1" wait
	genuine "$1"
	kill -INT "$recorder"
	wait "$recorder"
	is_named "$1" "$work/$1.pb.gz" "$1+0x"
}
check "a debug file in a user's mount namespace does not name root's program" by_debug_file stripped
check "nor does a debug file of root's that every user may write" by_debug_file open_debug 0 a=rwX

# A program at the same path.
# by_program NAME [OWNER MODE]
by_program() {
	programs "$1" "$(own_build_id)" || return
	chown "${2:-65534}" "$work/evil/$1"
	chmod "${3:-755}" "$work/evil/$1"
	record_begin "$1" "${record[@]}" -o "$work/$1.pb.gz"
	forge "$work/evil/$1" "$work/$1" "$work/$1" wait
	genuine "$1"
	kill -INT "$recorder"
	wait "$recorder"
	is_named "$1" "$work/$1.pb.gz" genuine
}
check "a program of the same path and build ID does not name root's" by_program same
check "nor does a program of root's that every user may write" by_program open_same 0 777

# A file of root's where the names of the user's generated code should be: the user is charged for it.
by_map() {
	cp "$progs/jitter" "$work"
	echo "1 ffffffffffff forged" >"$work/map"
	# shellcheck disable=SC2016 # "$" is for the inner shell
	start_ready "${nobody[@]}" unshare -Urm sh -ec 'touch "/tmp/perf-$$.map"; mount --bind "$1" "/tmp/perf-$$.map"
		exec "$2" anon 60' sh "$work/map" "$work/jitter"
	until_used "$pid" 330 "$profiltool" record -p "$pid" -F 997 -o "$work/map.pb.gz" 2>/dev/null
	stop "$pid"
	rm -f "/tmp/perf-$pid.map" # after the process: it would lose the mount
	"$profiltool" dump "$work/map.pb.gz" >"$work/map.dump"
	"$profiltool" report "$work/map.pb.gz" 2>/dev/null | grep -q " forged " && grep -qF "[jit $pid] provider=65534" "$work/map.dump"
}
check "root's file at the path of a user's map is read as the user's" by_map

# Recordings that are merged: first that of the user, then that of root.
# merged NAME OPTION
merged() {
	programs "$1" "$2"
	record_begin "$1.1" "${record[@]}" -o "$work/1.pb.gz"
	forge "$work/evil/$1" "$work/$1" "$work/$1"
	wait_for has_used "$pid" 330
	stop "$pid"
	kill -INT "$recorder"
	wait "$recorder" || return
	record_begin "$1.2" "${record[@]}" -o "$work/2.pb.gz"
	genuine "$1"
	kill -INT "$recorder"
	wait "$recorder" || return
	"$profiltool" merge -o "$work/$1.pb.gz" "$work/1.pb.gz" "$work/2.pb.gz" 2>/dev/null || return
	[ "$(samples "$1" "$work/1.pb.gz" genuine)" = 0 ] &&
		[ "$(samples "$1" "$work/$1.pb.gz" genuine)" = "$(samples "$1" "$work/2.pb.gz" genuine)" ] &&
		[ "$(samples "$1" "$work/$1.pb.gz" forged)" = "$(samples "$1" "$work/1.pb.gz" forged)" ]
}
check "nor does it in a merged profile" merged with_id "$(own_build_id)"
check "nor does a program of the same path without a build ID" merged without_id -Wl,--build-id=none

finish
