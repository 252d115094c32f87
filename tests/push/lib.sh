# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh sets some, and some is for those who source it
# Functions for tests of pushing. Source it after lib.sh.

push=$progs/push
archive=$work/archive
got=$work/got
mkdir "$got"
within=() # what runs server.py and push in other namespaces

# needs_protobuf: ends the test with a skipped row where windows cannot be made.
needs_protobuf() {
	if ! python3 -c 'import google.protobuf' 2>/dev/null; then
		skip "windows are pushed" "python3-protobuf is not installed (Debian: apt-get install python3-protobuf)"
		finish
	fi
	if ! command -v protoc-c >/dev/null; then
		skip "windows are pushed" "protoc-c is not installed (Debian: apt-get install protobuf-c-compiler)"
		finish
	fi
}

# windows COUNT [SERVICES]: makes a new archive with so many windows of host "h": windows.py.
windows() {
	rm -rf "$archive"
	"$top/tests/push/windows.py" "$archive" h "$@"
}

# serve NAME [OPTION=VALUE...] BEHAVIOUR...: starts server.py with these arguments; sets $server, its PID, and
# $port. Its output is in $work/NAME.server.
serve() {
	local name=$1
	shift
	rm -f "$got"/*
	: >"$work/$name.server"
	with_pdeathsig "${within[@]}" python3 "$top/tests/push/server.py" directory="$got" "$@" >"$work/$name.server" 2>&1 &
	server=$!
	note_started "$server"
	wait_for grep -q ready "$work/$name.server"
	port=$(sed -n 's/^ready //p' "$work/$name.server")
}

# push_to URL [OPTION...]: pushes until no window waits. The output is in $work/out and $work/err.
push_to() {
	"${within[@]}" "$push" directory="$archive" host=h url="$1" "${@:2}" >"$work/out" 2>"$work/err"
}

# push_begin URL [OPTION...]: starts to push; sets $pusher. The output is in $work/out.
push_begin() {
	: >"$work/out"
	with_pdeathsig "${within[@]}" "$push" directory="$archive" host=h url="$1" "${@:2}" >"$work/out" 2>"$work/err" &
	pusher=$!
	note_started "$pusher"
	wait_for grep -q ready "$work/out"
}

# push_end: ends it, and waits.
push_end() {
	kill -TERM "$pusher" 2>/dev/null
	wait "$pusher"
}

# counted TEXT: succeeds if the counters that were printed are these, of which those that are 0 are left out.
counted() {
	local line
	line=$(sed -n '/^sent /{ s/\<[a-z]* 0\>//g; s/  */ /g; s/^ *//; s/ *$//; p }' "$work/out")
	[ "$line" = "$*" ] && return
	echo "counted: $line"
	cat "$work/out" "$work/err"
	return 1
}

# printed COUNT TEXT: succeeds if so many lines of the output contain the text.
printed() {
	[ "$(grep -cF -- "$2" "$work/out")" -eq "$1" ] && return
	cat "$work/out" "$work/err"
	return 1
}
