#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Random profiles in every format, read by other readers than ours: random_profiles.py. PROFIL_TEST_PROFILES is their
# number, PROFIL_TEST_SEED the seed of the first.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

# Files that are there, which DCPI and gmon.out need for the addresses in them.
cp "$progs/shares" "$progs/chains" .
python3 "$top/tests/cli/random_profiles.py" "$profiltool" "$work" "$work/shares" "$work/chains" \
	"${PROFIL_TEST_PROFILES:-200}" "${PROFIL_TEST_SEED:-1}" >sums 2>err

# agrees FORMAT: files were compared, and none was wrong.
agrees() {
	grep "^# seed [0-9]*, $1:" sums
	tail -3 err
	grep -qE "^$1 [1-9][0-9]* 0$" sums
}
for format in pprof callgrind folded gperftools dcpi gmon speedscope firefox otlp report; do
	check "$format has the sums of random profiles" agrees "$format"
done
finish
