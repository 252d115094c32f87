#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild with clients of other versions, and clients with a profild of another: programs with libprofil.a stay what they
# are, and a profild goes on after an upgrade until it is restarted.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

chmod 755 "$work"
cp "$top/tests/profil/protocol.py" "$profiltool" "$work"
chmod 755 "$work/protocol.py" "$work/profiltool"
python=$(PATH=/usr/bin:/bin:$PATH command -v python3) # one that every user may run

# asks VERSION TEXT: a client of this version, with the bytes that it has had from the beginning.
asks() {
	timeout 60 "${nobody[@]}" "$python" "$work/protocol.py" client "$sock" "$1" | tee "$work/asked"
	grep -qF -- "$2" "$work/asked"
}

check "profild" start_profild
mapfile -t versions < <(sed -n 's/^    \([0-9]*\): {$/\1/p' "$work/protocol.py")
for version in "${versions[@]}"; do
	check "a program of version $version is counted" asks "$version" counted
done
check "profild's versions: all that there is a client of" grep -Eq "^#define PROFILD_OLDEST[[:space:]]+3\b" "$top/user/lib/protocol.h"
check "profild's newest version: there is a client of it" grep -Eq "^#define PROFILD_NEWEST[[:space:]]+$version\$" \
	"$top/user/lib/protocol.h"
check "a program of a newer version: is refused, and told which ones there are" \
	asks $((version + 1)) "unsupported protocol version $((version + 1)): profild speaks 3 to $version"
stop "$profild"

# meets TEXT KIND OLDEST NEWEST [OPTION...]: what a program says that meets a profild of these versions.
meets() {
	rm -f "$sock"
	start "$python" "$work/protocol.py" "$2" "$sock" "$3" "$4"
	wait_for listens "$sock"
	if [ "$2" = record ]; then
		PROFIL_RECORD_SOCKET=$sock timeout 60 "${nobody[@]}" "$work/profiltool" record "${@:5}" -- true >"$work/said" 2>&1
	else
		PROFIL_BACKEND=daemon PROFIL_VERBOSE=1 PROFIL_SOCKET=$sock timeout 60 \
			env LD_PRELOAD="$lib" "$tree/progs/profil_backends" which >"$work/said" 2>&1
	fi
	stop "$pid"
	cat "$work/said"
	grep -qF -- "$1" "$work/said"
}

check "a profild that speaks newer versions, too: libprofil speaks its newest" \
	meets "asked in version $version" server 3 99
check "a profild that does not say its versions: speaks the third" meets "asked in version 3" server 0 0
check "a profild that speaks only newer versions: who has to be newer" \
	meets "profild speaks versions 98 to 99 of the protocol, and this libprofil 3 to $version: the program needs a newer" \
	server 98 99
check "a profild before the third version: what to do" \
	meets "profild answers in version 2 of the protocol, not in 3: restart it" old 2 2
check "a profild --record that speaks newer versions, too: profiltool speaks its newest" \
	meets "profild: asked in version 4" record 1 99
check "a profild --record that speaks only newer versions: is said" \
	meets "profild speaks versions 98 to 99 of the protocol, and this profiltool 1 to 4" record 98 99
check "a profild --record that speaks only newer versions: what to do" grep -q "update profiltool" "$work/said"
check "a profild --record that speaks versions before labels: records without" meets "profild: asked in version 3" record 1 3
check "a profild --record that speaks versions before labels: a label is refused" \
	meets "this profild reads no variables for --label" record 1 3 --label x=y

finish
