#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Files: other readers agree with ours, ours with other writers; conversion from one format to another and
# back; corrupt files are refused with the place and the reason.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# --- One recording, in both formats ---

shares=$progs/shares
check "a program runs" start_ready "$shares" 2
check_recorded "recorded as pprof" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -o "$work/a.pb.gz"
check_recorded "recorded as gperftools" exits 0 until_used "$pid" 500 "$profiltool" -p "$pid" -F 999 -o "$work/b.prof"
check_recorded "what the format loses is reported" says "the gperftools format does not hold"
stop "$pid"

# ours FILE: "SAMPLES FUNCTION" of the functions with samples, busiest first, and the sum.
ours() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import json, sys
rows = [(f["self"], f["name"]) for f in json.load(sys.stdin)["functions"] if f["self"]]
for row in rows:
	print(*row)
print(sum(row[0] for row in rows), "TOTAL")'
}

# google_pprof BINARY FILE: the same by the reader of gperftools.
google_pprof() {
	google-pprof --text "$1" "$2" 2>/dev/null |
		awk '/^Total:/ { total = $2; next } $1 > 0 { print $1, $6 } END { print total, "TOTAL" }'
}

# go_pprof FILE...: the same by Go's, which counts samples when it is asked to.
go_pprof() {
	HOME=$work go tool pprof -sample_index=samples -top -nodecount=1000 -nodefraction=0 "$@" \
		2>/dev/null | awk '/ total$/ { total = $(NF - 1) }
			table && $1 > 0 { print $1, $6 } / flat% / { table = 1 }
			END { print total, "TOTAL" }'
}

# same A B: whether two such lists are one, but for the order of equal counts.
same() {
	diff <(sort -k1,1nr -k2 "$1") <(sort -k1,1nr -k2 "$2")
}

ours "$work/a.pb.gz" >"$work/a.ours"
ours "$work/b.prof" >"$work/b.ours"
check_recorded "the busiest function is known" grep -q burn_sixty <(head -n 1 "$work/b.ours")
if command -v google-pprof >/dev/null; then
	google_pprof "$shares" "$work/b.prof" >"$work/b.google"
	check_recorded "google-pprof: the same functions, samples and total" same "$work/b.ours" "$work/b.google"
else
	skip "google-pprof" "it is not installed"
fi
if command -v go >/dev/null; then
	go_pprof "$work/a.pb.gz" >"$work/a.go"
	check_recorded "go tool pprof, pprof: the same" same "$work/a.ours" "$work/a.go"
	go_pprof "$shares" "$work/b.prof" >"$work/b.go"
	check_recorded "go tool pprof, gperftools: the same" same "$work/b.ours" "$work/b.go"
else
	skip "go tool pprof" "it is not installed"
fi

# --- From one to the other and back ---

# stacks FILE: every stack with its count, of all threads and modes together.
stacks() {
	"$profiltool" dump --json "$1" | python3 -c '
import collections, json, sys
counts = collections.Counter()
for stack in json.load(sys.stdin)["stacks"]:
	counts[tuple(stack["pcs"])] += stack["count"]
for pcs, count in sorted(counts.items()):
	print(count, *pcs)'
}

there_and_back() {
	"$profiltool" convert "$work/a.pb.gz" "$work/a.prof" &&
		"$profiltool" convert "$work/a.prof" "$work/back.pb.gz" &&
		diff <(stacks "$work/a.pb.gz") <(stacks "$work/a.prof") &&
		diff <(stacks "$work/a.pb.gz") <(stacks "$work/back.pb.gz")
}
check_recorded "pprof to gperftools and back: the same stacks" there_and_back
ours "$work/back.pb.gz" >"$work/back.ours"
check_recorded "pprof to gperftools and back: the same stacks: the same functions" \
	same "$work/a.ours" "$work/back.ours"
check_recorded "a format by its name" exits 0 "$profiltool" convert -f gperftools "$work/a.pb.gz" "$work/named"
# Functions: what stands in <() runs also where check_recorded skips the row.
named() {
	"$profiltool" dump --json "$work/named" | grep -q '"gperftools"'
}
through_pipes() {
	diff <(stacks "$work/a.pb.gz") \
		<(stacks <("$profiltool" convert -f gperftools - - <"$work/a.pb.gz" 2>/dev/null))
}
check_recorded "a format by its name: is written" named
check_recorded "through pipes" through_pipes
check "a format that does not exist" exits 2 "$profiltool" convert -f perf.data "$work/a.pb.gz" "$work/x"
check "says which are" says "pprof"

# --- What gperftools' own profiler wrote ---

# The stacks are its own; the leaves are compared, which no reader's heuristics touch.
leaves() {
	"$profiltool" dump --json "$1" | python3 -c '
import collections, json, sys
j = json.load(sys.stdin)
print(j["samples"], len(j["mappings"]) > 3, j["bits"])'
}
profiler=$(ldconfig -p | sed -n 's/.*libprofiler\.so.* => //p' | head -n 1)
if [ -n "$profiler" ] && command -v google-pprof >/dev/null; then
	CPUPROFILE=$work/real.prof CPUPROFILE_FREQUENCY=250 LD_PRELOAD=$profiler \
		"$shares" 1 1.2 stay >/dev/null 2>"$work/real.err"
	ours "$work/real.prof" | grep -v ' 0x\|+0x' | head -n 3 | cut -d ' ' -f 2 >"$work/real.ours"
	google_pprof "$shares" "$work/real.prof" | head -n 3 | cut -d ' ' -f 2 >"$work/real.google"
	check "gperftools' own file: the same busiest functions" \
		diff "$work/real.ours" "$work/real.google"
	check "gperftools' own file: the same total" \
		diff <(ours "$work/real.prof" | tail -n 1) <(google_pprof "$shares" "$work/real.prof" | tail -n 1)
else
	skip "a file of gperftools' own" "libprofiler or google-pprof is not installed"
fi

# --- Broken files ---

size=$(stat -c %s "$work/b.prof")
: >"$work/empty"
head -c 60 "$work/b.prof" >"$work/cut.prof"
head -c 200 "$work/a.pb.gz" >"$work/cut.pb.gz"
head -c "$size" /dev/urandom >"$work/noise"
for command in report dump convert; do
	out=()
	[ $command = convert ] && out=("$work/broken.out.pb.gz")
	for file in empty cut.prof cut.pb.gz noise; do
		check "$command of $file is refused" exits 1 "$profiltool" $command "$work/$file" "${out[@]}"
		check "$command of $file names it" says "$work/$file"
	done
	check "$command leaves no half of a result" test ! -e "$work/broken.out.pb.gz"
done
check "a cut file: the place is reported" exits 1 "$profiltool" dump "$work/cut.prof"
check_recorded "as an offset" says "at byte"

# --- Files that writers may come to write ---

# Those that break a rule of the format are read all the same when other readers do; not strictly.
for file in "$data"/gperftools/strict/ok-*.prof; do
	check "strictly: ${file##*/}" exits 0 "$profiltool" dump --strict "$file"
done
for file in "$data"/gperftools/strict/bad-*.prof; do
	check "strictly: ${file##*/}" exits 1 "$profiltool" dump --strict "$file"
done
while read -r name want; do
	check "$name: as many samples as google-pprof saw" \
		json "j['samples'] == $want" <("$profiltool" dump --json "$data/gperftools/$name" 2>/dev/null)
done < <(grep -v '^#' "$data/gperftools/totals")

finish
