#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Call stacks of Python scripts: those that the script itself sees, whole, and between the native frames in their true
# order.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

export LC_ALL=C.UTF-8
cd "$work" || exit
chmod 755 "$work" # annotate shows root only sources that all may read
python=${PROFIL_TEST_PYTHON:-/usr/bin/python3}
script=$top/tests/progs/script.py

if [ "$(id -u)" -ne 0 ]; then
	skip "stacks of Python scripts" "recording needs root"
	finish
fi
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
	skip "stacks of Python scripts" "$python is not Python 3.11 to 3.14"
	finish
fi

# record_script NAME KIND...: records the script by record_work; its truth is in NAME.truth.
record_script() {
	record_work "$1" "$python" "$script" "$1.truth" "${@:2}"
}

# --- The stacks that Python sees: functions and the lines of calls ---

record_script all all
check "the functions and lines of a script's stacks are those that Python sees" agrees chains all
check "about as much of each stack is found as the script used of CPU time" agrees shares all
check "the account of a script's stacks adds up" recorded 'whole and j["counted"] > 0' all.json
# But for a tick in the few instructions that libffi makes at run time for what native code is to call back.
check "the stacks of a script reach the program's start" recorded \
	'(j["stacks"]["complete"] + sum(e["count"] for e in j["stacks"]["ends"] if e["image"] == "[anon]") == j["stacks"]["user"] and
	mostly(j["stacks"]["complete"]) and j["stacks"]["truncated"] == 0)' all.json
check "native code that calls Python is between its caller and its callee" chains_are all some \
	'.*;callbacks;call_ctypes;.*qsort.*;compare;spin(;.*)?'
check "what native code calls back has no other place" chains_are all none '(?!.*;call_ctypes;.*qsort.*).*;compare(;.*)?'
# By the image: with debug symbols, functions of extensions have such names, too.
check "the interpreter's own functions are not in a script's stacks" recorded \
	'not [f for n in ("_Py*", "Py*", "_start") for f in rows(n)
		if f["image"].split("/")[-1].startswith(("python3", "libpython3"))]' all.json
record_script shares shares
check "two functions have the samples of their CPU time" agrees shares shares
options=(--native)
record_script native callbacks
options=()
check "with --native the interpreter's function is between those of the script" chains_are native some \
	'.*;callbacks;call_json;dumps;.*_PyEval_EvalFrameDefault;.*;call_json.<locals>.<lambda>;spin(;.*)?'
check "with --native the stacks are the same" agrees chains native

record_script deep deep
check "of a recursion that is too deep for a stack the innermost functions are kept" chains_are deep most \
	'(descend;){80,126}spin(;.*)?'
check "a recursion that is too deep is counted as cut off" recorded 'mostly(j["stacks"]["truncated"])' deep.json

record_script nested nested
check "the interpreter's frames between a script's functions take the place of none" agrees chains nested
# Each function has native code of its own then, made at run time without call frame information.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
	record_work trampolines "$python" -X perf "$script" trampolines.truth recursion nested callbacks
	check "with -X perf the stacks are the same" agrees chains trampolines
	check "with -X perf the functions have no second frame" chains_are trampolines none '(.*;)?py::.*'
fi
record_script freed freed
check "a function has its own name, where another one was in memory before it" agrees chains freed
record_script moved moved
check "a function has its own name, where another CPU has met another one before it" agrees chains moved

# --- Threads and processes ---

record_script threads threads
check "threads have the stacks of their own functions" agrees chains threads
check "each thread has about as much of them as it used of CPU time" agrees shares threads
options=(--wall)
record_script walls threads
options=()
"$profiltool" convert --value wall walls.pb.gz walls.folded 2>/dev/null
check "a wait that was under way when the recording began has the script's stack" chains_are walls some \
	'.*;<module>;main;.*;\[(blocked|idle): pipe\]'
check "no wait of a script has the interpreter's functions instead" chains_are walls none \
	'(.*;)?_PyEval_EvalFrameDefault(;.*)?'
# Each wait is below other functions, or lines, while the native stack is the same; some of code that was made just now, where
# other code was. A sleep is never shorter than asked, and the script sees the time to get a CPU, too.
cat >waits.py <<'EOF_PYTHON'
import collections, time

SLEEP_NS = 2000000
asked = collections.Counter()
seen = collections.Counter()

def wait(chain):
    begin = time.monotonic_ns()
    time.sleep(SLEEP_NS / 1e9)
    seen[chain] += time.monotonic_ns() - begin
    asked[chain] += SLEEP_NS

def a(chain):
    wait(chain + ";a")

def b(chain):
    wait(chain + ";b")
    wait(chain + ";b")

def other_line(chain):
    wait(chain + ";other_line"); b(chain + ";other_line")
    a(chain + ";other_line")

for i in range(60):
    a("<module>")
    b("<module>")
    other_line("<module>")
    exec(f"def made_{i % 3}(chain):\n wait(chain)\nmade_{i % 3}('<module>;<module>;made_{i % 3}')", {"wait": wait})
with open("waits.truth", "w") as out:
    for chain in asked:
        print(asked[chain], seen[chain], chain, file=out)
EOF_PYTHON

# waits_agree: each chain of waits.py has waited as long as it saw.
waits_agree() {
	"$profiltool" convert --value wall waits.pb.gz waits.folded 2>/dev/null
	python3 - <<'EOF_PYTHON'
import collections, re
found = collections.Counter()
for line in open("waits.folded"):
    stack, value = line.rsplit(None, 1)
    chain = re.search(r"((?:<module>|a|b|other_line|made_\d)(?:;(?:<module>|a|b|other_line|made_\d))*);wait;.*\[blocked: sleep\]", stack)
    if chain:
        found[chain[1]] += int(value)
wrong = []
for line in open("waits.truth"):
    asked, seen, chain = line.split()
    if not int(asked) <= found[chain] <= int(seen):
        wrong.append(f"{chain}: {found[chain]} of {asked} to {seen}")
    del found[chain]
assert not wrong and not found, (wrong, found)
EOF_PYTHON
}

"$profiltool" record --chains --max-overhead 0 -o waits.pb.gz -- "$python" waits.py >out 2>err
check "each wait is below the functions that ran, whatever was in memory before them" waits_agree

record_script fork fork
check "a forked child's stacks have its functions" chains_are fork some \
	'.*;fork;child;.*;child_work;spin(;.*)?'
record_script spawn spawn
check "a child that starts an interpreter of its own has its functions" chains_are spawn some \
	'(?!.*;spawn;).*;spawn_main;.*;child_work;spin(;.*)?'

# --- Several interpreters in a process ---

cat >several.py <<'EOF_PY'
try:
    import _interpreters as several
    made = several.create()
    run = several.exec
except ImportError:
    import _xxsubinterpreters as several
    made = several.create(isolated=False)
    run = several.run_string

def inner(n):
    for i in range(n):
        pass

def outer():
    run(made, '''
def sub_inner(n):
    for i in range(n):
        pass

def sub_outer():
    sub_inner(1000000)

sub_outer()
''')

for _ in range(3):
    outer()
    inner(1000000)
EOF_PY
# The module has other names in between.
if "$python" -c 'import _interpreters' 2>/dev/null || "$python" -c 'import _xxsubinterpreters' 2>/dev/null; then
	record several -- "$python" several.py
	check "the functions of a second interpreter have names and callers" chains_are several some \
		'.*;<module>;outer;.*;<module>;sub_outer;sub_inner'
	check "those of a second interpreter are nowhere else" chains_are several none \
		'(?!(.*;)?<module>;outer;.*;<module>;sub_outer;).*;sub_inner(;.*)?'
	check "those of the first one have their names" chains_are several some '.*;<module>;inner'
fi

# --- Ways to start a script ---

"$python" -m venv --without-pip links && "$python" -m venv --without-pip --copies copies
for kind in links copies; do
	record_work "$kind" "$kind/bin/python3" "$script" "$kind.truth" recursion callbacks
	check "a virtual environment's Python ($kind)" agrees chains "$kind"
done
cp "$script" known_module.py
record_work module env PYTHONPATH=. "$python" -m known_module module.truth recursion
check "a module that is run by -m" agrees chains module
record_work command "$python" -c "import sys
sys.path.insert(0, '.')
import known_module
known_module.main()" command.truth recursion
check "a program on the command line" agrees chains command
check "a program on the command line is in the file <string>" \
	grep -q '"<string>"' <("$profiltool" report --by source --json command.pb.gz 2>/dev/null)
(mkdir zip && cp "$script" zip/__main__.py && cd zip && "$python" -m zipfile -c ../known.zip __main__.py)
record_work zip "$python" known.zip zip.truth recursion
check "a script in a zip file" agrees chains zip

# A process chooses what its files are called. /dev/null: it may not write here.
if setpriv --reuid=65534 --regid=65534 --clear-groups "$python" --version >/dev/null 2>&1; then
	cp "$script" nobodys.py
	record_work nobody setpriv --reuid=65534 --regid=65534 --clear-groups "$python" nobodys.py /dev/null recursion
	check "the file of a user's script is that user's, not root's" \
		grep -q "nobodys.py .*provider=65534" <("$profiltool" dump nobody.pb.gz 2>/dev/null)
else
	skip "the file of a user's script" "setpriv cannot become nobody here"
fi

# --- Files and lines ---

"$profiltool" report --by line --json shares.pb.gz >lines.json 2>lines.err
check "report --by line has the lines of a script" json '{(f["function"], f.get("line")) for f in j["rows"]} >= {
	("share_30", 240), ("share_70", 244)}' lines.json
# More than a record has room for: 1,500 lines, and then the one that has the samples.
"$python" -c 'for i in range(1500): print(f"v{i} = {i} * 2 if {i} else {i}")' >table.py
echo 'for i in range(6000000): x = i' >>table.py
record table -- "$python" table.py
"$profiltool" report --by line --json table.pb.gz >table.json 2>table.err
check "a line behind a long line table is found" json \
	'max((f for f in j["rows"] if f["function"] == "<module>"), key=lambda f: f["total"]).get("line") == 1501' table.json
check "annotate shows a script's source" exits 0 "$profiltool" annotate -s share_70 shares.pb.gz
check "annotate has the samples of a script's line" grep -qE '^ *[0-9]+ +[1-9][0-9]* +(100.00|9[0-9]\.[0-9]+) +244 +spin\(7\)$' out
check "annotate does not look for instructions of a script" [ "$(grep -c -e instructions -e ELF err)" = 0 ]
check "nothing is said of a script's image" [ "$(grep -c script.py all.err)" = 0 ]
cp "$script" edited.py
record_work edited "$python" edited.py edited.truth recursion
touch -d "1 hour" edited.py
check "annotate of a script that was changed later" exits 0 "$profiltool" annotate -s recurse edited.pb.gz
check "annotate says that the script was changed" says "changed since the recording began: $work/edited.py"
check "report does not doubt the names of a script that was changed" \
	[ "$("$profiltool" report edited.pb.gz 2>&1 | grep -c "has changed")" = 0 ]

# --- Other formats ---

check "Callgrind: a script's functions are in its file" \
	grep -qE "^c?fn=.* share_70$" <("$profiltool" convert -f callgrind shares.pb.gz - 2>/dev/null)
check "gperftools has no samples of a script, rather than at another place" exits 0 \
	"$profiltool" convert -f gperftools all.pb.gz all.prof
check "gperftools: that is said" says "the gperftools format cannot hold frames without an address"
options=(-f gperftools)
record_work prof "$python" "$script" prof.truth recursion
options=()
check "recorded to gperftools, the interpreter's functions are there" \
	grep -q "_PyEval_EvalFrameDefault\|python3" <("$profiltool" report prof.pb.gz 2>/dev/null)
"$profiltool" merge -o merged.pb.gz threads.pb.gz freed.pb.gz 2>/dev/null
python3 -c 'import json; json.dump({**json.load(open("threads.truth")), **json.load(open("freed.truth"))},
	open("merged.truth", "w"))'
check "merged, the stacks are the same" agrees chains merged
check "a flame graph has a script's functions" \
	grep -q "<title>share_70" <("$profiltool" flamegraph -o - shares.pb.gz 2>/dev/null)

finish
