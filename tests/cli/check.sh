#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profiltool check reports what is missing, why, and how to fix it, in agreement with record.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# A copy that the user nobody may read and run, wherever the tests are.
tool=$work/profiltool
cp "$profiltool" "$tool"
chmod 755 "$work" "$tool"
start sleep 1000
sleeper=$pid
wait_for grep -q nanosleep "/proc/$sleeper/wchan"
# No profild but those that are started here.
export PROFIL_SOCKET=$work/profild.socket

# line STATE NAME TEXT: whether the check that `exits` ran has such a line.
line() {
	grep -q "^$1  *$2  .*$3" "$work/out" && return
	echo "no line: $1 $2 $3"
	cat "$work/out"
	return 1
}

# hints NAME TEXT: succeeds if the line after that of NAME has this hint.
hints() {
	grep -A 1 "^[a-z]*  *$1  " "$work/out" | grep -F -- '->' | grep -qF -- "$2" && return
	cat "$work/out"
	return 1
}

# better NAME TEXT: succeeds if the lines that belong to that of NAME say that this would be better with it.
better() {
	awk -v name="$1" '
		/^[a-z]/ { state = $1; sub(/^[a-z]+ +/, ""); on = index($0, name "  ") == 1 }
		on && /^ +\+  better: /' "$work/out" | grep -F -- "$2" && return
	cat "$work/out"
	return 1
}

# not_better NAME: succeeds if they say of nothing that it would be better.
not_better() {
	! better "$1" ""
}

# like_record WITH...: whether check and record end with the same status, run so.
like_record() {
	local code

	code=$(status "$@" "$tool" record -q -F 999 -- "$progs/shares" 1 0.1)
	exits "$code" "$@" "$tool" check
}

# says_refusal CALL: succeeds if record names the filter that refuses CALL.
says_refusal() {
	status "$progs/seccomp" "$1" 1 "$tool" -p "$sleeper" -d 0.1 >/dev/null
	says "a seccomp filter refuses $1(2)"
}

# --- All is well ---

check "as root: succeeds" exits 0 "$tool" check
check "as root: the recording" line ok recording "works: [1-9][0-9]* ticks"
check "as root: the scheduler's tick" line ok tick "-e tick works: [1-9][0-9]* Hz"
check "as root: delay" line ok delay "threads wait for their CPU"
check "as root: the account of wall time" line ok "wall time" "record --wall works"
check "as root: what threads wait for" line ok waits "for what threads are blocked"
check "as root: nothing is missing" test "$(grep -c '^no' "$work/out")" -eq 0
check "as root: nothing is said besides" test ! -s "$work/err"
check "each line has a state, and the last the answer" test "$(sed '$d' "$work/out" |
	grep -cvE '^(ok|limited|no|absent) |^ +(->|\+ ) ')" -eq 0
check "as root: the answer" grep -q '^Recording works: profiltool -p PID' <(tail -n 1 "$work/out")
check "record agrees" like_record env
check "--json: succeeds" exits 0 "$tool" check --json
check "--json: a list with these keys" json \
	'all(list(q) == ["requirement", "state", "cause", "hint", "better"] for q in j) and len(j) > 12' "$work/out"
check "--json: says what the lines say" json \
	'[q["state"] for q in j if q["requirement"] == "recording"] == ["ok"]' "$work/out"
check "an argument" exits 2 "$tool" check it
check "no process number" exits 2 "$tool" check -p x

# --- Privileges ---

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if "${nobody[@]}" "$tool" --version >/dev/null 2>&1; then
	check "as nobody: not permitted" exits 5 "${nobody[@]}" "$tool" check
	check "as nobody: the last line is the answer" grep -q '^Recording does not work; no: .*eBPF.*; limited: ' <(tail -n 1 "$work/out")
	check "as nobody: eBPF" line no eBPF "without cap_bpf and cap_perfmon"
	check "as nobody: perf events" line no "perf events" "without cap_perfmon"
	check "as nobody: the command that fixes it" hints eBPF "setcap cap_bpf,cap_perfmon"
	check "as nobody: names the file" hints eBPF "(p=$tool;"
	check "as nobody: the recording" line no recording "Operation not permitted"
	check "as nobody: the same hint is printed once" hints "perf events" "the same as for eBPF"
	check "as nobody: other users" line limited "other users" cap_sys_ptrace
	check "as nobody: deleted files" line limited "deleted files" cap_checkpoint_restore
	check "as nobody: private files" line limited "private files" "this user may not read"
	check "as nobody: only a group gets the program, before the capabilities" hints eBPF \
		"(p=$tool; groupadd -f profil && chgrp profil \$p && chmod 750 \$p && setcap "
	check "as nobody: no hint lets all users read every file" test "$(grep -c cap_dac_read_search "$work/out")" -eq 0
	check "as nobody: record agrees" like_record "${nobody[@]}"

	check "refused: record says what is missing" exits 5 "${nobody[@]}" "$tool" -p "$sleeper" -d 0.1
	check "refused: eBPF" says "eBPF: programs cannot be loaded without cap_bpf and cap_perfmon"
	check "refused: perf events" says "perf events: cannot be opened without cap_perfmon"
	check "refused: where more is reported" says "profiltool check"
	check "refused: no wall of text" test "$(wc -l <"$work/err")" -le 6

	# shellcheck disable=SC2054 # commas are setpriv's
	some=("${nobody[@]}" --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon)
	check "two capabilities are enough" exits 0 "${some[@]}" "$tool" check
	check "two capabilities: the kernel's names" line limited "kernel names" cap_syslog
	check "two capabilities: record agrees" like_record "${some[@]}"
	check "another user's process" exits 0 "${some[@]}" "$tool" check -p "$sleeper"
	check "another user's process: no names" line limited program "cannot be read"
	check "another user's process: the hint" hints program "the same as for"
	check "one capability is not" exits 5 "${nobody[@]}" --inh-caps=+bpf --ambient-caps=+bpf "$tool" check
	check "one capability: the other is named" line no eBPF "without cap_perfmon"
	check "the other is not" exits 5 "${nobody[@]}" --inh-caps=+perfmon --ambient-caps=+perfmon "$tool" check
	check "the other: the one is named" line no eBPF "without cap_bpf"
	check "the other: perf events can be had" line ok "perf events" ""
else
	skip "as nobody" "setpriv cannot become nobody here"
fi

check "a bounding set without it" exits 5 setpriv --bounding-set=-perfmon,-sys_admin "$tool" check
check "a bounding set without it: outside of the container" hints eBPF "cap-add PERFMON"
check "a bounding set without it: record agrees" like_record setpriv --bounding-set=-perfmon,-sys_admin
if unshare -Ur true 2>/dev/null; then
	check "root of a user namespace" exits 5 unshare -Ur "$tool" check
	check "root of a user namespace: says why" line no eBPF "of a user namespace do not count"
	check "root of a user namespace: the hint" hints eBPF "outside of the container"
	check "root of a user namespace: record agrees" like_record unshare -Ur
else
	skip "root of a user namespace" "unshare -Ur does not work here"
fi

# --- Filters of system calls ---

for call in bpf perf_event_open; do
	name=eBPF
	[ $call = bpf ] || name="perf events"
	check "$call is refused" exits 5 "$progs/seccomp" $call 1 "$tool" check
	check "$call is refused: a filter" line no "$name" "a seccomp filter refuses $call(2)"
	check "$call is refused: the hint" hints "$name" "seccomp=unconfined"
	check "$call is refused: record agrees" like_record "$progs/seccomp" $call 1
	check "$call is refused: record reports the filter" says_refusal "$call"
	check "$call does not exist" exits 6 "$progs/seccomp" $call 38 "$tool" check
	check "$call does not exist: a filter hides it" line no "$name" "hides $call(2)"
	check "$call does not exist: record agrees" like_record "$progs/seccomp" $call 38
done

if [ -e /sys/devices/system/cpu/cpu1 ]; then
	check "events of some CPUs are refused" exits 5 "$progs/seccomp" perf_odd_cpu 13 "$tool" -a -d 0.1
	check "events of some CPUs are refused: says of which" says "on CPU 1: Permission denied"
else
	skip "events of some CPUs are refused" "there is one CPU alone"
fi

# --- Another machine: files of ours stand in the place of the kernel's, where only the tool sees it.

# elsewhere SETUP: runs `check` where the shell command SETUP has changed the files.
cat >"$work/elsewhere" <<'EOF'
set -e
eval "$1"
shift
exec "$@"
EOF
# shellcheck disable=SC2016 # the inner shell expands it
sysctl='put() { echo "$2" >"$TMPDIR/sysctl.$1"; mount --bind "$TMPDIR/sysctl.$1" "/proc/sys/kernel/$1"; }'
elsewhere() {
	local setup=$1
	shift
	unshare -m bash "$work/elsewhere" "$sysctl; $setup" "$@"
}
if unshare -m true 2>/dev/null; then
	check "a low frequency" exits 0 elsewhere "put perf_event_max_sample_rate 50" "$tool" check
	check "a low frequency: limited" line limited frequency "up to 50 Hz"
	check "a low frequency: the sysctl" hints frequency "sysctl -w kernel.perf_event_max_sample_rate="
	check "shallow stacks" exits 0 elsewhere "put perf_event_max_stack 16" "$tool" check
	check "shallow stacks: limited" line limited "call stacks" "16 frames"
	check "shallow stacks: the sysctl" hints "call stacks" "sysctl -w kernel.perf_event_max_stack=127"
	# shellcheck disable=SC2016
	check "hidden addresses" exits 0 elsewhere 'put kptr_restrict 2
		echo "0000000000000000 T _text" >"$TMPDIR/kallsyms"
		mount --bind "$TMPDIR/kallsyms" /proc/kallsyms' "$tool" check
	check "hidden addresses: limited" line limited "kernel names" "kptr_restrict is 2"
	check "hidden addresses: the sysctl" hints "kernel names" "sysctl -w kernel.kptr_restrict=1"
	check "no BTF" exits 6 elsewhere "mount -t tmpfs none /sys/kernel/btf" "$tool" check
	check "no BTF: reported" line no BTF "there is no /sys/kernel/btf/vmlinux"
	# lacks_btf COMMAND...: says so, and how to get it, and nothing about what else the kernel might lack.
	lacks_btf() {
		exits 6 elsewhere "mount -t tmpfs none /sys/kernel/btf" "$@" &&
			says "this kernel has no BTF: there is no /sys/kernel/btf/vmlinux" && says "CONFIG_DEBUG_INFO_BTF=y" &&
			! grep -F "without -g" "$work/err"
	}
	check "no BTF: record -g" lacks_btf "$tool" record -g -- true
	check "no BTF: the histogram of profil(2)" lacks_btf "$tool" record --scale 0x10000 -p $$
	check "no BTF: profild --continuous" lacks_btf "$build/profild" --continuous --directory "$work/archive"
	# shellcheck disable=SC2016
	check "lockdown" status elsewhere 'mount -t tmpfs none /sys/kernel/security
		echo "none integrity [confidentiality]" >/sys/kernel/security/lockdown' "$tool" check
	check "lockdown: reported" line no lockdown "confidentiality"
	check "lockdown: the hint" hints lockdown "lockdown=integrity"
	check "a process that is hidden" exits 1 elsewhere \
		"mount -t proc -o hidepid=2 none /proc" "${some[@]}" "$tool" check -p "$sleeper"
	check "a process that is hidden: reported" line no process "is hidden in /proc"
else
	skip "another machine" "unshare -m does not work here"
fi
# shellcheck disable=SC2016
check "few files" exits 0 bash -c 'ulimit -n 512 && exec "$0" check' "$tool"
check "few files: limited" line limited "open files" "up to 512"

# --- The kernel module: what there is of it on another machine ---

# A /dev without it, no module that is loaded or installed, and a kernel that takes modules.
cat >"$work/plain" <<'EOF'
mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3
mount -t tmpfs none /sys/module
mkdir -p "$TMPDIR/sysctls" "$TMPDIR/lib/modules/$(uname -r)"
cp -r /proc/sys/kernel/. "$TMPDIR/sysctls" 2>/dev/null || true
echo 0 >"$TMPDIR/sysctls/modules_disabled"
mount --bind "$TMPDIR/sysctls" /proc/sys/kernel
mount -t tmpfs none /sys/kernel/security
: >"$TMPDIR/modules.dep"
ln -sf "$TMPDIR/modules.dep" "$TMPDIR/lib/modules/$(uname -r)"
mount -t overlay -o "lowerdir=$TMPDIR/lib:/lib" none /lib
installed() { echo "updates/dkms/profil.ko.xz: kernel/x.ko" >"$TMPDIR/modules.dep"; }
EOF

# module STATE TEXT SETUP [RUNNER...]: whether that is said of it, run so.
module() {
	local state=$1 text=$2 setup=$3
	shift 3
	status elsewhere ". $work/plain; $setup" "$@" "$tool" check >/dev/null
	line "$state" /dev/profil "$text"
}

# shellcheck disable=SC2016 # the inner shell expands it
if unshare -m true 2>/dev/null; then
	check "no module: absent" module absent "is not installed: optional" true
	check "no module: better with it" better /dev/profil "exact at any moment"
	check "no module: a signed one is wanted" module absent "only if it is signed" \
		'echo "none [integrity] confidentiality" >/sys/kernel/security/lockdown'
	check "no module: the kernel's own rule" module absent "only if it is signed" \
		'mkdir -p /sys/module/module/parameters; echo Y >/sys/module/module/parameters/sig_enforce'
	check "a module that is not loaded: absent" module absent "installed, but not loaded" installed
	check "a module that is not loaded: it need not be signed" test "$(grep -c signed "$work/out")" -eq 0
	check "a module that is not loaded: the hint" hints /dev/profil "modprobe profil"
	check "a module of another name: absent" module absent "is not installed" \
		'echo "extra/noprofil.ko: extra/profil.ko" >"$TMPDIR/modules.dep"'
	check "no module can be loaded any more" module absent "installed, but not loaded" \
		'installed; echo 1 >/proc/sys/kernel/modules_disabled'
	check "no module can be loaded any more: why" hints /dev/profil "kernel.modules_disabled is 1"
	check "a kernel without modules" module absent "built without modules" \
		'rm /proc/sys/kernel/modules_disabled'
	check "a kernel without modules: nothing of what cannot be had" not_better /dev/profil
	check "a container without it: absent" module absent "not in this /dev" 'mkdir /sys/module/profil'
	check "a container without it: the hint" hints /dev/profil "--device /dev/profil"
	check "something else by its name" module limited "does not answer as the kernel module does" \
		': >/dev/profil'
	check "something else by its name: the hint" hints /dev/profil "rm /dev/profil"
	check "a device without its driver" module limited "cannot be opened: No such device" \
		'mknod /dev/profil c 10 250'
	check "a device without its driver: the hint" hints /dev/profil "modprobe profil"
	if "${nobody[@]}" "$tool" --version >/dev/null 2>&1; then
		check "a device that is root's" module limited "Permission denied: its mode is 0600" \
			'install -m 600 /dev/null /dev/profil' "${nobody[@]}"
		check "a device that is root's: the hint" hints /dev/profil "chmod 0666 /dev/profil"
		check "a device of a group" module limited "mode is 0660, its group daemon" \
			'install -m 660 -g daemon /dev/null /dev/profil' "${nobody[@]}"
		check "a device of a group: the hint" hints /dev/profil "usermod -aG daemon"
	else
		skip "a device that is not everybody's" "setpriv cannot become nobody here"
	fi
else
	skip "the kernel module" "unshare -m does not work here"
fi

# --- One process ---

check "-p: succeeds" exits 0 "$tool" check -p "$sleeper"
check "-p: which" line ok process "$sleeper (sleep)"
check "-p: its program" line ok program "/sleep"
true &
gone=$!
wait "$gone"
check "-p: there is none" exits 1 "$tool" check -p "$gone"
check "-p: there is none: reported" line no process "there is no such process"
kernel_thread=$(kernel_thread)
if [ -n "$kernel_thread" ]; then
	check "-p: a kernel thread" exits 1 "$tool" check -p "$kernel_thread"
	check "-p: a kernel thread: reported" line no process "is a kernel thread"
else
	skip "-p: a kernel thread" "none is to be seen here"
fi
if unshare -fp true 2>/dev/null; then
	start unshare -fp --kill-child sleep 1000
	wait_for pgrep -P "$pid" sleep
	inner=$(pgrep -P "$pid" sleep)
	check "-p: in a container" exits 0 "$tool" check -p "$inner"
	check "-p: in a container: its number there" line ok process "where it is 1"
else
	skip "-p: in a container" "unshare -p does not work here"
fi

# --- Others ---

check "no objdump" exits 0 env PATH=/nowhere "$tool" check
check "no objdump: limited" line limited objdump "annotate"
check "no profild: absent" line absent profild "is not running"
check "no profild: how to start it" hints profild "systemctl enable --now profild.socket"
served=
[ -e /dev/profil ] && served=yes # by the module: profild would change nothing
if [ -z "$served" ]; then
	check "no profild: as root, programs load eBPF" line ok "profil(2)" "each loads an eBPF program"
	check "no profild: better with it" better profild "clocks in common"
	"${nobody[@]}" "$tool" check >"$work/out" 2>"$work/err"
	check "no profild: as nobody, the C library counts" line limited "profil(2)" "the C library counts, at 100 Hz"
	check "no profild: as nobody, better with it" better profild "in all threads and without a signal"
	"${nobody[@]}" "$tool" check --json >"$work/out"
	check "--json: better with profild" json \
		'["in all threads" in q["better"] for q in j if q["requirement"] == "profild"] == [True]' "$work/out"
	check "--json: nothing where nothing is missing" json \
		'all(not q["better"] for q in j if q["state"] == "ok")' "$work/out"
fi

# begin_profild [COMMAND...]: starts it, run by that.
begin_profild() {
	rm -f "$PROFIL_SOCKET"*
	"${pdeathsig[@]}" "$@" "$build/profild" --verbose --socket "$PROFIL_SOCKET" >"$work/profild.log" 2>&1 &
	profild=$!
	note_started $profild
	wait_for listens "$PROFIL_SOCKET"
}

begin_profild
check "profild: succeeds" exits 0 "$tool" check
check "profild: answers" line ok profild "answers at $PROFIL_SOCKET"
check "profild: it has counted this process, by its own clock" grep "is counted: 100 Hz" "$work/profild.log"
check "profild: and does so no more" wait_for grep "is no longer counted" "$work/profild.log"
[ -n "$served" ] || check "profild: counts" line ok "profil(2)" "profild counts$"
check "profild: nothing is better with it" not_better profild
check "profild: as nobody" exits 5 "${nobody[@]}" "$tool" check
check "profild: as nobody: answers" line ok profild "answers at $PROFIL_SOCKET"
stop "$profild"
check "profild has died" exits 0 "$tool" check
check "profild has died: limited" line limited profild "Connection refused"
begin_profild strace -D -f -qq -o /dev/null -e trace=perf_event_open -e inject=perf_event_open:error=EACCES
if kill -0 "$profild" 2>/dev/null && [ -S "$PROFIL_SOCKET" ]; then
	check "profild without perf events: succeeds" exits 0 "$tool" check
	check "profild without perf events: limited" line limited profild \
		"by the scheduler's tick: at [1-9][0-9]* Hz, whatever rate"
	check "profild without perf events: why" hints profild "journalctl -u profild"
	[ -n "$served" ] || check "profild without perf events: the rate would be better" \
		better profild "the rate that a program requests"
	[ -n "$served" ] || check "profild without perf events: counts so" line limited "profil(2)" "scheduler's tick"
	check "profild without perf events, as in Debian" exits 0 elsewhere "put perf_event_paranoid 3" "$tool" check
	check "profild without perf events, as in Debian: the sysctl" hints profild \
		"sysctl -w kernel.perf_event_paranoid=2 && systemctl restart profild"
else
	skip "profild without perf events" "strace cannot be used here"
fi
stop "$profild"
check "check without DEBUGINFOD_URLS" exits 0 env -u DEBUGINFOD_URLS "$tool" check
check "check names the command that sets DEBUGINFOD_URLS" hints debuginfod "export DEBUGINFOD_URLS=https://"
check "debuginfod" exits 0 env DEBUGINFOD_URLS=$'http://\e[31mhost' "$tool" check
check "debuginfod: nothing of it acts on the terminal" test "$(grep -c $'\e' "$work/out")" -eq 0

finish
