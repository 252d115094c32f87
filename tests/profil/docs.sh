#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# libprofil's exported names, its header and its man pages agree, and the programs in the pages can be
# compiled and do what the pages say.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

unset PROFIL_BACKEND PROFIL_HZ PROFIL_SOCKET PROFIL_VERBOSE
lib=$top/user/lib
pages=("$lib/profil.3" "$lib/sprofil.3" "$lib/libprofil.3")
gmon_page=$lib/libprofil-gmon.7

# --- Lists of functions, one on a line ---

# What programs are to call; profil() and sprofil() are not in the version script. __cxa_atexit()
# stands in front of libc's, and is what compilers call.
exported() {
	nm -D --defined-only "$1" | sed -n 's/.* [TW] \([^@]*\).*/\1/p' |
		grep -vx __cxa_atexit | sort
}

# Of a version script.
versioned() {
	sed -n '/global:/,/}/s/^[[:space:]]*\([a-z_]\+\);$/\1/p' "$1" | sort
}

# Of a header and those of its name that it includes.
declared() {
	gcc -fsyntax-only -x c -aux-info "$work/declarations" "$1" &&
		sed -n 's/^.*profil\.h:.* \**\([a-z_]\+\) (.*/\1/p' "$work/declarations" | sort
}

# section NAME PAGE...: its lines.
section() {
	local name=$1
	shift
	awk -v heading=".Sh $name" '/^\.Sh / { inside = $0 == heading; next } inside' "$@"
}

# Of the synopses.
documented() {
	section SYNOPSIS "$@" | awk '$1 == ".Fo" || $1 == ".Fn" { print $2 }' | sort
}

# The names that man(1) finds the pages by, but for that of the library.
named() {
	section NAME "$@" | awk '$1 == ".Nm" && $2 != "libprofil" { print $2 }' | sort
}

# --- Environment ---

# The variables that are read in these files.
read_in() {
	grep -ho 'getenv("[A-Z_]*")' "$@" | grep -o '[A-Z_]\{2,\}' | sort -u
}

described() {
	section ENVIRONMENT "$1" | sed -n '/^\.It Ev /p' | grep -o '[A-Z_]\{4,\}' | sort
}

# --- What is checked ---

# same LIST1 LIST2: whether they are the same and not empty. Shows what differs.
same() {
	[ -n "$1" ] && diff <(echo "$1") <(echo "$2")
}

fails() {
	! "$@"
}

# A synopsis as C: compiled with the header, each prototype must be that of the header.
prototypes() {
	section SYNOPSIS "$1" | awk '
		/^\.In / { print "#include <" $2 ">" }
		/^\.Ft / { type = substr($0, 5) }
		/^\.Fo / { name = $2; arguments = "" }
		/^\.Fa / { arguments = arguments (arguments ? ", " : "") substr($0, 5) }
		/^\.Fn / { name = $2; arguments = substr($0, length(name) + 6) }
		/^\.F[cn]/ { gsub(/"/, "", arguments); print type, name "(" arguments ");" }'
}

same_prototypes() {
	prototypes "$1" >"$work/prototypes.c"
	gcc -fsyntax-only -Wall -Werror -I"$lib" "$work/prototypes.c"
}

# program PAGE NUMBER: of the page's examples, which are displays that are not indented.
program() {
	section EXAMPLES "$1" | awk -v number="$2" '
		/^\.Ed/ { inside = 0 }
		inside { gsub(/\\e/, "\\"); print }
		/^\.Bd -literal$/ { inside = ++programs == number }'
}

# compile NAME [NUMBER]: the program of NAME.3, the first or that one, becomes $work/NAME[NUMBER].
compile() {
	program "$lib/$1.3" "${2:-1}" >"$work/$1${2:-}.c"
	gcc -Wall -Wextra -Werror -I"$lib" -o "$work/$1${2:-}" "$work/$1${2:-}.c" \
		-L"$build/lib" -lprofil -Wl,-rpath,"$build/lib"
}

# prints NAME PATTERN [ARGUMENT...]: whether the program ends well and each line that it prints is of the pattern.
prints() {
	(cd "$work" && "./$1" "${@:3}") >"$work/$1.out" 2>&1 || {
		cat "$work/$1.out"
		return 1
	}
	cat "$work/$1.out"
	[ -s "$work/$1.out" ] && ! grep -qvxE "$2" "$work/$1.out"
}

cannot() {
	! "$@" 2>"$work/err" && grep "^no code: process $2 has no executable memory" "$work/err"
}

# in_report FILE: whether it has both functions of the example.
in_report() {
	"$profiltool" report "$work/$1" >"$work/report" && cat "$work/report" &&
		grep -qw first "$work/report" && grep -qw second "$work/report"
}

# Environment variables that programs with privileges would read as well.
read_insecurely() {
	grep -nw getenv "$lib"/*.c
}

# Whether these pages have the number of regions that are possible.
have_limit() {
	local limit page

	limit=$(gcc -E -P -I"$top" -include "$lib/region.h" - <<<MOST_REGIONS | tail -n 1)
	for page in "$@"; do
		grep -q "\b1 to $((limit))\b" "$page" || return
	done
}

# References to pages of ours that are not there.
dangling() {
	local name number

	grep -ho '^\.Xr [^ ]*profil[^ ]* [0-9]' "$top"/user/*/*.[1-8] | sort -u |
		while read -r _ name number; do
			grep -qsxF -e ".Nm $name" -e ".Nm $name ," "$top"/user/*/*."$number" ||
				echo "$name($number)"
		done
}

# --- The tests ---

functions=$(exported "$build/lib/libprofil.so.1")
own=$(echo "$functions" | grep -vx -e profil -e sprofil)
check "the header declares what is exported" same "$functions" "$(declared "$lib/profil.h")"
check "the man pages have what is exported" same "$functions" "$(documented "${pages[@]}")"
check "the version script has what is libprofil's own" same "$own" \
	"$(versioned "$lib/libprofil.map")"
for page in "${pages[@]}"; do
	check "$(basename "$page"): man(1) finds it by each of its functions" \
		same "$(documented "$page")" "$(named "$page")"
	check "$(basename "$page"): prototypes are those of the header" same_prototypes "$page"
done

mapfile -t core < <(printf '%s\n' "$lib"/*.c | grep -v /gmon)
check "profil.3 has each environment variable that the library reads" \
	same "$(read_in "${core[@]}")" "$(described "$lib/profil.3")"
check "libprofil-gmon.7 has these and its own" \
	same "$(read_in "$lib"/*.c)" "$(described "$gmon_page")"
check "none of them is read in a program with privileges" fails read_insecurely

check "the pages tell how many regions are possible" \
	have_limit "$lib/sprofil.3" "$lib/libprofil.3"
check "pages refer to pages that are there" [ -z "$(dangling)" ]
if command -v mandoc >/dev/null; then
	check "the man pages are clean" mandoc -Tlint -Wwarning "${pages[@]}" "$gmon_page"
else
	skip "the man pages are clean" "no mandoc"
fi

check "profil.3: the program can be compiled" compile profil
check "profil.3: it finds where it is busy" prints profil \
	'[1-9][0-9]* ticks 0x[0-9a-f]+ bytes behind __executable_start|counted by (kmod|bpf|daemon|libc)'
check "sprofil.3: the program can be compiled" compile sprofil
check_recorded "sprofil.3: it counts each function" prints sprofil \
	'first [1-9][0-9]*, second [1-9][0-9]*, elsewhere [0-9]+ ticks of (99[5-9]|100[0-4])[0-9] us'
check "libprofil.3: the program can be compiled" compile libprofil
check_recorded "libprofil.3: it counts each function" prints libprofil \
	'first [1-9][0-9]*, second [1-9][0-9]*, elsewhere [0-9]+, lost 0'
check_recorded "libprofil.3: its file has both" in_report loops.prof
check_recorded "libprofil.3: its database has both" in_report loops.dcpi

check "libprofil.3: the second program can be compiled" compile libprofil 2
start_ready "$build/tests/progs/shares" 1 0 stay
check_recorded "libprofil.3: it counts another process" prints libprofil2 \
	'[1-9][0-9]* ticks in (.*/shares|.*\.so[.0-9]*|\[vdso])' "$pid"
kernel_thread=$(kernel_thread)
if [ -n "$kernel_thread" ]; then
	check "libprofil.3: and says why it cannot" cannot "$work/libprofil2" "$kernel_thread"
else
	skip "libprofil.3: and says why it cannot" "no kernel thread is to be seen here"
fi

# The comparisons notice what they are made for.
check "a function that no page has is noticed" fails same "$functions" \
	"$(documented <(sed '/^\.Fo profil_read/,/^\.Fc/d' "$lib/libprofil.3") "${pages[@]:0:2}")"
check "a function without a version is noticed" fails same "$own" \
	"$(versioned <(sed '/profil_read_totals;/d' "$lib/libprofil.map"))"
check "another prototype is noticed" fails same_prototypes \
	<(sed 's/^\.Fa "size_t n"/.Fa "int n"/' "$lib/libprofil.3")
check "a variable that the page lacks is noticed" fails same "$(read_in "${core[@]}")" \
	"$(described <(sed '/^\.It Ev PROFIL_HZ/d' "$lib/profil.3"))"

finish
