#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Code without call frame information, and symbols without a size: musl's C library and assembly. Callers and the ends of
# functions are found in the instructions.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

cd "$work" || exit
if [ "$(uname -m)" != x86_64 ]; then
	skip "code without call frame information" "only x86-64's is read"
	finish
fi
seconds=0.3

# all_reach_start NAME: all of the user stacks do, but one or two in a page fault of the stack itself.
all_reach_start() {
	recorded "j['stacks']['user'] >= 20 and accounted and j['stacks']['complete'] >= j['stacks']['user'] - 2" "$1.json"
}

# --- musl ---

cat >calls.c <<'EOF'
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char room[65536];
__attribute__((noinline)) void writes(int fd) { for (int i = 0; i < 100; i++) write(fd, room, 512); }
__attribute__((noinline)) void asks(void) { for (int i = 0; i < 100; i++) getppid(); }
__attribute__((noinline)) void fills(void) { for (int i = 0; i < 20; i++) memset(room, i, sizeof(room)); }
static int compare(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
__attribute__((noinline)) void sorts(void)
{
	for (int i = 0; i < 200; i++)
		room[i] = i * 7919;
	qsort(room, 200, 1, compare);
	__asm__ volatile(""); /* no jump to it in place of a call */
}

static void *forever(void *fd)
{
	for (;;) {
		writes((int)(long)fd);
		asks();
		fills();
		sorts();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int fd = open("/dev/null", O_WRONLY);

	(void)argv;
	if (argc > 1)
		pthread_create(&thread, NULL, forever, (void *)(long)fd);
	write(2, "ready\n", 6);
	if (argc > 1)
		pause();
	forever((void *)(long)fd);
}
EOF
if command -v musl-gcc >/dev/null; then
	check "musl: built" musl-gcc -O2 calls.c -o dynamic
	check "musl: built, static" musl-gcc -O2 -static calls.c -o static
	check "musl: stripped" strip -o stripped static
	for program in dynamic static stripped; do
		start_ready "./$program"
		record $program --user -p "$pid"
		stop "$pid"
		check "musl, $program: stacks reach the start" all_reach_start $program
	done
	for program in dynamic static; do
		check "musl, $program: a system call has its callers" chains_are $program some \
			"_start;[^;]*;main;forever;writes;write;.*"
		check "musl, $program: no system call is memset's" chains_are $program none ".*;writes;(.*;)?memset(;.*)?"
		check "musl, $program: memset has its caller" chains_are $program some "_start;[^;]*;main;forever;fills;memset"
		check "musl, $program: all of it" chains_are $program none "(?!_start;[^;]*;main;forever;fills).*memset.*"
		check "musl, $program: callbacks have the callers of the C library" chains_are $program some \
			"_start;[^;]*;main;forever;sorts;.*;compare"
		check "musl, $program: no name is doubtful" exits 1 grep -F "+?" $program.folded
	done
	check "musl, static, stripped: a row for each function" recorded "len([f for f in j['functions'] if
		f['name'].startswith('stripped+')]) < 60 and total('stripped+0x$(nm static | sed -n 's/^0*\([0-9a-f]*\) T fills$/\1/p')')" \
		stripped.json
	start_ready ./static thread
	record thread --user -p "$pid"
	stop "$pid"
	check "musl: stacks of a thread reach its start" all_reach_start thread
	check "musl: a thread's calls" chains_are thread some "([^;]*;){1,2}forever;writes;write;.*"
else
	skip "musl" "no musl-gcc"
fi

# --- Assembly: symbols without a size, and functions without a symbol between them ---

cat >library.S <<'EOF'
	.text
	.globl first, second, third
	.type first, @function
	.type second, @function
	.type third, @function
	.balign 16
first:	/* calls what follows the next symbol */
	push	%rbx
	mov	%rdi, %rbx
	sub	$16, %rsp
1:	mov	$100000, %edi
	call	hidden
	dec	%rbx
	jnz	1b
	add	$16, %rsp
	pop	%rbx
	ret
second:	/* no padding behind it */
	mov	%rdi, %rax
1:	dec	%rax
	jnz	1b
	ret
hidden:
	push	%rbp
	mov	%rdi, %rbp
1:	dec	%rbp
	jnz	1b
	pop	%rbp
	ret
third:	/* a table of cases, in a frame */
	push	%r12
	sub	$64, %rsp
	mov	%rdi, %r12
1:	mov	%r12, %rax
	and	$3, %eax
	lea	table(%rip), %rdx
	movslq	(%rdx,%rax,4), %rax
	add	%rdx, %rax
	jmp	*%rax
.Lone:
	mov	$1000, %eax
	jmp	2f
.Ltwo:
	mov	$3000, %eax
	jmp	2f
.Lthree:
	mov	$2000, %eax
2:	dec	%eax
	jnz	2b
	dec	%r12
	jnz	1b
	add	$64, %rsp
	pop	%r12
	ret
	.section .rodata
	.balign 4
table:
	.long .Lone - table, .Ltwo - table, .Lthree - table, .Lone - table
	.section .note.GNU-stack, "", @progbits
EOF
cat >caller.c <<'EOF'
#include <unistd.h>
void first(unsigned long n), second(unsigned long n), third(unsigned long n);
int main(void)
{
	write(2, "ready\n", 6);
	for (;;) {
		first(3);
		second(300000);
		third(300);
	}
}
EOF
check "assembly: a library" gcc -shared -nostdlib -Wl,-soname,libodd.so library.S -o libodd.so
check "assembly: its program" gcc -O2 caller.c -L. -lodd -Wl,-rpath,"$work" -o caller
hidden=$(nm libodd.so | sed -n 's/^0*\([0-9a-f]*\) t hidden$/\1/p')
strip libodd.so
start_ready ./caller
record odd --user -p "$pid"
stop "$pid"
check "assembly: stacks reach the start" all_reach_start odd
check "assembly: a function behind a symbol without a size is not that symbol's" chains_are odd some \
	".*;main;first;libodd.so.0x$hidden"
check "assembly: the symbol has its own samples" chains_are odd some ".*;main;second"
check "assembly: and no others" chains_are odd none ".*;first;second"
check "assembly: cases of a table are their function's" chains_are odd some ".*;main;third"
check "assembly: all functions are known" chains_are odd none ".*;libodd.so.0x(?!$hidden).*"

finish
