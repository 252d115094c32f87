#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands in the displays of all man pages run, as a user types them, and succeed: on programs, files and an archive
# of the names that the pages use. tests/cli/tutorial.sh runs those of profil-tutorial(7), with their output, and
# tests/profil/docs.sh the C programs. Too long for `make test`, where tests/docs.sh knows all options in them.
# examples.sh profiltool-web.1 ...: those of these pages.
# Time limit: 1800 s

# shellcheck disable=SC2016,SC2317 # of awk and shells in it; functions are called by check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/control_group.sh
. "$top/tests/control_group.sh"

for needed in root mandoc script gcc gprof; do
	if [ "$needed" = root ] && [ "$(id -u)" -ne 0 ] || [ "$needed" != root ] && ! command -v "$needed" >/dev/null; then
		skip "the commands in the man pages run" "it needs $needed"
		finish
	fi
done

# --- What the pages name ---

stage=$work/stage # what is in the current directory of each page's commands
mkdir -p "$stage" "$work/bin" "$work/pc" && cd "$stage" || exit
export PATH=$work/bin:$build:$PATH LD_LIBRARY_PATH=$build/lib LIBRARY_PATH=$build/lib PKG_CONFIG_PATH=$work/pc
export PROFIL_ARCHIVE=$work/archive GROFF_NO_SGR=1
libprofil_for_programs() {
	make -s -C "$top" BUILD="$work/pc" LIBDIR="$build/lib" INCLUDEDIR="$top/user/lib" "$work/pc/profil.pc"
}
check "libprofil's file for pkg-config" libprofil_for_programs

# program NAME FUNCTION...: a program of the stage, which burns CPU time in these functions, in .c and built with -pg.
program() {
	local name=$1 function

	shift
	{
		echo '#include <stddef.h>'
		echo '#include <time.h>'
		echo 'volatile unsigned long sink;'
		echo '__attribute__((noinline)) static void burn(clock_t until) { while (clock() < until) sink++; }'
		for function; do
			echo "__attribute__((noinline)) void $function(void) { burn(clock() + CLOCKS_PER_SEC / 3); sink++; }"
		done
		echo "int main(void) { $(printf '%s(); ' "$@") return 0; }"
	} >"$stage/$name.c"
	gcc -g -O1 -fno-omit-frame-pointer -fno-builtin -w ${gprof:+-pg} -o "$stage/$name" "$stage/$name.c"
}
programs() {
	gprof=yes program prog parse_line parse_file && gprof=yes program sort sort_all &&
		gprof=yes program simulate step && gprof='' program compile elf_read cpp_malloc &&
		cp "$progs/run_legacy" "$stage/legacy" && printf 'all:\n\t./compile\n' >"$stage/Makefile" || return
	# The programs of the pages themselves.
	for page in profil.3:busy libprofil.3:loops; do
		awk '/^\.Ed/ { if (inside) exit } inside { gsub(/\\e/, "\\"); print } /^\.Bd -literal$/ { inside = 1 }' \
			"$top/user/lib/${page%:*}" >"$stage/${page#*:}.c"
	done
	(cd "$stage" && ./prog && [ -s gmon.out ])
}
check "programs" programs

# A server with workers, named as in the pages, which all wait for one another now and then.
for name in nginx postgres worker; do
	cp "$progs/shares" "$work/bin/$name"
done
start_ready "$work/bin/nginx" 1 0 lazy
start_ready "$work/bin/postgres" 1 0 lazy
start_ready "$work/bin/worker" 2 0 lazy
server=$pid
# Where its own code is: what profil(2) counts by an offset. Its first thread has ended, and has no maps.
text=0x$(cat "/proc/$server/task/"*/maps | sed -nE "s|^([0-9a-f]+)-.* ..x. .* $work/bin/worker$|\1|p" | head -n 1)
# What has Prometheus' interface, with a counter of an hour.
cat >"$work/prometheus.py" <<-'END'
	import http.server, json, sys, urllib.parse
	class Metrics(http.server.BaseHTTPRequestHandler):
	    def log_message(self, *ignored):
	        pass
	    def do_GET(self):
	        path, _, query = self.path.partition("?")
	        asked = {k: v[0] for k, v in urllib.parse.parse_qs(query).items()}
	        if path != "/api/v1/query_range":
	            return self.send_error(404)
	        times = range(int(asked["start"]), int(asked["end"]) + 1, int(asked["step"]))
	        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [{
	            "metric": {"__name__": asked["query"]}, "values": [[t, str(t - times[0])] for t in times]}]}}).encode()
	        self.send_response(200)
	        self.end_headers()
	        self.wfile.write(body)
	server = http.server.HTTPServer(("127.0.0.1", 0), Metrics)
	print("127.0.0.1:%d" % server.server_port, flush=True)
	server.serve_forever()
END
sed -i 's/^\t//' "$work/prometheus.py"
start python3 "$work/prometheus.py"
wait_for [ -s "$work/start.out" ]
prometheus=$(cat "$work/start.out")
# A service, with much time in the kernel.
check "a control group" make_control_group
start sh -c 'while true; do dd if=/dev/zero of=/dev/null bs=1M count=20 status=none; sleep 0.02; done'
printf '%s\n' "$pid" >"$group/cgroup.procs"
# flamegraph.pl is in no package: this takes what it takes.
printf '%s\n' '#!/usr/bin/awk -f' '!/^[^ ].* [0-9]+$/ { print "not a folded stack: " $0 >"/dev/stderr"; wrong = 1; exit }' \
	'END { exit wrong || NR == 0 }' >"$work/bin/flamegraph.pl"
chmod 755 "$work/bin/flamegraph.pl"

# Of tests/unit/times_make.c: ticks in the seconds before and after $moment, of processes that waited for one another.
now=$(date +%s)
now=$((now - now % 3600))
moment=$((now - 5399))
timed() {
	"$build/tests/unit/times_make" "$stage/make.pb.gz" "$((moment - 1))000000000" 20000 host <<-'END'
		0 1 900 12 12 cc1 main;compile;malloc
		900 1 300 12 13 worker main;elf_read
		1200 10 1880 12 12 cc1 main;link
	END
}
files() {
	local name

	timed || return
	for name in b old old-again new machine last-week lastweek week mon tue wed tar newer pg ticket prog; do
		[ "$name" = prog ] || cp "$stage/make.pb.gz" "$stage/$name.pb.gz" || return
	done
	"$profiltool" record -g -q -F 999 -o "$stage/prog.pb.gz" -- "$stage/prog" &&
		"$profiltool" record -a -g -q -F 999 -d 0.5 -o "$stage/server.pb.gz" &&
		"$profiltool" record -a --chains -q -d 2 -o "$stage/waits.pb.gz" && cp "$stage/waits.pb.gz" "$stage/x.pb.gz" &&
		"$profiltool" record -g -q -F 999 -p "$server" -d 3 -o "$stage/a.pb.gz" &&
		mkdir "$stage/profiles" "$stage/hosts" && cp "$stage/a.pb.gz" "$stage/profiles" &&
		cp "$stage/a.pb.gz" "$stage/hosts" && "$profiltool" convert -q "$stage/a.pb.gz" "$stage/a.prof" &&
		"$profiltool" convert -q "$stage/a.pb.gz" "$stage/tar.prof" &&
		python3 "$top/tests/cli/perf.py" make "$work/perf" "$server" && cp "$work/perf/tasks.perf.data" "$stage/perf.data"
}
check "files" files

# Nine days in hours and an hour in minutes, of services. $moment is a second after the beginning of a window.
archive() {
	local make=$build/tests/unit/archive_make host

	host=$(hostname)
	"$make" write "$work/minute" "$host" "$now" 1 2 nginx="$stage/a.pb.gz" postgresql="$stage/b.pb.gz" >"$work/window" &&
		"$make" place "$PROFIL_ARCHIVE" "$host" $((now - 9 * 86400)) $((9 * 24 - 3)) 3600 "$(cat "$work/window")" &&
		"$make" place "$PROFIL_ARCHIVE" "$host" $((now - 7200)) 60 60 "$(cat "$work/window")"
}
check "an archive" archive

# --- Running them ---

# Prints the commands in a page's displays, which begin with a prompt; those of more lines in one.
commands_in() {
	mandoc -Tutf8 -O width=300 "$1" | col -bx | sed -nE '
		/^ {5,}[#$] / {
			s/^ +//
			:more
			/(\\|\|)$/ { N; s/\\?\n +/ /; b more }
			p
		}'
}

# as_here COMMAND: the same with what there is in place of the pages' names: processes, moments, control groups, and for
# less time.
as_here() {
	local moment=@$moment.3

	# That of a recording of this page is another.
	[[ $1 != *make.pb.gz* ]] || moment=$("$profiltool" dump --json make.pb.gz | python3 -c '
import json, sys
j = json.load(sys.stdin)
times = sorted(t for s in j["stacks"] for t in s["times_ns"])
print("@%.1f" % ((j["time_ns"] + times[len(times) // 2]) / 1e9))')
	sed -E "s/\+10s/+1.5s/; s/--for 5s/--for 1s/; s/\+0s\.\.\+5s/+0s..+1s/
		s/\b(612|845|1234|4711)\b/$server/g; s/-d [0-9]+/-d 2/; s/sleep 10/sleep 1/
		s/--thread client --around 14:03:02\.3/--thread postgres --around +1s/
		s|14:03:02\.3|$moment|; s/2026-11-20 02:00/yesterday 02:00/
		s|/?system\.slice/[a-z0-9-]+\.[a-z]+|$group|; s|/etc/profil/token|$work/token|
		s|(profild --continuous)|\1 --directory $work/recorded|
		s/--offset 0x7[0-9a-f]+/--offset $text/; s|http://prometheus:9090|http://$prometheus|
		s/start=1795132800 -d end=1795147200/start=$((now - 7200)) -d end=$now/; s/--per web=/--per nginx.service=/
		s|/var/lib/profil/HOST/[^ ]*|a.pb.gz|; s|tar cJf .*|./compile|; s|/usr/bin/tar|./compile|
		s/--tables 10/--tables 2/; s/--unit web\.service/--unit nginx.service/; s|^profild|$build/profild|" <<<"$1"
}

# What only the administrator of a machine does, or another program shows on a screen.
not_run='systemctl|sysctl|echo|mkdir|groupadd|chgrp|chmod|setcap|kcachegrind|go|ssh|A'
# What ends by Ctrl-C, or by q.
endless='^(profiltool (record -a -F 499 -o|web --serve|top .*--json)|.*/profild )'
screen='^profiltool (browse|top (-g )?(-p [0-9]+|--cgroup [^ ]+)$)'

# is_on GROUP COMMAND: whether what it runs waits for Ctrl-C: it says so, or waits for events. Sets $recorders.
is_on() {
	mapfile -t recorders < <(pgrep -g "$1" '^profil')
	[ ${#recorders[@]} -gt 0 ] || return
	grep -qE '^profild: records|until Ctrl-C' "$work/check.out" ||
		[[ $2 != *--serve* ]] && grep -q poll "/proc/${recorders[0]}/wchan"
}

# quits: types q when the screen of a program shows the share of something, which is 12.34 there and nowhere else: without
# a sample, top ends with another status.
quits() {
	wait_for grep -qE '[0-9]\.[0-9]{2}' "$work/typescript" && echo q
}

# succeeds COMMAND
succeeds() {
	local group_of

	if [[ $1 =~ $screen ]]; then
		rm -f "$work/typescript"
		quits | timeout 300 script -qefc "$1" "$work/typescript" >/dev/null && return
		cat -v "$work/typescript"
		return 1
	fi
	if ! [[ $1 =~ $endless ]]; then
		timeout 300 bash -o pipefail -c "$1"
		return
	fi
	set -m
	bash -c "$1" &
	group_of=$!
	set +m
	note_started "$group_of"
	if ! wait_for is_on "$group_of" "$1"; then
		kill -TERM -- "-$group_of"
		return 1
	fi
	kill -INT "${recorders[@]}" && wait "$group_of"
}

echo token >"$work/token"
for page in "$top"/user/*/*.[1-8]; do
	name=${page##*/}
	[ "$name" != profil-tutorial.7 ] || continue
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	rm -rf "$work/page" && cp -a "$stage" "$work/page" && cd "$work/page" || exit
	mapfile -t commands < <(commands_in "$page")
	for command in "${commands[@]}"; do
		typed=${command:2}
		[[ ! ${typed%% *} =~ ^($not_run)$ ]] || continue
		for needed in jq google-pprof perf; do
			if [[ " $typed" == *" $needed "* ]] && ! command -v "$needed" >/dev/null; then
				skip "$name: $command" "$needed is not installed"
				continue 2
			fi
		done
		check "$name: $command" succeeds "$(as_here "$typed")"
	done
done
cd /
# Each display was found.
check "a command that does not work is noticed" exits 2 succeeds "profiltool report --no-such-option a.pb.gz"

finish
