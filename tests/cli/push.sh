#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Windows of an archive sent to servers, mostly hostile ones. tests/collector.sh has a real one.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/push/lib.sh
. "$top/tests/push/lib.sh"

needs_protobuf
unset http_proxy https_proxy HTTPS_PROXY ALL_PROXY all_proxy no_proxy NO_PROXY
local_url() { echo "http://127.0.0.1:$port"; }

# --- Options ---

windows 1
printf 'secret\n' >"$work/token"
printf '' >"$work/empty"
printf 'two words\n' >"$work/words"
chmod 600 "$work/token" "$work/empty" "$work/words"

# refused TEXT OPTION...: a usage error with this text.
refused() {
	local text=$1
	shift
	exits 2 "$push" directory="$archive" host=h "$@" && says "$text"
}

check "an unknown scheme" refused "only http:// and https:// are supported" url=ftp://collector.example/
check "no scheme" refused "it is not a valid URL" url=collector.example:4318
check "no URL at all" refused "it is not a valid URL" url=http://
check "a password in the URL" refused "visible to all users" url=https://u:p@collector.example
check "a query" refused "it has a query" url='https://collector.example/?x=1'
check "an unknown protocol" refused "unknown protocol to push by: grpc" url=https://collector.example protocol=grpc
check "a token by http://" \
	refused "a token is sent by https:// only" url=http://collector.example token_file="$work/token"
check "certificates by http://" \
	refused "certificates are for https:// only" url=http://collector.example ca="$work/token"
check "a certificate without its key" \
	refused "belong together" url=https://collector.example certificate="$work/token"
check "no file of certificates" \
	refused "cannot read the file of certificates" url=https://collector.example ca="$work/none"
fails() {
	local text=$1
	shift
	exits 1 "$push" directory="$archive" host=h "$@" && says "$text"
}
check "no token" fails "cannot read the token file" url=https://collector.example token_file="$work/none"
check "an empty token" fails "is empty" url=https://collector.example token_file="$work/empty"
check "a token of two words" fails "at byte 4" url=https://collector.example token_file="$work/words"
check "a token that is a directory" fails "cannot read the token file" url=https://collector.example token_file="$work"

# libcurl is loaded by those who push alone.
check "profild does not link libcurl" test -z "$(readelf -d "$build/profild" | grep -i curl)"
no_libcurl() {
	# shellcheck disable=SC2016 # "$" is for the inner shell
	unshare -m --propagation private sh -ec '
		for file in $(ldconfig -p | sed -n "s/.*libcurl.* => //p"); do mount --bind /dev/null "$file"; done
		exec "$@"' sh "$push" directory="$archive" host=h url=https://collector.example
}
check "without libcurl: an error" exits 1 no_libcurl
check "without libcurl: which library" says "cannot push: "
check "without libcurl: what to do" says "install libcurl4"

# --- What is sent, and when ---

# has_requests NAME COUNT: whether the server of this name has got so many.
has_requests() {
	[ "$(grep -c ^request "$work/$1.server")" -eq "$2" ]
}

sent_once() {
	windows 3
	serve once ok
	push_to "$(local_url)" && counted "sent 3" &&
		push_to "$(local_url)" && counted "" && has_requests once 3
}
check "each window is sent once, also by another process" sent_once

one_more() {
	local last
	last=$(find "$archive" -name '*.pb.gz' | sort | tail -n 1)
	cp "$last" "${last%??.pb.gz}30.pb.gz"
	push_to "$(local_url)" && counted "sent 1"
}
check "a new window is sent alone" one_more

cursor() {
	grep -qx "url $(local_url)/v1development/profiles" "$archive/h/.pushed" &&
		grep -qxE "until_ns [0-9]{19}" "$archive/h/.pushed" && [ "$(stat -c %a "$archive/h/.pushed")" = 600 ]
}
check "the cursor is a file with URL and time, for its owner alone" cursor

another_url() {
	push_to "$(local_url)/prefix/" since_ns="$(date +%s%N)" && counted "" || return
	push_to "$(local_url)/other" && counted "sent 4" &&
		grep -q "^POST /other/v1development/profiles " "$got/8.headers"
}
check "another URL begins with the windows of now, or of since_ns" another_url

# goes_to PATH URL [OPTION...]: a window that is sent with this URL is posted to the path.
goes_to() {
	local path=$1
	shift
	windows 1
	serve exact ok
	push_to "$(local_url)$1" "${@:2}" && counted "sent 1" && grep -q "^POST $path HTTP" "$got/1.headers"
}
check "a URL that ends in profiles: is exact, as OpenObserve's" goes_to /api/org/v1/profiles /api/org/v1/profiles
check "a URL with the path that would be appended: is exact" goes_to /v1development/profiles /v1development/profiles/
check "a URL that ends in something like it: is not" goes_to /myprofiles/v1development/profiles /myprofiles
check "a URL of Pyroscope's that ends in Push: is exact" goes_to /x/push.v1.PusherService/Push \
	/x/push.v1.PusherService/Push protocol=pyroscope
bad_request() {
	windows 2
	serve bad 400:nonsense 400:nonsense
	push_to "$(local_url)" && counted "refused 2" && printed 1 "400 Bad Request: nonsense" &&
		printed 1 "the server may speak another version of OpenTelemetry's profiles"
}
check "a server that takes no such message: what it may be" bad_request
serve once ok
windows 1
push_to "$(local_url)"

headers() {
	grep -qx "Content-Type: application/x-protobuf" "$got/1.headers" &&
		grep -qx "Content-Encoding: gzip" "$got/1.headers" &&
		grep -q "^User-Agent: profild/" "$got/1.headers" &&
		! grep -qi "^Authorization" "$got/1.headers" && gzip -t <"$got/1.body"
}
check "requests say what they are" headers

corrupt_window() {
	local file
	windows 3
	file=$(find "$archive" -name '*.pb.gz' | sort | sed -n 2p)
	truncate -s 300 "$file"
	push_to "$(local_url)" && counted "sent 2 unreadable 1" && printed 1 "problem: $file: "
}
check "a corrupt window is counted, and not in the way" corrupt_window

corrupt_cursor() {
	echo "url $(local_url)/v1development/profiles" >"$archive/h/.pushed"
	push_to "$(local_url)" && printed 1 "problem: $archive/h/.pushed is corrupt" && counted "sent 2 unreadable 1" &&
		grep -q ^until_ns "$archive/h/.pushed"
}
check "a corrupt cursor is reported and written anew" corrupt_cursor

clock_back() {
	sed -i "s/^until_ns .*/until_ns $(($(date +%s) + 3600))000000000/" "$archive/h/.pushed"
	push_to "$(local_url)" && printed 1 "note: the clock was set back" && counted ""
}
check "a clock that was set back is said" clock_back

proxied() {
	windows 1
	serve proxy ok
	http_proxy=http://127.0.0.1:$port push_to http://collector.invalid:4318 && counted "sent 1" &&
		grep -q "^POST http://collector.invalid:4318/v1development/profiles " "$got/1.headers"
}
check "the environment's proxy is used" proxied

# --- Pyroscope ---

windows 1
serve pyroscope ok
pyroscope() {
	local labels="__name__=process_cpu,service_name=" replaced=$'\xef\xbf\xbd'
	push_to "$(local_url)/tenant" protocol=pyroscope && counted "sent 1" &&
		grep -q "^POST /tenant/push.v1.PusherService/Push " "$got/1.headers" &&
		grep -qx "Content-Type: application/proto" "$got/1.headers" &&
		grep -qx "Connect-Protocol-Version: 1" "$got/1.headers" || return
	"$top/tests/push/decode.py" pyroscope "$profiltool" "$got/1.body" >"$work/decoded" || return
	diff - "$work/decoded" <<-END
		${labels}nginx,host_name=h 60 0x400200 0x400100 [nginx] # copy_inlined (copy.h:7) (inlined);handle (handle.c:42);main (nginx.c:10)
		${labels}nginx,host_name=h 20 0xffffffff81000400 0x400200 0x400100 [nginx] # sys_read;copy_inlined (copy.h:7) (inlined);handle (handle.c:42);main (nginx.c:10)
		${labels}nginx,host_name=h 10 0x400300 [nginx]
		${labels}java,host_name=h,container_id=$(printf '0123456789abcdef%.0s' 1 2 3 4) 5 0x7f0000000700 [java] # Foo.bar
		${labels}kernel,host_name=h 3 0xffffffff81000500 0xffffffff81000600 [kworker/0:1] # process_one_work;kthread
		${labels}bash,host_name=h 2 0x400100 [bash] # main (nginx.c:10)
		${labels}ev${replaced}il,host_name=h 1 0x400100 [ev${replaced}il] # main (nginx.c:10)
	END
}
check "Pyroscope gets a pprof file for each service" pyroscope

pyroscope_waits() {
	windows 1 waits
	serve waits ok
	push_to "$(local_url)" protocol=pyroscope && counted "sent 1" || return
	"$top/tests/push/decode.py" pyroscope "$profiltool" "$got/1.body" | sed 's/ 0x.*#/ #/' >"$work/decoded" || return
	diff - "$work/decoded" <<-'END'
		__name__=process_cpu,service_name=nginx,host_name=h 3 # take (nginx.c:20);main (nginx.c:10)
		__name__=delay,service_name=nginx,host_name=h,values=delay 7000 # take (nginx.c:20);main (nginx.c:10)
		__name__=off_cpu,service_name=nginx,host_name=h,values=off_cpu 5000000 # [blocked: futex];take (nginx.c:20);main (nginx.c:10)
		__name__=off_cpu,service_name=cron,host_name=h,values=off_cpu 60000000 # [blocked: futex];main (nginx.c:10)
	END
}
check "Pyroscope gets waits as off_cpu, and the delay by its name" pyroscope_waits

many_services() {
	windows 1 300
	serve many ok
	push_to "$(local_url)" protocol=pyroscope && counted "sent 1" || return
	"$top/tests/push/decode.py" pyroscope "$profiltool" "$got/1.body" >"$work/decoded" || return
	awk '{ split($1, labels, ","); service[labels[2]] += $2; total += $2 }
		END { print length(service), service["service_name=unknown_service"], service["service_name=name200"], total }' \
		"$work/decoded" >"$work/services"
	# The 99 with the most samples, 202 to 300, and one for the sum of 1 to 201.
	[ "$(cat "$work/services")" = "100 $((201 * 202 / 2))  $((300 * 301 / 2))" ] && return
	cat "$work/services"
	return 1
}
check "services are at most 100, those with the most samples" many_services

# --- Hostile servers ---

# Longer than a server may need that answers, on a busy machine.
timeout=timeout_ms=10000

# survives NAME TEXT BEHAVIOUR...: windows reach a server that first behaves like this, after one retry; the problem
# is reported once, with this text, and so is its end.
survives() {
	local name=$1 text=$2
	shift 2
	windows 2
	serve "$name" "$@" ok
	push_to "$(local_url)" "$timeout" && counted "sent 2 retried 1" && printed 1 "problem: " &&
		printed 1 "$text" && printed 1 "note: $(local_url)/v1development/profiles answers again"
}
check "a server that hangs" survives hang "Operation timed out" hang
check "a server that answers a byte at a time" survives drip "Operation timed out" drip
check "a server that closes the connection" survives close "Empty reply from server" close
check "a server that sends garbage" survives garbage "cannot push to http" garbage
check "a server that sends headers without end" survives headers "cannot push to http" headers
check "a server that fails" survives fails "cannot take windows, which wait: 500 Internal Server Error: sorry" 500:sorry
check "a gateway without a server" survives gateway "502 Bad Gateway" 502

retry_after() {
	local start=${EPOCHREALTIME/./}
	survives later "503 Service Unavailable" 503+3 || return
	[ $((${EPOCHREALTIME/./} - start)) -ge 3000000 ]
}
check "Retry-After is honoured" retry_after

changes() {
	windows 2
	serve changes hang close close ok
	push_to "$(local_url)" "$timeout" && counted "sent 2 retried 3" && printed 2 "problem: " &&
		printed 1 "Operation timed out" && printed 1 "Empty reply" && printed 1 "answers again"
}
check "a problem is reported again when it is another one" changes

deaf() {
	windows 1
	serve deaf deaf
	push_begin "$(local_url)" timeout_ms=500
	wait_for grep -q "Operation timed out" "$work/out"
	push_end
	[ "$(sed -n 's/^sent 0 .* waiting //p' "$work/out")" = 1 ]
}
check "a server that never reads" deaf

# It has a connection in its queue, so that the kernel drops those that come; python prints its port.
full_queue() {
	windows 1
	begin full python3 -c '
import socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
port = listener.getsockname()[1]
first = [socket.socket() for _ in range(3)]
for s in first:
	s.setblocking(False)
	s.connect_ex(("127.0.0.1", port))
print(f"ready {port}", flush=True)
sys.stdin.readline()'
	port=$(sed -n 's/^ready //p' "$work/full.out")
	push_begin "$(local_url)"
	wait_for grep -q "problem: " "$work/out"
	push_end
	stop "$pid"
	printed 1 "problem: "
}
check "a server that accepts no connection" full_queue

endless() {
	windows 2
	serve endless endless ok
	push_to "$(local_url)" timeout_ms=600000 && counted "sent 1 refused 1"
}
check "a reply without end is not waited for" endless

page() {
	windows 3
	serve page html
	push_to "$(local_url)" && counted "refused 3" && printed 1 "200: it answers as other servers do: is the URL right?"
}
check "a server that knows another protocol is reported once" page

too_large() {
	windows 4
	serve large 413:$'too\tlarge\e[31m\r\nfor me' ok
	push_to "$(local_url)" && counted "sent 3 refused 1" && printed 1 "413 Content Too Large: too large [31m for me"
}
check "a refused window is not sent again, and not in the way" too_large

failed_request() {
	windows 2
	serve status 'failed:bad \x1b[1mprofile \xff\xe2\x80\xaeend' ok
	push_to "$(local_url)" && counted "sent 1 refused 1" &&
		grep -qE "^problem: .* refuses the window of [-0-9: ]{19} UTC: 400 Bad Request: bad \[1mprofile end$" "$work/out"
}
check "the server's message is printed, without what acts on terminals" failed_request

refused_hint() {
	windows 3
	serve unauthorized 401
	push_to "$(local_url)" && counted "refused 3" && printed 1 "problem: " && printed 1 "hint: --push-token-file"
}
check "without permission, the hint is the token" refused_hint

partial() {
	windows 2
	serve partial "partial:2:no room" ok
	push_to "$(local_url)" && counted "sent 2 rejected 2" && printed 1 "did not take 2 profiles of a window: no room"
}
check "a partial success is counted" partial

gives_up() {
	windows 2
	serve always 500+1 500+1 500+1 500+1 500+1 500+1 500+1 500+1 500+1 500+1 ok
	push_to "$(local_url)" && counted "sent 1 refused 1 retried 9" && printed 1 "refuses the window of"
}
check "a window that a server fails on ten times is given up" gives_up

redirected() {
	local other
	serve other ok
	other=$port
	windows 2
	serve redirect "redirect:http://127.0.0.1:$other/" ok
	push_to "$(local_url)" token_file="$work/token" && counted "sent 2 retried 1" &&
		printed 1 "redirects are not followed, to http://127.0.0.1:$other/" && ! grep -q ^request "$work/other.server" &&
		grep -qx "Authorization: Bearer secret" "$got/2.headers"
}
check "redirects are not followed, and no token leaves for there" redirected

away() {
	windows 60
	serve away ok
	stop "$server"
	push_begin "$(local_url)"
	wait_for grep -q "Couldn't connect to server" "$work/out"
	serve away port="$port" ok
	wait "$pusher"
	printed 1 "problem: " && printed 1 "answers again" && [[ $(grep ^sent "$work/out") == "sent 60 "*" waiting 0" ]]
}
check "an hour of windows is sent when the server is back" away

full() {
	local size
	windows 60
	serve full ok
	size=$(stat -c '%b * 512' "$(find "$archive" -name '*.pb.gz' | head -n 1)")
	push_to "$(local_url)" queue_bytes=$((size * 10)) && counted "sent 10 dropped 50" &&
		printed 1 "the oldest windows are not sent" && printed 1 "no windows wait any more; 50 were not sent"
}
check "what waits is bounded: the oldest windows are dropped, and counted" full

ended() {
	windows 1
	serve slow hang
	push_begin "$(local_url)"
	wait_for grep -q ^request "$work/slow.server"
	push_end # it would have a problem to report after 30 s
	! grep -q problem "$work/out" && [[ $(grep ^sent "$work/out") == *" retried 0 waiting 1" ]]
}
check "a request can be interrupted" ended

# --- A tenant ---

tenant() {
	windows 1
	serve tenant ok
	push_to "$(local_url)" tenant=team-a && grep -qx "X-Scope-OrgID: team-a" "$got/1.headers"
}
check "a tenant is named in each request" tenant
check "a tenant that would be another header" \
	refused "not \"a" url=https://collector.example tenant=$'a\r\nX-Other: b'
check "an empty tenant" refused 'not ""' url=https://collector.example tenant=

# --- TLS and tokens ---

# certificate NAME CA SUBJECT DAYS: makes $work/NAME.pem and NAME.key, signed by CA.
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/CN=$1" \
		-out "$work/$1.csr" 2>/dev/null &&
		openssl x509 -req -in "$work/$1.csr" -CA "$work/$2.pem" -CAkey "$work/$2.key" -days "$4" \
			-extfile <(echo "subjectAltName=$3") -out "$work/$1.pem" 2>/dev/null
}

authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -subj "/CN=$1" \
		-days 2 -out "$work/$1.pem" 2>/dev/null
}

make_certificates() {
	authority ca && authority otherca && certificate right ca IP:127.0.0.1 2 && certificate named ca DNS:other.example 2 &&
		certificate expired ca IP:127.0.0.1 0 && certificate client ca DNS:client 2 && certificate stranger otherca DNS:client 2
}
check "certificates" make_certificates

# tls CERTIFICATE [OPTION...]: starts a server with it.
tls() {
	local name=$1
	shift
	windows 2
	serve "tls-$name" certificate="$work/$name.pem" key="$work/$name.key" "$@"
	url=https://127.0.0.1:$port
}

trusted() {
	tls right ok
	push_to "$url" ca="$work/ca.pem" token_file="$work/token" && counted "sent 2" && ! grep -q problem "$work/out" &&
		grep -qx "Authorization: Bearer secret" "$got/1.headers"
}
check "a server with a certificate of the authority gets windows and token" trusted

# distrusted CERTIFICATE AUTHORITY: nothing is sent to it, and the reason is the certificate.
distrusted() {
	tls "$1" ok
	push_begin "$url" ca="$work/$2.pem" token_file="$work/token"
	wait_for grep -q "problem: " "$work/out"
	push_end
	grep -qi "certificate" "$work/out" && printed 1 "hint: --push-ca" && ! grep -q ^request "$work/tls-$1.server" &&
		[[ $(grep ^sent "$work/out") == "sent 0 refused 0 "*" waiting 2" ]]
}
check "not one of another authority" distrusted right otherca
check "not one with another name" distrusted named ca
# It is valid until the second in which it was made is over.
has_expired() {
	local end
	end=$(openssl x509 -enddate -noout -in "$work/expired.pem")
	[ "$(date +%s)" -gt "$(($(date -d "${end#*=}" +%s) + 1))" ]
}
wait_for has_expired
check "not one that has expired" distrusted expired ca

untrusted() {
	tls right ok
	push_begin "$url"
	wait_for grep -q "problem: " "$work/out"
	push_end
	grep -qi "certificate" "$work/out" && ! grep -q ^request "$work/tls-right.server"
}
check "without an authority, the system's are trusted alone" untrusted

client() {
	tls right clients="$work/ca.pem" ok
	push_to "$url" ca="$work/ca.pem" certificate="$work/client.pem" key="$work/client.key" && counted "sent 2"
}
check "a client shows its certificate" client

stranger() {
	tls right clients="$work/ca.pem" ok
	push_begin "$url" ca="$work/ca.pem" certificate="$work/stranger.pem" key="$work/stranger.key"
	wait_for grep -q "problem: " "$work/out"
	push_end
	[[ $(grep ^sent "$work/out") == "sent 0 "*" waiting 2" ]]
}
check "one that the server does not know is a problem" stranger

rotated() {
	local day
	windows 1
	echo first >"$work/rotated"
	chmod 644 "$work/rotated"
	serve rotated ok
	push_begin "$(local_url)" token_file="$work/rotated" for 600
	wait_for grep -q "^request 1" "$work/rotated.server"
	rm "$work/rotated"
	day=$(dirname "$(find "$archive" -name '*.pb.gz')")
	cp "$day"/*.pb.gz "$work/next"
	mv "$work/next" "$(find "$day" -name '*.pb.gz' | sed 's/..\.pb\.gz$/30.pb.gz/')"
	wait_for grep -q "cannot read the token file" "$work/out"
	echo second >"$work/rotated"
	wait_for grep -q "^request 2" "$work/rotated.server"
	push_end
	grep -qx "Authorization: Bearer first" "$got/1.headers" && grep -qx "Authorization: Bearer second" "$got/2.headers" &&
		printed 1 "all users may read the token file $work/rotated"
}
check "a token is read for each request; one that all may read is warned of" rotated

# --- A token without TLS: to this machine only ---

# leaves_for URL: a push with a token to this URL sends all windows, with the token, to the server.
leaves_for() {
	windows 1
	serve clear "${@:2}" ok
	push_to "$1:$port" token_file="$work/token" && counted "sent 1" && grep -qx "Authorization: Bearer secret" "$got/1.headers"
}
for host in 127.0.0.1 127.1 0x7f.0.0.1 2130706433 017700000001 localhost; do
	check "a token is sent to http://$host" leaves_for "http://$host"
done
check "a token is sent to http://[::1]" leaves_for "http://[::1]" address=::1
check "a token is sent to http://[::ffff:127.0.0.1]" leaves_for "http://[::ffff:127.0.0.1]"

for host in 0.0.0.0 '[::]' 128.0.0.1 '[::ffff:192.0.2.1]' '[fe80::1]' 0xc0000201 127.0.0.1.invalid 127.invalid; do
	check "a token is not sent to http://$host" \
		refused "a token is sent by https:// only, or to this machine" url="http://$host:4318" token_file="$work/token"
done
check "a token is not sent by http:// in other spelling" \
	refused "a token is sent by https:// only" url="HTTP://192.0.2.1" token_file="$work/token"

# without_proxy VARIABLE: with a token, http:// to this machine passes by the proxy that this variable names.
without_proxy() {
	local proxy proxy_server
	serve proxy ok
	proxy=$port proxy_server=$server
	windows 1
	serve direct ok
	env "$1=http://127.0.0.1:$proxy" "$push" directory="$archive" host=h url="$(local_url)" token_file="$work/token" \
		>"$work/out" 2>"$work/err"
	stop "$proxy_server"
	counted "sent 1" && has_requests direct 1 && has_requests proxy 0
}
for variable in http_proxy all_proxy ALL_PROXY; do
	check "a token is not sent to the proxy of $variable" without_proxy "$variable"
done

# other_network HOSTS: sets $within to another network, where 192.0.2.1 is the address of another machine, and with
# HOSTS as /etc/hosts; and $network, the PID of what keeps it.
other_network() {
	local setup
	printf '%b' "$1" >"$work/hosts"
	echo "nameserver 127.0.0.1" >"$work/resolv.conf"
	setup="ip link set lo up && ip addr add 192.0.2.1/32 dev lo && mount --bind '$work/hosts' /etc/hosts &&
		mount --bind '$work/resolv.conf' /etc/resolv.conf && echo ready && read -r end"
	begin network unshare --mount --net sh -c "$setup"
	network=$pid
	within=(nsenter --target "$network" --mount --net)
}
leave_network() {
	within=()
	stop "$network"
	rm "$work/network.in"
}

# by_file HOSTS HOST: a token is not sent to HOST with this /etc/hosts.
by_file() {
	other_network "$1" || return
	push_to "http://$2:4318" token_file="$work/token"
	local status=$?
	leave_network
	[ "$status" -eq 2 ] && grep -q "192.0.2.1 is no loopback address" "$work/err" && return
	cat "$work/out" "$work/err"
	return 1
}

# Each question has another answer: what is checked at the start is not what libcurl gets.
rebound() {
	windows 1
	other_network "127.0.0.1 localhost\n" || return
	begin resolver "${within[@]}" python3 "$top/tests/push/resolver.py" 127.0.0.1 192.0.2.1
	local resolver=$pid
	serve thief address=192.0.2.1 ok
	push_begin "http://127.evil.example:$port" token_file="$work/token"
	wait_for grep -q "problem: \|sent 1" "$work/out"
	push_end
	leave_network
	stop "$resolver"
	has_requests thief 0 && printed 1 "its host is not this machine now" && printed 1 "hint: give an https:// URL" &&
		counted "retried 1 waiting 1"
}

if [ "$(id -u)" -eq 0 ] && unshare --mount --net true 2>/dev/null; then
	check "localhost may be another machine by /etc/hosts" by_file "192.0.2.1 localhost\n" localhost
	check "a name that begins as 127 may be another machine" by_file "192.0.2.1 127.evil.example\n" 127.evil.example
	check "a name with one loopback address and another is not this machine" \
		by_file "127.0.0.1 both.example\n192.0.2.1 both.example\n" both.example
	check "no token is sent to a name that becomes another machine after the start" rebound
else
	skip "names of other machines get no token" "no network namespaces here"
fi

finish
