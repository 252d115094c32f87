# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared variables: of lib.sh, and for scripts that source this
# Functions that the tests of libprofil share. Source it after lib.sh. They run a program that calls
# profil() with each available back end:
#   bpf      in the process itself, as root
#   user     through profild, as a user without privileges
#   daemon   the same as root, whose limits differ, but none of what is counted: calls.sh alone has it
#   kmod     /dev/profil, where it exists
#   libc     the C library's profil(), through libprofil. With PROFIL_TEST_GLIBC=1 its differences to
#            counting in the kernel are printed, too, but do not fail
#   glibc    the C library's profil() without libprofil: printed with PROFIL_TEST_GLIBC=1, does not fail

# A copy that every user can read, wherever the build is.
tree=$work/tree
sock=$work/profild.socket
chmod 711 "$work"
mkdir -p "$tree/progs"
cp -r "$build/lib" "$tree/"
cp "$progs"/profil_* "$tree/progs/"
mkdir -m 1777 "$work/tmp"
lib=$tree/lib/libprofil.so.1

# Ticks per second: many, so that rows are short; the C library always has 100.
hz=10000

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

backends="bpf user"
[ -e /dev/profil ] && backends+=" kmod"
beside=${PROFIL_TEST_GLIBC:+glibc} # shown as well; empty: nothing

# start_profild OPTION...: starts profild; sets $profild to its PID.
start_profild() {
	rm -f "$sock"
	"${pdeathsig[@]}" "$build/profild" --socket "$sock" "$@" >"$work/profild.log" 2>&1 &
	profild=$!
	note_started "$profild"
	wait_for listens "$sock"
}

# with BACKEND COMMAND...: runs a command with a back end; ends it after ten minutes, if it hangs.
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
	timeout -s KILL 600 "${as[@]}" env "${set[@]}" "$@"
}

# holds BACKEND PROGRAM [ARGUMENT]: succeeds if a row of a program, or the whole program, does.
holds() {
	with "$1" "$tree/progs/$2" "${@:3}"
}

# keep BACKEND N COMMAND...: runs a command and saves its output and exit status, for later.
keep() {
	local backend=$1 n=$2
	shift 2
	"$@" >"$work/$backend.$n" 2>&1
	echo $? >"$work/$backend.$n.status"
}

# kept BACKEND N: prints that output and returns that exit status, for check.
kept() {
	cat "$work/$1.$2"
	[ "$(cat "$work/$1.$2.status")" = 0 ]
}

# show BACKEND N NAME: prints that output as a comment if the command failed.
show() {
	local status
	status=$(cat "$work/$1.$2.status")
	[ "$status" = 0 ] && return
	[ "$status" -gt 128 ] && echo "ended by signal $((status - 128))" >>"$work/$1.$2"
	# Bash prints its own message about it.
	echo "# $1: $3: $(grep -v '/backends.sh: line ' "$work/$1.$2" | head -n 3 | paste -sd ';')"
}

# Rows with the C library's profil() take long, so all rows of a program run in parallel with the others;
# those that may fail are only printed.
keep_all() {
	local n
	for n in "${!rows[@]}"; do
		[[ ${rows[n]} != any* && -z $beside ]] || keep libc "$n" holds libc "$1" "${rows[n]#* }"
		[ -z "$beside" ] || keep glibc "$n" with glibc "$tree/progs/$1" "${rows[n]#* }"
	done 2>/dev/null
}

# rows PROGRAM: checks its rows with each back end, except those at a chosen rate: profil_row.h.
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
