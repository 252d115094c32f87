#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --debuginfod: symbols from a real debuginfod server on this machine; servers that do not answer or send
# wrong files.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for awk
. "$(dirname "$0")/../lib.sh"

export DEBUGINFOD_CACHE_PATH=$work/cache HOME=$work no_proxy=127.0.0.1
unset http_proxy https_proxy

if ! ldconfig -p | grep -q libdebuginfod.so.1; then
	skip "debuginfod" "no libdebuginfod"
	finish
fi

# --- A stripped program, its debug file elsewhere, and one whose share is small ---

gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread "$(own_build_id)" \
	"$top/tests/progs/shares.c" -o "$work/full"
id=$(readelf -n "$work/full" | sed -n 's/.*Build ID: //p')
mkdir "$work/served"
objcopy --only-keep-debug "$work/full" "$work/served/program.debug"
strip -o "$work/program" "$work/full"
check "a stripped program: recorded" exits 0 "$profiltool" record -F 999 --json \
	-o "$work/program.pb.gz" -- sh -c "exec '$work/program' 1 2 stay >/dev/null"
check "not asked: no names" json 'not [f for f in j["functions"] if f["name"] == "burn_sixty"]' \
	"$work/out"
check "not asked: says how to get them" says "--debuginfod"

check "no server is named: an error" exits 2 "$profiltool" report --debuginfod "$work/program.pb.gz"
check "no server is named: reported" says "DEBUGINFOD_URLS does not name a server"
check "no server is named: reported before recording" exits 2 "$profiltool" record --debuginfod -- \
	touch "$work/was_started"
check "no server is named: nothing was started" test ! -e "$work/was_started"

# --- Servers that are no good. serve MODE: $url is its address; it writes what it is asked for. ---

cat >"$work/server.py" <<'EOF_PYTHON'
import http.server, socketserver, sys, time

mode, answer = sys.argv[1], sys.argv[2]

class Handler(http.server.BaseHTTPRequestHandler):
	def do_GET(self):
		print(f"asked {self.path}", flush=True)
		if mode == "silent":
			time.sleep(100)
		if mode == "missing":
			return self.send_error(404)
		data = open(answer, "rb").read()
		self.send_response(200)
		self.send_header("Content-Length", str(len(data)))
		self.end_headers()
		self.wfile.write(data)
	def log_message(self, *arguments):
		pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
	daemon_threads = True

server = Server(("127.0.0.1", 0), Handler)
print(f"ready {server.server_address[1]}", flush=True)
server.serve_forever()
EOF_PYTHON

serve() {
	start_ready python3 "$work/server.py" "$@"
	mv "$work/start.out" "$work/server.out"
	url=http://127.0.0.1:$(sed -n 's/^ready //p' "$work/server.out")
}

# asked NAME OPTION...: reports with a cache of its own.
asked() {
	local name=$1
	shift
	DEBUGINFOD_CACHE_PATH=$work/cache.$name DEBUGINFOD_URLS=$url exits 0 \
		"$profiltool" report --debuginfod --json "$@" "$work/program.pb.gz" || return
	mv "$work/out" "$work/$name.json"
}

named='ran("burn_sixty", "burn_thirty")'
nameless='not samples("burn_sixty")'

# silence NAME [VARIABLE=VALUE]: asks the silent server, in the background. Sets $waiting to the shell's PID.
silence() {
	(
		env DEBUGINFOD_CACHE_PATH="$work/cache.$1" DEBUGINFOD_URLS="$silent_url" "${@:2}" \
			"$profiltool" report --debuginfod --json "$work/program.pb.gz" \
			>"$work/$1.json" 2>"$work/$1.err"
		echo $? >"$work/$1.status"
	) &
	waiting=$!
}
# check_silence NAME WHAT: it has ended, though the server would be silent for ever.
check_silence() {
	check "$2: the time limit holds" test "$(<"$work/$1.status")" = 0
	check "$2: no names" recorded "$nameless" "$work/$1.json"
	check "$2: reported" grep -q "did not send its symbols in time" "$work/$1.err"
}

# It has ten seconds, in which the other tests go on.
serve silent -
silent=$pid
silent_url=$url
mv "$work/server.out" "$work/silent.out"
silence silent
silence_ends=("$waiting")
# libdebuginfod 0.192 does not call the progress function before a server has answered. This one never does.
gcc -shared -fPIC -Wl,-soname,libdebuginfod.so.1 -o "$work/libdebuginfod.so.1" -xc - <<'EOF_C' || exit
#include <unistd.h>
void *debuginfod_begin(void) { static int client; return &client; }
void debuginfod_end(void *client) { _exit(99); } /* while it is in use */
int debuginfod_find_debuginfo(void *client, void *id, int size, char **path) { for (;;) pause(); }
void debuginfod_set_progressfn(void *client, void *function) {}
void debuginfod_set_user_data(void *client, void *data) {}
EOF_C
silence mute LD_LIBRARY_PATH="$work"
silence_ends+=("$waiting")
check "a server that does not answer: was asked" wait_for grep -q asked "$work/silent.out"

# The same on a terminal, where it shows what it waits for; ended by the terminal's hang-up.
if has_terminals "on a terminal"; then
	DEBUGINFOD_CACHE_PATH=$work/cache.terminal DEBUGINFOD_URLS=$silent_url start script -qfc \
		"'$profiltool' report --debuginfod '$work/program.pb.gz'" "$work/terminal"
	check "on a terminal: shows what it waits for" wait_for grep -qE \
		"names: [0-9]+ of [0-9]+, debuginfod: program, 0 MB" "$work/terminal"
	stop "$pid"
fi

# Ctrl-C while it waits.
start_ready "$work/program" 1
program=$pid
DEBUGINFOD_CACHE_PATH=$work/cache.interrupted DEBUGINFOD_URLS=$silent_url "$profiltool" record \
	-p "$program" -F 4999 --debuginfod --json >"$work/interrupted.json" \
	2>"$work/interrupted.err" &
recorder=$!
note_started "$recorder"
wait_for records "$recorder"
asked=$(grep -c asked "$work/silent.out")
wait_for_use "$program" 300
kill -INT "$recorder"
asked_again() {
	[ "$(grep -c asked "$work/silent.out")" -gt "$asked" ]
}
check "interrupted: the server was asked" wait_for asked_again
kill -INT "$recorder"
wait "$recorder"
check "interrupted: what was counted is shown" recorded 'whole and \
	sum(f["self"] for f in j["functions"]) == j["counted"] > 0' \
	"$work/interrupted.json"
check "interrupted: reported" grep -q "names was interrupted" "$work/interrupted.err"
stop "$program"

serve missing -
check "a server that has nothing" asked missing
check "a server that has nothing: reported" says "debuginfod sent no symbols"
stop "$pid"
head -c 100000 /dev/urandom >"$work/noise"
serve answer "$work/noise"
check "a server that sends noise" asked noise
check "a server that sends noise: reported" says "debuginfod sent an unusable file"
check "a server that sends noise: no names" recorded "$nameless" "$work/noise.json"
stop "$pid"
echo 'void burn_sixty(void) {} int main(void) { return 0; }' >"$work/other.c"
gcc -g -Wl,--build-id "$work/other.c" -o "$work/other"
serve answer "$work/other"
check "a server that sends another build" asked other
check "a server that sends another build: reported" says "the symbols of another build"
check "a server that sends another build: no names" recorded "$nameless" "$work/other.json"
check "only what is hot was asked for" test "$(grep -c asked "$work/server.out")" = 1
check "by its build ID" grep -q "asked /buildid/$id/debuginfo" "$work/server.out"
stop "$pid"

wait "${silence_ends[@]}"
check_silence silent "a server that does not answer"
check "not on a terminal: shows nothing" test -z "$(grep "names:" "$work/silent.err")"
check_silence mute "a library that does not say that it waits"
stop "$silent"

# --- The real one ---

if ! command -v debuginfod >/dev/null; then
	skip "a real server" "no debuginfod"
	finish
fi

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
port=$(free_port)
start debuginfod -d "$work/index.sqlite" -p "$port" -F "$work/served"
real=$pid
url=http://127.0.0.1:$port
fetch() {
	python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()' \
		"$url/buildid/$id/debuginfo"
}
check "a real server runs" wait_for fetch
check "a real server" asked real
check "a real server: names" recorded "$named" "$work/real.json"
check "a real server: while recording" env DEBUGINFOD_URLS="$url" bash -c \
	"'$profiltool' record -F 999 --json --debuginfod -- \
		sh -c 'exec $work/program 1 2 stay >/dev/null' >'$work/recorded.json' 2>'$work/err'"
check "a real server: names while recording" recorded "$named" "$work/recorded.json"
stop "$real"
check "the cache is used" asked real
check "the cache is used: names" recorded "$named" "$work/real.json"
check "not asked: the network is not used" bash -c \
	"DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$work/unused '$profiltool' report \
		'$work/program.pb.gz' && [ ! -e '$work/unused' ]"

finish
