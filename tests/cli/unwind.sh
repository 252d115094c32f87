#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Whole call stacks of programs as distributions build them, without frame pointers: with every clock, at
# every instruction, of processes, threads and libraries that appear during the recording; and the messages
# about stacks that cannot be whole.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

cd "$work" || exit

flags=(-std=gnu11 -D_GNU_SOURCE -O2 -fomit-frame-pointer -pthread)
gcc "${flags[@]}" -DWITHOUT_FRAME_POINTERS "$top/tests/progs/chains.c" -o chains || exit
strip -o stripped chains
program=$work/chains

seconds=0.3

# reach_start NAME PERCENT [COUNT]: of the user stacks, COUNT at least, such a part reaches the start: all, or that
# many but for 4 points and three stacks. Each other one is counted with the cause of its end, or as cut off. How many come
# before the recorder has read the tables of what is new depends on how busy the machine is: those are not asked for.
reach_start() {
	recorded "(j['stacks']['user'] >= ${3:-20} and accounted and mostly(j['stacks']['complete'], of=j['stacks']['user']) and
		j['stacks']['complete'] >= (($2 - 4 * ($2 < 100)) / 100 * (j['stacks']['user'] - ($2 < 100) * sum(e['count']
			for e in j['stacks']['ends'] if e['cause'] == 'late_frame_information'))) - 3 * ($2 < 100))" "$1.json"
}

# ended NAME CAUSE IMAGE: most user stacks end for that cause in an image of that name, and the account is whole.
ended() {
	recorded "mostly(sum(e['count'] for e in j['stacks']['ends'] if e['cause'] == '$2' and
		e['image'].split('/')[-1] == '$3'), of=j['stacks']['user']) and accounted" "$1.json"
}

# said NAME REGEX: whether the summary has such a line.
said() {
	grep -qE "^profiltool: $2$" "$1.err" && return
	cat "$1.err"
	return 1
}

sets="set(;outer(;middle)?)?(;inner)?"

# --- A program ---

record_chains set set --user
check "each stack of a program is one of its call chains" chains_are set all "$from_start;$sets"
for chain in set set,outer set,outer,middle; do
	check "the call chain $chain,inner is found" chains_are set some "$from_start;${chain//,/;};inner"
done
check "all stacks of a program reach its start" reach_start set 100
check "the summary reports that all stacks reach the start" said set "100.00 % of the user stacks reach the program's start"
check "the JSON has the keys of stacks" json \
	'sorted(j["stacks"]) == ["complete", "ends", "limit", "method", "truncated", "user"]' set.json

# at NAME: what a function of the stripped program is called by.
at() {
	nm chains | sed -n "s/^0*\([0-9a-f]*\) [tT] $1$/stripped\\\\+0x\1/p"
}
program=$work/stripped record_chains stripped set --user
main=${from_start/_start;/$(at _start);}
main=${main%main}$(at main)
for chain in set set,outer set,outer,middle; do
	functions=
	for name in ${chain//,/ } inner; do
		functions+=";$(at "$name")"
	done
	check "the call chain $chain,inner of a stripped program is found" chains_are stripped some "$main$functions"
done
check "all stacks of a stripped program reach its start" reach_start stripped 100

clock=(-e tick)
seconds=1 record_chains tick set --user
check "with -e tick each stack is one of the program's call chains" chains_are tick all "$from_start;$sets"
check "with -e tick all stacks reach the start" reach_start tick 100

seconds=1 record_chains ktick kernel --kernel
check "with -e tick, in a system call, the kernel's frames are on top of whole stacks" chains_are ktick most \
	"$from_start;kernel;(ask;)?entry_SYSCALL_64_after_hwframe;do_syscall_64(;.*)?"
clock=(-F 1999)
record_chains kernel kernel --kernel
check "in a system call the kernel's frames are on top of whole stacks" chains_are kernel most \
	"$from_start;kernel;(ask;)?entry_SYSCALL_64_after_hwframe;do_syscall_64(;.*)?"
check "in a system call all stacks reach the start" reach_start kernel 100
record_chains thread thread --user
# main may not wait for the thread yet.
check "each stack of a thread goes from its start to the leaf" chains_are thread all \
	"$from_thread;threaded(;inner)?|$from_start;thread(;.*)?"
check "a stack of a thread is most of them" chains_are thread most "$from_thread;threaded(;inner)?"
check "all stacks of a thread reach its start" reach_start thread 100

# --- What comes while recording ---

# A command, its child by fork, and what that executes. Meanwhile the loader works, and the kernel.
record family -d 600 "$work/chains" child 300
check "a command has its own call chain" chains_are family some "$from_start;parent;inner(;.*)?"
check "its child, which calls exec, has the call chains of that program" chains_are family some \
	"$from_start;set;(outer;(middle;)?)?inner(;.*)?"
check "the stacks of a command and of its child reach the start" reach_start family 99

cat >forks.c <<'EOF'
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone)) void
FUNCTION inner(void) { for (volatile int i = 0; i < 20000; i++); }
static void end(int signal) { wait(NULL); _exit(signal != SIGPROF); }
FUNCTION generation(int more)
{
	const struct itimerval cpu = { .it_value = { 0, 150000 } };
	if (more && fork() == 0)
		generation(more - 1);
	setitimer(ITIMER_PROF, &cpu, 0);
	for (;;)
		inner();
}
int main(void) { alarm(100); signal(SIGPROF, end); generation(3); }
EOF
gcc "${flags[@]}" forks.c -o forks 2>/dev/null
record forks -d 600 "$work/forks"
for depth in 1 2 3 4; do
	check "a process forked $((depth - 1)) times, without exec, has its call chain" chains_are forks some \
		"$from_start;(generation;){$depth}inner(;.*)?"
done
check "the stacks of forked processes reach the start" reach_start forks 99

# While the recorder is stopped, nobody publishes what the new program has mapped: each tick sends a copy.
cat >large.c <<'EOF'
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone)) void
FUNCTION inner(void) { for (volatile int i = 0; i < 20000; i++); }
static void end(int signal) { _exit(signal != SIGPROF); }
FUNCTION large(void)
{
	char frame[48 << 10];
	explicit_bzero(frame, sizeof(frame));
	for (;;)
		inner();
}
int main(void)
{
	const struct itimerval cpu = { .it_value = { 0, 300000 } };
	alarm(100);
	signal(SIGPROF, end);
	setitimer(ITIMER_PROF, &cpu, 0);
	large();
}
EOF
gcc "${flags[@]}" -D_GNU_SOURCE large.c -o large 2>/dev/null
# shellcheck disable=SC2016 # the shell expands $0
begin large sh -c 'echo ready; read -r line; exec "$0"' "$work/large"
share_buffers
record_begin large record -g -F 499 --json -o large.pb.gz -p "$pid"
kill -STOP "$recorder"
send_line large go
wait "$pid"
kill -CONT "$recorder"
wait "$recorder"
free_buffers
"$profiltool" convert large.pb.gz large.folded 2>/dev/null
check "a new program with 48 KiB on the stack has its call chain" chains_are large most \
	"$from_start;large;inner(;.*)?"
check "the stacks of a new program with 48 KiB on the stack reach the start" reach_start large 95

gcc "${flags[@]}" -fPIC -shared "$top/tests/progs/shares.c" -o libshares.so
begin plugin "$progs/plugin" 1
record_begin plugin record -g -F 1999 --json -o plugin.pb.gz -p "$pid"
send_line plugin "$work/libshares.so"
wait "$recorder"
"$profiltool" convert plugin.pb.gz plugin.folded 2>/dev/null
check "most stacks go through a library that is loaded meanwhile" chains_are plugin most \
	"($from_start|$from_thread);burn;burn_cpu(;.*)?"
check "stacks through a library that is loaded meanwhile reach the start" reach_start plugin 98

# While the recorder is stopped, nobody publishes what was loaded, and each thread waits there once.
gcc "${flags[@]}" -fPIC -shared -x c - -o libwaits.so <<'EOF'
#include <semaphore.h>
void *wait_here(void *semaphore) { for (;;) sem_wait(semaphore); }
EOF
cat >loads.c <<'EOF'
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	sem_t semaphore;
	pthread_t thread;
	sem_init(&semaphore, 0, 0);
	alarm(100);
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, dlsym(dlopen("./libwaits.so", RTLD_NOW), "wait_here"), &semaphore);
	for (;;)
		if (getchar() == 'e')
			_exit(0);
}
EOF
gcc "${flags[@]}" loads.c -o loads 2>/dev/null
all_wait() {
	[ "$(grep -l futex "/proc/$pid"/task/*/wchan | wc -l)" = 4 ]
}
whole_waits() {
	"$profiltool" dump --json loads.pb.gz >loads.json && python3 -S -c '
import json
stacks = [(s["labels"]["tid"], [f for names in s["functions"] for f in names])
	for s in json.load(open("loads.json"))["stacks"] if s.get("functions")]
waits = {tid: f for tid, f in stacks if "[blocked: condition]" in f or "[idle: condition]" in f}
print(waits)
assert len(waits) == 4 and all("wait_here" in f and "start_thread" in f for f in waits.values())'
}
begin loads ./loads
share_buffers
record_begin loads record --wall --max-overhead 0 -q -o loads.pb.gz -p "$pid"
kill -STOP "$recorder"
send_line loads go
wait_for all_wait
kill -CONT "$recorder"
send_line loads end
wait "$recorder"
free_buffers
check "the stacks of threads that wait once, in a library that is loaded meanwhile, are whole" whole_waits

# The first thread is gone when the recorder comes to read what was loaded.
begin left "$progs/plugin" 1 leave
share_buffers
record_begin left record -g -F 1999 --json -o left.pb.gz -p "$pid"
kill -STOP "$recorder"
send_line left "$work/libshares.so"
wait_for grep -q '^State:.Z' "/proc/$pid/status"
kill -CONT "$recorder"
send_line left go
wait "$recorder"
free_buffers
check "stacks through a library reach the start if the thread that loaded it has ended" \
	reach_start left 98

# Its call frame information takes a while to read.
gcc "${flags[@]}" -fPIC -shared "$top/tests/progs/shares.c" -x assembler - -o libslow.so <<'EOF'
.text
.rept 200000
.cfi_startproc
push %rax
.cfi_adjust_cfa_offset 8
pop %rax
.cfi_adjust_cfa_offset -8
ret
.cfi_endproc
.endr
.section .note.GNU-stack
EOF
begin slow "$progs/plugin" 3
record_begin slow record -g -F 1999 --json -o slow.pb.gz -p "$pid"
send_line slow "$work/libslow.so"
wait "$recorder"
"$profiltool" convert slow.pb.gz slow.folded 2>/dev/null
check "most stacks go through a library that takes a while to read" chains_are slow most \
	"($from_start|$from_thread);burn;burn_cpu(;.*)?"
check "stacks through a library that takes a while to read reach the start" reach_start slow 98

# In the dynamic linker, and with a new mapping of code each time.
cat >loader.c <<'EOF'
#include <dlfcn.h>
#include <unistd.h>
int main(void)
{
	alarm(100);
	write(2, "ready\n", 6);
	for (;;)
		dlclose(dlopen("libm.so.6", RTLD_NOW));
}
EOF
gcc "${flags[@]}" loader.c -o loader 2>/dev/null
start_ready ./loader
record loader -p "$pid"
stop "$pid"
check "most stacks are whole while a library is loaded and closed all the time" chains_are loader most \
	"$from_start(;.*)?"
check "stacks reach the start while a library is loaded and closed all the time" reach_start loader 97

cat >short.c <<'EOF'
#define FUNCTION __attribute__((noinline, noclone)) void
FUNCTION inner(void) { for (volatile int i = 0; i < 200000; i++); }
FUNCTION middle(void) { inner(); inner(); __asm__ volatile(""); }
FUNCTION outer(void) { middle(); middle(); __asm__ volatile(""); }
int main(void) { outer(); return 0; }
EOF
gcc "${flags[@]}" short.c -o short
# shellcheck disable=SC2016 # for that shell
record short -F 4999 -d 60 sh -c 'i=0; while [ $i -lt 200 ]; do ./short; i=$((i + 1)); done'
check "the stacks of 200 short programs reach the start" reach_start short 95 500
check "the account of 200 short programs adds up" recorded whole short.json
grep ';inner' short.folded >inner.folded
check "200 short programs have their call chain" chains_are inner most "$from_start;outer;middle;inner(;.*)?"

# --- What is not known, and is said ---

# blind() leaves nothing in the frame pointer that would look like one, nor its return address on top of
# the stack, and its instructions do not say where its stack pointer comes from.
cat >blind.c <<'EOF'
#ifndef BP
#define BP "$1"
#endif
#define FUNCTION __attribute__((noinline, noclone)) void
FUNCTION blind(void)
{
	for (;;)
		__asm__ volatile("mov %%rsp, %%rcx\n\tmov %%rcx, %%rsp\n\tpush %%rbp\n\tpush $0\n\tpush $0\n\tmov " BP ", %%rbp\n\t"
				 "mov $20000, %%ecx\n1:\tdec %%ecx\n\tjnz 1b\n\t"
				 "add $16, %%rsp\n\tpop %%rbp" ::: "rcx", "memory");
}
EOF
cat >framed.c <<'EOF'
#define FUNCTION __attribute__((noinline, noclone)) void
FUNCTION framed_leaf(void) { for (volatile int i = 0; i < 200000; i++); __asm__ volatile(""); }
FUNCTION framed(void (*back)(void)) { for (;;) { framed_leaf(); back(); } }
EOF
cat >calls.c <<'EOF'
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone)) void
void blind(void);
void framed(void (*back)(void));
FUNCTION back(void) { for (volatile int i = 0; i < 200000; i++); }
FUNCTION call_blind(void) { blind(); __asm__ volatile(""); }
FUNCTION call_framed(void) { framed(back); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	(void)argv;
	alarm(100);
	write(1, "ready\n", 6);
	argc > 1 ? call_framed() : call_blind();
}
EOF
no_tables=(-fno-asynchronous-unwind-tables -fno-unwind-tables)
gcc "${flags[@]}" "${no_tables[@]}" -c blind.c
gcc "${flags[@]}" "${no_tables[@]}" -DBP='"%%rsp"' -c blind.c -o zeros.o
gcc "${flags[@]}" "${no_tables[@]}" -fno-omit-frame-pointer -c framed.c
gcc "${flags[@]}" calls.c blind.o framed.o -o calls 2>/dev/null
gcc "${flags[@]}" calls.c zeros.o framed.o -o calls_zeros 2>/dev/null
# A library without any call frame information: the compiler's own files would bring some.
gcc "${flags[@]}" "${no_tables[@]}" -fPIC -shared -nostdlib blind.c -o libblind.so
gcc "${flags[@]}" calls.c framed.o -L. -lblind -Wl,-rpath,"$work" -o calls_library 2>/dev/null

start_ready ./calls
record gap --user -p "$pid"
stop "$pid"
check "a stack ends at code without call frame information" chains_are gap most "blind"
check "stacks that end at code without call frame information are counted with its image" ended gap gap calls
check "the summary reports code without call frame information" said gap \
	"  [0-9.]+ %: code without call frame information in calls: C code needs -fasynchronous.*"
start_ready ./calls_zeros
record zeros --user -p "$pid"
stop "$pid"
check "zeros on the stack of such code are not taken for the outermost frame" ended zeros gap calls_zeros
check "and how many reach the start" said gap "[01]\.[0-9]+ % of the user stacks reach the program's start"

start_ready ./calls_library
record library --user -p "$pid"
stop "$pid"
check "stacks that end at an image without call frame information are counted with it" ended library no_frame_information libblind.so
check "the summary reports such an image, and what to do" said library \
	"  [0-9.]+ %: no call frame information in libblind.so: build it with -fasynchronous.*"
check "the JSON has the hint for such an image" json \
	'"-fasynchronous-unwind-tables" in j["stacks"]["ends"][0]["hint"]' library.json

start_ready ./calls framed
record framed --user -p "$pid"
stop "$pid"
check "by the frame pointer stacks go on through code without call frame information" chains_are framed all \
	"$from_start;call_framed;(framed;(framed_leaf|back)|framed|framed_leaf|back)"
check "by the frame pointer stacks are whole on both sides of such code" chains_are framed some \
	"$from_start;call_framed;framed;back"
check "by the frame pointer stacks through such code reach the start" reach_start framed 99

# blind() is 64-bit assembly.
if runs_32_bit "32-bit programs"; then
	gcc -m32 "${flags[@]}" calls.c framed.c -Dblind=back -o bits32
	start_ready ./bits32 framed
	record bits32 --user -p "$pid"
	stop "$pid"
	check "32-bit programs: counted" recorded \
		'sum(e["count"] for e in j["stacks"]["ends"] if e["cause"] == "32_bit") == j["stacks"]["user"]' \
		bits32.json
	check "32-bit programs: said" said bits32 \
		"  100.00 %: 32-bit processes are walked by frame pointers.*: build them with -fno-omit.*"
fi

# --- A signal's handler that returns to code that nothing describes, as musl's does ---

cat >restorer.c <<'EOF'
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone)) static
static volatile unsigned long sum;
void restorer(void);
__asm__(".globl restorer\n.type restorer, @function\n"
	"nop\nrestorer: mov $15, %rax\nsyscall\n.size restorer, . - restorer");
FUNCTION void in_handler(void)
{
	for (int i = 0; i < 10000000; i++)
		sum += i;
	__asm__ volatile("");
}
static void handler(int number)
{
	/* From the end of this one on: it takes most of the time however fast the machine is. */
	const struct itimerval next = { .it_value = { 0, 1000 } };

	(void)number;
	in_handler();
	setitimer(ITIMER_REAL, &next, NULL);
}
FUNCTION void interrupted(void) { for (;;) sum++; }
int main(void)
{
	const struct itimerval first = { .it_value = { 0, 1000 } };
	const struct { /* of the kernel */
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action = { handler, 0x04000000 /* SA_RESTORER */, restorer, 0 };

	syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, 8);
	setitimer(ITIMER_REAL, &first, NULL);
	write(1, "ready\n", 6);
	interrupted();
}
EOF
gcc "${flags[@]}" restorer.c -o restorer 2>/dev/null
start_ready ./restorer
record restorer --user -p "$pid"
stop "$pid"
check "a signal handler of musl's kind has samples" recorded 'ran("in_handler")' restorer.json
check "a signal handler of musl's kind is on top of who was interrupted" recorded \
	'total("interrupted") >= total("in_handler") and mostly("interrupted")' restorer.json
check "through a signal handler of musl's kind the stacks reach the start" reach_start restorer 99

# Go's runtime and C run on the threads' own stacks. Callers are on those of goroutines.
cat >switches.go <<'EOF'
package main

/*
void goes_back(int n);
static __attribute__((noinline)) void in_c(int n) { for (volatile int i = 0; i < n; i++); }
static __attribute__((noinline)) void calls_go(int n) { goes_back(n); __asm__ volatile(""); }
*/
import "C"
import "time"

type tree struct{ left, right *tree }

//go:noinline
func plant(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{plant(depth - 1), plant(depth - 1)}
}

//go:noinline
func deepen(n int) int {
	var room [64]int
	room[n] = n
	if n == 0 {
		return 0
	}
	return deepen(n-1) + room[n]
}

//go:noinline
func clocks() (sum time.Duration) {
	start := time.Now()
	for i := 0; i < 1000; i++ {
		sum += time.Since(start)
	}
	return
}

var sum uint64

// A leaf without a frame
//
//go:noinline
func count(n uint64) {
	for i := uint64(0); i < n; i++ {
		sum += i
	}
}

//export goes_back
func goes_back(n C.int) { C.in_c(n) }

func work(done chan int) {
	C.in_c(300000)
	C.calls_go(300000)
	clocks()
	count(300000)
	plant(11)
	done <- deepen(50)
}

func main() {
	println("ready")
	done := make(chan int)
	for {
		go work(done)
		<-done
	}
}
EOF
if command -v go >/dev/null; then
	HOME=$work GO111MODULE=off go build -o switches switches.go
	strip -o bare switches
	for go in switches bare; do
		start_ready "./$go"
		seconds=1 record $go -p "$pid"
		stop "$pid"
		check "Go, $go: the stacks of a program that calls C, which calls Go, reach the start" \
			reach_start $go 99
		of_go="runtime.goexit(.abi0)?;main.main.(func1|gowrap1);main.work"
		of_c="runtime.cgocall;runtime.asmcgocall(.abi0)?;([^;]*_in_c;)?(in_c|bare.0x[0-9a-f]*)(;.*)?"
		check "Go, $go: the stacks of C that Go has called go from the goroutine's start" \
			chains_are $go some "$of_go;main._Cfunc_in_c(.abi0)?;$of_c"
		check "Go, $go: the stacks of C go through Go that C has called" chains_are $go some \
			"$of_go;main._Cfunc_calls_go(.abi0)?;runtime.cgocall;.*;main.goes_back;main._Cfunc_in_c(.abi0)?;$of_c"
		check "Go, $go: a leaf without a frame has its caller" chains_are $go some \
			"$of_go;main.count(;.*)?"
		check "Go, $go: no stack of such a leaf is another" chains_are $go none \
			"(?!$of_go;main.count).*;main.count(;.*)?"
		check "Go, $go: stacks go through functions of Go's runtime on another stack" \
			grep -qE "^runtime.goexit[^;]*;main.main.(func1|gowrap1);.*;runtime.systemstack[^;]*;" \
			$go.folded
	done
else
	skip "Go programs" "there is no go"
fi

python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
start_ready "$python" -uc 'print("ready")
while True: sorted(range(1000), key=lambda x: -x)'
record python -p "$pid"
stop "$pid"
check "the stacks of Python reach the start" reach_start python 99 100
check "the stacks of Python that reach the start have its function" recorded 'max(r["total"] for r in j["functions"]
	if r["name"] in ("__libc_start_main", "__libc_start_main_impl")) >= j["stacks"]["complete"]' python.json

# --- A server under load ---

if type redis-benchmark redis-check-rdb >/dev/null 2>&1; then
	ln -s "$(command -v redis-check-rdb)" redis-server # what Debian's redis-server is
	start ./redis-server --port 0 --unixsocket "$work/redis" --save "" --dir "$work"
	server=$pid
	check "redis: there is a server" wait_for redis-cli -s "$work/redis" ping
	start redis-benchmark -s "$work/redis" -q -n 100000000 -c 10 -t get,lrange_100,zadd
	is_asked() {
		redis-cli -s "$work/redis" info stats | grep -qE "instantaneous_ops_per_sec:[1-9]"
	}
	check "redis: it is asked" wait_for is_asked
	record redis -p "$server"
	stop "$pid"
	stop "$server"
	check "the stacks of redis reach the start" reach_start redis 99
	check "most stacks of redis go through its event loop" recorded 'mostly("aeMain")' redis.json
else
	skip "redis" "redis-tools is not installed"
fi

# --- Said by the file, too, and by other commands ---

# said_again NAME FILE...: whether the file's report says of stacks what recording has said.
said_again() {
	diff <(grep -A 9 "user stacks reach" "$1.err" | grep -v "without symbols") \
		<("$profiltool" report "${@:2}" 2>&1 >/dev/null | grep -A 9 "user stacks reach" |
			grep -v "without symbols")
}
for name in set gap library; do
	"$profiltool" report --json $name.pb.gz >back.json 2>/dev/null
	check "$name: report --json has the same of stacks" json \
		"j['stacks'] == __import__('json').load(open('$name.json'))['stacks']" back.json
done
check "report says the same, with causes" said_again gap gap.pb.gz
"$profiltool" merge -o two.pb.gz set.pb.gz gap.pb.gz 2>/dev/null
"$profiltool" report --json two.pb.gz >two.json 2>/dev/null
check "merge: the sums" python3 -c '
import json
a, b, two = (json.load(open(name + ".json"))["stacks"] for name in ("set", "gap", "two"))
assert two["method"] == "cfi" and two["ends"] == b["ends"], two
for key in "user", "complete", "truncated":
	assert two[key] == a[key] + b[key], key'
"$profiltool" report two.pb.gz >/dev/null 2>two.err
check "merge: said of both" said two "[1-9][0-9.]* % of the user stacks reach the program's start"
record_chains fp set --user --call-graph=fp
"$profiltool" merge -o mixed.pb.gz set.pb.gz fp.pb.gz 2>/dev/null
"$profiltool" report --json mixed.pb.gz >mixed.json 2>mixed.err
check "merge with stacks by frame pointers: nobody knows" json \
	'not {"method", "complete", "ends"} & set(j["stacks"]) and j["stacks"]["user"] > 0' mixed.json
check "merge with stacks by frame pointers: nothing said" [ "$(grep -c "user stacks" mixed.err)" = 0 ]

"$profiltool" flamegraph two.pb.gz -o two.html
check "flamegraph: a note" grep -qE "[1-9][0-9.]* % of the user stacks reach the program(&#39;|')s start" two.html
"$profiltool" flamegraph set.pb.gz -o set.html
check "flamegraph: no note where all do" [ "$(grep -c "user stacks" set.html)" = 0 ]

start_ready ./chains set
"$profiltool" top -g -p "$pid" -F 999 -d 1 --plain --tables 1 >top.out 2>top.err
check "top -g: callers have totals" grep -qE "^ +0 +0\.00 +100\.00 .* _start +chains$" top.out
"$profiltool" top --call-graph=cfi -p "$pid" -F 999 -d 1 --json --tables 1 >top.json 2>top.err
from_the_start() {
	json '[r["total_percent"] for r in j["rows"] if r["name"] == "_start"] == [100]' top.json && return
	cat top.json top.err
	return 1
}
check "top --json: from the start on" from_the_start
stop "$pid"

# Kernel threads have no mappings. Samples may be lost, on a busy machine.
start "$progs/shares" 1 3
all_processes() {
	local code
	code=$(status "$profiltool" record -a -g -F 499 -d 1 -q -o "$work/all.pb.gz")
	[ "$code" = 0 ] || [ "$code" = 3 ] || { echo "exit status $code"; cat "$work/err"; return 1; }
}
check "all processes, among them those without mappings" all_processes
finish
