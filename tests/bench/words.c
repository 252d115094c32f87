// SPDX-License-Identifier: GPL-2.0-only
/*
 * words [profil]: for each line with a number of seconds, counts and sorts the words of a text in
 * small functions so long, and prints its turns in a second. With an argument it has profil(3)
 * count meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORDS 2000
#define SLOTS 4096

struct word {
	char text[16];
	unsigned int count;
};

static struct word slots[SLOTS];
static char texts[WORDS][16];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static unsigned int hash(const char *text)
{
	unsigned int sum = 5381;

	while (*text)
		sum = sum * 33 + (unsigned char)*text++;
	return sum;
}

__attribute__((noinline)) static struct word *find(const char *text)
{
	unsigned int i = hash(text) % SLOTS;

	while (slots[i].count && strcmp(slots[i].text, text) != 0)
		i = (i + 1) % SLOTS;
	return &slots[i];
}

__attribute__((noinline)) static int compare(const void *one, const void *other)
{
	const struct word *a = one, *b = other;

	return (a->count < b->count) - (a->count > b->count) ?: strcmp(a->text, b->text);
}

static void turn(void)
{
	memset(slots, 0, sizeof(slots));
	for (int i = 0; i < WORDS; i++) {
		struct word *word = find(texts[i]);

		if (!word->count++)
			strcpy(word->text, texts[i]);
	}
	qsort(slots, SLOTS, sizeof(*slots), compare);
}

int main(int argc, char **argv)
{
	extern char __executable_start, etext;
	unsigned short *buffer;
	double seconds;

	(void)argv;
	for (int i = 0; i < WORDS; i++)
		snprintf(texts[i], sizeof(texts[i]), "word-%d", i * 7919 % 613);
	if (argc > 1) {
		size_t size = &etext - &__executable_start;

		buffer = calloc(size / sizeof(*buffer) + 1, sizeof(*buffer));
		if (!buffer || profil(buffer, size, (size_t)&__executable_start, 0x10000))
			return 1;
	}
	while (scanf("%lf", &seconds) == 1) {
		double begin = now();
		unsigned long turns = 0;

		while (now() < begin + seconds) {
			turn();
			turns++;
		}
		printf("%f\n", (double)turns / (now() - begin));
		fflush(stdout);
	}
	return 0;
}
