#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild counts only its client: not a program of another user that gets the number of one of the client's
# threads while profild attaches, nor a program that the client executes.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

victim=$tree/victim
cp "$progs/profil_number" "$victim"
chmod 4755 "$victim"

# replay PROFILD: whether the client's own ticks are counted, and none of the other program's.
replay() {
	local own other
	with daemon "$tree/progs/profil_number" "$1" "$victim" | tee "$work/replay"
	read -r own other <"$work/replay"
	echo "ticks of its own: $own, of the other: $other"
	[ "$own" -gt 0 ] && [ "$other" -eq 0 ]
}

if findmnt -nT "$work" -o OPTIONS | grep -q nosuid; then
	skip "a program of another user on a thread's number" "$work does not allow set-user-ID"
	finish
fi

check "profild" start_profild
check "a program of another user on a thread's number" replay "$profild"

# The client becomes a program of another user while it is counted, and a child of it keeps the
# counts, and the connection, as they were. Ticks that come while it becomes one are not had each time.
cp "$progs/hostile" "$tree/hostile"
cp "$progs/hostile" "$tree/hostile-root"
chmod 4755 "$tree/hostile-root"
becomes() {
	local left=20

	while [ $((left--)) -gt 0 ]; do
		timeout 60 "${nobody[@]}" "$tree/hostile" "$sock" hz=10000 connect greeting start \
			burn watch keep "exec=$tree/hostile-root" collect || return
	done
}
check "a program of another user in the place of the client" becomes
stop "$profild"

# With numbers that the kernel's own view of the machine does not have.
in_a_container() {
	export -f replay start_profild with with_pdeathsig listens note_started find_start_time
	unshare -pf --mount-proc "${pdeathsig[@]}" bash -c "
		$(declare -p work tree sock hz build victim lib pdeathsig nobody)
		started=()
		start_profild && replay \"\$profild\""
}
check "the same where profild is in a container" in_a_container

finish
