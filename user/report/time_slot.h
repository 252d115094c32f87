/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TIME_SLOT_H
#define PROFIL_REPORT_TIME_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "report/columns.h"
#include "util/tick_list.h"

/* Slots of time: equally long, they begin at multiples of their length since the epoch. */

/* The shortest of some round lengths, or of any number of days, that makes at most 60 slots. */
uint64_t time_slot_step(const struct time_interval *interval);

/* How many of this length an interval touches. */
uint64_t time_slot_count(const struct time_interval *interval, uint64_t step_ns);

/* Writes when a slot begins, as precisely as slots of this length need. utc: as in JSON. */
const char *time_slot_text(uint64_t start_ns, uint64_t step_ns, bool utc,
			   char buffer[TABLE_CELL_SIZE]);

#endif
