#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A month of profild --continuous, compressed into an hour: what it records at the end is as true as at the beginning.
# See month.py for what runs beside it, and what is measured.
#
# PROFIL_MONTH_MINUTES=10 takes less time; PROFIL_MONTH_FORM=certain takes 40 seconds, and asks for nothing that depends on
# how busy the machine is.
# Time limit: 14400 s

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "a month of the recorder" "recording needs root"
	finish
fi

chmod 755 "$work"
mkdir -m 777 "$work/open"
mkdir "$work/windows"
for program in stalls late_map brief churn renames spread crowded mapper; do
	cp "$progs/$program" "$work" || exit
done
cp "$build/profild" "$profiltool" "$top/tests/progs/pool.py" "$top/tests/progs/many_codes.py" "$work"
# service OUTPUT OPTION...: shares, whose stacks need call frame information.
service() {
	local output=$work/$1
	shift
	gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -fomit-frame-pointer -pthread "$top/tests/progs/shares.c" "$@" -o "$output"
}
service service -Wl,--build-id=0x"$(printf PROFIL-MONTH-00000 | od -An -tx1 | tr -d ' \n')" &&
	service steady "$(own_build_id)" && service boxed "$(own_build_id)" && service bare -Wl,--build-id=none &&
	service libservice.so -fPIC -shared &&
	gcc -O1 -shared -fPIC "$top/tests/wrong_clock.c" -o "$work/wrong_clock.so" || exit
form=${PROFIL_MONTH_FORM:-bars}
[ "$form" = bars ] && minutes=60 || minutes=0.7
flood_buffers # its users make more records than another test's recorder may be able to read
python3 "$top/tests/month.py" "$work" "${PROFIL_MONTH_MINUTES:-$minutes}" "$form"
