# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh sets some, and some is for those who source it
# What the tests of libprofil share, to be sourced after lib.sh: a program that calls profil() is
# run with each back end that there is.
#   bpf      in the process itself, which is root's
#   daemon   through profild, as root; `user`: as a user without rights
#   kmod     /dev/profil, where it is
#   libc     the C library's profil() below libprofil. With PROFIL_TEST_GLIBC=1 what it does otherwise
#            than where the kernel counts is shown, too, and not judged
#   glibc    the C library's alone, without libprofil: shown with PROFIL_TEST_GLIBC=1, not judged

# A tree of its own, which every user can read wherever the build is.
tree=$work/tree
sock=$work/profild.socket
chmod 711 "$work"
mkdir -p "$tree/progs"
cp -r "$build/lib" "$tree/"
cp "$progs"/profil_* "$tree/progs/"
mkdir -m 1777 "$work/tmp"
lib=$tree/lib/libprofil.so.1

# Ticks per second, so that rows are short; the C library has 100 at any rate.
hz=10000

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

backends="bpf daemon user"
[ -e /dev/profil ] && backends+=" kmod"
beside=${PROFIL_TEST_GLIBC:+glibc} # shown as well; empty: nothing

# start_profild OPTION...: $profild is its process.
start_profild() {
	rm -f "$sock"
	"${leash[@]}" "$build/profild" --socket "$sock" "$@" >"$work/profild.log" 2>&1 &
	profild=$!
	note_started "$profild"
	wait_for test -S "$sock"
}

# with BACKEND COMMAND...: runs it so; ended after two minutes.
with() {
	local backend=$1 as=() set=(TMPDIR="$work/tmp")
	shift
	case $backend in
	glibc) set+=(PROFIL_TEST_BRIEF=1) ;;
	libc) set+=(LD_PRELOAD="$lib" PROFIL_BACKEND=libc PROFIL_TEST_BRIEF=1) ;;
	user)
		as=("${nobody[@]}")
		set+=(LD_PRELOAD="$lib" PROFIL_BACKEND=daemon PROFIL_HZ="$hz" PROFIL_SOCKET="$sock")
		;;
	*) set+=(LD_PRELOAD="$lib" PROFIL_BACKEND="$backend" PROFIL_HZ="$hz" PROFIL_SOCKET="$sock") ;;
	esac
	timeout -s KILL 120 "${as[@]}" env "${set[@]}" "$@"
}

# holds BACKEND PROGRAM [ARGUMENT]: a row, or all of a program.
holds() {
	with "$1" "$tree/progs/$2" "${@:3}"
}

# keep BACKEND N COMMAND...: what it says and how it ends, not to be judged at once.
keep() {
	local backend=$1 n=$2
	shift 2
	"$@" >"$work/$backend.$n" 2>&1
	echo $? >"$work/$backend.$n.status"
}

# kept BACKEND N: for check.
kept() {
	cat "$work/$1.$2"
	[ "$(cat "$work/$1.$2.status")" = 0 ]
}

# show BACKEND N NAME: what is wrong with it, as a comment.
show() {
	local status
	status=$(cat "$work/$1.$2.status")
	[ "$status" = 0 ] && return
	[ "$status" -gt 128 ] && echo "ended by signal $((status - 128))" >>"$work/$1.$2"
	# Bash says the same in its own words.
	echo "# $1: $3: $(grep -v '/backends.sh: line ' "$work/$1.$2" | head -n 3 | paste -sd ';')"
}

# The C library's: they take long, so that all of a program run while the others do; those that need
# not hold, only to be shown.
keep_all() {
	local n
	for n in "${!rows[@]}"; do
		[[ ${rows[n]} != any* && -z $beside ]] || keep libc "$n" holds libc "$1" "${rows[n]#* }"
		[ -z "$beside" ] || keep glibc "$n" with glibc "$tree/progs/$1" "${rows[n]#* }"
	done 2>/dev/null
}

# rows PROGRAM: its rows with each back end, but for those of a rate: profil_row.h.
rows() {
	local rows n name backend
	mapfile -t rows < <("$tree/progs/$1" list | grep -v ^rate)
	keep_all "$1" &
	for n in "${!rows[@]}"; do
		name=${rows[n]#* }
		for backend in $backends; do
			check "$backend: $name" holds "$backend" "$1" "$name"
		done
	done
	wait $!
	for n in "${!rows[@]}"; do
		name=${rows[n]#* }
		case ${rows[n]} in
		any*) check "libc: $name" kept libc "$n" ;;
		*) [ -z "$beside" ] || show libc "$n" "$name" ;;
		esac
		[ -z "$beside" ] || show glibc "$n" "$name"
	done
}
