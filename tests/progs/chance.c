// SPDX-License-Identifier: GPL-2.0-only
/* chance share K N P, or chance rate K DUE: prints the probability, to be compared with chance.py.
 */
#include "chance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "share") == 0)
		printf("%.6e\n", share_p(atof(argv[2]), atof(argv[3]), atof(argv[4])));
	else if (argc == 4 && strcmp(argv[1], "rate") == 0)
		printf("%.6e\n", rate_p(atof(argv[2]), atof(argv[3])));
	else
		return 2;
	return 0;
}
