#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Small files that become large: no command takes much memory, time or disk for them. PROFIL_TEST_BUDGET=1 has them
# as large as they may be, which takes a minute of CPU.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
cd "$work" || exit

python3 "$top/tests/cli/budget.py" "$profiltool" "$work" "${PROFIL_TEST_BUDGET:-32}" >table 2>err
limited() {
	cat table err
	[ "$(wc -l <table)" -ge 20 ] && awk '$2 >= 500 || $3 >= 10 || $4 >= 500 { bad = 1 } END { exit bad }' table
}
check "no file of 1 MB makes any command take 500 MB, 10 s of CPU, or 500 MB of disk" limited

python3 - <<'PYTHON'
import gzip
def part(field, data):
    size = len(data)
    return bytes([field << 3 | 2, size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + data
head = b''.join(part(6, t) for t in (b'', b'samples', b'count', b'f')) + part(1, b'\x08\1\x10\2') + part(5, b'\x08\1\x10\3')
def write(path, lines, frames):
    location = part(4, b'\x08\1' + part(4, b'\x08\1') * lines)
    open(path, 'wb').write(gzip.compress(head + location + part(2, part(1, b'\1' * frames) + part(2, b'\1'))))
write('inlined.pb.gz', 100000, 1000)
write('deep.pb.gz', 1, 5000)
PYTHON
check "what inlined functions make of stacks is bounded" exits 1 "$profiltool" report inlined.pb.gz
check "the error says why" says "its stacks have more frames than any profile of its size would"
check "and how to read it all the same" says "gzip -dc makes it a larger file"
check "a flame graph of a deep stack is cut" exits 0 "$profiltool" flamegraph deep.pb.gz -o deep.svg
check "and says so" grep -q "Stacks are shown up to 2048 frames: 1 is deeper" deep.svg
finish
