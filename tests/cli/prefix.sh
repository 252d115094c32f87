#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Nothing is chosen from what a file begins with: of each text format, files that have 400 KiB of other legal lines
# before what says which format it is, what its lines mean, or which event was recorded. Their names say nothing.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # functions are called by check; eval expands it
. "$(dirname "$0")/../lib.sh"

cd "$work" || exit 1
python3 - <<'END'
import struct

def lines(line):
    return line * ((400 << 10) // len(line) + 1)

def write(name, content):
    open(name, "wb").write(content)

costs = b"fl=a.c\nfn=main\n1 5\n"
write("callgrind comments", lines(b"# a comment\n") + b"events: Ir\n" + costs)
write("callgrind messages", lines(b"==7== of Valgrind\n") + b"version: 1\nevents: Ir\n" + costs)
write("callgrind header", b"version: 1\ncreator: x\n" + lines(b"desc: Option: value\n") + b"events: Ir\n" + costs)
write("callgrind between", b"events: Ir\n" + lines(b"# a comment\n") + costs)
write("folded comments", lines(b"# a comment\n") + b"other;main 5\n")
write("folded blank", lines(b"   \n") + b"other;main 5\n")
write("folded mark", b"\xef\xbb\xbf" + lines(b"# a comment\n") + b"main 5\n")
sample = b"app 100 [000] %d.5: 1 %s:\n\t400123 main (/nowhere/app)\n\n"
samples = b"".join(sample % (10 + i, b"cpu-clock") for i in range(5))
write("perf-script comments", lines(b"# a comment\n") + samples)
write("perf-script records", lines(b"app 100 [000] 0.0: PERF_RECORD_MMAP2 100/100: [0x1000(0x1000) @ 0 fe:00 3 0]: "
                                   b"r-xp /nowhere/lib.so\n") + samples)
slots = struct.pack("<11Q", 0, 3, 0, 10000, 0, 5, 1, 0x400010, 0, 1, 0)
maps = b"00400000-00401000 r-xp 00000000 00:00 0 /nowhere/main\n"
write("gperftools commands", lines(b"%echo a command of pprof\n") +
      b"--- symbol\nbinary=/nowhere/main\n0x400010 main\n---\n--- profile\n" + slots + maps)
write("gperftools maps", slots + lines(b"log: a line between\n") + maps)

write("pairs", b"".join(b"java;worker;thread x%d of pool 3 4\n" % i for i in range(12000)) + b"java;main 5\n")
write("repeated", b"".join(b"java;worker;thread x%d of pool 3 4\n" % i for i in range(12000)) +
      b"java;worker;thread x7 of pool 5 4\n")
write("difference", b"".join(b"java;worker;thread x%d of pool 3 4\n" % i for i in range(12000)))
write("events", lines(sample % (1, b"page-faults")) + samples)
END

# main_is FILE: true if all of its counts are 5, of main.
main_is() {
	"$profiltool" report --json "$1" 2>err | json "{f['name'].split('+')[0]: f['self'] for f in j['functions'] if f['self']} == {'main': 5}" /dev/stdin
}
for file in callgrind\ * folded\ * perf-script\ * gperftools\ *; do
	check "400 KiB before the first sample, $file" main_is "$file"
	check "its format: $file" diff <(echo "format ${file%% *}") <("$profiltool" dump "$file" 2>/dev/null | head -1)
done
check "a file and a pipe are read alike" diff <("$profiltool" dump "folded comments" 2>&1) \
	<("$profiltool" dump - 2>&1 < <(cat "folded comments"))
check "a truncated gzip file is no shorter profile" eval '{ gzip -n <difference | head -c 20000 >cut.gz; } &&
	exits 1 "$profiltool" report cut.gz && says "gzip data is truncated"'

check "a DCPI file with other lines before its version" eval '"$profiltool" convert -q -f dcpi "gperftools maps" db &&
	{ for i in {1..30000}; do echo "x-line $i"; done && cat db/*/*/*; } >dcpi && "$profiltool" dump dcpi | grep -q "^format dcpi"'

check "the last line says that names end with a number" json \
	"{f['name'] for f in j['functions'] if f['self']} >= {'thread x7 of pool 3', 'main'}" \
	<("$profiltool" report --json pairs 2>/dev/null)
check "so does a stack that is repeated in the last line" json \
	"{f['name'] for f in j['functions'] if f['self']} >= {'thread x7 of pool 3', 'thread x7 of pool 5'}" \
	<("$profiltool" report --json repeated 2>/dev/null)
check "a comparison of which each line has two counts" json \
	"j['stacks'][0]['values'] == [3, 4] and len(j['stacks']) == 12000" <("$profiltool" dump --json difference 2>/dev/null)
check "a clock that comes last is the event that leads" json "j['event'] == 'cpu-clock' and j['samples'] == 5" \
	<("$profiltool" dump --json events 2>/dev/null)
finish
