#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# browse: files that are made by hand, so that each number is known, on screens of three sizes; names that are
# hostile, files that are cut off or change meanwhile, and what is no terminal.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../screen.sh
. "$(dirname "$0")/../screen.sh"

cd "$work" || exit 1
export TZ=UTC
cat >plain.folded <<'EOF'
main;parse;read 30
main;parse;lex 50
main;run;eval;add 200
main;run;eval;mul 100
main;run;gc 40
thread;idle 80
EOF

# pprof FILE: from lines "COUNT PID NAME UNIT FUNCTION;FUNCTION...", the outermost first.
pprof() {
	python3 -c '
import gzip, sys
def varint(n):
	return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
def field(number, value):
	if isinstance(value, int):
		return varint(number << 3) + varint(value)
	return varint(number << 3 | 2) + varint(len(value)) + value
strings, functions, out = {"": 0}, {}, b""
def text(s):
	return strings.setdefault(s, len(strings))
out += field(1, field(1, text("samples")) + field(2, text("count")))
for line in sys.stdin:
	count, pid, comm, unit, stack = line.rstrip("\n").split(" ", 4)
	sample = field(2, int(count))
	for name in reversed(stack.split(";")):
		sample += field(1, functions.setdefault(name, len(functions) + 1))
	sample += field(3, field(1, text("pid")) + field(3, int(pid)))
	sample += field(3, field(1, text("tid")) + field(3, int(pid)))
	sample += field(3, field(1, text("thread")) + field(2, text(comm)))
	sample += field(3, field(1, text("unit")) + field(2, text(unit)))
	out += field(2, sample)
for name, number in functions.items():
	out += field(4, field(1, number) + field(3, 4096 + number) + field(4, field(1, number)))
	out += field(5, field(1, number) + field(2, text(name)))
for s in strings:
	out += field(6, s.encode("utf-8", "surrogateescape"))
gzip.open(sys.argv[1], "wb").write(out)' "$1"
}
pprof units.pb.gz <<'EOF'
60 11 web web.service main;serve;send
30 12 web web.service main;serve;parse
10 13 db db.service main;query;scan
EOF

# --- What is no terminal, and what is no profile ---

check_rows <<'EOF'
NAME browse in a pipe names report
RUN "$profiltool" browse plain.folded
STATUS 2
EXPECT browse shows profiles on a whole terminal, and standard input or output is none
EXPECT profiltool report prints tables

NAME browse without a file names the archive
RUN "$profiltool" browse
STATUS 2
EXPECT browse takes a profile
EXPECT --since

NAME browse refuses what is no name of rows
RUN "$profiltool" browse --by no/label plain.folded
STATUS 2
EXPECT unit, user, waker, or a label, not "no/label"
EOF

if ! command -v tmux >/dev/null; then
	skip "the screen" "no tmux"
	finish
fi
has_terminals "the screen" || finish

environment=
# browse ARGUMENT...: types the command at the shell's prompt.
browse() {
	tm send-keys -l "clear; $environment NO_COLOR=1 $profiltool browse $*; echo status \$?"
	tm send-keys Enter
}

# The lines of a tree or table: what is left without blanks at their ends.
line_at_cursor() {
	tm capture-pane -p -e | grep $'\e\\[[0-9;]*7m' | head -n 1 | sed -E 's/\x1b\[[0-9;]*m//g; s/ +$//'
}
# at PATTERN: waits until the row at the cursor matches.
at_now() {
	line_at_cursor | grep -qE -- "$1"
}
at() {
	wait_for at_now "$1" && return
	line_at_cursor
	pane
	return 1
}
# press KEY PATTERN: what the row at the cursor is after a key.
press() {
	tm send-keys "$1"
	at "$2"
}
type_pattern() {
	tm send-keys -l "/$1"
	tm send-keys Enter
}
is_wide() {
	[ "$(pane | awk '{ if (length($0) > most) most = length($0) } END { print most }')" -le "$1" ]
}

screen_begin 80 24

head -c 200 units.pb.gz >cut.pb.gz
browse cut.pb.gz
check "a file that is cut off is an error on a sane terminal" shows 'cut.pb.gz: .*truncated'
check "with status 1" shows 'status 1'
echo 'a;b 0' >empty.folded
browse empty.folded
check "a file without samples has status 4" shows 'status 4'
browse --by size plain.folded
check "a label that no sample has is refused" shows 'status 2'
environment=TERM=dumb
browse plain.folded
check "a dumb terminal is refused" shows 'and this one cannot move'
environment=

# --- Functions and the tree, at 80x24 ---

browse plain.folded
check "functions, busiest first" at '^ *200 +40\.00 +40\.00 +add '
check "what was read, and how much" shows '^500 samples'
check "the keys are at the bottom" shows '^\? help  q quit  Enter code'
check "s: by total" key s '^functions by total'
check "then main is the first" at '^ *0 +0\.00 +84\.00 +main'
tm send-keys s s s
check "s: by self again, without what the file does not have" shows '^functions by self'
check "T: the call tree" key T '^Call tree'
check "its outermost function, open" at '^ *84\.00 +- main'
check "the path of most samples is open" shows '^ *40\.00 +40\.00 +add$'
check "a branch beside it is closed" shows '^ *16\.00 +\+ parse$'
tm send-keys Down Down Down Down Down Down
check "Down moves to it" at '\+ parse$'
check "Enter opens it" press Enter '^ *16\.00 +- parse$'
check "with what it calls" shows '^ *10\.00 +10\.00 +lex$'
check "Left closes it" press Left '\+ parse$'
check "Left again moves to its caller" press Left '^ *84\.00 +- main'
check "C closes all" key C '^ *84\.00 +\+ main'
check "E opens all" key E '^ *6\.00 +6\.00 +read$'
tm send-keys Down Down
check "the cursor is on eval" at 'eval$'
check "z zooms into it" key z 'Call tree, only below eval'
check "the other callees of main are gone" shows_no_more 'parse'
check "F: the functions of the zoom" key F 'only below eval'
check "their shares are those of all samples" shows '^ *100 +20\.00 +20\.00 +mul '
check "and no others" shows_no_more 'lex|idle'
check "Escape ends the zoom" key Escape 'idle'
check "a filter is asked for" key / 'only rows that match: _'
tm send-keys -l 'l$|mul'
tm send-keys Enter
check "and leaves the rows that match" shows_no_more ' add '
check "Backspace ends it" key BSpace ' add '

# --- Search in the tree ---

tm send-keys T
check "T: the tree again" shows '^Call tree$'
type_pattern 'LEX|^read'
check "/: only stacks that match" shows 'Call tree, only stacks with LEX\|\^read'
check "/: goes to the first" at '10\.00 +10\.00 +lex$'
check "n: the next" press n 'read$'
check "n: there is no other" key n 'no more matches'
check "N: the one before" press N 'lex$'
type_pattern '('
check "a pattern that is none is reported" shows '"\(": '
type_pattern 'nothing'
check "a pattern that nothing matches leaves an empty tree" shows 'only stacks with nothing'
check "Escape: all stacks" key Escape '^Call tree$'
check "q: the table" key q '^functions by self'

# --- Callers and callees ---

tm send-keys g
check "g: the first row" at ' add '
check "c: its callers" key c '^What calls add, each below what it calls'
check "down to the root" shows '^ *40\.00 +main$'
check "c: its callees" key c '^What add calls'
check "q: back" key q '^functions by self'
check "a: code that is not there is reported" key a 'add'
check "?: help" key '?' 'In the table'
tm send-keys -l '/what calls'
tm send-keys Enter
check "a text is searched" shows 'what calls the function'
check "q: back from help" key q '^functions by self'
check "Space turns the page, and freezes nothing" key Space '^functions by self$'

# --- A file that changes ---

echo 'other 1' >plain.folded
check "a file that changes has no effect" key T '^ *84\.00 +- main'
rm plain.folded
check "nor has one that is removed" key E '^ *10\.00 +10\.00 +lex$'
tm send-keys q
check "q quits" key q 'status 0'

# --- Threads, processes and units ---

browse units.pb.gz --by unit
check "units" at '^ *90 +90\.00 +web\.service'
check "Enter: the functions of one" key Enter 'functions by self, only unit web.service'
check "with shares of all" at '^ *60 +60\.00 +60\.00 +send'
check "P: its processes" key P '^ *30 +30\.00 +12 +web'
check "and not those of others" shows_no_more ' db'
check "Enter: a process of the unit" key Enter 'only unit web.service, only process 11'
check "T: its tree" key T 'Call tree, only unit web.service, only process 11'
check "has its stacks alone" shows '^ *60\.00 +60\.00 +send$'
tm send-keys q
check "Escape: the processes again, with the cursor where it was" press Escape ' 11 +web'
check "Escape: the units" key Escape '^units by self$'
check "u: functions" key u '^functions by self$'
check "t: threads" key t '^ *10 +10\.00 +13 +13 +db'
tm send-keys Tab Tab Tab
check "Tab goes on to names, and to units" shows '^units by self'
check "q quits from anywhere in the table" key q 'status 0'
browse units.pb.gz --unit "'db*'"
check "--unit selects" at '^ *10 +100\.00 +100\.00 +scan'
check "q quits there" key q 'status 0'
browse --focus parse units.pb.gz
check "--focus selects, with shares of all" at '^ *30 +30\.00 +30\.00 +parse'
check "q quits it" key q 'status 0'

# --- Over time ---

# One CPU is busy for 6 s, and another one for 200 ms.
printf '%s\n' '0 1 6000 17 17 web main;handle;parse' '2300 1 200 42 42 burst main;deflate' |
	"$build/tests/unit/times_make" times.pb.gz 1795000000000000000 6000 one
browse times.pb.gz
check "parse has most samples" at '^ *6000 +96\.77 .* parse'
check "o: over time" key o '^CPUs busy over time, in slots of 100 ms'
check "from the beginning" at '^ *100 +1\.00 +2026-11-18 11:06:40\.000 UTC +█+'
check "G: the end" press G '^ *100 +1\.00 .* 11:06:45\.900 UTC'
tm send-keys g
check "g: the beginning" at '11:06:40\.000 UTC'
for ((i = 0; i < 23; i++)); do tm send-keys Down; done
check "in the slots of the burst two CPUs are busy" at '^ *200 +2\.00 +2026-11-18 11:06:42\.300 UTC'
check "Enter zooms into it" key Enter 'slots of 10 ms, only from 2026-11-18 11:06:42\.300'
check "each of its slots has the ticks of two CPUs" at '^ *20 +2\.00 .*42\.300 UTC'
check "F: its functions" key F 'only from 2026-11-18 11:06:42\.300'
check "have the samples of the slot" at '^ *100 +1\.61 .* (parse|deflate)'
check "both" shows '^ *100 +1\.61 .* deflate'
check "T: its tree" key T '^ *3\.23 +- main'
tm send-keys q
check "Escape ends the zoom" press Escape '^ *6000 +96\.77 .* parse'
check "P: processes" key P '^ *200 .* 42 +burst'
tm send-keys G Enter
check "Enter: one of them" shows 'only process 42'
check "o: when it ran, not at the beginning" key o '^ *0 +0\.00 .*11:06:40\.000'
for ((i = 0; i < 23; i++)); do tm send-keys Down; done
check "but in its time" at '^ *100 +1\.00 .*11:06:42\.300'
tm send-keys g
tm resize-window -x 40 -y 10
check "40x10: a time of day" shows '^ *0 +0\.00 +11:06:40\.000'
check "40x10: no line is wider than it" is_wide 40
tm resize-window -x 80 -y 24
tm send-keys q
check "q quits after it" key q 'status 0'
browse units.pb.gz
check "a file without times" at ' send'
check "says so" key o 'it is not known when the ticks of this profile came'
check "and goes on" key q 'status 0'
browse --by time times.pb.gz
check "--by time begins with it" at '^ *100 +1\.00 +2026-11-18 11:06:40\.000 UTC +█+'
check "q shows the functions" key q '^ *6000 +96\.77 .* parse'
check "and q quits" key q 'status 0'

# --- Sizes ---

deep=$(printf 'level%d;' {1..300})
printf '%s 90\n%s 10\n' "${deep}leaf" "${deep}other" >deep.folded
browse deep.folded
check "a deep stack" at ' leaf'
tm resize-window -x 200 -y 60
check "200x60: a column of samples" key T '^total% +self% +samples +function'
check "the tree is as tall as the screen" shows 'level57'
tm send-keys G
check "End: the leaves" at 'other$'
tm resize-window -x 40 -y 10
check "40x10: the cursor stays in sight" at 'other$'
check "40x10: no line is wider" is_wide 40
tm send-keys q
check "40x10: the table" shows '^ *samples +self% +total% +function'
check "40x10: keys" shows '^\? help'
check "40x10: no line of it is wider" is_wide 40
tm resize-window -x 80 -y 24
check "q quits at 80x24" key q 'status 0'

# --- Hostile names ---

python3 -c '
import sys
esc = "\x1b[2J\x1b]0:x\x07"
sys.stdout.buffer.write(f"10 21 {esc} \u202eunit ma\u202ein\x1b[31m;{chr(120) * 1000000};\u2066{esc}\n".encode())' |
	pprof hostile.pb.gz
browse hostile.pb.gz
check "control characters are made visible" at '\\x1b\[2J'
check "the terminal is not cleared" shows '^10 samples'
check "T: a name of a megabyte" key T 'xxxx\.\.\.x+'
check "no line is wider than the screen" is_wide 80
check "characters that turn the direction are made visible" shows 'ma\\xe2\\x80\\xaein'
type_pattern 'xx+$'
check "it is matched, as far as 4 KiB" shows 'only stacks with xx\+\$'
check "F: its functions" key F 'only stacks with xx'
check "u: its unit" key u '\\xe2\\x80\\xaeunit'
check "t: its thread" key t '21 +21 +\\x1b'
check "q leaves a sane terminal" key q 'status 0'

finish
