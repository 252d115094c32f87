// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/image.h"
#include "capture/unwind/unwind_state.h"
#include "util/clock.h"
#include "util/file.h"

static bool is_root_owned(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_uid == 0 && !(status.st_mode & S_IWOTH);
}

struct build_id {
	const uint8_t *bytes;
	size_t size;
};

static uint64_t hash_build(const uint8_t *build_id, size_t size)
{
	return hash_bytes(build_id, size, 0);
}

static bool is_build(const void *images, uint32_t number, const void *key)
{
	const struct unwind_rows *rows = &((const struct unwind_image_state *)images)[number].rows;
	const struct build_id *id = key;

	return rows->build_id_size == id->size && memcmp(rows->build_id, id->bytes, id->size) == 0;
}

/*
 * Finds an image with the same build ID, such as the same program in another container. Only files
 * of root are found: with a forged build ID a user could choose how others' stacks are walked.
 */
static const struct unwind_image_state *find_build(const struct unwind *u, const uint8_t *build_id,
						   size_t size)
{
	const struct build_id id = { build_id, size };
	uint32_t number =
		size ? index_find(&u->builds, hash_build(build_id, size), is_build, u->images, &id)
		     : INDEX_NONE;

	return number == INDEX_NONE ? NULL : &u->images[number];
}

static int index_build(struct unwind *u, size_t number)
{
	const struct unwind_image_state *state = &u->images[number];
	const struct unwind_rows *rows = &state->rows;

	if (state->number == UNWIND_NO_IMAGE || !state->root_owned || !rows->build_id_size ||
	    find_build(u, rows->build_id, rows->build_id_size))
		return 0;
	return index_add(&u->builds, hash_build(rows->build_id, rows->build_id_size), number);
}

int unwind_index_builds(struct unwind *u)
{
	int err = 0;

	index_free(&u->builds);
	for (size_t i = 0; i < u->image_count && !err; i++)
		err = index_build(u, i);
	return err;
}

/*
 * Any user can create any number of files that each take a second to read. So users' files have a
 * budget of CPU time: this much, and 1 / USERS_PART of the time that passes. So has what is read
 * once more, because its rows were removed.
 */
#define USERS_NS   (10 * NS_PER_S)
#define USERS_PART 10
/*
 * With windows, where all that the daemon's unit may take is half a GiB, one of users' files: those
 * of compilers are a fifth of that, and take a tenth of a second.
 */
#define USERS_FILE_NS	 NS_PER_S
#define USERS_FILE_BYTES ((uint64_t)128 * 1024 * 1024)
/* With windows root's files have one, too: a build runs any number of new programs. */
#define WINDOWS_PART 400

static bool has_budget(const struct unwind *u, const struct unwind_image_state *state)
{
	return !state->root_owned || u->windows || state->removed || state->again;
}

static int check_time(const struct unwind *u, const struct unwind_image_state *state,
		      struct error *e)
{
	uint64_t part = (now_ns() - u->begin_ns) / (u->windows ? WINDOWS_PART : USERS_PART);
	uint64_t spent = state->root_owned ? u->root_ns : u->users_ns;

	if (!has_budget(u, state) || spent <= USERS_NS + part)
		return 0;
	return error_set(e, 0, "reading %s files has taken too long",
			 !state->root_owned ? "users'"
			 : u->windows	    ? "new"
					    : "the same");
}

/* The files that are mapped when recording starts are read in any case. */
static void add_time(struct unwind *u, const struct unwind_image_state *state, uint64_t begin_ns)
{
	uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;

	if (!state->root_owned)
		u->users_ns += ns;
	else if (u->ring && has_budget(u, state))
		u->root_ns += ns;
}

/*
 * Reads the rows of an open file. -ESTALE: it is another build than was mapped, since it was opened
 * by its path, and that has been replaced or is in another root directory.
 */
static int read_rows(const struct unwind *u, const struct capture_image *image, int fd,
		     struct unwind_image_state *state, struct error *e)
{
	struct read_budget users_file = { .bytes = USERS_FILE_BYTES, .memory = USERS_FILE_BYTES };
	struct read_budget *budget = NULL;
	struct unwind_rows *rows = &state->rows;
	int err;

	state->root_owned = is_root_owned(fd);
	err = check_time(u, state, e);
	if (u->windows && !state->root_owned) {
		users_file.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + USERS_FILE_NS;
		budget = &users_file;
	}
	err = err ?: u->read(fd, image->path, budget, rows, e);
	if (err || !image->build_id_size ||
	    (rows->build_id_size == image->build_id_size &&
	     memcmp(rows->build_id, image->build_id, image->build_id_size) == 0))
		return err;
	unwind_rows_free(rows);
	rows->segment_count = rows->build_id_size = 0;
	error_set(e, 0, "another build ID");
	return -ESTALE;
}

/*
 * Reads the file that has the image's name now, for a process that ended before its file could be
 * opened. The rows are used if the build ID is the same.
 */
static int read_by_name(const struct unwind *u, const struct capture_image *image,
			struct unwind_image_state *state, struct error *e)
{
	const char *why = image->why ?: "its file could not be opened";
	struct error here = { 0 };
	struct stat status;
	int fd, err;

	if (!image->build_id_size)
		return error_set(e, 0, "%s", why);
	fd = file_open_regular(image->root, image->path, &status);
	if (fd < 0)
		return error_set(e, 0, "%s; by its path, now: %s", why,
				 fd == -EINVAL	 ? "not a regular file"
				 : fd == -ENOENT ? "no such file"
						 : strerror(-fd));
	if (file_is_of(&status, image->provider))
		err = read_rows(u, image, fd, state, &here);
	else
		err = error_set(&here, 0, "a file of another user");
	close(fd);
	return err ? error_set(e, 0, "%s; by its path, now: %s", why, here.what) : 0;
}

/*
 * Until the rows are read, stacks through the image are copied, or lost: on a busy machine this
 * thread goes first. Not for users' files: they could use that to slow down others.
 */
static void hurry(const struct unwind_image_state *state)
{
	if (state->root_owned)
		setpriority(PRIO_PROCESS, 0, -20); /* no matter if this is not allowed */
}

/* Reads the file of an image, if it has one. state: what is known of it. */
static int read_file(struct unwind *u, const struct capture_image *image,
		     struct unwind_image_state *state, struct error *e)
{
	bool is_vdso = strcmp(image->path, "[vdso]") == 0;
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err = 0;

	if (image->path[0] != '/' && !is_vdso)
		return 0; /* code without a file */
	/* Our own vDSO is read, not the process's copy: it may have written to that. */
	state->root_owned = is_vdso || (image->fd >= 0 && is_root_owned(image->fd));
	hurry(state);
	if (is_vdso)
		err = u->read(-1, image->path, NULL, &state->rows, e);
	else if (image->fd >= 0)
		err = read_rows(u, image, image->fd, state, e);
	else
		err = read_by_name(u, image, state, e);
	add_time(u, state, begin_ns);
	return err;
}

int unwind_read_image(struct unwind *u, size_t number)
{
	struct capture_image *image = &u->processes->images[number];
	struct unwind_image_state *state = &u->images[number];
	const struct unwind_image_state *same =
		find_build(u, image->build_id, image->build_id_size);
	const struct unwind_image_state before = *state;
	struct error e = { 0 };
	int err;

	*state = (struct unwind_image_state){
		.number = before.number,
		.removed = before.removed,
		.again = before.again,
	};
	image->is_reopened = false;
	if (!state->number && unwind_revive(u, image, state))
		return index_build(u, number);
	if (!state->number && same) {
		state->number = same->number;
		state->rows = same->rows; /* the segments: rows and rules are in the tables */
		state->root_owned = true;
		state->removed = false;
		return 0;
	}
	err = read_file(u, image, state, &e);
	if (err == -ESTALE) {
		image_reject(image);
		state->again = true; /* from now on on a budget */
	}
	if (err && state->number)
		state->rows = before.rows; /* the segments */
	if (err)
		snprintf(state->why, sizeof(state->why), "%.190s", e.what);
	else
		state->removed = false;
	return err == -ENOMEM ? err : 0;
}

void unwind_has_no_room(struct unwind_image_state *state)
{
	state->no_room = true;
	unwind_rows_free(&state->rows);
}

int unwind_add_image(struct unwind *u, size_t number, uint64_t until_ns)
{
	struct unwind_image_state *state = &u->images[number];
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct unwind_sizes need;
	bool is_new;
	int err;

	if (!state->rows.count) {
		unwind_rows_free(&state->rows);
		return 0;
	}
	unwind_tables_image_sizes(&state->rows, &need);
	do {
		is_new = state->number == UNWIND_NO_IMAGE;
		err = is_new ? unwind_tables_add(&u->tables, &state->rows, state->root_owned,
						 &state->number)
			     : unwind_tables_fill(&u->tables, &state->rows, state->root_owned,
						  state->number);
		if (err && is_new)
			state->number = UNWIND_NO_IMAGE;
	} while ((err == -ENOSPC || err == -EDQUOT) &&
		 unwind_make_room(u, err == -EDQUOT, until_ns) == 0);
	add_time(u, state, begin_ns);
	if (err == -EFBIG ||
	    ((err == -ENOSPC || err == -EDQUOT) && is_new &&
	     unwind_tables_reserve(&u->tables, state->root_owned, &state->number))) {
		unwind_has_no_room(state);
		return 0;
	}
	unwind_rows_free(&state->rows);
	if (err == -ENOSPC || err == -EDQUOT)
		err = 0; /* unwind_balance() makes room when ticks come to it */
	if (!err && is_new)
		err = unwind_note_demand(u, state, &need);
	return err ?: is_new ? index_build(u, number) : 0;
}
