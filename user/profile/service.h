/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_SERVICE_H
#define PROFIL_PROFILE_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/tags.h"
#include "util/error.h"
#include "util/index.h"

/*
 * Engines keep a series for each service. Of a whole machine's samples these are:
 * - a systemd service: its unit's name without ".service";
 * - in containers, sessions, and where no unit is known: the name of the process;
 * - threads of the kernel: SERVICE_KERNEL.
 * Processes choose their names, so their number is bounded: all but the SERVICES_MAX - 1 with the
 * most samples become SERVICE_OTHER.
 */

/*
 * Bound: users: services in one profile; then: those with the least samples become one; again: at
 * the next profile; share: none: by samples; seen: as "other" services.
 */
#define SERVICES_MAX   100
#define SERVICE_KERNEL "kernel"
#define SERVICE_OTHER  "unknown_service" /* the name that OpenTelemetry has for it */

struct service {
	char *name;
	const char *container; /* interned in the profile; NULL: none */
	uint64_t total;	       /* of the value, of its samples */
};

/* Zero-initialised: empty. */
struct services {
	struct service *items; /* the one with most first */
	size_t count, room;
	uint32_t *of_sample; /* the number of each sample's service */
	struct index index;
};

/*
 * Finds the services of all samples, by the value of this number. Returns 0, or -ENOMEM with e set;
 * services_free() is due in any case.
 */
int services_find(const struct profile *p, size_t value, struct services *s, struct error *e);
void services_free(struct services *s);

/* The attribute that a container's name is for: it is an ID when it consists of 64 digits. */
const char *service_container_key(const char *container, const char *id, const char *name);

#endif
