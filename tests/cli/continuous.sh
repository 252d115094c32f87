#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous: windows without a gap, with labels; what signals, a second daemon, a full disk and
# kill -9 do to them.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

# Copies that every user may run, wherever the tests are.
chmod 755 "$work"
cp "$build/profild" "$work"
# Another test may run the same program on this machine: this one has a name and a build ID of its own.
burns=burns$$
gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -fno-omit-frame-pointer -pthread "$(own_build_id)" \
	"$top/tests/progs/shares.c" -o "$work/$burns"
chmod 755 "$work/profild" "$work/$burns"
profild=$work/profild
host=$(uname -n)
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# --- Options ---

directory=$work/none
check "an option of the other mode" exits 2 "$profild" --continuous --max-ticks 5
check "an option of the other mode: named" says "--max-ticks does not go with --continuous"
for option in --window -F97 --push=x; do
	check "$option without its mode" exits 2 "$profild" $option 10
	check "$option without its mode: which one" says "$option goes with --continuous"
done
check "--json without its mode" exits 2 "$profild" --continuous --json
check "--json without its mode: which one" says "--json goes with --status"
for pair in "--continuous --record" "--record --status" "--continuous --status"; do
	# shellcheck disable=SC2086 # two words
	check "profild does not do both $pair" exits 2 "$profild" $pair
	check "profild names both of $pair" says "${pair/ / and } exclude each other"
done
for option in --retain-bytes --keep-free; do
	for value in x 5X -1 K 99999999999G; do
		check "$option $value" exits 2 "$profild" --continuous "$option" "$value"
	done
	check "$option: what it takes" says "$option: takes a size, such as 500M"
done
for value in x h 25h 6h,6h 1M,2M ,6h '6h,' 1M,6h,1M 1M,x -1h; do
	check "--retain-times $value" exits 2 "$profild" --continuous --retain-times "$value"
done
check "--retain-times: what it takes" says "--retain-times: takes a size, hours (24h at most) or both, such as 64M,6h"
for value in x 1 0h 8d 1hh -1h h '' 99999999999999999999s; do
	check "--watch=$value" exits 2 "$profild" --continuous "--watch=$value"
done
check "--watch: what it takes" says "--watch: takes an interval, such as 30m or 1h, or 0, not"
check "a window of no length" exits 2 "$profild" --continuous --window 0
check "an event that there is not" exits 2 "$profild" --continuous --event cycles
check "a rate of the scheduler's tick" exits 2 "$profild" --continuous --event tick --frequency 9
check "a server's address that is none" exits 2 "$profild" --continuous --directory "$directory" --push nowhere
check "how to send, but not where to" exits 2 "$profild" --continuous --directory "$directory" --push-token-file "$0"
check "how to send, but not where to: named" says "--push-token-file needs --push"
check "metrics into no directory" exits 1 "$profild" --continuous --directory "$directory" --metrics "$work/none/m.prom"
check "metrics into no directory: named" says "cannot write $work/none/m.prom: No such file or directory"
check "metrics into no directory: what to do" says "mkdir -p"
check "all these make no directory" test ! -e "$directory"
check "the status of nothing" exits 1 "$profild" --status --directory "$directory"
check "the status of nothing: the hint" says "has not recorded there"

# --- A file of options ---

# config LINE...: a file of these lines, which is $work/options.
config() {
	printf '%s\n' "$@" >"$work/options"
}
# takes LINE...: the file of these lines is valid.
takes() {
	config "$@"
	exits 0 "$profild" --continuous --config "$work/options" --version
}
# refuses LINE TEXT: it is a mistake, at this line.
refuses() {
	config "# comment" "" "$1"
	exits 2 "$profild" --continuous --config "$work/options" --version && says "$work/options:3: $2"
}
check "a file of options" takes "# a comment" "" "--retain-days 7 # a week" "	--window=5" "-F 97" "-F97" "--verbose" \
	'--metrics "/a b/#1.prom"' $'--keep-free 1G\r'
for value in 64M 6h 64M,6h 6h,64M 24h 0; do
	check "--retain-times $value" takes "--retain-times $value"
done
for value in '' =30m =0 =7d =90s; do
	check "--watch$value" takes "--watch$value"
done
check "an empty file" takes
check "a file that ends within a line" sh -c 'printf %s "--window 5" >"$1" && "$2" --continuous --config "$1" --version' - \
	"$work/options" "$profild"
check "a mistake in a line" refuses "--window x" '--window: takes a number from 1 to 3600, not "x"'
check "an option without dashes" refuses "window 5" "not an option: window 5"
check "an unknown option" refuses "--windw 5" "unknown option: --windw"
check "an unknown option: the hint" says "did you mean --window?"
check "an option of the other mode in a file" refuses "--socket /x" "unknown option: --socket"
check "no value" refuses "--window" "a value is missing after: --window"
check "a value that is none" refuses "--verbose 3" "this option takes no value: --verbose"
check "two options in a line" refuses "--metrics /m.prom --dcpi /d" "more than one option in a line"
for option in continuous version "config $work/options"; do
	check "--$option in a file" refuses "--$option" "only for the command line: --${option%% *}"
done
check "no file" exits 2 "$profild" --continuous --config "$work/no"
check "no file: named" says "cannot read the configuration file $work/no: No such file or directory"
printf -- '--window 5\0' >"$work/options"
check "a binary file" exits 2 "$profild" --continuous --config "$work/options"
check "a binary file: why" says "has a NUL byte"
first_goes() {
	config "--directory $work/of_file"
	exits 1 "$profild" --status --config "$work/options" && says "$work/of_file" &&
		exits 1 "$profild" --status --directory "$work/given" --config "$work/options" && says "$work/given"
}
check "the command line goes before the file" first_goes

# Each option of --help, but those for the command line, is in the file that is installed, as a comment.
installed() {
	sed 's/^#--/--/' "$top/user/daemon/continuous.conf" >"$work/options"
	! grep -v '^#' "$top/user/daemon/continuous.conf" | grep . &&
		exits 0 "$profild" --continuous --config "$work/options" --version &&
		diff <("$profild" --help | sed -n '/^profild --continuous/,/^profild --status/s/^  ..,* *--\([a-z-]*\).*/\1/p' |
			grep -vxE 'continuous|config|version' | sort) <(sed -n 's/^--\([a-z-]*\).*/\1/p' "$work/options" | sort)
}
check "the installed file has all options as comments" installed

if [ "$(id -u)" != 0 ]; then
	skip "recording" "recording needs root"
	finish
fi
mkdir -m 777 "$work/open"
check "without capabilities" exits 5 "${nobody[@]}" "$profild" --continuous --directory "$work/open"

# --- Directories that systemd makes read-only ---

# read_only NAME OPTION...: in a unit with ProtectSystem=strict, these options fail at once, and the hint is the setting.
read_only() {
	local name=$1
	shift
	exits 1 env INVOCATION_ID=1 unshare --mount sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift &&
		exec "$@"' - "$work/sealed" "$profild" --continuous --directory "$work/none" "$@" &&
		says "$work/sealed/$name: Read-only file system" && says "and ReadWritePaths=$work/sealed"
}
if unshare --mount true 2>/dev/null; then
	mkdir -p "$work/sealed/made"
	check "--metrics there" read_only m.prom --metrics "$work/sealed/m.prom"
	check "--dcpi there" read_only dcpi --dcpi "$work/sealed/dcpi"
	check "--dcpi there, in a directory that exists" read_only made --dcpi "$work/sealed/made"
	check "--directory there" read_only archive --directory "$work/sealed/archive"
	check "--directory there, which exists" read_only "made/$host" --directory "$work/sealed/made"
	mkdir -p "$work/sealed/kept/$host"
	check "--directory there, which was written to before" read_only "kept/$host/.lock" --directory "$work/sealed/kept"
	check "without systemd, the hint is another directory" sh -c 'unshare --mount sh -c "$1" 2>&1 | grep -q "give another directory"' - \
		"mount --bind '$work/sealed' '$work/sealed' && mount -o remount,bind,ro '$work/sealed' &&
			'$profild' --continuous --directory '$work/none' --dcpi '$work/sealed/dcpi'"
	rm -rf "$work/none"
else
	skip "directories that are read-only" "no mount namespaces here"
fi
check "--dcpi that is a file" exits 1 "$profild" --continuous --directory "$work/none" --dcpi "$work/options"
check "--dcpi that is a file: why" says "cannot write $work/options: Not a directory"

# --- A daemon; $daemon is its process ---

favour=() # a command that runs it, if any

# begin_daemon ARGUMENT...: starts it in $directory and waits until it records.
begin_daemon() {
	: >"$work/daemon.err" # at once, lest the last one's is read
	"${pdeathsig[@]}" "${favour[@]}" "$profild" --continuous --verbose --directory "$directory" "$@" \
		2>>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -qE "records (cpu-clock|tick) into" "$work/daemon.err"
}

# end_daemon: has it write what is left; $status is its exit status.
end_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
	status=$?
}

windows() {
	find "$directory/$host" -name '*.pb.gz' ! -name '.*' | sort
}

has_windows() {
	[ "$(windows | wc -l)" -ge "$1" ]
}

logged() {
	wait_for grep -q -- "$1" "$work/daemon.err" && return
	cat "$work/daemon.err"
	return 1
}

# examine EXPRESSION: whether it is true, given w: all windows as `dump --json` prints them, in order of time.
examine() {
	local file

	windows | while read -r file; do
		"$profiltool" dump --json "$file" | tr -d '\n'
		echo
	done >"$work/windows"
	python3 -c '
import json, sys
w = [json.loads(line) for line in open(sys.argv[2])]
def labelled(**labels):
	return sum(s["count"] for d in w for s in d["stacks"]
		if all(label(s, k) == v for k, v in labels.items()))
def label(stack, key):
	labels = stack.get("labels", {})
	return str(labels.get(key, labels.get("tags", {}).get(key)))
def takes(ns, count):
	return ns / 4 <= count * w[0]["period_ns"] <= 1.75 * ns # as in recorded() of lib.sh
value = eval(sys.argv[1])
if not value:
	for d in w[:3]:
		print({k: d[k] for k in ("time_ns", "duration_ns", "ticks", "counted", "comments")})
	print([s.get("labels") for d in w for s in d["stacks"]][:3])
sys.exit(not value)' "$1" "$work/windows"
}

# --- sd_notify(3) ---

# notified MESSAGES PINGS SETTING... -- COMMAND...: runs the command with a NOTIFY_SOCKET of each kind until it has sent
# this many messages or has ended. All that it sent begins with MESSAGES; the rest are PINGS pings of the watchdog at
# least, or none if PINGS is 0.
notified() {
	python3 -S - "$work/notify" "$work/daemon.err" "$@" <<'PYTHON'
import os, select, signal, socket, subprocess, sys

path, log, first, pings = sys.argv[1], sys.argv[2], sys.argv[3].split(), int(sys.argv[4])
split = sys.argv.index("--")
settings, command = dict(s.split("=") for s in sys.argv[5:split]), sys.argv[split + 1:]
for address in path, "@" + path:
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind(address.replace("@", "\0"))
	with open(log, "wb") as err:
		daemon = subprocess.Popen(command, stderr=err, env={**os.environ, **settings, "NOTIFY_SOCKET": address})
	ended = os.pidfd_open(daemon.pid)
	messages = []
	while len(messages) < len(first) + pings and s in select.select([s, ended], [], [], 120)[0]:
		messages.append(s.recv(4096).decode())
		if messages == ["READY=1"] and b"records " not in open(log, "rb").read():
			sys.exit("ready before it records")
	if daemon.poll() is None:
		daemon.send_signal(signal.SIGTERM)
	daemon.wait(60)
	s.setblocking(False)
	try:
		while True:
			messages.append(s.recv(4096).decode())
	except BlockingIOError:
		pass
	s.close()
	if address == path:
		os.remove(path)
	rest = messages[len(first):]
	print(address, messages)
	if messages[:len(first)] != first or set(rest) - {"WATCHDOG=1"} or len(rest) < pings or (rest and not pings):
		sys.exit(1)
PYTHON
}
directory=$work/notified
its_pid=(sh -c 'WATCHDOG_PID=$$ exec "$@"' -)
recording=("$profild" --continuous --window 1 --directory "$directory")
check "systemd is notified when it records, and not of a watchdog that it has not" notified READY=1 0 -- "${recording[@]}"
check "the watchdog gets pings, while windows are written, too" notified READY=1 20 WATCHDOG_USEC=400000 -- \
	"${its_pid[@]}" "${recording[@]}"
check "the watchdog of another process gets none" notified READY=1 0 WATCHDOG_USEC=1000 WATCHDOG_PID=1 -- "${recording[@]}"
check "a start that fails is not notified" notified "" 0 WATCHDOG_USEC=1000 -- \
	"${recording[@]}" --metrics "$work/none/m.prom"
rm -rf "$directory"

directory=$work/archive
# Epochs of a DCPI database: one in the days to retain, and older ones of this host and another one.
recent=$(date -u -d '3 days ago' +%y%m%d%H%M)
mkdir -p "$work/dcpi"/{0101010101/"$host",0101010102/{"$host",another},"$recent/$host",notes/"$host"}
mkdir -p "$work/dcpi/0101010103/$host/of_others"
touch "$work/dcpi"/{0101010101,0101010102,"$recent",notes}/"$host"/old "$work/dcpi/0101010102/another/old"
# In a directory of node_exporter's user, who must not choose which of root's files becomes the metrics.
echo "root's" >"$work/of_root"
ln -s "$work/of_root" "$work/metrics.prom"
begin_daemon --window 1 --retain-days 4 --metrics "$work/metrics.prom" --dcpi "$work/dcpi"
# A program whose file can be read, and copies of it that are gone before anyone looks: as in containers.
echo 'int main(void) { for (volatile int i = 0; i < 40000000; i++); }' |
	gcc -x c - -o "$work/removed"
"$work/removed"
wait_for has_windows 2
for i in {1..20}; do
	mkdir "$work/$i"
	cp "$work/removed" "$work/$i"
	"$work/$i/removed"
	rm -r "${work:?}/$i"
done
# What begins late in a window may have no tick there: one of several has.
for i in {1..6}; do
	"${nobody[@]}" "$work/$burns" 1 0.35
done >"$work/burns.out"
burnt_ns=$(awk '/^cpu_ns/ { sum += $2 } END { printf "%.0f", sum }' "$work/burns.out")
sh -c 'exit 0' # a process of its own
# Services in Python, whose scripts are gone, and which have ended, before the window is written.
python=/usr/bin/python3
scripts=()
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && scripts=(root nobody)
if [ "${#scripts[@]}" -gt 0 ]; then
	for user in "${scripts[@]}"; do
		cat >"$work/$user$$.py" <<-END
			import os, time
			os.remove(__file__)
			def handle_of_$user():
			    while time.thread_time() < 1.5:
			        pass
			def serve():
			    handle_of_$user()
			serve()
		END
	done
	chmod 1777 "$work"
	chown nobody "$work/nobody$$.py"
	"$python" "$work/root$$.py"
	"${nobody[@]}" "$python" "$work/nobody$$.py"
	chmod 755 "$work"
fi
end_daemon
check "SIGTERM ends it in order" test "$status" -eq 0
check "windows of a second" has_windows 3
check "their account adds up" examine \
	'all(d["ticks"] == d["counted"] + d["out_of_range"] + d["excluded"] + sum(d["lost"].values()) and
	 d["counted"] == sum(s["count"] for s in d["stacks"]) for d in w)'
check "no gap is between them" examine \
	'all(abs(a["time_ns"] + a["duration_ns"] - b["time_ns"]) < 1e6 for a, b in zip(w, w[1:]))'
check "the windows have a program's CPU time once" examine \
	"takes($burnt_ns, labelled(comm='$burns'))"
check "whose user is named" examine "labelled(comm='$burns', user='nobody') == labelled(comm='$burns')"
check "the CPUs are named" examine \
	"labelled() == sum(labelled(cpu=str(i)) for i in range($(nproc --all)))"
check "a process that began in a window has no PID there" examine \
	"labelled(comm='$burns', pid='None') + labelled(comm='$burns', pid='0') > 0"
check "host, boot and kernel are in the header" examine "all(d['host'] == '$host' and
	'kernel=$(uname -r)' in d['comments'] and
	'boot_id=$(cat /proc/sys/kernel/random/boot_id)' in d['comments'] for d in w)"

mapfile -t files < <(windows)
"$profiltool" merge -o "$work/all.pb.gz" "${files[@]}" 2>"$work/err"
"$profiltool" report --json "$work/all.pb.gz" >"$work/all.json" 2>"$work/err"
of_burns="sum(f['self'] for f in j['functions'] if f['image'].endswith('/$burns')"
check "the functions of a program that has ended are named" recorded \
	"0 < $of_burns and f['name'] == 'burn_sixty') < $of_burns)" "$work/all.json"
check "stacks reach its start" recorded "'main' in {f['name'] for f in j['functions']}" "$work/all.json"
"$profiltool" convert "$work/all.pb.gz" "$work/all.folded" 2>"$work/err"
[ "${#scripts[@]}" -gt 0 ] || skip "the functions of scripts" "$python is not Python 3.11 to 3.14"
for user in "${scripts[@]}"; do
	check "the functions of $user's script, which has ended, are named" \
		grep -q "<module>;serve;handle_of_$user" "$work/all.folded"
done

# --- What it says of itself ---

check "--status of one that has ended" exits 3 "$profild" --status --directory "$directory"
check "--status: it does not run any more" grep -q "does not run" "$work/out"
check "--status: the share of whole stacks" grep -qE "^whole stacks +[0-9.]+ % of those in user space; [0-9.]+ % in the last hour" "$work/out"
check "--status: its own CPU time counts in the machine's" \
	grep -qE "^CPU time .* [0-9.]+ s in profild: [0-9]{1,2}[.][0-9]+ % of the machine's" "$work/out"
check "--status: its memory" grep -qE "^memory +[0-9.]+ MiB, [0-9.]+ MiB at most" "$work/out"
check "--status: what users may have of it" grep -qE "^ +[0-9.]+ MiB for what is kept of users' programs, [0-9.]+ at most" "$work/out"
check "--status: how many windows" grep -q "^windows *$(windows | wc -l) written" "$work/out"
check "--status --json" sh -c '"$1" --status --json --directory "$2" >"$3"; [ $? -eq 3 ]' - "$profild" "$directory" "$work/status"
own_s=$("$profiltool" report --json "$work/all.pb.gz" | sed -n 's/.*"own_s": \([0-9.]*\).*/\1/p')
check "the windows have its own CPU time" json "abs(j['cpu_nanoseconds_total'] / 1e9 - $own_s) < 0.001" "$work/status"
check "--status --json: samples" json \
	"j['samples_total'] == $("$profiltool" report --json "$work/all.pb.gz" | sed -n 's/^ *"counted": \([0-9]*\).*/\1/p')" \
	"$work/status"
check "windows have the wall time of all threads, which --status adds up" python3 - "$work/status" \
	<("$profiltool" report --json "$work/all.pb.gz" 2>/dev/null) <<'EOF'
import json, sys
status, report = (json.load(open(f)) for f in sys.argv[1:])
wall = report["wall"]
parts = ("on_cpu", "runnable", "blocked", "unknown")
right = all(wall[part + "_ns"] == status["wall_%s_nanoseconds_total" % part] for part in parts) and \
	wall["wall_ns"] == sum(wall[part + "_ns"] for part in parts) and \
	wall["on_cpu_ns"] > 0 and 0 < status["wall_threads"] <= wall["threads"] and \
	wall["throttled_ns"] == sum(g["throttled_ns"] for g in wall["throttled"]) == status["wall_throttled_nanoseconds_total"]
if not right:
	print(wall, status)
sys.exit(not right)
EOF
check "report --by user has the wall time of windows" sh -c \
	'"$1" report --by user "$2" 2>/dev/null | grep -Eq "^samples +% +wall s +on CPU s +runnable s +blocked s .*user"' - \
	"$profiltool" "$work/all.pb.gz"
check "metrics are what node_exporter reads" python3 -c '
import re, sys
lines = open(sys.argv[1]).read().split("\n")
assert lines.pop() == ""
names = []
while lines:
	name, kind = re.fullmatch(r"# HELP (profil_\w+) .+", lines.pop(0)).group(1), lines.pop(0)
	assert re.fullmatch("# TYPE " + name + " (counter|gauge)", kind), kind
	assert (kind.endswith("counter")) == name.endswith("_total"), kind
	values = [line for line in lines[:1000] if re.fullmatch(name + r"(\{[^ ]+\})? \d+", line)]
	assert values and values == lines[:len(values)], name # some have one for each user
	del lines[:len(values)]
	names.append(name)
assert "profil_samples_total" in names' "$work/metrics.prom"
check "metrics: a link there is not followed" grep -qx "root's" "$work/of_root"
check "metrics are for all" test "$(stat -c %a "$work/metrics.prom")" = 644
check "windows are for root" test "$(windows | xargs stat -c %a | sort -u)" = 600

check "--retain-days: old epochs of the DCPI database are dropped, not those of others" test \
	"$(cd "$work/dcpi" && find . -name old | sort | paste -sd' ')" = \
	"./0101010102/another/old ./$recent/$host/old ./notes/$host/old"
check "--retain-days: reported" grep -q "removed 2 epochs from $work/dcpi" "$work/daemon.err"
check "--retain-days: one that cannot be removed" grep -q \
	"cannot remove the old epoch $work/dcpi/0101010103/$host: Directory not empty" "$work/daemon.err"
rm -r "$work/dcpi"/{0101010102,0101010103,"$recent",notes}
dcpi_sum() {
	"$profiltool" report --json "$work/dcpi" 2>/dev/null | sed -n 's/^ *"counted": \([0-9]*\).*/\1/p'
}
all_in_dcpi() {
	[ "$(dcpi_sum)" = "$("$profiltool" report --json "$work/all.pb.gz" | sed -n 's/^ *"counted": \([0-9]*\).*/\1/p')" ] ||
		{ grep -v samples "$work/daemon.err"; false; }
}
check "the DCPI database has the same sum" all_in_dcpi

# --- Services ---

directory=$work/services
# The hierarchy that systemd uses.
hierarchy=$(awk '$3 == "cgroup2" && !two { two = $2 } $3 == "cgroup" && $4 ~ /name=systemd/ { one = $2 }
	END { print one != "" ? one : two }' /proc/self/mounts)
alpha=profil-alpha-$$.service
beta=profil-beta-$$.service
remove_groups() {
	rmdir "$hierarchy/$alpha" "$hierarchy/$beta"
}
# burn_in UNIT NAME SECONDS: runs a program of this name in the service.
burn_in() {
	ln -f "$work/$burns" "$work/$2"
	sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" 1 "$3" stay' - "$hierarchy/$1" "$work/$2" "$3" >"$work/out"
}
# asked COMMAND ARGUMENT...: of the last hour, as JSON.
asked() {
	local command=$1
	shift
	"$profiltool" "$command" --since -1h --json "$@" "$directory" >"$work/asked.json" 2>"$work/err" ||
		{ cat "$work/err"; return 1; }
}
burnt() {
	PROFIL_ARCHIVE=$directory "$profiltool" report --since -1h "$@" 2>"$work/err" | grep -c burn_sixty
}
if [ -n "$hierarchy" ] && mkdir "$hierarchy/$alpha" "$hierarchy/$beta" 2>/dev/null; then
	begin_daemon --window 1
	burn_in "$alpha" a 0.6
	wait_for has_windows 2
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	check "killed in the middle: what was written can be asked" asked report
	begin_daemon --window 1
	burn_in "$alpha" a 0.6
	burn_in "$beta" b 1.2
	end_daemon
	# By name: the image may have that of another test's copy.
	check "a service is asked for" asked report --unit "$alpha" --by comm
	# A program has the name of the one before until its exec, which may be within the service.
	check "a service is asked for: only its samples" json \
		"{'a'} == {r['comm'] for r in j['rows']} & {'a', 'b', 'profild', 'cc'}" "$work/asked.json"
	check "by a pattern" test "$(burnt --unit 'profil-*-'$$.service)" -ge 1
	check "by a program's name" test "$(burnt --comm b --unit "$alpha")" -eq 0
	"$profiltool" report --since -1h --by unit "$directory" >"$work/units" 2>"$work/err"
	check "rows are units" sh -c 'grep -q "$1" "$3" && grep -q "$2" "$3"' - "$alpha" "$beta" "$work/units"
	check "an interval is a file" "$profiltool" snapshot --since -1h -o "$work/ticket.pb.gz" "$directory"
	check "an interval is a file: with its labels" sh -c '"$1" report --unit "$2" "$3" | grep -q burn_sixty' - \
		"$profiltool" "$beta" "$work/ticket.pb.gz"
	remove_groups
else
	skip "services" "no control group can be made here"
fi

# --- By the scheduler's tick ---

directory=$work/tick
begin_daemon --window 1 --event tick
"${nobody[@]}" "$work/$burns" 1 1 >"$work/burns.out"
wait_for has_windows 2
end_daemon
burnt_ns=$(sed -n 's/^cpu_ns //p' "$work/burns.out")
check "the scheduler's tick: all windows are by it" examine "{d['event'] for d in w} == {'tick'}"
check "the scheduler's tick: the windows have a program's CPU time once" examine \
	"takes($burnt_ns, labelled(comm='$burns'))"

# --- Times of ticks ---

# timed FILE: how many of its ticks have a time.
timed() {
	"$profiltool" dump --json "$1" | python3 -S -c '
import json, sys
print(sum(len(s.get("times_ns", [])) for s in json.load(sys.stdin)["stacks"]))'
}
directory=$work/times
start "$work/$burns" 1 1000
begin_daemon --window 1
wait_for has_windows 3
end_daemon
# A tick that comes while a window is being ended may still be in it: it is before the end of the next one.
check "each tick has its time, which is in its window" examine \
	"all(len(s['times_ns']) == s['count'] and all(0 <= t < d['duration_ns'] + n['duration_ns']
		for t in s['times_ns']) for d, n in zip(w, w[1:] + w[:1]) for s in d['stacks'])"
# Of windows beyond --retain-times, four lose their times with each new one; the newest never does.
begin_daemon --window 1 --retain-times 1
has_lost_times() {
	[ "$(timed "$(windows | head -n 1)")" -eq 0 ] && [ "$(timed "$(windows | tail -n 2 | head -n 1)")" -eq 0 ]
}
check "--retain-times: old windows lose them" wait_for has_lost_times
end_daemon
# It may have had no time for a tick.
newest=$(windows | tail -n 1)
check "--retain-times: the newest window has them" test "$(timed "$newest")" -eq "$(dumped counted "$newest")"
check "--retain-times: no tick is lost" examine "all(d['counted'] == sum(s['count'] for s in d['stacks']) for d in w)"
rm -r "$directory"
begin_daemon --window 1 --retain-times 0
wait_for has_windows 1
end_daemon
check "--retain-times 0: no window has them" examine "not any('times_ns' in s for d in w for s in d['stacks'])"
stop "$pid"

# --- Signals, and a second daemon ---

directory=$work/signals
# None of these windows is to end by itself meanwhile, as it does at a multiple of its length.
for length in 3600 3500 3400; do
	[ $((length - $(date +%s) % length)) -lt 300 ] || break
done
# Nor is there a child beside the keeper.
begin_daemon --window "$length" --watch=0
check "a second daemon for the directory" exits 1 "$profild" --continuous --directory "$directory"
check "a second daemon: which one records" says "$daemon"
kill -USR1 "$daemon"
check "SIGUSR1 writes a window" wait_for has_windows 1
keeper() {
	pgrep -P "$daemon" -x profild-keeper
}
first=$(keeper)
kill -HUP "$daemon"
check "SIGHUP writes a window" wait_for has_windows 2
check "SIGHUP: the keeper is another one" wait_for sh -c 'n=$(pgrep -P "$1" -x profild-keeper) && [ "$n" != "$2" ]' - "$daemon" "$first"
kill -KILL "$(keeper)"
check "the keeper is killed: said" logged "starts again with the next window"
kill -USR1 "$daemon"
check "the keeper is killed: the recording goes on" wait_for has_windows 3
check "the keeper is killed: there is another" wait_for keeper
powerless() {
	grep -q '^CapPrm:[[:blank:]]*0*$' "/proc/$(keeper)/status"
}
check "the keeper has no capabilities" wait_for powerless
# used: the CPU time of the daemon, its children and theirs, which read files, as /proc has it, in clock ticks.
used() {
	local child
	{
		echo "$daemon"
		for child in $(pgrep -P "$daemon"); do
			echo "$child"
			pgrep -P "$child"
		done
	} | sed 's,.*,/proc/&/stat,' | xargs cat | sed 's/.*) //' | awk '{ sum += $12 + $13 + $14 + $15 } END { print sum }'
}
# Between two looks at /proc, the window is cut. Each of the four numbers of each there is less than a tick too small.
before=$(used)
kill -USR1 "$daemon"
wait_for has_windows 4
after=$(used)
hz=$(getconf CLK_TCK)
# Of the files: windows this short may be named by a second that is yet to come, until when the archive is not read.
windows | xargs "$profiltool" report --json >"$work/cost" 2>"$work/err"
check "the windows have the CPU time of all its processes" json \
	"$before <= j['cost']['own_s'] * $hz + 1 and j['cost']['own_s'] * $hz <= $after + 25" "$work/cost"
cost_adds_up() {
	windows | xargs "$profiltool" report -v 2>&1 >/dev/null | python3 -c '
import re, sys
ticks, own, whole = map(float, re.search(r"([\d.]+) % of the target.s CPU; with the recorder.s own ([\d.]+) s ([\d.]+) %",
	sys.stdin.read()).groups())
sys.exit(not (own > 0 and whole > ticks))'
}
check "the summary has it apart, and in all" cost_adds_up
check "it runs" exits 0 "$profild" --status --directory "$directory"
check "it is seen to run" sh -c '"$1" --status --directory "$2" | grep -q "records (PID $3)"' - \
	"$profild" "$directory" "$daemon"
end_daemon
check "SIGTERM writes the rest" test "$(windows | wc -l)" -eq 5

# --- Changes since deploys ---

# An archive of 80 minutes, in whose middle a service was deployed that costs more since.
directory=$work/watched
DEPLOYS_HOST=$host DEPLOYS_START=$(($(date +%s) / 300 * 300 - 4800)) python3 "$top/tests/deploys.py" "$directory" 1 1.334 \
	web.service:0.666:slower=f3,5
# What looks for changes is nicer by 19: on a busy machine, it would take minutes.
favour=(nice -n -19)
# looks_again: the next look is due at once.
looks_again() {
	sed -i 's/^looked .*/looked 1/' "$directory/$host/.changes"
}
has_looked() {
	grep -q '^profil_change_looks_total [1-9]' "$work/watched.prom"
}
changes_found() {
	find "$directory/$host" -name '*-change-*' | wc -l
}
worse='web.service: worse since .* UTC (a new build of web): the same work takes .* % more CPU time, above all f3 in web'
watching=(--window 1 --watch=10m --metrics "$work/watched.prom")
# Lines that are none of its own, as another user's might be who owns the directory.
printf 'looked 1\n\n1 2 worse\n1 2 3 4 5 6\n\377\0\n99999999999999999999999 1 a b c\n' >"$directory/$host/.changes"
begin_daemon "${watching[@]}"
check "a service that costs more since a deploy is logged" logged "$worse"
check "and counted" wait_for grep -qxF 'profil_changes_total{unit="web.service",direction="worse"} 1' "$work/watched.prom"
check "and kept as two files" test "$(changes_found)" -eq 2
check "for root alone" test "$(find "$directory/$host" -name '*-change-*' -perm 600 | wc -l)" -eq 2
draws() {
	local command
	command=$(sed -n 's/^profild: web.service: worse.*; profiltool //p' "$work/daemon.err")
	cd "$work" && eval "\"$profiltool\" $command" >"$work/out" 2>&1 && grep -q f3 "$work/change.svg"
}
check "the logged command draws the flame graph of the difference" draws
check "readers of the archive do not add the files" sh -c \
	'"$1" report --json --unit web.service "$2" >"$3" 2>/dev/null && "$1" report --json "$4" >"$5" 2>/dev/null' - \
	"$profiltool" "$directory" "$work/of_windows" "$(find "$directory/$host" -name '*-change-after*')" "$work/of_change"
check "they have one service, and one side" python3 -c 'import json, sys
windows, change = (json.load(open(f)) for f in sys.argv[1:])
sys.exit(not 0.4 < change["samples"] / windows["samples"] < 0.6)' "$work/of_windows" "$work/of_change"
end_daemon
check "--status says so" sh -c '"$1" --status --directory "$2" | grep -q "^changes  *1 worse, 0 better, in 1 looks; 0 failed"' - \
	"$profild" "$directory"
looks_again
rm "$work/watched.prom"
begin_daemon "${watching[@]}"
wait_for has_looked
check "another profild does not report it again" sh -c '! grep -q worse "$1" && grep -qx "profil_changes_worse_total 0" "$2"' - \
	"$work/daemon.err" "$work/watched.prom"
end_daemon
# Two services whose names are shown alike, of a deploy whose files have no room for their names.
directory=$work/alike
begin=$(($(date +%s) / 300 * 300 - 4800))
DEPLOYS_HOST=$host DEPLOYS_START=$begin DEPLOYS_SERVICES='{"a\u0001.service": 0.9, "a\\x01.service": 0.9}' \
	python3 "$top/tests/deploys.py" "$directory" 1 1.334 $'a\x01.service:0.666:slower=f3,5' 'a\x01.service:0.666:slower=f3,5'
for ((second = begin + 2400; second <= begin + 2461; second++)); do
	touch "$(date -u -d "@$second" "+$directory/$host/%F/%H%M%S-change-before.pb.gz")"
done
echo "looked 1" >"$directory/$host/.changes"
begin_daemon --window 1 --watch=10m --metrics "$work/alike.prom"
check "services whose names are shown alike are counted" wait_for grep -qx "profil_changes_worse_total 2" "$work/alike.prom"
end_daemon
check "by one label" grep -qxF 'profil_changes_total{unit="a\\x01.service",direction="worse"} 2' "$work/alike.prom"
check "as no two metrics may be the same" test -z "$(grep -v '^#' "$work/alike.prom" | sed 's/ [0-9]*$//' | sort | uniq -d)"
prints() {
	local command
	command=$(grep -F 'a\\x01' "$work/daemon.err" | sed -n 's/^profild: .*; profiltool //p')
	eval "\"$profiltool\" $command" >"$work/out" 2>&1
	grep -qF 'a\x01.service on host ' "$work/out"
}
check "the logged command prints the change, though the name has what patterns have" prints
# A user's services, of which there may be any number, and one of the system's.
directory=$work/users
deploys=() services=
for name in user-1000.slice/{a,b,c,d,e,f,g,h,i,j,k}.service web.service; do
	deploys+=("$name:0.666:slower=f3,5")
	services+="${services:+, }\"$name\": 0.9"
done
mkdir -p "$directory.user-1000.slice"
DEPLOYS_HOST=$host DEPLOYS_START=$(($(date +%s) / 300 * 300 - 4800)) DEPLOYS_SERVICES="{$services}" \
	python3 "$top/tests/deploys.py" "$directory" 1 1.334 "${deploys[@]}"
mkdir -p "$directory/$host"
echo "looked 1" >"$directory/$host/.changes"
begin_daemon --window 1 --watch=10m
check "a user's services do not take the files of the system's" logged "web.service: worse .* profiltool flamegraph --diff"
end_daemon
directory=$work/watched
# A program that is in a package, as dpkg has it.
if [ -x /usr/bin/dpkg-query ] && [ -x /usr/bin/apt ]; then
	mkdir -p "$work/dpkg/info" "$work/dpkg/updates"
	echo "$work/$burns" >"$work/dpkg/info/shop.list"
	printf 'Package: shop\nStatus: install ok installed\nArchitecture: %s\nMaintainer: none\nVersion: 1:2.0-1\nDescription: none\n' \
		"$(dpkg --print-architecture)" >"$work/dpkg/status"
	"$work/$burns" 1 0 lazy >/dev/null &
	shop=$!
	note_started "$shop"
	directory=$work/packages
	DPKG_ADMINDIR=$work/dpkg begin_daemon --window 1 --watch=1s
	check "packages of images are noted, with their versions" wait_for grep -qxE \
		"$(readelf -n "$work/$burns" | sed -n 's/.*Build ID: //p') shop 1:2.0-1" "$directory/$host/.packages"
	end_daemon
	kill "$shop"
	directory=$work/watched
else
	skip "packages of images are noted" "this machine has no dpkg-query"
fi
rm -r "$directory/$host/.changes"
mkdir -p "$directory/$host/.changes/full"
begin_daemon --window 1 --watch=1s
check "a look that fails: why is said" logged "cannot write $directory/$host/.changes"
check "and that it has failed" logged "a look for changes has failed"
# One that has ended, but was not waited for yet, is not killed.
kills_look() {
	pkill -KILL -P "$daemon" -x profild-changes
	grep -qF "a look for changes has failed (status 0x9)" "$work/daemon.err"
}
check "a look that is killed is said" wait_for kills_look
written=$(windows | wc -l)
check "the recording goes on" wait_for has_windows $((written + 2))
end_daemon
check "and ends in order" test "$status" -eq 0
begin_daemon --window 1 --watch=0 --retain-bytes 1
no_changes() {
	[ "$(changes_found)" -eq 0 ]
}
check "the files go with what was recorded then" wait_for no_changes
end_daemon
favour=()

# --- A directory that another user owns ---

# Root's files, to which links lead wherever something is written; and directories.
victims=$work/victims
directory=$work/foreign
mkdir "$victims" "$victims"/{day,epoch,metrics,archive}
for name in state pushed metric lock; do
	echo "root's" >"$victims/$name"
done
mkdir -p "$directory/$host" "$work/foreign_dcpi" "$work/foreign_metrics"
chmod 777 "$directory" "$directory/$host" "$work/foreign_dcpi" "$work/foreign_metrics"
chown -R 65534 "$directory" "$work/foreign_dcpi" "$work/foreign_metrics"
"${nobody[@]}" ln -s "$victims/state" "$directory/$host/.state"
"${nobody[@]}" ln -s "$victims/pushed" "$directory/$host/.pushed"
"${nobody[@]}" ln -s "$victims/metric" "$work/foreign_metrics/link.prom"
"${nobody[@]}" truncate -s 1T "$directory/$host/.changes"
"${nobody[@]}" ln -s "$victims/metrics" "$work/foreign_metrics/directory"
"${nobody[@]}" ln -s "$victims/archive" "$work/foreign_dcpi/archive"
# A database's epochs have the names of minutes; a window that fails goes to the next minute's.
for minute in 0 1 2 3; do
	"${nobody[@]}" ln -s "$victims/epoch" "$work/foreign_dcpi/$(date -u -d "$minute minutes" +%y%m%d%H%M)"
done
untouched() {
	[ "$(cat "$victims"/{state,pushed,metric,lock} | sort | uniq -c | tr -d ' \n')" = "4root's" ] &&
		[ -z "$(find "$victims" -mindepth 2)" ] && return
	find "$victims" -ls
	return 1
}
begin_daemon --window 1 --metrics "$work/foreign_metrics/link.prom" --dcpi "$work/foreign_dcpi" \
	--push http://127.0.0.1:9 --push-queue-bytes 1
check "another user's directory: windows are written there" wait_for has_windows 3
check "another user's directory: the state, too" wait_for sh -c \
	'[ ! -L "$1/.state" ] && [ ! -L "$1/.pushed" ] && [ ! -L "$2" ]' - \
	"$directory/$host" "$work/foreign_metrics/link.prom"
check "another user's directory: no link for an epoch is followed" logged "cannot write $work/foreign_dcpi/.*: Not a directory"
check "another user's directory: who sees it" test "$("$profild" --status --directory "$directory" |
	grep -c "records (PID $daemon)")" -eq 1
end_daemon
check "another user's directory: root's files are untouched" untouched
rm -r "$directory/$host"/20*
for day in today tomorrow; do
	"${nobody[@]}" ln -s "$victims/day" "$directory/$host/$(date -u -d "$day" +%F)"
done
begin_daemon --window 1
check "another user's directory: no link for a day is followed" logged "cannot write $directory/$host/.*: Not a directory"
end_daemon
check "another user's directory: a day's link leads nowhere" untouched
rm "$directory/$host/.lock"
ln "$victims/lock" "$directory/$host/.lock"
check "another user's directory: the lock is not a link to a file" exits 1 \
	"$profild" --continuous --directory "$directory"
check "another user's directory: the lock is not a link: named" says ".lock: it is not a file of its own"
check "another user's directory: what the lock leads to is untouched" untouched
check "another user's link to the directory" exits 1 "$profild" --continuous --directory "$work/foreign_dcpi/archive"
check "another user's link to the directory: named" says "cannot make the directory $work/foreign_dcpi/archive"
ln -s "$victims/archive" "$work/own_link"
directory=$work/own_link
begin_daemon --window 1 --metrics "$work/foreign_metrics/directory/x.prom"
check "root's own link to the directory is followed" test -e "$victims/archive/$host/.lock"
check "another user's link to the metrics' directory is not" logged "cannot write $work/foreign_metrics/directory/x.prom: Too many"
end_daemon
check "another user's link to the metrics' directory leads nowhere" test -z "$(ls -A "$victims/metrics")"

# --- kill -9 at any moment ---

directory=$work/killed
readable() {
	local file

	for file in $(windows); do
		"$profiltool" dump "$file" >"$work/out" 2>&1 || { echo "$file"; cat "$work/out"; return 1; }
	done
}
writes() {
	[ -n "$(find "$directory" -name '.[a-z]*' ! -name .lock ! -name .state)" ] || has_windows "$1"
}
# At once, while it writes if that can be seen, and when it has written.
for moment in true writes has_windows true writes has_windows; do
	written=$(windows 2>/dev/null | wc -l)
	begin_daemon --window 1
	kill -USR1 "$daemon"
	wait_for "$moment" $((written + 1))
	stop "$daemon"
done
begin_daemon --window 1
end_daemon
check "kill -9: the next one records" test "$status" -eq 0
check "kill -9: every file can be read" readable
check "kill -9: no temporary file is left" test -z "$(find "$directory" -name '.*' -type f ! -name .lock ! -name .state)"

# --- A clock that is a year ahead, or a machine that was off for a year ---

# placed YEAR: how many windows of that year there are.
placed() {
	find "$directory/$host/$1"-* -name '*.pb.gz' ! -name '*.sum*' | wc -l
}
directory=$work/jumped
year_ago=$(date -u -d '1 year ago' +%Y)
mkdir "$directory"
"$build/tests/unit/archive_make" place "$directory" "$host" "$(date -u -d "$year_ago-03-01" +%s)" 10 3600 "$work/all.pb.gz"
begin_daemon --window 1 --retain-days 30
wait_for has_windows 11
check "a clock far ahead is reported" wait_for logged "what was recorded before ended at $year_ago-03-01 10:00:00 UTC"
end_daemon
check "a clock far ahead removes nothing" test "$(placed "$year_ago")" -eq 10
"$build/tests/unit/archive_make" place "$directory" "$host" "$(($(date +%s) - 7200))" 119 60 "$work/all.pb.gz"
begin_daemon --window 60 --retain-days 30
check "most of the archive is not removed for its age" wait_for logged "10 files, .* are over --retain-days and not removed"
end_daemon
check "most of the archive stays" test "$(placed "$year_ago")" -eq 10
remove_old() {
	sh -c "$(sed -n 's/^profild:  *if it is right: //p' "$work/daemon.err")"
	[ "$(find "$directory/$host" -name "$year_ago-*" | wc -l)" -eq 0 ] && has_windows 119
}
check "the command of the hint removes it" remove_old

# --- A full disk ---

directory=$work/small
mkdir "$directory"
if mount -t tmpfs -o size=64k none "$directory" 2>/dev/null; then
	trap '[ "$BASHPID" = $$ ] && { umount -l "$work/small"; cleanup; }' EXIT
	dd if=/dev/zero of="$directory/rest" bs=1k count=60 2>/dev/null
	begin_daemon --window 1 --keep-free 0
	check "a full disk: said" logged "cannot write .*pb.gz: No space left on device"
	rm "$directory/rest"
	wait_for has_windows 1
	# The disk fills up while it records: the state cannot be replaced, and must not be that of before.
	wait_for test -e "$directory/$host/.state"
	dd if=/dev/zero of="$directory/rest" bs=1k count=64 2>/dev/null
	failures() {
		"$profild" --status --json --directory "$directory" |
			sed -n 's/.*"windows_failed_total": \([0-9]*\).*/\1/p'
	}
	before=$(failures)
	fails_more() {
		[ "$(failures)" -gt "$before" ]
	}
	check "a full disk: the status has the failures while it is full" wait_for fails_more
	check "a full disk: --status prints them" sh -c '"$1" --status --directory "$2" | grep -q "[1-9][0-9]* failed"' - \
		"$profild" "$directory"
	rm "$directory/rest"
	check "a full disk: goes on when there is room" wait_for has_windows 1
	check "a full disk: nothing that cannot be read" readable
	end_daemon
	check "a full disk: what failed is counted" sh -c \
		'"$1" --status --json --directory "$2" | grep -q "\"windows_failed_total\": [1-9]"' - "$profild" "$directory"
else
	skip "a full disk" "nothing can be mounted here"
fi

finish
