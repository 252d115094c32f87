#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Where the profile and the table are written, and errors of writing.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

begin shares "$progs/shares" 1 0 lazy
target=$pid
record=(until_used "$target" 100 "$profiltool" -p "$target" -F 4999)

readable() {
	exits 0 "$profiltool" report "$1" && grep -q 'burn_sixty  *shares' "$work/out"
}

# only NAME...: succeeds if the directory $work/directory has these files and no others.
only() {
	[ "$(ls -A "$work/directory")" = "$(printf '%s\n' "$@")" ] || {
		ls -lA "$work/directory"
		return 1
	}
}

has_table() {
	grep -q 'burn_sixty  *shares' "${1:-$work/out}"
}

mode() {
	[ "$(stat -c %a "$1")" = "$2" ] || {
		stat "$1"
		return 1
	}
}

mkdir "$work/directory"

# --- Files ---

umask 022
check "a file: succeeds" exits 0 "${record[@]}" -o "$work/directory/new.pb.gz"
check "a file: a table besides" has_table
check "a file: can be read" readable "$work/directory/new.pb.gz"
check "a file: for its owner alone" mode "$work/directory/new.pb.gz" 600
check "a file: no temporary is left" only new.pb.gz
rm "$work/directory/new.pb.gz"

echo old >"$work/directory/old.pb.gz"
chmod 644 "$work/directory/old.pb.gz"
ln "$work/directory/old.pb.gz" "$work/old.link"
check "a file that is there: succeeds" exits 0 "${record[@]}" -o "$work/directory/old.pb.gz"
check "a file that is there: is replaced" readable "$work/directory/old.pb.gz"
check "a file that is there: who has it open keeps the old one" grep -qx old "$work/old.link"
check "a file that is there: the new one is for its owner alone" mode "$work/directory/old.pb.gz" 600
rm "$work/directory/old.pb.gz"

echo old >"$work/pointed.pb.gz"
ln -s "$work/pointed.pb.gz" "$work/directory/link.pb.gz"
check "a symbolic link: succeeds" exits 0 "${record[@]}" -o "$work/directory/link.pb.gz"
check "a symbolic link: the profile is found under its name" readable "$work/directory/link.pb.gz"
check "a symbolic link: no temporary is left" only link.pb.gz
rm "$work/directory/link.pb.gz"

cd "$work/directory" || exit
check "a name without a directory or extension: no format" exits 2 "${record[@]}" -o plain
check "a name without a directory: succeeds" exits 0 "${record[@]}" -f pprof -o plain
cd / || exit
check "a name without a directory: is in the current directory" readable "$work/directory/plain"
rm "$work/directory/plain"

check "/dev/null: succeeds" exits 0 "${record[@]}" -o /dev/null
check "/dev/null: is left what it is" test -c /dev/null
mkfifo "$work/directory/pipe"
cat "$work/directory/pipe" >"$work/piped.pb.gz" &
check "a named pipe: succeeds" exits 0 "${record[@]}" -o "$work/directory/pipe"
wait $!
check "a named pipe: is written into" readable "$work/piped.pb.gz"
check "a named pipe: stays a pipe" test -p "$work/directory/pipe"
rm "$work/directory/pipe"

# --- Standard output ---

check "-o -: succeeds" exits 0 "${record[@]}" -o -
cp "$work/out" "$work/stdout.pb.gz"
check "-o -: is the profile and nothing else" readable "$work/stdout.pb.gz"
check "-o -: the account is on standard error" says "ticks "
through() {
	"${record[@]}" -q -o - 2>"$work/err" | "$@" >"$work/out"
	[ "${PIPESTATUS[*]}" = "0 0" ]
}
check "-o - | dump" through "$profiltool" dump /dev/stdin
check "-o - | dump: what was sampled" grep -q 'burn_sixty' "$work/out"
if command -v go >/dev/null; then
	# Not in a pipe: pprof opens its input twice.
	check "-o -: go tool pprof reads it" exits 0 env HOME="$work" go tool pprof -top "$work/stdout.pb.gz"
	check "-o -: go tool pprof finds what was sampled" grep -q burn_sixty "$work/out"
else
	skip "-o -: go tool pprof reads it" "there is no go here"
fi

beside_command() {
	"$profiltool" record -q -F 4999 -o - -- bash -c 'echo said; exec "$@"' bash "$progs/shares" 1 0.3 \
		2>"$work/err" >"$work/command.pb.gz"
}
check "-o - -- COMMAND: succeeds" beside_command
check "-o - -- COMMAND: what it prints is on standard error" says said
check "-o - -- COMMAND: the profile is whole" readable "$work/command.pb.gz"
json_alone() {
	"$profiltool" record -q -F 4999 --json -- bash -c 'echo said; exec "$@"' bash "$progs/shares" 1 0.3 \
		2>"$work/err" >"$work/out" && json 'j["counted"] > 0' "$work/out" && says said
}
check "--json -- COMMAND: what it prints is on standard error" json_alone
command_prints() { # what COMMAND prints without -o -
	"$profiltool" record -q -o /dev/null -- echo said 2>"$work/err" | grep -qx said
}
check "-o FILE -- COMMAND: prints as ever" command_prints

says_nothing() { # but what a busy machine is a reason for: warnings are printed with -q, too
	! grep -v 'ticks were due\|records of mappings, forks and names of all processes were lost' "$work/err"
}
check "-q: succeeds" exits 0 "${record[@]}" -q
check "-q: says nothing" says_nothing
check "-q: has the table" has_table

first_line() {
	"${record[@]}" 2>"$work/err" | head -n 1 >"$work/out"
	[ "${PIPESTATUS[*]}" = "0 0" ] && grep -q function "$work/out" && grep -q '^profiltool: ticks' "$work/err"
}
check "| head -1: succeeds" first_line
check "| head -1: no complaint" test "$(grep -ciE 'pipe|cannot' "$work/err")" -eq 0

"${record[@]}" -o "$work/directory/closed.pb.gz" >&- 2>"$work/err"
check "standard output is closed: failed" test $? -eq 1
check "standard output is closed: said so" says "standard output"
check "standard output is closed: the file is kept" readable "$work/directory/closed.pb.gz"
"${record[@]}" -o "$work/directory/closed.pb.gz" >/dev/full 2>"$work/err"
check "standard output is full: failed" test $? -eq 1
check "standard output is full: said so" says "cannot write to standard output: No space left"
check "standard output is full: the file is kept" readable "$work/directory/closed.pb.gz"
"${record[@]}" -o - >/dev/full 2>"$work/err"
check "-o - is full: failed" test $? -eq 1
check "-o - is full: said so" says "No space left"
"${record[@]}" -o "$work/directory/closed.pb.gz" >"$work/out" 2>&-
check "standard error is closed: succeeds" test $? -eq 0
check "standard error is closed: the table is there, alone" test \
	"$(grep -c 'profiltool:' "$work/out")" -eq 0 -a "$(grep -c burn_sixty "$work/out")" -eq 1
check "standard error is closed: so is the file" readable "$work/directory/closed.pb.gz"
check "standard error is closed: nothing else is in it" test \
	"$(zgrep -ac 'profiltool: ticks' "$work/directory/closed.pb.gz")" -eq 0
# A shell gives what it starts in the background another standard input.
kill -CONT "$target"
"$profiltool" -p "$target" -F 4999 -d 1 -o "$work/directory/closed.pb.gz" >"$work/out" 2>"$work/err" <&-
check "standard input is closed: succeeds" test $? -eq 0
check "standard input is closed: the file is written" readable "$work/directory/closed.pb.gz"
rm "$work/directory/closed.pb.gz"

# --- Where nothing can be written: reported before the recording ---

soon() {
	local code=$1 text=$2
	shift 2
	exits "$code" timeout 100 "$profiltool" -p "$target" -d 1000 -o "$@" && says "$text"
}
check "no such directory: failed, at once" soon 1 \
	"cannot write $work/directory/none/x.pb.gz: No such file or directory" "$work/directory/none/x.pb.gz"
check "no such directory: the hint" says "mkdir"
check "a file where a directory should be" soon 1 "Not a directory" "$progs/shares/x.pb.gz"
check "the name is a directory's" soon 2 "$work/directory is a directory" "$work/directory"
check "the way out" says "name a file in it, as $work/directory/x.pb.gz"
check "the name is a directory's, with a slash" \
	soon 2 "$work/directory/ is a directory" "$work/directory/"
check "with a format of one file" soon 1 "$work/directory: Is a directory" "$work/directory" -f pprof
check "nothing was left there" only
check "a directory in which no file can be created" exits 1 "$profiltool" convert "$data/gperftools/basic.prof" \
	/proc/x.pb.gz
check "a directory in which no file can be created: the hint" says "give a file in another directory"

# Mounts of our own, which go when the shell that made them ends.
if unshare -m mount -t tmpfs none "$work/directory" 2>/dev/null; then
	cat >"$work/read-only" <<'EOF'
mount -t tmpfs -o ro none "$1" || exit 99
exec timeout 100 "$2" -p "$3" -d 1000 -o "$1/x.pb.gz"
EOF
	check "a read-only directory: failed, at once" exits 1 unshare -m bash "$work/read-only" \
		"$work/directory" "$profiltool" "$target"
	check "a read-only directory: why" says "$work/directory/x.pb.gz: Read-only file system"
	check "a read-only directory: the hint" says "another directory"

	# It has room when the recording begins and none when it ends.
	cat >"$work/full" <<'EOF'
mount -t tmpfs -o size=64k none "$1" || exit 99
echo old >"$1/kept.pb.gz"
"$2" -p "$3" -F 999 -o "$1/kept.pb.gz" &
recorder=$!
wait_for grep -q poll /proc/$recorder/wchan || exit 98
has_used() { [ "$(awk '{ print $14 + $15 }' "/proc/$1/stat")" -ge "$2" ]; }
end=$(($(awk '{ print $14 + $15 }' "/proc/$3/stat") + 30))
wait_for has_used $3 $end || exit 98
cat /dev/zero >"$1/fill" 2>/dev/null
kill -INT $recorder
wait $recorder
code=$?
ls -A "$1" >"$4"
cat "$1/kept.pb.gz" >>"$4"
exit $code
EOF
	check "a full disk: failed" exits 1 unshare -m bash "$work/full" "$work/directory" "$profiltool" \
		"$target" "$work/listing"
	check "a full disk: why" says "cannot write $work/directory/kept.pb.gz: No space left on device"
	check "a full disk: the table is printed all the same" has_table
	check "a full disk: no temporary is left, and the old file as it was" test \
		"$(cat "$work/listing")" = $'fill\nkept.pb.gz\nold'
	kept=$(sed -n 's/.*the profile is saved in //p' "$work/err")
	check "a full disk: the profile is kept elsewhere, as reported" readable "${kept:-none}"
	check "a full disk: that is below TMPDIR" test "${kept#"$TMPDIR"/}" != "$kept"
	check "a full disk: that file is for its owner alone" mode "$kept" 600
else
	skip "a read-only directory" "unshare -m does not work here"
	skip "a full disk" "unshare -m does not work here"
fi

stop "$target"
# --- A terminal ---

# on_terminal PATTERN COMMAND: what a person would get to see who ends the recording once this is there.
on_terminal() {
	local pattern=$1 code
	shift
	rm -f "$work/recorder"
	: >"$work/terminal"
	"${pdeathsig[@]}" script -qfec "echo \$\$ >$work/recorder; exec env $*" /dev/null </dev/null >"$work/terminal" 2>&1 &
	code=$!
	note_started "$code"
	wait_for test -s "$work/recorder" && wait_for records "$(cat "$work/recorder")" &&
		{ [ -z "$pattern" ] || wait_for grep -q "$pattern" "$work/terminal"; }
	wait_for_use "$target" 100
	kill -INT "$(cat "$work/recorder")"
	wait "$code"
}
start_ready "$progs/shares" 1 0 lazy
target=$pid
# narrow COLUMNS: no line of progress is longer, which would wrap and stay.
narrow() {
	terminal "$1x24" "$profiltool" -p "$target" -d 0.2 -E 1 | tr '\r' '\n' | sed -n $'s/^\e\\[K\\(profiltool: .*; Ctrl\\)/\\1/p' >"$work/progress"
	test -s "$work/progress" && awk -v most="$1" 'length($0) > most { print; wide = 1 } END { exit wide }' "$work/progress"
}
if has_terminals "on a terminal"; then
	check "on a terminal: succeeds" on_terminal "ticks; Ctrl-C" "$profiltool -p $pid -F 999 -E 1"
	check "on a terminal: it reports its progress" \
		grep -qE ": [0-9]+ s, [0-9]+ ticks; Ctrl-C ends the recording of shares \(PID $pid\)" "$work/terminal"
	check "on a terminal: progress fits" narrow 80
	check "on a narrow terminal: progress fits" narrow 40
	check "on a terminal: what does not fit is reported" grep -qE '^\.\.\. [0-9]+ more function' "$work/terminal"
	check "on a terminal: the header is bold" grep -q $'\e\\[1msamples' "$work/terminal"
	check "NO_COLOR: succeeds" on_terminal "" "NO_COLOR=1 $profiltool -p $pid -F 4999 -q"
	check "NO_COLOR and --quiet: no escape at all" test -z "$(grep $'\e' "$work/terminal")"
fi
check "a pipe: neither progress nor color" test -z "$("$profiltool" -p "$pid" -d 0.2 2>&1 | grep $'\e')"
stop "$pid"

finish
