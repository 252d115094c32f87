# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh sets some, and some is for those who source it
# Functions that the benchmarks of libprofil share. Source it after lib.sh. They run programs with libprofil
# preloaded, or with the C library's profil().

# A tree of its own, which every user can read wherever the build is.
tree=$work/tree
socket=$work/profild.socket
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# plant HELPER...: builds them, and makes the tree of them and the library.
plant() {
	local helper

	chmod 711 "$work"
	mkdir -p "$tree/bench"
	for helper; do
		build_helper "$helper" && cp "$helpers/$helper" "$tree/bench/" || return
	done
	cp -r "$build/lib" "$tree/"
}

# set_command BACKEND HZ PROGRAM ARG...: $command runs one of our programs so. BACKEND is bpf,
# daemon, user (that, without rights) or glibc (the C library's own profil(), always 100 Hz).
set_command() {
	local backend=$1 hz=$2 as=()
	shift 2
	command=("$tree/bench/$1" "${@:2}")
	case $backend in
	glibc) return ;;
	user) as=("${nobody[@]}") backend=daemon ;;
	esac
	command=("${as[@]}" env LD_PRELOAD="$tree/lib/libprofil.so.1" PROFIL_BACKEND="$backend"
		PROFIL_HZ="$hz" PROFIL_SOCKET="$socket" "${command[@]}")
}

# run_program BACKEND HZ PROGRAM ARG...: runs it to its end; `told NAME` prints a value of its output.
run_program() {
	set_command "$@"
	"${command[@]}" >"$work/program" 2>"$work/program.err" </dev/null
}

told() { sed -n "s/^$1=//p" "$work/program"; }

# start_program BACKEND HZ PROGRAM ARG...: in the background, until it is ready; $pid.
start_program() {
	set_command "$@"
	start_ready "${command[@]}" && kill -0 "$pid" && return
	cp "$work/start.out" "$work/start.err"
	return 1
}

start_profild() {
	rm -f "$socket"
	"${pdeathsig[@]}" "$build/profild" --socket "$socket" 2>"$work/profild.err" &
	profild=$!
	note_started "$profild"
	wait_for listens "$socket"
}

now_ns() { echo "${EPOCHREALTIME/./}000"; }

profild_ns() { cat /proc/"$profild"/task/*/schedstat | awk '{ sum += $1 } END { print sum }'; }
