#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A profile with three values: samples, their CPU time, and a time that no clock counts. Each view shows each.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

cat >"$work/a.callgrind" <<'TXT'
# callgrind format
version: 1
creator: test
desc: Period: 10000000 ns
cmd: ./server
positions: line
events: samples ns delay(nanoseconds)

fl=server.c
fn=serve
10 30 300000000 5000000
fn=parse
20 20 200000000 7000000
TXT
a=$work/a.pb.gz
check "convert writes all values to pprof" exits 0 "$profiltool" convert "$work/a.callgrind" "$a"
check "convert to pprof reports no loss" test ! -s "$work/err"
check "dump prints the three types" exits 0 "$profiltool" dump "$a"
check "dump prints all values of a stack" grep -q '^20,200000000,7000000 .*parse' "$work/out"

# shows VALUE PARSE SERVE: the report by this value has these numbers, in its order.
shows() {
	"$profiltool" report --json --value "$1" "$a" >"$work/out" 2>"$work/err" &&
		json "sorted((f['self'], f['name']) for f in j['functions']) == sorted([($2, 'parse'), ($3, 'serve')])" \
			"$work/out"
}
check "report counts samples" shows samples 20 30
check "report counts CPU time" shows cpu 200000000 300000000
check "report counts the third value" shows delay 7000000 5000000
check "the largest of the third value is first" json "j['functions'][0]['name'] == 'parse'" "$work/out"

check "merge adds each value" exits 0 "$profiltool" merge "$a" "$a" -o "$work/sum.pb.gz"
check "merge: twice as much" grep -q '^40,400000000,14000000 .*parse' <("$profiltool" dump "$work/sum.pb.gz")
check "a format of one value names the others as lost" exits 0 "$profiltool" convert --value delay "$a" "$work/a.folded"
check "a format of one value: which it has" says "delay is written"
check "a format of one value: the numbers" grep -qx 'parse 7000000' "$work/a.folded"
sed -E '/^events|^[0-9]/s/ [^ ]*$//' "$work/a.callgrind" >"$work/two.callgrind"
check "CPU time that follows from the period is not lost" exits 0 "$profiltool" convert "$work/two.callgrind" "$work/two.folded"
check "CPU time that follows: no word of it" test -z "$(grep -o 'is written' "$work/err")"

check "diff by the third value" exits 0 "$profiltool" diff --json --value delay "$a" "$work/sum.pb.gz"
check "diff: chance is unknown for times that no clock counts" exits 1 "$profiltool" diff --significant --value delay "$a" "$work/sum.pb.gz"
finish
