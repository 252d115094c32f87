#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files for the Firefox Profiler: every number in them is one of the table that it refers to, and threads, stacks, times
# and weights are those of the profile.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; a shell expands
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

# Six seconds. Two threads of "web" are busy for 10 and 4 of 100 ms; "burst" for 150 ms from 2.3 s on.
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '5 25 240 17 18 web main;serve;send' \
	'2300 1 150 17 17 web main;work;compress' '0 - 7 17 18 web main;lost' |
	"$build/tests/unit/times_make" times.pb.gz 1795000000000000000 6000 one
printf 'main;"quotes" \\ \033[31m;bytes \xff 3\nmain 2\n' >hostile.folded
printf 'main;freed -3\nmain;kept 5\n' >signed.folded

check "written" exits 0 "$profiltool" convert times.pb.gz times.firefox.json
check "what it cannot hold is reported" says "the firefox format does not hold "
check "by -f, of text that is none" sh -c '"$1" convert -q -f firefox hostile.folded - >hostile.firefox.json' - "$profiltool"
check "values below 0 are lost, and it is said" exits 3 "$profiltool" convert -q signed.folded signed.firefox.json
check "compressed" "$profiltool" convert -q times.pb.gz times.firefox.json.gz
check "to what it is uncompressed" cmp times.firefox.json <(gzip -dc times.firefox.json.gz)
check "it is not read" exits 1 "$profiltool" report times.firefox.json
check "but named" says "a profile for the Firefox Profiler"
python3 - >lines.cg <<'EOF_PYTHON'
print("""events: Ir
ob=/lib/libx.so
fl=/src/a.c
fn=(1) outer
3 5
fi=/src/b.h
7 2
fe=/src/a.c
fn=(2) inner
9 4""")
EOF_PYTHON
check "source lines" "$profiltool" convert -q lines.cg lines.firefox.json

# about FILE EXPRESSION: a Python expression about the file j and its threads: lists of (STACK, TIME, WEIGHT), by name and
# TID. A stack has the names of its functions.
about() {
	python3 -S -c '
import json, sys
j = json.load(open(sys.argv[1]))
shared, meta = j["shared"], j["meta"]
assert (meta["preprocessedProfileVersion"], meta["version"]) == (61, 24)

# The columns of a table are as long as it is. Those that refer to another hold numbers of it, or none.
def table(t, references):
	for name, column in t.items():
		if isinstance(column, list):
			assert len(column) == t["length"], name
	for name, (size, empty) in references.items():
		assert all(isinstance(n, int) and 0 <= n < size or (empty and n in (None, -1)) for n in t[name]), name
texts = len(shared["stringArray"])
assert len(set(shared["stringArray"])) == texts
for c in meta["categories"]:
	assert c["subcategories"] == ["Other"]
assert [c["color"] for c in meta["categories"]].count("grey") == 1
stacks, frames, functions = shared["stackTable"], shared["frameTable"], shared["funcTable"]
table(stacks, {"frame": (frames["length"], False), "prefix": (stacks["length"], True)})
assert all(p is None or p < i for i, p in enumerate(stacks["prefix"]))
table(frames, {"func": (functions["length"], False), "category": (len(meta["categories"]), False)})
table(functions, {"name": (texts, False), "resource": (shared["resourceTable"]["length"], True),
	"source": (shared["sources"]["length"], True)})
table(shared["resourceTable"], {"lib": (len(j["libs"]), False), "name": (texts, False)})
table(shared["sources"], {"filename": (texts, False)})
table(shared["nativeSymbols"], {})

def text(number):
	return shared["stringArray"][number]
def stack(number):
	names = []
	while number is not None:
		names.append(text(functions["name"][frames["func"][stacks["frame"][number]]]))
		number = stacks["prefix"][number]
	return names[::-1]
threads = {}
for t in j["threads"]:
	samples = t["samples"]
	table(samples, {"stack": (stacks["length"], True)})
	table(t["markers"], {})
	assert isinstance(t["pid"], str) and samples["time"] == sorted(samples["time"])
	threads[t["name"], t["tid"]] = [(stack(s), at, weight) for s, at, weight in
		zip(samples["stack"], samples["time"], samples["weight"])]
value = eval("(" + sys.argv[2] + ")")
print(value)
sys.exit(not value)' "$@"
}
check "threads, in their process" about times.firefox.json 'sorted(threads) == [("web", 17), ("web", 18)] and
	[(t["pid"], t["processName"], t["isMainThread"]) for t in j["threads"]] == [("17", "web", True), ("17", "web", False)]'
check "with all of their samples" about times.firefox.json \
	'[sum(w for s, at, w in threads[n]) for n in sorted(threads)] == [750, 247]'
check "each at its time" about times.firefox.json '(lambda t:
	[at for s, at, w in t if s == ["main", "serve", "parse"]] == [10 * i for i in range(600)] and
	[at for s, at, w in t if s == ["main", "work", "compress"]] == [2300 + i for i in range(150)])(threads["web", 17])'
check "when it began" about times.firefox.json '(meta["startTime"], meta["profilingEndTime"]) == (1795000000000, 6000)'
check "what has no time follows" about times.firefox.json '(lambda t: t[-1][0] == ["main", "lost"] and t[-1][2] == 7 and
	t[-1][1] > t[-2][1])(threads["web", 18])'
check "a sample is CPU time" about times.firefox.json 'meta["sampleUnits"]["threadCPUDelta"] == "ns" and
	set(j["threads"][0]["samples"]["threadCPUDelta"]) == {meta["interval"] * 1000000}'
check "without times, samples follow each other" about signed.firefox.json \
	'list(threads.values()) == [[(["main", "kept"], 0, 5)]]'
check "names are text" about hostile.firefox.json \
	'{(tuple(s), at, w) for t in threads.values() for s, at, w in t} ==
	{(("main", "\"quotes\" \\ \x1b[31m", "bytes \ufffd"), 0, 3), (("main",), 3, 2)}'
"$profiltool" convert -q --value cpu times.pb.gz cpu.firefox.json
check "CPU time in milliseconds" about cpu.firefox.json \
	'{t["samples"]["weightType"] for t in j["threads"]} == {"tracing-ms"} and
	[round(sum(w for s, at, w in threads[n])) for n in sorted(threads)] == [750, 247]'
check "functions, their files and lines" about lines.firefox.json '(lambda f: sorted((text(f["name"][i]),
	text(shared["sources"]["filename"][f["source"][i]]), j["libs"][f["resource"][i]]["path"]) for i in range(f["length"])) ==
	[("inner", "/src/a.c", "/lib/libx.so"), ("outer", "/src/a.c", "/lib/libx.so"),
	("outer", "/src/b.h", "/lib/libx.so")] and sorted(frames["line"]) == [3, 7, 9])(functions)'

# --- Waits ---

printf '%s\n' '0 1 150 17 17 web main;serve' '200 =250 2 17 17 web main;poll;[idle: sleep]' \
	'700 =30 1 17 17 web main;serve;[blocked: disk]' '730 =4 1 17 17 web main;serve;[runnable: no free CPU]' |
	"$build/tests/unit/times_make" waits.pb.gz 1795000000000000000 1000 one wall
check "waits are written" exits 0 "$profiltool" convert -q --value wall waits.pb.gz waits.firefox.json
check "a wait has its time and its length" about waits.firefox.json '(lambda t:
	[(s, at, w) for s, at, w in t if w != 1] == [(["main", "poll", "[idle: sleep]"], 200, 250),
	(["main", "poll", "[idle: sleep]"], 450, 250), (["main", "serve", "[blocked: disk]"], 700, 30),
	(["main", "serve", "[runnable: no free CPU]"], 730, 4)] and
	[at for s, at, w in t if w == 1] == list(range(150)))(threads["web", 17])'
check "and its state as a category" about waits.firefox.json '(lambda categories: categories ==
	["User", "Idle", "Blocked", "Runnable (no free CPU)"])([meta["categories"][frames["category"][stacks["frame"][s]]]["name"]
	for s in dict.fromkeys(s for t in j["threads"] for s in t["samples"]["stack"])])'

finish
