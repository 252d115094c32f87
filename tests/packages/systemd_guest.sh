#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in the machine of systemd.sh, as a service of its systemd: installs /debs, and prints TAP on the
# console. What it needs is in /test: busy, of debian/tests.

# shellcheck disable=SC2016,SC2317 # for other shells and awk; functions are called by check

set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cd /test || exit
count=0

check() {
	local name=$1
	shift
	count=$((count + 1))
	if "$@" >check.out 2>&1; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		sed 's/^/# /' check.out | tail -n 20
	fi
}

# note COMMAND...: its output, for who reads the results.
note() {
	"$@" 2>&1 | sed 's/^/# /'
}

wait_for() {
	local end=$((SECONDS + 120))

	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

state_is() {
	local is

	is=$(systemctl is-active "$1")
	echo "$is"
	[ "$is" = "$2" ]
}

is_enabled() {
	[ "$(systemctl is-enabled "$1")" = enabled ]
}

# as USER COMMAND...: without privileges.
as() {
	setpriv --reuid "$1" --regid 65534 --clear-groups "${@:2}"
}

# start USER NAME: a program that counts until a signal ends it; sets $pid. Waits until profild counts it.
start() {
	PROFIL_VERBOSE=1 setpriv --reuid "$1" --regid 65534 --clear-groups ./busy 3600 count \
		>"$2.out" 2>"$2.err" </dev/null &
	pid=$!
	wait_for grep -q 'back end: daemon' "$2.err"
}

main_pid() {
	systemctl show -P MainPID profild.service
}

# counts NAME BACKEND: whether a program of user 65534 counts by it, and prints its ticks.
counts() {
	as 65534 env PROFIL_VERBOSE=1 ./busy 2 count >"$1.out" 2>"$1.err" </dev/null
	cat "$1.err" "$1.out"
	awk -v by="$2" '{ ok = $2 > 40 && $2 > 3 * $4 && $6 == by } END { exit !ok }' "$1.out"
}

logs() {
	journalctl -q -o cat -u profild.service --no-pager | grep -E "$1"
}

# advises STATE NAME REGEX: whether `profiltool check` of a user without privileges has such lines for it.
advises() {
	as 65534 profiltool check >advice 2>&1
	awk -v state="$1" -v name="$2" '
		/^[a-z]/ { on = $1 == state; sub(/^[a-z]+ +/, ""); on = on && index($0, name "  ") == 1 }
		on' advice | tr -s ' \n' ' ' | grep -E -- "$3" && return
	cat advice
	return 1
}

# serves: whether profild replies, which takes it some seconds after its start here, perhaps longer than a client
# waits. Asked by a user of whom no other process is counted.
serves() {
	as 54321 profiltool check | grep -E '^(ok|limited) +profild +answers'
}

property_is() {
	systemctl show -p "$1" profild.service
	[ "$(systemctl show -P "$1" profild.service)" = "$2" ]
}

echo "# $(uname -r), $(systemctl --version | head -n 1)"
note sysctl kernel.perf_event_paranoid kernel.unprivileged_bpf_disabled

# --- Installed: the socket listens, the daemon does not run yet ---

check "installed" dpkg -i /debs/libprofil1_*.deb /debs/profild-bin_*.deb /debs/profild_*.deb /debs/profiltool_*.deb
check "profild.socket is enabled" is_enabled profild.socket
check "profild.socket listens" state_is profild.socket active
check "profild does not run" state_is profild.service inactive
check "nothing records all the time" sh -c '! systemctl cat profil-continuous.service'

# --- Stock Debian: no sysctl, no module, a user without privileges ---

check "socket activation: profil(2) of a user without privileges counts by profild" counts first daemon
note cat first.err first.out
check "profild runs now" state_is profild.service active
check "the journal names the clock" logs "scheduler's tick"
note journalctl -q -o short-monotonic -u profild.service -u profild.socket --no-pager
check "it has three capabilities, and is not root" sh -c "
	grep -E '^(Uid|CapEff)' /proc/$(main_pid)/status
	grep -q 'CapEff:.000000c000080000' /proc/$(main_pid)/status && ! grep -q '^Uid:.0' /proc/$(main_pid)/status"
check "check: by the scheduler's tick" advises limited profild "by the scheduler's tick: at 250 Hz"
check "check: what to do, and what is better then" advises limited profild \
	"-> .*sysctl -w kernel.perf_event_paranoid=2 .*better: the rate that a program requests"
check "check: what is better with the module" advises absent /dev/profil "better: the rate .*exact at any moment"
note cat advice

# --- Limits ---

check "limit: tasks" property_is TasksMax 80
check "limit: descriptors" property_is LimitNOFILE 524288
note systemctl show -p MemoryMax,MemoryCurrent,TasksCurrent profild.service
systemd-analyze security --no-pager profild.service | tail -n 1 | sed "s/^/# /"

# --- It ends, and systemd starts it again; a program continues ---

start 65534 long
long=$pid
old=$(main_pid)
kill -KILL "$old"
is_restarted() {
	local new

	new=$(main_pid)
	[ "$new" -gt 0 ] && [ "$new" != "$old" ]
}
check "killed: systemd starts it again" wait_for is_restarted
check "killed: it serves" wait_for serves
check "killed: counts again" counts killed daemon
old=$(main_pid)
check "systemctl restart" systemctl restart profild.service
check "restarted: another process" is_restarted
check "restarted: it serves" wait_for serves
check "restarted: the socket listens" state_is profild.socket active
check "restarted: counts again" counts restarted daemon
kill -TERM $long
wait $long 2>/dev/null
check "a program that was counted since before is counted still" \
	awk '{ print; more = $2 > 40 && $6 == "daemon" } END { exit !more }' long.out
note cat long.out

# --- Limits for each user ---

mkdir -p /etc/systemd/system/profild.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/sbin/profild --verbose --max-processes 1\n' \
	>/etc/systemd/system/profild.service.d/limit.conf
systemctl daemon-reload
systemctl restart profild.service
wait_for serves
start 65534 first
counts over daemon >over.log 2>&1
check "a second process of the same user is refused, with the reason" grep 'profild --max-processes' over.err
note cat over.err
check "another user has a limit of its own" sh -c "
	setpriv --reuid 12345 --regid 65534 --clear-groups ./busy 1 count | tee other.out | grep daemon"
kill $pid
note journalctl -q -o short-monotonic -u profild.service --no-pager -n 12
rm -r /etc/systemd/system/profild.service.d
systemctl daemon-reload

# --- With the sysctl, at its own rate ---

sysctl -q kernel.perf_event_paranoid=2
systemctl restart profild.service
wait_for serves
check "perf_event_paranoid=2: counts at the rate that is asked" counts paranoid daemon
note cat paranoid.err paranoid.out
check "perf_event_paranoid=2: check has nothing more to say of profild" advises ok profild "answers at [^ ]* $"
sysctl -q kernel.perf_event_paranoid=3

# --- With the module ---

if [ -e "/lib/modules/$(uname -r)/updates/dkms" ]; then
	check "dkms's module is loaded" modprobe profil
	check "profil(2) counts by the module" counts module kmod
	note cat module.err module.out
	check "check reports it" advises ok /dev/profil "version 1"
	check "check: it counts" advises ok "profil(2)" "the kernel module counts"
	check "the module is unloaded" modprobe -r profil
fi

# --- All the time: two services burn, and the archive says which, where and since when ---

archive=/var/lib/profil

# run_unit NAME PROPERTIES COMMAND...: a service that uses what CPU time is left. profild has Nice=5, and takes a third
# of a machine this slow: beside programs that are as nice, a window would take minutes. The first process of a PID
# namespace is deaf to SIGTERM.
run_unit() {
	local properties=(-p Nice=19 -p KillSignal=SIGKILL)

	for property in $2; do
		properties+=(-p "$property")
	done
	systemctl reset-failed "$1" 2>/dev/null
	systemd-run -q --unit "$1" "${properties[@]}" "${@:3}"
}

# burn UNIT: a service that uses the CPU.
burn() {
	run_unit "$1" "" /test/busy 3600
}

# samples NAME COMMAND...: those of the row with this name, in the table that the command prints.
samples() {
	local name=$1
	shift
	"$@" 2>samples.err | tee samples.out | awk -v name="$name" '$NF == name { print $1; found = 1 } END { if (!found) print 0 }'
}

# has_row MINIMUM NAME COMMAND...
has_row() {
	local n

	n=$(samples "${@:2}")
	cat samples.err samples.out
	[ "$n" -ge "$1" ]
}

windows() {
	find "$archive" -name '*.pb.gz' -not -name '.*' -not -name '*.sum.pb.gz' | wc -l
}

# next_windows N: waits until so many more are there.
next_windows() {
	local enough=$(($(windows) + $1))

	has_enough() {
		[ "$(windows)" -ge "$enough" ]
	}
	wait_for has_enough
}

# processes_of UNIT COMM
processes_of() {
	local pid

	while read -r pid; do
		[ "$(cat "/proc/$pid/comm")" != "$2" ] || echo "$pid"
	done <"/sys/fs/cgroup/system.slice/$1/cgroup.procs"
}

continuous_pid() {
	systemctl show -P MainPID profil-continuous.service
}

# A window of a minute is long here.
shorten_windows() {
	echo "--window 5" >>/etc/profil/continuous.conf
}

# is_busy UNIT: nine of ten ticks are in one function.
is_busy() {
	profiltool report --since -10min --unit "$1" >rows 2>rows.err
	awk 'NR > 1 { all += $1 } $5 == "busy_most" { most = $1 } END { exit !(all > 100 && most > all * 0.8) }' rows ||
		! cat rows.err rows
}

# Rows of the table: minutes, in UTC.
has_minutes() {
	profiltool report --since -10min --by time >rows 2>rows.err
	cat rows.err rows
	grep -qE "$(date -u +%Y-%m-%d).*:[0-9][0-9]" rows
}

# is_absent UNIT OPTION...
is_absent() {
	local n

	n=$(samples "$1" profiltool report --by unit "${@:2}")
	cat samples.err samples.out
	[ "$n" -eq 0 ]
}

each_is_readable() {
	local file bad=0

	for file in "$archive"/*/*/*.pb.gz; do
		profiltool dump "$file" >dump.out 2>&1 || {
			echo "$file"
			tail -n 2 dump.out
			bad=1
		}
	done
	return $bad
}

same_in_snapshot() {
	profiltool snapshot --since -10min --until "$1" -o ticket.pb.gz || return
	samples one.service profiltool report --by unit --since -10min --until "$1" >asked
	samples one.service profiltool report --by unit ticket.pb.gz >kept
	cat asked kept samples.out
	[ "$(cat asked)" -gt 100 ] && cmp asked kept
}

check "continuous: installed" dpkg -i /debs/profil-continuous_*.deb
check "continuous: it is enabled" is_enabled profil-continuous.service
check "continuous: it runs" state_is profil-continuous.service active
check "continuous: windows of five seconds" shorten_windows
# A line that this systemd does not know, or takes for a mistake.
is_understood() {
	systemd-analyze verify --man=no profild.service profil-record.service profil-continuous.service >verified 2>&1 &&
		! grep . verified || ! cat verified
}
check "systemd has nothing to say about the units" is_understood
check "continuous: restarts" systemctl restart profil-continuous.service
burn one
check "continuous: records" next_windows 3
begin=$(date -u +%Y-%m-%dT%H:%M:%SZ)
check "continuous: goes on: the window of this time is complete" next_windows 2
burn two
check "continuous: goes on" next_windows 5
end=$(date -u +%Y-%m-%dT%H:%M:%SZ)
check "by unit: one" has_row 100 one.service profiltool report --since -10min --by unit
check "by unit: two" has_row 100 two.service profiltool report --since -10min --by unit
note cat samples.out
check "of one unit: where its time goes" is_busy one.service
check "by comm: both" has_row 200 busy profiltool report --since -10min --by comm
check "by time: a row for each minute" has_minutes
check "before the second began, it is not there" is_absent two.service --until "$begin"
check "diff: what is new is the second" sh -c 'profiltool diff --since "$1" --until "$2" --by unit | grep two.service' - "$begin" "$end"
note cat check.out
check "a snapshot for a ticket has the same" same_in_snapshot "$end"
old=$(continuous_pid)
check "killed" kill -9 "$old"
is_another() {
	[ "$(continuous_pid)" != 0 ] && [ "$(continuous_pid)" != "$old" ]
}
check "killed: systemd starts it again" wait_for is_another
check "killed: it records" next_windows 2
check "killed: every file can be read" each_is_readable
check "killed: the gap is reported" sh -c 'profiltool report --since -20min --by unit 2>&1 >/dev/null | grep "no window for"'
check "killed: the second goes on" has_row 10 two.service profiltool report --since -1min --by unit
check "status" sh -c 'profild --status && profild --status --json | grep -x "\"lost_ring_full_total\": 0,"'
note cat check.out
check "the keeper has no capabilities" sh -c '
	grep -x "CapEff:	0*" /proc/"$(pgrep -P "$1" -x profild-keeper)"/status' - "$(continuous_pid)"
# What reads files that users wrote: for stacks and for names.
parsers_are_confined() {
	local pid n=0

	for pid in $(processes_of profil-continuous.service profil-parser); do
		grep -E '^(CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tee parser.status
		grep -qx 'CapEff:	0*' parser.status && grep -qx 'Seccomp:	2' parser.status || return
		n=$((n + 1))
	done
	[ $n -eq 2 ]
}
check "both parsers have no capabilities, and a filter of system calls" parsers_are_confined
has_few_tasks() {
	systemctl show -p TasksMax,TasksCurrent profil-continuous.service
	[ "$(systemctl show -P TasksCurrent profil-continuous.service)" -le 16 ] # of 128
}
check "it has few tasks" has_few_tasks

# --- What only the unit's sandbox could take from it: names of programs that have another root, /tmp or PID ---

printf 'def burn_in_python():\n\twhile True:\n\t\tsum(i * i for i in range(1000))\nburn_in_python()\n' >/srv/burn.py
mkdir -p /srv/root/bin /srv/root/usr/lib/debug/.build-id
objcopy --only-keep-debug busy_static /srv/busy.debug
id=$(readelf -n busy_static | sed -n 's/.*Build ID: //p')
mkdir "/srv/root/usr/lib/debug/.build-id/${id:0:2}"
mv /srv/busy.debug "/srv/root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
strip -o /srv/root/bin/busy busy_static
cp busy_static /srv/deleted
# A program of a user, in a directory that no other may enter; and one whose root directory, mounts, users and PIDs are
# its own, as in a container that the user has started.
cat >draw.c <<'END'
#include <sys/random.h>

static char bytes[65536];
volatile long sum;

__attribute__((noinline)) int draw_from_kernel(void)
{
	sum += getrandom(bytes, sizeof(bytes), 0);
	return bytes[0];
}

int main(void)
{
	for (;;)
		sum += draw_from_kernel();
}
END
gcc -O2 -fomit-frame-pointer -o draw draw.c
mkdir -p /home/user
install -o 65534 -m 700 draw /home/user/draw
chown 65534 /home/user
chmod 700 /home/user
gcc -O2 -fomit-frame-pointer -static -o /srv/root/bin/draw draw.c
run_unit home "User=65534" /home/user/draw
run_unit contained "User=65534" unshare --user --map-root-user --mount --pid --fork --root /srv/root /bin/draw
run_unit private "PrivateTmp=yes" python3 -X perf /srv/burn.py
run_unit dynamic "DynamicUser=yes PrivateTmp=yes" python3 -X perf /srv/burn.py
run_unit inner "PrivateTmp=yes" unshare --pid --fork --mount-proc python3 -X perf /srv/burn.py
run_unit rooted "RootDirectory=/srv/root" /bin/busy 3600
run_unit deleted "" /srv/deleted 3600
wait_for pgrep -x deleted
rm /srv/deleted

# has_name UNIT NAME: whether the unit's ticks have this name.
has_name() {
	profiltool report --since -10min --unit "$1" >rows 2>rows.err
	cat rows.err rows
	awk -v name="$2" 'index($0, name) && $1 > 20 { found = 1 } END { exit !found }' rows
}
# has_whole_stacks UNIT: nearly all stacks through draw_from_kernel go from the program's start to functions of the
# kernel, and these have names.
has_whole_stacks() {
	profiltool snapshot --since -10min --unit "$1" -o draw.pb.gz && profiltool convert -q -f folded draw.pb.gz draw.folded || return
	grep 'draw_from_kernel;' draw.folded >stacks
	awk '{ all += $NF }
		/^_start;.*main;draw_from_kernel;.*getrandom;/ && !/0x[0-9a-f]* [0-9]+$/ { whole += $NF }
		END { exit !(all > 20 && whole > 0.9 * all) }' stacks || ! cat stacks
}
for unit in home contained; do
	check "stacks go from the program's start into the kernel, with names: $unit" wait_for has_whole_stacks $unit.service
	has_whole_stacks $unit.service >check.out 2>&1 || note tail -n 20 check.out
done
for unit in private dynamic inner; do
	check "names of JIT code: $unit" wait_for has_name $unit.service burn_in_python
	has_name $unit.service burn_in_python >check.out || note head -n 8 check.out
done
check "names from a debug file below RootDirectory=" wait_for has_name rooted.service busy_most
check "names of a program that is deleted" wait_for has_name deleted.service busy_most
check "a filter of system calls was on" grep -x "Seccomp:	2" "/proc/$(continuous_pid)/status"
# Reading call frame information takes longer here than it may at once.
is_well() {
	profild --status --json | tee status.json |
		grep -E '"((windows_failed|windows_lost|windows_full|crowded_windows|lost_[a-z_]*)_total|unwind_no_room_images|cause)"' >well
	cat status.json
	[ "$(wc -l <well)" -ge 10 ] && ! grep -vE ': 0,$|"cause": "unwind_time"' well
}
check "status: nothing failed, was lost, refused, or had no room" is_well
note profild --status
systemctl stop home contained private dynamic inner rooted deleted

# --- Upgraded while it records ---

old=$(continuous_pid)
begin=$(date -u +%Y-%m-%dT%H:%M:%SZ)
check "continuous: upgraded while it records" dpkg -i /debs/profild-bin_*.deb /debs/profild_*.deb /debs/profil-continuous_*.deb
check "continuous: upgraded: another process records" is_another
check "continuous: upgraded: windows are written" next_windows 2
check "continuous: upgraded: it is enabled still" is_enabled profil-continuous.service
check "continuous: upgraded: the recording lacks less than half a minute" sh -c '
	profiltool report --since "$1" --by unit 2>&1 >/dev/null | tee gaps
	! grep -E "no window for ([3-9][0-9] s|[0-9]+ (min|h))" gaps' - "$begin"

# messages_since TIME: of systemd and of ours about the unit.
messages_since() {
	journalctl -q -o cat --no-pager -u profil-continuous.service --since "@$1"
}
begin=$(date +%s)
check "stops" systemctl disable --now profil-continuous.service
check "stops: without a failure" state_is profil-continuous.service inactive
nothing_is_killed() {
	messages_since "$begin" | tee messages
	grep -q '^Stopped ' messages && ! grep -E 'SIGKILL|timed out|[Ff]ailed|left-over' messages
}
check "stops: no process is left for systemd to kill" nothing_is_killed
note journalctl -q -o short-monotonic --no-pager -u profil-continuous.service --since "@$begin"
check "stops: every file can be read" each_is_readable
systemctl stop one two

# --- Sending: by the lines of profild(8) ---

cat >server.py <<'END'
from http.server import BaseHTTPRequestHandler, HTTPServer

class Server(BaseHTTPRequestHandler):
	def do_POST(self):
		self.rfile.read(int(self.headers["Content-Length"]))
		print(self.path, flush=True)
		self.send_response(200)
		self.send_header("Content-Type", "application/x-protobuf")
		self.send_header("Content-Length", "0")
		self.end_headers()

HTTPServer(("127.0.0.1", 4318), Server).serve_forever()
END
python3 server.py >server.out 2>server.err &
server=$!
echo "--push http://127.0.0.1:4318" >>/etc/profil/continuous.conf
begin=$(date +%s)
lacks_network() {
	! systemctl start profil-continuous.service
	messages_since "$begin" | grep 'the unit has no network: see "Sending" in profild(8)'
}
check "push: without the drop-in, says where it is described" lacks_network
mkdir /etc/systemd/system/profil-continuous.service.d
sed -n '/^\.Ss Sending/,/^\.Ed/p' /test/profild.8 | sed -n '/^\[Service\]/,/^#/p' | grep -v '^#' \
	>/etc/systemd/system/profil-continuous.service.d/override.conf
note cat /etc/systemd/system/profil-continuous.service.d/override.conf
systemctl daemon-reload
check "push: with it, records" systemctl start profil-continuous.service
check "push: windows come to the server" wait_for grep -x /v1development/profiles server.out
check "push: status counts them" wait_for sh -c 'profild --status --json | grep -E "^\"pushed_total\": [1-9]"'
check "push: stops" systemctl stop profil-continuous.service
kill "$server"
rm -r /etc/systemd/system/profil-continuous.service.d
systemctl daemon-reload

# --- Recording on behalf of users: only when the administrator wants it ---

check "self-service: not enabled" state_is profil-record.socket inactive
check "self-service: check says how to switch it on" advises absent 'own processes' 'systemctl enable --now profil-record.socket'
check "self-service: enabled" systemctl enable --now profil-record.socket
check "self-service: the socket listens" state_is profil-record.socket active
mkdir -m 777 own
setpriv --reuid 65534 --regid 65534 --clear-groups ./busy 3600 count >/dev/null 2>&1 </dev/null &
owned=$!
# records FILE OPTION...: by user 65534, who has no privileges; with the function that takes most of the time.
records() {
	as 65534 profiltool record -q -o "own/$1" "${@:2}" >own/rows 2>&1
	cat own/rows
	as 65534 profiltool report -q --by function "own/$1" >own/report || return
	cat own/report
	awk '/ busy_most / && $1 > 20 { found = 1 } END { exit !found }' own/report
}
is_refused_with_the_cause() {
	! records none.pb.gz -d 1 -p "$owned" && grep 'set kernel.perf_event_paranoid to 2' own/rows
}
check "self-service: Debian's kernel opens no perf events: what to do" is_refused_with_the_cause
check "self-service: and check says so, too" advises limited 'own processes' 'set kernel.perf_event_paranoid to 2'
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
sysctl -qw kernel.perf_event_paranoid=2
check "self-service: check records" advises ok 'own processes' 'ticks of this process'
check "self-service: a process of one's own, with stacks" records pid.pb.gz -g -d 5 -p "$owned"
note systemctl show -p MemoryCurrent,TasksCurrent profil-record.service
check "self-service: a command, with waits" records command.pb.gz --wall -- ./busy 5 count
other_is_refused() {
	as 65533 profiltool record -q -d 1 -o own/other.pb.gz -p "$owned" >own/rows 2>&1
	[ $? -eq 5 ] && cat own/rows && ! [ -e own/other.pb.gz ]
}
check "self-service: another user's process is refused" other_is_refused
check "self-service: the service runs" state_is profil-record.service active
note journalctl -q -o cat -u profil-record.service --no-pager
systemd-analyze security --no-pager profil-record.service | tail -n 1 | sed "s/^/# /"
kill "$owned"
sysctl -qw "kernel.perf_event_paranoid=$paranoid"

# --- Upgraded while it runs; removed, purged ---

counts before daemon >/dev/null 2>&1
old=$(main_pid)
check "upgraded while it runs" dpkg -i /debs/profild-bin_*.deb /debs/profild_*.deb /debs/profil-continuous_*.deb
# The maintainer script restarts the socket, which ends the daemon that requires it; a client starts the new one.
has_ended() {
	[ "$(main_pid)" != "$old" ] && ! [ -e "/proc/$old" ]
}
check "upgraded: the old daemon has ended" wait_for has_ended
check "upgraded: it serves" wait_for serves
check "upgraded: another process" is_restarted
check "upgraded: the socket listens" state_is profild.socket active
check "upgraded: counts" counts upgraded daemon
systemctl start profil-continuous.service
check "removed" dpkg --remove profild profil-continuous profild-bin
check "removed: check says what was better with it" advises absent profild "better: the kernel counts, in all threads"
check "removed: profiltool" dpkg --remove profiltool
check "removed: nothing listens" state_is profild.socket inactive
check "removed: the daemons have ended" sh -c '! pgrep -x profild'
check "removed: the C library counts" counts removed libc
note cat removed.err
check "purged" dpkg --purge profild profil-continuous profild-bin profiltool
check "purged: systemd knows no unit" sh -c '! systemctl cat profild.socket && [ -z "$(systemctl list-units --all --plain --no-legend "profild*")" ]'
check "purged: no file, no directory" sh -c '[ -z "$(find /etc /usr /var /run \( -name "*profild*" -o -path "/var/lib/profil*" \) -not -path "/var/lib/dpkg/*" -not -path "/var/log/*")" ]'
note find /etc /usr /var /run -name "*profild*"
note systemctl --failed --no-pager
echo "1..$count"
echo "end of the tests"
