// SPDX-License-Identifier: GPL-2.0-only
/*
 * seems_php: seems to be PHP 8.2 by its symbols, and runs a script whose frames are an attack: a
 * thread writes other ones all the time. Prints "ready" and runs until it is killed. Linked with
 * -rdynamic.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/script/language.h"
#include "script/php_layouts.h"

#define FRAMES 64

extern const char php_header[];
extern uint64_t executor_globals[225];
extern void *zend_ce_generator;
uint64_t execute_ex(int depth);

const char php_header[] = "X-Powered-By: PHP/8.2.1";
uint64_t executor_globals[225];
void *zend_ce_generator;

static struct php_frame frames[FRAMES];
static uint64_t functions[FRAMES][32], generators[FRAMES][32], strings[FRAMES][64];
static uint64_t generator_class = 1;
static char *edge; /* of memory that can be read */

static uint64_t any(unsigned int *seed)
{
	return (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed) << 12 ^ rand_r(seed);
}

/* An address: of one of these, almost one of them, at the edge, or anywhere. */
static uint64_t any_address(unsigned int *seed, const void *table, size_t size)
{
	uint64_t right = (uintptr_t)table + rand_r(seed) % FRAMES * size;

	switch (rand_r(seed) % 16) {
	case 0:
		return 0;
	case 1:
		return right + rand_r(seed) % 64;
	case 2:
		return (uintptr_t)edge - rand_r(seed) % 300;
	case 3:
		return any(seed);
	case 4:
		return UINT64_MAX - rand_r(seed) % 64;
	default:
		return right;
	}
}

static void *rewrite(void *unused)
{
	static const unsigned char types[] = { PHP_USER_FUNCTION, PHP_USER_FUNCTION, PHP_EVAL_CODE,
					       PHP_INTERNAL_FUNCTION };
	const struct php_layout *l = &php_layouts[1].php;
	unsigned int seed = 1;

	for (;; seed++) {
		struct php_frame *frame = &frames[rand_r(&seed) % FRAMES];
		uint64_t *generator = generators[rand_r(&seed) % FRAMES];
		uint64_t *string = strings[rand_r(&seed) % FRAMES];
		unsigned char *function = (void *)functions[rand_r(&seed) % FRAMES];
		struct php_function head = { .type = types[rand_r(&seed) % 4] };
		uint64_t line = any(&seed), text;

		if (rand_r(&seed) % 64 == 0)
			head.type = rand_r(&seed);
		head.name = any_address(&seed, strings, sizeof(*strings));
		head.scope = rand_r(&seed) % 2 ? any_address(&seed, strings, sizeof(*strings)) : 0;
		memcpy(function, &head, sizeof(head));
		text = any_address(&seed, strings, sizeof(*strings));
		memcpy(function + l->file, &text, sizeof(text));
		memcpy(function + l->file + 8, &line, sizeof(line));
		text = any_address(&seed, strings, sizeof(*strings));
		memcpy(function + l->opcodes, &text, sizeof(text));
		for (int i = 0; i < 64; i++)
			string[i] = any(&seed);
		string[PHP_CLASS_NAME / 8] = any_address(&seed, strings, sizeof(*strings));
		string[PHP_STRING_HASH / 8 + 1] = any(&seed) >> (rand_r(&seed) % 4 ? 55 : 0);
		generator[PHP_OBJECT_CLASS / 8] = generator_class;
		generator[PHP_GENERATOR_FRAME / 8] = any_address(&seed, frames, sizeof(*frames));
		generator[PHP_GENERATOR_PARENT / 8] =
			any_address(&seed, generators, sizeof(*generators));
		frame->opline = any_address(&seed, strings, sizeof(*strings));
		frame->function = any_address(&seed, functions, sizeof(*functions));
		frame->object = any_address(&seed, generators, sizeof(*generators));
		frame->call_info = PHP_OBJECT | (rand_r(&seed) % 8 ? 0 : PHP_CALL_TOP);
		frame->previous = any_address(&seed, frames, sizeof(*frames));
		executor_globals[l->current / 8] = any_address(&seed, frames, sizeof(*frames));
	}
	return unused;
}

uint64_t execute_ex(int depth)
{
	volatile uint64_t n = 1;

	if (depth)
		return execute_ex(depth - 1) + 1;
	while (n)
		n += 2;
	return n;
}

int main(void)
{
	long page = sysconf(_SC_PAGESIZE);
	pthread_t thread;

	zend_ce_generator = (void *)generator_class;
	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edge == MAP_FAILED || munmap(edge + page, page))
		return 1;
	memset(edge, 2, page);
	edge += page;
	if (pthread_create(&thread, NULL, rewrite, NULL))
		return 1;
	printf("ready %c\n", php_header[0]);
	fflush(stdout);
	return execute_ex(5) == 1;
}
