/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_WEB_WHY_H
#define PROFIL_REPORT_WEB_WHY_H

#include "profile/profile.h"
#include "report/web/web.h"

/* Why the slowest turns and waits took so long, as profiltool why says. */

/*
 * Bound: files: turns, and waits, whose chains are in a page; then: the longest ones of each
 * process are; seen: in a note of the page.
 */
#define WEB_MOMENTS_MAX 1000

/* Bound: files: parts of all chains of a page; then: further ones are not in it; seen: as above. */
#define WEB_WHY_NODES_MAX 200000

/*
 * Prints them as a member "why" of the data, if each wait was recorded; else nothing. Returns 0 or
 * -ENOMEM.
 */
int web_why_print(const struct profile *p, struct web_texts *texts, struct web_writer *w);

#endif
