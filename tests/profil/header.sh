#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# libprofil's header as other programs use it: in C and C++, with other C libraries, by programs that
# are older or newer than the library, and for a process that does not exist.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

unset PROFIL_BACKEND PROFIL_HZ PROFIL_SOCKET PROFIL_VERBOSE
lib=$top/user/lib
strict=(-Wall -Wextra -Wshadow -pedantic -Werror)
link=(-L"$build/lib" -lprofil "-Wl,-rpath,$build/lib")

# --- Compilers ---

echo '#include <profil.h>' >"$work/alone.h"

# stands_alone COMPILER OPTION...: the header needs no other before it and no feature macro.
stands_alone() {
	"$@" "${strict[@]}" -I"$lib" -fsyntax-only "$work/alone.h"
}

for standard in c99 c11 gnu17; do
	check "$standard: the header" stands_alone gcc -x c -std=$standard
done
for standard in c++11 c++20; do
	check "$standard: the header" stands_alone g++ -x c++ -std=$standard
done
for compiler in clang clang++; do
	if command -v "$compiler" >/dev/null; then
		language=c
		[ "$compiler" = clang ] || language=c++
		check "$compiler: the header" stands_alone "$compiler" -x "$language"
	else
		skip "$compiler: the header" "no $compiler"
	fi
done
check "32 bits: the header" stands_alone gcc -x c -m32 -std=c99

check "c99: a program" gcc -std=c99 -D_DEFAULT_SOURCE "${strict[@]}" -I"$lib" \
	-o "$work/header" "$top/tests/profil/header.c" "${link[@]}"
check "c++11: a program" g++ -std=c++11 -D_DEFAULT_SOURCE "${strict[@]}" -I"$lib" \
	-o "$work/header-cxx" -x c++ "$top/tests/profil/header.c" -x none "${link[@]}"

# The C library of musl has no <sys/profil.h>.
if command -v musl-gcc >/dev/null; then
	cat >"$work/musl.c" <<'END'
#include <unistd.h>
#include <profil.h>

#ifdef __GLIBC__
#error "not musl"
#endif

int main(void)
{
	struct prof all = { NULL, 0, 0, 2 };

	return sprofil(&all, 1, NULL, PROF_UINT | PROF_FAST);
}
END
	check "musl: the header" stands_alone musl-gcc -x c -std=c99
	check "musl: a program" musl-gcc -std=c99 "${strict[@]}" -I"$lib" -c -o "$work/musl.o" \
		"$work/musl.c"
	check "musl: the other program" musl-gcc -std=c99 -D_DEFAULT_SOURCE "${strict[@]}" -I"$lib" \
		-c -o "$work/musl.o" "$top/tests/profil/header.c"
else
	skip "musl" "no musl-gcc"
fi

# --- Version ---

# versions PROGRAM: the header, the library, profiltool and pkg-config have the same one.
versions() {
	local version
	version=$("$profiltool" --version | sed 's/profiltool //')
	"$1" version | tee "$work/versions"
	[ "$(cat "$work/versions")" = "header $version"$'\n'"library $version" ]
}

check "one version everywhere" versions "$work/header"
# It is one for the preprocessor, too.
check "a version can be compared" gcc -I"$lib" -fsyntax-only -x c - <<'END'
#include <profil.h>
#if PROFIL_VERSION_NUMBER(PROFIL_VERSION_MAJOR, PROFIL_VERSION_MINOR, PROFIL_VERSION_PATCH) < \
	PROFIL_VERSION_NUMBER(0, 1, 0)
#error "older than the first"
#endif
END

# --- Executable memory ---

# expected_ranges PID: the lines of /proc/PID/maps with an x.
expected_ranges() {
	sed -nE 's/^0*([0-9a-f]+)-0*([0-9a-f]+) ..x. 0*([0-9a-f]+) [^ ]+ [0-9]+ */\1-\2 \3 /p' \
		"/proc/$1/maps"
}

same_ranges() {
	"$1" ranges "$2" >"$work/ranges" && diff "$work/ranges" <(expected_ranges "$2") &&
		[ -s "$work/ranges" ]
}

cp "$(command -v sleep)" "$work/a sleep"
start "$work/a sleep" 1000
sleeper=$pid
# Until it is no fork of this shell any more.
is_asleep() {
	grep -q "/a sleep" "/proc/$sleeper/maps" && grep -q nanosleep "/proc/$sleeper/wchan"
}
check "another program" wait_for is_asleep

for program in header header-cxx; do
	check "$program: the ranges of another process" same_ranges "$work/$program" "$sleeper"
	check "$program: its own" "$work/$program" ranges-of-program
	check "$program: no such process" "$work/$program" no-process "$(kernel_thread)"
	check_recorded "$program: no such process, by a user" "$work/$program" no-process-of-user
	check_recorded "$program: sizes" "$work/$program" sizes
done

# A file that is deleted keeps its name.
rm "$work/a sleep"
deleted() {
	"$work/header" ranges "$sleeper" | grep -x ".* $work/a sleep"
}
check "a file that was deleted" deleted

# The ranges of a thread that is not its process's first.
in_thread() {
	python3 - "$work/header" <<'END'
import ctypes, subprocess, sys, threading, time

done = threading.Event()
thread = threading.Thread(target=done.wait)
thread.start()
out = subprocess.run([sys.argv[1], "ranges", str(thread.native_id)], text=True, capture_output=True)
done.set()
print(out.stdout)
sys.exit("of a thread" not in out.stdout or out.returncode == 0)
END
}
check "a thread's ID is named as such" in_thread

start_ready "$build/tests/progs/shares" 1 0 stay
check_recorded "all ticks of another process are in its ranges" "$work/header" other "$pid"
check_recorded "in C++, too" "$work/header-cxx" other "$pid"
for backend in kmod daemon libc; do
	check "PROFIL_BACKEND=$backend excludes a session about another process" \
		env PROFIL_BACKEND=$backend "$work/header" other-forced "$pid"
done
check_recorded "PROFIL_BACKEND=bpf allows it" \
	env PROFIL_BACKEND=bpf "$work/header" other "$pid"
check_recorded "a session ends with the program of its process" "$work/header" target-ends

finish
