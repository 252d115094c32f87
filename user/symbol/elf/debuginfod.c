// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/pc_name.h"
#include "symbol/symbol.h"
#include "util/clock.h"

#define LIBRARY "libdebuginfod.so.1"

/*
 * Bound: machine: time for a file from a debuginfod server, and for all of one command; then: it is
 * left out: code has no names; again: with another command; share: none; seen: in a warning.
 */
#define FILE_NS	 (10 * NS_PER_S)
#define TOTAL_NS (60 * NS_PER_S)

/* Bound: pace. */
#define WAIT_NS (100 * NS_PER_MS)

/* The time that a stopped download has to end: watch() is called once a second. Bound: pace. */
#define END_NS (3 * NS_PER_S / 2)

/* debuginfod_find_debuginfo(3), since elfutils 0.179 */
struct client;
typedef int progress_function(struct client *client, long done, long size);

struct library {
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	int (*find)(struct client *client, const unsigned char *build_id, int size, char **path);
	void (*set_progress)(struct client *client, progress_function *progress);
	void (*set_data)(struct client *client, void *data);
};

/*
 * A download has a thread of its own, which is left alone if it does not end in time: libdebuginfod
 * 0.192 does not call the progress function before a server has answered.
 */
struct download {
	struct library library; /* debuginfod_close() may come first */
	struct client *client;
	atomic_ulong bytes;
	atomic_bool stop;
	atomic_bool is_over; /* for the thread, or for who has left it: the second frees this */
	int fd;		     /* the result: a descriptor or a negative errno */
	int build_id_size;
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
};

struct debuginfod {
	struct library library;
	struct client *client; /* NULL: the last one is a download's that was left */
	uint64_t left_ns;
	uint32_t failed; /* the last image, if its download failed, or PROFILE_NONE */
	/* Bound: state. */
	bool late; /* the last download was */
};

int debuginfod_check(struct error *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "--debuginfod: DEBUGINFOD_URLS does not name a server");
		error_hint(e, SYMBOL_SERVER_HINT " (or that of your distribution; through sudo: "
						 "sudo --preserve-env)");
		return -EINVAL;
	}
	/* It stays loaded: some of the libraries that it uses crash when unloaded. */
	if (!dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL)) {
		error_set(e, 0, "--debuginfod: %s", dlerror());
		error_hint(e, "install libdebuginfod1 (Debian) or elfutils-debuginfod-client "
			      "(Fedora)");
		return -ENOENT;
	}
	return 0;
}

/* Called by the library once a second, or more often. size: 0 if unknown. Returns 1 to stop. */
static int watch(struct client *client, long done, long size)
{
	void *(*get_data)(struct client * client) =
		(void *(*)(struct client *))dlsym(RTLD_DEFAULT, "debuginfod_get_user_data");
	struct download *download = get_data(client);

	(void)size;
	download->bytes = done;
	return download->stop;
}

int debuginfod_open(struct debuginfod **out, struct error *e)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	struct library l;
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "debuginfod_begin", &l.begin },
		{ "debuginfod_end", &l.end },
		{ "debuginfod_find_debuginfo", &l.find },
		{ "debuginfod_set_progressfn", &l.set_progress },
		{ "debuginfod_set_user_data", &l.set_data },
	};
	int err;

	if (!d)
		return error_no_memory(e);
	d->left_ns = TOTAL_NS;
	d->failed = PROFILE_NONE;
	err = debuginfod_check(e);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !err; i++) {
		void *symbol = dlsym(RTLD_DEFAULT, functions[i].name);

		if (symbol)
			memcpy(functions[i].function, &symbol, sizeof(symbol));
		else
			err = error_set(e, 0, "--debuginfod: %s", dlerror());
	}
	if (!err) {
		d->library = l;
		d->client = l.begin();
		err = d->client ? 0 : error_set(e, 0, "--debuginfod: libdebuginfod does not start");
	}
	if (err) {
		debuginfod_close(d);
		return err;
	}
	*out = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->library.end(d->client);
	free(d);
}

static void *download_main(void *argument)
{
	struct download *download = argument;

	download->fd = download->library.find(download->client, download->build_id,
					      download->build_id_size, NULL);
	if (atomic_exchange(&download->is_over, true)) {
		if (download->fd >= 0)
			close(download->fd);
		download->library.end(download->client);
		free(download);
	}
	return NULL;
}

/* Returns a download that *thread works on, or NULL. */
static struct download *begin_download(const struct debuginfod *d,
				       const struct profile_image *image, pthread_t *thread)
{
	struct download *download = calloc(1, sizeof(*download));
	sigset_t all, before;
	int code;

	if (!download)
		return NULL;
	download->library = d->library;
	download->client = d->client;
	memcpy(download->build_id, image->build_id, image->build_id_size);
	download->build_id_size = image->build_id_size;
	d->library.set_progress(d->client, watch);
	d->library.set_data(d->client, download);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(thread, NULL, download_main, download);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!code)
		return download;
	free(download);
	return NULL;
}

/* Downloads within a time. Returns a descriptor or a negative errno. */
static int download_file(struct debuginfod *d, struct batch *b, const struct profile_image *image,
			 uint64_t time_ns)
{
	uint64_t until_ns = now_ns() + time_ns, end_ns = 0, now;
	struct download *download;
	struct timespec wait;
	pthread_t thread;
	char what[256];
	int fd;

	if (!d->client)
		d->client = d->library.begin();
	download = d->client ? begin_download(d, image, &thread) : NULL;
	if (!download)
		return -ENOMEM;
	for (;;) {
		now = now_ns() + WAIT_NS;
		wait = (struct timespec){ now / NS_PER_S, now % NS_PER_S };
		if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &wait) == 0)
			break;
		snprintf(what, sizeof(what), "debuginfod: %.200s, %lu MB",
			 profile_basename(b->p->images[b->image].path), download->bytes / 1000000);
		batch_progress(b, 0, what);
		now = now_ns();
		if (!download->stop && (now > until_ns || batch_stopped(b))) {
			d->late = now > until_ns;
			download->stop = true;
			end_ns = now + END_NS;
		}
		if (download->stop && now > end_ns && !atomic_exchange(&download->is_over, true)) {
			pthread_detach(thread);
			d->client = NULL;
			return -ETIMEDOUT;
		}
	}
	fd = download->fd;
	free(download);
	return fd;
}

bool debuginfod_find(struct batch *b, struct elf_file *debug)
{
	const struct profile_image *image = &b->p->images[b->image];
	struct debuginfod *d = b->debuginfod;
	uint64_t start = now_ns(), took;
	struct error e;
	int fd = -ETIMEDOUT;

	if (!d || d->failed == b->image || !image->build_id_size)
		return false;
	d->late = !d->left_ns;
	if (!d->late)
		fd = download_file(d, b, image, MIN(d->left_ns, FILE_NS));
	took = now_ns() - start;
	d->left_ns -= MIN(took, d->left_ns);
	d->failed = fd < 0 ? b->image : PROFILE_NONE;
	if (fd < 0 && d->late)
		error_set(&b->why, 0, "stripped; debuginfod did not send its symbols in time");
	else if (fd < 0)
		error_set(&b->why, -fd, "stripped; debuginfod sent no symbols");
	else if (elf_file_open(debug, fd, b->budget, &e))
		error_set(&b->why, 0, "stripped; debuginfod sent an unusable file: %.200s", e.what);
	else if (elf_has_build_id(debug, image->build_id, image->build_id_size))
		return true;
	else
		error_set(&b->why, 0, "stripped; debuginfod sent the symbols of another build");
	elf_file_close(debug);
	return false;
}
