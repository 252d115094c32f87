#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The states of threads: of kinds of program, those that their authors would name.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1

# record NAME COMMAND...: NAME.pb.gz, and its waits in NAME.json
record() {
	local name=$1
	shift
	"$profiltool" record --wall --max-overhead 0 -q -o "$name.pb.gz" -- "$@" &&
		"$profiltool" dump --json "$name.pb.gz" >"$name.json"
}

# in_state NAME STATE REASON THREAD...: whether each thread was in this state, for this reason (-: any), for nine tenths of
# the time in which it slept.
in_state() {
	python3 - "$@" <<'EOF'
import json, sys
name, state, reason, *threads = sys.argv[1:]
j = json.load(open(name + ".json"))
wall = [v["type"] for v in j["values"]].index("wall")
slept, wanted = {}, {}
for s in j["stacks"]:
	leaf = s["functions"][0][0] if s.get("functions") and s["functions"][0] else ""
	comm = s["labels"]["comm"]
	if leaf.startswith(("[blocked: ", "[idle: ")) and leaf != "[blocked: start]":
		slept.setdefault(comm, {}).setdefault(leaf, 0)
		slept[comm][leaf] += s["values"][wall]
		if leaf.startswith("[" + state + ": ") and (reason == "-" or leaf.endswith(": " + reason + "]")):
			wanted[comm] = wanted.get(comm, 0) + s["values"][wall]
print(slept)
sys.exit(not all(t in slept and wanted.get(t, 0) > 0.9 * sum(slept[t].values()) for t in threads))
EOF
}

# --- C ---

check "threads of many kinds: recorded" record kinds "$progs/states" 2
while read -r what state reason threads; do
	# shellcheck disable=SC2086 # several threads
	check "${what//_/ }: $state" in_state kinds "$state" "$reason" $threads
done <<'EOF'
a_mutex_in_a_main_loop blocked lock b-mutex
a_lock_for_readers blocked lock b-rwlock
a_pool,_also_if_a_thread_slept_once idle condition i-pool i-pool-late
a_worker_with_a_semaphore idle condition i-semaphore
a_timer idle sleep i-timer
a_server_that_accepts idle accept i-accept i-accept-slow i-accept-unix i-accept-proxy
a_server's_thread_for_a_client idle socket i-served i-unix-served
a_client blocked socket b-client
a_client_that_polls blocked poll b-client-polls
a_proxy blocked socket b-proxy b-client-proxy
a_server_of_datagrams idle socket i-datagrams
a_loop_of_events idle poll i-events
a_pipeline_whose_reader_is_slow blocked pipe b-writer
a_pipeline_whose_writer_is_slow idle pipe i-stage
a_parent blocked child b-child
a_thread_that_waits_for_another's_end blocked join b-join
EOF
hidden() {
	"$profiltool" report -q --idle=hide --value wall --by comm kinds.pb.gz >out || return
	cat out
	awk '$NF == "b-mutex" { kept = $1 > 1 } $NF == "i-pool" { shown = $1 > 1 } END { exit !kept || shown }' out
}
check "--idle=hide keeps a thread that waits for a mutex" hidden
check "the states add up" exits 0 "$profiltool" report -q --json kinds.pb.gz
check "the states add up" json "(lambda w: w['wall_ns'] == sum(w[k + '_ns'] for k in
	('on_cpu', 'runnable', 'blocked', 'idle', 'unknown')) and
	sum(w['idle_by'].values()) >= w['idle_ns'] > 0 and sum(w['blocked_by'].values()) >= w['blocked_ns'] > 0)(j['wall'])" out

# whom NAME THREAD PEER: whether nine tenths of the time that the thread waited for others were for this peer: a regular
# expression, with %THREAD% for the TID of that one; "": for none.
whom() {
	python3 - "$@" <<'EOF'
import json, re, sys
name, thread, peer = sys.argv[1:]
j = json.load(open(name + ".json"))
wall = [v["type"] for v in j["values"]].index("wall")
def tids(comm): # of all that had the name for a while
	return "(" + "|".join({str(s["labels"].get("tid")) for s in j["stacks"] if s["labels"]["comm"] == comm}) + ")"
pattern = re.sub("%(.*)%", lambda m: tids(m[1]), peer)
found = {}
for s in j["stacks"]:
	leaf = s["functions"][0][0] if s.get("functions") and s["functions"][0] else ""
	if s["labels"]["comm"] == thread and re.match(r"\[(blocked|idle): (lock|pipe|socket|poll|child)\]", leaf):
		whom = s["labels"].get("tags", {}).get("peer", "")
		found[whom] = found.get(whom, 0) + s["values"][wall]
print(pattern, found)
sys.exit(not found or sum(ns for whom, ns in found.items() if re.fullmatch(pattern, whom)) < 0.9 * sum(found.values()))
EOF
}
while IFS=, read -r what thread peer; do
	check "$what" whom kinds "$thread" "$peer"
done <<'EOF'
a lock is for the thread that has it,b-mutex,holder \(%holder%\)
a pipe is for the process that reads it,b-writer,states \([0-9]+\)
a pipe is for the process that writes to it,i-stage,states \([0-9]+\)
poll() is for the process that sends the answer,b-client-polls,states \([0-9]+\)
who ends the process with a signal is no peer,i-datagrams,
who ends the process with a signal is none of its children,b-child,
EOF

# --- Live: top with the same waits ---

no_line() {
	! grep -E "$@"
}
# last EXPRESSION: of the last table that top printed as JSON.
last() {
	tail -n 1 "$work/out" >last.json && json "$1" last.json
}
start "$progs/states" 60
check "top --by wait shows waits, live" exits 0 "$profiltool" top -p "$pid" --by wait --tables 2 -d 0.5 -E 0 --json
check "with their state and reason, and the time of each" last "{('blocked', 'lock'), ('idle', 'accept'), ('idle', 'condition')} <= {
	(r['state'], r.get('reason')) for r in j['rows'] if r['wall_ns']} and sum(r['wall_ns'] for r in j['rows']) == j['wall_ns']"
check "and the function that waits" last "any(r.get('reason') == 'lock' and 'mutex' in r['function'] for r in j['rows'])"
check "top --state blocked --by reason has no others" exits 0 \
	"$profiltool" top -p "$pid" --state blocked --by reason --tables 2 -d 0.5 -E 0 --json
check "but of them all" last "{r['state'] for r in j['rows'] if r['wall_ns']} == {'blocked'} and 'lock' in {r.get('reason') for r in j['rows']}"
check "top --reason by thread" exits 0 "$profiltool" top -p "$pid" --reason lock --by thread --tables 2 -d 0.5 -E 0
check "prints which wait for it, for how long" grep -qE '^ *[0-9.]+ +[0-9.]+ +.*  b-mutex$' "$work/out"
check "and not those that wait for others" no_line '[1-9].*  i-accept$' "$work/out"
stop "$pid"
check "top --by wait shows those of a file" exits 0 "$profiltool" top kinds.pb.gz --by wait --state blocked --plain
check "in seconds" grep -qE '^wall s +% +state +function +image' "$work/out"
check "with their reasons" grep -qE '^ *[0-9]+\.[0-9]{3} +[0-9.]+ +blocked: lock ' "$work/out"
check "and none of those that are left out" no_line 'idle:' "$work/out"
check "a file without waits" exits 1 "$profiltool" top --by reason --plain - <<<"main 3"

# --- C++ ---

cat >pool.cc <<'EOF'
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <queue>
#include <sys/prctl.h>
#include <thread>
#include <vector>
using namespace std::chrono_literals;

static std::mutex lock, work_lock;
static std::condition_variable there;
static std::queue<int> jobs;

static void worker()
{
	prctl(PR_SET_NAME, "i-worker");
	while (true) {
		std::unique_lock<std::mutex> l(work_lock);
		there.wait(l, [] { return !jobs.empty(); });
		jobs.pop();
	}
}

static void contend(const char *name, std::chrono::microseconds hold)
{
	prctl(PR_SET_NAME, name);
	while (true) {
		{
			std::lock_guard<std::mutex> l(lock);
			std::this_thread::sleep_for(hold);
		}
		std::this_thread::sleep_for(50us);
	}
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 3; i++)
		threads.emplace_back(worker);
	threads.emplace_back(contend, "holder", 20000us);
	threads.emplace_back(contend, "b-contends", 1us);
	for (int i = 0; i < 50; i++) {
		std::this_thread::sleep_for(20ms);
		std::lock_guard<std::mutex> l(work_lock);
		jobs.push(i);
		there.notify_all();
	}
	_Exit(0);
}
EOF
if g++ -O1 -pthread -o pool pool.cc 2>err; then
	check "C++: recorded" record cxx ./pool
	check "C++: a pool: idle" in_state cxx idle condition i-worker
	check "C++: a mutex: blocked" in_state cxx blocked lock b-contends
else
	skip "C++" "$(head -n 1 err)"
fi

# --- Go ---

cat >server.go <<'EOF'
package main

import (
	"io"
	"net"
	"os"
	"time"
)

func main() {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	c, _ := net.Dial("tcp", l.Addr().String())
	b := make([]byte, 1)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		c.Write(b)
		c.Read(b)
	}
	os.Exit(0)
}
EOF
if HOME=$work GOCACHE=$work/go GOFLAGS=-mod=mod go build -o gosrv server.go 2>err; then
	check "Go: recorded" record go ./gosrv
	check "Go: its threads wait for goroutines that can run: idle" in_state go idle - gosrv
else
	skip "Go" "$(head -n 1 err)"
fi

# --- Java ---

cat >Idle.java <<'EOF'
import java.util.concurrent.*;
public class Idle {
	static final Object lock = new Object();
	static void name(String s) { Thread.currentThread().setName(s); }
	public static void main(String[] a) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(3, r -> new Thread(r, "i-pool"));
		for (int i = 0; i < 3; i++)
			pool.submit(() -> 1).get();
		Thread wants = new Thread(() -> { while (true) { synchronized (lock) { } } }, "b-wants");
		wants.setDaemon(true);
		synchronized (lock) {
			wants.start();
			for (int i = 0; i < 40; i++)
				Thread.sleep(50);
			Runtime.getRuntime().halt(0);
		}
	}
}
EOF
if javac -d . Idle.java 2>err; then
	check "Java: recorded" record java java -XX:+PreserveFramePointer -cp . Idle
	check "Java: a pool without work: idle" in_state java idle condition i-pool
	check "Java: a lock: blocked" in_state java blocked lock b-wants
	check "Java: its own threads: idle" in_state java idle - "VM Thread" "GC Thread#0" "C1 CompilerThre" "Signal Dispatch" \
		"Reference Handl" Finalizer "Common-Cleaner"
	check "Java: Thread.sleep() is a sleep, and nothing waits for a lock but who does" exits 0 "$profiltool" report -q --json \
		java.pb.gz
	# Of one thread each: however long it takes on a busy machine, no more than the recording does.
	check "Java: Thread.sleep() is a sleep, and nothing waits for a lock but who does" json "(lambda w, most:
		1.8e9 <= sum(w[s + '_by'].get('sleep', 0) for s in ('blocked', 'idle')) <= most and
		1.8e9 <= w['blocked_by']['lock'] <= most and not w['idle_by'].get('lock'))(j['wall'], j['duration_s'] * 1e9)" out
else
	skip "Java" "$(head -n 1 err)"
fi

# --- Python ---

cat >threads.py <<'EOF'
import concurrent.futures, ctypes, os, queue, socket, threading, time
libc = ctypes.CDLL(None)
def named(name, run):
	def start():
		libc.prctl(15, name.encode())
		run()
	threading.Thread(target=start, daemon=True).start()
jobs = queue.SimpleQueue()
def work():
	while True:
		jobs.get()
lock = threading.Lock()
def contend():
	while True:
		with lock:
			pass
		time.sleep(0.001)
server = socket.create_server(("127.0.0.1", 0))
def serve():
	one, _ = server.accept()
	while one.recv(1):
		time.sleep(0.02)
		one.send(b"x")
def ask():
	s = socket.create_connection(server.getsockname())
	s.settimeout(10)
	while True:
		s.send(b"x")
		s.recv(1)
for i in range(2):
	named("i-worker", work)
named("b-contends", contend)
named("server", serve)
named("b-client", ask)
for i in range(60):
	with lock:
		time.sleep(0.02)
	jobs.put(1)
os._exit(0)
EOF
python=$(python3 -c 'import sys; print(sys.executable)')
check "Python: recorded" record python "$python" threads.py
check "Python: workers with a queue: idle" in_state python idle condition i-worker
check "Python: a lock: blocked" in_state python blocked lock b-contends
check "Python: a client: blocked" in_state python blocked - b-client

cat >sets.py <<'EOF'
import ctypes, os, select, socket, threading, time
libc = ctypes.CDLL(None)
server = socket.create_server(("127.0.0.1", 0))
listens = socket.create_server(("127.0.0.1", 0))
asks = [socket.create_connection(server.getsockname()) for i in range(8)]
serves = [server.accept()[0] for i in range(8)]
def by_select(sockets):
	select.select(sockets, [], [])
def by_poll(sockets):
	events = select.poll()
	for s in sockets:
		events.register(s, select.POLLIN)
	events.poll()
def by_epoll(sockets):
	events = select.epoll()
	for s in sockets:
		events.register(s, select.EPOLLIN)
	events.poll()
def start(name, wait, sockets):
	def named():
		libc.prctl(15, name.encode())
		wait(sockets)
	threading.Thread(target=named, daemon=True).start()
for wait in by_select, by_poll, by_epoll:
	start("b" + wait.__name__[2:], wait, asks)
	start("i" + wait.__name__[2:], wait, [listens] + serves[1:])
time.sleep(1)
os._exit(0)
EOF
check "sets of sockets: recorded" record sets "$python" -S sets.py
for call in select poll epoll; do
	check "$call() for answers of several: blocked" in_state sets blocked poll "b_$call"
	check "$call() for clients, and for new ones: idle" in_state sets idle poll "i_$call"
done

# --- Whom ---

cat >ends.py <<'EOF'
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
tcp = socket.create_server(("127.0.0.1", 0))
unix = socket.socket(socket.AF_UNIX)
unix.bind(b"\0profil-%d" % os.getpid())
unix.listen()
libc.prctl(15, b"asked")
def ask(name, family, to):
	libc.prctl(1, 9) # until its parent ends
	libc.prctl(15, name)
	s = socket.socket(family)
	s.connect(to)
	s.recv(1)
for name, family, to in (b"asks-tcp", socket.AF_INET, tcp.getsockname()), (b"asks-unix", socket.AF_UNIX, unix.getsockname()):
	if os.fork() == 0:
		ask(name, family, to)
ends = tcp.accept()[0], unix.accept()[0]
print("ready", tcp.getsockname()[1], flush=True)
ends[0].recv(1)
EOF
begin ends "$python" -S ends.py
port=$(sed -n 's/^ready //p' ends.out)
check "sockets: recorded" exits 0 "$profiltool" record --wall -q -o ends.pb.gz -p "$pid" --children -d 1
peer() {
	"$profiltool" report -q --by peer "$@" ends.pb.gz >out || return
	cat out
}
names_processes() {
	peer && grep -qE " asked \($pid\)$" out && grep -qE " asks-tcp \([0-9]+\)$" out
}
check "--by peer: processes at the other ends of TCP and unix sockets, and their PIDs" names_processes
both_ask() {
	peer --json && json "[r['peer'] for r in j['rows'] if r['peer']].count('asked ($pid)') == 1" out
}
check "--by peer: two clients of one process are one row" both_ask
check "one end: recorded" exits 0 "$profiltool" record --wall -q -o ends.pb.gz -p "$(pgrep -P "$pid" | head -n 1)" -d 1
names_address() {
	peer && grep -qE " 127\.0\.0\.1:$port$" out
}
check "--by peer: the address of a server that is not recorded" names_address

cat >served.py <<'EOF'
import ctypes, os, select, socket, time
libc = ctypes.CDLL(None)
server = socket.create_server(("127.0.0.1", 0))
address = server.getsockname()
if os.fork() == 0:
	libc.prctl(1, 9) # until its parent ends
	libc.prctl(15, b"epoll-server")
	events = select.epoll()
	events.register(server, select.EPOLLIN)
	clients = {}
	while True:
		for fd, _ in events.poll():
			if fd == server.fileno():
				one = server.accept()[0]
				clients[one.fileno()] = one
				events.register(one, select.EPOLLIN)
			elif clients[fd].recv(1):
				time.sleep(0.02)
				clients[fd].send(b"x")
			else:
				events.unregister(fd)
				clients.pop(fd).close()
server.close()
libc.prctl(15, b"asks-again")
for i in range(30):
	with socket.create_connection(address) as s:
		s.send(b"x")
		s.recv(1)
EOF
check "a server with an event loop: recorded" record served "$python" -S served.py
check "--by peer: a server of this machine with an event loop, at a connection for each request" \
	whom served asks-again 'epoll-server \(%epoll-server%\)'
cat >child.py <<'EOF'
import os, time
while "wait" not in open("/proc/%d/wchan" % os.getppid()).read():
	time.sleep(0.01)
time.sleep(0.2)
EOF
# shellcheck disable=SC2016 # the shell expands them
check "a child: recorded" record child bash -c '"$0" -S child.py & echo $! >child; wait $!' "$python"
is_the_child() {
	whom child bash "python3[0-9.]* \\($(cat child)\\)"
}
check "--by peer: the child whose end its parent waited for, and its PID" is_the_child
finish
