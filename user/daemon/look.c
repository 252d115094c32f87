// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/packages.h"
#include "archive/read.h"
#include "archive/tree.h"
#include "archive/window_sum.h"
#include "cli/capabilities.h"
#include "daemon/log.h"
#include "report/changes/changes.h"
#include "symbol/package.h"
#include "util/array.h"
#include "util/child.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/index.h"
#include "util/memory.h"

/* A deploy is compared by a day on each side. Bound: pace. */
#define LOOK_BACK_S (2 * 24 * 3600)

/* Behind the recorder, as far as it goes. */
#define NICER 19

/*
 * What one look may take of the CPU: a hundredth of the interval, and no less than this.
 * Bound: users: the part of a CPU's time in which one look for changes must end, and no less than
 * 20 s; then: it is ended: users' services are not judged; again: at the next look; share: the
 * system's services are judged first; seen: change_looks_failed, and the log.
 */
#define CPU_PART    100
#define CPU_LEAST_S 20

/*
 * A deploy is judged when the time after it has become twice as long as this, again and again.
 * Bound: pace.
 */
#define JUDGE_FIRST_S (15 * 60)

/*
 * What dpkg or rpm may take of the CPU besides.
 * Bound: machine: CPU time of dpkg or rpm in a look for changes; then: deploys have no versions;
 * again: at the next look; share: none; seen: not seen.
 */
#define PACKAGES_CPU_NS (5 * NS_PER_S)

/*
 * It may wait for the CPU and the disk until the next look is due, and no less than this.
 * Bound: machine: time for which a look for changes may wait for CPUs and disks; then: it is ended;
 * again: at the next look; share: none; seen: change_looks_failed, and the log.
 */
#define LATE_LEAST_NS (300 * NS_PER_S)

/*
 * How much memory it may take, beside what it has of the recorder's.
 * Bound: users: bytes that a look for changes may take; then: it ends; again: at the next look;
 * share: users have parts that are far below it (user/report/changes/changes.c); seen:
 * change_looks_failed, and the log.
 */
#define MEMORY_BYTES (192 * 1024 * 1024)

/*
 * How long look_stop() waits.
 * Bound: machine: time for which the end waits for a look for changes; then: it is left behind,
 * killed; again: at the next start; share: none; seen: not seen.
 */
#define STOP_MS 100

/* The least difference that is reported, as profiltool changes has it, in percent. */
#define LEAST_PERCENT 1

/*
 * Of one look: changes that get files, which take time and room.
 * Bound: users: changes that one look writes files of; then: the line of further ones has the
 * command that prints them; again: at the next look; share: the system's services first; seen: the
 * log.
 */
#define FILES_MAX 8

/*
 * Of one look: changes of users' services that are reported.
 * Bound: users: changes of users' and containers' services that one look reports; then: further
 * ones are not; again: at a later look; share: those who have few functions first, the system's
 * services are without limit; seen: the log.
 */
#define OTHERS_MAX 50

/* In a line of the log: images of a deploy. */
#define IMAGES_SHOWN 3

/* --- What was reported --- */

#define FOUND_FILE ".changes" /* in the host's directory of the archive */
/*
 * Bound: users: changes that are remembered as reported; then: the oldest is forgotten, and may be
 * reported again; again: at the next look; share: users' before the system's; seen: not seen.
 */
#define FOUND_MOST   1000
#define FOUND_KEEP_S (LOOK_BACK_S + 24 * 3600)

/* In the names of services: what begins that of a unit, and what is before a user's. */
#define FOUND_UNIT "unit:"
#define FOUND_OF   "%20of%20"

/* What is read of it: what others wrote there must not take all memory. */
#define FOUND_LINE_SIZE 16384

/*
 * Of a deploy, so that a line of it is no longer than that: one of them is enough to know it by.
 * Bound: users: images of a deploy by which a change is known again; then: further ones are left
 * out; again: never; share: the deploy's own; seen: not seen.
 */
#define FOUND_BUILDS_MOST 100

/* A deploy is seen at other times when windows are merged: up to an hour. Bound: pace. */
#define FOUND_SLACK_S 4200

struct found {
	uint64_t begin_s, end_s; /* of the deploy */
	char *outcome;		 /* "worse" or "better" */
	char *builds;		 /* new ones, with commas between them; "-": none */
	char *service;		 /* as found_text() has it */
};

struct found_list {
	uint64_t looked_s; /* when the last look began; 0: none did */
	struct found *list;
	size_t count, room;
};

static void found_free_row(struct found *f)
{
	free(f->outcome);
	free(f->builds);
	free(f->service);
}

static void found_drop(struct found_list *l, size_t i)
{
	found_free_row(&l->list[i]);
	memmove(&l->list[i], &l->list[i + 1], (--l->count - i) * sizeof(*l->list));
}

/* Takes what the list is to hold; frees it where there is no memory. Returns 0 or -ENOMEM. */
static int found_add(struct found_list *l, struct found *f)
{
	size_t oldest = l->count;

	/*
	 * Users can have any number: they do not push out what is known of services of the system,
	 * whose names no user may give.
	 */
	for (size_t i = l->count; i-- > 0 && l->count == FOUND_MOST;) {
		const char *service = l->list[i].service;

		if (strncmp(service, FOUND_UNIT, strlen(FOUND_UNIT)) != 0 || strchr(service, '/') ||
		    strstr(service, FOUND_OF) ||
		    strncmp(service, FOUND_UNIT "user@", strlen(FOUND_UNIT "user@")) == 0)
			oldest = i;
	}
	if (l->count == FOUND_MOST)
		found_drop(l, oldest < l->count ? oldest : 0);
	if (!f->outcome || !f->builds || !f->service || array_add(l->list, l->count, l->room, *f)) {
		found_free_row(f);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Reads the file; others may own its directory. What is no line of it is skipped: at worst, what it
 * should say is reported again. Returns 0 or -ENOMEM.
 */
static int found_read(struct found_list *l, const char *directory, const char *host)
{
	FILE *in = tree_read_list(directory, host, FOUND_FILE);
	char *line = malloc(FOUND_LINE_SIZE);
	int err = line ? 0 : -ENOMEM;

	for (size_t i = 0; in && !err && i <= FOUND_MOST && fgets(line, FOUND_LINE_SIZE, in); i++) {
		struct found f = { 0 };

		if (sscanf(line, "looked %" SCNu64, &l->looked_s) == 1)
			continue;
		if (sscanf(line, "%" SCNu64 " %" SCNu64 " %ms %ms %ms", &f.begin_s, &f.end_s,
			   &f.outcome, &f.builds, &f.service) == 5) {
			err = found_add(l, &f);
			continue;
		}
		found_free_row(&f);
	}
	free(line);
	file_close_stream(in);
	return err;
}

static int write_found(FILE *out, void *context, struct error *e)
{
	const struct found_list *l = context;

	(void)e;
	fprintf(out, "looked %" PRIu64 "\n", l->looked_s);
	for (size_t i = 0; i < l->count; i++)
		fprintf(out, "%" PRIu64 " %" PRIu64 " %s %s %s\n", l->list[i].begin_s,
			l->list[i].end_s, l->list[i].outcome, l->list[i].builds,
			l->list[i].service);
	return 0;
}

static void put_escaped(const char *text, FILE *out)
{
	for (const char *at = text; *at; at++)
		fprintf(out, *at <= ' ' || *at == '%' || *at > '~' ? "%%%02x" : "%c",
			(unsigned char)*at);
}

/*
 * The service as one word, as whoever may make control groups names units; or, with `builds`, the
 * new builds. NULL: no memory.
 */
static char *found_text(const struct change *change, bool builds)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (!builds) {
		fputs(change->container ? "container:" : FOUND_UNIT, out);
		put_escaped(change->service, out);
	}
	if (!builds && change->user) {
		fputs(FOUND_OF, out);
		put_escaped(change->user, out);
	}
	if (builds && !change->image_count)
		fputs("-", out);
	for (size_t i = 0; builds && i < change->image_count && i < FOUND_BUILDS_MOST; i++)
		fprintf(out, "%s%s", i ? "," : "", change->images[i].builds[AFTER]);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static const char *outcome_name(const struct change *change)
{
	return change->outcome == CHANGE_WORSE ? "worse" : "better";
}

/* Whether a change is this one that was reported. */
static bool is_found(const struct found *f, const struct change *change, const char *service)
{
	bool shared = !change->image_count || strcmp(f->builds, "-") == 0;

	if (strcmp(f->service, service) != 0 || strcmp(f->outcome, outcome_name(change)) != 0 ||
	    change->begin_ns / NS_PER_S > f->end_s + FOUND_SLACK_S ||
	    f->begin_s > change->end_ns / NS_PER_S + FOUND_SLACK_S)
		return false;
	for (size_t i = 0; i < change->image_count && !shared; i++)
		shared = strstr(f->builds, change->images[i].builds[AFTER]);
	return shared;
}

/* --- One look: in its own process --- */

struct looker {
	const struct continuous_options *o;
	const char *host;
	struct state *state;
	uint64_t begin_s; /* when the look began */
	struct changes changes;
	struct found_list found;
	struct archive_packages packages;
	struct archive_packages none; /* images that are of none: make_none_key() */
	bool packages_added;	      /* some that are to be written */
	bool packages_end;	      /* there is no dpkg or rpm that would answer */
	size_t files;		      /* how many changes have got some */
};

/* Makes a key for an image of no package: its build ID alone may be that of a file of one. */
static void make_none_key(const struct profile_image *image, char key[static BUILD_ID_TEXT_SIZE])
{
	uint64_t hash = hash_bytes(image->build_id, image->build_id_size, 0);

	hash = hash_bytes(image->path, strlen(image->path), hash);
	snprintf(key, BUILD_ID_TEXT_SIZE, "%016" PRIx64, hash);
}

/*
 * Notes which packages a window's images are of, if it is not known: while they are installed, as
 * an upgrade leaves no trace of the version before. What another user chose may have the build ID
 * of what is installed. Returns 0 or -ENOMEM.
 */
static int note_packages(struct looker *k, const struct profile *p)
{
	const struct profile_image *images[PACKAGE_IMAGES_MAX];
	struct package packages[PACKAGE_IMAGES_MAX];
	size_t next = 0, count;
	int err = 0;

	do {
		struct rusage used = { 0 };

		for (count = 0; next < p->image_count && count < PACKAGE_IMAGES_MAX; next++) {
			const struct profile_image *image = &p->images[next];
			char build[BUILD_ID_TEXT_SIZE], none[BUILD_ID_TEXT_SIZE];

			if (!image->build_id_size || image->provider)
				continue;
			build_id_format(image->build_id, image->build_id_size, build);
			make_none_key(image, none);
			if (!packages_find(&k->packages, build) && !packages_find(&k->none, none))
				images[count++] = image;
		}
		getrusage(RUSAGE_CHILDREN, &used);
		if (!count || k->packages_end || rusage_ns(&used) > PACKAGES_CPU_NS)
			break;
		k->packages_end = !package_versions(images, count, packages);
		for (size_t i = 0; i < count && !k->packages_end && !err; i++) {
			char key[BUILD_ID_TEXT_SIZE];

			if (*packages[i].version) {
				build_id_format(images[i]->build_id, images[i]->build_id_size, key);
				if (packages_find(&k->packages, key)) /* it has two images */
					continue;
				k->packages_added = true;
				err = packages_add(&k->packages, key, packages[i].name,
						   packages[i].version);
			} else {
				make_none_key(images[i], key);
				err = packages_find(&k->none, key)
					      ? 0
					      : packages_add(&k->none, key, "", "");
			}
		}
	} while (!err);
	return err;
}

static int read_windows(struct looker *k, struct error *e)
{
	/* What ran before the last look has been asked for by then. */
	uint64_t looked_s = k->found.looked_s;
	uint64_t recent_ns = looked_s && looked_s < k->begin_s
				     ? looked_s * NS_PER_S
				     : k->begin_s * NS_PER_S - k->o->watch_ns;
	uint64_t since_s = k->begin_s > LOOK_BACK_S ? k->begin_s - LOOK_BACK_S : 0;
	struct archive_window *windows;
	size_t count;
	int err = archive_list(k->o->directory, k->host, since_s * NS_PER_S, UINT64_MAX, &windows,
			       &count, e);

	if (err)
		return err;
	for (size_t i = 0; i < count && !err; i++) {
		struct profile *p;

		err = window_read_stacks(windows[i].path, changes_choice(&k->changes), &p, e);
		/* Damaged, which the keeper reports; or merged or removed meanwhile. */
		if (err == -EINVAL || err == -ENOENT) {
			err = 0;
			continue;
		}
		if (err)
			break;
		if (changes_add(&k->changes, windows[i].host, windows[i].start_ns,
				windows[i].limit_ns, p) ||
		    (windows[i].limit_ns > recent_ns && note_packages(k, p)))
			err = error_no_memory(e);
		profile_free(p);
	}
	archive_list_free(windows, count);
	return err;
}

/* Prints a word as a shell takes it. */
static void print_word(const char *word, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_@%+=:,./-";

	if (word[strspn(word, plain)] == '\0') {
		fputs(word, out);
		return;
	}
	putc('\'', out);
	for (const char *at = word; *at; at++)
		if (*at == '\'')
			fputs("'\\''", out);
		else
			putc(*at, out);
	putc('\'', out);
}

/* Whoever reads it is in another directory. */
static void print_path(const char *path, FILE *out)
{
	char *real = realpath(path, NULL);

	print_word(real ?: path, out);
	free(real);
}

static void print_deploy(const struct change *change, FILE *out)
{
	fprintf(out, "since %s UTC (", time_text(change->end_ns / NS_PER_S, true, "%F %H:%M").text);
	for (size_t i = 0; i < change->image_count && i < IMAGES_SHOWN; i++) {
		const struct change_image *image = &change->images[i];
		const struct archive_package *old = image->packages[BEFORE];
		const struct archive_package *new = image->packages[AFTER];

		fprintf(out, "%s%s", i ? ", " : "a new build of ", image->name);
		if (change_image_has_versions(image))
			fprintf(out, ", %s %s after %s", new->name, new->version, old->version);
	}
	if (change->image_count > IMAGES_SHOWN)
		fprintf(out, " and %zu more", change->image_count - IMAGES_SHOWN);
	if (!change->image_count)
		fputs("restarted", out);
	fputc(')', out);
}

/* The function that explains it best: by itself rather than with what it calls. NULL: none. */
static const struct change_row *main_row(const struct change *change)
{
	const struct change_row *main = NULL;
	int sign = change->outcome == CHANGE_WORSE ? 1 : -1;

	for (size_t i = 0; i < change->row_count; i++) {
		const struct change_row *row = &change->rows[i];

		if (row->difference * sign > 0 &&
		    (!main || (main->total && !row->total) ||
		     (main->total == row->total &&
		      row->difference * sign > main->difference * sign)))
			main = row;
	}
	return main;
}

#define PATTERN_SIZE (2 * NAME_MAX + 3)

/* In patterns, what is special is as it stands. Cuts what has no room: then nothing matches. */
static void escape_pattern(const char *text, char *pattern, size_t size)
{
	size_t used = 0;

	for (; *text && used + 3 <= size; text++) {
		if (strchr("*?[]\\", *text))
			pattern[used++] = '\\';
		pattern[used++] = *text;
	}
	pattern[used] = '\0';
}

/*
 * Writes the files of a change. Returns whether paths are theirs; what fails is logged.
 */
static bool write_files(struct looker *k, const struct change *change, char (*paths)[PATH_MAX])
{
	const struct change_span *spans = change->spans;
	char pattern[PATTERN_SIZE], what[2 * NAME_MAX];
	struct archive_change c = {
		.what = what,
		.time_ns = change->end_ns,
		.before = { spans[BEFORE].since_ns, spans[BEFORE].until_ns },
		.after = { spans[AFTER].since_ns, spans[AFTER].until_ns },
	};
	struct error e;

	if (k->files == FILES_MAX)
		return false;
	k->files++;
	escape_pattern(change->service, pattern, sizeof(pattern));
	c.service.tags[change->container ? TAG_CONTAINER : TAG_UNIT] = pattern;
	c.service.tags[TAG_USER] = change->user;
	snprintf(what, sizeof(what), "%s", change->service);
	if (!archive_write_change(k->o->directory, k->host, &c, paths, &e))
		return true;
	log_error(&e);
	return false;
}

/* The line of the log: what got worse, since when, by how much, and how to see it. */
static int report_change(struct looker *k, const struct change *change)
{
	const struct change_row *row = main_row(change);
	bool worse = change->outcome == CHANGE_WORSE;
	char paths[CHANGE_SIDES][PATH_MAX], pattern[PATTERN_SIZE], *line = NULL, *name;
	size_t size;
	FILE *out = open_memstream(&line, &size);
	int err;

	if (!out)
		return -ENOMEM;
	fprintf(out, "%s%s%s%s: %s ", change->container ? "container " : "", change->service,
		change->user ? " of " : "", change->user ?: "", outcome_name(change));
	print_deploy(change, out);
	fprintf(out, ": the same work takes %.2f %% %s CPU time",
		change->cost < 0 ? -change->cost : change->cost, worse ? "more" : "less");
	if (row) {
		fprintf(out, ", above all %s%s in %s, %+.2f +/- %.2f %%",
			row->total ? "what is called by " : "", row->function ?: "a function",
			row->image, row->difference, row->error);
		if (change->row_count > 1)
			fprintf(out, ", of %zu that differ", change->row_count);
	}
	if (write_files(k, change, paths)) {
		fputs("; profiltool flamegraph --diff ", out);
		print_path(paths[BEFORE], out);
		putc(' ', out);
		print_path(paths[AFTER], out);
		fputs(" -o change.svg", out);
	} else {
		escape_pattern(change->service, pattern, sizeof(pattern));
		fprintf(out, "; profiltool changes --since @%" PRIu64 " --%s ",
			change->spans[BEFORE].since_ns / NS_PER_S,
			change->container ? "container" : "unit");
		print_word(pattern, out);
		putc(' ', out);
		print_path(k->o->directory, out);
	}
	err = fclose(out) ? -ENOMEM : 0;
	if (!err)
		log_note("%s", line);
	free(line);
	if (asprintf(&name, "%s%s%s", change->service, change->user ? " of " : "",
		     change->user ?: "") < 0)
		return -ENOMEM;
	state_add_change(k->state, name, change->of_system, worse, k->begin_s);
	free(name);
	return err;
}

static unsigned int doublings(uint64_t after_s)
{
	unsigned int count = 0;

	for (; after_s >= JUDGE_FIRST_S; after_s /= 2)
		count++;
	return count;
}

/*
 * Reports what is new, of the system's services or of those that others have named. Each is noted
 * at once: a look that is ended does not report it again.
 */
static int report_changes(struct looker *k, bool of_system, struct error *e)
{
	uint64_t looked_s = k->found.looked_s;
	uint64_t since_s = looked_s && looked_s < k->begin_s ? k->begin_s - looked_s : UINT64_MAX;
	size_t reported = 0;
	int err = 0;

	for (size_t i = 0; i < k->changes.count && !err; i++) {
		const struct change *change = &k->changes.changes[i];
		struct found f = { .begin_s = change->begin_ns / NS_PER_S,
				   .end_s = change->end_ns / NS_PER_S };
		const struct change_span *after = &change->spans[AFTER];
		uint64_t after_s = (after->until_ns - after->since_ns) / NS_PER_S;
		bool known = false;

		/*
		 * Each look at a deploy is another chance for chance: so not all of a day's looks
		 * judge it, but those after which there is much more to judge by than at the last.
		 */
		if (change->of_system != of_system ||
		    (change->outcome != CHANGE_WORSE && change->outcome != CHANGE_BETTER) ||
		    doublings(after_s) <= doublings(after_s > since_s ? after_s - since_s : 0))
			continue;
		f.service = found_text(change, false);
		for (size_t n = 0; n < k->found.count && f.service && !known; n++)
			known = is_found(&k->found.list[n], change, f.service);
		if (known) {
			free(f.service);
			continue;
		}
		if (!of_system && reported++ == OTHERS_MAX) {
			log_note("more changes of users' services are not reported: too many");
			free(f.service);
			break;
		}
		f.outcome = strdup(outcome_name(change));
		f.builds = found_text(change, true);
		if (found_add(&k->found, &f) || report_change(k, change))
			return error_no_memory(e);
		err = tree_write_list(k->o->directory, k->host, FOUND_FILE, write_found, &k->found,
				      e);
	}
	return err;
}

/* Sets what the process may take: the recording comes first, and so does all else. */
static void set_limits(const struct continuous_options *o)
{
	const rlim_t cpu_s = MAX(o->watch_ns / NS_PER_S / CPU_PART, CPU_LEAST_S);
	const struct rlimit cpu = { cpu_s, cpu_s + 1 };
	const struct sched_param batch = { 0 };
	struct rlimit memory = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	/* The sixth number: pages that are written to. */
	if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1)
		memory.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
	file_close_stream(file);
	setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_CPU, &cpu);
	/* Not SCHED_IDLE: where all CPUs are busy for hours, it would come to no end. */
	sched_setscheduler(0, SCHED_BATCH, &batch);
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
	syscall(SYS_ioprio_set, 1 /* this process */, 0, 3 << 13 /* idle */);
	memory_offer();
}

/* Does not return. */
static void run_look(struct looker *k, pid_t recorder)
{
	const struct changes_options options = {
		.least_percent = LEAST_PERCENT,
		.packages = &k->packages,
	};
	sigset_t limit;
	struct error e;
	int err;

	/* Without the recorder's descriptors, the archive's lock above all. */
	child_enter("profild-changes", recorder, SIGKILL, -1);
	sigemptyset(&limit);
	sigaddset(&limit, SIGXCPU);
	sigprocmask(SIG_UNBLOCK, &limit, NULL);
	set_limits(k->o);
	k->begin_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	err = capabilities_keep(CAPABILITIES_NONE, &e);
	if (!err && (found_read(&k->found, k->o->directory, k->host) ||
		     packages_read(&k->packages, k->o->directory, k->host) ||
		     changes_begin(&k->changes, NULL)))
		err = error_no_memory(&e);
	err = err ?: read_windows(k, &e);
	if (!err && k->packages_added)
		err = packages_write(&k->packages, k->o->directory, k->host, &e);
	/* The system's first: others' may be too many for the limits of a look. */
	for (int of_system = 1; of_system >= 0 && !err; of_system--) {
		const char *most;

		if (changes_find(&k->changes, &options, of_system))
			err = error_no_memory(&e);
		most = changes_omitted(&k->changes, of_system);
		if (!err && most)
			log_note("not all of %s%s is compared: too many functions, services or "
				 "deploys",
				 most, of_system ? "" : ", and perhaps other users,");
		err = err ?: report_changes(k, of_system, &e);
	}
	for (size_t i = k->found.count; i-- > 0;)
		if (k->found.list[i].end_s + FOUND_KEEP_S < k->begin_s)
			found_drop(&k->found, i);
	k->found.looked_s = k->begin_s;
	err = err
		      ?: tree_write_list(k->o->directory, k->host, FOUND_FILE, write_found,
					 &k->found, &e);
	if (err)
		log_error(&e);
	_exit(err != 0);
}

/* --- In the recorder --- */

void look_begin(struct look *l, const struct continuous_options *o, const char *host)
{
	struct found_list found = { 0 };
	uint64_t now_s = clock_ns(CLOCK_REALTIME) / NS_PER_S, wait_ns = o->watch_ns;

	if (!o->watch_ns)
		return;
	found_read(&found, o->directory, host);
	/* A time that is not yet is one of a clock that was wrong. */
	if (found.looked_s && found.looked_s <= now_s)
		wait_ns = (now_s - found.looked_s) * NS_PER_S < o->watch_ns
				  ? o->watch_ns - (now_s - found.looked_s) * NS_PER_S
				  : 0;
	while (found.count)
		found_drop(&found, found.count - 1);
	free(found.list);
	l->next_ns = now_ns() + wait_ns;
}

void look_if_due(struct look *l, const struct continuous_options *o, const char *host,
		 struct state *state)
{
	struct looker k = { .o = o, .host = host, .state = state };
	pid_t recorder = getpid();
	uint64_t now = now_ns();
	struct error e;

	if (l->pid > 0 && now >= l->end_ns && !l->late) {
		l->late = true;
		kill(l->pid, SIGKILL); /* its child, not waited for yet: nobody else has the PID */
	}
	if (!o->watch_ns || l->pid > 0 || now < l->next_ns)
		return;
	l->next_ns = now + o->watch_ns;
	l->end_ns = now + MAX(o->watch_ns, LATE_LEAST_NS);
	l->late = false;
	l->pid = fork();
	if (l->pid == 0)
		run_look(&k, recorder);
	if (l->pid < 0) {
		error_set(&e, errno, "cannot start the process that looks for changes");
		log_problem(&e);
		state->looks_failed++;
		l->pid = 0;
	}
}

void look_wait(struct look *l, struct state *state)
{
	int status;

	if (l->pid <= 0 || waitpid(l->pid, &status, WNOHANG) != l->pid)
		return;
	l->pid = 0;
	state->looks++;
	state->last_look_s = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	if (!status)
		return;
	state->looks_failed++;
	if (l->late)
		log_note("a look for changes was ended: it had not come to an end when the next "
			 "one was due");
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		log_note("a look for changes was ended: it took too much CPU time");
	else
		log_note("a look for changes has failed (status %#x)", status);
}

void look_stop(struct look *l)
{
	if (l->pid <= 0)
		return;
	kill(l->pid, SIGKILL); /* its child, not waited for yet */
	/* One that waits for a file system does not end by that; nor does it hold up the end. */
	child_reap(l->pid, STOP_MS);
	l->pid = 0;
}
