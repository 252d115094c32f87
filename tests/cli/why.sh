#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profiltool why: chains of waits through three processes, each node against what the program measured of itself.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
export TZ=UTC
cd "$work" || exit

record() {
	begin services "$progs/services"
	record_begin services record --chains --span request -q -o x.pb.gz -p "$(pgrep -P "$pid" -d ,),$pid"
	send_line services go
	wait "$pid"
	wait "$recorder"
}
check "three processes and a lock are recorded" record

# second NS: a time for --since
second() {
	printf '@%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000))
}

# chain EXPRESSION: a Python expression that is true of each request, whose tree is in $n.json, with these names:
#   j      the thread in the JSON
#   m      what the program measured: NAME: NS
#   node(PARENT, STATE, NAME[, WAKER])  the sum of such children of a node, which is a list of nodes
#   near(NS, MEASURED)   to 2 % or 1 ms
chain() {
	python3 -S -c '
import json, sys
def near(ns, measured):
	return abs(ns - measured) <= max(0.02 * measured, 10**6)
def node(parents, state, name, waker=None):
	return [c for p in parents for c in p["parts"] if c["comm"] == name and c.get("waker") == waker and
		(c["kind"] == state or state == "waits" and "reason" in c)]
def ns(nodes):
	return sum(n["ns"] for n in nodes)
requests = [l.split()[1:] for l in open("services.out") if l.startswith("request ")]
right = len(requests) == 5
for i, r in enumerate(requests):
	m = {k: int(v) for k, v in (w.split("=") for w in r[2:])}
	m["all"] = int(r[1]) - int(r[0])
	j = json.load(open("%d.json" % i))["threads"][0]
	path = [{"ns": j["ns"], "parts": []}]
	for n in j["tree"]:
		n["parts"] = []
		del path[n["depth"] + 1:]
		path[-1]["parts"].append(n)
		path.append(n)
	all = path[:1]
	front = node(all, "waits", "client", "front")
	back = node(front, "waits", "front", "back")
	lock = node(back, "waits", "back", "holder")
	value = eval(sys.argv[1].replace("\n", " "))
	print(i, bool(value), m)
	for n in j["tree"] if not value else []:
		print(" " * n["depth"], *[n[k] for k in ("ns", "kind", "comm", "reason", "waker", "why") if k in n])
	right &= bool(value)
sys.exit(not right)' "$1"
}
explain() {
	local i=0 begin end
	while read -r _ begin end _; do
		"$profiltool" why -q --json --without sleep --thread client --since "$(second "$begin")" --until "$(second "$end")" \
			x.pb.gz >"$i.json" || return
		i=$((i + 1))
	done < <(grep ^request services.out)
}
check "why explains each request of the client" explain
check "a tree is as long as its interval" chain 'ns(all) == m["all"]'
check "each part is the sum of its parts" chain 'front and
	not [n for n in all + j["tree"] if n["parts"] and n["ns"] != ns(n["parts"])]'
check "what the client did itself" chain 'near(ns(node(all, "on_cpu", "client")), m["client"])'
check "what the front end did itself" chain 'near(ns(node(front, "on_cpu", "front")), m["front"])'
check "for how long it waited for the back end" chain 'near(ns(back), m["ask"])'
check "what the back end did itself" chain 'near(ns(node(back, "on_cpu", "back")), m["back"])'
check "for how long it waited for the lock" chain 'near(ns(lock), m["lock"])'
check "for how long its holder slept" chain \
	'near(ns(n for p in lock for n in p["parts"] if n.get("reason") == "sleep"), m["sleep"])'
check "and computed" chain 'near(ns(node(lock, "on_cpu", "holder")), m["hold"])'
check "at best all would be shorter by what its holder slept" chain 'near(j["without_ns"], m["sleep"])'
without_lock() {
	read -r _ begin end _ < <(grep ^request services.out)
	"$profiltool" why -q --json --without lock -t client --since "$(second "$begin")" --until "$(second "$end")" x.pb.gz \
		>lock.json && python3 -S -c '
import json
without = json.load(open("lock.json"))["threads"][0]["without_ns"]
lock = int(open("services.out").read().split("request ")[1].split("lock=")[1].split()[0])
print(without, lock)
assert abs(without - lock) <= max(0.02 * lock, 10**6)'
}
check "and by all of its lock, whatever the holder did" without_lock
# How much ends in what is known is the machine's, too, where threads begin to wait for each other: test_why has the rules.

# --- Turns ---

# A thread is idle while it waits for what comes by a connection that it accepted: of back each request is a turn,
# but perhaps the last one, in which all end.
turns() {
	"$profiltool" why -q --json -t back x.pb.gz >turns.json && python3 -S -c '
import json, sys
j = json.load(open("turns.json"))
whole = [n for n in j["tree"] if n["depth"] == 0]
print({k: v for k, v in j.items() if k != "tree"})
sys.exit(not (j["turns"] >= 4 and j["slow_turns"] == 1 and j["max_ns"] == j["slow_turns_ns"] == j["slowest"][0]["ns"] and
	j["median_ns"] <= j["p90_ns"] <= j["max_ns"] and sum(n["ns"] for n in whole) == j["turns_ns"] and
	sum(n["slow_ns"] for n in whole) == j["slow_turns_ns"]))'
}
# shows FILE: report prints that time passed while the holder slept.
shows() {
	"$profiltool" report -q "$1" | grep -qE '^ *[1-9][0-9]* .* holder blocked: sleep, '
}
check "turns have their lengths, and are the sum of their parts" turns
check "--limit prints as many" exits 0 "$profiltool" why -q -t back --limit 2 x.pb.gz
check "the slowest ones" grep -cE '^ +[0-9.]+  20[0-9-]+ [0-9:.]+ UTC  back \([0-9]+\)$' out

# --- A profile ---

sums() {
	"$profiltool" why -q -t back -o - -f folded x.pb.gz >back.folded && python3 -S -c '
lines = [l.rsplit(" ", 1) for l in open("back.folded")]
requests = [dict(w.split("=") for w in l.split()[3:]) for l in open("services.out") if l.startswith("request ")]
def near(begin, measured):
	ns, truth = sum(int(n) for l, n in lines if l.startswith(begin)), sum(int(r[measured]) for r in requests)
	print(begin, ns, truth)
	return abs(ns - truth) <= max(0.02 * truth, 10**6 * len(requests))
assert near("back blocked: lock,", "lock") and not [l for l, n in lines if l.startswith("back idle")]'
}
check "all blocked time as a profile: what its locks waited for" sums
check "in any format" exits 0 "$profiltool" why -q -t back -o back.pb.gz x.pb.gz
check "which others show" shows back.pb.gz
check "a format without a file" exits 2 "$profiltool" why -q -t back -f folded x.pb.gz

# --- Calls ---

# Each request of the client is a call of this function.
calls() {
	"$profiltool" why -q --json --limit 0 --span request x.pb.gz >calls.json && python3 -S -c '
import json
j = json.load(open("calls.json"))
made = sorted(tuple(int(w) for w in l.split()[1:3]) for l in open("services.out") if l.startswith("request "))
seen = sorted((c["since_ns"], c["ns"], c["comm"]) for c in j["slowest"])
print(made, seen)
assert j["span"] == "request" and j["turns"] == len(seen) == len(made) == 5
assert all(abs(ns - (end - begin)) <= max(0.02 * (end - begin), 10**6) and name == "client"
	for (begin, end), (_, ns, name) in zip(made, seen))
assert sum(n["ns"] for n in j["tree"] if n["depth"] == 0) == j["turns_ns"] == sum(ns for _, ns, _ in seen)'
}
check "calls of a function took as long as it measured" calls
# A recursion, longjmp(), pthread_exit(), a thread, a child: each once, besides two plain calls.
all_calls() {
	begin spans "$progs/spans"
	record_begin spans record --chains --span work -q -o spans.pb.gz -p "$pid"
	send_line spans go
	wait "$pid"
	wait "$recorder"
	"$profiltool" why -q --json --span work spans.pb.gz >spans.json && python3 -S -c '
import json
j = json.load(open("spans.json"))
print(j)
assert j["turns"] == 7 and len({c["tid"] for c in j["slowest"]}) == 4'
}
check "calls that return, jump out, end with their thread" all_calls
merged_calls() {
	"$profiltool" merge -q -o twice.pb.gz x.pb.gz x.pb.gz && "$profiltool" why -q --span request twice.pb.gz >twice &&
		grep -q "^10 calls of request: " twice
}
check "merged with itself, a recording has each call twice" merged_calls
check "a function whose calls were not recorded" exits 4 "$profiltool" why -q --span main x.pb.gz
check "which is said" grep -q 'no call of "main"' err
check "no recording of a function that is not there" exits 1 "$profiltool" record --chains --span "$progs/services:no_such" \
	-q -o y.pb.gz -a -d 0.1
check "which says why" grep -q 'services has no function "no_such": it may be inlined' err

# --- Options ---

read -r _ begin end _ < <(grep ^request services.out)
# shellcheck disable=SC2154 # set by sourced code
interval=(--since "$(second "$begin")" --until "$(second "$end")")
check "the same as text" exits 0 "$profiltool" why -q -t client "${interval[@]}" x.pb.gz
check "with a line for each part" grep -qE '^ +[0-9.]+ +[0-9.]+      front \([0-9]+\) [a-z]+: socket, woken by back' out
tid=$(sed -nE 's/.* (held|woken) by holder \(([0-9]+)\).*/\2/p' out | head -n 1)
check "a thread has a number" exits 0 "$profiltool" why -q --thread "$tid" "${interval[@]}" x.pb.gz
check "which is its own" grep -qE "^ +[0-9.]+ +100.00  holder \\($tid\\), from" out
check "what has less than --percent is one line" exits 0 "$profiltool" why -q -t client --percent 100 "${interval[@]}" x.pb.gz
check "and nothing else" grep -qE '^ +[0-9.]+ +100.00    \.\.\. [0-9]+ more$' out
check "all threads of a process" exits 0 "$profiltool" why -q -p back "${interval[@]}" x.pb.gz
check "those that did something" grep -cE '^ +[0-9.]+ +100.00  (back|holder) \([0-9]+\), from' out
check "a thread that is not there" exits 1 "$profiltool" why -q --thread nobody x.pb.gz
check "no thread" exits 2 "$profiltool" why x.pb.gz
check "two kinds of them" exits 2 "$profiltool" why --thread client -p client x.pb.gz
no_waits() {
	"$profiltool" convert -q --no-times x.pb.gz none.pb.gz && exits 1 "$profiltool" why -q --thread client none.pb.gz
}
check "a file without times of waits" no_waits
check "says what to record" grep -q -- 'record -a --chains' err
printf '%s\n' '0 =10 2 17 17 front,query=#7 main;[blocked: lock]' |
	"$build/tests/unit/times_make" number.pb.gz 1795000020000000000 1000 one chains
check "a label that is a number is no text" exits 1 "$profiltool" why -q -p front --by query number.pb.gz
check "and it is said what has texts" says "of PostgreSQL, PHP, Go and OpenTelemetry, and by --label query=VARIABLE of any program"

# --- What happens now ---

live() {
	begin live "$progs/services"
	record_begin now why -t back
	send_line live go
	wait "$pid"
	kill -INT "$recorder"
	wait "$recorder"
}
check "without a file it records" live
check "until it is stopped, and says what" grep -q 'recording the whole machine' now.err
check "the chain of what happened" grep -qE '^ .*  back blocked: lock,.* (held|woken) by holder' now.json
check "no process, no recording" exits 1 "$profiltool" why -p no-such-program -d 1
check "a file is not recorded" exits 2 "$profiltool" why -p back -d 1 x.pb.gz

finish
