#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# When the counts are in the buffer.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_live

# --- A library's destructor: it runs after the program's ---

cat >"$work/last.c" <<'END'
#include "tests/progs/profil_row.h"

unsigned short *watched;
double due;

__attribute__((destructor)) static void look(void)
{
	if (watched && sum_of(watched) < due * 0.9 - 2)
		_exit(OFF);
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
	due = burn(50);
	return wrong;
}
END

compile() {
	gcc -D_GNU_SOURCE -I"$top" -O1 -shared -fPIC "$work/last.c" -o "$tree/liblast.so" &&
		gcc -D_GNU_SOURCE -I"$top" -O1 "$work/main.c" -L"$tree" -llast \
			-Wl,-rpath,"$tree" -o "$tree/progs/last"
}

check "a program with such a library" compile
for backend in $backends; do
	check "$backend: exact in a library's destructor" holds "$backend" last
done
finish
