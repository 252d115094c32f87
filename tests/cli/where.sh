#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recordings with waits say first where the time went: states, and for what, in which function; and which waits were
# longer in an interval.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit 1

check "threads of many kinds: recorded" exits 0 "$profiltool" record -F 4999 --wall --max-overhead 0 -q -o kinds.pb.gz -- \
	"$progs/states" 1

# --- The first screen ---

has_both_tables() {
	"$profiltool" report -q kinds.pb.gz >out || return
	cat out
	awk '{ sub(/ +$/, "") }
		NR == 1 { ok = /^on CPU  +[0-9.]+ s +[0-9.]+ %/ }
		NR == 2 { ok = ok && /^runnable .* no free CPU$/ }
		NR == 3 { ok = ok && /^blocked .*, lock / }
		NR == 4 { ok = ok && /^idle / }
		NR == 5 { work = ok && /^wall s +wall% +function +image +states$/ }
		work && / want_mutex +states +lock [0-9.]+/ { mutex = 1 }
		/^$/ { work = 0 }
		/^wall s +wall% +state +function +image +who$/ { waits = 1 }
		waits && / blocked: lock +want_mutex +states / { lock = 1 }
		/^ *self +self%/ { cpu = 1 }
		END { exit !(ok && mutex && lock && !cpu) }' out
}
check "report prints states and their places, then the program's functions, then waits; not samples" has_both_tables
check "JSON has them, too" exits 0 "$profiltool" report -q --json kinds.pb.gz
check "the waits, and no others, are in the list, the idle ones last" json "(lambda w: len(w) > 10 and
	set(r['state'] for r in w) <= {'runnable', 'blocked', 'idle'} and
	[r['state'] == 'idle' for r in w] == sorted(r['state'] == 'idle' for r in w) and
	any(r['function'] == 'want_mutex' and r.get('reason') == 'lock' and r['who'] for r in w))(j['waits'])" out
reasons_add_up() {
	"$profiltool" report -q --json kinds.pb.gz >out && "$profiltool" report -q --by reason --json kinds.pb.gz >rows &&
		python3 - <<'END'
import json
wall, rows = json.load(open("out")), json.load(open("rows"))["rows"]
for state in "blocked", "idle":
	by = {k: v for k, v in wall["wall"][state + "_by"].items() if k != "unknown"}
	found = {r["reason"]: r["self"] for r in rows if r["state"] == state}
	print(by, found)
	assert by == found
	waits = sum(w["wall_ns"] for w in wall["waits"] if w["state"] == state)
	assert waits == sum(found.values()), waits
END
}
check "--by reason and the waits have the times of the account of reasons" reasons_add_up
check "the options for one table print it alone" exits 0 "$profiltool" report -q --by function kinds.pb.gz
check "its header is the first line" grep -Eq '^ *self +self%' <(head -n 1 out)
one_line() {
	"$profiltool" report -q --by line --value wall kinds.pb.gz >out || return
	cat out
	grep -q ' want_mutex  *states$' out && ! grep -q '\[blocked: lock\]' out
}
check "--by line: a wait is at the line that waits" one_line

# A screen of 24 lines has all of it, the reasons are not cut, and what is wrong is last.
fits() {
	NO_COLOR=1 terminal "$1" "$profiltool" report kinds.pb.gz >screen || return
	cat screen
	awk -v columns="${1%x*}" 'NR > 1 && length > columns { exit 1 } { lines++ }
		/^kinds.pb.gz, [0-9]+ threads, [0-9.]+ s \([0-9.]+ thread seconds\)$/ { head = NR }
		/^on CPU / { states = NR }
		/^wall s +wall% +function +(image +)?states$/ { work = NR }
		/^wall s +wall% +state +function +who/ { waits = NR }
		waits && /  (runnable|blocked: [a-z]+) / { rows++ }
		END { exit !(head == 1 && states == 2 && work >= 6 && waits > work + 3 && rows >= 3 && lines < 24) }' screen
}
check "80 columns and 24 lines have states, the program's functions and waits" fits 80x24

# A service whose framework calls it: its own functions are what divides the time, not those that all are in.
mkdir -p lib/python3
cat >lib/python3/framework.py <<'END'
import concurrent.futures, threading, time
def handle(app, path):
	return app(path)
def serve(app, paths, seconds):
	pool = concurrent.futures.ThreadPoolExecutor(4)
	end = time.time() + seconds
	while time.time() < end:
		for request in [pool.submit(handle, app, path) for path in paths]:
			request.result()
END
cat >service.py <<'END'
import threading, time
import framework
lock = threading.Lock()
def tax(n):
	return sum(i * i for i in range(n))
def reserve():
	time.sleep(0.03)
	with lock:
		time.sleep(0.02)
def route_order():
	reserve()
def route_price():
	tax(1000000)
def app(path):
	route_order() if path == "order" else route_price()
framework.serve(app, ["order", "order", "price"], 3)
END
python=$(python3 -c 'import sys; print(sys.executable)')
check "a service: recorded" exits 0 env PYTHONPATH=lib/python3 "$profiltool" record -F 999 --wall --max-overhead 0 -q \
	-o service.pb.gz -- "$python" -S service.py
divides_by_routes() {
	NO_COLOR=1 terminal 80x24 "$profiltool" report service.pb.gz >screen || return
	cat screen
	awk '{ sub(/\r$/, ""); sub(/ +$/, "") }
		/^(blocked|idle) .*\([A-Za-z_.]+\)/ { place = 1 }
		/^wall s +wall% +function +(image +)?states$/ { work = 1 }
		/^$/ { work = 0 }
		work && $3 == "route_order" && / sleep [0-9.]+/ && / lock [0-9.]+/ { order = 1 }
		work && $3 == "route_price" && / on CPU [0-9.]+/ { price = 1 }
		work && ($3 == "app" || $3 == "handle") { other = 1 }
		END { exit !(place && order && price && !other) }' screen
}
check "rows are of the program's functions that divide its time, with their states" divides_by_routes

# --- Without waits ---

check "a recording without waits" exits 0 "$profiltool" record -q -o none.pb.gz -- python3 -S -c 'sum(range(10000000))'
check_rows <<'END'
NAME --by reason of a recording without waits says which has them
RUN "$profiltool" report --by reason none.pb.gz
STATUS 1
EXPECT profiltool record --wall records waits

NAME diff --by wait needs waits of both
RUN "$profiltool" diff --by wait none.pb.gz kinds.pb.gz
STATUS 1
EXPECT profiltool record --wall records waits

NAME --against chooses among waits where there are some
RUN "$profiltool" report --around +0.1s --for 0.1s --against rest --state blocked none.pb.gz
STATUS 2
EXPECT profiltool record --wall records them
END
no_waits() {
	"$profiltool" report -q none.pb.gz | head -n 1 | grep -q '^ *samples\|^ *self' &&
		"$profiltool" report -q --json none.pb.gz >out && json "'waits' not in j" out
}
check "without waits there is one table" no_waits
first_line() {
	terminal 80x24 "$profiltool" report none.pb.gz | head -n 2 | tr '\n' ' ' >screen
	cat screen
	grep -qE '^none.pb.gz, [0-9]+ threads?, [0-9.]+ s: +on CPU [0-9.]+ [s%]' screen
}
check "the first line on a terminal has its states all the same" first_line
tree_ends() {
	terminal 80x24 "$profiltool" report --tree none.pb.gz | tail -n 3 >screen
	cat screen
	grep -q '^none.pb.gz, .* s:' screen && tail -n 1 screen | grep -qE '^[0-9]+ % in '
}
check "a tree on a terminal ends with what it comes to" tree_ends
# The account of members, which each recording has, and that of all threads, which --wall has: by two programs.
check "the account of a recording with waits, as JSON" exits 0 "$profiltool" report -q --json kinds.pb.gz
check "times of threads are in the account as in that of --wall, but for what came before the command" json \
	"(j['threads'] == j['wall']['threads'] and 0 <= j['wall_ns'] - j['wall']['wall_ns'] + 1e7 < 5e9 and
	abs(j['runnable_ns'] - j['wall']['runnable_ns']) <= j['wall']['runnable_ns'] / 100 + 5e6 and
	j['cpu_ns'] + j['runnable_ns'] < j['wall_ns'])" out

# --- What was longer in an interval ---

# A thread takes a lock now and then; for a second another one holds it.
cat >held.py <<'END'
import threading, time
lock = threading.Lock()
def wait_for_lock():
	with lock:
		pass
def work():
	while True:
		wait_for_lock()
		time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
time.sleep(1)
with lock:
	print(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(t := time.time() + 0.1)) + f"{t % 1:.3f}"[1:], flush=True)
	time.sleep(1)
END
export TZ=UTC
check "a lock that is held for a second: recorded" exits 0 "$profiltool" record --wall --max-overhead 0 -q -o held.pb.gz -- \
	python3 -S held.py
when=$(grep -m 1 '^20' out)
check "--against: of one interval" exits 0 "$profiltool" report -q --json --since "$when" --for 0.8s --against before held.pb.gz
check "--against has the wait for the lock, which is one: chance cannot judge it" json "[r for r in j['rows']
	if r['what'] == 'wait' and r['state'] == 'blocked' and r['reason'] == 'lock' and r['function'] == 'wait_for_lock' and
	r['wait_percent'] > 90 and r['other_wait_percent'] < 50 and r['waits'] == 1 and 'p' not in r]" out
check "the table marks it, and the summary says why" exits 0 "$profiltool" report --since "$when" --for 0.8s --against before \
	held.pb.gz
check "the table marks it" grep -Eq '  ~  blocked: lock +wait_for_lock ' out
check "the summary says why" says "of waits that are too few for chance to judge (p ~)"
check "--reason chooses waits of --against" exits 0 "$profiltool" report -q --json --reason lock --since "$when" --for 0.8s \
	--against before held.pb.gz
check "--reason chooses waits of --against" json "[r['reason'] for r in j['rows']] == ['lock']" out
check "diff compares waits, and judges them" exits 0 "$profiltool" diff -q --json --by wait held.pb.gz held.pb.gz
check "diff compares waits, and judges them" json "len(j['rows']) > 3 and all(r['difference'] == 0 and not r['significant']
	for r in j['rows'])" out
finish
