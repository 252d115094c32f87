#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Windows of an archive sent to the OTLP receiver and the debug exporter of the OpenTelemetry collector, which
# tests/push/collector.sh makes from packages of Debian sid in build/push when it is not there.
# Time limit: 2400 s
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/push/lib.sh
. "$top/tests/push/lib.sh"

needs_protobuf
if ! TMPDIR=/tmp "$top/tests/push/collector.sh" "$build/push" >"$work/build.out" 2>&1; then
	sed 's/^/# /' "$work/build.out" | tail -n 20
	skip "a collector prints what was pushed" "it cannot be made from Debian's packages"
	finish
fi

authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/CN=127.0.0.1" \
		-addext "subjectAltName=IP:127.0.0.1" -days 2 -out "$work/$1.pem" 2>/dev/null
}
check "certificates" eval 'authority server && authority client'

# start_collector: starts it as it is configured, with nothing printed yet; sets $collector.
start_collector() {
	: >"$work/collected"
	with_pdeathsig "$build/push/collector" "$work/collector.json" >"$work/collector.out" 2>&1 &
	collector=$!
	note_started "$collector"
}

# collect: starts the collector on a free port, with TLS, clients' certificates and a token; sets $collector and $port.
collect() {
	port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cat >"$work/collector.json" <<-END
		{
			"token": "secret",
			"otlp": {"protocols": {"http": {
				"endpoint": "127.0.0.1:$port",
				"auth": {"authenticator": "token"},
				"tls": {"cert_file": "$work/server.pem", "key_file": "$work/server.key", "client_ca_file": "$work/client.pem"}
			}}},
			"debug": {"verbosity": "detailed", "use_internal_logger": false, "output_paths": ["$work/collected"]}
		}
	END
	start_collector
	wait_for grep -qx ready "$work/collector.out"
}

# to_collector [OPTION...]: pushes with all that it requires.
to_collector() {
	push_to "https://127.0.0.1:$port" ca="$work/server.pem" certificate="$work/client.pem" key="$work/client.key" \
		token_file="$work/token" "$@"
}

echo secret >"$work/token"
echo wrong >"$work/wrong"
chmod 600 "$work/token" "$work/wrong"
windows 3
check "it starts" collect

accepted() {
	to_collector && counted "sent 3" && ! grep -q problem "$work/out" && wait_for has_collected 3
}
has_collected() {
	[ "$(grep -c '"sample records": 8}' "$work/collected")" -eq "$1" ]
}
check "it accepts gzipped windows by TLS, with a client's certificate and a token" accepted

# values SERVICE: prints the values of the samples of a service that the collector printed for the first window.
values() {
	awk -v service="-> service.name: Str($1)" '/"sample records"/ && seen++ == 1 { exit }
		/-> service.name:/ { on = index($0, service) }
		on && /^        Values:/ { print $2 }' "$work/collected" | tr -d '[]' | paste -sd ' '
}
prints_counts() {
	values nginx
	[ "$(values nginx)" = "  5 10" ] && [ "$(values java)" = 5 ] && [ "$(values kernel)" = 3 ] && [ "$(values bash)" = 2 ]
}
check "it prints our counts, by service" prints_counts

# The first two samples of nginx have times in place of values.
has_times() {
	cat "$work/collector.out"
	[ "$(grep -c '^times 60 0 59000000000$' "$work/collector.out")" -eq 3 ] &&
		[ "$(grep -c '^times 15 500000000 28500000000$' "$work/collector.out")" -eq 3 ] &&
		[ "$(grep -c ^times "$work/collector.out")" -eq 6 ]
}
check "it has the times of our ticks" has_times

prints() {
	local text
	for text; do
		grep -qF -- "$text" "$work/collected" && continue
		echo "not printed: $text"
		return 1
	done
}
check "it prints our functions and files" prints "    copy_inlined" "    handle.c" "    sys_read" "    Foo.bar" \
	"    /usr/sbin/nginx" "    [kernel.kallsyms]"
check "it prints our labels" prints "-> process.executable.name: nginx" "-> systemd.unit: nginx.service" \
	"-> process.owner: www-data" "-> thread.name: GC Thread#0" "-> host.name: Str(h)" "-> container.id: Str(0123456789abcdef" \
	"-> cpu.logical_number: "

wrong_token() {
	windows 2
	to_collector token_file="$work/wrong" && counted "refused 2" &&
		printed 1 "401 Unauthorized: that is not the token" && printed 1 "hint: --push-token-file"
}
check "it refuses another token, and its reason is printed" wrong_token

no_certificate() {
	windows 1
	push_begin "https://127.0.0.1:$port" ca="$work/server.pem" token_file="$work/token"
	wait_for grep -q "problem: " "$work/out"
	push_end
	[[ $(grep ^sent "$work/out") == "sent 0 "*" waiting 1" ]]
}
check "it does not know a client without a certificate" no_certificate

wrong_path() {
	windows 1
	push_to "https://127.0.0.1:$port/v1" ca="$work/server.pem" certificate="$work/client.pem" key="$work/client.key" \
		token_file="$work/token" && counted "refused 1" && printed 1 "404 Not Found"
}
check "a wrong path is refused" wrong_path

restarted() {
	windows 2
	stop "$collector"
	push_begin "https://127.0.0.1:$port" ca="$work/server.pem" certificate="$work/client.pem" key="$work/client.key" \
		token_file="$work/token"
	wait_for grep -q "problem: " "$work/out"
	start_collector
	wait "$pusher"
	wait_for has_collected 2 && [[ $(grep ^sent "$work/out") == "sent 2 "*" waiting 0" ]]
}
check "it gets what waited while it was away" restarted

# A recording with what a tracer has published, which curl sends. The archive has none.
linked() {
	local trace=0af7651916cd43dd8448eb211c80319c
	printf '%s\n' "0 10 5 17 17 web,span_id=b7ad6b7169203331,trace_id=$trace main;serve" '1 10 4 17 17 web main' |
		"$build/tests/unit/times_make" "$work/linked.pb.gz" 1795000000000000000 6000 one &&
		"$profiltool" convert -q "$work/linked.pb.gz" "$work/linked.otlp.gz" &&
		curl -sS --fail-with-body --cacert "$work/server.pem" --cert "$work/client.pem" --key "$work/client.key" \
			-H "Authorization: Bearer secret" -H "Content-Type: application/x-protobuf" -H "Content-Encoding: gzip" \
			--data-binary @"$work/linked.otlp.gz" "https://127.0.0.1:$port/v1development/profiles" || return
	"$top/tests/push/decode.py" otlp "$build/push/proto" "$work/linked.otlp.gz" >"$work/decoded"
	cat "$work/decoded"
	[ "$(grep -c " of $trace/b7ad6b7169203331 serve@" "$work/decoded")" -eq 1 ] && [ "$(grep -c " of " "$work/decoded")" -eq 1 ]
}
check "it takes links to spans, which are links by the definitions of OpenTelemetry" linked

# --- The definitions of OpenTelemetry ---

windows 1
serve otlp ok
by_definitions() {
	push_to "http://127.0.0.1:$port" && counted "sent 1" &&
		"$top/tests/push/decode.py" otlp "$build/push/proto" "$got/1.body" >"$work/decoded" || return
	sed -i 's/{process.executable.build_id.gnu=00112233445566778899aabbccddeeff00112233}/{ID}/g' "$work/decoded"
	local nginx="[process.executable.name=nginx,process.pid=100,cpu.logical_number=1,systemd.unit=nginx.service,process.owner=www-data]"
	local main="main@nginx.c:10(/usr/sbin/nginx+0x1100{ID}profile.frame.type=native)"
	local handle="copy_inlined@copy.h:7|handle@handle.c:42(/usr/sbin/nginx+0x1200{ID}profile.frame.type=native)"
	local kernel="([kernel.kallsyms]+0x1%s{process.executable.build_id.gnu=ffeeddcc}profile.frame.type=kernel)"
	local id replaced=$'\xef\xbf\xbd'
	id=$(printf '0123456789abcdef%.0s' 1 2 3 4)
	# shellcheck disable=SC2059 # it is a format
	diff - "$work/decoded" <<-END
		service.name=nginx,host.name=h $nginx 60 from 0.0 to 59.0 $handle;$main
		service.name=nginx,host.name=h $nginx 15 from 0.5 to 28.5 sys_read@:0$(printf "$kernel" 400);$handle;$main
		service.name=nginx,host.name=h $nginx 5 sys_read@:0$(printf "$kernel" 400);$handle;$main
		service.name=nginx,host.name=h $nginx 10 ?(/usr/sbin/nginx+0x1300{ID}profile.frame.type=native)
		service.name=java,host.name=h,container.id=$id [process.executable.name=java,process.pid=200,thread.name=GC Thread#0,process.owner=1000,systemd.unit=docker-$id.scope] 5 Foo.bar@:0([jit 200]+0x1700{})
		service.name=kernel,host.name=h [process.executable.name=kworker/0:1] 3 process_one_work@:0$(printf "$kernel" 500);kthread@:0$(printf "$kernel" 600)
		service.name=bash,host.name=h [process.executable.name=bash,systemd.unit=session-3.scope,process.owner=ann] 2 $main
		service.name=ev${replaced}il,host.name=h [process.executable.name=ev${replaced}il,systemd.unit=user@1000.service,process.owner=ann] 1 $main
	END
}
check "what is sent is, by their definitions, what the window has" by_definitions

# A recording of this machine: each function has as many samples there as here, and as much delay.
recorded_window() {
	local day file status
	rm -rf "$archive"
	day=$archive/h/$(date -u +%Y-%m-%d)
	file=$day/$(date -u +%H%M%S).pb.gz
	mkdir -p "$day"
	start "$progs/shares" 1 100
	status=$(status "$profiltool" record -a -g -F 97 -d 2 -o "$file")
	stop "$pid"
	# 3: samples of others were lost, on a busy machine.
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || { cat "$work/err"; return 1; }
	exits 0 "$profiltool" report --json "$file" && cp "$work/out" "$work/report.json" || return
	serve real ok
	push_to "http://127.0.0.1:$port" && counted "sent 1" &&
		"$top/tests/push/decode.py" otlp "$build/push/proto" "$got/1.body" >"$work/decoded" &&
		"$top/tests/push/decode.py" leaves "$build/push/proto" "$got/1.body" >"$work/leaves.json" &&
		"$top/tests/push/decode.py" delays "$build/push/proto" "$got/1.body" >"$work/delays.json" &&
		python3 - "$work/report.json" "$work/leaves.json" "$work/delays.json" <<-'END'
			import collections, json, sys
			for key, file in ("self", sys.argv[2]), ("delay_ns", sys.argv[3]):
			    here = collections.Counter()
			    for f in json.load(open(sys.argv[1]))["functions"]:
			        here[f["name"]] += f[key]
			    there = json.load(open(file))
			    unnamed = there.pop("", 0)
			    print(unnamed, {name: (here[name], count) for name, count in there.items() if here[name] != count})
			    # The report calls locations without a name by their addresses.
			    assert all(here[name] == count for name, count in there.items())
			    assert sum(here.values()) == sum(there.values()) + unnamed and (len(there) > 1 or key != "self")
		END
}
check_recorded "so it is for a recording" recorded_window

finish
