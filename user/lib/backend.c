// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/fold.h"
#include "lib/live.h"
#include "lib/process.h"
#include "lib/session.h"

/* In the order in which they are tried. */
static const struct backend *const backends[] = {
	&profil__backend_kmod,
	&profil__backend_bpf,
	&profil__backend_daemon,
	&profil__backend_libc,
};

#define BACKEND_COUNT (sizeof(backends) / sizeof(*backends))

static const struct backend *chosen;

/* Of PROFIL_BACKEND; NULL: the first that can. */
static const char *forced_name(void)
{
	const char *name = secure_getenv("PROFIL_BACKEND");

	return name && *name ? name : NULL;
}

const char *profil__backend_name(void)
{
	return chosen ? chosen->name : NULL;
}

static bool is_candidate(const struct backend *backend)
{
	const char *forced = forced_name();

	return backend && (!forced || strcmp(backend->name, forced) == 0);
}

void profil__backend_prepare(bool other)
{
	const struct backend *known = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
	int code = errno;

	if (profil__is_borrowed())
		return;
	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		const struct backend *backend = backends[i];

		if (!backend || !backend->prepare)
			continue;
		if (other || ((!known || known->single) && is_candidate(backend)))
			backend->prepare();
	}
	errno = code;
}

static int attach(const struct backend *backend, struct profil_session *s)
{
	int err;

	s->backend = backend;
	if (backend->direct) {
		err = backend->start(s);
	} else {
		err = s->counts ? 0 : profil__fold_check();
		err = err ?: profil__live_begin();
		err = err ?: profil__live_call(backend->start, s);
	}
	if (!err && backend->hz)
		s->hz = backend->hz;
	return err;
}

/* The one thing that is ever printed, when PROFIL_VERBOSE asks for it. */
static void tell(const char *name, const char *passed_over)
{
	const char *verbose = secure_getenv("PROFIL_VERBOSE");
	char line[ERROR_SIZE + 64];
	int length;

	if (!verbose || strcmp(verbose, "1") != 0)
		return;
	length = snprintf(line, sizeof(line), "profil: back end: %s%s%s%s\n", name ? name : "none",
			  *passed_over ? " (" : "", passed_over, *passed_over ? ")" : "");
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* there is nobody to tell */
}

static void pass_over(char *reasons, const struct backend *backend)
{
	size_t length = strlen(reasons);

	snprintf(reasons + length, ERROR_SIZE - length, "%s%s: %s", length ? "; " : "",
		 backend->name, profil__error_text());
}

/* The first that can count for the session is the process's from now on, if none was chosen. */
static int choose(struct profil_session *s)
{
	char reasons[ERROR_SIZE] = "";

	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		if (!is_candidate(backends[i]))
			continue;
		if (attach(backends[i], s) == 0) {
			if (!chosen)
				__atomic_store_n(&chosen, backends[i], __ATOMIC_RELEASE);
			tell(backends[i]->name, reasons);
			profil__error_clear();
			return 0;
		}
		pass_over(reasons, backends[i]);
	}
	tell(NULL, reasons);
	if (!*reasons)
		return profil__error(ENOTSUP, "PROFIL_BACKEND is \"%.40s\": not a back end",
				     forced_name());
	return profil__error(ENOTSUP, "%s", reasons);
}

int profil__backend_start(struct profil_session *s)
{
	int err;

	if (!s->pid && !chosen)
		return choose(s);
	if (!s->pid) {
		err = attach(chosen, s);
		return err == -EBUSY && chosen->single ? choose(s) : err;
	}
	if (!&profil__backend_bpf)
		return profil__error(ENOTSUP, "a static program can profile only itself");
	return attach(&profil__backend_bpf, s);
}
