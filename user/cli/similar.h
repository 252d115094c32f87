/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CLI_SIMILAR_H
#define PROFIL_CLI_SIMILAR_H

#include <stddef.h>

/* Finds the word that was meant by one that is unknown. */
struct similar {
	const char *word; /* the unknown one */
	const char *best; /* the most similar offered word; NULL: none is similar */
	size_t fewest;	  /* private */
};

struct similar similar_to(const char *word);

/*
 * Takes a candidate if it is the best so far: with at most two mistakes, and at most one for every
 * two letters of the unknown word.
 */
void similar_offer(struct similar *s, const char *candidate);

#endif
