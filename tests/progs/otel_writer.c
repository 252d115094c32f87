// SPDX-License-Identifier: GPL-2.0-only
/*
 * otel_writer CHANGES LOG [LIBRARY]: publishes what its two threads work for as OpenTelemetry has
 * it (OTEP 4947 and 4719), and changes it at random: so often in each, and for 0.2 s of CPU time.
 * It burns CPU in burn_0() to burn_3(), as its route says, and in burn_nothing() when it works for
 * nobody. LOG: each trace with what was published of it. own_number, thread-local and static, is
 * its PID. The second thread's records are longer than is read of them. Prints "ready", and begins
 * after a line on standard input.
 *
 * The variable is the program's own; with LIBRARY, or -DLINKED, a library's: this file with
 * -DLIBRARY. A library is opened when the threads run already. One thread changes a record in its
 * place, and the other publishes new ones.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t size;
	uint8_t attributes[768];
};

typedef volatile struct record *volatile slot;

#ifndef LINKED
__attribute__((visibility("default"))) __thread slot otel_thread_ctx_v1;

static __thread volatile unsigned int own_number;

__attribute__((visibility("default"))) slot *otel_slot(void);

slot *otel_slot(void)
{
	own_number = getpid();
	return &otel_thread_ctx_v1;
}
#endif

#ifndef LIBRARY

static volatile unsigned int sink;

/* Other code in each: the compiler makes one function of equal ones. */
#define BURNER(name, begin)                                             \
	__attribute__((noinline)) static void name(unsigned long turns) \
	{                                                               \
		unsigned int x = (begin);                               \
                                                                        \
		while (turns--)                                         \
			x = x * 1664525 + 1013904223;                   \
		sink = x;                                               \
	}

BURNER(burn_0, 0)
BURNER(burn_1, 1)
BURNER(burn_2, 2)
BURNER(burn_3, 3)
BURNER(burn_nothing, 4)

static void (*const burners[])(unsigned long turns) = { burn_0, burn_1, burn_2, burn_3 };

static double seconds_used(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec + used.tv_nsec / 1e9;
}

/* --- What the process says --- */

static struct {
	char signature[8];
	uint32_t version, size;
	volatile uint64_t published_ns;
	uint8_t *payload;
} * header;

static uint8_t payloads[2][512];

static uint8_t *put_bytes(uint8_t *to, int field, const void *bytes, size_t size)
{
	*to++ = field << 3 | 2;
	*to++ = 0x80 | (size & 0x7f);
	*to++ = size >> 7;
	memcpy(to, bytes, size);
	return to + size;
}

static uint8_t *put_pair(uint8_t *to, const char *key, const uint8_t *value, size_t size)
{
	uint8_t pair[400], *end = put_bytes(pair, 1, key, strlen(key));

	end = put_bytes(end, 2, value, size);
	return put_bytes(to, 1, pair, end - pair);
}

static uint8_t *put_text(uint8_t *to, const char *key, const char *text)
{
	uint8_t value[64], *end = put_bytes(value, 1, text, strlen(text));

	return put_pair(to, key, value, end - value);
}

/* Says it, or says it anew, with the names of so many attributes. */
static void publish(size_t names)
{
	static const char *const attributes[] = { "http.route", "tenant", "Check", "unit", "late" };
	uint8_t value[300], text[64], array[300], *end = array, *to = payloads[names & 1];

	for (size_t i = 0; i < names; i++)
		end = put_bytes(end, 1, text,
				put_bytes(text, 1, attributes[i], strlen(attributes[i])) - text);
	end = value + (put_bytes(value, 5, array, end - array) - value);
	to = put_text(to, "service.name", "shop");
	to = put_text(to, "service.version", "1.2.3");
	to = put_text(to, "threadlocal.schema_version", "tls_v1");
	to = put_pair(to, "threadlocal.attribute_key_map", value, end - value);
	if (!header) {
		int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, 4096))
			exit(1);
		header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (header == MAP_FAILED)
			exit(1);
		close(fd);
		madvise(header, 4096, MADV_DONTFORK);
	}
	header->published_ns = 0;
	__sync_synchronize();
	header->version = 2;
	header->size = to - payloads[names & 1];
	header->payload = payloads[names & 1];
	__sync_synchronize();
	header->published_ns = names + 1;
	__sync_synchronize();
	memcpy(header->signature, "OTEL_CTX", 8);
}

/* --- What its threads do --- */

static const char *library;
static pthread_barrier_t opened;
static unsigned int changes;
static double end_s;
static FILE *trace_log;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t put_attribute(struct record *r, size_t size, int key, const char *text)
{
	r->attributes[size] = key;
	r->attributes[size + 1] = strlen(text);
	memcpy(r->attributes + size + 2, text, strlen(text));
	return size + 2 + strlen(text);
}

static void *work(void *in_place)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz /{}:-_=";
	static struct record records[2][2];
	uint64_t random = in_place ? 88172645463325252 : 2463534242;
	char filler[240];
	slot *own;

	memset(filler, 'f', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	pthread_barrier_wait(&opened);
	own = ((slot * (*)(void)) dlsym(RTLD_DEFAULT, "otel_slot"))();
	for (unsigned int i = 0; i < changes || seconds_used() < end_s; i++) {
		struct record new = { 0 };
		volatile struct record *shown = &records[!in_place][in_place ? 0 : i & 1];
		unsigned int kind = next_random(&random) % 4;
		char route[80], check[20];
		size_t size, length = next_random(&random) % 60;

		if (in_place && i == 50)
			publish(5);
		for (size_t k = 0; k < offsetof(struct record, valid); k++)
			((uint8_t *)&new)[k] = next_random(&random) >> 9;
		snprintf(route, sizeof(route), "/%u/", kind);
		for (size_t k = 0; k < length; k++)
			route[3 + k] = letters[next_random(&random) % (sizeof(letters) - 1)];
		route[3 + length] = 'x';
		route[4 + length] = '\0';
		snprintf(check, sizeof(check), "%016llx", (unsigned long long)next_random(&random));
		size = put_attribute(&new, 0, 1, "the last one counts");
		size = put_attribute(&new, size, 0, route);
		size = put_attribute(&new, size, 1, "t17");
		size = put_attribute(&new, size, 2, check);
		size = put_attribute(&new, size, 3, "not a unit");
		size = put_attribute(&new, size, 4, "later");
		size = put_attribute(&new, size, 200, "without a name");
		for (int k = 0; k < 2 && !in_place; k++)
			size = put_attribute(&new, size, 201 + k, filler);
		new.size = size;
		/* Begins while nobody may see it. */
		shown->valid = !in_place;
		memcpy((void *)shown, &new, offsetof(struct record, valid));
		memcpy((char *)shown + offsetof(struct record, flags), &new.flags,
		       sizeof(new) - offsetof(struct record, flags));
		asm volatile("" : : : "memory");
		if (in_place)
			shown->valid = 1;
		*own = shown;
		burners[kind](20000 + next_random(&random) % 20000);
		if (in_place)
			shown->valid = 0;
		else
			*own = NULL;
		burn_nothing(5000);
		pthread_mutex_lock(&log_lock);
		for (size_t k = 0; k < sizeof(new.trace); k++)
			fprintf(trace_log, "%02x", new.trace[k]);
		fprintf(trace_log, "\t");
		for (size_t k = 0; k < sizeof(new.span); k++)
			fprintf(trace_log, "%02x", new.span[k]);
		fprintf(trace_log, "\t%s\t%s\n", route, check);
		pthread_mutex_unlock(&log_lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3) {
		fprintf(stderr, "usage: otel_writer CHANGES LOG [LIBRARY]\n");
		return 2;
	}
	trace_log = fopen(argv[2], "w");
	pthread_barrier_init(&opened, NULL, 2);
	if (!trace_log || pthread_create(&thread, NULL, work, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	library = argc > 3 ? argv[3] : NULL;
	if (library && !dlopen(library, RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	publish(4);
	changes = atoi(argv[1]);
	end_s = seconds_used() + 0.2;
	(void)work((void *)1);
	pthread_join(thread, NULL);
	return fclose(trace_log) != 0;
}
#endif
