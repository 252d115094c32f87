/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_ANNOTATE_SOURCE_H
#define PROFIL_REPORT_ANNOTATE_SOURCE_H

#include "report/annotate/annotate.h"

/* report_listing() of source lines. */
int annotate_source(struct annotation *a, const struct report_listing_options *o, FILE *out);

#endif
