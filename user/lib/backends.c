// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/backends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/backend.h"
#include "lib/fold.h"
#include "lib/last_error.h"
#include "lib/service_thread.h"
#include "lib/session.h"
#include "util/clock.h"

/* In the order in which they are tried. */
static const struct backend *const backends[] = {
	&profil__backend_kmod,
	&profil__backend_daemon,
	&profil__backend_bpf,
	&profil__backend_libc,
};

#define BACKEND_COUNT (sizeof(backends) / sizeof(*backends))

static const struct backend *chosen;

/* Returns the name in PROFIL_BACKEND; NULL: any back end will do. */
static const char *forced_name(void)
{
	const char *name = secure_getenv("PROFIL_BACKEND");

	return name && *name ? name : NULL;
}

const char *profil__backends_name(void)
{
	return chosen ? chosen->name : NULL;
}

static bool is_candidate(const struct backend *backend)
{
	const char *forced = forced_name();

	return backend && (!forced || strcmp(backend->name, forced) == 0);
}

void profil__backends_prepare(bool other)
{
	const struct backend *known = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
	int code = errno;

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
	s->period_ns = NS_PER_S / (backend->hz ?: s->hz);
	if (backend->direct) {
		err = backend->start(s);
	} else {
		err = profil__service_start();
		err = err ?: profil__service_call(profil__fold_check, s);
		err = err ?: profil__service_call(backend->start, s);
	}
	return err;
}

/* The only line that the library ever prints. */
static void print_choice(const char *name, const char *skipped)
{
	const char *verbose = secure_getenv("PROFIL_VERBOSE");
	char line[ERROR_SIZE + 64];
	int length;

	if (!verbose || strcmp(verbose, "1") != 0)
		return;
	length = snprintf(line, sizeof(line), "profil: back end: %s%s%s%s\n", name ? name : "none",
			  *skipped ? " (" : "", skipped, *skipped ? ")" : "");
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* it is a diagnostic, and not worth a failure */
}

static void add_reason(char *reasons, const struct backend *backend)
{
	size_t length = strlen(reasons);

	snprintf(reasons + length, ERROR_SIZE - length, "%s%s: %s", length ? "; " : "",
		 backend->name, profil__error_text());
}

/*
 * Starts the first back end that can count for the session. It becomes the process's, unless
 * `beside`: the process has one already.
 */
static int choose(struct profil_session *s, bool beside)
{
	char reasons[ERROR_SIZE] = "";

	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		if (!is_candidate(backends[i]))
			continue;
		if (attach(backends[i], s) == 0) {
			if (!beside)
				__atomic_store_n(&chosen, backends[i], __ATOMIC_RELEASE);
			print_choice(backends[i]->name, reasons);
			profil__error_clear();
			return 0;
		}
		add_reason(reasons, backends[i]);
	}
	print_choice(NULL, reasons);
	if (!*reasons)
		return profil__error(ENOTSUP, "PROFIL_BACKEND is \"%.40s\": not a back end",
				     forced_name());
	return profil__error(ENOTSUP, "%s", reasons);
}

/* Whether a back end fails as it does once a process has given up privileges or its root directory.
 */
static bool is_unreachable(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
	case ENOENT:
	case ESRCH: /* libbpf's, when it does not find the kernel's BTF */
	case ENOTSUP:
		return true;
	}
	return false;
}

static int attach_or_choose(const struct backend *backend, struct profil_session *s)
{
	int err = attach(backend, s);
	bool beside = err == -EBUSY && backend->single;

	return beside || is_unreachable(err) ? choose(s, beside) : err;
}

int profil__backends_start(struct profil_session *s)
{
	if (!s->pid)
		return chosen ? attach_or_choose(chosen, s) : choose(s, false);
	if (!&profil__backend_bpf)
		return profil__error(ENOTSUP, "a static program can profile only itself");
	return attach(&profil__backend_bpf, s);
}

int profil__backends_restart(struct profil_session *s)
{
	const struct backend *before = s->backend;
	int err = attach_or_choose(before, s);

	if (err)
		s->backend = before;
	return err;
}

void profil__backends_after_fork(void)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		if (backends[i] && backends[i]->after_fork)
			backends[i]->after_fork();
}
