// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/clock.h"

#define LIBRARY "libdebuginfod.so.1"

#define FILE_NS	 (10 * NS_PER_S)
#define TOTAL_NS (60 * NS_PER_S)

/* debuginfod_find_debuginfo(3), since elfutils 0.179 */
struct client;
typedef int progress_function(struct client *client, long done, long size);

struct debuginfod {
	struct client *client;
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	int (*find)(struct client *client, const unsigned char *build_id, int size, char **path);
	void (*set_progress)(struct client *client, progress_function *progress);
	void (*set_data)(struct client *client, void *data);
	uint64_t left_ns;
	uint32_t failed; /* the last image, if its download failed, or PROFILE_NONE */

	/* The current download */
	struct batch *b;
	uint64_t until_ns;
	bool late;
};

int debuginfod_check(struct error *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "--debuginfod: DEBUGINFOD_URLS does not name a server");
		error_hint(e, "export DEBUGINFOD_URLS=https://debuginfod.debian.net (or that of "
			      "your distribution; through sudo: sudo --preserve-env)");
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

/* After debuginfod_check() */
static int find_functions(struct debuginfod *d, struct error *e)
{
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "debuginfod_begin", &d->begin },
		{ "debuginfod_end", &d->end },
		{ "debuginfod_find_debuginfo", &d->find },
		{ "debuginfod_set_progressfn", &d->set_progress },
		{ "debuginfod_set_user_data", &d->set_data },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *symbol = dlsym(RTLD_DEFAULT, functions[i].name);

		if (!symbol)
			return error_set(e, 0, "--debuginfod: %s", dlerror());
		memcpy(functions[i].function, &symbol, sizeof(symbol));
	}
	return 0;
}

/* Called by the library at least once a second. size: 0 if unknown. Returns 1 to stop. */
static int watch(struct client *client, long done, long size)
{
	void *(*get_data)(struct client * client) =
		(void *(*)(struct client *))dlsym(RTLD_DEFAULT, "debuginfod_get_user_data");
	struct debuginfod *d = get_data(client);
	char what[256];

	(void)size;
	d->late = now_ns() > d->until_ns;
	snprintf(what, sizeof(what), "debuginfod: %.200s, %ld MB",
		 profile_basename(d->b->p->images[d->b->image].path), done / 1000000);
	batch_progress(d->b, 0, what);
	return d->late || batch_stopped(d->b);
}

int debuginfod_open(struct debuginfod **out, struct error *e)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return error_no_memory(e);
	d->left_ns = TOTAL_NS;
	d->failed = PROFILE_NONE;
	err = debuginfod_check(e) ?: find_functions(d, e);
	if (!err) {
		d->client = d->begin();
		err = d->client ? 0 : error_set(e, 0, "--debuginfod: libdebuginfod does not start");
	}
	if (err) {
		debuginfod_close(d);
		return err;
	}
	d->set_progress(d->client, watch);
	d->set_data(d->client, d);
	*out = d;
	return 0;
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	free(d);
}

/* Downloads within the time left. Returns a descriptor or a negative errno. */
static int ask(struct debuginfod *d, struct batch *b, const struct profile_image *image)
{
	uint64_t start = now_ns(), took;
	int fd;

	d->b = b;
	d->late = !d->left_ns;
	d->until_ns = start + (d->left_ns < FILE_NS ? d->left_ns : FILE_NS);
	if (d->late)
		return -ETIMEDOUT;
	fd = d->find(d->client, image->build_id, image->build_id_size, NULL);
	took = now_ns() - start;
	d->left_ns -= took < d->left_ns ? took : d->left_ns;
	return fd;
}

bool debuginfod_find(struct batch *b, struct elf_file *debug)
{
	const struct profile_image *image = &b->p->images[b->image];
	struct error e;
	int fd;

	if (!b->debuginfod || b->debuginfod->failed == b->image || !image->build_id_size)
		return false;
	fd = ask(b->debuginfod, b, image);
	b->debuginfod->failed = fd < 0 ? b->image : PROFILE_NONE;
	if (fd < 0 && b->debuginfod->late)
		error_set(&b->why, 0, "stripped; debuginfod did not send its symbols in time");
	else if (fd < 0)
		error_set(&b->why, -fd, "stripped; debuginfod sent no symbols");
	else if (elf_file_open(debug, fd, &e))
		error_set(&b->why, 0, "stripped; debuginfod sent an unusable file: %.200s", e.what);
	else if (elf_has_build_id(debug->elf, image->build_id, image->build_id_size))
		return true;
	else
		error_set(&b->why, 0, "stripped; debuginfod sent the symbols of another build");
	elf_file_close(debug);
	return false;
}
