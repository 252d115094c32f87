#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tap.sh TEST: runs a test for prove. Makes cmocka speak TAP, and mends its "not ok # SKIP".
# With PROFIL_TEST_STRICT a skipped test is a failure. What failed, and why, goes to standard error
# as well, which prove shows.

set -u
if [ -n "${PROFIL_TEST_STRICT:-}" ]; then
	mend='s/# SKIP\b/(skipped, which a strict run takes for a failure)/'
else
	mend='s/^not ok \(.*# SKIP\b\)/ok \1/'
fi
passed='/^\(ok\|1\.\.\)/'
CMOCKA_MESSAGE_OUTPUT=TAP "$@" 2>&1 |
	sed -u -e "$mend" -e "/^not ok/,$passed { $passed!w /dev/stderr" -e '}'
exit "${PIPESTATUS[0]}"
