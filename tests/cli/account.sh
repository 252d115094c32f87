#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The counters of the account (user/util/account.h): with a different number in each, every output has all.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # functions are called by check; eval expands it
. "$(dirname "$0")/../lib.sh"

mapfile -t names < <(sed -n 's/^\tX(\([a-z_]*\),.*/\1/p' "$top/user/util/account.h")

# entry NAME: prints what the table says of a counter.
entry() {
	tr -d '\n' <"$top/user/util/account.h" | sed 's/\tX(\|#define/\n/g' | grep "^$1,"
}

# numbers FACTOR: a line "NAME NUMBER" for each counter. The number of one that is a sum is multiplied.
numbers() {
	local i
	for i in "${!names[@]}"; do
		if [[ $(entry "${names[i]}") =~ ACCOUNT_(MAX|MEAN|FIRST) ]]; then
			echo "${names[i]} $((70001 + i))"
		else
			echo "${names[i]} $(((70001 + i) * $1))"
		fi
	done
}

# A comment "profil:NAME=NUMBER" in a pprof file is a counter.
{
	printf '# callgrind format\nversion: 1\ndesc: Period: 10000000 ns\ndesc: Comment: profil:stacks=cfi\n'
	numbers 1 | sed 's/\(.*\) \(.*\)/desc: Comment: profil:\1=\2/'
	printf 'desc: Comment: profil:%s\n' lost.ring_full=80001 "stack_end.gap=80002 /lib/gap.so" \
		"throttled=80003 80004 80005 80006000 80007000 /throttled"
	printf 'positions: line\nevents: samples\nfl=a.c\nfn=f\n10 70002\n'
} >"$work/comments.callgrind"
numbers 1 >"$work/once"
numbers 2 >"$work/twice"

# dumps FILE NUMBERS: dump prints a line for each counter, with its number.
dumps() {
	"$profiltool" dump "$1" >"$work/dumped" && ! grep -vxFf "$work/dumped" "$2"
}

# has_in_json COMMAND...: it prints JSON with each counter's number.
has_in_json() {
	"$@" >"$work/json" 2>"$work/err" && python3 -c '
import json, sys
def numbers(value):
	values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
	return {value} if isinstance(value, int) else set().union(*map(numbers, values))
found = numbers(json.load(open(sys.argv[1])))
missing = [line for line in open(sys.argv[2]) if int(line.split()[1]) not in found]
print(*missing, sep="")
sys.exit(bool(missing))' "$work/json" "$work/once"
}

check "the table has counters" test "${#names[@]}" -gt 20
a=$work/a.pb.gz
"$profiltool" convert "$work/comments.callgrind" "$work/comments.pb.gz"
check "pprof to pprof" exits 0 "$profiltool" convert "$work/comments.pb.gz" "$a"
check "pprof: dump prints all counters" dumps "$a" "$work/once"
check "pprof: dump prints the lost, stacks' ends and throttled groups" test "$(grep -cE \
	'^(lost ring_full 80001|stack_end gap 80002 /lib/gap.so|throttled_ns 80003 .*/throttled)$' "$work/dumped")" -eq 3
check "dump --json has all counters" has_in_json "$profiltool" dump --json "$a"
check "report --json has all counters" has_in_json "$profiltool" report --json "$a"

check "pprof to Callgrind and back" exits 0 "$profiltool" convert "$a" "$work/a.callgrind"
check "Callgrind: dump prints all counters" dumps "$work/a.callgrind" "$work/once"
"$profiltool" convert "$work/a.callgrind" "$work/back.pb.gz" 2>/dev/null
check "Callgrind: and so from pprof again" dumps "$work/back.pb.gz" "$work/once"

check "merge" exits 0 "$profiltool" merge -o "$work/sum.pb.gz" "$a" "$a"
check "merge: dump prints the sums" dumps "$work/sum.pb.gz" "$work/twice"

check "DCPI, which has a few" exits 0 "$profiltool" convert -f dcpi "$a" "$work/dcpi"
check "DCPI: the others are dropped with a warning" says " and the rest of the account"
check "folded: the account is dropped with a warning" exits 0 "$profiltool" convert "$a" "$work/a.folded"
check "folded: which says that" says "the account of ticks"
check "folded: once" eval '! grep -q "rest of the account" "$work/err"'

# What was lost is said in each summary.
says_losses() {
	local name number
	"$profiltool" report "$a" 2>"$work/err" >"$work/out"
	while read -r name number; do
		[[ $(entry "$name") != *.loss* ]] || says "$number " || return
	done <"$work/once"
}
check "report says what was lost" says_losses

finish
