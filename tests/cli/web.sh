#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# web: the page that it writes, its options and errors, and what a person does with it in a browser.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
export TZ=UTC
cd "$work" || exit

# Six seconds. Two threads of "web" are busy for 10 and 4 of 100 ms; "burst" for 150 ms from 2.3 s on.
printf '%s\n' '0 10 600 17 17 web main;serve;parse' '5 25 240 17 18 web main;serve;send' \
	'2300 1 150 20 20 burst main;work;compress' |
	"$build/tests/unit/times_make" spike.pb.gz 1795000020000000000 6000 one
printf '%s\n' '0 10 420 17 17 web main;serve' | "$build/tests/unit/times_make" short.pb.gz 1795000020000000000 4200 one
# Names that would be markup, end a script, or are no text; one of a megabyte.
{
	printf '%b' 'main;</script><script>window.pwned=1</script> 40\n' \
		'main;<!--<script> 10\n' \
		'main;<img src=x onerror=window.pwned=1> 9\n' \
		'main;"quotes"\x27 & &amp; <b>bold</b> \\\\u003c 8\n' \
		'main;bell\a escape\x1b[31m 7\n' \
		'main;bytes \xff\xfe 6\n' \
		'main;reversed \xe2\x80\xae line\xe2\x80\xa8 5\n' \
		'main;recursive;a;recursive;a;recursive 5\n'
	printf 'main;%s 10\n' "$(head -c 1000000 /dev/zero | tr '\0' a)"
} >hostile.folded
# Statements that would be markup, act on a terminal, or turn the line around; and a label with such a name.
{
	printf '%b' '0 10 300 17 17 db,query=<img/src=x/onerror=window.pwned=1> main;execute;store\n' \
		'0 10 100 17 18 db,query=SELECT\xe2\x80\xaex\x1b[31m main;scan\n' '0 =30 10 17 18 db,query=SELECT\xe2\x80\xaex\x1b[31m main;[blocked: lock]\n' \
		'0 10 50 20 20 cache,</script><b>=<b>b</b> main;find\n'
} | "$build/tests/unit/times_make" labels.pb.gz 1795000020000000000 6000 one wall
printf '%s\n' 'main;parse;read 8000' 'main;parse 2600' 'main;solve 2000' 'main;legacy 3160' 'main;same 4240' >old.folded
printf '%s\n' 'main;parse;read 3000' 'main;parse 1300' 'main;solve 3500' 'main;new 100' 'main;same 2100' >new.folded

# Calls that were counted, without stacks; right calls itself, too.
cat >calls.callgrind <<'EOF_CALLGRIND'
# callgrind format
events: Ir
fl=x.c
fn=main
1 10
cfn=left
calls=2 1
3 300
cfn=right
calls=5 1
4 500
fn=left
1 300
fn=right
1 400
cfn=leaf
calls=7 1
2 100
cfn=right
calls=3 1
2 50
fn=leaf
1 100
EOF_CALLGRIND
# A program at fixed addresses, and a profile of it made by hand: every instruction of two functions has
# samples, main calls them. A comment of its source would be markup.
cat >code.c <<'EOF_C'
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	return x ^ x << 13; /* </script><script>window.pwned=1</script><b>bold</b> */
}
__attribute__((noipa)) unsigned hot(unsigned n)
{
	unsigned x = 88172645;

	while (n--)
		x = mix(x);
	return x;
}
__attribute__((noipa)) unsigned cold(unsigned n)
{
	return n / 3;
}
int main(void)
{
	return hot(3) + cold(4);
}
EOF_C
gcc -g -O1 -no-pie code.c -o code
chmod 755 "$work" && chmod 644 code.c # root reads only what all may read
python3 - code <<'EOF_PYTHON'
import os, re, struct, subprocess, sys
text = subprocess.run(["objdump", "-d", sys.argv[1]], capture_output=True, text=True, check=True).stdout
pcs, call = {}, {}
for name, body in re.findall(r"^[0-9a-f]+ <(\w+)>:\n(.*?)\n(?:\n|$)", text + "\n\n", re.M | re.S):
	lines = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(.*)", body, re.M)
	pcs[name] = [int(address, 16) for address, _ in lines]
	call[name] = {this[1]: int(after, 16) for this, after in
		((re.search(r"call.*<(\w+)>$", one), next) for (_, one), (next, _) in zip(lines, lines[1:])) if this}
slots = [0, 3, 0, 10000, 0]
for i, pc in enumerate(pcs["hot"]):
	slots += [100 + i, 2, pc, call["main"]["hot"]]
for pc in pcs["cold"]:
	slots += [1, 2, pc, call["main"]["cold"]]
slots += [0, 1, 0]
with open("code.prof", "wb") as out:
	out.write(struct.pack("=%dQ" % len(slots), *slots))
	out.write(b"00400000-00500000 r-xp 00000000 08:01 7 %s\n" % os.path.abspath(sys.argv[1]).encode())
EOF_PYTHON

web() {
	"$profiltool" web "$@"
}

"$build/tests/unit/times_make" chains.pb.gz 1795000020000000000 1000 one chains <"$top/tests/web/chain.txt"
"$profiltool" why -q --json -p front --limit 1 chains.pb.gz >turns.json

check "a page" web -q spike.pb.gz -o spike.html
check "a page of less than five seconds" web -q short.pb.gz -o short.html
"$build/tests/unit/archive_make" place archive host 1795000020 1 60 spike.pb.gz
check "of a recording with chains" web -q chains.pb.gz -o chains.html
check "of the archive" web -q archive -o archive.html
check "of a hostile profile" web -q hostile.folded -o hostile.html
check "of a profile with labels" web -q labels.pb.gz -o labels.html
check "of two profiles" web -q --diff old.folded new.folded -o diff.html
check "of an interval of a profile" web -q --since +2.3s --until +2.35s spike.pb.gz -o part.html
check "of a profile without stacks" web -q calls.callgrind -o calls.html
check "of two of these" web -q --diff calls.callgrind calls.callgrind -o calls_diff.html
check "with the code of busy functions" web -q code.prof -o code.html
check "with instructions alone" web -q --no-source code.prof -o no_source.html
check "without code" web -q --no-code code.prof -o no_code.html
check "with the code of functions that have half of the samples" web -q --code 50 code.prof -o half.html
check "a share is a percentage" exits 2 web -q --code 101 code.prof -o x.html
check "and which option that was is said" says "--code takes a percentage"
check "to standard output" test "$(web -q new.folded -o - | head -n 1)" = '<!DOCTYPE html>'
check "it asks nothing of the network" test "$(grep -cE '(src|href)=' spike.html)" -eq 0
check "it is not the profile" exits 2 web -q new.folded -o new.folded
check "and not what it is compared with" exits 2 web -q --diff old.folded new.folded -o old.folded
check "the name says that it is a page" exits 2 web -q new.folded -o page.txt
check "and what it should be" says "end it in .html"
check "a profile is needed" exits 2 web
check "a profile without samples" exits 4 web -q --focus nothing_has_this_name new.folded -o x.html
check "a port is a number" exits 2 web -q --serve=65536 new.folded
check "which that is is said" says "--serve takes a port"
check "standard output has the address, not the page" exits 2 web -q --serve -o - new.folded
check "a value that there is not" exits 2 web -q --value seconds new.folded -o x.html
check "a full disk" exits 1 web -q new.folded -o /dev/full
check "and nothing is left of a page" test ! -e x.html

# --- In a browser ---

if command -v node >/dev/null; then
	cp "$build/embed/web.js" web.mjs # in a module, no name stands for two things
	check "the script is JavaScript" node --check web.mjs
else
	skip "the script is JavaScript" "no node"
fi
# Either would end the element that it stands in.
check "the script and the style can stand in a page" test \
	"$(grep -lE '</script|</style|<!--' "$build/embed/web.js" "$top/user/report/web/web.css" | wc -l)" -eq 0

# What report prints of the same.
"$profiltool" report -q --json --percent 0 spike.pb.gz >spike.json
"$profiltool" report -q --json --percent 0 --since +2s --until +3s spike.pb.gz >second.json
"$profiltool" report -q --json --percent 0 --comm burst spike.pb.gz >burst.json

"$profiltool" report -q --json --percent 0 calls.callgrind >calls.json
for function in hot cold main; do
	"$profiltool" annotate -q --json $function code.prof >$function.json
done

# result LINE: prints what it says, and passes as it does.
result() {
	echo "$1"
	[[ $1 == ok:* ]]
}
# facts FILE: each of its lines is a row.
facts() {
	local line name
	while IFS= read -r line; do
		name=${line#*ok: }
		[[ $line == ok:* ]] || name=${name%%: *: *}
		check "$name" result "$line"
	done <"$1"
}
if command -v chromium >/dev/null; then
	python3 -B "$top/tests/chromium/web.py" "$work" >facts 2>facts.err
	check "Chromium has looked at them" test $? -eq 0
	sed 's/^/# /' facts.err
	facts facts
else
	skip "in a browser" "no chromium"
fi

# --- Shown at once ---

python3 -B "$top/tests/cli/web_serve.py" "$profiltool" code.prof code.html >served 2>served.err
check "--serve was asked everything" test $? -eq 0
sed 's/^/# /' served.err
facts served

finish
