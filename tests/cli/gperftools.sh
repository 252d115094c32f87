#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# gperftools' files: all variants of its profiler and of google-pprof are read; google-pprof and go agree
# with our report on the files that we write; errors in files are reported.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

shares=$progs/shares

# prof FILE EXPRESSION: a file of 64-bit slots and the map of /proc/self/maps' kind that is given:
# EXPRESSION has the records, as a list of (count, pc, pc...), and may use what is in FILE besides.
prof() {
	python3 - "$@" <<-'END'
		import struct, sys

		def put(records, text, trailer=(0, 1, 0)):
		    slots = [0, 3, 0, 10000, 0]
		    for count, *pcs in records:
		        slots += [count, len(pcs), *pcs]
		    slots += trailer
		    sys.stdout.buffer.write(struct.pack("<%dQ" % len(slots), *slots) + text)

		def records(path):
		    """The records of a file, and its text."""
		    data = open(path, "rb").read()
		    at, found = 40, []
		    while True:
		        count, depth = struct.unpack_from("<2Q", data, at)
		        pcs = struct.unpack_from("<%dQ" % depth, data, at + 16)
		        at += 16 + 8 * depth
		        if count == 0:
		            return found, data[at:]
		        found.append((count, *pcs))

		MAP = b"00400000-00500000 r-xp 00001000 08:01 77          /bin/nothing\n"
		exec(sys.argv[1])
	END
}

# The same table of each reader: "SELF TOTAL NAME" of the program's functions.
only() {
	grep -E ' (burn(_[a-z]+)?|cpu_seconds)$' | sort
}
ours() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	print(f["self"], f["total"], f["name"])' | only
}
google() {
	google-pprof --text "$@" 2>/dev/null | awk '$1 != "Total:" { print $1, $4, $6 }' | only
}
go_top() {
	HOME=$work go tool pprof -sample_index=samples -top -nodecount=1000 -nodefraction=0 "$@" \
		2>/dev/null | awk 'table { print $1, $4, $6 } / flat% / { table = 1 }' | only
}
lacks() {
	! grep "$@"
}
agree() {
	grep -q "$2" "$1" && diff "$1" "$3"
}

# --- A file of gperftools' own profiler ---

profiler=$(ldconfig -p | sed -n 's/.*libprofiler\.so.* => //p' | head -n 1)
if [ -n "$profiler" ] && command -v google-pprof >/dev/null; then
	real=$work/real.prof
	CPUPROFILE=$real CPUPROFILE_FREQUENCY=250 LD_PRELOAD=$profiler \
		"$shares" 1 1.2 stay >/dev/null 2>"$work/real.err"
	check "its own file breaks no rule" exits 0 "$profiltool" report --strict "$real"
	ours "$real" >"$work/real.ours"
	google "$shares" "$real" >"$work/real.google"
	check "google-pprof finds the same in it" agree "$work/real.ours" burn_sixty "$work/real.google"

	# Read in every way, it is the same file.
	"$profiltool" dump "$real" >"$work/real.dump" 2>/dev/null
	gzip -k "$real"
	same_dump() {
		diff "$work/real.dump" <("$@" 2>"$work/err") || { cat "$work/err" && return 1; }
	}
	piped() {
		# A pipe is what is tested.
		# shellcheck disable=SC2002
		cat "$1" | "$profiltool" dump -
	}
	check "through a pipe" same_dump piped "$real"
	check "from gzip" same_dump "$profiltool" dump "$real.gz"
	check "from gzip through a pipe" same_dump piped "$real.gz"

	# What is made of it.
	check "written again" exits 0 "$profiltool" convert "$real" "$work/written.prof"
	check "it is the same" same_dump "$profiltool" dump "$work/written.prof"
	check "google-pprof: the same functions" \
		agree "$work/real.ours" burn_sixty <(google "$shares" "$work/written.prof")
	if command -v go >/dev/null; then
		check "go tool pprof: the same functions" \
			agree "$work/real.ours" burn_sixty <(go_top "$shares" "$work/written.prof")
	else
		skip "go tool pprof" "it is not installed"
	fi

	# One caller in all stacks: readers take it for the profiler's own frame.
	prof "found, text = records('$real')
second = max((r[2] for r in found if len(r) > 2),
	key=lambda pc: sum(r[0] for r in found if len(r) > 2 and r[2] == pc))
put([r for r in found if len(r) > 2 and r[2] == second], text)" >"$work/caller.prof"
	ours "$work/caller.prof" >"$work/caller.ours"
	check "a caller in all stacks" grep -q ' burn_cpu$' "$work/caller.ours"
	check "google-pprof strips it" \
		lacks ' burn_cpu$' <(google "$shares" "$work/caller.prof")
	check "written again" exits 0 "$profiltool" convert "$work/caller.prof" "$work/guarded.prof"
	check "google-pprof keeps it" \
		agree "$work/caller.ours" burn_cpu <(google "$shares" "$work/guarded.prof")
	if command -v go >/dev/null; then
		check "go tool pprof keeps it" \
			agree "$work/caller.ours" burn_cpu <(go_top "$shares" "$work/guarded.prof")
	else
		skip "go tool pprof" "it is not installed"
	fi

	# Symbolized: the names travel in the file.
	google-pprof --raw "$shares" "$real" >"$work/real.raw" 2>/dev/null
	check "google-pprof --raw breaks no rule" exits 0 "$profiltool" report --strict "$work/real.raw"
	check "its names are read" agree "$work/real.ours" burn_sixty <(ours "$work/real.raw")
	check "as google-pprof reads them" \
		agree "$work/real.ours" burn_sixty <(google "$work/real.raw")
	check "through a pipe, too" diff <("$profiltool" dump "$work/real.raw") <(piped "$work/real.raw")
	check "without their addresses in angle brackets" \
		lacks '<0000' <("$profiltool" dump "$work/real.raw")
else
	skip "a file of gperftools' own" "libprofiler or google-pprof is not installed"
fi

# --- Symbolized files of something else ---

printf -- '--- symbol\n0x400010 main\n---\n--- heap\nheap profile: 1: 2 [3: 4] @ heap\n' >"$work/heap.raw"
check "a heap profile with names is refused" exits 1 "$profiltool" report "$work/heap.raw"
check "a heap profile with names is refused: with the line" \
	says "$work/heap.raw:4: \"--- heap\" where \"--- profile\" is expected"

# --- Truncated ---

prof 'put([(7, 0x400010, 0x400020), (5, 0x400030)], MAP)' >"$work/small.prof"
head -c 90 "$work/small.prof" >"$work/cut.prof"
check "a truncated file is refused" exits 1 "$profiltool" report "$work/cut.prof"
check "a truncated file is refused: with the place" \
	says "$work/cut.prof: at byte 72: a record of 1 pcs, but the rest of the file has 0"
check "a truncated file is refused: what to do" says "--salvage"
check "salvaged" exits 3 "$profiltool" dump --json --salvage "$work/cut.prof"
check "that is reported" says "salvaged what comes before this: at byte 72"
check "the whole record is kept" \
	json "[(s['count'], s['pcs']) for s in j['stacks']] == [(7, ['0x400010', '0x400020'])]" \
	"$work/out"
check "salvaged through a pipe" exits 3 "$profiltool" dump --salvage - <"$work/cut.prof"
check "names it" says "-: salvaged what comes before this: at byte 72"
prof 'put([(i, 0x400010 + i) for i in range(1, 20000)], MAP)' | gzip | head -c 20000 >"$work/cut.prof.gz"
check "gzip that is truncated" exits 1 "$profiltool" dump "$work/cut.prof.gz"
check "gzip that is truncated: reported" says "the gzip data is truncated"
check "salvaged" exits 3 "$profiltool" dump --json --salvage "$work/cut.prof.gz"
check "with what had come" json "len(j['stacks']) > 1000" "$work/out"

# --- Large ---

# memory COMMAND...: runs it and prints the most memory that it had, in MiB.
memory() {
	python3 -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$@"
}
needs_less() {
	local limit=$1 mib
	shift
	mib=$(memory "$@")
	echo "$mib MiB"
	[ "$mib" -lt "$limit" ]
}

# 64 MB of one stack, then of one record that claims 2 GB.
prof 'put([(1, *range(0x400010, 0x400090, 8))] * 444445, MAP)' >"$work/large.prof"
check "memory for what is distinct" needs_less 32 "$profiltool" report "$work/large.prof"
check "in a pipe, too" needs_less 32 sh -c "cat $work/large.prof | $profiltool report -"
check "nothing is missing" json "j['samples'] == 444445 and len(j['stacks']) == 1" \
	<("$profiltool" dump --json "$work/large.prof")
rm "$work/large.prof"
prof 'put([(1, 0x400010)], b"x" * 1000, (1, 1 << 28, 5))' >"$work/claim.prof"
check "a claim of 2 GB in 1 KB is refused" exits 1 "$profiltool" report "$work/claim.prof"
check "a claim of 2 GB in 1 KB is refused: with the number" \
	says "a record of 268435456 pcs, but the rest of the file has 126"
check "a claim of 2 GB in 1 KB is refused: no memory for it" \
	needs_less 32 "$profiltool" report "$work/claim.prof"

# --- What readers are picky about ---

prof 'put([], MAP)' >"$work/none.prof"
check "a profile without samples" exits 0 "$profiltool" convert "$work/none.prof" "$work/none2.prof"
prof 'put([(5, 0xffffffff81000100, 0x400020), (4, 0x400010)], MAP +
	b"ffffffff81000000-ffffffff82000000 r-xp 00000000 00:00 0 [kernel.kallsyms]_text\n")' \
	>"$work/kernel.prof"
check "one of the kernel" exits 0 "$profiltool" convert "$work/kernel.prof" "$work/kernel2.prof"
if command -v google-pprof >/dev/null; then
	check "google-pprof takes that without samples" \
		google-pprof --text /bin/true "$work/none2.prof"
	check "google-pprof takes that of the kernel" \
		grep -q 'Total: 9 ' <(google-pprof --text /bin/true "$work/kernel2.prof" 2>/dev/null)
else
	skip "google-pprof" "it is not installed"
fi
if command -v go >/dev/null; then
	check "go tool pprof takes that without samples" \
		env HOME="$work" go tool pprof -top "$work/none2.prof"
	check "go tool pprof names the kernel" grep -qE '5 .*kernel\.kallsyms' \
		<(HOME=$work go tool pprof -sample_index=samples -top "$work/kernel2.prof" 2>/dev/null)
else
	skip "go tool pprof" "it is not installed"
fi

# --- What it cannot hold ---

printf 'main;f 3\nmain 2\n' >"$work/names.folded"
check "names without addresses" exits 1 "$profiltool" convert "$work/names.folded" "$work/names.prof"
check "names without addresses: refused" \
	says "the profile has no addresses, which the gperftools format requires"
check "with other formats" says "write pprof, callgrind or folded instead"
check "no file is left" test ! -e "$work/names.prof"

# A leaf that stands twice, for readers that strip the second frame; and a path with a line end, as the kernel has it.
python3 -c '
import struct, sys
slots = [0, 3, 0, 10000, 0, 2, 2, 0x415fff, 0x4045ff, 1, 3, 0x415fff, 0x415fff, 0x4045ff, 0, 1, 0]
sys.stdout.buffer.write(struct.pack("<17Q", *slots) + b"00400000-00416000 r-xp 00000000 00:00 0 /tmp/a\\012b\n")
' >"$work/twice.prof"
check "a leaf that stands twice" exits 0 "$profiltool" dump --json "$work/twice.prof"
check "is one frame" json '[s["count"] for s in j["stacks"]] == [3]' "$work/out"
check "a line end in a path is read as the kernel writes it" json 'j["mappings"][0]["path"] == "/tmp/a\nb"' "$work/out"

finish
