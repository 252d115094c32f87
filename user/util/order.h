/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_UTIL_ORDER_H
#define PROFIL_UTIL_ORDER_H

/* The smaller and the larger of two numbers, which are evaluated twice. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Below 0, 0 or above 0, as a is less than b, equal or more: of numbers of one type. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/*
 * A static function for qsort(3) and bsearch(3), which compares the elements *a and *b. order: what
 * is looked at first, ?: what is then, and so on: LEAST() or MOST() of a member comes first, or any
 * other expression that is 0 for equal ones.
 */
#define ORDER(name, type, order)                            \
	static int name(const void *one, const void *other) \
	{                                                   \
		const type *a = one;                        \
		const type *b = other;                      \
                                                            \
		return order;                               \
	}

/* The same for bsearch(3) alone, where *a is the key. */
#define ORDER_OF_KEY(name, key_type, type, order)           \
	static int name(const void *one, const void *other) \
	{                                                   \
		const key_type *a = one;                    \
		const type *b = other;                      \
                                                            \
		return order;                               \
	}

/*
 * Sets i to the first number from `from` on, and below `to`, for which `before`, an expression of
 * i, is false; to `to` if it is true for all. It must be true for all numbers before that one
 * alone.
 */
#define FIND_FIRST(i, from, to, before)                  \
	do {                                             \
		size_t low_ = (from), high_ = (to);      \
                                                         \
		while (low_ < high_) {                   \
			(i) = low_ + (high_ - low_) / 2; \
			if (before)                      \
				low_ = (i) + 1;          \
			else                             \
				high_ = (i);             \
		}                                        \
		(i) = low_;                              \
	} while (0)

#define LEAST(member) COMPARE(a->member, b->member)
#define MOST(member)  COMPARE(b->member, a->member)

#endif
