#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# speedscope files: what its importer takes of them (file-format-schema.json): a profile for each thread, in the order
# of time, whose weights are the values.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

# Six seconds. Two threads of "web" are busy for 10 and 4 of 100 ms; "burst" for 150 ms from 2.3 s on.
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '5 25 240 17 18 web main;serve;send' \
	'2300 1 150 17 17 web main;work;compress' '0 - 7 17 18 web main;lost' |
	"$build/tests/unit/times_make" times.pb.gz 1795000000000000000 6000 one
printf 'main;"quotes" \\ \033[31m;bytes \xff 3\nmain 2\n' >hostile.folded
printf 'main;freed -3\nmain;kept 5\n' >signed.folded

check "written" "$profiltool" convert -q times.pb.gz times.speedscope.json
check "to standard output" test "$("$profiltool" convert -q -f speedscope hostile.folded - 2>/dev/null | head -c 10)" = "{\"\$schema\""
check "of text that is none" "$profiltool" convert -q hostile.folded hostile.speedscope.json
check "values below 0 are lost, and it is said" exits 3 "$profiltool" convert -q signed.folded signed.speedscope.json
check "compressed" "$profiltool" convert -q times.pb.gz times.speedscope.json.gz
check "to what it is uncompressed" cmp times.speedscope.json <(gzip -dc times.speedscope.json.gz)
check "it is not read" exits 1 "$profiltool" report times.speedscope.json

# about FILE EXPRESSION: a Python expression about the file j, and its profiles by name, as lists of (STACK, WEIGHT).
about() {
	python3 -S -c '
import json, sys
j = json.load(open(sys.argv[1]))
frames = [f["name"] for f in j["shared"]["frames"]]
profiles = {p["name"]: [([frames[f] for f in s], w) for s, w in zip(p["samples"], p["weights"])] for p in j["profiles"]}
assert all(len(p["samples"]) == len(p["weights"]) and p["type"] == "sampled" and p["startValue"] == 0 and
	p["endValue"] == sum(p["weights"]) for p in j["profiles"])
value = eval(sys.argv[2])
print(value)
sys.exit(not value)' "$@"
}
check "a profile for each thread" about times.speedscope.json 'sorted(profiles) == ["web 17", "web 18"]'
check "with all of its samples" about times.speedscope.json \
	'[sum(w for s, w in profiles[n]) for n in sorted(profiles)] == [750, 247]'
check "stacks begin at the root" about times.speedscope.json 'all(s[0] == "main" for p in profiles.values() for s, w in p)'
check "in the order of time" about times.speedscope.json '(lambda p: (p[0], p[1][0][-1]) == ((["main", "serve", "parse"], 231), "compress") and
	p[-1][0][-1] == "parse" and sum(w for s, w in p if s[-1] == "compress") == 150)(profiles["web 17"])'
check "what has no time comes last" about times.speedscope.json 'profiles["web 18"][-1] == (["main", "lost"], 7)'
check "names are text" about hostile.speedscope.json 'frames.count("\"quotes\" \\ \x1b[31m") == 1 and "bytes \ufffd" in frames'
check "only values above 0" about signed.speedscope.json '[p for p in profiles.values()] == [[(["main", "kept"], 5)]]'
"$profiltool" convert -q --value cpu times.pb.gz cpu.speedscope.json
check "CPU time in nanoseconds" about cpu.speedscope.json \
	'sum(p["endValue"] for p in j["profiles"] if p["unit"] == "nanoseconds") == 997 * 1000000'

finish
