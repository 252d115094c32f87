/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_STACK_ENDS_H
#define PROFIL_REPORT_STACK_ENDS_H

#include <json-c/json.h>
#include <stdio.h>

#include "profile/profile.h"

/*
 * How many of the stacks in user space reach the program's start, and what ends the others: lines
 * that begin with `prefix`. Nothing where stacks were not walked by call frame information.
 */
void stack_ends_print(const struct profile *p, const char *prefix, FILE *out);

/* [{"cause", "image", "count", "hint"}]; NULL: out of memory. */
struct json_object *stack_ends_json(const struct profile_totals *t);

#endif
