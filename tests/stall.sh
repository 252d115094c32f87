#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Users whose files and memory never answer, and recorders beside them: all others are recorded as without them. See
# stall.py for what is measured.
#
#   tests/stall.sh                            all: 80 cells in a quarter of an hour
#   tests/stall.sh read:1:continuous ...      these: MODES:USERS:RECORDER
#
# PROFIL_STALL_FORM=certain asks for nothing that depends on how busy the machine is: by itself, nine users that do all of
# it, beside each recorder, in a minute.
#
# MODES: read open getattr lookup tmp stack uffd (progs/stalls.c), some with + between them, or all
# RECORDERS: record (-a -g), wall (the same with --wall), top, continuous, self (profild --record)
# Time limit: 3600 s

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "recorders that wait for nobody" "recording needs root"
	finish
fi

chmod 755 "$work"
mkdir -m 777 "$work/files"
cp "$build/profild" "$profiltool" "$progs/stalls" "$work"
gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -fomit-frame-pointer -pthread "$top/tests/progs/shares.c" -o "$work/victim" \
	-Wl,--build-id=0x"$(printf PROFIL-STALL-00000 | od -An -tx1 | tr -d ' \n')" || exit
cells=("$@") form=${PROFIL_STALL_FORM:-bars}
if [ $# -eq 0 ] && [ "$form" = certain ]; then
	cells=(all:9:record all:9:wall all:9:top all:9:continuous all:9:self)
elif [ $# -eq 0 ]; then
	for recorder in record wall top continuous self; do
		cells+=("read:0:$recorder")
		for mode in read open getattr lookup tmp stack uffd; do
			cells+=("$mode:1:$recorder" "$mode:9:$recorder")
		done
		cells+=("all:9:$recorder")
	done
fi
python3 "$top/tests/stall.py" "$work" "$form" "${cells[@]}"
