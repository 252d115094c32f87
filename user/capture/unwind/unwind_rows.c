// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind_rows.h"

#include <stdlib.h>

void unwind_rows_free(struct unwind_rows *rows)
{
	free(rows->rows);
	free(rows->rules);
	rows->rows = NULL;
	rows->rules = NULL;
	rows->count = rows->room = rows->rule_count = rows->rule_room = 0;
}
