#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# perf.data: what perf record writes here is, to profiltool, what it is to perf: every stack and every function, of one
# program and of the machine, from a file, a pipe, and compressed. And files made by hand (perf.py): tasks that fork,
# exec and end, mappings that change, times, several events, losses, what is not read, and corrupt ones. And the text
# that perf script prints.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2016,SC2317 # functions are called by check; eval expands it
. "$(dirname "$0")/../lib.sh"

cd "$work" || exit 1
export HOME=$work TZ=UTC # perf's cache is in HOME

tool=$top/tests/cli/perf.py
map=/tmp/perf-$((2000000000 + $$)).map # no process has such a number
trap 'rm -f "$map"; [ "$BASHPID" = $$ ] && cleanup' EXIT
check "files are made" python3 "$tool" make . "$((2000000000 + $$))"
echo "7000 20 generated(int) [tier 1]" >"$map"

# --- By hand ---

check "the fields of a file" exits 0 "$profiltool" dump tasks.perf.data
cat >expected <<'END'
format perf
bits 64
endian little
host host7
command perf record -g
event cpu-clock
period_ns 10000000
time_ns 1700000000000000000
duration_s 12.000000000
ticks 14
counted 11
out_of_range 0
excluded 0
kernel 2
lost ring_full 3
samples 11
comment kernel=6.1.0
END
check "are what perf wrote" diff expected <(sed '/^mappings/,$d' out)
cat >expected <<'END'
0x1000-0x2000 0x0 /nowhere/shell build-id=cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
0x1000-0x3000 0x4000 /nowhere/a build-id=abababababababababababababababababababab
0x1800-0x1a00 0x0 /nowhere/b
0x0-0xffffffffffffffff 0x0 [kernel.kallsyms]
0xffffffffc0000000-0xffffffffc0000100 0xffffffffc0000000 [bpf]
END
check "mappings have build IDs of their records, or of the file" diff expected <(sed '1,/^mappings/d; /^stacks/,$d' out)
cat >expected <<'END'
1 0x1010 0x1800 [7/7 shell]
1 0x1020 [8/8 shell]
1 0x1020 [8/8 worker]
1 0x1030 0x1040 0x0 [8/9 helper process=worker] # ?;?;[unknown]
1 0x1810 [8/8 worker]
1 0x17f0 [8/8 worker]
1 0x1a10 [8/8 worker]
1 0x1020 [8/8 generation 1 shell]
1 0xffffffff81000010 0xffffffff81000020 0x1050 [7/7 shell kernel]
1 0xffffffffc0000020 [7/7 shell kernel] # bpf_prog_0123_probe
1 0x0 [7/7 shell] # [guest kernel]
END
check "samples are of the process and program that they were of" diff expected <(sed '1,/^stacks/d; /^times/,$d' out)
# image_lines FILE: the mappings of a file, without their addresses.
image_lines() {
	"$profiltool" dump "$1" 2>&1 | sed -n '/^mappings/,/^stacks/s/^0x[^ ]* 0x[^ ]* //p'
}
printf '/nowhere/%s\n' nvme sda tape id >expected
check "a mark of build IDs that no event asked for, as of Linux 6.1, is a device's" \
	diff expected <(image_lines marked.perf.data)
check "one that an event asked for is a build ID's" \
	diff <(echo "/nowhere/id build-id=0100000000000000000000000000000000000002") <(image_lines asked.perf.data)

# images FILE: each function with its samples, which names the image that its address was in.
images() {
	"$profiltool" report -q "$1" 2>/dev/null | awk 'NR > 1 { print $1, $5 }' | sort
}
cat >expected <<'END'
0 [kernel.kallsyms]+0xffffffff81000020
0 [unknown]
0 a+0x4040
0 shell+0x50
0 shell+0x800
1 [guest
1 [kernel.kallsyms]+0xffffffff81000010
1 a+0x4020
1 a+0x4030
1 a+0x47f0
1 a+0x4a10
1 b+0x10
1 bpf_prog_0123_probe
1 shell+0x10
2 shell+0x20
END
for file in tasks shuffled pipe unfinished; do
	check "addresses are in the mappings of their time: $file" diff expected <(images $file.perf.data)
done
check "and of standard input" diff expected <(images - <tasks.perf.data)
check "and of gzip" diff expected <(gzip -k pipe.perf.data && images pipe.perf.data.gz)
check "pprof keeps it" eval '"$profiltool" convert -q tasks.perf.data tasks.pb.gz &&
	diff <("$profiltool" dump tasks.perf.data 2>/dev/null | sed 1d) <("$profiltool" dump tasks.pb.gz | sed 1d)'

check_rows <<'END'
NAME an interval
RUN "$profiltool" report --since "2023-11-14 22:13:25" --until "2023-11-14 22:13:28" tasks.perf.data
EXPECT 25.00      1   25.00  a+0x4030

NAME a process by its name
RUN "$profiltool" report --comm worker tasks.perf.data
EXPECT a+0x4a10

NAME several events are several values; cycles lead, by their period
RUN "$profiltool" report events.perf.data 2>&1
EXPECT cycles:u       %    cum%  samples       %  instructions:u      %  function  image
EXPECT    12000  100.00  100.00        2  100.00               0   0.00  a+0x20    a
EXPECT        0    0.00  100.00        0    0.00               1  50.00  a+0x10    a
EXPECT events: cycles:u 12000, samples 2, instructions:u 2
EXPECT counted 2 + out_of_range 0 + excluded 0 + lost 2 (ring_full 2)

NAME a value of another event
RUN "$profiltool" report --value instructions:u events.perf.data
EXPECT              1  50.00   50.00        0  0.00         0  0.00  a+0x10    a

NAME more events than become values
RUN "$profiltool" report many-events.perf.data 2>&1
EXPECT 6 samples of more than the first 64 events are not read
EXPECT event-63 1

NAME the CPU and the control group are labels
RUN "$profiltool" dump events.perf.data 2>&1
EXPECT cgroup=/system.slice/web.service cpu=1

NAME what of tracepoints is not read
RUN "$profiltool" report tracepoint.perf.data 2>&1
EXPECT branch stacks are not read
EXPECT fields of tracepoints are not read

NAME stacks of which the kernel took the rest later
RUN "$profiltool" dump deferred.perf.data 2>&1
EXPECT 1 0xffffffff81000010 [5/5 web kernel]
EXPECT callers in user space are not read: they are in records of their own

NAME a recording that perf did not finish
RUN "$profiltool" report unfinished.perf.data 2>&1
EXPECT perf record did not finish the file

NAME a truncated file
RUN "$profiltool" report truncated.perf.data
STATUS 1
EXPECT the records are truncated
EXPECT --salvage reads what comes before it

NAME what is there of it
RUN "$profiltool" report --salvage truncated.perf.data 2>&1 || [ $? = 3 ]
EXPECT shell+0x10

NAME no event
RUN "$profiltool" report no-event.perf.data
STATUS 1
EXPECT the recording has no event

NAME the other byte order
RUN "$profiltool" report other-order.perf.data
STATUS 1
EXPECT a recording of perf in the other byte order

NAME control groups
RUN "$profiltool" report --by cgroup events.perf.data
EXPECT 12000  100.00  100.00        2  100.00               0    0.00  /system.slice/web.service
EXPECT [no cgroup]

NAME names of generated code
RUN "$profiltool" report jit.perf.data 2>&1
EXPECT generated(int) [tier 1]

NAME those of another machine are not looked up here
RUN "$profiltool" report jit-elsewhere.perf.data 2>&1
EXPECT anon+0x10

NAME a copy of a stack that is cut
RUN "$profiltool" dump copy-cut.perf.data
EXPECT 1 0x1010 [7/7 shell]
EXPECT 1 0x1020 [7/7 shell]

NAME one that is longer than its record
RUN "$profiltool" dump copy-long.perf.data
EXPECT 1 0x1020 [7/7 shell]

NAME one without its stack pointer
RUN "$profiltool" dump copy-no-sp.perf.data
EXPECT 1 0x1020 [7/7 shell]

NAME those of another kind of machine
RUN "$profiltool" dump copy-elsewhere.perf.data 2>&1
EXPECT 1 0x1020 [7/7 shell]
EXPECT callers in user space are not read: the copies of stacks (--call-graph dwarf) are of another kind of machine

NAME no such directory for symbols
RUN "$profiltool" report --symfs /nowhere tasks.perf.data
STATUS 1
EXPECT --symfs: cannot open /nowhere: No such file or directory

NAME no control groups
RUN "$profiltool" report --by cgroup tasks.perf.data
STATUS 1
EXPECT --by cgroup: no sample has a cgroup
EXPECT perf record --all-cgroups

NAME a stack that is longer than its record
RUN "$profiltool" report bad-stack.perf.data
STATUS 1
EXPECT at byte 304: a sample is truncated

NAME a record that is shorter than its header
RUN "$profiltool" report short-record.perf.data
STATUS 1
EXPECT at byte 304: a record has 4 bytes

NAME a sample of no event
RUN "$profiltool" report of-no-event.perf.data
STATUS 1
EXPECT a sample is of no event of the file

NAME a section outside of the file
RUN "$profiltool" report far-section.perf.data
STATUS 1
EXPECT at byte 24: a section is beyond the end of the file

NAME compressed records that are not
RUN "$profiltool" report bomb.perf.data
STATUS 1
EXPECT compressed records are corrupt

NAME more changes of mappings than a program makes
RUN "$profiltool" report many-mappings.perf.data
STATUS 1
EXPECT too many changes of mappings

NAME it is not written
RUN "$profiltool" convert -f perf tasks.perf.data x
STATUS 2
EXPECT perf

END

# --- The text of perf script, by hand ---

python3 "$tool" script times >script.txt
python3 "$tool" script no-times >no-times.txt
python3 "$tool" script ended >ended.txt
check "the text of perf script" exits 0 "$profiltool" dump script.txt
cat >expected <<'END'
1,250000,0 0x0 0x0 0x0 0x0 0x0 [7/8 web server 1 cpu=1] # handle(int, char*);inner;std::map<int, int>::find (int);[unknown];[unknown]
END
check "a stack" diff expected <(grep 'handle.*inner' out)
check_rows <<'END'
NAME all samples, with their images, and a value for each event
RUN "$profiltool" report script.txt 2>&1
EXPECT self  self%  total  total%  page-faults       %  function
EXPECT 1  33.33      1   33.33            0    0.00  do_work                         [kernel.kallsyms]
EXPECT 1  33.33      1   33.33            1  100.00  main                            b
EXPECT events: samples 3, page-faults 1
EXPECT 1 line(s) were not read, the first is line 18

NAME what the header says
RUN "$profiltool" dump script.txt
EXPECT host host7
EXPECT command /usr/bin/perf record -g ./web server
EXPECT period_ns 250000
EXPECT time_ns 1700000000000000000

NAME a text without times
RUN "$profiltool" dump no-times.txt 2>&1
EXPECT 1,0,0 0x0 0x0 [0/100 app 2] # work;main
EXPECT 0,250000,0 0x0 [100/101 app 2 cpu=1] # work
EXPECT 0,0,1 0x0 [0/102 app 2] # work
EXPECT 1,0,0 0x0 [0/100 app] # flat
EXPECT 1 line(s) were not read, the first is line 11

NAME it has no start and no duration
RUN "$profiltool" dump no-times.txt 2>&1 | grep -c "time_ns\|duration_s\|^times" || :
EXPECT 0

NAME threads that had ended, and one whose name is empty
RUN "$profiltool" dump ended.txt
EXPECT 1 0x0 [[exited] kernel cpu=0] # do_exit
EXPECT 1 0x0 [100/101 cpu=0] # work
EXPECT 1 0x0 [100/0 app cpu=0] # work

NAME threads that had ended, of perf.data
RUN "$profiltool" dump ended.perf.data
EXPECT 1 0xffffffff81000010 [[exited] kernel]
EXPECT 1 0xffffffff81000020 [7/0 shell kernel]

NAME an interval of it
RUN "$profiltool" report --since "2023-11-14 22:13:25" --until "2023-11-14 22:13:28" script.txt
EXPECT 1  100.00      1  100.00  do_work

END

# --- Recordings of perf ---

command -v perf >/dev/null || { skip "recordings of perf" "perf is not installed" && finish; }
# What is printed for a file of the other byte order is a command that reads it.
hint_works() {
	"$profiltool" report other-order.perf.data 2>err && return 1
	PATH=${profiltool%/*}:$PATH bash -c "$(tail -1 err | cut -d " " -f 2-)" >out 2>/dev/null; cat err out
	grep -q "2  100.00  100.00 .* app$" out
}
check "the hint for the other byte order is a command that reads it" hint_works
cat >small.c <<'END'
volatile unsigned long sum;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n * 1000; i++) sum += i; }
__attribute__((noinline)) void middle(int n) { leaf(n); sum++; }
__attribute__((noinline)) void deep(int n) { if (n) deep(n - 1); else middle(20); sum++; }
int main(void) { for (int i = 0; i < 2000; i++) { deep(i % 60); middle(10); } return 0; }
END
check "a program" gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls small.c -o small

# record OPTION...: with build IDs in the records of mappings, which perf's cache is not needed for
record() {
	perf record -q -N --buildid-mmap -F 5000 "$@"
}
recorded() {
	record "$@" 2>record.err || { cat record.err; return 1; }
}

# same WHAT FILE: whether perf and profiltool agree about a file.
same() {
	perf script -i "$2" --no-inline -F comm,time,ip,sym,dso >script.txt 2>script.err || { cat script.err; return 1; }
	if [ "$1" = stacks ]; then
		"$profiltool" convert -q -f folded "$2" ours || return
	else
		"$profiltool" report -q --json "$2" >ours || return
	fi
	python3 "$tool" compare "$1" script.txt ours small
}

if recorded -e cpu-clock:u -g -o user.data ./small; then
	check "every stack of a program is as perf has it" same stacks user.data
	check "the text of perf script says the same" eval 'perf script -i user.data --no-inline >user.txt 2>/dev/null &&
		"$profiltool" convert -q -f folded user.txt ours && python3 "$tool" compare stacks script.txt ours small'
	check "compressed" eval 'recorded -z -e cpu-clock:u -g -o packed.data ./small && same stacks packed.data'
	check "through a pipe" eval 'record -e cpu-clock:u -g -o - ./small >pipe.data 2>/dev/null && same stacks pipe.data'
	check "of the machine: every function that ran" eval \
		'recorded -a -e cpu-clock -g -o machine.data ./small && same leaves machine.data'
	check "without stacks" eval 'recorded -e cpu-clock:u -o flat.data ./small && same leaves flat.data'
	check "and in their text" eval 'perf script -i flat.data >flat.txt 2>/dev/null &&
		"$profiltool" report -q --json flat.txt >ours && python3 "$tool" compare leaves script.txt ours small'
	mkdir without && check "a program without frame pointers, which libc calls back" gcc -O2 -fomit-frame-pointer \
		-fno-optimize-sibling-calls -x c - -o without/small <<-'END'
		#include <stdlib.h>
		volatile unsigned long sum;
		__attribute__((noinline)) int compare(const void *a, const void *b)
		{ for (int i = 0; i < 50; i++) sum += i; return *(const int *)a - *(const int *)b; }
		__attribute__((noinline)) void sort(void)
		{ int x[500]; for (int i = 0; i < 500; i++) x[i] = i * 7919 % 500; qsort(x, 500, sizeof(*x), compare); sum++; }
		__attribute__((noinline)) void deep(int n) { if (n) deep(n - 1); else sort(); sum++; }
		int main(void) { for (int i = 0; i < 1000; i++) deep(i % 30); return 0; }
		END
	check "every copied stack (--call-graph dwarf) is as perf walks it" eval \
		'recorded -e cpu-clock:u -F 1000 --call-graph dwarf,8192 -o copies.data without/small && same stacks copies.data'
	check "and is that of the program" eval '"$profiltool" report --json copies.data 2>/dev/null |
		json "{f[\"name\"] for f in j[\"functions\"]} >= {\"compare\", \"qsort_r\", \"sort\", \"deep\", \"main\", \"_start\"}" /dev/stdin'
	check "copied stacks of a stripped program, below the kernel" eval 'strip -o without/stripped without/small &&
		recorded -e cpu-clock -F 1000 --call-graph dwarf,8192 -o stripped.data without/stripped &&
		"$profiltool" convert -q -f folded stripped.data - | grep "^stripped+0x.*;__libc_start_main;.*;qsort_r;.*;stripped+0x[0-9a-f]* "'
	check "several events: the sums of perf" eval 'recorded -e cpu-clock:u -e page-faults:u -o events.data ./small &&
		diff <(perf script -i events.data -F event,period | awk "/page-faults/ { sum += \$1 } END { print sum }") \
		<("$profiltool" dump --json events.data | python3 -c "
import json, sys
p = json.load(sys.stdin)
n = [v[\"type\"] for v in p[\"values\"]].index(\"page-faults:u\")
print(sum(s[\"values\"][n] for s in p[\"stacks\"]))")'
	check "its page, its flame graph, and a comparison" eval '"$profiltool" web user.data -o x.html &&
		"$profiltool" flamegraph user.data -o x.svg && "$profiltool" diff user.data packed.data >/dev/null'
	mv small moved && mkdir -p "root$work" && cp moved "root$work/small"
	check "the program is not where it was" eval '"$profiltool" report user.data >out 2>&1; grep -q "small+0x" out && ! grep -q leaf out'
	check "names from a copy of the machine" eval '"$profiltool" report --symfs root user.data 2>&1 | grep " leaf "'
	check "names from the cache of perf" eval 'perf buildid-cache --add moved && "$profiltool" report user.data 2>&1 | grep " leaf "'
	mv moved small
	check "the time is that of the file" eval '[ "$("$profiltool" dump --json user.data | python3 -c "
import json, sys, os
p = json.load(sys.stdin)
print(abs(p.get(\"time_ns\", 0) / 1e9 - os.stat(\"user.data\").st_mtime) < 60)")" = True ]'

	# --- Beside us ---

	# beside_us: perf records, and finds the program's functions, while we record the machine; nothing of that is in its
	# records (perf is aborted by a build ID that it did not ask for).
	beside_us() {
		perf record -q -a -g -F 999 -e cpu-clock -o beside.data ./small 2>perf.err &&
			perf report --stdio -i beside.data >beside.txt 2>>perf.err && grep -q "leaf" beside.txt && return
		cat perf.err
		return 1
	}
	record_begin all record -a -g
	check "beside a recording of the machine: perf is as without it" beside_us
	check "and ours" record_end
else
	skip "recordings of perf" "perf cannot record here: $(head -c 200 record.err)"
fi
finish
