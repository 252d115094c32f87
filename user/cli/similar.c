// SPDX-License-Identifier: GPL-2.0-only
#include "cli/similar.h"

#include <string.h>

/*
 * Bound: caller: letters of a word that a message corrects; then: no correction is suggested; seen:
 * not seen.
 */
#define WORD_MAX 32 /* letters of a word that is compared */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters have to be added, removed, replaced or swapped with the next one to make one
 * word of the other; more than the length of a word that is too long.
 */
static size_t count_mistakes(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], width = strlen(b);

	if (width > WORD_MAX)
		return width;
	for (size_t j = 0; j <= width; j++)
		rows[0][j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
		size_t *row = rows[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]),
				       least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][width];
}

struct similar similar_to(const char *word)
{
	return (struct similar){ .word = word, .fewest = least(2, strlen(word) / 2) + 1 };
}

void similar_offer(struct similar *s, const char *candidate)
{
	size_t mistakes = count_mistakes(candidate, s->word);

	if (mistakes >= s->fewest)
		return;
	s->fewest = mistakes;
	s->best = candidate;
}
