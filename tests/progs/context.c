// SPDX-License-Identifier: GPL-2.0-only
/*
 * context KIND SECONDS: says in variables for whom it works, and burns CPU for each in a function
 * of its own, so that a sample's function says what its labels must be. Prints "ready", and begins
 * after a line on standard input. KIND:
 *
 *   queries  three kinds of query in turn, whose texts differ in their constants each time
 *   waits    sleeps and polls, for a query each
 *   many     SECONDS rounds, each with another text and a wait
 *   hostile  texts at addresses that cannot be read, without an end, and that another thread
 * changes
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Nobody here reads them: without this, the compiler would write the last values alone. */
const char *volatile current_query;
volatile unsigned int current_tenant;
volatile uint64_t current_request;
char current_state[32];
static char hidden_state[16];
__thread const char *volatile current_route;

static volatile unsigned int sink;

#define BURNER(name)                                                    \
	__attribute__((noinline)) static void name(unsigned long turns) \
	{                                                               \
		unsigned int x = 1;                                     \
                                                                        \
		while (turns--)                                         \
			x = x * 1664525 + 1013904223;                   \
		sink = x;                                               \
	}

BURNER(burn_select)
BURNER(burn_update)
BURNER(burn_nothing)

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void run_queries(unsigned int round)
{
	char text[200];

	snprintf(text, sizeof(text), "SELECT *  FROM t%d WHERE id = %u AND name IN ('n%u', 'x')", 1,
		 round, round);
	snprintf(current_state, sizeof(current_state), "in a transaction");
	snprintf(hidden_state, sizeof(hidden_state), "hidden %u", round);
	current_request = ((uint64_t)1 << 60) + 7;
	current_route = "GET /users/12/orders";
	current_tenant = 17;
	current_query = text;
	burn_select(600000);
	asm volatile("" : : "r"(current_state), "r"(hidden_state), "r"(text) : "memory");
	current_query = NULL;
	snprintf(text, sizeof(text), "UPDATE t SET secret = 's%u' /* %u */", round, round);
	current_state[0] = '\0';
	current_route = "\033[31m<b>&amp;";
	current_tenant = 0;
	current_query = text;
	burn_update(300000);
	current_query = NULL;
	burn_nothing(100000);
}

static void run_waits(unsigned int round)
{
	struct timespec time = { .tv_nsec = 2000000 };
	char text[100];

	snprintf(text, sizeof(text), "SLEEP %u", round);
	current_query = text;
	nanosleep(&time, NULL);
	snprintf(text, sizeof(text), "POLL %u", round);
	poll(NULL, 0, 1);
	current_query = NULL;
}

static void run_many(unsigned int round)
{
	struct timespec time = { .tv_nsec = 1000 };
	char text[100] = "work of ";

	for (int i = 0; i < 26; i++, round /= 2)
		text[8 + i] = 'a' + i + (round % 2 ? 'A' - 'a' : 0);
	current_query = text;
	nanosleep(&time, NULL);
	current_query = NULL;
}

static char changing[300];

static void *change(void *unused)
{
	(void)unused;
	for (unsigned int i = 0;; i++)
		changing[i % (sizeof(changing) - 1)] = "'a1 \"\\"[i / 7 % 6];
	return NULL;
}

static void run_hostile(unsigned int round)
{
	static char *last_page;
	pthread_t thread;

	if (!last_page) {
		last_page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(last_page + 4096, 4096);
		memset(last_page, 'x', 4096);
		memset(changing, 'a', sizeof(changing) - 1);
		if (pthread_create(&thread, NULL, change, NULL))
			exit(1);
	}
	switch (round % 5) {
	case 0:
		current_query = (const char *)1;
		break;
	case 1: /* in the kernel */
		current_query = (const char *)0xffffffff81000000;
		break;
	case 2: /* no address at all */
		current_query = (const char *)0x5555000000000000;
		break;
	case 3: /* without an end */
		current_query = last_page + 4096 - 20;
		break;
	default:
		current_query = changing;
	}
	burn_nothing(100000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned int round);
	} kinds[] = {
		{ "queries", run_queries },
		{ "waits", run_waits },
		{ "many", run_many },
		{ "hostile", run_hostile },
	};
	void (*run)(unsigned int round) = NULL;
	double end;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && argc == 3; i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			run = kinds[i].run;
	if (!run) {
		fprintf(stderr, "usage: context queries|waits|many|hostile SECONDS\n");
		return 2;
	}
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	end = seconds_now() + atof(argv[2]);
	for (unsigned int round = 0; run == run_many ? round < atof(argv[2]) : seconds_now() < end;
	     round++)
		run(round);
	return 0;
}
