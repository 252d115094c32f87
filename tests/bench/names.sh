#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# names.sh [MEASURE...]: the time to find the names of a program with large DWARF, compared with perf report
# on a recording of the same: function, line, named; all by default. The program is Debian's osdmaptool with
# the debug packages of Ceph: 150 MB of .debug_info, compressed to 70.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# perf takes minutes for source lines; it is not waited for longer than this.
patience=${PROFIL_BENCH_PATIENCE:-300}

# What is missing to measure it all, if something is.
missing() {
	local package
	command -v perf >/dev/null || echo "perf (linux-perf)"
	command -v osdmaptool >/dev/null || echo ceph-base
	for package in librados2-dbg ceph-common-dbg ceph-base-dbg; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' $package 2>/dev/null)" = installed ] ||
			echo $package
	done
}

# used COMMAND...: "SECONDS MIB" of a command and all that it starts: CPU time, and the most memory at
# one time. ">SECONDS MIB" when it is ended for want of patience.
used() {
	python3 - "$patience" "$@" <<-'END'
		import os, resource, signal, subprocess, sys, time
		def status(pid):
		    try:
		        with open("/proc/%d/stat" % pid) as file:
		            words = file.read().rpartition(") ")[2].split()
		        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
		            parts = [status(int(child)) for child in file.read().split()]
		    except OSError:
		        return 0, 0
		    parts.append((sum(map(int, words[11:15])), int(words[21])))
		    return tuple(map(sum, zip(*parts)))
		patience, command = float(sys.argv[1]), sys.argv[2:]
		null, begin, most = open("/dev/null", "w"), time.monotonic(), 0
		child = subprocess.Popen(command, stdout=null, stderr=null, start_new_session=True)
		while child.poll() is None:
		    ticks, pages = status(child.pid)
		    most = max(most, pages * resource.getpagesize() / 2**20)
		    if time.monotonic() - begin > patience:
		        os.killpg(child.pid, signal.SIGKILL)
		        print(">%.0f %.1f" % (ticks / os.sysconf("SC_CLK_TCK"), most))
		        sys.exit()
		    time.sleep(0.002)
		if child.returncode not in (0, 3):
		    sys.exit(1)
		total = resource.getrusage(resource.RUSAGE_CHILDREN)
		most = max(most, total.ru_maxrss / 1024)
		print("%.3f %.1f" % (total.ru_utime + total.ru_stime, most))
	END
}

# best COMMAND...: the least of three runs.
best() {
	for _ in 1 2 3; do
		used "$@" || return
	done | sort -g | head -n 1
}


prepare() {
	osdmaptool "$work/map" --createsimple 60 --clobber --with-default-pool --pg-bits 13 &&
		perf record -N -F 2000 -o "$work/perf.data" osdmaptool "$work/map" --mark-up-in \
			--test-map-pgs &&
		"$profiltool" record -F 2000 -o "$work/bare.prof" -- osdmaptool "$work/map" \
			--mark-up-in --test-map-pgs &&
		"$profiltool" convert --inline "$work/bare.prof" "$work/named.pb.gz"
}

# compare NAME TIMES OURS THEIRS: a row each for time and memory; "SECONDS MIB" of both. We are to be
# TIMES as fast. With a fifth argument, memory is to be at most that part of theirs.
compare() {
	local name=$1 times=$2 seconds mib their_seconds their_mib
	read -r seconds mib <<<"$3"
	read -r their_seconds their_mib <<<"$4"
	row "$name" "$(printf '%.3f s, perf %s s: %.0f times as fast' "$seconds" "$their_seconds" \
		"$(calculate "${their_seconds#>} / $seconds")")" ">= $times times" \
		"$(awk -v a="${their_seconds#>}" -v b="$seconds" -v t="$times" \
			'BEGIN { print (a / b >= t ? "met" : "not") }')"
	[ -n "${5:-}" ] || return 0
	judge "$name, memory" "$(calculate "$mib / $their_mib")" \
		"$(printf '%.1f MiB, perf and addr2line %.1f MiB' "$mib" "$their_mib")" "$5" times
}

measure_function() {
	local ours theirs
	ours=$(best "$profiltool" report "$work/bare.prof") &&
		theirs=$(best perf report --stdio -i "$work/perf.data") ||
		not_measured "report by function" "see below" || return
	compare "report by function" 1 "$ours" "$theirs"
}

measure_line() {
	local inline line theirs
	inline=$(best "$profiltool" report --inline "$work/bare.prof") &&
		line=$(best "$profiltool" report --by line "$work/bare.prof") &&
		theirs=$(used perf report --stdio -s srcline -i "$work/perf.data") ||
		not_measured "report by line" "see below" || return
	compare "report --inline" 50 "$inline" "$theirs" 0.25
	compare "report --by line" 50 "$line" "$theirs" 0.25
}

measure_named() {
	local ours
	ours=$(best "$profiltool" report --by line "$work/named.pb.gz") ||
		not_measured "report of a file with names" "see below" || return
	judge "report of a file with names" "${ours% *}" "${ours% *} s, ${ours#* } MiB" 0.2 s
}

measures=(function line named)
lacks=$(missing | tr '\n' ' ')
if [ -n "$lacks" ]; then
	echo "names.sh is skipped; it needs: $lacks"
	exit 0
fi
prepare >"$work/prepare.out" 2>"$work/prepare.err" || {
	echo "names.sh: the recordings failed"
	tail -n 5 "$work"/prepare.*
	exit 1
}
bench "$@"
