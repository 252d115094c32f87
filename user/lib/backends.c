// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/backends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/backend.h"
#include "lib/fold.h"
#include "lib/last_error.h"
#include "lib/service_thread.h"
#include "lib/session.h"
#include "lib/verbose.h"
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

static int attach_by(const struct backend *backend, struct profil_session *s)
{
	int err = 0;

	s->backend = backend;
	s->counting.tick_ns = NS_PER_S / (backend->hz ?: s->hz);
	if (backend->check_privileges)
		err = backend->check_privileges();
	if (err)
		return err;
	if (backend->direct) {
		err = backend->start(s);
	} else {
		err = profil__service_start();
		err = err ?: profil__service_call(profil__fold_check, s);
		err = err ?: profil__service_call(backend->start, s);
	}
	return err;
}

/*
 * Starts the first back end that can count for the session. It becomes the process's, unless
 * `beside`: the process has one already. Returns -EINVAL if one refuses the rate or the regions,
 * and no other counts.
 */
static int choose_backend(struct profil_session *s, bool beside)
{
	const char *strict = secure_getenv("PROFIL_STRICT");
	/* libc's signals are no substitute for counting in the kernel. */
	bool is_strict = !forced_name() && strict && strcmp(strict, "1") == 0;
	char reasons[ERROR_SIZE] = "";
	bool refused = false;
	size_t length;
	int err;

	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		if (!is_candidate(backends[i]))
			continue;
		if (backends[i] == &profil__backend_libc && is_strict)
			err = profil__error(ENOTSUP, "PROFIL_STRICT is 1");
		else
			err = attach_by(backends[i], s);
		if (!err) {
			if (!beside)
				__atomic_store_n(&chosen, backends[i], __ATOMIC_RELEASE);
			profil__print_backend(backends[i]->name, reasons);
			profil__error_clear();
			return 0;
		}
		refused |= err == -EINVAL;
		length = strlen(reasons);
		snprintf(reasons + length, sizeof(reasons) - length, "%s%s: %s", length ? "; " : "",
			 backends[i]->name, profil__error_text());
	}
	if (!s->counts) /* libprofil-gmon has a histogram by profil() if there is no session */
		profil__print_backend(NULL, reasons);
	if (!*reasons)
		return profil__error(ENOTSUP, "PROFIL_BACKEND is \"%.40s\": not a back end",
				     forced_name());
	return profil__error(refused ? EINVAL : ENOTSUP, "%s", reasons);
}

static int attach_or_choose(const struct backend *backend, struct profil_session *s)
{
	int err = attach_by(backend, s);

	switch (-err) {
	case EBUSY:
		return backend->single ? choose_backend(s, true) : err;
	/* As once a process has given up privileges or its root directory. */
	case EPERM:
	case EACCES:
	case ENOENT:
	case ESRCH: /* libbpf's, when it does not find the kernel's BTF */
	case ENOTSUP:
		return choose_backend(s, false);
	}
	return err;
}

int profil__backends_start(struct profil_session *s)
{
	if (!s->pid)
		return chosen ? attach_or_choose(chosen, s) : choose_backend(s, false);
	if (!&profil__backend_bpf)
		return profil__error(ENOTSUP, "a static program can profile only itself");
	if (!is_candidate(&profil__backend_bpf))
		return profil__error(
			ENOTSUP, "PROFIL_BACKEND is \"%.40s\": only bpf counts for another process",
			forced_name());
	return attach_by(&profil__backend_bpf, s);
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

void profil__backends_look(void)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		if (backends[i] && backends[i]->look)
			backends[i]->look();
}

void profil__backends_release_kept(void)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		if (backends[i] && backends[i]->release_kept)
			backends[i]->release_kept();
}

bool profil__backends_open(void)
{
	bool open = false;

	for (size_t i = 0; i < BACKEND_COUNT; i++)
		open |= backends[i] && backends[i]->is_open && backends[i]->is_open();
	return open;
}
