#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Call stacks of Perl scripts: those that the script itself sees, whole, and between the native frames in their true
# order. PROFIL_TEST_PERL: another perl.
# shellcheck disable=SC2317,SC2016 # functions are called by check; variables are of Perl

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

export LC_ALL=C.UTF-8
cd "$work" || exit
chmod 755 "$work" # annotate shows root only sources that all may read
perl=${PROFIL_TEST_PERL:-/usr/bin/perl}
script=$top/tests/progs/script.pl

if [ "$(id -u)" -ne 0 ]; then
	skip "stacks of Perl scripts" "recording needs root"
	finish
fi
if ! "$perl" -MConfig -e 'use v5.36; exit !($Config{useithreads} && $] < 5.043)' 2>/dev/null; then
	skip "stacks of Perl scripts" "$perl is not Perl 5.36 to 5.42 with threads"
	finish
fi

# record_script NAME KIND...: records the script by record_work; its truth is in NAME.truth.
record_script() {
	record_work "$1" "$perl" "$script" "$1.truth" "${@:2}"
}

# --- The stacks that Perl sees: functions and the lines of calls ---

record_script all all
check "the functions and lines of a script's stacks are those that Perl sees" agrees chains all
check "about as much of each stack is found as the script used of CPU time" agrees shares all
check "the account of a script's stacks adds up" recorded 'whole and j["counted"] > 0' all.json
check "the stacks of a script reach the program's start" recorded \
	'j["stacks"]["complete"] == j["stacks"]["user"] and j["stacks"]["truncated"] == 0' all.json
check "native code that calls Perl is between its caller and its callee" chains_are all some \
	'.*;main::dumps;Data::Dumper::Dumper;.*Dumper.so.*;Number::freeze;main::spin(;.*)?'
check "what native code calls back has no other place" chains_are all none '(?!.*;main::dumps;.*Dumper.so.*).*;Number::freeze(;.*)?'
check "the interpreter's own functions are not in a script's stacks" chains_are all none '(.*;)?Perl_.*'
record_script shares shares
check "two functions have the samples of their CPU time" agrees shares shares
options=(--native)
record_script native sorts lists
options=()
check "with --native the interpreter's functions are between those of the script" chains_are native some \
	'.*;perl_run;{main};main::lists;Perl_runops_standard;.*Util.so.*;.*;main::__ANON__;main::target;main::spin;Perl_runops.*'
check "with --native the stacks are the same" agrees chains native

record_script deep deep
check "of a recursion that is too deep for a stack the innermost functions are kept" chains_are deep most \
	'(main::descend;){80,126}main::spin(;.*)?'
check "a recursion that is too deep is counted as cut off" recorded 'mostly(j["stacks"]["truncated"])' deep.json

record_script freed freed
check "a function has its own name, where another one was in memory before it" agrees chains freed

# --- Threads and processes ---

record_script threads both_threads
check "threads have the stacks of their own functions" agrees chains threads
record_script forks forks
check "a forked child's stacks have its functions" chains_are forks some \
	'.*;{main};main::forks;main::child_work;main::spin(;.*)?'

# --- Files and lines ---

"$profiltool" report --by line --json shares.pb.gz >lines.json 2>lines.err
share_30=$(grep -n '^sub share_30' "$script" | cut -d: -f1)
check "report --by line has the lines of a script" json "{(f['function'], f.get('line')) for f in j['rows']} >= {
	('main::share_30', $share_30), ('main::share_70', $((share_30 + 1)))}" lines.json
check "annotate shows a script's source" exits 0 "$profiltool" annotate -s main::share_70 shares.pb.gz
check "annotate has the samples of a script's line" \
	grep -qE "^ *[0-9]+ +[1-9][0-9]* +(100.00|9[0-9]\.[0-9]+) +$((share_30 + 1)) +sub share_70" out
check "a string that is evaluated is in the file (eval)" \
	grep -q '"(eval)"' <("$profiltool" report --by source --json all.pb.gz 2>/dev/null)

# --- Waits ---

options=(--wall)
record_script waits waits
options=()
"$profiltool" report --value wall --json waits.pb.gz >waits.rows 2>/dev/null
check "--wall: waits have the functions of a script" json \
	'{r["name"]: r["total"] for r in j["functions"]}.get("main::waits_30", 0) > 0.2e9' waits.rows

# --- What only seems to be Perl ---

if gcc -std=gnu11 -O1 -rdynamic -I"$top" -o seems_perl "$top/tests/cli/perl_hostile.c" -pthread; then
	for kind in cycle deep names wild; do
		name=seems_$kind
		begin "$name" ./seems_perl "$kind"
		share_buffers
		record_begin "$name" record -g "${clock[@]}" --json -o "$name.pb.gz" -p "$pid"
		send_line "$name" go
		wait "$recorder"
		wait "$pid"
		free_buffers
		check "hostile memory ($kind): the recording is whole" recorded 'whole and j["counted"] > 0' "$name.json"
		check "hostile memory ($kind): the native stacks are whole, unless they have no room or take too long" recorded \
			'j["stacks"]["complete"] + j["stacks"]["truncated"] + sum(e["count"] for e in j["stacks"]["ends"]
				if e["cause"] == "walk_too_long") == j["stacks"]["user"]' "$name.json"
	done
	"$profiltool" dump seems_names.pb.gz >names.txt 2>&1
	check "hostile memory: its names are there, without control characters" grep -q ';?????' names.txt
	check "hostile memory: nothing raw is printed" [ "$(tr -d '\n\t -~' <names.txt | wc -c)" = 0 ]
else
	skip "programs that only seem to be Perl" "gcc cannot build one"
fi

# --- What has no names ---

check "without -g, a command of Perl has its functions" exits 0 "$profiltool" record -o flat.pb.gz -- \
	"$perl" -e 'sub work { for (1 .. 2e7) { $x += $_ } } work()'
check "without -g: the table has the function" grep -q ' main::work ' out
check "without stacks the option is named" exits 0 "$profiltool" record --call-graph=none -o flat.pb.gz -- \
	"$perl" -e 'for (1 .. 6e6) { $x += $_ }'
check "without stacks: it" says "recorded with -g, Perl 5.36 to 5.42 has its functions in the call stacks"
mkdir -p renamed && sed s/PL_thr_key/PL_thr_kex/ "$(readlink -f "$perl")" >renamed/perl && chmod 755 renamed/perl
if renamed/perl -e 1 2>/dev/null; then
	check "a Perl without threads, as it seems" exits 0 "$profiltool" record -g -o other.pb.gz -- \
		renamed/perl -e 'for (1 .. 6e6) { $x += $_ }'
	check "a Perl without threads is said, with its version" \
		says "Perl $("$perl" -e 'printf "%vd", $^V') without threads is not supported: run it by Perl 5.36 to 5.42"
else
	skip "a Perl without threads" "$perl is a script"
fi

finish
