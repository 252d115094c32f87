#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# report of call stacks: trees, callers, callees, omitted and selected rows, with the same numbers as sums
# over the stacks of the file; recorded stacks of a program with known calls.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

cat >"$work/server.folded" <<'EOF_STACKS'
_start;main;serve;parse;scan 400
_start;main;serve;parse;scan;memchr 200
_start;main;serve;parse 50
_start;main;serve;reply;write;vfs_write 220
_start;main;serve;reply;std::format(char const*, std::vector<int, std::allocator<int> >&) 60
_start;main;serve;log 6
_start;main;serve;count 4
start_thread;flush;scan 30
start_thread;flush 25
main 5
EOF_STACKS
server=$work/server.folded

report() {
	"$profiltool" report "$@" 2>"$work/err"
}

# prints EXPECTED COMMAND...: whether it prints exactly this.
prints() {
	local expected=$1
	shift
	diff <(echo "$expected") <("$@") && return
	cat "$work/err"
	return 1
}

# --- What is printed ---

tree='total%   self%  function, what it calls below
 94.00          + _start  [unknown]
                | main
                | serve
 65.00    5.00  | + parse
 60.00   40.00  | | scan
 20.00   20.00  | | memchr
 28.00          | + reply
 22.00          | | + write
         22.00  | | | vfs_write
  6.00    6.00  | | ` std::format(char const*, std::vector<int, std::allocator<int> >&)
  1.00          | ` ... 2 more
  5.50          ` start_thread  [unknown]
          2.50    flush
  3.00    3.00    scan
... 3 more, each below 1.00 %'
check "the tree in a pipe" prints "$tree" report --tree "$server"
drawn=$(sed -e 's/+ /├ /; s/| /│ /g; s/` /└ /; s/\(│ \)*+ /&/' <<<"$tree" | sed 's/+ /├ /')
drawn=${drawn/'(char const*, std::vector<int, std::allocator<int> >&)'/'(char const*, std::vector<...>&)'}
check "the tree on a terminal of 80 columns" prints "$drawn" \
	terminal 80 env LC_ALL=C.UTF-8 NO_COLOR=1 "$profiltool" report --tree "$server"
colored() {
	[ "$(terminal 80 env NO_COLOR= "$profiltool" report --tree "$server" |
		sed 's/\x1b\[[0-9]*m//g' | head -n 9)" = "$(head -n 9 <<<"$tree")" ] || return 1
	terminal 80 env NO_COLOR= "$profiltool" report --tree "$server" | grep -q $'\x1b'
}
check "colours are added on a terminal, and nothing else" colored
check "callers" prints 'samples  total%   root%  function, its callers below
    630   63.00  100.00  scan  [unknown]
    600   60.00   95.24  + parse
                         | serve
                         | main
                         | _start
     30    3.00    4.76  ` flush
                           start_thread' report --callers scan "$server"
check "callees, of a name without its parameters" prints \
	'samples  total%   root%   self%  function, what it calls below
    280   28.00  100.00          reply  [unknown]
    220   22.00   78.57          + write
                          22.00  | vfs_write
     60    6.00   21.43    6.00  ` std::format(char const*, std::vector<int, std::allocator<int> >&)' \
	report --callees reply "$server"
check "a function without its parameters" prints 'samples  total%   root%  function, its callers below
     60    6.00  100.00  std::format(char const*, std::vector<int, std::allocator<int> >&)  [unknown]
                         reply
                         serve
                         main
                         _start' report --callers std::format "$server"
check "what is below --percent goes, and is reported" prints \
	'total%   self%  function, what it calls below
 94.00          _start  [unknown]
                main
                serve
 65.00    5.00  + parse
 60.00   40.00  | scan
 20.00   20.00  | memchr
 28.00          ` reply
 22.00            write
         22.00    vfs_write
... 5 more, each below 7.50 %' report --tree --percent 7.5 "$server"
check "the busiest rows stay with -n" prints 'total%   self%  function, what it calls below
 94.00          + _start  [unknown]
                | main
 94.00          | ` ... 1 more
  6.00          ` ... 2 more
... 14 more' report --tree -E 2 --percent 0 "$server"

# --- Tables ---

check "a table by total" prints 'self  self%  total  total%  function  image
   5   0.50    945   94.50  main      [unknown]
   0   0.00    940   94.00  _start    [unknown]
   0   0.00    940   94.00  serve     [unknown]
  50   5.00    650   65.00  parse     [unknown]
 430  43.00    630   63.00  scan      [unknown]
... 9 more functions, 51.50 %' report --sort total --percent 60 "$server"
check "a table without what is below --percent" prints 'self  self%  total  total%  function   image
 430  43.00    630   63.00  scan       [unknown]
 220  22.00    220   22.00  vfs_write  [unknown]
 200  20.00    200   20.00  memchr     [unknown]
... 11 more functions, 15.00 %' report --percent 10 "$server"
check "the first rows of these" prints 'self  self%  total  total%  function  image
 430  43.00    630   63.00  scan      [unknown]
... 13 more functions, 57.00 %' report --percent 10 -E 1 "$server"

# --- Chosen samples ---

focused() {
	prints 'self  self%  total  total%  function      image
  30   3.00     30    3.00  scan          [unknown]
   0   0.00     30    3.00  flush         [unknown]
   0   0.00     30    3.00  start_thread  [unknown]' \
		report --focus '^sc.n$' --ignore 'serve|x' "$server" &&
		says "profiltool: --focus ^sc.n$ --ignore serve|x keeps 3.00 % of the samples"
}
check "--focus and --ignore, with percentages of all" focused
check "a focused tree" prints 'total%   self%  function, what it calls below
 22.00          _start  [unknown]
                main
                serve
                reply
                write
         22.00  vfs_write' report --tree --focus vfs "$server"
check "columns stay when chosen samples have no stack" prints \
	'self  self%  total  total%  function  image
   5   0.50      5    0.50  main      [unknown]' report --ignore 'start' "$server"
none() {
	exits 4 "$profiltool" report --json --focus nothing "$server" &&
		says "--focus nothing keeps 0.00 % of the samples" &&
		json 'j["functions"] == []' "$work/out"
}
check "no sample that matches" none

# --- JSON ---

json_sums() {
	report --json --tree --percent 0 "$server" >"$work/tree.json" &&
		report --json --callees serve --percent 2 "$server" >"$work/callees.json" &&
		report --json --callers scan "$server" >"$work/callers.json" &&
		python3 - "$server" "$work"/{tree,callees,callers}.json <<'EOF_PYTHON'
import collections, json, sys

stacks = {}
for line in open(sys.argv[1]):
	stack, count = line.rsplit(" ", 1)
	stacks[tuple(stack.split(";"))] = int(count)
tree, callees, callers = (json.load(open(name)) for name in sys.argv[2:])

def paths(nodes):
	path = ()
	for n in nodes:
		path = path[:n["depth"]] + (n["name"],)
		yield path, n

assert tree["samples"] == callees["samples"] == callers["samples"] == sum(stacks.values())
seen = 0
for path, n in paths(tree["tree"]):
	assert n["self"] == stacks.get(path, 0), n
	assert n["total"] == sum(c for s, c in stacks.items() if s[:len(path)] == path), n
	assert abs(n["total_percent"] - n["total"] / 10) < 0.01 and n["image"] == "[unknown]", n
	seen += n["self"]
assert seen == tree["samples"]
root = callees["callees"][0]
assert root["name"] == "serve" and root["total"] == 940 and root["root_percent"] == 100
assert (root["omitted"], root["omitted_total"]) == (2, 10)
assert [p for p, n in paths(callees["callees"]) if len(p) == 2] == \
	[("serve", "parse"), ("serve", "reply")]
assert [p for p, n in paths(callers["callers"]) if len(p) == 2] == \
	[("scan", "parse"), ("scan", "flush")] and "self" not in callers["callers"][0]
EOF_PYTHON
}
check "JSON has the sums of the stacks" json_sums
deep() {
	{ seq -s ';' 3000 | tr -d '\n'; echo ' 5'; } >"$work/deep.folded"
	report --json --tree "$work/deep.folded" >"$work/out" &&
		json '([n["depth"] for n in j["tree"]] == list(range(3000)) and
			j["tree"][2999]["name"] == "3000" and j["tree"][2999]["self"] == 5)' "$work/out"
}
check "deep stacks do not make deep JSON" deep
omitted() {
	report --json -E 2 "$server" >"$work/out" && json '(len(j["functions"]) == 2 and
		j["omitted"] == {"rows": 12, "self": 350})' "$work/out"
}
check "JSON reports what -n leaves out" omitted

# --- Several files; processes and threads ---

sum() {
	report --callees serve --percent 25 "$server" "$server" >"$work/out" &&
		grep -q '^ *1880   94.00  100.00 .* serve' "$work/out" &&
		grep -q '^ *1300   65.00   69.15 .* parse' "$work/out"
}
check "several files are added up" sum

# --- Calls that were counted apart ---

cat >"$work/callgrind.out" <<'EOF_CALLS'
# callgrind format
events: Ir
ob=/bin/prog
fn=main
1 100
cfn=work
calls=3 0
2 850
cfn=rare
calls=1 0
3 1
fn=work
4 850
fn=rare
5 1
EOF_CALLS
check "callees of a file with counted calls" prints 'calls   Ir  total%   root%  function, what it calls below
       951  100.00  100.00  main  prog
    3  850   89.38   89.38  work
... 1 more, below 1.00 %' report --callees main "$work/callgrind.out"
cat >"$work/circle.out" <<'EOF_CALLS'
# callgrind format
events: Ir
fn=f
1 70
cfn=g
calls=9 0
1 95
cfn=rare
calls=1 0
1 5
fn=g
2 30
cfn=f
calls=9 0
2 90
EOF_CALLS
report --json --callees f --percent 10 "$work/circle.out" >"$work/out"
check "calls in circles have more than all: nothing is left" json \
	'[j["callees"][0][key] for key in ("total", "omitted", "omitted_total")] == [90, 1, 0]' "$work/out"

# --- Recorded ---

recorded_tree() {
	start_ready "$progs/chains" set
	exits 0 until_used "$pid" 500 "$profiltool" record -g -F 4999 -o "$work/set.pb.gz" -p "$pid"
	stop "$pid"
	report --json --tree --percent 0 --focus '^inner$' "$work/set.pb.gz" >"$work/out" &&
		python3 - "$work/out" <<'EOF_PYTHON'
import json, sys

def paths(nodes):
	path = ()
	for n in nodes:
		path = path[:n["depth"]] + (n["name"],)
		yield path, n

ends = set()
for path, n in paths(json.load(open(sys.argv[1]))["tree"]):
	if n["name"] == "inner" and "main" in path:
		ends.add(path[path.index("main"):])
		assert n["image"].endswith("/chains")
assert {("main", "set", "outer", "middle", "inner"), ("main", "set", "outer", "inner"),
	("main", "set", "inner")} <= ends, ends
EOF_PYTHON
}
check_recorded "the tree of a recorded program" recorded_tree
by_process() {
	report --json --tree --by thread "$work/set.pb.gz" >"$work/out" &&
		json '(j["tree"][0]["name"].split()[0] == "chains" and "image" not in j["tree"][0] and
			j["tree"][1]["depth"] == 1 and j["tree"][1]["name"].split()[0] == "chains")' "$work/out"
}
check_recorded "processes and threads above the tree" by_process

# --- What does not go ---

echo "main 3" >"$work/flat.folded"
check_rows <<'EOF'
NAME report --tree of a profile without call stacks names the option that records them
RUN "$profiltool" report --tree "$work/flat.folded"
STATUS 1
EXPECT the profile has no call stacks
EXPECT record -g

NAME report cannot filter counted calls
RUN "$profiltool" report --callers work --focus work "$work/callgrind.out"
STATUS 1
EXPECT counted calls cannot be filtered
EXPECT without --focus

NAME report --tree of a profile that has calls, but no stacks, names the view of calls
RUN "$profiltool" report --tree "$work/callgrind.out"
STATUS 1
EXPECT the profile has no call stacks
EXPECT --callees FUNCTION

NAME report names functions like one that is in no stack
RUN "$profiltool" report --callers SERV "$server"
STATUS 1
EXPECT no sample has SERV in its stack
EXPECT names: serve

NAME report refuses a regular expression that is none
RUN "$profiltool" report --focus 'a(' "$server"
STATUS 2
EXPECT 'a(' is no regular expression
EXPECT regex(7)

NAME report shows one view at a time
RUN "$profiltool" report --tree --callers main "$server"
STATUS 2
EXPECT three views
EXPECT --help

NAME report has no lines in a tree
RUN "$profiltool" report --tree --by line "$server"
STATUS 2
EXPECT --by line is not for trees
EXPECT --help

NAME report does not sort a tree
RUN "$profiltool" report --tree --sort total "$server"
STATUS 2
EXPECT --sort is not for trees
EXPECT --help

NAME report refuses a percentage above 100
RUN "$profiltool" report --percent 101 "$server"
STATUS 2
EXPECT --percent takes a number from 0 to 100, not "101"
EXPECT --help

NAME report names the orders that there are
RUN "$profiltool" report --sort x "$server"
STATUS 2
EXPECT --sort takes self, total, of threads wall, on-cpu, runnable
EXPECT --help
EOF

# --- Hostile: names, depth, a reader that goes away ---

hostile() {
	printf 'main;\033[2Jred\302\233;%s 3\nmain 1\n' "$(printf 'f;%.0s' $(seq 3000))" \
		>"$work/hostile.folded"
	terminal 80 "$profiltool" report --tree "$work/hostile.folded" >"$work/out" || return 1
	[ "$(wc -l <"$work/out")" -gt 3000 ] && ! grep -q $'\033\[2J\|\302\233' "$work/out"
}
check "control characters and deep stacks" hostile
goes_away() {
	local status
	seq -f 'main;f%.0f 1' 20000 >"$work/wide.folded"
	"$profiltool" report --tree --percent 0 "$work/wide.folded" 2>"$work/err" | head -n 1
	status=${PIPESTATUS[0]}
	[ "$status" -eq 0 ] || [ "$status" -eq 141 ] || return 1
	! grep -i "pipe\|write" "$work/err"
}
check "| head" goes_away

finish
