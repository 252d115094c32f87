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
"$build/tests/unit/times_make" chains.pb.gz 1795000020000000000 1000 one chains <"$top/tests/web/chain.txt"

# It prints TAP itself, with the plan. As version 13, prove would parse more of it than it can.
set -o pipefail
node --test-reporter=tap "$top/tests/web/modules.mjs" "$profiltool" "$build/tests/unit/chance_print" | sed '/^TAP version/d'
