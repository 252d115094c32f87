#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# flamegraph: the files that it writes, its options and errors, and how a browser shows them.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

flamegraph() {
	"$profiltool" flamegraph "$@"
}

# 100 samples; names that would be markup, end a script, or are no text.
printf '%b' \
	'main;parse;read 20\n' \
	'main;parse;read;Read_all 5\n' \
	'main;parse;read;other;read 2\n' \
	'main;parse;[lex] 13\n' \
	'main;compute;solve 17\n' \
	'main;compute;solve;std::vector<int, std::allocator<int> >::push_back(int const&) 3\n' \
	'main;compute;</script><script>window.pwned=1;alert(1)</script> 4\n' \
	'main;compute;]]><script>window.pwned=1</script> 2\n' \
	'main;compute;<!--<script> 1\n' \
	'main;compute;"quotes"\x27 & &amp; <b>bold</b> \\\\u003c 2\n' \
	'main;compute;<img src=x onerror=window.pwned=1> 2\n' \
	'main;compute;bell\a escape\x1b[31m 1\n' \
	'main;compute;bytes \xff\xfe 1\n' \
	'main;compute;not a character \xef\xbf\xbe 1\n' \
	'main;compute;reversed \xe2\x80\xae line\xe2\x80\xa8 1\n' \
	'main;a_name_that_is_far_too_long_for_the_frame_that_it_stands_in_however_wide_the_window_is_and_so_is_cut 9\n' \
	'main;write 10\n' \
	'main;write;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! 1\n' \
	'main;write;data 2\n' \
	'main;write;(a+)+ 1\n' \
	'start 2\n' | sed 's/window.pwned=1;alert/window.pwned=1,alert/' >"$work/new.folded"
# 200 samples, in which solve had half of its share, parse more, and legacy was.
printf '%s\n' 'main;parse;read 80' 'main;parse;[lex] 26' 'main;compute;solve 20' \
	'main;legacy 30' 'main;write 28' 'start 16' >"$work/old.folded"

draw() { # FILE OPTION...
	local out=$work/$1
	shift
	exits 0 flamegraph --percent 0 "$@" "$work/new.folded" -o "$out"
}
check "an SVG file" draw flame.svg
check "an HTML file" draw flame.html
check "an icicle graph" draw icicle.html --icicle
check "an inverted graph" draw inverted.svg --inverted
check "both" draw both.svg --icicle --inverted
check "a comparison" draw diff.html --diff "$work/old.folded"
check "a comparison in SVG" draw diff.svg --diff "$work/old.folded"

# --- The files ---

well_formed() {
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"
}
for name in flame inverted both diff; do
	check "$name.svg is XML" well_formed "$work/$name.svg"
done

# frames FILE EXPRESSION: prints a Python expression about the frames, f: [{name, says, level, color}].
frames() {
	python3 -c '
import html, re, sys
f = [dict(zip(("name", "says", "y", "color"), map(html.unescape, found))) for found in re.findall(
    r"<g><title>(.*?)\n(.*?)</title><rect .*? y=\"(\d+)\".*? fill=\"(.*?)\"", open(sys.argv[1]).read(), re.S)]
for one in f:
    one["level"] = abs(int(one["y"]) - int(f[0]["y"])) // 18
print(eval(sys.argv[2]))' "$@"
}
for file in flame.svg flame.html diff.html; do
	check "$file: has all samples" test "$(frames "$work/$file" 'f[0]["says"].split(";")[0]')" = "100 samples, 100.00 %"
	check "$file: no script but its own" test "$(grep -c '<script' "$work/$file")" -eq 1
done
picture() {
	sed -n '/<g id="frames"/,/^<\/g>$/p' "$1"
}
check "the same picture in both" cmp <(picture "$work/flame.svg") <(picture "$work/flame.html")
check "the page forbids all requests" grep -q "default-src 'none'" "$work/flame.html"
check "no address of a network but that of SVG" test "$(grep -ohE 'https?://[^" ]*' "$work"/flame.* |
	sort -u | grep -cvx -e 'http://www.w3.org/2000/svg' -e 'http://www.w3.org/1999/xhtml')" -eq 0
check "only its owner may read it" test "$(stat -c %a "$work/flame.svg")" = 600

check "the format is by the extension" grep -q '^<!DOCTYPE html>' "$work/flame.html"
is_html() {
	exits 0 "$@" && grep -q '^<!DOCTYPE html>' "$work/out"
}
check "--format decides, - is standard output" \
	is_html flamegraph -f html "$work/new.folded" -o -
check "-f svg, whatever the name" exits 0 flamegraph -f svg "$work/new.folded" -o "$work/x.html"
check "-f svg, whatever the name: it is" well_formed "$work/x.html"
check "what is compared stands above it" grep -q '<title>[^<]*new.folded against [^<]*old.folded</title>' \
	"$work/diff.html"
check "--title, escaped" exits 0 flamegraph --title 'a <b> & "c"' "$work/new.folded" -o "$work/t.svg"
check "--title, escaped: it stands there" \
	grep -q '>a &#60;b&#62; &#38; &#34;c&#34;</text>' "$work/t.svg"
check "several files are added up" exits 0 flamegraph "$work/new.folded" "$work/old.folded" -o "$work/s.html"
check "to their sum" grep -q '^300 samples, 100.00 %' "$work/s.html"

# --- What is folded, left out, or missing ---

check "--percent folds" exits 0 flamegraph --percent 4.5 "$work/new.folded" -o "$work/p.svg"
check "--percent folds: reported" grep -q '>1[0-9] frames under 4.5 % of all samples are not shown.<' "$work/p.svg"
names_in() {
	frames "$1" '" ".join(sorted({one["name"] for one in f}))'
}
check "frames that are not shown are not in the file" \
	test "$(names_in "$work/p.svg" | grep -c bytes)" -eq 0
check "--focus" exits 0 flamegraph --focus '^solve$' "$work/new.folded" -o "$work/f.svg"
check "keeps what it means" test "$(names_in "$work/f.svg")" = \
	"all compute main solve std::vector<int, std::allocator<int> >::push_back(int const&)"
check "--focus: the graph says that it is a part" \
	grep -q '>This is a part of the profile: 20.00 % of all samples.<' "$work/f.svg"
check "--ignore" exits 0 flamegraph --ignore compute "$work/new.folded" -o "$work/i.svg"
check "leaves out what it means" test "$(names_in "$work/i.svg" | grep -c compute)" -eq 0
check "--focus on nothing: status 4" exits 4 flamegraph --focus nothing "$work/new.folded" -o "$work/n.svg"
check "--focus on nothing: status 4: writes nothing" test ! -e "$work/n.svg"
echo 'only 7' >"$work/flat.folded"
check "without stacks" exits 0 flamegraph "$work/flat.folded" -o "$work/flat.svg"
check "without stacks: reported" says "has no call stacks: record with -g"
check "in the file, too" grep -q 'There are no call stacks' "$work/flat.svg"
echo 'a;b 0' >"$work/empty.folded"
check "without samples: status 4" exits 4 flamegraph "$work/empty.folded" -o "$work/e.svg"
check "without samples: status 4: no file" test ! -e "$work/e.svg"

# --- Processes ---

# shellcheck disable=SC2016 # for the other shell
"$profiltool" record -F 999 -o "$work/two.pb.gz" -- bash -c '
	for i in 1 2; do (j=0; while [ $((j++)) -lt 60000 ]; do :; done) & done; wait' 2>/dev/null >&2
roots() { # OPTION...: how many frames next to the root are grey
	flamegraph "$@" "$work/two.pb.gz" -o "$work/two.html" 2>/dev/null
	frames "$work/two.html" 'sum(one["level"] == 1 and ",0%," in one["color"] for one in f)'
}
check_recorded "several processes are the lowest frames" test "$(roots)" -ge 2
check_recorded "--by function: none" test "$(roots --by function)" -eq 0
check_recorded "--by thread" test "$(roots --by thread)" -ge 2

flamegraph --value cpu "$work/two.pb.gz" -o "$work/two.html" 2>/dev/null
check_recorded "--value" grep -q '^[0-9.]* s, 100.00 %; self' "$work/two.html"

# --- Inlined functions ---

cat >"$work/inlined.c" <<'EOF_C'
static inline __attribute__((always_inline)) unsigned long innermost(unsigned long x)
{
	for (int i = 0; i < 1000; i++)
		__asm__ volatile("" : "+r"(x));
	return x;
}

__attribute__((noinline)) static void outermost(void)
{
	for (int i = 0; i < 300000; i++)
		innermost(i);
}

int main(void)
{
	outermost();
	return 0;
}
EOF_C
gcc -O1 -g -fno-omit-frame-pointer "$work/inlined.c" -o "$work/inlined"
"$profiltool" record -g -F 999 -o "$work/in.pb.gz" -- "$work/inlined" >/dev/null 2>&1
flamegraph --inline "$work/in.pb.gz" -o "$work/in.html"
check_recorded "--inline: functions that are inlined are marked" \
	test "$(frames "$work/in.html" '{", inlined\n" in one["says"] for one in f if one["name"] == "innermost"}')" = "{True}"

# --- Errors ---

check "no -o is a usage error" exits 2 flamegraph "$work/new.folded"
check "no -o is a usage error: says what is missing" says "-o OUT"
check "no file is a usage error" exits 2 flamegraph -o "$work/x.svg"
cp "$work/new.folded" "$work/same.folded"
check "a profile is not overwritten by its graph" \
	exits 2 flamegraph "$work/new.folded" "$work/same.folded" -o "$work/same.folded"
check "a profile is not overwritten by its graph: reported" \
	says "same.folded is one of the profiles to read"
check "a profile is not overwritten by its graph: the profile is whole" \
	cmp "$work/new.folded" "$work/same.folded"
echo precious >"$work/precious.pb.gz"
for name in precious.pb.gz x.png x.folded x.svgz x .svg/x; do
	mkdir -p "$work/.svg"
	check "-o $name is no graph" exits 2 flamegraph "$work/new.folded" -o "$work/$name"
	check "-o $name is no graph: what to do" says "add -f svg or -f html"
done
check "a profile of another name is as it was" grep -qx precious "$work/precious.pb.gz"
check "-f svg says what it is" exits 0 flamegraph -f svg "$work/new.folded" -o "$work/graph"
check ".htm and capitals" exits 0 flamegraph "$work/new.folded" -o "$work/x.HTM"
check ".htm and capitals: it is" grep -q '^<!DOCTYPE html>' "$work/x.HTM"
to_pipe() {
	"$profiltool" flamegraph "$work/new.folded" -o /dev/stdout | cat >"$work/piped.svg"
	well_formed "$work/piped.svg"
}
check "a pipe has no extension: svg" to_pipe
check "a wrong format" exits 2 flamegraph -f png "$work/new.folded" -o "$work/x.png"
check "lists the valid values" says "svg, html"
check "a wrong field" exits 2 flamegraph --by line "$work/new.folded" -o "$work/x.svg"
check "a wrong percentage" exits 2 flamegraph --percent 101 "$work/new.folded" -o "$work/x.svg"
check "a directory that does not exist" exits 1 flamegraph "$work/new.folded" -o "$work/none/x.svg"
check "a full disk" exits 1 flamegraph "$work/new.folded" -o /dev/full
check "standard output that is full" exits 1 bash -c \
	"'$profiltool' flamegraph '$work/new.folded' -o - >/dev/full"

# --- In a browser ---

if command -v node >/dev/null; then
	check "the script is JavaScript" node --check "$top/user/report/flame_graph/flame_graph.js"
else
	skip "the script is JavaScript" "no node"
fi
# Either would end the element that it stands in.
check "the script can stand in SVG and HTML" test \
	"$(grep -cE ']]>|</script|<!--' "$top/user/report/flame_graph/flame_graph.js")" -eq 0

# result LINE: prints what it says, and passes as it does.
result() {
	echo "$1"
	[[ $1 == ok:* ]]
}
if command -v chromium >/dev/null; then
	python3 -B "$top/tests/chromium/flame_graph.py" "$work" >"$work/facts" 2>"$work/facts.err"
	check "Chromium has looked at them" test $? -eq 0
	sed 's/^/# /' "$work/facts.err"
	while IFS= read -r line; do
		name=${line#*ok: }
		[[ $line == ok:* ]] || name=${name%%: *: *}
		check "$name" result "$line"
	done <"$work/facts"
else
	skip "in a browser" "no chromium"
fi

# policy PAGE: it allows its own script, by its hash, and nothing else.
policy() {
	python3 - "$1" <<'END_PYTHON'
import base64, hashlib, re, sys
page = open(sys.argv[1]).read()
rule = re.search('http-equiv="Content-Security-Policy" content="(.*?)"', page).group(1)
text = re.search('<script>(.*?)</script>', page, re.S).group(1)
digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
assert "script-src 'sha256-%s';" % digest in rule
assert 'unsafe' not in rule and not re.search('<[^>]* (on[a-z]+|style)=', page)
END_PYTHON
}
printf 'main;work 3\n' >"$work/policy.folded"
check "a page for the policy" exits 0 "$profiltool" flamegraph "$work/policy.folded" -o "$work/policy.html"
check "a page's policy allows its own script alone" policy "$work/policy.html"

finish
