// SPDX-License-Identifier: GPL-2.0-only
/*
 * chance_print ALL1 ALL2: for each pair of counts of standard input, of so many samples on each
 * side, prints the p of their shares, and the p that is corrected for all pairs; 2 for a pair that
 * has too few samples. tests/web has the page's numbers of the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/chance.h"

#define PAIRS_MAX 10000

int main(int argc, char **argv)
{
	static double p[PAIRS_MAX], corrected[PAIRS_MAX], *order[PAIRS_MAX];
	uint64_t count1, count2, all[2];
	size_t count = 0, tested = 0;

	if (argc != 3)
		return 2;
	all[0] = strtoull(argv[1], NULL, 10);
	all[1] = strtoull(argv[2], NULL, 10);
	while (count < PAIRS_MAX && scanf("%" SCNu64 " %" SCNu64, &count1, &count2) == 2) {
		struct chance chance = chance_of_shares(count1, all[0], count2, all[1]);

		p[count] = corrected[count] = chance.least <= CHANCE_LEVEL ? chance.p : 2;
		if (chance.least <= CHANCE_LEVEL)
			order[tested++] = &corrected[count];
		count++;
	}
	chance_correct(order, tested);
	for (size_t i = 0; i < count; i++)
		printf("%.17g %.17g\n", p[i], corrected[i]);
	return 0;
}
