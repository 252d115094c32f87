/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_OTLP_H
#define PROFIL_FORMAT_OTLP_H

#include "format/format.h"
#include "format/message.h"

/* The signal "profiles" of OpenTelemetry (otlp.proto), only written. */

/*
 * Makes a message of a profile: both an ExportProfilesServiceRequest, for servers, and a
 * ProfilesData, for files, which have the same fields. It has the value of this type, as for
 * profile_value(), the delay and, beside samples, off_cpu (profile_off_cpu()), a Profile of each
 * for each service; values that are not above 0 are omitted. Returns 0, and the caller frees the
 * message; or -errno with e set.
 */
int otlp_encode(const struct profile *p, const char *type, struct message_bytes *message,
		struct error *e);

#endif
