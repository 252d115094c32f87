#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# How much the units of systemd let profild do, as systemd-analyze(1) judges it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# exposed UNIT MOST: its exposure, in tenths, is no more than that.
exposed() {
	sed 's,@SBINDIR@,/usr/sbin,; s,@SYSCONFDIR@,/etc,' "$top/user/daemon/$1.in" >"$work/$1"
	exits 0 systemd-analyze security --offline=true --threshold="$2" --no-pager "$work/$1"
}
if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
	check "profil-continuous.service is exposed by 2.0 at most" exposed profil-continuous.service 20
	check "profil-record.service is exposed by 1.5 at most" exposed profil-record.service 15
	check "profild.service is exposed by 1.5 at most" exposed profild.service 15
else
	skip "the exposure of units" "there is no systemd-analyze that judges files of units"
fi
finish
