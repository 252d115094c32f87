#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# web_modules: what the modules of profiltool's page compute, in node, without a browser: tests/web/modules.mjs.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
export TZ=UTC
cd "$work" || exit

if ! node --test-reporter=tap --eval 0 2>/dev/null; then
	skip "the page's modules" "no node of version 18.15 or later"
	finish
fi
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '5 25 240 17 18 web main;serve;send' \
	'2300 1 150 20 20 burst main;work;compress' |
	"$build/tests/unit/times_make" ticks.pb.gz 1795000020000000000 6000 one
# Waits, too: one after the other.
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '0 =10 40 17 17 web main;read' '5 =25 20 17 18 web main;serve;wait' |
	"$build/tests/unit/times_make" waits.pb.gz 1795000020000000000 6000 one wall
# Two statements of one server, which wait for a lock, and code that works for none; labels that JavaScript has names of.
printf '%s\n' '0 10 300 17 17 db,query=UPDATE,route=/buy main;execute;store' '0 10 100 17 18 db,query=SELECT,route=/list main;execute;scan' \
	'0 10 50 20 20 cache,route=/list main;find' '5 =20 30 17 17 db,query=UPDATE,route=/buy main;execute;[blocked: lock]' \
	'0 =10 5 17 18 db,query=SELECT main;[blocked: lock]' '1 10 20 17 18 db,constructor=one,__proto__=two main;execute' |
	"$build/tests/unit/times_make" labels.pb.gz 1795000020000000000 6000 one wall
"$build/tests/unit/times_make" chains.pb.gz 1795000020000000000 1000 one chains <"$top/tests/web/chain.txt"
# The modules with room for fewer call paths, so that a small profile has too many.
mkdir small
cp "$top"/user/report/web/*.mjs small
sed -i 's/\(PATHS_MAX = \)4000000/\112/' small/profile.mjs
for label in {1..70}; do
	echo "0 10 1 17 17 db,unit=db.service,label$label=x main"
done | "$build/tests/unit/times_make" many.pb.gz 1795000020000000000 6000 one
sed 's/^\(12 .*\) front /\1 front,query=SELECT /; s/^\(42 .*\|105 .*\) front /\1 front,query=UPDATE /' "$top/tests/web/chain.txt" |
	"$build/tests/unit/times_make" queries.pb.gz 1795000020000000000 1000 one chains
# More statements than a page lists, a turn for each.
for turn in {0..109}; do
	echo "$((turn * 8)) =4>1:client 1 17 17 front main;[idle: socket]"
	echo "$((turn * 8 + 5)) =2 1 17 17 front,query=Q$turn main;[blocked: disk]"
done | "$build/tests/unit/times_make" turns.pb.gz 1795000020000000000 1000 one chains

# It prints TAP itself, with the plan. As version 13, prove would parse more of it than it can.
set -o pipefail
node --test-reporter=tap "$top/tests/web/modules.mjs" "$profiltool" "$build/tests/unit/chance_print" | sed '/^TAP version/d'
