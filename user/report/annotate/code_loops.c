// SPDX-License-Identifier: GPL-2.0-only
#include "report/annotate/code_loops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/order.h"
#include "util/sum.h"

/*
 * Only the COUNT_MAX shortest loops are drawn, and none longer than LENGTH_MAX.
 * Bound: files: instructions of a loop, and loops, that are drawn; then: further ones are not
 * drawn; seen: not seen.
 */
#define LENGTH_MAX 2000
#define COUNT_MAX  2000

struct loop {
	size_t head, last;
};

ORDER(by_length, struct loop, compare_u64(a->last - a->head, b->last - b->head) ?: LEAST(head))

static bool is_column_free(const struct code_loops *l, const struct loop *loop, size_t place)
{
	for (size_t i = loop->head; i <= loop->last; i++)
		if (l->marks[i][place] != ' ')
			return false;
	return true;
}

int code_loops_draw(struct code_loops *l, const struct disassembly *d)
{
	struct loop *loops = calloc(d->count + 1, sizeof(*loops));
	size_t count = 0;

	*l = (struct code_loops){ .marks = calloc(d->count + 1, sizeof(*l->marks)) };
	if (!loops || !l->marks) {
		free(loops);
		return -ENOMEM;
	}
	for (size_t i = 0; i < d->count; i++)
		memset(l->marks[i], ' ', CODE_LOOPS_MAX);
	/* First, loops[i].last is 1 + the number of the last jump back to instruction i. */
	for (size_t i = 0; i < d->count; i++)
		loops[i] = (struct loop){ i, 0 };
	for (size_t i = 0; i < d->count; i++) {
		size_t head = disassembly_target(d, i);

		if (head != SIZE_MAX && head <= i)
			loops[head].last = i + 1;
	}
	for (size_t i = 0; i < d->count; i++)
		if (loops[i].last && loops[i].last - i <= LENGTH_MAX)
			loops[count++] = (struct loop){ i, loops[i].last - 1 };
	if (count)
		qsort(loops, count, sizeof(*loops), by_length);
	/* Draw each at the rightmost free place, if there is one; the shortest first. */
	for (size_t i = 0; i < count && i < COUNT_MAX; i++) {
		const struct loop *loop = &loops[i];
		size_t place = CODE_LOOPS_MAX;

		while (place > 0 && !is_column_free(l, loop, place - 1))
			place--;
		if (place-- == 0)
			continue;
		for (size_t j = loop->head; j <= loop->last; j++)
			l->marks[j][place] = '|';
		l->marks[loop->head][place] = '/';
		l->marks[loop->last][place] = loop->head == loop->last ? '<' : '\\';
		l->depth = MAX(l->depth, CODE_LOOPS_MAX - place);
	}
	for (size_t i = 0; i < d->count; i++)
		memmove(l->marks[i], l->marks[i] + CODE_LOOPS_MAX - l->depth, l->depth + 1);
	free(loops);
	return 0;
}

void code_loops_free(struct code_loops *l)
{
	free(l->marks);
	*l = (struct code_loops){ 0 };
}
