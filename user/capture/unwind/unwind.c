// SPDX-License-Identifier: GPL-2.0-only
#include "capture/unwind/unwind.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/sample.h"
#include "capture/image.h"
#include "capture/otel_process.h"
#include "capture/program.h"
#include "capture/snapshot.h"
#include "capture/unwind/unwind_copy.h"
#include "capture/waits.h"
#include "capture/unwind/unwind_space.h"
#include "bpf/member.h" /* of the skeleton */
#include "sample.skel.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/order.h"

/* The unwinder's state of an image, beside struct capture_image. */
struct unwind_image_state {
	bool known;		 /* its file was read, as far as it can be */
	uint32_t number;	 /* in the tables, or UNWIND_NO_IMAGE */
	struct unwind_rows rows; /* its segments, and its rows until they are in the tables */
	uint64_t device, inode;	 /* of the open file of which it was read; inode 0: none */
	off_t size;		 /* of that file then */
	struct timespec changed;
	uid_t owner;	/* who may have written the file; 0: only root */
	uint64_t payer; /* see find_payer() */
	bool removed;	/* its rows were thrown out of the tables */
	bool wanted;	/* is in unwind.wanted: to be read */
	/*
	 * Bound: users: an image whose rows found no room in the tables; then: stacks end in its
	 * code; again: when ticks come to it, others make room; one larger than the tables never;
	 * share: as UNWIND_SPARE_MIB; seen: unwind_no_room_images.
	 */
	bool no_room;	/* the tables are too small for it */
	bool too_large; /* it takes more than all the room that its owner may have */
	bool again;	/* its file has been opened again: see image_open_again() */
	/* Bound: as TIME_NS. */
	bool deferred;	     /* there was no time to read its file: see is_out_of_time() */
	bool earned;	     /* its code has run for long enough to read it in any case */
	uint64_t file_bytes; /* of a deferred one */
	bool moved;	     /* published mappings of it have another number or bias */
	char why[192];	     /* why it has no rows; "": no failure */
};

/* The unwinder's state of a process, beside struct process. */
struct unwind_process_state {
	struct unwind_space space; /* the mappings that it has, with its ancestors' */
	struct address_space *of;  /* where they are from; NULL: `space` is empty */
	size_t taken;		   /* how many of its own are in `space`, after those absorbed */
	uint64_t key;		   /* by which it is published */
	struct unwind_block block; /* empty: it is not published */
	size_t position;	   /* in unwind.published, plus 1; 0: it is not there */
};

/* How much an image in the tables is used, with or without rows. */
struct unwind_demand {
	uint32_t last;		  /* struct unwind_image.used at the last look */
	uint64_t score;		  /* ticks, of which half are forgotten in 6 seconds */
	uint64_t ticks;		  /* since it has its number */
	uint32_t window;	  /* struct unwind.window at the last of them */
	struct unwind_sizes need; /* of its rows; none: they were not read yet */
};

/*
 * How many processes that it was forked from may give an address space its mappings.
 * Bound: users: forks without exec through which a process inherits mappings; then: those of older
 * ancestors are missing; again: at exec; share: the process's own; seen: stack end mapping_unknown.
 */
#define UNWIND_ANCESTORS_MAX 64

/* Making room needs the walk of copies, and reading an image may need room. */
typedef bool unwind_copy_filter(const struct unwind_copy *copy, void *context);
static int unwind_walk_copies(struct unwind *u, unwind_copy_filter *is_kept, void *context);
static int unwind_withdraw(struct unwind *u, size_t number);
static int unwind_make_room(struct unwind *u, const struct unwind_sizes *need, uid_t owner,
			    uint64_t until_ns);

/* --- Images --- */

static bool is_known(const struct unwind *u, uint32_t image)
{
	return image < u->image_count && u->images[image].known;
}

/* Who may have written the image's open file; 0: only root; UINT32_MAX: anyone. */
static uid_t owner_of(const struct capture_image *image, int fd)
{
	struct stat status;

	if (fstat(fd, &status) || status.st_mode & S_IWOTH)
		return image->provider ?: UINT32_MAX;
	return status.st_uid ? image->provider ?: status.st_uid : 0;
}

struct wanted_contents {
	const struct capture_image *image;
	uid_t owner;
};

/*
 * Whether an image is the same as one of this owner that was read: it has the same build ID, or
 * neither has one and its open file is the same.
 */
static bool is_wanted(const struct unwind_image_state *state, const struct wanted_contents *wanted)
{
	const struct capture_image *image = wanted->image;
	const struct unwind_rows *rows = &state->rows;

	if (state->owner != wanted->owner || state->owner == UINT32_MAX)
		return false;
	if (rows->build_id_size || image->build_id_size)
		return rows->build_id_size == image->build_id_size &&
		       memcmp(rows->build_id, image->build_id, image->build_id_size) == 0;
	return state->inode && image->fd >= 0 && state->inode == image->inode &&
	       state->device == image->device && state->size == image->size &&
	       state->changed.tv_sec == image->changed.tv_sec &&
	       state->changed.tv_nsec == image->changed.tv_nsec;
}

static uint64_t hash_contents(const uint8_t *build_id, size_t size, uint64_t device, uint64_t inode)
{
	return size ? hash_bytes(build_id, size, 0) : hash_u64(device, inode);
}

EQUAL(has_contents, struct unwind_image_state, struct wanted_contents, is_wanted(a, b))

static int index_contents(struct unwind *u, size_t number)
{
	const struct unwind_image_state *state = &u->images[number];
	const struct unwind_rows *rows = &state->rows;
	struct wanted_contents wanted = { &u->processes->images[number], state->owner };
	uint64_t hash =
		hash_contents(rows->build_id, rows->build_id_size, state->device, state->inode);

	if (state->number == UNWIND_NO_IMAGE || (!rows->build_id_size && !state->inode) ||
	    index_find(&u->contents, hash, has_contents, u->images, &wanted) != INDEX_NONE)
		return 0;
	return index_add(&u->contents, hash, number);
}

/* Makes images findable by their contents, anew. Returns 0 or -ENOMEM. */
static int unwind_index_contents(struct unwind *u)
{
	int err = 0;

	index_free(&u->contents);
	for (size_t i = 0; i < u->image_count && !err; i++)
		err = index_contents(u, i);
	return err;
}

/*
 * Any user can create any number of files that each take a second to read. So users' files have a
 * budget of CPU time: at most this much, filled by 1 / USERS_PART of the time that passes. Files
 * that are read again because their rows were removed have the same.
 * Bound: users: CPU time for reading call frame information: of users' files, and always on of
 * root's, too; then: it is read later; again: a tenth of the time that passes fills it, always on 1
 * / 400; or when its code has run 50 times as long as reading takes; share: root and all users
 * each; of these an eighth to each control group of root's, and to each user; seen:
 * unwind_deferred_images.
 */
#define TIME_NS	   (10 * NS_PER_S)
#define USERS_PART 10
/*
 * Always on, root's files have one, too: a build runs any number of new programs.
 * Bound: as TIME_NS.
 */
#define ALWAYS_ON_PART 400
/*
 * One payer has 1 / PAYER_PART of that: a user, or, of root's, a control group. So a service that
 * is deployed after a thousand programs of a build is read at once.
 * Bound: as TIME_NS.
 */
#define PAYER_PART 8
/*
 * What comes when the budget is spent is deferred, but not for good: its ticks are counted, and it
 * is read when its code has run so many times longer than reading is expected to take. So whoever
 * runs code pays for reading it, a small service does not wait for many large programs that ran
 * before it, and all of this reading together takes 1 / EARNED_FACTOR of the CPU time at most.
 * Bound: as TIME_NS.
 */
#define EARNED_FACTOR	 50
#define READ_NS_PER_BYTE 3
#define READ_NS_MIN	 (NS_PER_MS / 2)
#define READ_NS_MAX	 (100 * NS_PER_MS) /* most of a huge file is no call frame information */
/*
 * Always on, where all that the daemon's unit may take is half a GiB, one of users' files: those
 * of compilers are a fifth of that, and take a tenth of a second.
 * Bound: users: CPU time and bytes for one file of a user, always on; then: it has no rows: stacks
 * end in its code; again: when no process maps it any more; share: the file's own; seen: as images
 * without call frame information.
 */
#define USERS_FILE_NS	 NS_PER_S
#define USERS_FILE_BYTES ((uint64_t)128 * 1024 * 1024)

static bool has_budget(const struct unwind *u, const struct unwind_image_state *state)
{
	return state->owner || u->always_on || state->removed || state->again;
}

static void fill_time(struct unwind_time *time, uint64_t now_ns, uint64_t part, uint64_t most_part)
{
	const int64_t most = TIME_NS / most_part;

	time->left_ns += (now_ns - time->filled_ns) / part;
	time->left_ns = MIN(time->left_ns, most);
	time->filled_ns = now_ns;
}

/* Who pays for reading an image, never 0: its user, or else the control group that it came from. */
static uint64_t find_payer(const struct capture_image *image, uid_t owner)
{
	return hash_u64(owner, owner ? 0 : image->group) ?: 1;
}

/* The time that is left to a payer: the one that has not asked for longest makes room. */
static struct unwind_time *payer_time(struct unwind *u, uint64_t payer)
{
	struct unwind_payer *oldest = &u->payers[0];

	for (size_t i = 0; i < UNWIND_PAYERS; i++) {
		if (u->payers[i].payer == payer)
			return &u->payers[i].time;
		if (u->payers[i].time.filled_ns < oldest->time.filled_ns)
			oldest = &u->payers[i];
	}
	*oldest = (struct unwind_payer){ payer, { TIME_NS / PAYER_PART, now_ns() } };
	return &oldest->time;
}

static bool is_out_of_time(struct unwind *u, const struct unwind_image_state *state)
{
	struct unwind_time *time = state->owner ? &u->users_time : &u->root_time, *own;
	uint64_t now = now_ns(), part = u->always_on ? ALWAYS_ON_PART : USERS_PART;

	if (!has_budget(u, state))
		return false;
	own = payer_time(u, state->payer);
	fill_time(time, now, part, 1);
	fill_time(own, now, part * PAYER_PART, PAYER_PART);
	return !state->earned && (time->left_ns <= 0 || own->left_ns <= 0);
}

/* The files that are mapped when recording starts are read in any case. */
static void add_time(struct unwind *u, const struct unwind_image_state *state, uint64_t begin_ns)
{
	uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;

	if (state->earned || (!state->owner && (!u->ring || !has_budget(u, state))))
		return;
	*(state->owner ? &u->users_time.left_ns : &u->root_time.left_ns) -= ns;
	if (u->ring)
		payer_time(u, state->payer)->left_ns -= ns;
}

static void set_owner(struct unwind_image_state *state, const struct capture_image *image,
		      uid_t owner)
{
	state->owner = owner;
	state->payer = find_payer(image, owner);
}

/*
 * Reads the rows of an open file. -ESTALE: it is another build than was mapped, since it was opened
 * by its path, and that has been replaced or is in another root directory.
 */
static int read_rows(struct unwind *u, const struct capture_image *image, int fd,
		     struct unwind_image_state *state, struct error *e)
{
	struct read_budget users_file = { .bytes = USERS_FILE_BYTES, .memory = USERS_FILE_BYTES };
	struct read_budget *budget = NULL;
	struct unwind_rows *rows = &state->rows;
	struct stat status;
	int err;

	set_owner(state, image, owner_of(image, fd));
	if (is_out_of_time(u, state)) {
		state->deferred = true;
		refusals_add(&u->processes->refusals, state->owner, REFUSAL_UNWIND_TIME, 1, 0);
		state->file_bytes = fstat(fd, &status) ? 0 : status.st_size;
		rows->build_id_size = image->build_id_size;
		memcpy(rows->build_id, image->build_id, sizeof(rows->build_id));
		return error_set(e, 0, "so many new files came that it is read later");
	}
	if (u->always_on && state->owner) {
		users_file.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + USERS_FILE_NS;
		budget = &users_file;
	}
	err = u->read(u->parser, fd, image->path, image->provider, u->wishes, budget, rows, e);
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
static int read_by_name(struct unwind *u, const struct capture_image *image,
			struct unwind_image_state *state, struct error *e)
{
	const char *why = image->why ?: "its file could not be opened";
	const struct opener_target target = { .uid = image->provider };
	struct error here = { 0 };
	struct opened_file file;
	int fd, err;

	if (!image->build_id_size)
		return error_set(e, 0, "%s", why);
	fd = opener_open_path(&u->processes->opener, &target, image->root, image->path, true,
			      &file);
	if (fd < 0)
		return error_set(e, 0, "%s; by its path, now: %s", why,
				 fd == -EINVAL	 ? "not a regular file"
				 : fd == -ENOENT ? "no such file"
						 : strerror(-fd));
	if (file_is_of(&file.status, image->provider))
		err = read_rows(u, image, fd, state, &here);
	else
		err = error_set(&here, 0, "a file of another user");
	close(fd);
	return err ? error_set(e, 0, "%s; by its path, now: %s", why, here.what) : 0;
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
	set_owner(state, image,
		  is_vdso	   ? 0
		  : image->fd >= 0 ? owner_of(image, image->fd)
				   : UINT32_MAX);
	/*
	 * Until the rows are read, stacks through the image are copied, or lost: on a busy machine
	 * this thread goes first. Not for users' files: they could use that to slow down others.
	 */
	if (!state->owner)
		setpriority(PRIO_PROCESS, 0, -20); /* no matter if this is not allowed */
	if (is_vdso)
		err = u->read(u->parser, -1, image->path, 0, NULL, NULL, &state->rows, e);
	else if (image->fd >= 0)
		err = read_rows(u, image, image->fd, state, e);
	else
		err = read_by_name(u, image, state, e);
	add_time(u, state, begin_ns - state->rows.cost_ns);
	return err;
}

/* Those that no process maps stay in the order in which they became idle. */
static void drop_idle(struct unwind *u, size_t i)
{
	memmove(u->idle + i, u->idle + i + 1, (--u->idle_count - i) * sizeof(*u->idle));
}

/* If there is an idle image with the same contents, moves it to *state. */
static bool unwind_revive(struct unwind *u, const struct capture_image *image,
			  struct unwind_image_state *state)
{
	const struct wanted_contents of_root = { image, 0 }, of_user = { image, image->provider };

	for (size_t i = 0; i < u->idle_count; i++) {
		if (!is_wanted(&u->idle[i], &of_root) && !is_wanted(&u->idle[i], &of_user))
			continue;
		*state = u->idle[i];
		drop_idle(u, i);
		return true;
	}
	return false;
}

/* Notes an image's number in the tables, and what it needs. Returns 0 or -ENOMEM. */
static int unwind_note_demand(struct unwind *u, const struct unwind_image_state *state,
			      const struct unwind_sizes *need)
{
	if (array_reserve(&u->demands, &u->demand_room, state->number + 1, sizeof(*u->demands)))
		return -ENOMEM;
	u->demands[state->number] = (struct unwind_demand){
		.last = u->tables.images[state->number].used,
		.window = u->window,
		.need = *need,
	};
	return 0;
}

/* Gives an image the number and the segments of one with the same contents. */
static void take_same(struct unwind *u, size_t number, const struct unwind_image_state *same)
{
	struct unwind_image_state *state = &u->images[number];

	*state = *same; /* rows and rules are in the tables */
	state->payer = find_payer(&u->processes->images[number], same->owner);
	state->wanted = state->moved = state->removed = false;
}

/*
 * Reads the rows of an image, unless they are in the tables. Returns 0 or -ENOMEM; why there are
 * none is in its state.
 */
static int unwind_read_image(struct unwind *u, size_t number)
{
	struct capture_image *image = &u->processes->images[number];
	struct unwind_image_state *state = &u->images[number];
	struct wanted_contents wanted = { .image = image };
	uint64_t hash =
		hash_contents(image->build_id, image->build_id_size, image->device, image->inode);
	uint32_t same = index_find(&u->contents, hash, has_contents, u->images, &wanted);
	const struct unwind_image_state before = *state;
	struct error e = { 0 };
	int err;

	/*
	 * One with the same contents, such as the same program in another container. Only files of
	 * root, and those of the same user are found: with a forged build ID a user could choose
	 * how others' stacks are walked.
	 */
	if (same == INDEX_NONE && image->provider) {
		wanted.owner = image->provider;
		same = index_find(&u->contents, hash, has_contents, u->images, &wanted);
	}

	/* One with the same contents was read meanwhile. */
	for (size_t i = 0; unwind_tables_has_rows(&u->tables, before.number); i++)
		if (i != number && u->images[i].number == before.number && !u->images[i].deferred) {
			take_same(u, number, &u->images[i]);
			return 0;
		}
	*state = (struct unwind_image_state){
		.known = true,
		.number = before.number,
		.removed = before.removed,
		.again = before.again,
		.earned = before.earned,
		.device = image->device,
		.inode = image->fd >= 0 ? image->inode : 0,
		.size = image->size,
		.changed = image->changed,
	};
	image->is_reopened = false;
	if (!state->number && unwind_revive(u, image, state))
		return index_contents(u, number);
	if (!state->number && same != INDEX_NONE) {
		take_same(u, number, &u->images[same]);
		return 0;
	}
	err = read_file(u, image, state, &e);
	if (err == -ESTALE) {
		image_reject(u->processes, image);
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

/* Frees the rows that were read, and notes that there is no room for them. */
static void drop_rows_no_room(struct unwind_image_state *state, bool too_large)
{
	state->no_room = true;
	state->too_large = too_large;
	unwind_rows_free(&state->rows);
}

/*
 * Moves the rows that were read into the tables; until_ns as for unwind_make_room(). Returns 0 or
 * -ENOMEM.
 */
static int unwind_add_image(struct unwind *u, size_t number, uint64_t until_ns)
{
	struct unwind_image_state *state = &u->images[number];
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct unwind_sizes need;
	bool is_new;
	int err;

	if (!state->rows.count) {
		unwind_rows_free(&state->rows);
		if (!state->deferred || state->number != UNWIND_NO_IMAGE ||
		    unwind_tables_reserve(&u->tables, state->owner, &state->number))
			return 0;
		err = unwind_note_demand(u, state, &(struct unwind_sizes){ 0 });
		return err ?: index_contents(u, number);
	}
	unwind_tables_image_sizes(&state->rows, &need);
	do {
		is_new = state->number == UNWIND_NO_IMAGE;
		err = is_new ? unwind_tables_add(&u->tables, &state->rows, state->owner,
						 &state->number)
			     : unwind_tables_fill(&u->tables, &state->rows, state->owner,
						  state->number);
		if (err && is_new)
			state->number = UNWIND_NO_IMAGE;
	} while ((err == -ENOSPC || err == -EDQUOT) &&
		 unwind_make_room(u, &need, state->owner, until_ns) == 0);
	add_time(u, state, begin_ns);
	if (err == -EFBIG || err == -ENOSPC || err == -EDQUOT)
		refusals_add(&u->processes->refusals, state->owner, REFUSAL_UNWIND_ROOM, 1, 0);
	if (err == -EFBIG || ((err == -ENOSPC || err == -EDQUOT) && is_new &&
			      unwind_tables_reserve(&u->tables, state->owner, &state->number))) {
		drop_rows_no_room(state, err == -EFBIG);
		return 0;
	}
	unwind_rows_free(&state->rows);
	if (err == -ENOSPC || err == -EDQUOT)
		err = 0; /* unwind_balance() makes room when ticks come to it */
	is_new = is_new || !u->demands[state->number].need.rows;
	if (!err && is_new)
		err = unwind_note_demand(u, state, &need);
	return err ?: is_new ? index_contents(u, number) : 0;
}

/* --- Images that no process maps --- */

/* Removes an image that no living process maps from the tables. Returns 0 or -ENOMEM. */
static int remove_unmapped(struct unwind *u, uint32_t number)
{
	for (size_t i = 0; i < u->idle_count; i++)
		if (u->idle[i].number == number) {
			drop_idle(u, i);
			break;
		}
	for (size_t i = 0; i < u->image_count; i++)
		if (u->images[i].number == number) {
			u->images[i].number = UNWIND_NO_IMAGE;
			u->images[i].removed = true;
			u->has_removed = true;
		}
	u->past.known = false;
	/* No tick can read it any more: its blocks can be used again at once. */
	return unwind_tables_remove(&u->tables, number);
}

/*
 * How much stays of what no process maps: a program that is started now and then is read once, and
 * one whose reading was deferred keeps its ticks. What users have may be half of it.
 * Bound: users: rows and images that no process maps; then: what is idle for longest goes; again:
 * it is read when it starts, if there is time; share: half to users' files; seen: not seen, but as
 * CPU time.
 */
#define IDLE_ROWS   ((size_t)3 << 20) /* 12 MiB */
#define IDLE_IMAGES 4096

/*
 * An hour, with windows of a minute. What root has stays: the time to read it again is short, and
 * goes to new programs.
 * Bound: users: windows for which rows of a user's file are kept without a tick; then: they are
 * removed; again: they are read when ticks come, if there is time; share: the file's own; seen: as
 * stacks that end in its code meanwhile.
 */
#define ROWS_KEEP_WINDOWS 60

/*
 * Removes rows of users' files without ticks for ROWS_KEEP_WINDOWS, mapped or not; then what has
 * been idle for longest, of users' files if these have more than half.
 */
static int limit_idle(struct unwind *u)
{
	size_t rows = 0, users_rows = 0, users = 0, count = u->idle_count;
	int err = 0;

	for (size_t i = 0; i < u->image_count && !err; i++) {
		const struct unwind_image_state *state = &u->images[i];

		if (state->owner && unwind_tables_has_rows(&u->tables, state->number) &&
		    u->window - u->demands[state->number].window >= ROWS_KEEP_WINDOWS)
			err = unwind_tables_empty(&u->tables, state->number);
	}
	for (size_t i = 0; i < count; i++) {
		rows += u->tables.extents[u->idle[i].number].of[UNWIND_KIND_ROWS].size;
		if (!u->idle[i].owner)
			continue;
		users_rows += u->tables.extents[u->idle[i].number].of[UNWIND_KIND_ROWS].size;
		users++;
	}
	for (size_t i = 0; i < u->idle_count && !err;) {
		uint32_t number = u->idle[i].number;
		bool is_users = u->idle[i].owner != 0;
		bool is_old =
			is_users && u->window - u->demands[number].window >= ROWS_KEEP_WINDOWS;
		bool users_first = users_rows > IDLE_ROWS / 2 || users > IDLE_IMAGES / 2;

		if (!is_old &&
		    ((rows <= IDLE_ROWS && count <= IDLE_IMAGES) || is_users != users_first)) {
			i++;
			continue;
		}
		rows -= u->tables.extents[number].of[UNWIND_KIND_ROWS].size;
		users_rows -= is_users ? u->tables.extents[number].of[UNWIND_KIND_ROWS].size : 0;
		users -= is_users;
		count--;
		err = remove_unmapped(u, number);
	}
	return err;
}

/* So that the BPF program sends the code object again when a tick comes to it. */
static void forget_sent(uint64_t process, uint64_t code, void *context)
{
	const struct unwind *u = context;
	const struct language_code_key key = { process, code };

	bpf_map_delete_elem(u->language_sent, &key);
	/* After it: a CPU that looks it up meanwhile must not go on knowing it. */
	__atomic_add_fetch(u->codes_replaced, 1, __ATOMIC_SEQ_CST);
}

int unwind_forget_images(struct unwind *u, uint64_t begin_ns)
{
	/* Of each number in the tables, whether an image has it, idle or not. */
	bool *in_use = calloc(u->tables.used.images + 1, sizeof(*in_use));
	const struct process_table *table = u->processes;
	int err = in_use ? 0 : -ENOMEM;

	u->window++;
	for (size_t i = 0; i < u->image_count && i < table->image_count && !err; i++)
		if (table->images[i].path)
			in_use[u->images[i].number] = true;
	for (size_t i = 0; i < u->image_count && !err; i++) {
		struct unwind_image_state *state = &u->images[i];

		if ((i < table->image_count && table->images[i].path) || !state->known)
			continue;
		unwind_rows_free(&state->rows);
		if (state->number != UNWIND_NO_IMAGE && !in_use[state->number]) {
			in_use[state->number] = true;
			err = array_add(u->idle, u->idle_count, u->idle_room, *state);
		}
		memset(state, 0, sizeof(*state));
	}
	free(in_use);
	u->image_count = MIN(u->image_count, table->image_count);
	u->state_count = MIN(u->state_count, table->count);
	array_trim(&u->images, &u->image_room, u->image_count, sizeof(*u->images));
	array_trim(&u->states, &u->state_room, u->state_count, sizeof(*u->states));
	array_trim(&u->copies, &u->copy_room, u->copy_count, sizeof(*u->copies));
	err = err ?: limit_idle(u) ?: unwind_tables_trim(&u->tables);
	if (!err && scripts_forget(&u->scripts, u->processes, begin_ns))
		*u->codes_since_ns = now_ns();
	return err ?: unwind_index_contents(u);
}

/* --- Room in the tables --- */

struct room {
	const struct unwind *u;
	uint64_t until_ns;
	bool *alive;  /* by the number of the process */
	bool *mapped; /* by the number in the tables: by a living process */
};

/*
 * Marks the images that an address space maps, unless `mapped` is NULL. Returns whether they are
 * all read, as far as they can be.
 */
static bool mark_mapped(const struct unwind *u, const struct address_space *space, bool *mapped)
{
	struct space_walk walk = { space, space->count };
	const struct capture_mapping *mapping;
	bool all = true;

	while ((mapping = space_next(&walk))) {
		if (!is_known(u, mapping->image))
			all = false;
		else if (mapped)
			mapped[u->images[mapping->image].number] = true;
	}
	return all;
}

/*
 * Copies of living processes can wait, as these keep their images. Others are walked now if their
 * images are read; if not, their images stay until then.
 */
static bool keeps_copy(const struct unwind_copy *copy, void *context)
{
	const struct room *room = context;
	const struct unwind *u = room->u;
	struct process *process =
		process_at(u->processes, sample_id_tgid(copy->process), copy->time_ns);
	const struct address_space *space;

	if (!process)
		return true; /* nothing is known of it before until_ns */
	space = process_space_at(process, copy->time_ns);
	if (room->alive[process - u->processes->processes] && space == process_space(process))
		return true;
	if (copy->time_ns < room->until_ns && mark_mapped(u, space, NULL))
		return false;
	mark_mapped(u, space, room->mapped);
	return true;
}

/* Numbers of images with their scores, to be sorted. */
struct scored {
	bool mapped; /* or else it is thrown out first */
	uint64_t score;
	uint32_t number; /* in the tables */
	uint32_t image;	 /* any that has it; of a list of those without rows */
};

ORDER(least_first, struct scored, LEAST(mapped) ?: LEAST(score) ?: LEAST(number))

/*
 * Marks what the living processes map, and withdraws the others. Stacks of these that were copied
 * before room->until_ns are walked, and the images of later ones stay. Returns 0 or -ENOMEM; in any
 * case the caller frees the two arrays.
 */
static int find_mapped(struct unwind *u, struct room *room)
{
	int err;

	room->alive = calloc(u->processes->count + 1, sizeof(*room->alive));
	room->mapped = calloc(u->tables.used.images, sizeof(*room->mapped));
	err = room->alive && room->mapped ? 0 : -ENOMEM;
	for (size_t i = 0; i < u->processes->count && !err; i++) {
		struct process *process = &u->processes->processes[i];
		bool published = i < u->state_count && u->states[i].block.size;

		/* Most have ended long ago: /proc is asked about the others only. */
		if ((process->ended && !published) || process_is_gone(process)) {
			err = published ? unwind_withdraw(u, i) : 0;
			continue;
		}
		room->alive[i] = true;
		mark_mapped(u, process_space(process), room->mapped);
	}
	return err ?: unwind_walk_copies(u, keeps_copy, room);
}

/*
 * Throws out of the tables what is used least, until `need` of this owner may fit: first what no
 * living process maps; what others map only for an image that has a score, and if all of it
 * together has less than half of that: else two would take turns. Over its own share an owner's
 * files make room, over that of users those of all users. Returns 0, -ENOENT: nothing was thrown
 * out, or -ENOMEM.
 */
static int throw_out(struct unwind *u, const struct room *room, const struct unwind_sizes *need,
		     uid_t owner, uint64_t score)
{
	struct unwind_tables *t = &u->tables;
	struct scored *all = calloc(t->used.images, sizeof(*all));
	bool *listed = calloc(t->used.images, sizeof(*listed)), unmapped = false;
	size_t count = 0, end = 0;
	struct unwind_sizes free_sizes, share;
	uint64_t sum = 0;
	bool over_share, over_own;
	int err = all && listed ? 0 : -ENOMEM;

	unwind_tables_share(t, owner, &share, &over_own);
	over_share = !unwind_is_enough(&share, need);
	over_own &= over_share;
	for (size_t i = 0; i < u->image_count + u->idle_count && !err; i++) {
		uint32_t number = i < u->image_count ? u->images[i].number
						     : u->idle[i - u->image_count].number;

		if (number == UNWIND_NO_IMAGE || listed[number] ||
		    (room->mapped[number] && !unwind_tables_has_rows(t, number)) ||
		    (over_share && !t->extents[number].owner) ||
		    (over_own && t->extents[number].owner != owner))
			continue;
		listed[number] = true; /* images of one build have the same number */
		all[count++] = (struct scored){ room->mapped[number], u->demands[number].score,
						number, 0 };
	}
	if (count)
		qsort(all, count, sizeof(*all), least_first);
	unwind_tables_free_sizes(t, &free_sizes);
	if (over_share)
		free_sizes = share;
	/* At least one: if there is enough, it is in pieces. */
	do {
		if (end < count && all[end].mapped)
			sum += all[end].score;
		if (end == count || (all[end].mapped && (!score || 2 * sum > score))) {
			err = err ?: -ENOENT;
			break;
		}
		unwind_add_extent(&free_sizes, &t->extents[all[end].number], 1);
		end++;
	} while (!unwind_is_enough(&free_sizes, need));
	for (size_t i = 0; i < end && !err; i++) {
		const struct unwind_extent *extent = &t->extents[all[i].number];
		struct unwind_sizes without = free_sizes;

		unwind_add_extent(&without, extent, -1);
		if (i + 1 < end && unwind_is_enough(&without, need)) {
			free_sizes = without; /* small libraries that do not help stay */
			continue;
		}
		u->evicted += unwind_tables_has_rows(t, all[i].number);
		if (all[i].mapped) {
			err = unwind_tables_empty(t, all[i].number);
		} else {
			err = remove_unmapped(u, all[i].number);
			unmapped = true;
		}
	}
	free(all);
	free(listed);
	return !err && unmapped ? unwind_index_contents(u) : err;
}

/* Makes room for a new image. Returns as throw_out(). */
static int unwind_make_room(struct unwind *u, const struct unwind_sizes *need, uid_t owner,
			    uint64_t until_ns)
{
	struct room room = { .u = u, .until_ns = until_ns };
	int err = find_mapped(u, &room) ?: throw_out(u, &room, need, owner, 0);

	free(room.alive);
	free(room.mapped);
	return err;
}

/* --- What is used least makes room --- */

/* Longer than UNWIND_GRACE_NS: what was emptied at one look is free at the next. Bound: pace. */
#define BALANCE_NS   (500 * NS_PER_MS)
#define DEMAND_DECAY 16
/* How many of the images without rows, the most used first, are tried at each look. Bound: pace. */
#define TRIES 8

/* Queues an image to be read; again: not for the first time, on a budget. Returns 0 or -ENOMEM. */
static int want_image(struct unwind *u, uint32_t image, bool again)
{
	if (u->images[image].wanted)
		return 0;
	if (array_add(u->wanted, u->wanted_count, u->wanted_room, image))
		return -ENOMEM;
	u->images[image].wanted = true;
	u->images[image].again |= again;
	return 0;
}

/*
 * Has what is used least make room for what is used more: looks at how often ticks came to each
 * image, makes room for the most used one that has no rows, and adds it to u->wanted when they fit.
 * Returns 0 or -ENOMEM.
 */
static int unwind_balance(struct unwind *u, uint64_t until_ns)
{
	struct unwind_tables *t = &u->tables;
	struct room room = { .u = u, .until_ns = until_ns };
	struct scored *lacking;
	size_t count = 0;
	int err = 0;

	if (now_ns() < u->next_balance_ns)
		return 0;
	u->next_balance_ns = now_ns() + BALANCE_NS;
	for (uint32_t i = 1; i < t->used.images && i < u->demand_room; i++) {
		struct unwind_demand *demand = &u->demands[i];
		uint32_t used = t->images[i].used;

		/* In 1 / DEMAND_DECAY of a tick, so that one tick is forgotten, too. */
		demand->score -= (demand->score + DEMAND_DECAY - 1) / DEMAND_DECAY;
		demand->score += (uint64_t)(used - demand->last) * DEMAND_DECAY;
		demand->ticks += used - demand->last;
		demand->window = used == demand->last ? demand->window : u->window;
		demand->last = used;
	}
	lacking = calloc(u->image_count + 1, sizeof(*lacking));
	if (!lacking)
		return -ENOMEM;
	for (size_t i = 0; i < u->image_count && !err; i++) {
		struct unwind_image_state *state = &u->images[i];
		uint32_t number = state->number;
		bool ticks = number != UNWIND_NO_IMAGE && u->demands[number].score;

		/* A deferred one is read when its code has run for long enough, or there is time.
		 */
		if (state->deferred && ticks) {
			uint64_t cost = state->file_bytes < READ_NS_MAX / READ_NS_PER_BYTE
						? state->file_bytes * READ_NS_PER_BYTE
						: READ_NS_MAX;

			cost = MAX(cost, READ_NS_MIN);
			state->earned =
				u->demands[number].ticks * u->tick_ns >= cost * EARNED_FACTOR;
		}
		if (state->deferred && (ticks || number == UNWIND_NO_IMAGE) &&
		    !is_out_of_time(u, state))
			err = want_image(u, i, true);
		if (ticks && u->demands[number].need.rows && !unwind_tables_has_rows(t, number))
			lacking[count++] = (struct scored){ .score = u->demands[number].score,
							    .number = number,
							    .image = i };
	}
	qsort(lacking, count, sizeof(*lacking), least_first);
	/* The most used first. */
	for (size_t i = count; !err && i-- > 0 && count - i <= TRIES;)
		if (unwind_tables_fit(t, &u->demands[lacking[i].number].need,
				      u->images[lacking[i].image].owner)) {
			err = want_image(u, lacking[i].image, true);
			count = 0;
			break;
		}
	if (!err && count && !t->emptied_count) { /* else there will be room at the next look */
		err = find_mapped(u, &room) ?: -ENOENT;
		for (size_t i = count; err == -ENOENT && i-- > 0 && count - i <= TRIES;) {
			const struct unwind_sizes *need = &u->demands[lacking[i].number].need;

			err = throw_out(u, &room, need, u->images[lacking[i].image].owner,
					lacking[i].score);
		}
		err = err == -ENOENT ? 0 : err;
		free(room.alive);
		free(room.mapped);
	}
	free(lacking);
	return err;
}

/*
 * Adds to u->wanted the images that were removed from the tables and are among the new mappings of
 * a process that has changed; its parent's are wanted by the parent. So an image that found no room
 * is not read again whenever its process maps something else. Returns 0 or -ENOMEM.
 */
static int want_removed(struct unwind *u)
{
	const struct process_table *table = u->processes;
	int err = 0;

	for (size_t i = 0; u->has_removed && i < table->changed_count; i++) {
		uint32_t number = table->changed[i];
		const struct address_space *space = process_space(&table->processes[number]);
		size_t taken = 0;

		if (number < u->state_count && u->states[number].of == space)
			taken = space->absorbed + u->states[number].taken;
		for (; taken < space->count && !err; taken++) {
			uint32_t image = space->mappings[taken].image;

			if (is_known(u, image) && u->images[image].removed)
				err = want_image(u, image, false);
		}
	}
	return err;
}

/*
 * Adds to u->wanted the images that are new, and those whose files could be opened now, unlike
 * before. Returns 0 or -ENOMEM.
 */
static int want_new(struct unwind *u)
{
	struct capture_image *images = u->processes->images;
	size_t count = u->processes->image_count;
	int err = 0;

	if (array_reserve(&u->images, &u->image_room, count, sizeof(*u->images)))
		return -ENOMEM;
	u->image_count = count;
	for (size_t i = 0; i < count && !err; i++) {
		if (images[i].path && !u->images[i].known)
			err = want_image(u, i, false);
		/* If it has a number, it was found by its name, or by its build ID. */
		else if (images[i].is_reopened && u->images[i].number == UNWIND_NO_IMAGE)
			err = want_image(u, i, true);
		images[i].is_reopened = false;
	}
	return err;
}

int unwind_prepare(struct unwind *u, struct sample_bpf *bpf)
{
	struct unwind_sizes need = { 0 }, users = { 0 };
	int err = want_new(u), nice = getpriority(PRIO_PROCESS, 0);
	bool has_contexts = false;

	u->root_time = u->users_time = (struct unwind_time){ TIME_NS, now_ns() };
	for (size_t i = 0; i < u->wanted_count && !err; i++) {
		struct unwind_image_state *state = &u->images[u->wanted[i]];

		err = unwind_read_image(u, u->wanted[i]);
		setpriority(PRIO_PROCESS, 0, nice);
		has_contexts |= state->rows.context.count && u->wishes;
		if (!err && state->rows.count &&
		    !unwind_tables_want(&need, &users, &state->rows, !state->owner))
			drop_rows_no_room(state, true);
	}
	u->wanted_count = 0;
	for (size_t i = 0; i < u->processes->count && !err; i++)
		need.mappings += process_space(&u->processes->processes[i])->count;
	bpf_program__set_autoload(bpf->progs.list_exec_numbers, true);
	u->spare_mib = u->spare_mib ?: UNWIND_SPARE_MIB;
	err = err ?: unwind_tables_size(&u->tables, &need, &users, u->spare_mib, bpf);
	err = err
		      ?: bpf_map__set_max_entries(bpf->maps.context_values,
						  has_contexts ? CONTEXT_VALUES : 1);
	snprintf(u->no_room_why, sizeof(u->no_room_why),
		 "no room in the unwind tables (%zu MiB): give --unwind-memory more than %u",
		 unwind_tables_bytes(&u->tables.room) >> 20, u->spare_mib);
	return err;
}

enum capture_rows unwind_rows_state(const struct unwind *u, uint32_t image, const char **why)
{
	const struct unwind_image_state *state = &u->images[image];

	*why = NULL;
	if (image >= u->image_count)
		return CAPTURE_ROWS_NONE;
	if (unwind_tables_has_rows(&u->tables, state->number))
		return CAPTURE_ROWS_READ;
	*why = state->why[0] ? state->why : NULL;
	if (!state->deferred &&
	    (state->no_room || state->removed || state->number != UNWIND_NO_IMAGE)) {
		*why = *why ?: u->no_room_why;
		return CAPTURE_ROWS_NO_ROOM;
	}
	return *why ? CAPTURE_ROWS_UNREAD : CAPTURE_ROWS_NONE;
}

/* --- Processes --- */

/*
 * The searches in the tables require addresses below this: see mask_if_not_above().
 * Bound: format.
 */
#define USER_LIMIT (1ULL << 63)

/* Mappings of a process, ordered by time. */
struct mapping_list {
	struct unwind_mapping *mappings;
	size_t count, room;
};

/* Appends mappings [from, to) of an address space. Their number has a budget: process_budget(). */
static int list_mappings(const struct unwind *u, struct mapping_list *list,
			 const struct address_space *of, size_t from, size_t to)
{
	if (array_reserve(&list->mappings, &list->room, list->count + (to - from),
			  sizeof(*list->mappings)))
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		const struct capture_mapping *mapping = &of->mappings[i];
		const struct unwind_image_state *image = &u->images[mapping->image];

		if (mapping->start <
		    USER_LIMIT) /* not the vsyscall page: nothing is called there */
			list->mappings[list->count++] = (struct unwind_mapping){
				.start = mapping->start,
				.limit = mapping->limit,
				.bias = unwind_bias(image->rows.segments, image->rows.segment_count,
						    mapping->start, mapping->limit,
						    mapping->offset),
				.image = image->number,
			};
	}
	return 0;
}

/*
 * Adds the mappings of an address space from number `from` on; 0: also its ancestors'. Returns 0,
 * -ENOMEM, or -ENOSPC: the last ones found no room.
 */
static int take_mappings(const struct unwind *u, struct unwind_space *space,
			 const struct address_space *of, size_t from)
{
	struct {
		const struct address_space *space;
		size_t count;
	} ancestors[UNWIND_ANCESTORS_MAX];
	const struct address_space *at = of;
	struct mapping_list list = { 0 };
	size_t count = 0;
	int err = 0;

	for (; !from && at->parent && count < UNWIND_ANCESTORS_MAX; count++) {
		ancestors[count].count = space_inherited(at);
		at = at->parent;
		ancestors[count].space = at;
	}
	while (count-- > 0 && !err) /* the oldest first */
		err = list_mappings(u, &list, ancestors[count].space, 0, ancestors[count].count);
	err = err ?: list_mappings(u, &list, of, from, of->count);
	err = err ?: unwind_space_map(space, list.mappings, list.count);
	free(list.mappings);
	return err;
}

/* Drops the mappings that were taken of a process. */
static void drop_space(struct unwind *u, struct unwind_process_state *state)
{
	u->processes->copied_bytes -= state->space.count * sizeof(struct unwind_mapping);
	free(state->space.mappings);
	state->space = (struct unwind_space){ 0 };
	space_put(u->processes, state->of);
	state->of = NULL;
	state->taken = 0;
}

/* Another process may have the PID by now, and may be published with the same key. */
static int withdraw_block(struct unwind *u, size_t number)
{
	struct unwind_process_state *state = &u->states[number];
	const struct process *last =
		process_find(u->processes, u->processes->processes[number].pid);
	size_t other = last - u->processes->processes;
	bool shared = other != number && other < u->state_count && u->states[other].block.size &&
		      u->states[other].key == state->key;

	if (state->position) {
		uint32_t moved = u->published[--u->published_count];

		u->published[state->position - 1] = moved;
		u->states[moved].position = state->position;
		state->position = 0;
	}
	return unwind_tables_withdraw(&u->tables, shared ? 0 : state->key, &state->block);
}

/* Makes the process unknown to the BPF program. Returns 0 or -ENOMEM, as do the calls below. */
static int unwind_withdraw(struct unwind *u, size_t number)
{
	drop_space(u, &u->states[number]);
	return withdraw_block(u, number);
}

int unwind_forget(struct unwind *u)
{
	int err = 0;

	for (size_t i = 0; i < u->state_count && !err; i++)
		if (u->processes->processes[i].forgotten)
			err = unwind_withdraw(u, i);
	free(u->past.space.mappings);
	memset(&u->past, 0, sizeof(u->past));
	return err;
}

ORDER(compare_uids, uid_t, COMPARE(*a, *b))

/* Of the published ones, at a time. Bound: pace. */
#define WITHDRAWN_PART 8

/*
 * Makes room for a process that is not published for lack of it: withdraws some of those of the
 * user who has most. Those in which ticks come send copies, and are published again. Returns how
 * many it withdrew.
 */
static size_t withdraw_some(struct unwind *u, size_t number)
{
	uid_t *uids = calloc(u->published_count + 1, sizeof(*uids)), uid = UINT32_MAX;
	size_t left = u->published_count / WITHDRAWN_PART + 1, count = 0, most = 0;
	size_t published = uids ? u->published_count : 0;

	for (size_t i = 0; i < published; i++)
		uids[i] = u->processes->processes[u->published[i]].uid;
	if (published)
		qsort(uids, published, sizeof(*uids), compare_uids);
	for (size_t begin = 0, i = 1; i <= published; i++) {
		if (i < published && uids[i] == uids[begin])
			continue;
		if (i - begin > most) {
			most = i - begin;
			uid = uids[begin];
		}
		begin = i;
	}
	free(uids);
	for (size_t i = 0; i < u->published_count && count < left;) {
		uint32_t other = u->published[i];

		if (other == number || u->processes->processes[other].uid != uid) {
			i++;
			continue;
		}
		if (unwind_withdraw(u, other)) /* takes it out of u->published */
			break;
		count++;
	}
	refusals_add(&u->processes->refusals, uid, REFUSAL_UNWIND_PROCESS, count, 0);
	return count;
}

static int publish_space(struct unwind *u, size_t number, uint64_t key)
{
	struct unwind_process_state *state = &u->states[number];
	int err = 0;

	/* unwind_update() has corrected its exec number. */
	if (state->block.size && state->key != key)
		err = withdraw_block(u, number);
	if (!err && !state->position) {
		if (array_add(u->published, u->published_count, u->published_room, number))
			return -ENOMEM;
		state->position = u->published_count;
	}
	state->key = key;
	if (!err)
		err = unwind_tables_publish(&u->tables, key, state->space.mappings,
					    state->space.count, &state->block);
	if (!err || err == -EAGAIN || err == -ENOMEM)
		return err;
	if (err == -ENOSPC && withdraw_some(u, number) > 0)
		err = unwind_tables_publish(&u->tables, key, state->space.mappings,
					    state->space.count, &state->block);
	if (!err || err == -EAGAIN || err == -ENOMEM)
		return err;
	/* No room: better unpublished, so that its ticks send copies, than outdated. */
	return withdraw_block(u, number);
}

/* Whether the process has an image whose variables are records. */
static bool has_record(const struct unwind *u, const struct unwind_space *space)
{
	const struct unwind_tables *t = &u->tables;

	for (size_t i = 0; i < space->count; i++) {
		const struct context_image *image =
			&t->contexts[t->images[space->mappings[i].image].context];

		for (uint32_t k = 0; k < image->count; k++)
			if (image->variables[k].kind == CONTEXT_RECORD)
				return true;
	}
	return false;
}

/* Returns 0, -ENOMEM, or -EAGAIN: try again later. */
static int publish(struct unwind *u, size_t number)
{
	struct process *process = &u->processes->processes[number];
	struct address_space *space = process_space(process);
	const struct address_space *at = space;
	struct unwind_process_state *state = &u->states[number];
	/* Its leader may end before the others: unwind_update() sees them end. */
	bool ended = process_is_gone(process);
	size_t count = space->count;
	bool over;
	int err = 0;

	/*
	 * Copying the mappings, with the inherited ones, must not exceed the process's budget; else
	 * such stacks are unwound in user space, one by one.
	 */
	for (int i = 0; at->parent && i < UNWIND_ANCESTORS_MAX; i++) {
		count += space_inherited(at);
		at = at->parent;
	}
	count = MIN(count, UNWIND_PROCESS_MAPPINGS_MAX);
	over = count * sizeof(struct unwind_mapping) > process_budget(u->processes);
	if (ended || over || state->of != space)
		err = unwind_withdraw(u, number);
	if (err || ended || over || space->exec == EXEC_UNKNOWN)
		return err;
	count = state->space.count;
	/* The last one again: process_map() may have extended it. */
	err = take_mappings(u, &state->space, space,
			    state->of ? space->absorbed + state->taken - !!state->taken : 0);
	u->processes->copied_bytes += (state->space.count - count) * sizeof(struct unwind_mapping);
	if (err == -ENOSPC)
		process_note_crowded(u->processes, process, space);
	else if (err)
		return err;
	if (!state->of)
		space->references++;
	state->of = space;
	state->taken = space->count - space->absorbed;
	if (u->tables.contexts && !process->otel && has_record(u, &state->space) &&
	    otel_watch(u->processes, process))
		return -ENOMEM;
	return publish_space(u, number, sample_id_make(space->exec, process->pid, 0));
}

static int publish_changed(struct unwind *u)
{
	struct process_table *table = u->processes;
	size_t count = table->count, again = 0;
	int err = 0;

	if (array_reserve(&u->states, &u->state_room, count, sizeof(*u->states)))
		return -ENOMEM;
	u->state_count = count;
	for (size_t i = 0; i < table->changed_count && !err; i++) {
		uint32_t number = table->changed[i];

		err = publish(u, number);
		table->processes[number].changed = err == -EAGAIN;
		if (err == -EAGAIN) {
			table->changed[again++] = number;
			err = 0;
		}
	}
	table->changed_count = again;
	return err;
}

/*
 * How often it is checked, and of how many published processes at a time, whether they have ended:
 * exit records may be lost, or come while the last thread still exists.
 * Bound: pace.
 */
#define CHECK_NS    (50 * NS_PER_MS)
#define CHECK_COUNT 64

/* --- Stacks that the BPF program could not walk --- */

/*
 * Of later copies only the head is kept: their walk ends after one frame.
 * Bound: users: bytes of copied stacks that wait to be walked; then: of further ones one frame is
 * kept; again: when they have been walked; share: none; seen: stack end unreadable.
 */
#define COPIES_BYTES_MAX ((size_t)256 << 20)

static int take_copy(void *context, void *data, size_t size)
{
	struct unwind *u = context;
	const struct unwind_copy *from = data;
	struct unwind_copy *copy;
	bool keep;

	u->rings[UNWIND_COPIES].read += size;
	if (size < offsetof(struct unwind_copy, bytes) ||
	    size - offsetof(struct unwind_copy, bytes) < from->size)
		return 0;
	if (array_reserve(&u->copies, &u->copy_room, u->copy_count + 1, sizeof(*u->copies)))
		return -ENOMEM;
	keep = u->copies_bytes + size <= COPIES_BYTES_MAX;
	if (!keep)
		size = offsetof(struct unwind_copy, bytes);
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, size);
	copy->size = keep ? copy->size : 0;
	u->copies_bytes += copy->size;
	u->copies[u->copy_count++] = copy;
	return 0;
}

static int take_code(void *context, void *data, size_t size)
{
	struct unwind *u = context;

	u->rings[UNWIND_CODES].read += size;
	return scripts_add(&u->scripts, data, size);
}

/* Reads copies and code objects. Returns how many, or a negative errno. */
static int read_rings(struct unwind *u)
{
	int n;

	u->rings[UNWIND_COPIES].read = u->rings[UNWIND_CODES].read = 0;
	n = ring_buffer__consume(u->ring);
	for (int i = 0; i < UNWIND_RINGS; i++)
		u->rings[i].fills_up |= u->rings[i].read > u->rings[i].room / 2;
	return n;
}

/*
 * While rows are read, which may take seconds, a thread takes the copies, so that the ring has
 * room.
 * Bound: pace.
 */
#define TAKE_INTERVAL_NS (5 * NS_PER_MS)

struct taker {
	struct unwind *u;
	pthread_t thread;
	pthread_mutex_t lock; /* of the rest, and of the copies */
	pthread_cond_t stop;
	bool stopped;
	int err;
};

static void *take_copies(void *argument)
{
	struct taker *taker = argument;

	pthread_mutex_lock(&taker->lock);
	while (!taker->stopped && taker->err >= 0) {
		uint64_t next = now_ns() + TAKE_INTERVAL_NS;
		struct timespec until = { next / NS_PER_S, next % NS_PER_S };

		taker->err = read_rings(taker->u);
		pthread_cond_clockwait(&taker->stop, &taker->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&taker->lock);
	return NULL;
}

static int add_images(struct unwind *u, uint64_t until_ns)
{
	struct taker taker = {
		.u = u,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.stop = PTHREAD_COND_INITIALIZER,
	};
	int err = want_removed(u) ?: want_new(u), nice = getpriority(PRIO_PROCESS, 0);
	bool taking, any_moved = false;

	if (err || !u->wanted_count)
		return err;
	*u->is_reading_rows = 1;
	/* Without the thread, copies may be lost: no reason to fail. */
	taking = pthread_create(&taker.thread, NULL, take_copies, &taker) == 0;
	for (size_t i = 0; i < u->wanted_count && !err; i++) {
		uint32_t number = u->wanted[i];
		const struct unwind_image_state before = u->images[number];

		err = unwind_read_image(u, number);
		pthread_mutex_lock(&taker.lock); /* making room for it may walk copies */
		err = err ?: unwind_add_image(u, number, until_ns);
		pthread_mutex_unlock(&taker.lock);
		setpriority(PRIO_PROCESS, 0, nice);
		/*
		 * Nothing that maps a new image is published. One that was deferred has its
		 * number, but no segments.
		 */
		u->images[number].moved =
			before.known &&
			(u->images[number].number != before.number ||
			 u->images[number].rows.segment_count != before.rows.segment_count);
		any_moved |= u->images[number].moved;
	}
	u->wanted_count = 0;
	if (taking) {
		pthread_mutex_lock(&taker.lock);
		taker.stopped = true;
		pthread_cond_signal(&taker.stop);
		pthread_mutex_unlock(&taker.lock);
		pthread_join(taker.thread, NULL);
	}
	if (taker.err < 0)
		err = err ?: taker.err;
	/*
	 * The mappings of all processes that map an image which has rows now, and had none when
	 * they were published, are made anew.
	 */
	for (size_t i = 0; any_moved && i < u->state_count && !err; i++) {
		struct unwind_process_state *state = &u->states[i];
		struct space_walk walk = { state->of, state->of ? state->of->count : 0 };
		const struct capture_mapping *mapping = NULL;

		while (state->of && (mapping = space_next(&walk)))
			if (u->images[mapping->image].moved)
				break;
		if (!mapping)
			continue;
		drop_space(u, state);
		err = process_note_change(u->processes, &u->processes->processes[i]);
	}
	for (size_t i = 0; any_moved && i < u->image_count; i++)
		u->images[i].moved = false;
	u->past.known &= !any_moved;
	return err;
}

/*
 * /proc is read again for a stack through unknown mappings at first after this, then after twice as
 * long each time.
 * Bound: users: how often the mappings of a process are read when none are known; then: its stacks
 * stay incomplete; again: after at most twice the time that it has lasted, or at exec; share: the
 * process's own; seen: stack end process_unknown.
 */
#define SCAN_WAIT_NS NS_PER_S

/*
 * Returns the process of a copy, added if it is new; NULL: out of memory. If nothing is known of
 * its current address space, records may have been lost: its mappings are read from /proc, now and
 * then.
 */
static struct process *find_or_scan(struct unwind *u, const struct unwind_copy *copy)
{
	struct process_table *table = u->processes;
	pid_t pid = sample_id_tgid(copy->process);
	struct process *process = process_at(table, pid, copy->time_ns);
	struct address_space *space;
	size_t number;

	if (!process) {
		if (process_add(table, pid, copy->time_ns))
			return NULL;
		process = process_find(table, pid);
	}
	number = process - table->processes;
	if (number >= u->state_count) {
		if (array_reserve(&u->states, &u->state_room, number + 1, sizeof(*u->states)))
			return NULL;
		u->state_count = number + 1;
	}
	space = process_space(process);
	if (space->count || space->parent || process->ended ||
	    copy->time_ns < space->next_scan_ns || process->next_with_pid != INDEX_NONE)
		return process;
	space->scan_wait_ns = space->scan_wait_ns ? 2 * space->scan_wait_ns : SCAN_WAIT_NS;
	space->next_scan_ns = copy->time_ns + space->scan_wait_ns;
	return snapshot_process(table, pid, copy->time_ns) ? NULL : &table->processes[number];
}

/* The process's mappings at the copy's time, valid until the next call; NULL: out of memory. */
static const struct unwind_space *find_space(struct unwind *u, const struct unwind_copy *copy)
{
	static const struct unwind_space none;
	struct process *process =
		process_at(u->processes, sample_id_tgid(copy->process), copy->time_ns);
	const struct address_space *of;
	const struct unwind_process_state *state;
	size_t number;

	if (!process)
		return &none;
	of = process_space_at(process, copy->time_ns);
	number = process - u->processes->processes;
	state = &u->states[number];
	if (number < u->state_count && state->of == of && of->absorbed + state->taken == of->count)
		return &state->space;
	/* It has ended, or called exec. Kept, as there may be many copies of one process. */
	if (u->past.of != of || u->past.taken != of->count || !u->past.known) {
		free(u->past.space.mappings);
		u->past.space = (struct unwind_space){ 0 };
		u->past.known = take_mappings(u, &u->past.space, of, 0) != -ENOMEM;
		u->past.of = of;
		u->past.taken = of->count;
	}
	return u->past.known ? &u->past.space : NULL;
}

int unwind_walk(struct unwind *u, const struct unwind_copy *copy,
		const struct opener_memory *memory, uint64_t thread_pointer,
		struct unwind_found *found)
{
	const struct process *process =
		process_at(u->processes, sample_id_tgid(copy->process), copy->time_ns);
	const struct unwind_live live = {
		.memory = memory,
		.thread_pointer = thread_pointer,
		.scripts = &u->scripts,
		.since_ns = process && process->generation ? process->begin_ns : 0,
		.uid = process ? process->uid : UINT32_MAX,
		.native = u->native,
	};
	const struct unwind_space *space = find_space(u, copy);

	if (!space ||
	    unwind_copy_walk(copy, &u->tables, space, thread_pointer ? &live : NULL, found))
		return -ENOMEM;
	if (found->end == UNWIND_NO_MAPPING && !space->count)
		found->end = UNWIND_NO_PROCESS;
	return 0;
}

/*
 * Walks the copies of stacks and frees them, except those for which is_kept() returns true. The
 * copies of different CPUs are not ordered by time: those to keep may be anywhere. Returns 0 or a
 * negative errno.
 */
static int unwind_walk_copies(struct unwind *u, unwind_copy_filter *is_kept, void *context)
{
	struct unwind_found found;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < u->copy_count; i++) {
		struct unwind_copy *copy = u->copies[i];

		if (err || is_kept(copy, context)) {
			u->copies[kept++] = copy;
			continue;
		}
		err = unwind_walk(u, copy, NULL, 0, &found);
		if (!err && copy->wait) {
			err = waits_add_walked(u->waits, copy->wait, copy->time_ns,
					       copy->kernel_depth, &found);
		} else if (!err) {
			const struct counted sample = {
				.id = copy->id,
				.first_ns = copy->time_ns,
				.count = 1,
				.waiting = copy->waiting,
				.kernel_depth = copy->kernel_depth,
				.user_depth = found.user_depth,
				.end = found.end,
				.by_frame_pointer = found.by_frame_pointer,
				.cpu = copy->cpu,
				.context = copy->context,
			};

			err = counts_add_tick(u->counts, &sample, found.pcs);
		}
		u->copies_bytes -= copy->size;
		free(copy);
	}
	u->copy_count = kept;
	return err;
}

static bool is_later(const struct unwind_copy *copy, void *until_ns)
{
	return copy->time_ns >= *(uint64_t *)until_ns;
}

/* Adds a larger ring buffer to one that fills up, which is read on: programs may still write there.
 */
static void grow_ring(struct unwind *u, struct unwind_ring *ring)
{
	uint32_t key = 0;
	int fd;

	if (!ring->fills_up || ring->larger ||
	    ring->room > UNWIND_COPY_RING_BYTES / UNWIND_RING_GROWTH)
		return;
	ring->fills_up = false; /* without memory it is tried again */
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "larger_ring", 0, 0,
			    ring->room * UNWIND_RING_GROWTH, NULL);
	if (fd < 0)
		return;
	if (ring_buffer__add(u->ring, fd, ring->take, u) ||
	    bpf_map_update_elem(ring->rings, &key, &fd, BPF_ANY))
		close(fd);
	else
		ring->larger = fd;
}

int unwind_update(struct unwind *u, uint64_t until_ns)
{
	int err = read_rings(u);
	uint64_t now = now_ns();

	for (int i = 0; i < UNWIND_RINGS; i++)
		grow_ring(u, &u->rings[i]);

	err = err < 0 ? err : 0;
	for (size_t i = 0; i < u->copy_count && !err; i++)
		if (u->copies[i]->time_ns < until_ns) {
			/* The process has the exec number of its copy. */
			struct process *process = find_or_scan(u, u->copies[i]);
			uint32_t exec = sample_id_exec(u->copies[i]->process);
			struct address_space *space;

			if (!process)
				return -ENOMEM;
			space = process_space_at(process, u->copies[i]->time_ns);
			if (space->exec == exec &&
			    u->states[process - u->processes->processes].block.size) {
				/* No change, or it is published below. */
				unwind_tables_answer(&u->tables, u->copies[i]->process);
				continue;
			}
			space->exec = exec;
			err = process_note_change(u->processes, process);
		}
	err = err ?: unwind_balance(u, until_ns);
	err = err ?: add_images(u, until_ns);
	err = err ?: publish_changed(u);
	*u->is_reading_rows = 0;
	err = err ?: unwind_walk_copies(u, is_later, &until_ns);
	if (now < u->next_check_ns)
		return err;
	u->next_check_ns = now + CHECK_NS;
	for (size_t i = 0; i < CHECK_COUNT && i < u->published_count && !err; i++) {
		uint32_t number = u->published[u->next_check++ % u->published_count];

		if (process_is_gone(&u->processes->processes[number]))
			err = unwind_withdraw(u, number);
	}
	return err;
}

int unwind_begin(struct unwind *u, const struct sample_bpf *bpf, struct error *e)
{
	int err = unwind_tables_map(&u->tables, bpf), fd;
	struct unwind_exec_number numbers[256];
	ssize_t size;

	if (err)
		return program_out_of(e, -err, "cannot map the tables for call stacks");
	u->rings[UNWIND_COPIES] = (struct unwind_ring){
		.rings = bpf_map__fd(bpf->maps.unwind_copies),
		.room = bpf_map__max_entries(bpf->maps.unwind_copies_first),
		.take = take_copy,
	};
	u->rings[UNWIND_CODES] = (struct unwind_ring){
		.rings = bpf_map__fd(bpf->maps.language_codes),
		.room = bpf_map__max_entries(bpf->maps.language_codes_first),
		.take = take_code,
	};
	u->ring = ring_buffer__new(bpf_map__fd(bpf->maps.unwind_copies_first), take_copy, u, NULL);
	if (!u->ring ||
	    ring_buffer__add(u->ring, bpf_map__fd(bpf->maps.language_codes_first), take_code, u))
		return program_out_of(e, errno, "cannot map the copies of stacks");
	u->iterator = bpf_link_create(bpf_program__fd(bpf->progs.list_exec_numbers), 0,
				      BPF_TRACE_ITER, NULL);
	if (u->iterator < 0) {
		u->iterator = 0;
		return error_set_kind(e, ERROR_KERNEL_LACKS, errno, "cannot list all processes");
	}
	u->is_reading_rows = &bpf->bss->is_reading_rows;
	u->codes_replaced = &bpf->bss->codes_replaced;
	u->codes_since_ns = &bpf->bss->codes_since_ns;
	u->language_sent = bpf_map__fd(bpf->maps.language_sent);
	u->scripts.trim = u->trim;
	u->scripts.bytes_max = u->always_on ? SCRIPTS_BYTES_ALWAYS_ON : 0;
	u->scripts.user_max = u->always_on ? SCRIPTS_USER_BYTES : 0;
	u->scripts.dropped = forget_sent;
	u->scripts.context = u;
	fd = bpf_iter_create(u->iterator);
	if (fd < 0)
		return error_set(e, errno, "cannot list all processes");
	while ((size = read(fd, numbers, sizeof(numbers))) > 0 || (size < 0 && errno == EAGAIN))
		for (ssize_t i = 0; i < size / (ssize_t)sizeof(*numbers); i++) {
			struct process *process = process_find(u->processes, numbers[i].tgid);

			if (process)
				process_space(process)->exec = numbers[i].exec;
		}
	err = size < 0 ? error_set(e, errno, "cannot list all processes") : 0;
	close(fd);
	if (err)
		return err;
	for (size_t i = 0; i < u->image_count && !err; i++)
		err = unwind_add_image(u, i, 0);
	for (size_t i = 0; i < u->processes->count && !err; i++)
		err = process_note_change(u->processes, &u->processes->processes[i]);
	err = err ?: publish_changed(u);
	return err ? error_no_memory(e) : 0;
}

int unwind_fd(const struct unwind *u)
{
	return ring_buffer__epoll_fd(u->ring);
}

void unwind_used(const struct unwind *u, struct capture_tables *tables)
{
	struct unwind_sizes sizes = u->tables.used, free;

	*tables = (struct capture_tables){
		.size_bytes = unwind_tables_size_now(&u->tables),
		.room_bytes = unwind_tables_bytes(&u->tables.room),
		.evicted = u->evicted,
	};
	for (uint32_t i = 1; i < sizes.images; i++) /* without UNWIND_NO_IMAGE */
		tables->images += unwind_tables_has_rows(&u->tables, i);
	for (size_t i = 0; i < u->image_count; i++) {
		const struct unwind_image_state *state = &u->images[i];
		const char *why;

		tables->deferred += state->deferred;
		tables->too_large += state->too_large;
		tables->no_room += unwind_rows_state(u, i, &why) == CAPTURE_ROWS_NO_ROOM;
	}
	unwind_tables_free_sizes(&u->tables, &free);
	for (int kind = 0; kind < UNWIND_KINDS; kind++)
		sizes.of[kind] = u->tables.room.of[kind] - free.of[kind];
	sizes.images = u->tables.used.images;
	tables->rows = sizes.rows;
	tables->bytes = unwind_tables_bytes(&sizes);
	sizes = u->tables.users_used;
	for (size_t i = 0; i < u->state_count; i++)
		if (process_user(&u->processes->processes[i])) {
			sizes.mappings += u->states[i].block.size;
			tables->users_bytes +=
				u->states[i].space.count * sizeof(struct unwind_mapping);
		}
	tables->users_bytes += unwind_tables_bytes(&sizes) + scripts_users_bytes(&u->scripts);
	sizes = u->tables.users_room;
	sizes.mappings = u->tables.room.mappings;
	tables->users_room_bytes = unwind_tables_bytes(&sizes) + u->scripts.bytes_max;
}

void unwind_free(struct unwind *u)
{
	for (size_t i = 0; i < u->image_count; i++)
		unwind_rows_free(&u->images[i].rows);
	for (size_t i = 0; i < u->state_count; i++)
		drop_space(u, &u->states[i]);
	for (size_t i = 0; i < u->copy_count; i++)
		free(u->copies[i]);
	free(u->past.space.mappings);
	free(u->copies);
	free(u->published);
	index_free(&u->contents);
	free(u->idle);
	free(u->wanted);
	free(u->demands);
	free(u->images);
	free(u->states);
	ring_buffer__free(u->ring);
	for (int i = 0; i < UNWIND_RINGS; i++)
		if (u->rings[i].larger)
			close(u->rings[i].larger);
	scripts_free(&u->scripts);
	if (u->iterator > 0)
		close(u->iterator);
	unwind_tables_free(&u->tables);
	*u = (struct unwind){ 0 };
}
