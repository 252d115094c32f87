#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of profil-tutorial(7) work as they are, and print what the page shows: the same names in
# the same order, with other numbers.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

page=$top/user/tool/profil-tutorial.7
PATH=$build:$work/bin:$PATH
export TZ=UTC # as on the page

# missing_programs SECTION: prints which programs of its commands are not installed.
missing_programs() {
	local program

	for program in redis-server redis-cli redis-benchmark gcc gprof awk node curl pgbench; do
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

# The time for which the page's lock is held begins when somebody waits for it, however late that is on a busy machine.
waited=$work/waited
cat >"$waited" <<'END'
#!/bin/bash
is_awaited() {
	grep -q -e "-> FLOCK .*:$(stat -c %i lock) " /proc/locks
}
wait_for is_awaited && exec "$@"
END
chmod +x "$waited"

# run_section SECTION DIRECTORY: runs the commands in one shell, as a user would, in an own directory in
# place of the page's. The output and the status of each are in its files `printed` and `status`.
run_section() {
	local step command

	mkdir "$2" && cd "$2" || return
	for step in "$1"/*/; do
		command=$(<"$step/command")
		command=${command//-d 2 /-d 3 } # on a busy machine 2 s may be few samples,
		command=${command//sleep(0.2)/sleep(1)} # and requests far apart
		command=${command//flock lock sleep/flock lock "$waited" sleep}
		eval "${command//\/tmp\/tutorial/$2}" >"$step/output" 2>&1
		echo $? >"$step/status"
		sed "s|$2|/tmp/tutorial|g" "$step/output" >"$step/printed"
	done
	# The page's last command ends its last program, which may have named its functions there.
	wait "${!-}" 2>/dev/null
	rm -f "/tmp/perf-${!-}.map"
}

# run_sections SECTION...: runs three of them at a time, each in a process group: they need nothing of one another. Some
# mostly wait, and those that do not have a CPU to show.
run_sections() {
	local section running=()

	for section; do
		[ ${#running[@]} -lt 3 ] || wait -n
		set -m
		run_section "$section" "$(mktemp -u "$work/tutorial.XXXXXX")" </dev/null &
		set +m
		note_started $! -$!
		running+=($!)
	done
	wait "${running[@]}"
	"$top/tests/tutorial.py" compare "$@"
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

if ! command -v mandoc >/dev/null; then
	skip "the commands work" "no mandoc"
	finish
fi
chmod 711 "$work" # a server as another user has its directory in it
steps=$work/steps
mandoc -Tascii "$page" | col -bx | "$top/tests/tutorial.py" split "$steps"

# The comparison finds what it is made for.
mkdir -p "$work/compared/01"
cat >"$work/compared/01/printed" <<'END'
samples      %   cum%  function  image
    402  92.63  92.63  series    tide
     17   4.37  97.00  level     tide
     13   3.00 100.00  main      tide
profiltool: 1.02 s, 432 ticks, 1.3 us each
self s  self%  in doubt  where
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

check "numbers are not compared, nor are lines that the page omits" \
	misses "" " 999  99.90  99.90  series  tide" ... "9  0.09 99.99  level tide" "profiltool: 17.1 s, ..."
check "a column that a busy machine adds is not compared" misses "" "self s  self%  where"
check "rows of about the same size may change places" misses "" "20 2.0 10 main tide" "19 1.9 10 level tide"
check "rows of different size may not" misses "9 9 9 level tide" "99 9 9 main tide" "9 9 9 level tide"
check "another name is noticed" misses "9 9 9 levels tide" "9 9 9 levels tide"
check "a line that is shown twice is printed twice" misses "9 9 9 main tide" "9 9 9 main tide" "9 9 9 main tide"

# redis-tools has the program, and redis-server is this link.
mkdir "$work/bin"
if ! command -v redis-server >/dev/null && command -v redis-check-rdb >/dev/null; then
	ln -s "$(command -v redis-check-rdb)" "$work/bin/redis-server"
fi

sections=()
for section in "$steps"/*; do
	[ -d "$section/01" ] || continue
	if can_run "$section"; then
		sections+=("$section")
	else
		skip "$(<"$section/title")" "$why_not"
	fi
done
[ ${#sections[@]} -eq 0 ] || run_sections "${sections[@]}"
for section in "${sections[@]}"; do
	title=$(<"$section/title")
	for step in "$section"/*/; do
		check "${title,,}: $(head -n 1 "$step/command")" works "$step"
	done
done

finish
