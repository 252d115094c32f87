#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Reads Callgrind files of callgrind, cachegrind, google-pprof and Go's pprof. Each function's own costs are
# those of callgrind_annotate.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

# ours FILE...: prints "EVENT FUNCTION COST" for each cost of a function, in all images together.
ours() {
	"$profiltool" report --json "$@" 2>/dev/null | python3 -c '
import collections, json, sys
costs = collections.Counter()
for f in json.load(sys.stdin)["functions"]:
	for event, cost in f.get("values", {"": f["self"]}).items():
		costs[event, f["name"]] += cost
for (event, name), cost in costs.items():
	if cost:
		print(event, name, cost)' | sort
}

# annotated FILE: the same by callgrind_annotate, which has a row for each file of a function.
annotated() {
	callgrind_annotate --threshold=100 --auto=no --show-percs=no "$1" 2>/dev/null | python3 -c '
import collections, re, sys
events, costs = [], collections.Counter()
for line in sys.stdin:
	if line.startswith("Events shown:"):
		events = line.split()[2:]
	fields = line.rstrip("\n").split(None, len(events))
	if not events or len(fields) <= len(events) or not re.match("[0-9,.]+$", fields[0]):
		continue
	if fields[-1].startswith("PROGRAM TOTALS"):
		continue
	name = re.sub(r" \[[^][]*\]$", "", fields[-1].split(":", 1)[1])
	for event, cost in zip(events, fields):
		costs[event if len(events) > 1 else "", name] += int("0" + re.sub("[,.]", "", cost))
for (event, name), cost in costs.items():
	if cost:
		print(event, name, cost)' | sort
}

same() {
	[ -s "$1" ] && diff "$1" "$2"
}

# agrees NAME FILE: checks that both have the same costs, and that --strict accepts the file.
# callgrind_annotate takes the cost of an uncounted call, one that began in an earlier part, for the caller's
# own cost: it gets the file without those.
agrees() {
	check "$1: breaks no rule" exits 0 "$profiltool" report --strict "$2"
	awk '/^calls=0 / { getline; next } 1' "$2" >counted
	ours "$2" >list.ours
	annotated counted >list.annotated
	check "$1: the same costs of each function" same list.ours list.annotated
}

total() {
	"$profiltool" dump --json "$@" 2>/dev/null |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["samples"])'
}

# --- valgrind ---

cat >calls.c <<'END'
#include <pthread.h>
#include <stddef.h>

static int leaf(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i & 1 ? i : -n;
	return sum;
}

static int recurse(int n)
{
	return n ? recurse(n - 1) + leaf(n) : 0;
}

static void *work(void *result)
{
	*(int *)result = recurse(5) + leaf(100);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int a, b;

	if (pthread_create(&thread, NULL, work, &a))
		return 1;
	work(&b);
	pthread_join(thread, NULL);
	return a != b;
}
END

# grind NAME OPTION...: runs the program under callgrind.
grind() {
	local name=$1
	shift
	valgrind -q --tool=callgrind --callgrind-out-file="$name" "$@" ./calls
}

if command -v valgrind >/dev/null && command -v callgrind_annotate >/dev/null &&
	${CC:-cc} -O1 -g -fno-inline calls.c -o calls -pthread; then
	check "callgrind runs" grind plain
	agrees "callgrind" plain
	check "its total" test "$(total plain)" = "$(sed -n 's/^summary: //p' plain)"
	check "the functions' files and lines" grep -q . <("$profiltool" report --json plain |
		grep '"leaf", "image": ".*/calls"')
	check "the process" grep -q " \[$(sed -n 's/^pid: //p' plain)/0\] # leaf" <("$profiltool" dump plain)

	check "with instructions and jumps" grind instr --dump-instr=yes --collect-jumps=yes
	agrees "instructions and jumps" instr
	address=$(nm calls | sed -n 's/^0*\([0-9a-f]*\) t leaf$/\1/p')
	check "addresses are those of the file" grep -q "0x$address .*# leaf" <("$profiltool" dump instr)

	check "without compression" grind long --compress-strings=no --compress-pos=no --dump-instr=yes
	agrees "without compression" long
	check "with caches and branches" grind sim --cache-sim=yes --branch-sim=yes
	agrees "caches and branches" sim
	check "without lines" grind lines --dump-line=no
	agrees "without lines" lines
	check "with recursion and callers apart" grind apart --separate-recs=3 --separate-callers=2
	agrees "recursion and callers apart" apart

	check "several parts in a file" grind parts --combine-dumps=yes --dump-before=work
	agrees "several parts" parts
	check "several parts in a file: are several" test "$(grep -c ^events: parts)" -gt 1
	check "several parts in a file: their totals are summed up" \
		test "$(total parts)" = "$(awk '/^totals: / { s += $2 } END { print s }' parts)"

	check "a file for each thread" grind threads --separate-threads=yes
	agrees "the first thread" threads-01
	agrees "the second thread" threads-02
	check "threads have their numbers" grep -q "/2\] # work" <("$profiltool" dump threads-02)
	check "both together" test "$(ours threads-01 threads-02 | awk '{ s += $NF } END { print s }')" = \
		$(($(total threads-01) + $(total threads-02)))
	check "the empty file beside them is refused" exits 1 "$profiltool" report threads
	check "the empty file beside them is refused: the reason is reported" says "is empty"

	check "cachegrind runs" valgrind -q --tool=cachegrind --cache-sim=yes \
		--cachegrind-out-file=cache ./calls
	agrees "cachegrind" cache
else
	skip "valgrind" "valgrind or a compiler is not installed"
fi

# --- pprof ---

# A pc without a name has none in Callgrind's format, and its image's in the table.
go_top() {
	HOME=$work go tool pprof -sample_index=samples -top -nodecount=10000 -nodefraction=0 "$@" \
		2>/dev/null | awk 'table && $1 > 0 { cost = $1; $1 = $2 = $3 = $4 = $5 = ""
			sub(/^ +/, ""); sub(/ \(inline\)$/, ""); sub(/^\[.*\]$/, "???"); sum[$0] += cost }
			/ flat% / { table = 1 } END { for (name in sum) print " " name " " sum[name] }' | sort
}

go_callgrind() {
	HOME=$work go tool pprof -sample_index=samples -callgrind -nodecount=10000 -nodefraction=0 \
		-edgefraction=0 -output="$1" "${@:2}" 2>/dev/null
}

profiler=$(ldconfig -p | sed -n 's/.*libprofiler\.so.* => //p' | head -n 1)
if [ -n "$profiler" ] && command -v google-pprof >/dev/null && command -v go >/dev/null; then
	CPUPROFILE=$work/cpu.prof CPUPROFILE_FREQUENCY=500 LD_PRELOAD=$profiler \
		"$progs/shares" 1 0.7 stay >/dev/null 2>&1
	google-pprof --callgrind "$progs/shares" cpu.prof >google 2>/dev/null
	agrees "google-pprof" google
	check "Go's pprof writes" go_callgrind go "$progs/shares" cpu.prof
	check "Go's pprof: breaks no rule" exits 0 "$profiltool" report --strict go
	ours go >list.ours
	go_top "$progs/shares" cpu.prof >list.top
	check "Go's pprof: the same costs of each function as in its own table" same list.ours list.top
else
	skip "pprof" "libprofiler, google-pprof or go is not installed"
fi

# --- Errors, pipes ---

cat >small <<'END'
events: t
fl=a.c
fn=f
1 5
2 oops
END
check "an error" exits 1 "$profiltool" report small
check "reports the line" says "small:5: a cost is not a number"
check "what comes before it is there" test "$(total --salvage small)" = 5
check "through a pipe" test "$(head -n 4 small | total -)" = 5
check "in gzip" test "$(head -n 4 small | gzip | total -)" = 5
check "what other readers take" exits 0 "$profiltool" report <(printf 'events: t\n fn=f\n1 1\n')
check "what other readers take: reported" says "line 2: the line begins with a blank"
check "or refused" exits 1 "$profiltool" report --strict <(printf 'events: t\n fn=f\n1 1\n')

# --- Files that writers may come to write, and their totals ---

for file in "$data"/callgrind/*.cg; do
	name=${file##*/}
	want=$(sed -n "s/^$name //p" "$data/callgrind/totals")
	if [ -n "$want" ]; then
		check "$name: the total" test "$(total "$file")" = "$want"
	else
		check "$name is refused" exits 1 "$profiltool" report "$file"
	fi
done
check "relative costs are reported" exits 1 "$profiltool" report --strict "$data/callgrind/relative-costs.cg"
check "with their line" says "line 13: a cost is relative to the previous line's"
check "a callee's file holds until the next" exits 0 \
	"$profiltool" report --strict "$data/callgrind/cfl-persists.cg"

# Other readers of pprof files show the last event, unless the file has a default type.
cat >"$work/events.callgrind" <<-END
	# callgrind format
	events: Ir Dr Dw
	fl=a.c
	fn=work
	1 100 20 3
END
if command -v go >/dev/null; then
	check "several events as pprof" exits 0 "$profiltool" convert "$work/events.callgrind" \
		"$work/events.pb.gz"
	check "go tool pprof shows the first event, as we do" grep -q "Type: Ir" \
		<(HOME=$work go tool pprof -top "$work/events.pb.gz" 2>/dev/null)
	check "several events, converted back from pprof" \
		exits 0 "$profiltool" convert "$work/events.pb.gz" "$work/back.callgrind"
	check "with nothing that only pprof has" test -z "$(grep "what only pprof" "$work/err")"
fi

finish
