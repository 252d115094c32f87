#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Where PHP keeps its frames and names: what profil takes it to be, and the headers of each version that is installed
# (Debian: php-dev), or is in PROFIL_TEST_PHP, directories of headers such as /usr/include/php/20220829.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# same_layout DIRECTORY: compares with its headers.
same_layout() {
	gcc -w -I"$top/user" -I"$top" -I"$1" -I"$1/main" -I"$1/Zend" -I"$1/TSRM" -o "$work/layout" \
		"$top/tests/cli/php_layout.c" && "$work/layout"
}

for include in /usr/include/php/20* ${PROFIL_TEST_PHP:-}; do
	[ -e "$include/Zend/zend.h" ] || continue
	check "the layout of PHP ${include##*/}" same_layout "$include"
done
[ "$count" -gt 0 ] || skip "the layout of PHP" "no headers (Debian: apt-get install php-dev)"
finish
