#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of profil-tutorial(7) work as they are, and print what the page shows: the same names in
# the same order, with other numbers.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

page=$top/user/tool/profil-tutorial.7
directory=$work/tutorial # in place of the page's
PATH=$build:$work/bin:$PATH

# missing_programs SECTION: prints which programs of its commands are not installed.
missing_programs() {
	local program

	for program in redis-server redis-cli redis-benchmark gcc gprof awk node; do
		grep -qw -e "$program" "$1"/*/command && ! command -v "$program" >/dev/null &&
			echo "$program"
	done
	return 0
}

# can_run SECTION: fails if its commands cannot run here; sets $why_not.
can_run() {
	why_not="recording needs root"
	[ "$(id -u)" -eq 0 ] || return
	why_not="not installed: $(missing_programs "$1")"
	[ "$why_not" = "not installed: " ]
}

# run_section SECTION DIRECTORY: runs the commands there, in one shell as a user would. The output and
# the status of each are in its files `printed` and `status`.
run_section() {
	local step

	cd "$2" || return
	for step in "$1"/*/; do
		eval "$(<"$step/command")" >"$step/printed" 2>&1
		echo $? >"$step/status"
	done
}

# works STEP: succeeds if a command succeeded and printed what is shown.
works() {
	if [ "$(<"$1/status")" != 0 ]; then
		echo "exit status $(<"$1/status"):"
		cat "$1/printed"
		return 1
	fi
	cat "$1/differences"
	[ ! -s "$1/differences" ]
}

# The Redis server is a daemon: it ends when its commands end it, or here.
end_redis() {
	[ -s "$directory/redis.pid" ] && kill "$(<"$directory/redis.pid")"
}
trap '[ "$BASHPID" = $$ ] && { end_redis 2>/dev/null; cleanup; }' EXIT

if ! command -v mandoc >/dev/null; then
	skip "the commands work" "no mandoc"
	finish
fi
steps=$work/steps
mandoc -Tascii "$page" | col -bx | sed "s|/tmp/tutorial|$directory|g" | "$top/tests/tutorial.py" split "$steps"

# The comparison finds what it is made for.
mkdir -p "$work/compared/01"
cat >"$work/compared/01/printed" <<'END'
samples      %   cum%  function  image
    402  92.63  92.63  series    tide
     17   4.37  97.00  level     tide
     13   3.00 100.00  main      tide
profiltool: 1.02 s, 432 ticks, 1.3 us each
END

# misses TEXT LINE...: succeeds if these lines are compared, and the first that is missing is TEXT.
misses() {
	local text=$1
	shift
	printf '%s\n' "$@" >"$work/compared/01/shown"
	"$top/tests/tutorial.py" compare "$work/compared"
	cat "$work/compared/01/differences"
	[ "$(sed -n '1s/.*above it: //p' "$work/compared/01/differences")" = "$text" ]
}

check "numbers are not compared, nor what is left out" \
	misses "" " 999  99.90  99.90  series  tide" ... "9  0.09 99.99  level tide" "profiltool: 17.1 s, ..."
check "rows of about the same size may change places" misses "" "20 2.0 10 main tide" "19 1.9 10 level tide"
check "rows of different size may not" misses "9 9 9 level tide" "99 9 9 main tide" "9 9 9 level tide"
check "another name is noticed" misses "9 9 9 levels tide" "9 9 9 levels tide"
check "a line that is shown twice is printed twice" misses "9 9 9 main tide" "9 9 9 main tide" "9 9 9 main tide"

# redis-tools has the program, and redis-server is this link.
mkdir -p "$work/bin" "$directory"
if ! command -v redis-server >/dev/null && command -v redis-check-rdb >/dev/null; then
	ln -s "$(command -v redis-check-rdb)" "$work/bin/redis-server"
fi

# The sections need nothing of one another, and mostly wait: they run at the same time.
sections=()
running=()
for section in "$steps"/*; do
	[ -d "$section/01" ] || continue
	can_run "$section" || {
		skip "$(<"$section/title")" "$why_not"
		continue
	}
	sections+=("$section")
	setsid "${pdeathsig[@]}" bash -c "$(declare -f run_section); run_section $section $directory" </dev/null &
	note_started $! -$!
	running+=($!)
done
if [ ${#sections[@]} -gt 0 ]; then
	wait "${running[@]}"
	"$top/tests/tutorial.py" compare "${sections[@]}"
fi
for section in "${sections[@]}"; do
	title=$(<"$section/title")
	for step in "$section"/*/; do
		command=$(head -n 1 "$step/command")
		check "${title,,}: ${command//"$directory"//tmp/tutorial}" works "$step"
	done
done

finish
