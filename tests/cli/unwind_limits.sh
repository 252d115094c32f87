#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Recording with -g at its limits: processes with more mappings than are kept, files that differ from what
# was mapped, call frame information made to take time or memory, and little memory for profiltool itself.
# Each ends in time, with a clear message. See tests/progs/unwinder.c.
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "limits of recording with -g" "recording needs root"
	finish
fi

# measured NAME OPTION...: like until_used, of a started process, $pid, and 200 ms, with -g. Output is in $work/NAME.json,
# .err and .pb.gz; the recorder's peak memory in KiB in .kib.
measured() {
	local name=$1
	shift
	python3 -c '
import os, resource, signal, subprocess, sys, time
kib, pid, *command = sys.argv[1:]
def used():
	return sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
os.kill(int(pid), signal.SIGSTOP)
recorder = subprocess.Popen(command)
while recorder.poll() is None and "poll" not in open(f"/proc/{recorder.pid}/wchan").read(): # see `records`
	time.sleep(.01)
os.kill(int(pid), signal.SIGCONT)
least = used() + 20 # of 10 ms
while recorder.poll() is None and used() < least:
	time.sleep(.01)
os.kill(int(pid), signal.SIGSTOP)
recorder.send_signal(signal.SIGINT)
status = recorder.wait()
open(kib, "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(status)' "$work/$name.kib" "$pid" "$profiltool" record -g -p "$pid" -F 1999 --json \
		-o "$work/$name.pb.gz" "$@" >"$work/$name.json" 2>"$work/$name.err"
}

# needs_little NAME MIB: the recorder's memory was no more than that above what the ordinary process took.
needs_little() {
	echo "ordinary: $(<"$work/ordinary.kib") KiB; $1: $(<"$work/$1.kib") KiB"
	[ "$(<"$work/$1.kib")" -le $(($(<"$work/ordinary.kib") + $2 * 1024)) ]
}

# said NAME REGEX: whether its messages have such a line.
said() {
	grep -qE "$2" "$work/$1.err" && return
	cat "$work/$1.err"
	return 1
}

# is_whole NAME: all stacks reach the start of the program.
is_whole() {
	recorded '(whole and j["stacks"]["user"] >= 20 and
		nearly_all(j["stacks"]["complete"], of=j["stacks"]["user"]))' "$work/$1.json"
}

# --- Mappings ---

check "few mappings: there is such a process" start_ready "$progs/unwinder_bare" crowd file 10
check "few mappings: recorded" measured ordinary
stop "$pid"
check "few mappings: all stacks are whole" is_whole ordinary

# Each process may have a few less than vm.max_map_count.
most=$(($(</proc/sys/vm/max_map_count) - 100))
[ "$most" -le 100000 ] || most=100000
for kind in file memory; do
	flood_buffers
	check "$kind: there is a process with $most mappings" start_ready \
		"$progs/unwinder_bare" crowd "$kind" "$most"
	free_buffers
	check "$kind: recorded" measured "$kind"
	stop "$pid"
	check "$kind: says that not all are known" said "$kind" \
		"^profiltool: process $pid has more mappings of code than are kept"
	check "$kind: stacks through the program, the C library and the vDSO are whole" is_whole "$kind"
	check "$kind: with little memory" needs_little "$kind" 64
done

# --- A family, each of whose processes has nearly the same mappings ---

# The walk has a list of its own for each process: a child that maps one more has a copy of its parent's. All of
# them are in the recorder's budget of memory, a quarter of what is available, of which there is little here.
available=$((8 * 1024)) # KiB
echo "MemAvailable: $available kB" >"$work/meminfo"
cat >"$work/short_of_memory" <<EOF
#!/usr/bin/env -S unshare -m sh
mount --bind "$work/meminfo" /proc/meminfo && exec "$profiltool" "\$@"
EOF
chmod +x "$work/short_of_memory"
# record_family: records while the children come, until their parent has run for a while. Sets $own, its own
# memory in KiB: its pages that are not the kernel's buffers.
record_family() {
	profiltool=$work/short_of_memory record_begin family record -g -p "$pid" -F 1999 --json -o "$work/family.pb.gz"
	send_line family go
	wait_for grep -q grown "$work/family.out" &&
		wait_for_use "$pid" 300 &&
		own=$(awk '$1 == "RssAnon:" { print $2 }' "/proc/$recorder/status")
	record_end
}
# The recorder has the budget, as much as half again for growth, and what it has without a family. All of that is less
# than what is available; without the budget the family takes twice of that.
is_own_available() {
	echo "its own: ${own:-unknown} KiB"
	[ "${own:-$available}" -lt "$available" ]
}
if exits 0 "$work/short_of_memory" --version; then
	check "family: there is a process with 4,000 mappings" begin family "$progs/unwinder_bare" family 100 4000
	check "family: 100 children, each with one more: recorded" record_family
	stop "$pid"
	check "family: it takes less memory than is available" is_own_available
	check "family: every tick is accounted for" recorded 'whole and j["ticks"] > 20' "$work/family.json"
else
	skip "a family of processes" "unshare -m does not work here"
fi

# --- Call frame information ---

# odd KIND MIB WHY: records the process of such a file, a user's, which takes so much memory at most.
# WHY: a regular expression of what is said of it; "" when it has rows. See tests/odd_image.py.
odd() {
	check "$1: there is such a file" start_ready python3 "$top/tests/odd_image.py" "$1" "$work/$1.elf"
	check "$1: recorded" measured "$1"
	stop "$pid"
	if [ -n "$3" ]; then
		check "$1: says why stacks end there" said "$1" "$3"
		check "$1: every tick is accounted for" recorded 'whole and j["ticks"] > 20' "$work/$1.json"
	else
		check "$1: all stacks are whole" is_whole "$1"
	fi
	check "$1: with little memory" needs_little "$1" "$2"
	rm -f "$work/$1.elf"
}

# 32 MiB: a half of the smallest section that claims to be more than it is; on a busy machine there are more records.
unused="its call frame information is not used"
size="corrupt .debug_frame: unknown compression or implausible size"
odd plain 32 ""
odd zlib-claim 32 "/zlib-claim.elf: $unused: $size$"
odd zstd-claim 32 "/zstd-claim.elf: $unused: $size$"
odd zlib-long 32 " [0-9.]* %: no call frame information in zlib-long.elf"
odd zstd-long 32 " [0-9.]* %: no call frame information in zstd-long.elf"
odd zlib-full 160 " [0-9.]* %: no call frame information in zlib-full.elf"
odd zstd-full 160 " [0-9.]* %: no call frame information in zstd-full.elf"
odd records 256 ""
odd cut 32 "/cut.elf: $unused: corrupt .eh_frame: its record at 0x[0-9a-f]* is truncated$"
odd beyond 32 "/beyond.elf: $unused: corrupt .eh_frame: its record at 0x[0-9a-f]* is truncated$"
odd overlap 160 ""
odd sparse 32 "/sparse.elf: $unused: its .eh_frame is larger than 128 MiB$"
odd names 32 "/names.elf: $unused: corrupt ELF file: section 2 is too large or compressed$"
odd torn 32 "/torn.elf: $unused: corrupt ELF file: section 2, of strings, ends within one$"

# --- A program that has ended, and whose name is another file's, before its rows are read ---

# With a build ID of its own: rows of the same build, which others may run, would do as well.
check "there is a program that nobody else has" gcc -std=gnu11 -D_GNU_SOURCE -O1 -fno-inline -pthread \
	"$(own_build_id)" -o "$work/own" "$top/tests/progs/unwinder_bare.c"

# replaced KIND: runs a program, a child of this shell, while the recorder is stopped. Then its name is that of something else.
replaced() {
	local name=replaced.$1 status
	cp "$work/own" "$work/$name"
	share_buffers
	record_begin "$name" record -p $$ -g -F 999 --json -o "$work/$name.pb.gz"
	kill -STOP "$recorder"
	"$work/$name" burn 0.15 >/dev/null
	rm "$work/$name"
	case $1 in
	fifo) mkfifo "$work/$name" ;;
	device) mknod "$work/$name" c 1 5 ;; # /dev/zero
	directory) mkdir "$work/$name" ;;
	build) cp "$progs/unwinder" "$work/$name" ;;
	esac
	kill -CONT "$recorder"
	record_end
	status=$?
	free_buffers
	return "$status"
}
# no_wrong_names KIND: none of its frames has a name, nor a caller.
no_wrong_names() {
	recorded "whole and {f['name'].split('+')[0] for f in j['functions']
		if f['image'] == '$work/replaced.$1'} == {'replaced.$1'}" "$work/replaced.$1.json"
}
early="its process ended before its file could be opened, and its path leads to none or to another"
for kind in gone fifo device directory build; do
	check "$kind: recorded" replaced "$kind"
	check "$kind: nothing is taken from there" no_wrong_names "$kind"
	check "$kind: says why stacks end" said "replaced.$kind" \
		"stacks end in $work/replaced.$kind: its call frame information is not used: $early$"
	rm -rf "$work/replaced.$kind"
done

# --- More rows than there is room for ---

# Each has 1.2 million rows, and there is room for two of them, the first of which runs all the time.
cat >"$work/large.c" <<'EOF'
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static void end(int signal)
{
	_exit(signal != SIGPROF);
}
__attribute__((noinline)) static int NAME(void)
{
	for (volatile int i = 1; i; i = 1)
		;
	return 1;
}
int main(void)
{
	const struct itimerval cpu = { .it_value = { 0, 200000 } };
	puts("ready");
	fflush(stdout);
	getchar();
	alarm(100);
	signal(SIGPROF, end);
	setitimer(ITIMER_PROF, &cpu, 0);
	return NAME() + 1;
}
EOF
as -o "$work/rows.o" - <<'EOF'
.text
.rept 6000
.cfi_startproc
.rept 100
nop
.cfi_def_cfa_offset 16
nop
.cfi_def_cfa_offset 8
.endr
.cfi_endproc
.endr
.section .note.GNU-stack
EOF
# link_large NUMBER: makes such a program.
link_large() {
	gcc -O1 -DNAME="large$1" "$(own_build_id)" -o "$work/large$1" "$work/large.c" "$work/rows.o"
}
# reaches_start NAME FUNCTION: nearly all of its stacks, of some 100, reach the start of the program.
reaches_start() {
	awk -v f=";$2(;| )" '$0 ~ f { all += $NF; whole += $NF * /^_start;/ }
		END { print whole + 0, "of", all + 0; exit !(all >= 25 && whole >= .9 * all) }' "$work/$1.folded"
}
for i in 0 1 2 3; do
	check "large$i: there is such a program" link_large "$i"
done
# This shell and its children: what others run on the machine would take of the room.
record_begin rows record -p $$ -g -F 499 --json -o "$work/rows.pb.gz"
check "large0: it runs" begin large0 "$work/large0"
for i in 1 2 3 1; do
	"$work/large$i" </dev/null >"$work/large$i.out"
	check "large$i: it has run" [ $? -eq 0 ]
done
send_line large0 go
wait "$pid"
check "large0: it has run" [ $? -eq 0 ]
kill -INT "$recorder"
wait "$recorder"
check "more rows than there is room for: recorded" [ $? -eq 0 ]
"$profiltool" convert "$work/rows.pb.gz" "$work/rows.folded" 2>/dev/null
for i in 0 1 2 3; do
	check "large$i: its stacks reach the start" reaches_start rows "large$i"
done
rm -f "$work"/large* "$work/rows.o"

# --- The recorder's own limits ---

# limited HINT LIMIT: records under this limit of prlimit(1): either all of it, or nothing, and then with
# this hint. Nothing is half-written.
limited() {
	local status
	rm -f "$work/limited".*
	until_used "$pid" 100 prlimit "$2" "$profiltool" record -g -p "$pid" -F 499 -o "$work/limited.pb.gz" \
		>"$work/limited.out" 2>"$work/limited.err"
	status=$?
	cat "$work/limited.err"
	if [ "$status" -eq 0 ]; then
		exits 0 "$profiltool" report --json "$work/limited.pb.gz"
		return
	fi
	[ "$status" -eq 1 ] && [ "$(ls "$work"/limited.*)" = "$work/limited.err
$work/limited.out" ] && grep -qF -- "$1" "$work/limited.err"
}
check "there is an ordinary process" start_ready "$progs/unwinder_bare" crowd file 10
for limit in as=20000000 as=60000000 as=100000000 as=500000000 data=5000000 data=50000000; do
	check "--$limit" limited "raise this process's memory limits: ulimit -v unlimited" "--$limit"
done
for limit in nofile=16 nofile=32 nofile=256; do
	check "--$limit" limited "raise the limit of open files: ulimit -n 65536" "--$limit"
done
check "--memlock=0: nothing of it is locked" limited "does not fail" --memlock=0

# --- A kernel that does not take the walk ---

# refused NAME CALL OPTION...: records while the kernel refuses the bpf(2) call with that number, and the
# next: libbpf asks again, for the verifier's messages.
refused() {
	local name=$1 call=$2
	shift 2
	strace -f -o /dev/null -e signal=none -e trace=bpf \
		-e inject=bpf:error=EINVAL:when="$call..$((call + 1))" "$profiltool" record -p "$pid" -F 1999 \
		-d 0.8 --json "$@" >"$work/$name.json" 2>"$work/$name.err"
}
if strace -o /dev/null -e inject=bpf:error=EINVAL:when=1..2 true 2>/dev/null; then
	kill -CONT "$pid"
	strace -f -o "$work/calls" -e signal=none -e trace=bpf "$profiltool" record -g -p "$pid" -d 0.1 \
		>/dev/null 2>&1
	# Not the ends of processes, which are lines, too.
	load=$(grep -F 'bpf(' "$work/calls" | grep -n 'BPF_PROG_LOAD.*prog_name="sample_stacks_c' | cut -d : -f 1 | head -n 1)
	check "the walk's program is loaded by a call of bpf(2)" [ -n "$load" ]
	check "-g: recorded, if the kernel refuses that" refused refused "$load" -g
	check "-g: says that stacks are by frame pointers" said refused \
		"call stacks are by frame pointers: this kernel does not take the walk by call frame inf"
	check "-g: they are" recorded 'whole and j["ticks"] > 20 and j["stacks"]["method"] == "fp"' \
		"$work/refused.json"
	refused demanded "$load" --call-graph=cfi
	check "--call-graph=cfi: fails" [ $? -eq 6 ]
	check "--call-graph=cfi: says why, and what asks less" said demanded "try --call-graph=fp"
else
	skip "a kernel that does not take the walk" "strace cannot inject errors here"
fi
stop "$pid"

# --- More programs than the tables have room for ---

# Of two programs with 200,000 rows each one fits. The first burns for half a second, and stays; the second for six.
cat >"$work/wide.s" <<'EOF_S'
.globl wide
wide:
	.cfi_startproc
	.rept 100000
	push %rbx
	.cfi_adjust_cfa_offset 8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.endr
	ret
	.cfi_endproc
	.section .note.GNU-stack, "", @progbits
EOF_S
cat >"$work/wide.c" <<'EOF_C'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;

__attribute__((noinline)) void burn(double seconds)
{
	struct timespec used;

	do {
		for (int i = 0; i < 100000; i++)
			sink = i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec + used.tv_nsec / 1e9 < seconds);
}

int main(int argc, char **argv)
{
	void wide(void);

	burn(atof(argv[1]));
	if (argc > 2)
		pause();
	sink = argc > 9 ? (wide(), 1) : 0;
	return 0;
}
EOF_C
if [ "$(uname -m)" = x86_64 ]; then
	for name in first second; do
		gcc -O1 -fomit-frame-pointer -fno-inline "$(own_build_id)" "$work/wide.c" "$work/wide.s" -o "$work/$name"
	done
	cat >"$work/both" <<'EOF_SH'
echo ready
read -r go
"$1/first" 0.5 stays &
first=$!
wait_for grep -q pause "/proc/$first/wchan" && "$1/second" "$2"
kill "$first"
EOF_SH
	begin both bash "$work/both" "$work" 6
	record_begin both record -g -v -p "$pid" -F 999 --unwind-memory 1 --json
	send_line both go
	wait "$recorder"
	check "what is used least makes room for a later program" recorded "(lambda rows:
		rows('burn')['second'] > 1500 and rows('main')['first'] > 125 and
		.2 * rows('burn')['second'] < rows('main')['second'] < rows('burn')['second'])(
		lambda name: {f['image'].split('/')[-1]: f['total'] for f in j['functions'] if f['name'] == name})" \
		"$work/both.json"
	check "what had no room: not called a program without call frame information" bash -c \
		'! grep "no call frame information" "$1"' - "$work/both.err"
	check "what has no room: the tables are reported, and how many images" said both \
		"call frame information: [0-9]+ images, [0-9]+ rows, [0-9]+ KiB of [0-9]+; no room for [1-9][0-9]* images"
	begin short bash "$work/both" "$work" 0.3
	record_begin short record -g -p "$pid" -F 999 --unwind-memory 1
	send_line short go
	wait "$recorder"
	check "what has no room: reported as that, with the option" said short \
		"second: .*no room in the unwind tables \([0-9]+ MiB\): give --unwind-memory more than 1"
	check "what has no room: the summary" said short \
		"no room in the unwind tables for the call frame information in second: record with a larger"
fi
for value in 0 4097 x; do
	check "--unwind-memory $value" exits 2 "$profiltool" record --unwind-memory "$value" true
	check "--unwind-memory $value: what it takes" says "takes a number of MiB from 1 to 4096"
done
finish
