/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_STACK_ENDS_H
#define PROFIL_REPORT_STACK_ENDS_H

#include <json-c/json.h>
#include <stdio.h>

#include "profile/profile.h"

/*
 * Prints how many of the user stacks reach the program's start, and what ends the others, in lines
 * that begin with `prefix`. Prints nothing unless stacks were unwound by call frame information.
 */
void stack_ends_print(const struct profile *p, const char *prefix, FILE *out);

/* Returns [{"cause", "image", "count", "hint"}], or NULL when memory runs out. */
struct json_object *stack_ends_json(const struct profile *p);

#endif
