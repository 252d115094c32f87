// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * libc's gmon runtime, to be preloaded or linked before libc. gcrt1.o, which gcc -pg links, calls
 * __monstartup() before main() and _mcleanup() at exit; some programs call monstartup() and
 * moncontrol() themselves.
 *
 * The histogram is a session of libprofil, which counts all threads and does not overflow; or, if
 * no back end has sessions, libc's profil(), as in libc's own runtime.
 *
 * _mcleanup() may run in a signal handler that calls exit(), on a small stack, while the code that
 * it interrupted holds malloc's lock: so what writes gmon.out uses neither malloc nor streams, nor
 * libprofil's own way to write files.
 */
#include "lib/gmon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/gmon.h>
#include <sys/gmon_out.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/end_signals.h"
#include "lib/export.h"
#include "util/order.h"

/*
 * Cells cover 4 bytes of code, as those of libc's runtime, with which gprof adds up files only if
 * range and number of cells are the same. Above this number of cells, which take 8 bytes of kernel
 * memory each, cells are larger.
 */
#define CELL_SIZE 4
/*
 * Bound: caller: cells of a program's histogram; then: cells are larger than libc's; seen: not
 * seen.
 */
#define MOST_CELLS (1 << 23)

#define DEFAULT_NAME "gmon.out"

/*
 * How many temporary names are tried: other processes may be writing to this directory.
 * Bound: caller: names of temporary files that are tried; then: the file is not written.
 */
#define TRIES 100

/* <sys/gmon.h> declares the others. */
void moncontrol(int mode);

/* All of this is guarded by the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gmon_arcs *call_graph; /* NULL: not started, or ended */
static struct gmon_histogram histogram;
/* Bound: state. */
static bool reported; /* that there is no histogram */

/* Prints a line on descriptor 2, as libc's runtime does; adds a newline. */
__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
	char line[512] = "libprofil-gmon: ";
	size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - 1 - used, format, arguments);
	va_end(arguments);
	used = strlen(line);
	line[used++] = '\n';
	/* If this fails, there is no other way to report it. */
	while (write(STDERR_FILENO, line, used) < 0 && errno == EINTR)
		;
}

/* --- Lock and fork --- */

/*
 * What leave() restores. A thread that holds the lock has all signals blocked, as a handler may
 * exit, and cannot be cancelled.
 */
struct guard {
	sigset_t signals;
	int cancel;
};

static bool used;		   /* it was on; not only preloaded */
static __thread bool fork_entered; /* this thread forks, and holds the lock */
static struct guard fork_guard;	   /* its */

static void enter(struct guard *guard)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &guard->signals);
	pthread_mutex_lock(&lock);
}

static void leave(const struct guard *guard)
{
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &guard->signals, NULL);
	pthread_setcancelstate(guard->cancel, NULL);
}

static void before_fork(void)
{
	struct guard guard;

	fork_entered = used;
	if (!fork_entered)
		return;
	enter(&guard);
	fork_guard = guard;
}

static void after_fork(void)
{
	struct guard guard = fork_guard;

	if (fork_entered)
		leave(&guard);
}

/*
 * Registers fork handlers after libprofil has registered its own: handlers before fork run in the
 * reverse order, so that this lock is always taken first. When the library is loaded, as
 * moncontrol() may be called by a signal handler, which must not take libc's lock for them.
 */
__attribute__((constructor)) static void handle_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* --- The histogram --- */

int profil__histogram_open(struct gmon_histogram *h, const struct gmon_range *range)
{
	size_t cell_size = CELL_SIZE, count, text, bytes;
	void *memory;

	*h = (struct gmon_histogram){ .range = *range };
	while ((range->high - range->low) / cell_size > MOST_CELLS)
		cell_size *= 2;
	h->range.low &= -cell_size;
	h->range.high += -h->range.high & (cell_size - 1);
	text = h->range.high - h->range.low;
	bytes = text / cell_size * sizeof(*h->buffer);
	if (cell_size == CELL_SIZE)
		bytes += -bytes & (sizeof(long) - 1); /* glibc 2.38, and updates of older ones */
	count = bytes / sizeof(*h->buffer);
	/* As libc computes it: a few cells too many make all of them a little smaller. */
	h->scale = (float)bytes / text * 0x10000;
	h->mapped_size = count * (2 * sizeof(*h->counts) + sizeof(*h->buffer));
	/* Pages that are not used take no memory. */
	memory = mmap(NULL, h->mapped_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	h->counts = memory;
	h->cell_count = count;
	h->hz = getauxval(AT_CLKTCK); /* libc's rate; a session has its own */
	return 0;
}

/*
 * The session continues while the histogram is paused: starting another one takes much longer, and
 * with the kernel module would lose the rest of each thread's period. So the session's counts and
 * totals are subtracted (sign -1) when a pause ends, and added (1) when the next one starts.
 */
static void take_session(struct gmon_histogram *h, int sign)
{
	uint64_t *latest = h->counts + h->cell_count;
	struct profil_totals totals;

	if (profil_read_totals(h->session, &totals, sizeof(totals)) == 0) {
		h->lost += sign * totals.lost;
		h->ticks += sign * totals.ticks;
		if (totals.period_ns) {
			h->due += sign * (totals.cpu_ns / totals.period_ns);
			h->hz = (1000000000 + totals.period_ns / 2) / totals.period_ns;
		}
	}
	if (profil_read(h->session, 0, latest, h->cell_count))
		return;
	for (size_t i = 0; i < h->cell_count; i++)
		if (latest[i])
			h->counts[i] += sign * latest[i];
}

/* Starts to count, or continues. Returns 0 or a negative errno with profil_error() set. */
static int histogram_start(struct gmon_histogram *h)
{
	const struct profil_region region = {
		.offset = h->range.low,
		.bufsiz = h->cell_count * sizeof(unsigned short),
		.scale = h->scale,
	};
	const char *backend;
	int err = 0;

	if (h->counting)
		return 0;
	if (h->session) {
		take_session(h, -1);
	} else {
		err = profil_attach(&h->session, 0, &region, 1, sizeof(region), 0);
		if (err)
			h->session = NULL;
	}
	/* The back end "libc" is the only one without sessions. */
	backend = err == -ENOTSUP ? profil_backend() : NULL;
	if (backend && strcmp(backend, "libc") == 0) {
		h->buffer = (unsigned short *)(h->counts + 2 * h->cell_count);
		err = profil(h->buffer, region.bufsiz, h->range.low, h->scale) ? -errno : 0;
		if (err)
			h->buffer = NULL;
	}
	h->counting = !err;
	return err;
}

static void histogram_pause(struct gmon_histogram *h)
{
	/* libc declares it nonnull, but NULL turns it off. */
	unsigned short *volatile none = NULL;

	if (!h->counting)
		return;
	h->counting = false;
	if (h->session) {
		take_session(h, 1);
		return;
	}
	/*
	 * Preloaded, libprofil comes after libc in the order in which symbols are looked up, so
	 * that profil() is libc's own, which leaves a pending SIGPROF to end the program.
	 */
	profil__end_signals();
	profil(none, 0, 0, 0);
	for (size_t i = 0; i < h->cell_count; i++)
		if (h->buffer[i]) {
			h->counts[i] += h->buffer[i];
			h->buffer[i] = 0;
		}
	h->buffer = NULL;
}

void profil__histogram_close(struct gmon_histogram *h)
{
	histogram_pause(h);
	profil_session_free(h->session);
	if (h->counts)
		munmap(h->counts, h->mapped_size);
	*h = (struct gmon_histogram){ 0 };
}

/*
 * --- gmon.out: <sys/gmon_out.h>, in the program's byte order and pointer size, with the image's
 * own addresses. Records have no padding. ---
 */

/* A buffer in front of a descriptor. After the first error, further writes do nothing. */
struct output {
	int fd;
	int err;
	size_t used;
	char *buffer;
};

/* Not on the stack, which may be a small one of a signal handler that calls exit(). */
static char output_buffer[1 << 15];

static void flush(struct output *out)
{
	size_t done = 0;

	while (!out->err && done < out->used) {
		ssize_t n = write(out->fd, out->buffer + done, out->used - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			out->err = -errno;
	}
	out->used = 0;
}

static void put(struct output *out, const void *data, size_t size)
{
	if (size > sizeof(output_buffer) - out->used)
		flush(out);
	memcpy(out->buffer + out->used, data, size);
	out->used += size;
}

static void put_tag(struct output *out, unsigned char tag)
{
	put(out, &tag, sizeof(tag));
}

/*
 * Writes as many records of the whole range as the largest count needs, and at least one: gprof
 * adds up those of one range, also of several files, and refuses others that overlap with it.
 */
static void put_histogram(struct output *out, const struct gmon_histogram *h)
{
	uintptr_t low = h->range.low - h->range.load_bias;
	uintptr_t high = h->range.high - h->range.load_bias;
	struct gmon_hist_hdr header = { .dimen = "seconds", .dimen_abbrev = 's' };
	uint32_t rate = h->hz, count = h->cell_count;
	uint64_t largest = 1, records;

	memcpy(header.low_pc, &low, sizeof(header.low_pc));
	memcpy(header.high_pc, &high, sizeof(header.high_pc));
	memcpy(header.hist_size, &count, sizeof(header.hist_size));
	memcpy(header.prof_rate, &rate, sizeof(header.prof_rate));
	for (size_t i = 0; i < h->cell_count; i++)
		largest = MAX(largest, h->counts[i]);
	records = largest / UINT16_MAX + (largest % UINT16_MAX != 0);
	for (uint64_t record = 0; record < records && !out->err; record++) {
		uint64_t before = record * UINT16_MAX; /* in the records before */

		put_tag(out, GMON_TAG_TIME_HIST);
		put(out, &header, sizeof(header));
		for (size_t i = 0; i < h->cell_count; i++) {
			uint64_t rest = h->counts[i] > before ? h->counts[i] - before : 0;
			uint16_t cell = MIN(rest, UINT16_MAX);

			put(out, &cell, sizeof(cell));
		}
	}
}

static void put_arcs(struct output *out, const struct gmon_arcs *arcs)
{
	const struct gmon_range *range = &arcs->range;

	for (uint32_t i = 1; i < gmon_arcs_end(arcs); i++) {
		uintptr_t from = arcs->arcs[i].from, self = arcs->arcs[i].self;
		uint64_t calls = gmon_arcs_calls(arcs, i);
		struct gmon_cg_arc_record record;
		uint32_t count;

		/*
		 * Drops callees in other images: gprof would find no name for them, or a wrong one.
		 */
		if (self < range->image_low || self >= range->image_high)
			continue;
		from -= range->load_bias;
		self -= range->load_bias;
		memcpy(record.from_pc, &from, sizeof(record.from_pc));
		memcpy(record.self_pc, &self, sizeof(record.self_pc));
		/* As many records as the count needs: readers add them up. */
		for (; calls && !out->err; calls -= count) {
			count = MIN(calls, UINT32_MAX);
			memcpy(record.count, &count, sizeof(record.count));
			put_tag(out, GMON_TAG_CG_ARC);
			put(out, &record, sizeof(record));
		}
	}
}

int profil__gmon_write(int fd, const struct gmon_histogram *h, const struct gmon_arcs *arcs)
{
	struct output out = { .fd = fd, .buffer = output_buffer };
	struct gmon_hdr header = { .cookie = GMON_MAGIC };
	uint32_t version = GMON_VERSION;

	memcpy(header.version, &version, sizeof(header.version));
	put(&out, &header, sizeof(header));
	put_histogram(&out, h);
	put_arcs(&out, arcs);
	flush(&out);
	return out.err;
}

static char file_name[PATH_MAX], temporary_name[PATH_MAX];

/* Writes a temporary file beside `path`, of the mode that libc's runtime uses, and renames it. */
static int write_beside(const char *path)
{
	const int size = sizeof(temporary_name);
	int fd = -1, err;

	for (int i = 0; i < TRIES && fd < 0; i++) {
		if (snprintf(temporary_name, size, "%s.%d-%d", path, getpid(), i) >= size)
			return -ENAMETOOLONG;
		fd = open(temporary_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return -errno;
	err = profil__gmon_write(fd, &histogram, call_graph);
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(temporary_name, path))
		err = -errno;
	if (err)
		unlink(temporary_name);
	return err;
}

/*
 * Writes to an existing file in a directory where no other can be created: root may have created it
 * for a program that changes its directory and its user.
 */
static int write_into(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = ftruncate(fd, 0) ? -errno : profil__gmon_write(fd, &histogram, call_graph);
	if (err && ftruncate(fd, 0))
		print_line("%s is incomplete", path);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int write_file(const char *path)
{
	int err = write_beside(path), in_place_err;

	if (err == -EACCES || err == -EPERM || err == -EROFS) {
		in_place_err = write_into(path);
		if (in_place_err != -ENOENT)
			err = in_place_err;
	}
	return err;
}

/* Creates gmon.out, or the file that GMON_OUT_PREFIX and the PID name. Prints errors. */
static void create_file(void)
{
	const char *prefix = secure_getenv("GMON_OUT_PREFIX");
	int err;

	if (prefix) {
		/* A name that is truncated here is too long for open(2) in any case. */
		snprintf(file_name, sizeof(file_name), "%s.%d", prefix, getpid());
		err = write_file(file_name);
		if (!err)
			return;
		print_line("cannot write %s: %s; writing %s", file_name, strerrordesc_np(-err),
			   DEFAULT_NAME);
	}
	err = write_file(DEFAULT_NAME);
	if (err)
		print_line("cannot write %s: %s", DEFAULT_NAME, strerrordesc_np(-err));
}

/* --- Start and end --- */

static int find_image(struct dl_phdr_info *info, size_t size, void *context)
{
	struct gmon_range *range = context;
	uintptr_t low = UINTPTR_MAX, high = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		low = MIN(low, start);
		high = MAX(high, start + part->p_memsz);
	}
	if (range->low < low || range->low >= high)
		return 0;
	range->image_low = low;
	range->image_high = high;
	range->load_bias = info->dlpi_addr;
	return 1;
}

static void resume_all(void)
{
	if (histogram_start(&histogram) && !reported) {
		print_line("no histogram: %s", profil_error());
		reported = true;
	}
	profil__arcs_count(call_graph);
	used = true;
}

static void pause_all(void)
{
	profil__arcs_count(NULL);
	histogram_pause(&histogram);
}

static void end_all(void)
{
	pause_all();
	profil__histogram_close(&histogram);
	call_graph = NULL;
}

static void warn_losses(void)
{
	uint64_t due = histogram.due;
	uint64_t missing = due > histogram.ticks ? due - histogram.ticks : 0;
	unsigned long long calls = gmon_arcs_calls(call_graph, 0);

	if (calls)
		print_line("%llu calls are not in the call graph: it has room for %u arcs", calls,
			   call_graph->limit);
	if (histogram.lost)
		print_line("%llu ticks are not in the histogram",
			   (unsigned long long)histogram.lost);
	/* Fewer than were due by CPU time, by 5 % and four standard deviations. */
	if (missing > due / 20 && missing > 16 * due / missing)
		print_line("%llu of %llu ticks that were due did not come",
			   (unsigned long long)missing, (unsigned long long)due);
}

/* --- Public functions --- */

/*
 * Starts from zero, and drops what was counted before. Servers call it in each of the processes
 * that they fork.
 */
EXPORT void __monstartup(unsigned long low, unsigned long high)
{
	struct gmon_range range = { .low = low, .high = high, .image_high = UINTPTR_MAX };
	struct guard guard;

	enter(&guard);
	end_all();
	if (low < high) {
		dl_iterate_phdr(find_image, &range);
		if (profil__histogram_open(&histogram, &range) == 0)
			call_graph = profil__arcs_open(&range);
		if (call_graph) {
			resume_all();
		} else {
			profil__histogram_close(&histogram);
			print_line("monstartup: out of memory");
		}
	} else {
		print_line("monstartup: no code to profile");
	}
	leave(&guard);
}

/* Weak, as libc's: a static program may define functions of these names. */
EXPORT void monstartup(unsigned long low, unsigned long high)
	__attribute__((weak, alias("__monstartup")));

/* Continues; mode 0 pauses. */
EXPORT __attribute__((weak)) void moncontrol(int mode)
{
	struct guard guard;

	enter(&guard);
	if (mode && call_graph)
		resume_all();
	else
		pause_all();
	leave(&guard);
}

/* Stops, and writes gmon.out once for each start. */
EXPORT void _mcleanup(void)
{
	struct guard guard;

	enter(&guard);
	if (call_graph) {
		pause_all();
		create_file();
		warn_losses();
		end_all();
	}
	leave(&guard);
}
