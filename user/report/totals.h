/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_TOTALS_H
#define PROFIL_REPORT_TOTALS_H

#include "profile/profile.h"
#include "report/columns.h"
#include "report/json_writer.h"

#include <stdbool.h>
#include <json-c/json.h>
#include <stdio.h>

/*
 * Describes the columns of what threads did, by the kernel's account. wall: may be NULL for the
 * titles. has_samples: there are columns of samples, too, which say what ran. has_unknown: with the
 * time of which nothing is known.
 */
void wall_columns(struct columns *c, const struct profile_wall *wall, bool has_samples,
		  bool has_unknown);

/* The same as an object. NULL: memory ran out. */
struct json_object *wall_json(const struct profile_wall *wall);

/*
 * Writes the account of ticks and their cost; nothing if the profile has no account. stacks: the
 * name of the object that says how stacks end.
 */
void totals_json(struct json_writer *w, const struct profile *p, const char *stacks);

/*
 * Writes which value is shown, by its title (of rows_title(), or "calls"), the clock and the
 * duration of the recording, and the totals.
 */
void recording_json(struct json_writer *w, const struct profile *p, const char *title);

/*
 * True if the ticks' interrupts come only for the profile; the scheduler's ticks, and events, come
 * anyway.
 */
bool cost_has_interrupt(const struct profile *p);

/*
 * They store a percentage and return true, or return false when the profile does not hold what it
 * is computed from. They are estimates, because the cost of an interrupt is measured apart.
 */

/* Cost of all ticks with their interrupts, in percent of the target's CPU time. */
bool cost_cpu_percent(const struct profile *p, double *percent);

/* CPU time of the recorder itself meanwhile, in percent of the target's: in addition to that. */
bool cost_own_percent(const struct profile *p, double *percent);

/*
 * Cost of all interrupts of the clock, also those that hit other processes, of the BPF program and
 * of the recorder itself, in percent of the machine's CPU time, idle time included.
 */
bool cost_machine_percent(const struct profile *p, double *percent);

/*
 * True if the target ran for next to nothing of the time that was recorded: then shares of its CPU
 * time are no measure of what profiling costs.
 */
bool cost_target_is_idle(const struct profile *p);

/*
 * Prints how many of the user stacks reach the program's start, and what ends the others, in lines
 * that begin with `prefix`. Prints nothing unless stacks were unwound by call frame information.
 */
void stack_ends_print(const struct profile *p, const char *prefix, FILE *out);

/* Returns [{"cause", "image", "count", "hint"}], or NULL when memory runs out. */
struct json_object *stack_ends_json(const struct profile *p);

#endif
