#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ticks in user mode and in the kernel: --user, --kernel, neither.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# Four equal processes, recorded at the same time from start to end; half of each's time is in the kernel.
recorders=()
names=(all user kernel both)
options=("" --user --kernel "--user --kernel")
for i in "${!names[@]}"; do
	name=${names[i]}
	begin "$name" "$progs/halves" 1 wait
	# shellcheck disable=SC2086 # several words
	record_begin "$name" -p "$pid" -F 1999 --json -o "$work/$name.pb.gz" ${options[i]}
	recorders+=("$recorder")
done
for name in "${names[@]}"; do
	send_line "$name" go
done
for i in "${!names[@]}"; do
	wait "${recorders[i]}"
	check "${names[i]}: succeeds" test $? -eq 0
	check "${names[i]}: the account adds up, and nothing is lost" recorded \
		"whole and j['ticks'] > 100 and not any(j['lost'].values())" "$work/${names[i]}.json"
done

# part WHAT: a Python expression: is that a part of the ticks, but not all? It is about half of them.
part() {
	echo "0 < $1 < j['ticks']"
}

check "neither: nothing is left out, and how much was in the kernel is reported" recorded \
	"j['excluded'] == 0 and $(part "j['kernel']") and $(part "samples('burn_user')")" "$work/all.json"
# Since glibc 2.41 read(2) enters it in a function of such a name.
check "neither: a tick in the kernel is charged to who entered it: read(2), in the C library" recorded \
	"$(part "sum(f['self'] for f in j['functions'] if f['name'].endswith(('read', 'syscall_cancel')))") and not any('kernel' in f['image'] for f in j['functions'])" \
	"$work/all.json"
check "--user: what was in the kernel is left out" recorded \
	"j['kernel'] == 0 and $(part "j['excluded']") and ran('burn_user')" "$work/user.json"
check "--kernel: what was in user mode is left out" recorded \
	"j['kernel'] == j['counted'] and $(part "j['excluded']") and samples('burn_user') == 0" \
	"$work/kernel.json"
check "--user --kernel: nothing is left out" recorded \
	"j['excluded'] == 0 and $(part "j['kernel']") and $(part "samples('burn_user')")" "$work/both.json"

# names_are_kernel FILE: nearly all samples in the kernel's image have a name that the kernel knows.
names_are_kernel() {
	python3 -c '
import json, sys
known = {line.split()[2] for line in open("/proc/kallsyms")}
rows = [f for f in json.load(open(sys.argv[1]))["functions"] if "kernel" in f["image"]]
named = sum(f["self"] for f in rows if f["name"] in known)
print(rows[:10])
sys.exit(named < 0.95 * sum(f["self"] for f in rows) or not named)' "$1"
}
if grep -q '^0*[1-9a-f][0-9a-f]* ' /proc/kallsyms; then
	check "--kernel: the kernel's functions by name" names_are_kernel "$work/kernel.json"
	check "--user --kernel: the kernel's functions by name" names_are_kernel "$work/both.json"
else
	skip "--kernel: the kernel's functions by name" "the kernel hides its addresses"
	skip "--user --kernel: the kernel's functions by name" "the kernel hides its addresses"
fi

# marked FILE: how many samples are marked as taken in the kernel.
marked() {
	"$profiltool" dump "$1" | awk '/\[.* kernel[] ]/ { sum += $1 } END { print sum + 0 }'
}
check "ticks in the kernel are marked so" test "$(marked "$work/all.pb.gz")" = \
	"$(dumped kernel "$work/all.pb.gz")"
check "--user: none is" test "$(marked "$work/user.pb.gz")" = 0
check "--kernel: all are" test "$(marked "$work/kernel.pb.gz")" = "$(dumped counted "$work/kernel.pb.gz")"

finish
