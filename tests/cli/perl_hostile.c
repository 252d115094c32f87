// SPDX-License-Identifier: GPL-2.0-only
/*
 * perl_hostile KIND: seems to be Perl 5.36 to who looks at its symbols and memory. It prints
 * "ready", waits for a line, and works for a second in what seems to be Perl_runops_standard().
 * Built by perl.sh with -rdynamic. KINDs:
 *
 *   cycle    a stack of contexts that is before itself
 *   deep     two thousand million contexts
 *   names    a function whose names have no end and control characters
 *   wild     memory that points into itself anywhere, and changes all the time
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bpf/script/perl_layout.h"

pthread_key_t PL_thr_key;
const unsigned int PL_opargs[414] = { 1 };
const char PL_bincompat_options[] = " MULTIPLICITY USE_ITHREADS";

static _Alignas(4096) unsigned char memory[1 << 20];

void perl_run(void);
void Perl_call_sv(void);
void Perl_eval_sv(void);
void Perl_amagic_call(void);
int Perl_runops_standard(void);

__attribute__((noinline)) int Perl_runops_standard(void)
{
	struct timespec now;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec < 1);
	return 0;
}

__attribute__((noinline)) void perl_run(void)
{
	Perl_runops_standard();
	asm volatile("");
}

__attribute__((noinline)) void Perl_call_sv(void)
{
	perl_run();
	asm volatile("");
}

void Perl_eval_sv(void)
{
}

void Perl_amagic_call(void)
{
}

static void put(void *to, uint64_t value)
{
	memcpy(to, &value, sizeof(value));
}

static void *change(void *unused)
{
	uint64_t *words = (uint64_t *)memory, random = 88172645463325252;

	(void)unused;
	for (;;) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		words[random % (sizeof(memory) / 8)] =
			random & 1 << 20 ? (uintptr_t)memory + (random >> 24) % sizeof(memory)
					 : random >> 24 & 0x4f9;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct perl_stackinfo *stack = (struct perl_stackinfo *)(memory + 8192);
	struct perl_context *contexts = (struct perl_context *)(memory + 65536);
	const size_t count = (sizeof(memory) - 65536) / sizeof(*contexts);
	struct perl_sv *function = (struct perl_sv *)(memory + 12288);
	struct perl_cop *statement = (struct perl_cop *)(memory + 16384);
	struct perl_cv *body = (struct perl_cv *)(memory + 20480 + PERL_CV_BODY);
	/* Its last byte is the last one of the mapping. */
	unsigned char *name = memory + sizeof(memory) - 40;
	const char *kind = argc > 1 ? argv[1] : "";
	pthread_t thread;

	pthread_key_create(&PL_thr_key, NULL);
	pthread_setspecific(PL_thr_key, memory);
	put(memory + PERL_INTERPRETER_OP, (uintptr_t)statement);
	put(memory + PERL_INTERPRETER_COP, (uintptr_t)statement);
	put(memory + PERL_INTERPRETER_STACK, (uintptr_t)stack);
	stack->prev = (uintptr_t)stack;
	stack->last = -1;
	stack->contexts = (uintptr_t)contexts;
	function->any = (uintptr_t)body - PERL_CV_BODY;
	function->flags = PERL_SV_CV;
	body->start = (uintptr_t)statement;
	body->gv = (uintptr_t)name;
	body->flags = PERL_CV_NAMED | PERL_CV_LEXICAL;
	body->file = statement->file = (uintptr_t)memory + 24576;
	statement->type = 195;
	statement->line = 7;
	memset(memory + 24576, '\n', 4096);
	for (size_t i = 0; i < count - 1; i++)
		contexts[i] = (struct perl_context){ .type = PERL_CONTEXT_SUB,
						     .retop = 1,
						     .cv = (uintptr_t)function };
	if (strcmp(kind, "deep") == 0)
		stack->last = INT32_MAX;
	if (strcmp(kind, "names") == 0) {
		stack->last = 20;
		memset(name, 0x1b, 40);
	}
	if (strcmp(kind, "wild") == 0 && pthread_create(&thread, NULL, change, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	perl_run();
	return 0;
}
