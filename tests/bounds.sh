#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What is bounded in the sources has a comment that says so, and user/doc/bounds.md is made of these.
# shellcheck disable=SC2016,SC2317 # the quotes of Markdown; functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# print_page TREE: what is bounded there has a comment.
print_page() {
	"$top/tests/bounds.py" "$1" >"$work/page" 2>"$work/problems" && return
	cat "$work/problems"
	return 1
}
is_same_page() {
	diff -u "$top/user/doc/bounds.md" "$work/page" && return
	echo "user/doc/bounds.md is not what the sources say: make bounds"
	return 1
}

check "all that is bounded has a comment" print_page "$top"
check "user/doc/bounds.md is made of these comments" is_same_page

# --- Trees of small files: what is found without a comment, or with a wrong one, and what is not ---

# source_file TREE/FILE <<<LINES
source_file() {
	mkdir -p "$(dirname "$work/$1")" && cat >"$work/$1"
}
source_file bad/user/util/constant.c <<<'#define X_MAX 5'
source_file bad/user/util/enumerator.c <<<$'enum {\n\tX_MAX = 5,\n};'
source_file bad/bpf/map.h <<<$'struct {\n\t__uint(max_entries, 1024);\n} x SEC(".maps");'
source_file bad/user/symbol/cache.c <<<$'struct x_cache {\n\tint x;\n};'
source_file bad/user/daemon/flag.h <<<$'struct x {\n\tbool is_refused; /* for ever */\n};'
source_file bad/user/capture/array.h <<<$'struct x {\n\tuid_t stuck[8];\n};'
source_file bad/user/capture/size.h <<<$'#define USERS 8\nstruct x {\n\tuid_t stuck[USERS];\n};'
source_file bad/user/util/lacks.c <<<$'/* Bound: users: xs; then: none; share: none. */\n#define X_MAX 5'
source_file bad/user/util/word.c <<<$'/* Bound: other: xs; then: none. */\n#define X_MAX 5'
source_file bad/user/util/lost.c <<<$'/* Bound: format. */\n\n#define X 5'
source_file bad/user/util/like.c <<<$'/* Bound: as Y_MAX. */\n#define X_MAX 5'

source_file good/user/util/shared.c <<<$'/*\n * Why.\n * Bound: caller: xs;\n * then: none.\n */\n#define X_MAX 5\n#define Y_MAX 6'
source_file good/bpf/map.h <<<$'/* Bound: format. */\n#define XS 5\nstruct {\n\t__uint(max_entries, XS);\n} x SEC(".maps");'
source_file good/user/util/mark.h <<<$'#define X_MAX UINT32_MAX\n#define NS_PER_S 1000000000'
source_file good/user/util/count.h <<<'#define MOST_COUNT (sizeof(x) / sizeof(*x))'
source_file good/user/util/row.c <<<$'/* Bound: files: bytes of x; then: it | is cut. */\n#define X_MAX ((size_t)4 << 20)'

check "a tree in which all have a comment is fine" print_page "$work/good"

# has_row TEXT: a line of that page has it.
has_row() {
	cat "$work/page"
	grep -qF -- "$1" "$work/page"
}
check "a row of the page" has_row '| bytes of x<br>`X_MAX`<br>user/util/row.c | 4 MiB | it \| is cut |  |  |  |'
check "constants that follow without a gap share a row" has_row \
	'| xs<br>`X_MAX`, `Y_MAX`<br>user/util/shared.c | 5; 6 | none |  |  |  |'

"$top/tests/bounds.py" "$work/bad" >/dev/null 2>"$work/problems"
check "a tree without comments fails" [ $? -eq 1 ]

# finds FILE TEXT: there is one problem in this file, which has this text.
finds() {
	grep -F "$1:" "$work/problems"
	[ "$(grep -cF "$1:" "$work/problems")" -eq 1 ] && grep -qF -- "$1:$2" "$work/problems"
}
check "a constant" finds user/util/constant.c "1: constant X_MAX: needs a comment"
check "an enumerator" finds user/util/enumerator.c "2: constant X_MAX: needs a comment"
check "a BPF map" finds bpf/map.h "1: map x: needs a comment"
check "a cache" finds user/symbol/cache.c "1: cache x_cache: needs a comment"
check "a flag that nothing takes back" finds user/daemon/flag.h "2: flag is_refused: needs a comment"
check "an array" finds user/capture/array.h "2: array stuck: needs a comment"
check "the constant of an array" finds user/capture/size.h "1: constant USERS: needs a comment"
check "a comment that lacks an answer" finds user/util/lacks.c "2: constant X_MAX: its comment lacks again, seen"
check "a comment with an unknown word" finds user/util/word.c '2: constant X_MAX: "other" is none of users'
check "a comment without a definition" finds user/util/lost.c '1: "Bound:" stands above no definition'
check "the same as a bound that is not there" finds user/util/like.c \
	"2: constant X_MAX: there is no bound of one Y_MAX"

finish
