/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_PERF_H
#define PROFIL_FORMAT_PERF_H

#include "format/format.h"

/*
 * What perf record writes: perf.data, as a file or to a pipe. Described by the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
 */
extern const struct format format_perf;

/* What perf script prints of it. */
extern const struct format format_perf_script;

#endif
