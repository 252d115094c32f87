#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a release is made of: objects that do not name the directory they were built in.

# shellcheck source=tests/lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/lib.sh"

# --- Objects ---

# unnamed FILE...: none contains the directory of the sources, or that of the build.
unnamed() {
	local file

	for file; do
		[ -s "$file" ] || { echo "$file is missing"; return 1; }
		! grep -aqF -e "$top/" -e "$build/" "$file" || { echo "$file names $top"; return 1; }
		! grep -aqzxF -e "$top" "$file" || { echo "$file names $top as a directory"; return 1; }
	done
}

built=("$build"/lib/lib*.so.1 "$build"/lib/lib*.a "$build"/lib/lib*-gmon.so "$build"/lib/profil/lib*
	"$build"/bpf/*.bpf.o "$profiltool")
[ ! -x "$build/profild" ] || built+=("$build/profild")
[ ! -d "$build/lib32" ] || built+=("$build"/lib32/lib*)
check "programs, libraries and BPF objects do not name the directory of the build" unnamed "${built[@]}"
printf '/usr/src\0%s\0' "$top" >"$work/named"
fails() {
	! "$@"
}
check "a file that does is noticed" fails unnamed "$work/named"

finish
