#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tests' own tools: a test that hangs, that is started by nohup, or that is killed.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
unset PROFIL_TEST_FAILED # what fails here fails in tests of tests

# make_test NAME: creates a shell test from standard input, for `tap`.
make_test() {
	{
		echo "#!/bin/bash"
		echo ". '$top/tests/lib.sh'"
		cat
	} >"$work/$1"
	chmod +x "$work/$1"
}

# tap NAME: runs it as prove does; prints its output, and its exit status.
tap() {
	"$top/tests/tap.sh" "$work/$1" >"$work/tap.out" 2>"$work/tap.err"
	echo "exit status $?" >>"$work/tap.out"
	cat "$work/tap.out"
	sed 's/^/stderr: /' "$work/tap.err"
}

# prints LINE COMMAND...: whether such a line, a pattern of grep, is in what it prints.
prints() {
	local line=$1
	shift
	"$@" >"$work/prints.out"
	cat "$work/prints.out"
	grep -qx -- "$line" "$work/prints.out"
}

# --- Time ---

make_test quick <<-'END'
	check "good" true
	check "bad" false
	finish
END
check "a test in time: its lines" prints "ok 1 - good" tap quick
check "a test in time: what failed goes to standard error, too" \
	grep -qx "stderr: not ok 2 - bad" "$work/prints.out"
check "a test in time: its exit status" grep -qx "exit status 1" "$work/prints.out"

# cmocka prints "not ok" until 1.1.5, and "ok" from 1.1.7 on.
make_test skips <<-'END'
	echo "ok 1 # SKIP one"
	echo "not ok 2 # SKIP two"
	echo 1..2
END
strictly() {
	(
		export PROFIL_TEST_STRICT=1
		"$@"
	)
}
check "a test of cmocka that is skipped: a failure of a strict run" prints \
	"not ok 1 (skipped, which a strict run takes for a failure) one" strictly tap skips
check "as older ones print it, too" grep -qx \
	"not ok 2 (skipped, which a strict run takes for a failure) two" "$work/prints.out"

make_test imports <<-'END'
	check "python leaves nothing" python3 -c "import sys; sys.exit(not sys.dont_write_bytecode)"
	finish
END
tap_as_newcomer() {
	(
		unset PYTHONDONTWRITEBYTECODE
		tap "$@"
	)
}
check "a test's modules of Python: nothing is left beside them" prints "ok 1 - python leaves nothing" \
	tap_as_newcomer imports

make_test hangs <<-'END'
	start sleep 4321
	echo $$ $pid $work >"${0%/*}/hangs.left"
	check "good" true
	check "hangs" sleep 1234
	finish
END
# As long as a busy machine may need to come to what hangs.
export PROFIL_TEST_SECONDS=6
check "one that hangs: it fails, with its name" prints \
	"not ok - $work/hangs took longer than 6 s and was ended; this ran in it:" tap hangs
check "one that hangs: what hangs in it" grep -qxE "# [0-9]+ sleep 1234" "$work/prints.out"
check "one that hangs: on standard error, too" grep -qxE "stderr: # [0-9]+ sleep 1234" \
	"$work/prints.out"
check "one that hangs: what it did before" grep -qx "ok 1 - good" "$work/prints.out"
check "one that hangs: its exit status" grep -qx "exit status 1" "$work/prints.out"
read -r test child directory <"$work/hangs.left"
check "one that hangs: it is ended" test ! -e "/proc/$test"
check "one that hangs: and what it has started" test ! -e "/proc/$child"
check "one that hangs: it has removed its files" test ! -e "$directory"

make_test stubborn <<-'END'
	trap "" TERM
	rmdir "$work"
	sleep 1234
	finish
END
check "one that ignores SIGTERM is ended" prints "exit status 1" tap stubborn

# What it leaves behind keeps prove waiting for the end of its output.
make_test leaves <<-'END'
	check "good" true
	sleep 1234 &
	started=()
	trap 'rm -r "$work"' EXIT
	finish
END
check "one that leaves something behind: what that is" \
	prints "# [0-9]* sleep 1234" tap leaves
unset PROFIL_TEST_SECONDS

make_test limited <<-'END'
	# Time limit: 1 s
	rmdir "$work"
	exec sleep 1234
END
check "a test may have a limit of its own" prints \
	"not ok - $work/limited took longer than 1 s and was ended; this ran in it:" tap limited
check "a limit that is no number" exits 2 env PROFIL_TEST_SECONDS=never \
	"$top/tests/tap.sh" "$work/quick"
check "says so" says 'PROFIL_TEST_SECONDS takes a number of seconds, not "never"'

# Ctrl-C at prove.
make_test waits <<-'END'
	echo $$ >"${0%/*}/waits.left"
	sleep 1234
END
waits() {
	[ -s "$work/waits.left" ]
}
env --default-signal "$top/tests/tap.sh" "$work/waits" >/dev/null 2>&1 &
note_started $!
check "a test that is interrupted: it runs" wait_for waits
kill -INT $!
wait $!
check "a test that is interrupted: it is ended" wait_for test ! -e "/proc/$(cat "$work/waits.left")"

# --- Signals ---

# shellcheck disable=SC2016 # for the other shell
in_background() {
	bash -c '"$1" & wait' sh "$@"
}

make_test disposition <<-'END'
	check "default" test "$(ignored_signals)" -eq 0
	finish
END
check "nohup: SIGHUP is as a test expects it" prints "ok 1 - default" nohup "$work/disposition"
check "in the background of a script: so are SIGINT and SIGQUIT" prints "ok 1 - default" \
	in_background "$work/disposition"

# --- A test's own end ---

# shellcheck disable=SC2016 # for the other shell
{
	bash -c '. "$1/tests/lib.sh"; begin left "$progs/shares" 1; echo "$pid" >"$2"; kill -KILL $$' \
		killed "$top" "$work/left"
} 2>/dev/null
note_started "$(cat "$work/left")"
is_gone() {
	[ -s "$work/left" ] && ! kill -0 "$(cat "$work/left")"
}
check "a test that is killed leaves no program behind" wait_for is_gone

# In a PID namespace of its own nobody else takes the number.
# shellcheck disable=SC2016 # for the other shell
spares_stranger() {
	unshare -pf --mount-proc bash -c '. "$1/tests/lib.sh"
		start sleep 1234
		find_start_time "$pid"
		kill -KILL "$pid"
		wait "$pid"
		# Births have steps of 10 ms: within one both are the same.
		until [ "$(tr -d . </proc/uptime | cut -d" " -f1)" -gt $((start_time + 1)) ]; do :; done
		echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
		sleep 0.5 &
		end_started "$pid"
		[ $! = "$pid" ] && wait $!' stranger "$top" 2>/dev/null
}
check "a process that has the number of one that ended is not ended" spares_stranger

# --- Packages: another apt has the lock ---

mkdir "$work/apt" "$work/lists"
script() {
	cat >"$work/apt/$1"
	chmod +x "$work/apt/$1"
}
# As on a machine of Debian where one package is missing, and each command of apt is refused once.
script id <<<'echo 0'
script sleep <<<'exit 0'
# shellcheck disable=SC2016 # the script expands it
script dpkg-query <<<'[ "${!#}" = perl ] || echo installed'
script apt-get <<-END
	echo "\$@" >>"$work/apt/commands"
	[ "\$(grep -cxF -- "\$*" "$work/apt/commands")" = 1 ] || exit 0
	echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)" >&2
	exit 100
END
for name in id sleep dpkg-query apt-get; do
	sed -i '1i #!/bin/bash' "$work/apt/$name"
done
check "packages.sh waits for apt's lock" exits 0 env PATH="$work/apt:$PATH" "$top/tests/packages.sh" build
check "and says for what" grep -qx \
	"Waiting until apt's lock is free: /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)" "$work/out"
check "it has both commands of apt succeed" test "$(sort "$work/apt/commands" | uniq -c | awk '{ print $1, $2 }' |
	paste -sd,)" = "2 install,2 install,2 update"
script apt-get <<<'#!/bin/bash
echo "E: Unable to locate package perl" >&2; exit 100'
check "another error ends it" exits 1 env PATH="$work/apt:$PATH" "$top/tests/packages.sh" build
check "another error is shown" says "E: Unable to locate package perl"

# The text is apt's own.
if command -v apt-get >/dev/null; then
	printf '%s\n' "Dir::State::lists \"$work/lists\";" 'Dir::Etc::sourcelist "/dev/null";' 'Dir::Etc::sourceparts "/dev/null";' \
		"Dir::Cache \"$work/lists\";" >"$work/apt.conf"
	start_ready python3 -S -c '
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(1000)' "$work/lists/lock"
	real_lock() {
		exits 100 env APT_CONFIG="$work/apt.conf" apt-get update && says "E: Could not get lock $work/lists/lock"
	}
	check "apt names a lock as packages.sh expects" real_lock
	stop "$pid"
else
	skip "apt names a lock as packages.sh expects" "no apt"
fi

finish
