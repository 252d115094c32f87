#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# When the counts are in the buffer, and how profiled programs continue and end.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_live
rows profil_ends

# --- A library's destructor: it runs after the program's ---

cat >"$work/last.c" <<'END'
#include "tests/progs/profil_row.h"

unsigned short *watched;
double due;

__attribute__((destructor)) static void look(void)
{
	if (watched && !is_about(sum_of(watched), due, due, 1))
		_exit(1);
}
END

cat >"$work/main.c" <<'END'
#include "tests/progs/profil_row.h"

extern unsigned short *watched;
extern double due;

int main(void)
{
	watched = cells;
	expect(profil_hot(cells) == 0, "on: %m");
	due = burn(300);
	return wrong;
}
END

compiler=(gcc -D_GNU_SOURCE -I"$top" -I"$top/user" -O1)

compile() {
	"${compiler[@]}" -shared -fPIC "$work/last.c" -o "$tree/liblast.so" &&
		"${compiler[@]}" "$work/main.c" -L"$tree" -llast \
			-Wl,-rpath,"$tree" -o "$tree/progs/last"
}

check "a program with such a library" compile
for backend in $backends; do
	check "$backend: exact in a library's destructor" holds "$backend" last
done

# --- Libraries whose constructors call profil(), while other threads do ---

cat >"$work/calls.c" <<'END'
#include "tests/progs/profil_row.h"

__attribute__((constructor)) static void begin(void)
{
	profil_hot(cells);
	burn(1);
}

__attribute__((destructor)) static void end(void)
{
	profil_off();
}
END

cat >"$work/loads.c" <<'END'
#include "tests/progs/profil_row.h"

#include <dlfcn.h>

static void *turn_on(void *unused)
{
	expect(profil_hot(cells) == 0, "on: %m");
	burn(1);
	return unused;
}

/* A new thread each time, for which there is more to be done. */
static void *turn_on_in_threads(void *unused)
{
	pthread_t thread;

	while (go_on) {
		need(pthread_create(&thread, NULL, turn_on, NULL) == 0, "pthread_create");
		pthread_join(thread, NULL);
	}
	return unused;
}

static void load_and_unload(const char *path)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, turn_on_in_threads, NULL) == 0, "pthread_create");
	for (int i = 0; i < 20; i++) {
		void *library = dlopen(path, RTLD_NOW);

		if (!expect(library, "dlopen: %s", dlerror()))
			break;
		dlclose(library);
	}
	go_on = false;
	pthread_join(thread, NULL);
	profil_off();
}

int main(int argc, char **argv)
{
	pid_t child = fork();

	if (child == 0) {
		load_and_unload(argv[argc - 1]);
		exit(wrong);
	}
	expect_well(child, "child");
	return wrong;
}
END

compile_loads() {
	"${compiler[@]}" -shared -fPIC "$work/calls.c" -o "$tree/libcalls.so" &&
		"${compiler[@]}" "$work/loads.c" -pthread -ldl -o "$tree/progs/loads"
}

check "a program that loads such a library" compile_loads
for backend in $backends libc; do
	check "$backend: constructors and threads call profil" \
		holds "$backend" loads "$tree/libcalls.so"
done

# --- Stopped and continued while it waits for profild ---

# waits_for_answer PID: whether one of its threads does. all_stopped PID: whether all are.
waits_for_answer() {
	grep -q skb_wait /proc/"$1"/task/*/wchan
}

all_stopped() {
	! grep -h ^State: /proc/"$1"/task/*/status | grep -qv stopped
}

answered() {
	grep -q '^on ' "$work/client.out"
}

waits_again() {
	waits_for_answer "$1" || answered
}

stopped_meanwhile() {
	local client=$1
	kill -STOP "$profild"
	wait_for all_stopped "$profild" || return
	send_line client on
	wait_for waits_for_answer "$client" && kill -STOP "$client" &&
		wait_for all_stopped "$client" && kill -CONT "$client" &&
		wait_for waits_again "$client"
	kill -CONT "$profild"
	wait_for answered
	cat "$work/client.out"
	grep -qx "on 0" "$work/client.out"
}

begin client env LD_PRELOAD="$lib" PROFIL_BACKEND=daemon PROFIL_SOCKET="$sock" \
	"$tree/progs/profil_backends" asked
check "stopped and continued while it waits for profild" stopped_meanwhile "$pid"
send_line client end
finish
