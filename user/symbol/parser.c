// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/batch.h"
#include "symbol/cfi/cfi.h"
#include "symbol/elf_file.h"
#include "symbol/file_cache.h"
#include "symbol/zstd.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/confine.h"
#include "util/file.h"
#include "util/index.h"
#include "util/pack.h"

/*
 * A request and its answer are in a file in memory, which goes with the request: a message is small
 * and is sent at once, whatever the other side does.
 */
enum message_kind {
	PARSER_READY, /* it is confined; err: it is not, and ends */
	PARSER_ROWS,
	PARSER_NAMES,
	PARSER_REST,
	PARSER_OPEN, /* to the recorder: a debug file, which is the answer's descriptor */
	PARSER_DONE,
};

struct message {
	uint32_t kind;
	int32_t err;
	uint64_t cpu_ns;      /* PARSER_DONE: what it took */
	uint64_t users_bytes; /* PARSER_DONE: what it keeps of users' files */
	bool in_root;	      /* PARSER_OPEN: in the root directory of the image's process */
	char path[PATH_MAX];
};

/* Bound: users: memory of the parser; then: the file is not read; share: none; seen: why it has no
 * names; again: with the next window. */
#define MEMORY_MAX ((size_t)2 * 1024 * 1024 * 1024)
/*
 * What one file's names or rows take.
 * Bound: files: bytes of an answer, of a window and otherwise; then: the file is refused.
 */
#define WINDOW_MAX ((size_t)64 * 1024 * 1024)
#define ANSWER_MAX ((size_t)256 * 1024 * 1024)
/* Bound: files: debug files that one image asks for; then: the file is refused. */
#define PATH_OPENS 64
/* Bound: pace. */
#define LOOK_NS (100 * NS_PER_MS)
/* Bound: machine: time that the parser takes to start; then: nothing is read; again: with the next
 * file; share: none; seen: why files have no names. */
#define READY_NS (10 * NS_PER_S)

/*
 * Of one request: how long it may wait for files, of root or of others, which may be in a file
 * system that never answers; and how long it may take where a recording goes on meanwhile: the
 * readers have limits of CPU time, which a parser that was taken over need not keep.
 * Bound: users: time of one file; then: the parser is killed, and the file is refused; again: after
 * a minute; share: after two files in a minute all of that user's are refused; seen: why files have
 * no names, files_unread, the log.
 */
#define ROOT_WAIT_NS (5 * NS_PER_S)
#define USER_WAIT_NS (NS_PER_S / 2)
#define WINDOW_NS    (30 * NS_PER_S)

/*
 * Bound: users: files with which the parser ended, and for how long they are refused; that of a
 * user, and of all users or of root, in a minute; then: all files of the user, or of all users, are
 * refused; again: after that time; share: four users take it from all others; root is apart; seen:
 * why files have no names, files_unread, the log.
 */
#define REFUSED_NS    (600 * NS_PER_S)
#define WAITED_NS     (60 * NS_PER_S) /* of a file that was waited for */
#define MINUTE_NS     (60 * NS_PER_S)
#define REFUSED_MAX   64
#define USER_ENDS_MAX 2
#define ENDS_MAX      8

/* A file with which the parser has ended. */
struct refused {
	uint64_t file; /* a hash of its path, build ID and user */
	uint64_t since_ns, until_ns;
	uint32_t user;
	int left; /* of the parser if that is killed and still there (util/child.h); else -1 */
	char why[128];
};

struct parser {
	struct child child;
	bool is_ready;
	uint64_t session, window_ns;
	uint64_t ends;
	uint64_t users_bytes;
	struct refused refused[REFUSED_MAX]; /* the newest are kept; since_ns 0: none */
};

/* --- The parser's side --- */

struct service {
	int fd;
	struct names_session names;
};

/* An elf_opener: asks the recorder. */
static int ask_for_file(void *context, int root, const char *path)
{
	const struct service *s = context;
	struct message m = { .kind = PARSER_OPEN, .in_root = root >= 0 };
	int fds[CHILD_FDS_MAX], err;

	if (strlen(path) >= sizeof(m.path))
		return -ENAMETOOLONG;
	strcpy(m.path, path);
	err = child_send(s->fd, &m, sizeof(m), NULL, 0);
	if (!err && child_receive(s->fd, &m, sizeof(m), fds, UINT64_MAX) != sizeof(m))
		err = -EPIPE;
	return err ?: fds[0] >= 0 ? fds[0] : m.err;
}

struct rows_request {
	uint64_t bytes, left_ns, memory;
	bool is_limited, has_wishes;
	struct context_wishes wishes;
	char path[PATH_MAX];
};

static int answer_rows(struct unpack *u, int fd, struct pack *answer, struct error *e)
{
	struct unwind_rows rows = { 0 };
	struct rows_request r;
	struct read_budget budget;
	int err;

	unpack_bytes(u, &r, sizeof(r));
	budget = (struct read_budget){
		.bytes = r.bytes,
		.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + r.left_ns,
		.memory = r.memory,
	};
	err = cfi_read(fd, r.path, r.has_wishes ? &r.wishes : NULL, r.is_limited ? &budget : NULL,
		       &rows, e);
	file_close(fd);
	if (!err)
		rows_pack(answer, &rows);
	unwind_rows_free(&rows);
	return err;
}

static void answer(struct service *s, struct message *m, int exchange, int file)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct pack request = { 0 }, reply = { 0 };
	struct unpack u;
	struct error e = { 0 };
	int err = pack_read(&request, exchange, ANSWER_MAX);

	u = unpack_begin(&request);
	if (!err && m->kind == PARSER_ROWS)
		err = answer_rows(&u, file, &reply, &e);
	else if (!err)
		err = names_answer(&u, &s->names, file, &reply);
	err = err ?: pack_write(&reply, exchange);
	free(request.bytes);
	free(reply.bytes);
	close(exchange);
	*m = (struct message){
		.kind = PARSER_DONE,
		.err = err,
		.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns,
		.users_bytes = file_cache_users_bytes(symbol_cache_files(s->names.cache)),
	};
	snprintf(m->path, sizeof(m->path), "%s", e.what);
	child_send(s->fd, m, sizeof(*m), NULL, 0);
}

/* A child_service. */
static void serve(int fd)
{
	struct service s = { .fd = fd };
	struct zstd zstd = { 0 };
	struct message m = { .kind = PARSER_READY };
	int fds[CHILD_FDS_MAX];

	/* It stays loaded: later no file can be opened. */
	if (zstd_begin(&zstd) == 0)
		zstd_end(&zstd);
	m.err = confine(MEMORY_MAX);
	s.names.cache = symbol_cache_new();
	if (!m.err && !s.names.cache)
		m.err = -ENOMEM;
	elf_open_companions_by(ask_for_file, &s);
	if (child_send(fd, &m, sizeof(m), NULL, 0) || m.err)
		return;
	while (child_receive(fd, &m, sizeof(m), fds, UINT64_MAX) == sizeof(m)) {
		if (m.kind != PARSER_REST)
			answer(&s, &m, fds[0], fds[1]);
		if (m.kind != PARSER_NAMES)
			malloc_trim(0);
	}
}

/* --- The recorder's side --- */

/* Ends the parser, and waits for nothing. Returns as child_end(). */
static int end_child(struct parser *p)
{
	p->is_ready = false;
	p->users_bytes = 0;
	return child_end(&p->child);
}

static void close_left(int left)
{
	file_close(left);
}

/* Starts the parser if none runs, and waits until it is confined. One that has ended meanwhile has
 * not ended because of a file. */
static int begin_child(struct parser *p, struct error *e)
{
	struct message m;
	int err = 0;

	if (p->child.pid && child_has_ended(p->child.pid_fd))
		close_left(end_child(p));
	if (!p->child.pid)
		err = child_start(&p->child, "profil-parser", serve);
	if (!err && !p->is_ready) {
		ssize_t size = child_receive(p->child.fd, &m, sizeof(m), NULL, now_ns() + READY_NS);

		if (size != sizeof(m) || m.kind != PARSER_READY)
			err = size < 0 ? size : -EBADMSG;
		err = err ?: m.err;
	}
	p->is_ready = !err;
	if (!err)
		return 0;
	close_left(end_child(p));
	return error_set(e, -err, "cannot start the process that reads files");
}

int parser_new(struct parser **out, struct error *e)
{
	struct parser *p = calloc(1, sizeof(*p));
	int err = p ? begin_child(p, e) : error_no_memory(e);

	if (err)
		free(p);
	else
		*out = p;
	return err;
}

void parser_free(struct parser *p)
{
	if (!p)
		return;
	close_left(end_child(p));
	for (size_t i = 0; i < REFUSED_MAX; i++)
		if (p->refused[i].since_ns)
			close_left(p->refused[i].left);
	free(p);
}

uint64_t parser_ends(const struct parser *p)
{
	return p->ends;
}

uint64_t parser_users_bytes(const struct parser *p)
{
	return p->users_bytes;
}

pid_t parser_pid(const struct parser *p)
{
	return p->child.pid;
}

/* What a request is about. */
struct subject {
	uint64_t file; /* see struct refused */
	uint32_t user;
	uint64_t wait_ns, limit_ns; /* 0: no limit */
	size_t answer_max;
	struct batch *batch; /* of names; NULL: of rows */
};

/* Whether the file is not to be read now; sets e. */
static bool is_refused(struct parser *p, const struct subject *s, struct error *e)
{
	unsigned int ends = 0, ends_of_user = 0;
	uint64_t now = now_ns();

	for (size_t i = 0; i < REFUSED_MAX; i++) {
		struct refused *r = &p->refused[i];
		bool is_recent = now - r->since_ns <= MINUTE_NS;

		if (!r->since_ns)
			continue;
		if (r->left >= 0 && child_has_ended(r->left)) {
			close(r->left);
			r->left = -1;
		}
		if (r->file == s->file && (now < r->until_ns || r->left >= 0)) {
			error_set(e, 0, "%s, %" PRIu64 " s ago", r->why,
				  (now - r->since_ns) / NS_PER_S);
			return true;
		}
		if (!r->user == !s->user && (is_recent || r->left >= 0)) {
			ends++;
			ends_of_user += s->user && r->user == s->user;
		}
	}
	if (ends_of_user >= USER_ENDS_MAX)
		error_set(e, 0, "other files of its user could not be parsed: it is tried later");
	else if (ends >= ENDS_MAX)
		error_set(e, 0, "many files could not be parsed: it is tried later");
	return ends_of_user >= USER_ENDS_MAX || ends >= ENDS_MAX;
}

/*
 * Ends the parser because of a file, which is noted in place of the oldest such note of those whose
 * parser is gone: there are fewer others than notes. Sets e.
 */
static void refuse(struct parser *p, const struct subject *s, int err, struct error *e)
{
	struct refused *oldest = NULL;
	uint64_t now = now_ns();

	for (size_t i = 0; i < REFUSED_MAX; i++) {
		struct refused *r = &p->refused[i];

		if ((!r->since_ns || r->left < 0) && (!oldest || r->since_ns < oldest->since_ns))
			oldest = r;
	}
	error_set(e, 0, "its file could not be parsed: %s",
		  err == -EPIPE	      ? "the parser ended"
		  : err == -ETIMEDOUT ? "it was waited for too long"
				      : "the parser's answer is invalid");
	*oldest = (struct refused){
		.file = s->file,
		.since_ns = now,
		.until_ns = now + (err == -ETIMEDOUT ? WAITED_NS : REFUSED_NS),
		.user = s->user,
		.left = end_child(p),
	};
	snprintf(oldest->why, sizeof(oldest->why), "%.127s", e->what);
	p->ends++;
}

static bool begins_with(const char *text, const char *beginning, size_t size)
{
	return strncmp(text, beginning, size) == 0;
}

/*
 * Whether a path can be that of a debug file: below /usr/lib/debug, next to the image or in its
 * .debug, or a file of split DWARF. The parser might have been taken over, to ask for other files.
 */
static bool is_debug_path(const char *path, const char *image)
{
	const char *slash = strrchr(image, '/'), *dot = strrchr(path, '.');
	size_t directory = slash ? slash + 1 - image : 0;

	if (*path != '/' || strstr(path, "/../"))
		return false;
	if (begins_with(path, ELF_DEBUG_ROOT "/", sizeof(ELF_DEBUG_ROOT)) ||
	    (dot && (strcmp(dot, ".dwo") == 0 || strcmp(dot, ".dwp") == 0)))
		return true;
	if (!directory || !begins_with(path, image, directory))
		return false;
	path += directory;
	if (begins_with(path, ".debug/", strlen(".debug/")))
		path += strlen(".debug/");
	return !strchr(path, '/');
}

/*
 * Opens a debug file of the batch's image for the parser: one that all may read, or of the user who
 * provides the image. Returns a descriptor or a negative errno.
 */
static int open_debug_file(const struct batch *b, const char *path, bool in_root)
{
	const struct profile_image *image = &b->p->images[b->image];
	struct stat status;
	int fd;

	if (!is_debug_path(path, image->path))
		return -EACCES;
	fd = batch_open(b, image->provider, in_root ? image->root : -1, path, &status);
	if (fd < 0 || (file_is_of(&status, image->provider) &&
		       (status.st_mode & S_IROTH || !status.st_uid == !image->provider)))
		return fd;
	close(fd);
	return -EACCES;
}

/* Waits for the end of a request, and answers the parser's own. Returns 0 or a negative errno. */
static int wait_for_answer(struct parser *p, const struct subject *s, struct message *m)
{
	uint64_t begin_ns = now_ns(), waited_ns = 0, look_ns;
	unsigned int opens = 0;

	for (;;) {
		ssize_t size;
		int fd, err;

		look_ns = now_ns();
		size = child_receive(p->child.fd, m, sizeof(*m), NULL, look_ns + LOOK_NS);
		if (size >= 0) {
			if (size != sizeof(*m))
				return -EBADMSG;
			m->path[sizeof(m->path) - 1] = '\0';
			if (m->kind == PARSER_DONE)
				return 0;
			if (m->kind != PARSER_OPEN || !s->batch || opens++ == PATH_OPENS)
				return -EBADMSG;
			fd = open_debug_file(s->batch, m->path, m->in_root);
			m->err = fd < 0 ? fd : 0;
			err = child_send(p->child.fd, m, sizeof(*m), &fd, fd >= 0);
			file_close(fd);
			if (err)
				return err;
			continue;
		}
		if (size != -ETIMEDOUT)
			return size;
		if (!child_is_running(&p->child))
			waited_ns += now_ns() - look_ns;
		if (s->batch && batch_stopped(s->batch))
			return -ECANCELED;
		if (waited_ns > s->wait_ns || (s->limit_ns && now_ns() - begin_ns > s->limit_ns))
			return -ETIMEDOUT;
	}
}

/*
 * Asks the parser about a file. Takes the request, and sets *answer, to be free()d. Returns 0, with
 * *m its message; or a negative errno with e set: the file is refused, or the parser has ended.
 */
static int ask(struct parser *p, enum message_kind kind, const struct subject *s, int fd,
	       struct pack *request, struct message *m, struct pack *reply, struct error *e)
{
	int fds[2] = { -1, fd }, err = is_refused(p, s, e) ? -EAGAIN : begin_child(p, e);

	if (!err) {
		fds[0] = memfd_create("parser", MFD_CLOEXEC);
		err = fds[0] < 0 ? -errno : pack_write(request, fds[0]);
		if (err)
			error_set(e, -err, "cannot ask the process that reads files");
	}
	free(request->bytes);
	if (!err) {
		*m = (struct message){ .kind = kind };
		err = child_send(p->child.fd, m, sizeof(*m), fds, fd < 0 ? 1 : 2);
		err = err ?: wait_for_answer(p, s, m);
		/* It may have been taken over: it has no more than that. */
		p->users_bytes = MIN(m->users_bytes, MEMORY_MAX);
		if (!err && !m->err)
			err = pack_read(reply, fds[0], s->answer_max);
		if (err == -ECANCELED)
			close_left(end_child(p));
		else if (err && err != -ENOMEM)
			refuse(p, s, err, e);
	}
	file_close(fds[0]);
	return err;
}

/* --- Rows --- */

void rows_pack(struct pack *k, const struct unwind_rows *rows)
{
	pack_bytes(k, rows, sizeof(*rows));
	pack_bytes(k, rows->rows, rows->count * sizeof(*rows->rows));
	pack_bytes(k, rows->rules, rows->rule_count * sizeof(*rows->rules));
}

/* Whether what is no number of a row or rule is in its range. */
static bool are_valid(const struct unwind_rows *rows)
{
	if (rows->segment_count > UNWIND_SEGMENTS_MAX ||
	    rows->build_id_size > UNWIND_BUILD_ID_MAX || rows->rule_count > UINT16_MAX + 1 ||
	    rows->language.language >= LANGUAGES || (rows->count && !rows->rule_count))
		return false;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].rule >= rows->rule_count ||
		    (i && rows->rows[i].address <= rows->rows[i - 1].address))
			return false;
	for (size_t i = 0; i < rows->rule_count; i++)
		if (rows->rules[i].cfa > UNWIND_UNSUPPORTED)
			return false;
	return true;
}

/* Returns a copy of an array, to be free()d; NULL: it is not there, or there is no memory. */
static void *unpack_copy(struct unpack *u, size_t count, size_t size)
{
	const void *from = unpack_array(u, count, size);
	void *copy = from ? malloc(count * size + 1) : NULL;

	if (copy)
		memcpy(copy, from, count * size);
	return copy;
}

int rows_unpack(struct unpack *u, struct unwind_rows *rows)
{
	int err;

	unpack_bytes(u, rows, sizeof(*rows));
	rows->room = rows->count;
	rows->rule_room = rows->rule_count;
	rows->rows = unpack_copy(u, rows->count, sizeof(*rows->rows));
	rows->rules = unpack_copy(u, rows->rule_count, sizeof(*rows->rules));
	err = u->failed || u->at != u->end ? -EBADMSG : 0;
	if (!err && (!rows->rows || !rows->rules))
		err = -ENOMEM;
	if (!err && !are_valid(rows))
		err = -EBADMSG;
	if (!err)
		return 0;
	unwind_rows_free(rows);
	*rows = (struct unwind_rows){ 0 };
	return err;
}

int parser_read_rows(struct parser *p, int fd, const char *path, uint32_t user,
		     const struct context_wishes *wishes, struct read_budget *budget,
		     struct unwind_rows *rows, struct error *e)
{
	const struct subject s = {
		.file = hash_bytes(path, strlen(path), hash_u64(user, PARSER_ROWS)),
		.user = user,
		.wait_ns = user ? USER_WAIT_NS : ROOT_WAIT_NS,
		.limit_ns = WINDOW_NS,
		.answer_max = ANSWER_MAX,
	};
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct pack request = { 0 }, reply = { 0 };
	struct rows_request r;
	struct message m = { 0 };
	struct unpack u;
	int err;

	if (!p)
		return cfi_read(fd, path, wishes, budget, rows, e);
	*rows = (struct unwind_rows){ 0 };
	memset(&r, 0, sizeof(r));
	snprintf(r.path, sizeof(r.path), "%s", path);
	r.is_limited = budget;
	r.has_wishes = wishes;
	if (wishes)
		r.wishes = *wishes;
	if (budget) {
		r.bytes = budget->bytes;
		r.left_ns = budget->until_ns > now ? budget->until_ns - now : 0;
		r.memory = budget->memory;
	}
	pack_bytes(&request, &r, sizeof(r));
	/* Files of root are read as urgently as the caller would; no matter if it may not. */
	if (p->child.pid)
		setpriority(PRIO_PROCESS, p->child.pid, getpriority(PRIO_PROCESS, 0));
	err = ask(p, PARSER_ROWS, &s, fd, &request, &m, &reply, e);
	if (!err && m.err) {
		err = m.err < 0 ? m.err : -EINVAL;
		error_set(e, 0, "%s", m.path);
	} else if (!err) {
		u = unpack_begin(&reply);
		err = rows_unpack(&u, rows);
		if (!err && !context_is_valid(&rows->context, wishes)) {
			unwind_rows_free(rows);
			*rows = (struct unwind_rows){ 0 };
			err = -EBADMSG;
		}
		if (err == -EBADMSG)
			refuse(p, &s, err, e);
	}
	free(reply.bytes);
	rows->cost_ns = m.cpu_ns;
	return err;
}

/* --- Names --- */

void parser_begin(struct parser *p, uint64_t window_ns)
{
	p->session++;
	p->window_ns = window_ns;
}

void parser_rest(struct parser *p)
{
	const struct message m = { .kind = PARSER_REST };

	if (p->is_ready)
		child_send(p->child.fd, &m, sizeof(m), NULL, 0);
}

int parser_resolve(struct batch *b, int fd, bool is_jit)
{
	const struct profile_image *image = &b->p->images[b->image];
	struct parser *p = b->o.parser;
	const struct subject s = {
		.file = hash_bytes(image->path, strlen(image->path),
				   hash_bytes(image->build_id, image->build_id_size,
					      hash_u64(image->provider, image->file_id))),
		.user = image->provider,
		.wait_ns = image->provider ? USER_WAIT_NS : ROOT_WAIT_NS,
		.limit_ns = p->window_ns ? WINDOW_NS : 0,
		.answer_max = p->window_ns ? WINDOW_MAX : ANSWER_MAX,
		.batch = b,
	};
	struct pack request = { 0 }, reply = { 0 };
	struct message m;
	struct unpack u;
	int err;

	names_pack_request(&request, b, p->session, p->window_ns, is_jit);
	err = ask(p, PARSER_NAMES, &s, fd, &request, &m, &reply, &b->why);
	if (!err && m.err == -ENOMEM) {
		error_set(&b->why, 0, "its file could not be parsed: out of memory");
		b->is_unread = true;
	} else if (!err) {
		u = unpack_begin(&reply);
		err = m.err ? -EBADMSG : names_unpack_answer(&u, b);
		if (err == -EBADMSG)
			refuse(p, &s, err, &b->why);
	}
	free(reply.bytes);
	if (err == -ENOMEM || err == -ECANCELED)
		return err == -ENOMEM ? err : 0;
	if (err || b->is_unread)
		batch_note_unread(b);
	return 0;
}
