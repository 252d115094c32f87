/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_CALL_ARCS_H
#define PROFIL_REPORT_CALL_ARCS_H

#include "report/call_view.h"

/*
 * Makes the tree of a view, and its calls, from calls that were counted apart, as Callgrind and
 * gmon.out have them: the function and its callers or callees. The totals of these are what was
 * spent in the calls, or how many they were when that is not known. The function's is the sum of
 * all calls of it; or its own and that of the calls that it made, when there are none of it. Calls
 * of itself do not count there. Returns 0 or -ENOMEM.
 */
int call_arcs_make(struct call_view *v, const struct profile *p, const struct call_tree_options *o);

#endif
