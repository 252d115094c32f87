#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild: which clients it serves and refuses, and that no client can harm it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# Copies that every user may run, wherever the tests are.
chmod 755 "$work"
cp "$build/profild" "$progs/hostile" "$work"
chmod 755 "$work/profild" "$work/hostile"
profild=$work/profild
hostile=$work/hostile
socket=$work/socket
man=$top/user/daemon/profild.8

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# --- A daemon that runs; $daemon is its process ---

descriptors() {
	find "/proc/$daemon/fd" -mindepth 1 | wc -l
}

# Whether it has no client any more.
alone() {
	[ -z "$(find "/proc/$daemon/fd" -lname "*pidfd*")" ]
}

# begin_daemon ARGUMENT...: starts it and waits until it serves. $base: its descriptors then.
begin_daemon() {
	launch "$profild" --verbose --socket "$socket" "$@"
}

# launch COMMAND...: the same with a command that becomes profild.
launch() {
	spawn "$@"
	wait_for grep -q ready "$work/daemon.err" && wait_for talk connect greeting &&
		wait_for alone
	base=$(descriptors)
}

# spawn COMMAND...: the same, without a wait.
spawn() {
	"${pdeathsig[@]}" "$@" >"$work/daemon.out" 2>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
}

# end_daemon SIGNAL: ends profild; succeeds if its exit status is 0.
end_daemon() {
	kill -"$1" "$daemon"
	wait "$daemon"
}

# As it was before there were clients: it lives, and has no more descriptors.
is_base() {
	[ "$(descriptors)" -eq "$base" ]
}

is_well() {
	wait_for is_base || {
		ls -l "/proc/$daemon/fd"
		return 1
	}
	talk connect greeting start grow stop
}

talk() {
	timeout 60 "$hostile" "$socket" "$@"
}

talk_as_nobody() {
	timeout 60 "${nobody[@]}" "$hostile" "$socket" "$@"
}

# It may have to do with what came before when the first connects, but not with the second.
greets_soon() {
	timeout 60 "$hostile" "$socket" connect greeting close connect greeting
}

# hold NAME STEP...: a client that stays; `go NAME` lets it go on behind the step "ready".
hold() {
	local name=$1
	shift
	begin "$name" "${nobody[@]}" "$hostile" "$socket" "$@"
}

# It may have ended, and then nobody reads.
go() {
	timeout 60 tee "$work/$1.in" <<<on >"$work/go.out"
}

# ends_well NAME: waits for the last that was held, and shows what it said if it failed.
ends_well() {
	wait "$pid" && return
	cat "$work/$1.out"
	return 1
}

# its FIELD: of its /proc/PID/status
its() {
	sed -n "s/^$1:\t//p" "/proc/$daemon/status"
}

told() {
	wait_for grep -q -- "$1" "$work/daemon.err" && return
	cat "$work/daemon.err"
	return 1
}

# --- Options ---

help_options() {
	"$profild" --help | sed -nE '
		s/^  (-., |    )(--[a-z-]+)(\[=[A-Z]+\]| [A-Z]+|)  .*/\1\2\3/
		s/^    --/--/
		/^-/p' | sort -u
}

man_options() {
	sed -nE '/^\.It Fl /{
		s/^\.It //; s/ Ns Oo = Ns Ar ([A-Z]+) Oc/[=\1]/; s/Fl -/--/g; s/Fl ([A-Za-z])/-\1/; s/ Ar / /; s/ ,/,/
		p
	}' "$man" | sort -u
}

same_options() {
	[ -n "$(help_options)" ] && diff <(help_options) <(man_options)
}

help_statuses() {
	"$profild" --help | sed -n '/^Exit codes:/,$ { s/^Exit codes: //; p; }' | tr '\n' ' ' | sed 's/\. *$/\n/; s/, */\n/g'
}

man_statuses() {
	awk '
		/^\.Sh/ { inside = $0 == ".Sh EXIT STATUS" }
		inside && /^\.It [0-9]+$/ { number = $2; next }
		inside && number != "" { print number, tolower($0); number = "" }' "$man" |
		sed 's/[:.,].*//'
}

check "--help" exits 0 "$profild" --help
check "--help is on standard output" grep -q -- --max-memory "$work/out"
check "--version" exits 0 "$profild" --version
check "--version is what it is of" grep -qx 'profild [0-9.]*' "$work/out"
check "the man page has the options of --help" same_options
check "the man page has the exit codes of --help" diff <(help_statuses) <(man_statuses)
check "no option can be made up" exits 2 "$profild" --nonsense
check "an unknown option: which one" says "--nonsense"
check "an unknown option: where to look" says "profild --help"
for option in --socket --max-ticks; do
	check "an option without its value" exits 2 "$profild" --verbose $option
	check "an option without its value: which one" says "a value is missing after: $option"
	check "an option without its value: where to look" says "profild --help"
done
check "an argument" exits 2 "$profild" "$socket"
for option in --max-processes --max-memory --max-ticks --max-rates --max-share; do
	for value in 0 -1 x 1x "" 99999999999999999999; do
		check "$option \"$value\"" exits 2 "$profild" $option "$value"
	done
	check "$option: what it takes" says "$option: takes a number from 1 to"
done
check "the unit's socket is the one that programs look for" grep -q \
	"^#define PROFILD_SOCKET.*\"$(sed -n 's/^ListenSequentialPacket=//p' \
		"$top/user/daemon/profild.socket")\"" "$top/user/lib/protocol.h"

# --- Where it listens ---

: >"$work/file"
check "a path that is no socket" exits 1 "$profild" --socket "$work/file"
check "a path that is no socket: reported" says "not a socket"
check "a path that is no socket: is left" test -f "$work/file"
check "a path that is no socket: leaves no lock" test ! -e "$work/file.lock"
check "a directory that does not exist" exits 1 "$profild" --socket "$work/none/socket"
check "a directory that does not exist: the hint" says "mkdir -p"
check "a path that is too long" exits 2 "$profild" --socket "$work/$(printf '%0120d' 0)"
check "a path that is empty" exits 2 "$profild" --socket ""
check "a directory that is not its user's" exits 5 "${nobody[@]}" "$profild" --socket "$socket"
mkdir -m 777 "$work/open"
check "without capabilities" exits 5 "${nobody[@]}" "$profild" --socket "$work/open/socket"
check "without capabilities: which one" says "needs cap_bpf"
check "without capabilities: the hint" says "setcap cap_bpf,cap_perfmon,cap_sys_ptrace"
check "without capabilities: leaves nothing" rmdir "$work/open"
ln -s "$work/elsewhere" "$socket.lock"
check "a lock that is a link" exits 1 "$profild" --socket "$socket"
check "a lock that is a link: reported" says "cannot lock $socket.lock"
check "a lock that is a link: is not followed" test ! -e "$work/elsewhere"
rm "$socket.lock"
echo something >"$socket.lock"
check "a lock that is none" exits 1 "$profild" --socket "$socket"
check "a lock that is none: reported" says "not a lock"
check "a lock that is none: is left" grep -q something "$socket.lock"
rm "$socket.lock"

# Where it does not start because the kernel restricts perf events, there is nothing to be tested.
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ] &&
	[ "$(status timeout 60 "$profild" --socket "$socket")" = 5 ]; then
	check "a kernel that wants more" says "sysctl kernel.perf_event_paranoid=2"
	skip "profild serves" "kernel.perf_event_paranoid is above 2"
	finish
fi

check "it starts" begin_daemon
check "the socket is open to everybody" test "$(stat -c %a "$socket")" = 666
check "another on the same socket" exits 1 "$profild" --socket "$socket"
check "another on the same socket: reported" says "another process listens there already"
check "the first still serves" is_well
stop "$daemon"
check "killed, it leaves its socket" test -S "$socket"

# One that has bound its socket, and does not listen yet, looks like that.
exec 9>"$socket.lock"
flock 9
check "one that is about to listen" exits 1 timeout 60 "$profild" --socket "$socket"
check "one that is about to listen: reported" says "another process listens there already"
check "one that is about to listen: keeps its socket" test -S "$socket"
check "one that is about to listen: keeps its lock" test -f "$socket.lock"
exec 9>&-

several=()
for i in 1 2 3 4 5 6 7 8; do
	"${pdeathsig[@]}" "$profild" --verbose --socket "$socket" 2>"$work/several.$i" &
	several+=($!)
	note_started $!
done
one_is_left() {
	[ "$(grep -l "another process listens there already" "$work"/several.* | wc -l)" = 7 ] &&
		[ "$(grep -l "profild: ready" "$work"/several.* | wc -l)" = 1 ]
}
check "of several at once, one replaces it" wait_for one_is_left
check "of several at once, one serves" talk connect greeting start grow
for process in "${several[@]}"; do
	stop "$process"
done
check "the next one replaces it" begin_daemon
check "its lock is its own alone" test "$(stat -c "%a %s" "$socket.lock")" = "600 0"

# --- What it may do ---

# CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE
three=000000c000080000
for set in CapPrm CapEff CapBnd; do
	check "$set is the three capabilities" test "$(its $set)" = $three
done
for set in CapInh CapAmb; do
	check "$set is empty" test "$(its $set)" = 0000000000000000
done
check "it gets no new privileges" test "$(its NoNewPrivs)" = 1
check "it may have as many descriptors as it can" \
	grep -qE '^Max open files +([0-9]+) +\1 ' "/proc/$daemon/limits"

# --- Whom it serves ---

check "root" talk connect greeting start grow stop still
check "an ordinary user" talk_as_nobody connect greeting start grow stop still
check "an ordinary user: is logged when it begins" \
	told 'process [0-9]* of user 65534 is counted: 1000 Hz'
check "an ordinary user: is logged when it ends" \
	told 'process [0-9]* of user 65534 is no longer counted'
check "a second histogram in place of the first" \
	talk_as_nobody connect greeting start grow start grow stop still
check "one after the other" talk_as_nobody connect greeting start grow stop start grow stop
check "all threads but one" talk_as_nobody threads=1 connect greeting start-except still
check "all threads but the only one" talk_as_nobody connect greeting start-except still
check "a thread that it does not have" \
	talk_as_nobody connect greeting "expect=EINVAL:no thread $daemon" start-except="$daemon"
check "a process in a container" \
	"${nobody[@]}" unshare -Urpf "$hostile" "$socket" connect greeting start grow stop
check "all threads but one in a container" \
	"${nobody[@]}" unshare -Urpf "$hostile" "$socket" threads=3 connect greeting start-except still
check "a process whose first thread has ended" \
	talk_as_nobody connect greeting leader-ends start grow stop
check "nothing to stop" talk connect greeting "expect=EINVAL:nothing is counted" stop
check "all is well" is_well

# --- Whom it does not serve: anybody but the one who connected, as the program that it was ---

check "a child on its parent's connection" \
	talk_as_nobody connect greeting start fork "expect=EPERM:cannot ask" start
check "its stop" talk_as_nobody connect greeting start fork "expect=EPERM:cannot ask" stop
check "a child on its own connection" talk_as_nobody connect greeting start fork connect greeting \
	start grow

# Who sends a request before it was accepted may have gone since.
kill -STOP "$daemon"
hold early connect send ready "expect=EINVAL:before profild had accepted" greeting hung-up
kill -CONT "$daemon"
go early
check "who speaks before profild does" wait "$pid"

check "an undumpable process" \
	talk_as_nobody connect greeting undumpable "expect=EPERM:closed to its user" start

for kind in setuid setgid caps unreadable; do
	cp "$hostile" "$work/$kind"
done
chmod 4755 "$work/setuid"
chmod 2755 "$work/setgid"
chmod 711 "$work/unreadable"
kinds="setuid setgid unreadable"
if setcap cap_net_raw=ep "$work/caps" 2>/dev/null; then
	kinds+=" caps"
else
	skip "a program with file capabilities" "setcap does not work here"
fi
# Where set-user-ID bits are ignored (nosuid), there is nothing to be refused.
if [ "$("${nobody[@]}" "$work/setuid" - euid)" = 0 ]; then
	for kind in $kinds; do
		check "a program that is $kind, on the connection of the one before" \
			talk_as_nobody connect greeting keep "exec=$work/$kind" kept \
			"expect=EPERM:closed to its user" start
		check "its first thread has ended" \
			talk_as_nobody connect greeting keep "exec=$work/$kind" kept leader-ends \
			"expect=EPERM:closed to its user" start
		check "a program that is $kind, if the one before was counted" \
			talk_as_nobody connect greeting start keep "exec=$work/$kind" kept \
			"expect=EPERM:closed to its user" start
	done
	# Now the one is faster, now the other: but the second program is never counted.
	races() {
		local left=40

		while [ $((left--)) -gt 0 ]; do
			talk_as_nobody connect greeting send keep "exec=$work/setuid" kept any-reply ||
				return
		done
	}
	check "a program that is executed while profild attaches" races
else
	skip "programs with other privileges" "set-user-ID bits are ignored in $work"
fi
check "all is well" is_well

# --- How it ends ---

hold ends connect greeting start ready wait
check "counted" test "$(descriptors)" -gt "$base"
stop "$pid"
check "killed: detached" wait_for is_base

hold ends2 connect greeting start ready close ready
go ends2
check "closed: detached, while the process lives" wait_for is_base
check "closed: it lives" kill -0 "$pid"
stop "$pid"

hold ends3 connect greeting start ready "exec=$hostile" ready
go ends3
check "executes another program: detached" wait_for is_base
check "executes another program: it lives" kill -0 "$pid"
stop "$pid"

hold ends4 connect greeting send ready keep "exec=$hostile" kept any-reply
told "process $pid of user 65534 is counted"
go ends4
check "executes another program that keeps the connection: not counted" wait "$pid"
check "all is well" is_well

# --- Bad messages ---

check "each malformed request has its answer, and a good one behind it, too" \
	talk_as_nobody malformed
check "requests changed at random" talk_as_nobody connect greeting fuzz=3000
check "mistakes without end are hung up on" talk_as_nobody connect greeting mistakes
check "who does not read is hung up on" talk_as_nobody connect greeting flood
check "strange descriptors" talk_as_nobody connect greeting start strange
# It has to be profild that closes it last: it gets it when the sender has none any more.
hold lingers connect greeting ready linger=20 ready
sent() {
	[ "$(grep -cx ready "$work/lingers.out")" = 2 ]
}
kill -STOP "$daemon"
go lingers
check "a descriptor that takes long to close" wait_for sent
kill -CONT "$daemon"
check "a descriptor that takes long to close: others are served meanwhile" greets_soon
stop "$pid"
check "threads that make threads without end" talk_as_nobody churn=4 connect greeting attempt
check "all is well" is_well

# --- Many ---

wakeups() {
	its voluntary_ctxt_switches
}

# clocks: descriptors of perf events, one for each CPU and rate.
clocks() {
	find "/proc/$daemon/fd" -lname "*perf_event*" | wc -l
}

clocks_are() {
	[ "$(clocks)" -eq $(($1 * $(nproc --all))) ]
}

hold ticks hz=100 connect greeting start=64 ready
check "a clock for each CPU" wait_for clocks_are 1
go ticks
ends_well ticks
check "a clock without a client ends" wait_for clocks_are 0

# profild sleeps when it waits for something, and for its next event: once or twice per message; beside others that
# open and close perf events, it also waits for these in the kernel. It would wait for the counters in 1,000 steps.
before=$(wakeups)
check "counters that a client has written" \
	talk_as_nobody connect greeting start spoil stop start spoil
wait_for alone
check "counters that a client has written: profild waits for none of them" \
	test "$(($(wakeups) - before))" -lt 500

# Small enough that one user may have so many.
hold thousand hz=50 each=1000 connect greeting start=16384 spoil told wait
thousand=$pid
all_ready() {
	grep -qx ready "$work/thousand.out" && return
	tail -n 3 "$work/thousand.out" "$work/daemon.err"
	return 1
}
check "1,000 clients" all_ready
check "they take descriptors in proportion" test "$(descriptors)" -le $((base + 1000 * 12))
check "they take memory in proportion" test "$(its VmRSS | tr -dc 0-9)" -lt 300000
hold idle connect greeting start ready grow grow ready
has_grown() {
	[ "$(grep -cx ready "$work/idle.out")" = 2 ]
}
before=$(wakeups) since=$SECONDS
go idle
wait_for has_grown
# It wakes once a second for the CPUs; there are 200 ticks. What the client's end costs is not asked for.
check "what they count costs profild nothing" test "$(wakeups)" -le $((before + 3 + SECONDS - since))
go idle
wait "$pid"
hold waits connect greeting start ready grow
stop "$thousand"
go waits
check "all killed at once: others are served meanwhile" talk connect greeting start grow
check "all killed at once: others go on" ends_well waits
check "all killed at once: all are closed" wait_for alone
check "all killed at once: profild waits for none of them" \
	test "$(($(wakeups) - before))" -lt 1000
check "all is well" is_well

# --- Limits ---

check "SIGTERM ends it" end_daemon TERM
check "SIGTERM: its socket is gone" test ! -e "$socket"
check "SIGTERM: its lock is gone" test ! -e "$socket.lock"
check "with limits" begin_daemon --max-processes 3 --max-memory 1 --max-ticks 2500 --max-rates 2

hold three each=3 connect greeting told wait
check "processes: one too many" talk_as_nobody connect "expect=EDQUOT:profild --max-processes" \
	greeting hung-up
holder=$pid
check "processes: another user" talk connect greeting start grow
begin space "${nobody[@]}" unshare -U sh -c 'echo ready; exec sleep 1000'
if echo "0 200000 8" >"/proc/$pid/uid_map" && echo "0 200000 8" >"/proc/$pid/gid_map"; then # as newuidmap(1) does
	check "processes: a subordinate ID of the same user" \
		timeout 60 nsenter -U -t "$pid" --setuid 1 --setgid 1 "$hostile" "$socket" connect \
		"expect=EDQUOT:user 65534 has 3 connections already" greeting hung-up
else
	skip "processes: a subordinate ID of the same user" "user namespaces cannot have them here"
fi
stop "$pid"
stop "$holder"
wait_for alone
check "processes: again when they are gone" talk_as_nobody connect greeting start grow

# 1 MiB, less 16 KiB and the page that comes first, in cells of 8 bytes
check "memory: all that there may be" talk_as_nobody connect greeting start=128512 grow
check "memory: one cell more" \
	talk_as_nobody connect greeting "expect=EDQUOT:profild --max-memory" start=128513
check "memory: too much at once" \
	talk_as_nobody connect greeting "expect=EDQUOT:profild --max-memory" start=200000
check "memory: too much together" talk_as_nobody connect greeting start=100000 fork \
	connect greeting "expect=EDQUOT:profild --max-memory" start=100000
check "memory: what goes on being mapped" talk_as_nobody connect greeting start=100000 stop close \
	connect greeting "expect=EDQUOT:profild --max-memory" start=100000 unmap start=100000
check "memory: what is refused leaves what is counted" talk_as_nobody connect greeting \
	start=100000 "expect=EDQUOT:profild --max-memory" start=100000 grow

check "ticks: all that there may be" talk_as_nobody hz=2500 connect greeting start=64
check "ticks: one too many" \
	talk_as_nobody hz=2501 connect greeting "expect=EDQUOT:profild --max-ticks" start=64
hold two hz=1500 each=2 connect greeting start=64 told wait
check "ticks: too many together" talk_as_nobody hz=1001 connect greeting \
	"expect=EDQUOT:user 65534 has 1500 ticks per second, and 1001 more" start=64
check "ticks: of one rate, all processes have the same" \
	talk_as_nobody hz=1500 connect greeting start=64
check "ticks: another user" talk connect greeting start grow
stop "$pid"
wait_for alone
check "ticks: again when they are gone" talk_as_nobody hz=2500 connect greeting start=64
check "ticks: too many of one process" talk_as_nobody hz=2000 connect greeting start=64 \
	hz=1000 connect greeting "expect=EDQUOT:profild --max-ticks" start=64
check "rates: more than one user may have" talk_as_nobody hz=11 connect greeting start=64 hz=12 connect \
	greeting start=64 hz=13 connect greeting "expect=EDQUOT:user 65534 has 2 rates, the limit: profild --max-rates" \
	start=64 hz=11 start=64
check "ticks: what is replaced does not count" talk_as_nobody hz=2000 connect greeting start=64 \
	hz=2500 start=64 stop start=64
check "a refusal is logged with its process, user and reason" \
	told 'refused process [0-9]* of user 65534: user 65534 has 2000 ticks per second, and'
check "ticks: what is refused leaves what is counted" talk_as_nobody connect greeting start \
	hz=2501 "expect=EDQUOT:profild --max-ticks" start grow
check "all is well" is_well

check "it ends" end_daemon TERM
check "with a share" begin_daemon --max-share 2 --max-rates 12

# There are 15 clocks. However many user IDs one person has, some are left.
hold some hz=11 connect greeting start=64 hz=12 connect greeting start=64 hz=13 connect greeting \
	start=64 hz=14 connect greeting start=64 hz=15 connect greeting start=64 hz=16 connect \
	greeting start=64 hz=17 connect greeting start=64 hz=18 connect greeting start=64 \
	hz=19 connect greeting \
	"expect=EDQUOT:user 65534 has 8 rates that nobody else has, and other users 0: one more would be over half" start=64 ready
check "rates: half of all for one user" grep -qx ready "$work/some.out"
some=$pid
check "rates: half of what is left for the next, besides those that others have, and the usual one" \
	talk hz=31 connect greeting start=64 hz=32 connect greeting start=64 hz=33 connect greeting start=64 \
	hz=34 connect greeting start=64 hz=35 connect greeting \
	"expect=EDQUOT:user 0 has 4 rates that nobody else has, and other users 8" start=64 \
	hz=11 connect greeting start=64 hz=100 connect greeting start=64 hz=31 connect greeting start=64
stop "$some"
wait_for alone
check "share: half of it for one user" talk_as_nobody hz=1000 connect greeting start=64
check "share: not more" talk_as_nobody hz=1001 connect greeting \
	"expect=EDQUOT:over half of what they leave of 2000: profild --max-share" start=64
hold half hz=1000 connect greeting start=64 ready
half=$pid
check "share: half of what is left for the next" talk hz=501 connect greeting \
	"expect=EDQUOT:other users 1000, and with 501 more" start=64 hz=500 connect greeting start=64
check "share: the clock of another user costs nothing more" talk hz=1000 connect greeting start grow
check "share: the usual rate can always be had" talk hz=500 connect greeting start=64 hz=100 \
	connect greeting start=64
stop "$half"
check "share: all is well" wait_for is_base
check "it ends" end_daemon TERM
check "with limits again" begin_daemon --max-processes 3 --max-memory 1 --max-ticks 2500

# --- No descriptor is left ---

# room N: the limit that leaves it N descriptors more, whichever numbers it has.
room() {
	local number=0 left=$1
	while [ -e "/proc/$daemon/fd/$number" ] || [ $((left--)) -gt 0 ]; do
		number=$((number + 1))
	done
	echo "$number"
}

wait_for is_base
prlimit --pid "$daemon" --nofile="$(room 3):"
check "no descriptor for the maps" talk_as_nobody connect greeting attempt
check "no descriptor for the maps: reported" told "Too many open files"
prlimit --pid "$daemon" --nofile="$(room 0):"
hold none connect ready greeting start grow
check "no descriptor for a connection: reported" told "cannot accept a connection: Too many open"
check "no descriptor for a connection: the hint" told "LimitNOFILE="
woken_again() {
	[ "$(wakeups)" -ge $((before + 4)) ]
}
start_ns=$(date +%s%N)
before=$(wakeups)
wait_for woken_again
check "no descriptor for a connection: it does not spin" \
	test $(($(date +%s%N) - start_ns)) -ge 250000000
prlimit --pid "$daemon" --nofile=1024:
go none
check "it is accepted when there is one" wait "$pid"
check "all is well" is_well

# --- Its end, and its next beginning ---

hold client connect greeting start ready hung-up still
check "SIGINT ends it, with a client" end_daemon INT
check "SIGINT: its socket is gone" test ! -e "$socket"
check "SIGINT: its lock is gone" test ! -e "$socket.lock"
go client
check "the client lives, and learns of it" wait "$pid"
check "the next starts at once" begin_daemon
mv "$socket" "$work/moved"
: >"$socket"
check "SIGTERM" end_daemon TERM
check "it removes nothing but what it has made" test -f "$socket"
rm "$socket" "$work/moved"

# --- As systemd starts it ---

# activate TYPE COMMAND...: with a socket passed on
activate() {
	local type=$1
	shift
	rm -f "$socket"
	python3 "$top/tests/activate.py" "$type" "$socket" "$@"
}

check "a passed socket" launch python3 "$top/tests/activate.py" SOCK_SEQPACKET "$socket" \
	"$profild" --verbose --socket "$work/none/socket"
check "a passed socket: serves" talk_as_nobody connect greeting start grow
check "a passed socket: ends" end_daemon TERM
check "a passed socket: it is not profild's to remove" test -S "$socket"
check "a passed socket: needs no lock" test ! -e "$socket.lock"

# Who connects before profild has the socket can send descriptors on every kernel.
rm "$socket"
mkfifo "$work/later.in"
# shellcheck disable=SC2016 # is for the other shell
spawn python3 "$top/tests/activate.py" SOCK_SEQPACKET "$socket" \
	bash -c 'read -r <"$0" && exec "$@"' "$work/later.in" "$profild" --verbose
wait_for talk connect
check "a descriptor that takes long to close, from before" \
	hold before connect linger=20 ready "expect=EINVAL:before profild had accepted" greeting hung-up
check "a descriptor that takes long to close, from before: it was sent" \
	test -z "$(grep refused "$work/before.out")"
go later
wait_for grep -q ready "$work/daemon.err"
check "a descriptor that takes long to close, from before: others are served" greets_soon
go before
check "a descriptor that takes long to close, from before: is refused" wait "$pid"
check "it ends" end_daemon TERM

for type in SOCK_STREAM SOCK_DGRAM; do
	check "a passed socket that is a $type" exits 1 activate $type "$profild"
	check "a passed socket that is a $type: the hint" says "ListenSequentialPacket="
done
rm "$socket"
LISTEN_PID=1 LISTEN_FDS=1 check "sockets that were passed to another process" begin_daemon
check "all is well" is_well
check "it ends" end_daemon TERM

# A user of its own, three capabilities, and a /proc that hides the processes of others.
chmod 777 "$work"
capabilities=-all,+bpf,+perfmon,+sys_ptrace
service=(unshare -m sh -c "mount -t proc -o hidepid=invisible proc /proc && exec \"\$@\"" sh
	setpriv --reuid=65533 --regid=65533 --clear-groups --no-new-privs
	"--inh-caps=$capabilities" "--ambient-caps=$capabilities" "--bounding-set=$capabilities")
if "${service[@]}" true 2>/dev/null; then
	check "as a user of its own" launch "${service[@]}" "$profild" --verbose --socket "$socket"
	check "as a user of its own: no other capability" test \
		"$(its CapPrm) $(its CapEff) $(its CapBnd) $(its CapAmb)" = \
		"$three $three $three 0000000000000000"
	check "as a user of its own: serves another" talk_as_nobody connect greeting start grow
	check "as a user of its own: serves threads" \
		talk_as_nobody threads=2 connect greeting start-except start grow
	check "as a user of its own: serves root" talk connect greeting start grow
	check "as a user of its own: refuses what is closed" \
		talk_as_nobody connect greeting undumpable "expect=EPERM:closed to its user" start
	check "as a user of its own: all is well" is_well
	check "as a user of its own: it ends" end_daemon TERM
else
	skip "as a user of its own" "unshare or setpriv cannot do that here"
fi

finish
