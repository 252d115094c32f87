/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_METRIC_H
#define PROFIL_TOOL_METRIC_H

#include <stdbool.h>

#include "report/changes/changes.h"
#include "util/error.h"

/*
 * Reads how many requests came when: lines "TIME VALUE", Prometheus' text with times, or the JSON
 * of its query_range. Values are counters, each of its own series, which grow and may begin anew;
 * or rates: in a second, since the value before. Sets the metric's list, which the caller frees, in
 * any case. Returns 0, or a negative errno with e set: it names the file and the line.
 */
int metric_read(const char *path, bool rate, struct changes_metric *m, struct error *e);

#endif
