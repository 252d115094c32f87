#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tap.sh TEST [ARGUMENT...]: runs a test for prove. Makes cmocka print TAP, and corrects its "not ok #
# SKIP". With PROFIL_TEST_STRICT a skipped test is a failure. Failures and their output are also printed
# on standard error, which prove shows, and written to a file of the test's name in the directory PROFIL_TEST_FAILED.
#
# A test that takes longer than PROFIL_TEST_SECONDS (0: no limit) fails: its running processes are
# printed and ended. The default is the line "# Time limit: N s" of the test, or 900 s, some ten times
# as long as the slowest other test. Where more wants to run than there are CPUs, a second is longer by as much: a test that
# hangs is what is looked for, not a busy machine.
#
# To the file PROFIL_TEST_TIMES a line is added: seconds of CPU time, and of the clock, and the test. (The times that
# prove --timer prints are right one by one only without -j.)

set -u

if [ "$1" = --in-session ]; then
	shift
	if [ -n "${PROFIL_TEST_STRICT:-}" ]; then
		correct='s/^\(not \)\?ok \(.*\)# SKIP\b/not ok \2(skipped, which a strict run takes for a failure)/'
	else
		correct='s/^not ok \(.*# SKIP\b\)/ok \1/'
	fi
	passed='/^\(ok\|1\.\.\)/'
	# The filter ignores SIGTERM, so that it passes on what a test prints when it is ended.
	CMOCKA_MESSAGE_OUTPUT=TAP "$@" 2>&1 | (
		trap '' TERM
		failed=${PROFIL_TEST_FAILED:+$PROFIL_TEST_FAILED/${1##*/}}
		exec sed -u -e "$correct" -e "/^not ok/,$passed { $passed! {" -e "w /dev/stderr" -e "w ${failed:-/dev/null}" -e '} }'
	)
	exit "${PIPESTATUS[0]}"
fi

limit=${PROFIL_TEST_SECONDS:-$(sed -n 's/^# Time limit: \([0-9]*\) s$/\1/p' "$1" 2>/dev/null)}
limit=${limit:-900}
if ! [[ $limit =~ ^[0-9]+$ ]]; then
	echo "PROFIL_TEST_SECONDS takes a number of seconds, not \"$limit\"" >&2
	exit 2
fi
[ "$limit" -gt 0 ] || limit=infinity

# A session contains all processes that a test starts, except daemons. The caller may ignore signals, as
# nohup and background processes of a shell do.
setsid env --default-signal "$0" --in-session "$@" </dev/null &
session=$!
# pass_limit: takes as long as that. The load is a decimal fraction of two digits.
pass_limit() {
	local cpus left=$((${limit/infinity/1000000000} * 1000)) step load
	cpus=$(nproc)
	while [ "$left" -gt 0 ]; do
		step=$((left < 5000 ? left : 5000))
		sleep "$((step / 1000)).$(printf %03d $((step % 1000)))"
		read -r load _ </proc/loadavg
		load=$((10#${load/./}))
		step=$((load > cpus * 100 ? step * cpus * 100 / load : step))
		left=$((left - (step > 10 ? step : 10)))
	done
}
pass_limit >/dev/null 2>&1 &
timer=$!

session_is_empty() {
	! pgrep -s "$session" >/dev/null
}

# end_session: ends all processes of the session; the test has 10 seconds to remove its files.
end_session() {
	kill -TERM -- "-$session" 2>/dev/null
	for _ in {1..100}; do
		session_is_empty && return
		sleep 0.1
	done
	pkill -KILL -s "$session"
}

trap 'end_session; kill "$timer" 2>/dev/null; exit 130' INT TERM HUP
wait -n "$session" "$timer"
status=$?
if [ -n "${PROFIL_TEST_TIMES:-}" ]; then
	# Not in a pipe, where they would be those of a subshell.
	times > >(awk -F '[ ms]+' -v seconds="$SECONDS" -v test="$1" '
		NR == 2 { printf "%.1f %d %s\n", $1 * 60 + $2 + $3 * 60 + $4, seconds, test }' >>"$PROFIL_TEST_TIMES")
fi
if kill "$timer" 2>/dev/null; then
	wait "$timer" 2>/dev/null
	exit "$status"
fi
{
	echo "not ok - $1 took longer than $limit s and was ended; this ran in it:"
	pgrep -a -s "$session" | sed 's/^/# /'
} | tee /dev/stderr
end_session
exit 1
