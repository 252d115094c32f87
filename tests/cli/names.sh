#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Names of functions in programs that are deleted, replaced, stripped, or not found by their path; and in
# programs of several languages. All functions with 1 % or more have names.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016,SC2054 # functions are called by check; "$" is for other shells
. "$(dirname "$0")/../lib.sh"

flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread "$(own_build_id)")
source=$top/tests/progs/shares.c
named='ran("burn_sixty", "burn_thirty")'
# In the program's own image: a function of the C library may have no name. Nor has a procedure linkage table.
all_named='not [f for f in j["functions"] if f["image"] in {g["image"] for g in rows("burn_*")} and
	f["self_percent"] >= 1 and "+0x" in f["name"]]'

gcc "${flags[@]}" "$source" -o "$work/full"

# record NAME OPTION...: records $pid for a moment. The table is in NAME.json.
record() {
	local name=$1
	shift
	exits 0 until_used "$pid" 300 "$profiltool" record -p "$pid" -F 4999 --json "$@" || return
	mv "$work/out" "$work/$name.json"
}

# --- Deleted, replaced, unmounted ---

cp "$work/full" "$work/program"
start_ready "$work/program" 1
rm "$work/program"
check "deleted: recorded" record deleted -o "$work/deleted.pb.gz"
check "deleted: names" recorded "$named and $all_named" "$work/deleted.json"
check "deleted: its path is what it was" bash -c \
	"'$profiltool' dump '$work/deleted.pb.gz' | grep -q ' $work/program build-id='"

echo 'int main(void) { for (;;) ; }' >"$work/other.c"
gcc -Wl,--build-id "$work/other.c" -o "$work/program"
check "replaced: recorded" record replaced -o "$work/replaced.folded"
check "replaced: names of the program that runs" recorded "$named and $all_named" \
	"$work/replaced.json"
stop "$pid"

if mkdir "$work/mount" && mount -t tmpfs none "$work/mount" 2>/dev/null; then
	cp "$work/full" "$work/mount/program"
	start_ready "$work/mount/program" 1
	umount -l "$work/mount"
	check "on a mount that is gone: recorded" record unmounted
	check "on a mount that is gone: names" recorded "$named and $all_named" \
		"$work/unmounted.json"
	stop "$pid"
else
	skip "on a mount that is gone" "mount is not permitted"
fi

# --- In memory ---

start_ready python3 -c '
import os, sys
fd = os.memfd_create("program")
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, ["program", "1"], {})' "$work/full"
check "in memory: recorded" record memfd
check "in memory: names" recorded "$named and $all_named" "$work/memfd.json"
stop "$pid"

# --- Stripped ---

# As Fedora does: the symbols of functions that are not exported, compressed, in the file itself.
mini() {
	objcopy --only-keep-debug "$work/full" "$work/full.debug" &&
		nm -D "$work/full" --format=posix --defined-only | awk '{ print $1 }' | sort \
			>"$work/exported" &&
		nm "$work/full.debug" --format=posix --defined-only |
		awk '$2 == "T" || $2 == "t" { print $1 }' | sort | comm -13 "$work/exported" - \
			>"$work/kept" &&
		objcopy -S --remove-section .gdb_index --remove-section .comment \
			--keep-symbols="$work/kept" "$work/full.debug" "$work/mini" &&
		xz -f "$work/mini" && strip -o "$work/program" "$work/full" &&
		objcopy --add-section .gnu_debugdata="$work/mini.xz" "$work/program"
}
check "mini debuginfo: made" mini
start_ready "$work/program" 1
check "mini debuginfo: recorded" record mini
check "mini debuginfo: names" recorded "$named and $all_named" "$work/mini.json"
stop "$pid"

strip -o "$work/program" "$work/full"
start_ready "$work/program" 1
check "stripped: recorded" record stripped
check "stripped: says why, and how to fix it" says \
	"program: " && says "stripped: no symbol table; its debug package or --debuginfod has them"
check "stripped: addresses that addr2line takes" bash -c 'address=$(sed -n \
	"s/.*program+\(0x[0-9a-f]*\).*/\1/p" "$1/stripped.json" | head -n 1)
	addr2line -f -e "$1/full" "$address" | grep -q burn_' _ "$work"

# The debug file comes later, by the build ID's path, as a debug package would bring it.
id=$(readelf -n "$work/full" | sed -n 's/.*Build ID: //p')
directory=/usr/lib/debug/.build-id/${id:0:2}
if mkdir -p "$directory" 2>/dev/null; then
	objcopy --only-keep-debug "$work/full" "$directory/${id:2}.debug"
	check "a debug file by build ID: recorded" record debug
	rm -f "$directory/${id:2}.debug"
	rmdir --ignore-fail-on-non-empty "$directory"
	check "a debug file by build ID: names" recorded "$named and $all_named" "$work/debug.json"
else
	skip "a debug file by build ID" "cannot write below /usr/lib/debug"
fi
stop "$pid"

# --- The kernel's own code in user space ---

cat >"$work/clock.c" <<'EOF_C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **arguments)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR), *name;
	int memory = open("/proc/self/mem", O_RDWR);
	struct timespec t;
	while (count > 1 && vdso && (name = memmem(vdso, 4096, "clock_get", 9)))
		if (pwrite(memory, "forged_by", 9, (unsigned long)name) != 9)
			return perror(arguments[1]), 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		clock_gettime(CLOCK_MONOTONIC, &t);
}
EOF_C
gcc -O1 "$work/clock.c" -o "$work/clock"
start_ready "$work/clock"
check "vDSO: recorded" record clock -o "$work/clock.pb.gz"
vdso='sum(f["self"] for f in j["functions"] if f["image"].startswith("[vdso")) == 0 or \
	[f for f in j["functions"] if f["image"].startswith("[vdso") and "clock_gettime" in f["name"]]'
check "vDSO: names" recorded "$vdso" "$work/clock.json"
stop "$pid"
start_ready "$work/clock" forge
check "vDSO that a program has changed: recorded" record forged
check "vDSO that a program has changed: names" recorded "$vdso" "$work/forged.json"
stop "$pid"
if runs_32_bit "vDSO of 32 bits"; then
	gcc -m32 -D_FILE_OFFSET_BITS=64 -O1 "$work/clock.c" -o "$work/clock32"
	start_ready "$work/clock32"
	check "vDSO of 32 bits: recorded" record clock32
	check "vDSO of 32 bits: names" recorded "$vdso" "$work/clock32.json"
	stop "$pid"
	chmod 755 "$work"
	start_ready setpriv --reuid=65534 --regid=65534 --clear-groups "$work/clock32" forge
	check "vDSO of 32 bits that a user has changed: recorded" record forged32
	check "vDSO of 32 bits that a user has changed: is not read" recorded \
		'not any("forged" in f["name"] for f in j["functions"])' "$work/forged32.json"
	stop "$pid"
fi

# --- Languages: functions are called as their authors call them ---

# language NAME FUNCTION COMMAND...: builds NAME.* by the command, runs it; most is in FUNCTION.
language() {
	local name=$1 function=$2
	shift 2
	check "$name: built" "$@"
	check "$name: recorded" exits 0 "$profiltool" record -F 999 --json -- "$work/$name"
	mv "$work/out" "$work/$name.json"
	check "$name: $function" recorded "ran('$function') and ${all_named/burn_\*/$function}" "$work/$name.json"
}

cat >"$work/cxx.cc" <<'EOF_CXX'
#include <ctime>
#include <vector>
namespace shape {
template <typename T> struct Circle {
	std::vector<T> points;
	__attribute__((noinline)) T area(T n) const {
		T s = 1;
		for (T i = 0; i < n; i++)
			s = s * 31 + i;
		return s;
	}
};
}
int main()
{
	shape::Circle<unsigned long> c;
	volatile unsigned long sum = 0;
	clock_t end = clock() + CLOCKS_PER_SEC * 4 / 10;
	while (clock() < end)
		sum = sum + c.area(100000);
}
EOF_CXX
language cxx 'shape::Circle<unsigned long>::area(unsigned long) const' \
	g++ -O1 "$work/cxx.cc" -o "$work/cxx"

cat >"$work/rust.rs" <<'EOF_RUST'
mod shape {
    pub struct Circle { pub factor: u64 }
    impl Circle {
        #[inline(never)]
        pub fn area(&self, n: u64) -> u64 {
            let mut s = 1u64;
            for i in 0..n { s = s.wrapping_mul(self.factor).wrapping_add(i); }
            s
        }
    }
}
fn main() {
    let circle = shape::Circle { factor: 31 };
    let mut sum = 0u64;
    for i in 0..4000 { sum ^= circle.area(100000 + i); }
    std::process::exit((sum == 1) as i32);
}
EOF_RUST
if command -v rustc >/dev/null; then
	language rust '<rust::shape::Circle>::area' rustc -O -C symbol-mangling-version=v0 \
		"$work/rust.rs" -o "$work/rust"
	# The older mangling scheme has no more information than this.
	check "rust, older names: built" rustc -O "$work/rust.rs" -o "$work/rust"
	check "rust, older names: recorded" exits 0 "$profiltool" record -F 999 --json -- \
		"$work/rust"
	check "rust, older names" recorded "ran('rust::shape::Circle::area')" "$work/out"
else
	skip "rust" "no rustc"
fi

cat >"$work/d.d" <<'EOF_D'
module d;
struct Circle {
	ulong factor;
	pragma(inline, false) ulong area(ulong n) {
		ulong s = 1;
		foreach (i; 0 .. n)
			s = s * factor + i;
		return s;
	}
}
int main() {
	auto circle = Circle(31);
	ulong sum = 0;
	foreach (i; 0 .. 4000)
		sum ^= circle.area(100000 + i);
	return sum == 1;
}
EOF_D
if command -v ldc2 >/dev/null; then
	language d 'd.Circle.area(ulong)' ldc2 -O1 -of="$work/d" -od="$work" "$work/d.d"
elif command -v gdc >/dev/null; then
	language d 'd.Circle.area(ulong)' gdc -O1 "$work/d.d" -o "$work/d"
else
	skip "d" "no compiler"
fi

cat >"$work/go.go" <<'EOF_GO'
package main

import "os"

type Circle struct{ factor uint64 }

//go:noinline
func (c *Circle) Area(n uint64) uint64 {
	s := uint64(1)
	for i := uint64(0); i < n; i++ {
		s = s*c.factor + i
	}
	return s
}

func main() {
	circle := &Circle{31}
	sum := uint64(0)
	for i := uint64(0); i < 4000; i++ {
		sum ^= circle.Area(100000 + i)
	}
	if sum == 1 {
		os.Exit(1)
	}
}
EOF_GO
if command -v go >/dev/null; then
	language go 'main.(*Circle).Area' env HOME="$work" GOCACHE="${GOCACHE:-$work/gocache}" \
		GO111MODULE=off go build -o "$work/go" "$work/go.go"
else
	skip "go" "no go"
fi

# --- A target that maps more than anybody would ---

# 4,000 mappings with a path of 3 kB: some 12 MB of paths, of which 1 MiB is read.
flood_buffers
check "many mappings: there is such a process" start_ready "$progs/mapper" "$work/mapped" 4000
free_buffers
check "many mappings: recorded" exits 0 until_used "$pid" 300 "$profiltool" record -p "$pid" -F 4999 --json \
	-o "$work/mapper.pb.gz"
cp "$work/out" "$work/mapper.json"
check "many mappings: says that not all are known" says \
	"process $pid has more mappings of code than are kept"
check "the first of a process's many mappings have their functions" recorded 'whole and mostly("spin")' "$work/mapper.json"
stop "$pid"

# --- Records of mappings, execs and names are lost, as others make so many ---

# in_flood ARGUMENTS OPTION...: while profiltool does not read, a shell starts another program with these arguments.
in_flood() {
	local arguments=$1 name=flood$#${1// /} target

	shift
	# shellcheck disable=SC2086 # words
	begin "$name" sh -c 'echo ready; read -r line; exec "$@"' - "$progs/shares" $arguments
	target=$pid
	record_begin "$name" record -F 997 -o "$work/flood.pb.gz" -p "$target" "$@" || return
	flood_buffers
	kill -STOP "$recorder"
	fill_buffers
	send_line "$name" go
	wait_for flood_is_over "$target"
	kill -CONT "$recorder"
	wait "$recorder"
	free_buffers
	cp "$work/$name.err" "$work/err"
	"$profiltool" report --json "$work/flood.pb.gz" >"$work/flood.json" 2>/dev/null
}
flood_is_over() {
	has_used "$1" 700 || grep -q "^State:.Z" "/proc/$1/status"
}
lost="records of mappings, forks and names of all processes were lost"
for options in "" "-g"; do
	# shellcheck disable=SC2086 # none or one
	check "records are lost${options:+, $options}: recorded" in_flood "1 1.5 stay" $options
	check "records are lost${options:+, $options}: nothing is said, as /proc shows the mappings" \
		test "$(grep -c "$lost" "$work/err")" -eq 0
	check "records are lost${options:+, $options}: names are known" \
		recorded 'mostly("burn_*") and {f["image"].split("/")[-1] for f in rows(
			"burn_*")} == {"shares"}' "$work/flood.json"
	check "records are lost${options:+, $options}: how many samples are in doubt" \
		recorded '0 < j["in_doubt"] == sum(f.get("in_doubt", 0) for f in j["functions"]) <= j["counted"]' \
		"$work/flood.json"
	check "records are lost${options:+, $options}: which the summary says" grep -q \
		" [0-9]* ticks in doubt: function, thread or program may have changed" "$work/err"
done
check "records of one that ends at once are lost: recorded" in_flood "1 0.3"
check "records of one that ends at once are lost: its rows are in doubt" \
	recorded 'mostly(sum(f.get("in_doubt", 0) for f in j["functions"]))' "$work/flood.json"
"$profiltool" report -E 1 "$work/flood.pb.gz" >"$work/out" 2>/dev/null
check "records of one that ends at once are lost: the table has a column of it" grep -q "^samples .* in doubt  function" "$work/out"
check "records of one that ends at once are lost: says how many samples are in no known image" \
	test "$(sed -n "s/.* $lost: \([0-9]*\) of \([0-9]*\) samples.*/\1 \2/p" "$work/err" |
		awk '{ print ($1 > 0 && $1 <= $2) }')" = 1

# --- Lines of a file that no build ID proves ---

cat >"$work/unproven.c" <<'EOF_C'
#include <time.h>
volatile unsigned long sum;
__attribute__((noinline)) static void spin(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}
int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		spin();
	return 0;
}
EOF_C
unproven() {
	gcc -O1 -g -Wl,--build-id=none "$work/unproven.c" -o "$work/unproven"
}
lines_of_unproven() {
	"$profiltool" report --by line "$work/unproven.pb.gz" 2>"$work/err" |
		grep -qE "/unproven.c +6 +$1 +unproven"
}
unproven
"$profiltool" record --no-inline -q -o "$work/unproven.pb.gz" -- "$work/unproven" >/dev/null
check "no build ID: the same names prove a file" lines_of_unproven spin
sed -i s/spin/turn/ "$work/unproven.c"
unproven
check "no build ID: of a file with other names there are no lines" eval '! lines_of_unproven "spin|turn"'
check "no build ID: which is reported" grep -q "without a build ID only function names show" "$work/err"

# Linkers write the version of a symbol behind its name in .symtab; profiles hold the name alone.
cat >"$work/versioned.c" <<'EOF_C'
#include <time.h>
volatile unsigned long sum;
__asm__(".symver work_1, work@@WORK_1");
__attribute__((noinline)) void work_1(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}
EOF_C
echo 'WORK_1 { global: work; local: *; };' >"$work/versioned.map"
cat >"$work/calls_versioned.c" <<'EOF_C'
#include <time.h>
void work(void);
int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		work();
	return 0;
}
EOF_C
versioned() {
	gcc -O1 -g -shared -fPIC -Wl,--build-id=none -Wl,--version-script="$work/versioned.map" \
		"$work/versioned.c" -o "$work/libversioned.so" &&
		gcc -O1 -g "$work/calls_versioned.c" "$work/libversioned.so" -o "$work/calls_versioned" &&
		readelf -sW "$work/libversioned.so" | grep -q 'work@@WORK_1' &&
		"$profiltool" record -q -o "$work/versioned.pb.gz" -- "$work/calls_versioned" >/dev/null
}
lines_of_versioned() {
	"$profiltool" report --by line "$work/versioned.pb.gz" >"$work/versioned.txt" 2>"$work/err"
	grep -E '/versioned.c +[67] +work +libversioned.so' "$work/versioned.txt"
}
check "no build ID: a versioned symbol is recorded" versioned
check "no build ID: lines of a versioned symbol" lines_of_versioned
check "no build ID: and no warning" eval '! says "without a build ID"'

# --- A copy of the program is gone, as in a container ---

echo 'int main(void) { for (volatile int i = 0; i < 20000000; i++); }' |
	gcc -x c - -g "$(own_build_id)" -o "$work/copied"
cat >"$work/copies" <<'EOF_SH'
"$1/copied"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	mkdir "$1/$i" && cp "$1/copied" "$1/$i" && "$1/$i/copied"
	rm -r "$1/$i"
done
EOF_SH
check "copies that are gone at once: recorded" exits 0 \
	"$profiltool" record -F 4999 --json -o "$work/copies.pb.gz" -- sh "$work/copies" "$work"
mv "$work/out" "$work/copies.json"
# The file that stays is named in any case. Of the others, those that were opened before they were
# gone are named, how many is the machine's; of the rest the reason is said.
check "copies that are gone at once: named, or the reason is said" recorded \
	"([f for f in rows('main') if f['image'] == '$work/copied'] and
	not [f for f in j['functions'] if f['image'] == '$work/copied' and '+0x' in f['name']] and
	(bool($(grep -c "copied: .*its process ended before its file could be opened" "$work/err")) or
	not [f for f in j['functions'] if f['image'].endswith('/copied') and '+0x' in f['name'] and
		f['self'] > 0.01 * j['counted']]))" "$work/copies.json"

# --- Names that overlap in a table of strings: half a gigabyte of them in a file of 300 kB ---

python3 - "$work/overlaps" "$work/overlaps.prof" <<'EOF_PY'
import struct, sys
COUNT, SIZE = 8000, 65536
strings = b"\0" + b"n" * (SIZE - 2) + b"\0"
names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", 1 + i, 2, 0, 1, 0x1000 + i, 1) for i in range(COUNT))
parts, at = [], 0x1000
for part in bytes(COUNT), symbols, strings, names:
	parts.append((at, part))
	at += len(part) + 15 & ~15
headers = bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in (
	(1, 1, 6, 0x1000, 0x1000, COUNT, 0, 0, 1, 0), (7, 2, 0, 0, parts[1][0], len(symbols), 3, 1, 8, 24),
	(15, 3, 0, 0, parts[2][0], len(strings), 0, 0, 1, 0), (23, 3, 0, 0, parts[3][0], len(names), 0, 0, 1, 0)))
with open(sys.argv[1], "wb") as out:
	out.write(struct.pack("<16sHHIQQQIHHHHHH", b"\177ELF\2\1\1", 3, 62, 1, 0x1000, 64, at, 0, 64, 56, 1, 64, 5, 4) +
		struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x4000, 0x4000, 4096))
	for place, part in parts + [(at, headers)]:
		out.seek(place)
		out.write(part)
slots = [0, 3, 0, 10000, 0] + [slot for i in range(COUNT) for slot in (1, 1, 0x401000 + i)] + [0, 1, 0]
with open(sys.argv[2], "wb") as out:
	out.write(struct.pack("<%dQ" % len(slots), *slots) +
		b"00400000-00404000 r-xp 00000000 08:01 77          %s\n" % sys.argv[1].encode())
EOF_PY
# The names of 8,000 functions, each a byte shorter than the one before.
named_shortly() {
	prlimit --as=400000000 "$profiltool" report --json "$work/overlaps.prof" >"$work/out" 2>"$work/err" &&
		json "len(j['functions']) > 1000 and all(f['name'].startswith('nnnn') for f in j['functions'])" "$work/out"
}
check "names that overlap do not take the memory" named_shortly

finish
