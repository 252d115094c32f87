#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs in containers and chroots: files that do not exist outside, or differ from those with the same
# path outside; their debug files; their JIT maps.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

if ! unshare -m -p --fork true 2>/dev/null; then
	skip "programs in containers" "unshare is not permitted"
	finish
fi

# image DIRECTORY: makes a root directory for containers, with the files that the tests need. "env" is a program
# that outside is another; it is stripped, and its debug file lies in the container alone, behind a
# link that leads elsewhere when it is followed from outside. "linked" has no build ID.
image() {
	local id
	mkdir -p "$1"/usr/bin "$1"/usr/lib "$1"/data/debug/.build-id "$1"/tmp "$1"/proc "$1"/old
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread -static -Wl,--build-id \
		"$top/tests/progs/shares.c" -o "$work/full" || return
	id=$(readelf -n "$work/full" | sed -n 's/.*Build ID: //p')
	mkdir -p "$1/data/debug/.build-id/${id:0:2}"
	objcopy --only-keep-debug "$work/full" "$1/data/debug/.build-id/${id:0:2}/${id:2}.debug"
	ln -s /data/debug "$1/usr/lib/debug"
	strip -o "$1/usr/bin/env" "$work/full"
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread -static -Wl,--build-id=none \
		"$top/tests/progs/shares.c" -o "$work/noid"
	mkdir "$1/usr/bin/.debug"
	objcopy --only-keep-debug "$work/noid" "$1/usr/bin/.debug/noid.debug"
	strip -o "$1/usr/bin/linked" "$work/noid"
	objcopy --add-gnu-debuglink="$1/usr/bin/.debug/noid.debug" "$1/usr/bin/linked"
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -static "$top/tests/progs/jitter.c" -o "$1/usr/bin/jitter"
}

# What runs in a new mount namespace: makes a root of its own, of memory, that is seen nowhere else.
cat >"$work/contain" <<'EOF_SH'
#!/bin/sh
set -e
mount --make-rprivate /
mount -t tmpfs none "$1/root"
cp -a "$1/image/." "$1/root"
mount -t proc none "$1/root/proc"
cd "$1/root"
pivot_root . old
shift
exec "$@"
EOF_SH

# contain COMMAND...: runs it as the first process of a container, and waits until it is ready.
# $pid is its process, as it is called outside.
contain() {
	start_ready unshare -m -p --kill-child sh "$work/contain" "$work" "$@"
	outer=$pid
	pid=$(cat "/proc/$outer/task/$outer/children")
	pid=${pid% }
	note_started "$pid"
}

# record NAME OPTION...
record() {
	local name=$1
	shift
	until_used "$pid" 400 "${with[@]}" "$profiltool" record -p "$pid" -F 4999 --json "$@" >"$work/$name.json" \
		2>"$work/err" && return
	cat "$work/err"
	return 1
}

record_all() {
	until_used "$pid" 400 "${with[@]}" "$profiltool" record -a -F 999 --json >"$work/all.json" 2>"$work/err" && return
	cat "$work/err"
	return 1
}

shares='ran("burn_sixty", "burn_thirty")'
mkdir "$work/root"
check "an image for containers" image "$work/image"

# All of it again where a filter hides openat2(2), as systemd's for RestrictSUIDSGID= does.
for without in "" "without openat2: "; do
	with=()
	[ -z "$without" ] || with=("$progs/seccomp" openat2 38)

	contain /usr/bin/env 1
	check "${without}a container: recorded" record own -o "$work/own.pb.gz"
	check "${without}a container: names, from its own debug file" recorded "$shares" "$work/own.json"
	check "${without}a container: paths are its own" recorded '{f["image"] for f in j["functions"]
		if f["name"].startswith("burn")} <= {"env", "/usr/bin/env"}' "$work/own.json"
	check "${without}a container: the path in the file" bash -c \
		"'$profiltool' dump '$work/own.pb.gz' | grep -q ' /usr/bin/env build-id='"
	check "${without}a container: from a root that records all" record_all
	check "${without}a container: names, when all is recorded" recorded '"env" in images("burn_sixty")' \
		"$work/all.json"
	stop "$pid"

	contain /usr/bin/linked 1
	check "${without}without a build ID: recorded" record linked
	check "${without}without a build ID: names by debug link" recorded "$shares" "$work/linked.json"
	stop "$pid"

	# The container ends while it is recorded: its files go with it.
	contain /usr/bin/env 1
	"${pdeathsig[@]}" "${with[@]}" "$profiltool" record -p "$pid" -F 999 -d 1000 --json >"$work/ends.json" 2>"$work/err" &
	recorder=$!
	note_started "$recorder"
	wait_for records "$recorder"
	wait_for_use "$pid" 400
	stop "$pid"
	wait "$recorder"
	check "${without}a container that ends: recorded" test $? -eq 3
	check "${without}a container that ends: names" recorded "$shares" "$work/ends.json"

	# The process has another number inside, and its /tmp is another directory.
	contain /usr/bin/jitter anon 60
	read -r _ one _ <"$work/start.out"
	echo "$one 40 of_the_container" >"/proc/$pid/root/tmp/perf-1.map"
	echo "$one 40 of_somebody_outside" >"/tmp/perf-$pid.map"
	check "${without}code made in a container: recorded" record jit
	rm -f "/tmp/perf-$pid.map"
	check "${without}code made in a container: its own map, by its own number" recorded \
		'ran("of_the_container") and not samples("of_somebody_outside")' "$work/jit.json"
	check "${without}code made in a container: its number here is shown" recorded \
		"images('of_the_container') == {'[jit $pid]'}" "$work/jit.json"
	stop "$pid"

	# A chroot in our own mount namespace; a link on the path leads out of it when taken from outside.
	start_ready chroot "$work/image" /usr/bin/env 1
	check "${without}a chroot: recorded" record chroot
	check "${without}a chroot: names" recorded "$shares" "$work/chroot.json"
	stop "$pid"
done

# profild as its unit runs it: no new privileges, this filter, these capabilities.
contain /usr/bin/jitter anon 60
read -r _ one _ <"$work/start.out"
echo "$one 40 of_the_container" >"/proc/$pid/root/tmp/perf-1.map"
jit=$pid
contain /usr/bin/env 1
burner=$pid
capabilities=-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+checkpoint_restore,+syslog,+sys_admin,+sys_resource,+setpcap
start setpriv --no-new-privs "--bounding-set=$capabilities" "$progs/seccomp" openat2 38 "$build/profild" --continuous \
	--directory "$work/archive" --window 1
has_names() {
	"$profiltool" report --json --by function "$work/archive" >"$work/continuous.json" 2>"$work/err" || return
	recorded "'[jit $jit]' in images('of_the_container') and 'env' in images('burn_sixty')" "$work/continuous.json"
}
check "profild as in its unit: names of JIT code and debug files in containers" wait_for has_names
for process in "$pid" "$jit" "$burner"; do
	stop "$process"
done
# Short processes that end before anyone looks at them, as health checks do: their root directory and their file
# are gone with them. That is their failure, not that of the program, which runs for long then.
gcc -std=gnu11 -D_GNU_SOURCE -O2 -fno-inline -fomit-frame-pointer -pthread -static "$(own_build_id)" \
	"$top/tests/progs/brief.c" -o "$work/image/usr/bin/early"
cat >"$work/entry" <<'EOF_SH'
echo ready
read -r go
for k in 1 2 3; do chroot "$1" /usr/bin/early once 3000; done
echo checked
read -r go
exec chroot "$1" /usr/bin/early once 3000000
EOF_SH

# unseen NAME RECORDER: has the short ones of NAME run while the recorder cannot look.
unseen() {
	kill -STOP "$2"
	send_line "$1" go
	wait_for grep -q checked "$work/$1.out"
}

share_buffers
begin early sh "$work/entry" "$work/image"
record_begin early record -g -p "$pid" -F 999 --json
unseen early "$recorder"
kill -CONT "$recorder"
wait_for records "$recorder"
send_line early go
wait "$recorder"
check "a file that could not be opened is opened through the next process" recorded \
	'(mostly("burn_brief") and mostly("main") and accounted and
	  mostly(j["stacks"]["complete"], of=j["stacks"]["user"]))' "$work/early.json"

begin later sh "$work/entry" "$work/image"
"${pdeathsig[@]}" "$build/profild" --continuous --verbose --directory "$work/early" --window 1 --frequency 999 \
	2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
wait_for grep -qE "records (cpu-clock|tick) into" "$work/daemon.err"
unseen later "$daemon"
kill -CONT "$daemon"
wait_for records "$daemon"
send_line later go
wait "$pid"
kill -TERM "$daemon"
wait "$daemon"
find "$work/early" -name '*.pb.gz' ! -name '.*' -exec "$profiltool" merge -o "$work/windows.pb.gz" {} + 2>"$work/err"
"$profiltool" report --json "$work/windows.pb.gz" >"$work/windows.json" 2>"$work/err"
check "profild: a file that could not be opened is opened through the next process" recorded "(lambda early:
	sum(f['self'] for f in early) > 100 and
	all(mostly(sum(f['total'] for f in early if f['name'] == name), of=sum(f['self'] for f in early))
	    for name in ('burn_brief', 'main')))([f for f in j['functions'] if f['image'] == '/usr/bin/early'])" \
	"$work/windows.json"

begin gone sh "$work/entry" "$work/image"
record_begin gone record -g -p "$pid" -F 9999 --json
unseen gone "$recorder"
stop "$pid"
kill -CONT "$recorder"
wait "$recorder"
free_buffers
cp "$work/gone.err" "$work/err"
check "processes that have all ended: what was tried is reported" says \
	"early: its call frame information is not used: its process ended before its file could be opened, and its path leads to none or to another"
check "processes that have all ended: their file is not called bad" bash -c \
	'! grep -E "replaced|build it with" "$1"' - "$work/err"

finish
