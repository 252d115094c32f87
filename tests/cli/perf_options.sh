#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A letter that perf has too means what it means there, and what those who know perf type is taken.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# --- Letters: ours and perf's names of the options that mean the same ---

# Of record, -d is kept for --duration: the --data of perf, addresses of data, has no use here.
same="duration=data pid=pid tid=tid uid=uid all=all-cpus cgroup=cgroup frequency=freq event=event call-graph=
	no-inherit=no-inherit output=output quiet=quiet verbose=verbose interval=delay limit=entries
	sort=sort input=input image=dsos symbol=symbol show-nr-samples=show-nr-samples"

# letters: of the --help on standard input, one on a line: "-a all-cpus".
letters() {
	sed -nE 's/^ +-([A-Za-z])(, --([a-z_-]+))?( .*|$)/\1 \3/p'
}

# differences COMMAND: its letters that perf's command of this name has for something else.
differences() {
	local letter ours perfs

	while read -r letter ours perfs; do
		[[ " ${same//[[:space:]]/ } " == *" $ours=$perfs "* ]] ||
			echo "-$letter is --$ours here and --$perfs there"
	done < <(join <("$profiltool" "$1" --help | letters | sort) <(perf "$1" -h 2>&1 | letters | sort))
}

if perf report -h 2>&1 | grep -q -- --dsos; then
	for command in record report annotate diff top; do
		check "$command: letters are perf's, or others" test -z "$(differences $command)"
	done
else
	skip "letters are perf's, or others" "perf is not installed"
fi

# --- What those who know perf type ---

cat >"$work/a.folded" <<'EOT'
server;main;parse 30
server;main;send;write_[k] 10
client;main;wait 60
EOT
cat >"$work/b.folded" <<'EOT'
client;main;wait 10
EOT

# as_perf NAME OPTIONS OTHERS: both print the same of the profile.
as_perf() {
	local words others
	read -ra words <<<"$2"
	read -ra others <<<"$3"
	check "report $2: $1" diff <("$profiltool" report "${words[@]}" 2>&1) \
		<("$profiltool" report "${others[@]}" "$work/a.folded" 2>&1)
}
as_perf "the file" "-i $work/a.folded" ""
as_perf "text" "--stdio -n -i $work/a.folded" ""
as_perf "by self" "--no-children -i $work/a.folded" "--sort self"
as_perf "by total" "--children -i $work/a.folded" "--sort total"
as_perf "images" "--sort dso -i $work/a.folded" "--by image"
as_perf "functions" "-s dso,sym -i $work/a.folded" "--by function"
as_perf "functions" "--sort symbol -i $work/a.folded" ""
as_perf "lines" "--sort srcline -i $work/a.folded" "--by line"
as_perf "names" "--sort comm -i $work/a.folded" "--by comm"
as_perf "processes" "--sort pid -i $work/a.folded" "--by process"
as_perf "threads" "--sort pid,tid -i $work/a.folded" "--by thread"
combined() {
	exits 0 "$profiltool" report -q --sort comm,dso,sym -i "$work/a.folded" &&
		diff - "$work/out" <<'EOT'
self  self%  total  total%  comm       function   image
  60  60.00     60   60.00  [unknown]  wait       [unknown]
  30  30.00     30   30.00  [unknown]  parse      [unknown]
  10  10.00     10   10.00  [unknown]  write_[k]  [unknown]
   0   0.00    100  100.00  [unknown]  main       [unknown]
   0   0.00     60   60.00  [unknown]  client     [unknown]
   0   0.00     40   40.00  [unknown]  server     [unknown]
   0   0.00     10   10.00  [unknown]  send       [unknown]
EOT
}
check "report --sort comm,dso,sym: names, images and functions" combined
as_perf "a limit" "--percent-limit 20 -i $work/a.folded" "--percent 20"
as_perf "an image" "-d [unknown] -i $work/a.folded" "--image [unknown]"

usage() {
	local what=$1
	shift
	exits 2 "$profiltool" "$@" && says "$what"
}
check "keys that are none" usage 'perf'\''s keys' report --sort comm,nothing "$work/a.folded"
check "-i and a file besides" usage "name all files without -i" report -i "$work/a.folded" "$work/b.folded"
check "annotate: -i and -s" exits 1 "$profiltool" annotate --stdio -s nowhere -i "$work/a.folded"
check "annotate: that function is looked for" says "no sample is in nowhere"

record_dwarf() {
	exits 0 "$profiltool" record --call-graph=dwarf -F 999 -q -o "$work/dwarf.pb.gz" -- \
		"$progs/shares" 1 0.3 && "$profiltool" report --json "$work/dwarf.pb.gz" >"$work/out" && json 'j["stacks"]["method"] == "cfi"' "$work/out"
}
by_comm() {
	"$profiltool" "$@" --json >"$work/out" && json '[r["comm"] for r in j["rows"]] == ["shares"]' "$work/out"
}
# shellcheck disable=SC2016 # for the other shell
by_comm_and_symbol() {
	exits 0 "$profiltool" record -g -F 999 -o "$work/two.pb.gz" -- \
		bash -c '"$0" 1 0.2 & "$1" 1 0.2; wait' "$progs/shares" "$work/others" || return
	"$profiltool" report --sort comm,dso,sym --json "$work/two.pb.gz" >"$work/out"
	json '({(r["comm"], r["function"]) for r in j["rows"]} >=
		{(name, "burn_sixty") for name in ("shares", "others")} and
		sum(r["self"] for r in j["rows"]) == j["counted"])' "$work/out" && return
	cat "$work/err"
	"$profiltool" report --sort comm,dso,sym -E 20 "$work/two.pb.gz"
	return 1
}
cp "$progs/shares" "$work/others"
check_recorded "report --sort comm,dso,sym: one function in threads of two names" by_comm_and_symbol
check_recorded "record --call-graph=dwarf: by call frame information" record_dwarf
check_recorded "report --sort comm: a name" by_comm report --sort comm "$work/dwarf.pb.gz"
check_recorded "diff --sort comm" by_comm diff --sort comm "$work/dwarf.pb.gz" "$work/dwarf.pb.gz"
check_recorded "top --stdio --sort comm" exits 0 "$profiltool" top -a --stdio --sort comm -E 3 --tables 1 -d 0.5
check_recorded "prints a table of comms" grep -q "comms by self" "$work/out"

finish
