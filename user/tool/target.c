// SPDX-License-Identifier: GPL-2.0-only
#include "tool/target.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/cgroup.h"
#include "capture/events.h"
#include "capture/perf_event.h"
#include "capture/target.h"
#include "capture/tick.h"
#include "cli/capabilities.h"
#include "cli/options.h"
#include "profile/filter.h"
#include "record/cgroup_name.h"
#include "record/container.h"
#include "report/text.h"
#include "script/context.h"
#include "script/language.h"
#include "symbol/parser.h"
#include "tool/tool.h"
#include "util/array.h"
#include "util/file.h"
#include "util/number.h"
#include "util/proc.h"

/*
 * Bound: users: bytes of a command line in which a name is searched; then: the rest is not matched;
 * again: never; share: the process's own; seen: not seen.
 */
#define COMMAND_LINE_MAX 131072 /* as pgrep(1) reads it */
/* Bound: format. */
#define COMM_MAX 15 /* letters of a thread's name, in the kernel */
/* Bound: caller: processes in a message; then: further ones are "...". */
#define MOST_PRINTED 16 /* processes, in the message of what was found */

/* A running process. */
struct candidate {
	pid_t pid;
	char comm[64];
	char program[PATH_MAX];		     /* base name of its file; "": unknown */
	char command_line[COMMAND_LINE_MAX]; /* words separated by blanks; "": of the kernel */
};

/* True if -p named this process. */
static bool tool_is_target(const struct tool_target *t, pid_t pid)
{
	for (size_t i = 0; i < t->pid_count; i++)
		if (t->pids[i] == pid)
			return true;
	return false;
}

static void read_candidate(struct candidate *c)
{
	char file[PATH_MAX];
	ssize_t size;

	c->comm[0] = c->program[0] = c->command_line[0] = '\0';
	file_read_line(proc_path(c->pid, 0, "comm").text, c->comm, sizeof(c->comm));
	size = readlink(proc_path(c->pid, 0, "exe").text, file, sizeof(file) - 1);
	if (size > 0) {
		static const char deleted[] = " (deleted)"; /* the kernel appends it */
		char *end = file + size - (sizeof(deleted) - 1);

		file[size] = '\0';
		if (end > file && strcmp(end, deleted) == 0)
			*end = '\0';
		snprintf(c->program, sizeof(c->program), "%s", text_basename(file));
	}
	size = file_read_text(AT_FDCWD, proc_path(c->pid, 0, "cmdline").text, c->command_line,
			      sizeof(c->command_line));
	while (size > 0 && (!c->command_line[size - 1] || c->command_line[size - 1] == ' '))
		size--; /* titles are padded */
	c->command_line[size > 0 ? size : 0] = '\0';
	for (ssize_t i = 0; i < size; i++)
		if (!c->command_line[i])
			c->command_line[i] = ' ';
}

/*
 * The name that ps -e shows, which the kernel cuts, that of its file, or that of its first word: a
 * file, or the name of a title as "gunicorn: master [app]" and "[celeryd: main]".
 */
static bool has_name(const struct candidate *c, const char *name)
{
	const char *base = c->command_line + (*c->command_line == '['), *slash;
	size_t first = strcspn(base, " ");
	size_t size = strlen(name);

	if (strcmp(c->comm, name) == 0 || strcmp(c->program, name) == 0)
		return true;
	if (size > COMM_MAX && strlen(c->comm) == COMM_MAX && strncmp(c->comm, name, COMM_MAX) == 0)
		return true;
	slash = memrchr(base, '/', first);
	if (slash) {
		first -= slash + 1 - base;
		base = slash + 1;
	}
	return strncmp(base, name, size) == 0 &&
	       (first == size || (first == size + 1 && base[size] == ':'));
}

/* What names processes, and what was found. */
struct wanted {
	char *name;	      /* NULL: the pattern */
	bool is_pid;	      /* the name is a PID that no process has */
	const regex_t *regex; /* of the pattern */
	size_t found;
	struct similar similar;
	/* The one that is this name and a version, as php-fpm8.2 is for php-fpm; "": none */
	char versioned[64];
	bool several; /* there are several of these */
	char pids[16 * MOST_PRINTED];
};

/* True for php-fpm8.2 and php-fpm, gcc-12 and gcc. */
static bool is_version_of(const char *comm, const char *name)
{
	size_t size = strlen(name);
	const char *version = comm + size;

	if (strncmp(comm, name, size) != 0 || !size || isdigit((unsigned char)name[size - 1]))
		return false;
	version += *version == '-';
	return isdigit((unsigned char)*version) && version[strspn(version, "0123456789.")] == '\0';
}

static int look_at(struct tool_target *t, const struct candidate *c, struct wanted *wanted,
		   size_t count, bool is_ancestor, struct error *e)
{
	const char *of_kernel = *c->command_line ? c->command_line : c->comm;
	struct error ignored;
	int err = 0;

	if (c->pid == getpid() || target_check(c->pid, false, t->kernel, &ignored))
		return 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct wanted *w = &wanted[i];
		bool takes =
			w->name ? has_name(c, w->name)
				: !is_ancestor && regexec(w->regex, of_kernel, 0, NULL, 0) == 0;

		if (takes) {
			if (++w->found <= MOST_PRINTED)
				text_append(w->pids, sizeof(w->pids), ", ", "%d", c->pid);
			if (w->is_pid || tool_is_target(t, c->pid))
				continue;
			if (t->pid_count == TARGET_MOST_PIDS)
				err = error_set(e, 0, "more than %d processes are meant",
						TARGET_MOST_PIDS);
			else
				t->pids[t->pid_count++] = c->pid;
		} else if (w->name && !w->is_pid) {
			if (is_version_of(c->comm, w->name)) {
				w->several |= *w->versioned && strcmp(w->versioned, c->comm) != 0;
				snprintf(w->versioned, sizeof(w->versioned), "%s", c->comm);
			}
			similar_offer(&w->similar, c->comm);
		}
	}
	return err;
}

static int look_at_all(struct tool_target *t, struct wanted *wanted, size_t count, struct error *e)
{
	struct candidate *c = malloc(sizeof(*c));
	DIR *directory = opendir("/proc");
	/* This program and those that have started it: sudo and shells have its command line in
	 * theirs. */
	struct proc_stat stat = { .parent = getpid() };
	pid_t ancestors[64];
	size_t ancestor_count = 0;
	int err = 0;

	while (stat.parent > 0 && ancestor_count < 64) {
		ancestors[ancestor_count++] = stat.parent;
		if (proc_read_stat(stat.parent, &stat))
			break;
	}
	if (!c)
		err = error_no_memory(e);
	else if (!directory)
		err = error_set(e, errno, "cannot list processes: /proc");
	while (!err && (c->pid = proc_next(directory))) {
		bool is_ancestor = false;

		for (size_t i = 0; i < ancestor_count; i++)
			is_ancestor |= ancestors[i] == c->pid;
		read_candidate(c);
		err = look_at(t, c, wanted, count, is_ancestor, e);
	}
	if (directory)
		closedir(directory);
	free(c);
	return err;
}

/* Sets e to why nothing was found. */
static int find_none(const struct wanted *w, const struct tool_target *t, struct error *e)
{
	if (w->name)
		error_set(e, 0, "no process has the name \"%s\"", w->name);
	else
		error_set(e, 0, "no process has a command line that matches \"%s\"", t->pgrep);
	if (w->name && *w->similar.best)
		error_hint(e, "one has the name %s: -p %s; list all with: ps -e", w->similar.best,
			   w->similar.best);
	else if (access("/proc/1", F_OK))
		error_hint(e, "/proc hides the processes of others here (hidepid): run it as root");
	else if (w->name)
		error_hint(e, "list the names with: ps -e; --pgrep finds words of command lines");
	else
		error_hint(e, "list command lines with: ps -ef");
	return -ESRCH;
}

static int add_group(struct tool_target *t, const char *path, struct error *e)
{
	t->groups[t->group_count] = strdup(path);
	if (!t->groups[t->group_count])
		return error_no_memory(e);
	t->group_count++;
	return 0;
}

/* A unit or a container, and the control groups that are one. */
struct group_search {
	struct tool_target *t;
	const char *pattern;
	bool by_unit;
	const struct container_list *containers;
	struct group_match {
		char name[CGROUP_NAME_SIZE];
		char path[PATH_MAX];
	} * matches;
	size_t count, room;
	struct similar similar; /* of all, without ".service" */
	char near[CGROUP_NAME_SIZE];
	size_t all; /* units or containers that there are */
};

static bool is_wanted(const struct group_search *s, const char *name)
{
	if (s->by_unit)
		return profile_unit_matches(s->pattern, name);
	for (size_t i = 0; i < s->containers->count; i++)
		if (strcmp(s->containers->texts[i], name) == 0)
			return true;
	return !s->containers->count && profile_container_matches(s->pattern, name);
}

static int visit_group(const char *path, size_t below, void *context)
{
	struct group_search *s = context;
	char name[CGROUP_NAME_SIZE], offered[CGROUP_NAME_SIZE];
	struct group_match *match;

	if (!(s->by_unit ? cgroup_unit : cgroup_container)(path + below, name))
		return 0;
	s->all++;
	if (!is_wanted(s, name)) {
		snprintf(offered, sizeof(offered), "%.*s",
			 (int)(strstr(name, ".service") ? strstr(name, ".service") - name
							: (ptrdiff_t)strlen(name)),
			 name);
		if (similar_offer(&s->similar, offered))
			snprintf(s->near, sizeof(s->near), "%s", name);
		return 0;
	}
	if (array_reserve(&s->matches, &s->room, s->count + 1, sizeof(*s->matches)))
		return -ENOMEM;
	match = &s->matches[s->count++];
	snprintf(match->name, sizeof(match->name), "%s", name);
	snprintf(match->path, sizeof(match->path), "%s", path);
	return 1; /* those below it belong to it */
}

static void explain_no_group(const struct group_search *s, struct error *e)
{
	error_set(e, 0, "no %s \"%s\" runs", s->by_unit ? "unit" : "container", s->pattern);
	if (*s->near)
		error_hint(e, "one has the name %s", s->near);
	else if (!s->by_unit && s->containers->count)
		error_hint(e, "there is one of this name, but no control group of it: it does not "
			      "run, or in another namespace");
	else if (!s->by_unit && *s->containers->unreadable)
		error_hint(e, "its name may be in %s, which only root may read: run it as root",
			   s->containers->unreadable);
	else if (s->by_unit)
		error_hint(e, "list those that run with: systemctl list-units --state=running; "
			      "profiltool top --by unit");
	else
		error_hint(e, "list those that run with: profiltool top --by container");
}

/* Sets t->name to what was found, and unless `quiet` reports all names if there are several. */
static void describe_groups(const struct group_search *s, struct tool_target *t, bool quiet)
{
	const char *kind = s->by_unit ? "unit" : "container", *first = s->matches->name;
	char names[1024] = "", more[32] = "";
	size_t printed = 0;

	if (s->count > 1)
		snprintf(more, sizeof(more), " and %zu more", s->count - 1);
	if (!s->by_unit && strncmp(first, s->pattern, strlen(s->pattern)) != 0)
		snprintf(t->name, sizeof(t->name), "container %.200s (%.12s)%s", s->pattern, first,
			 more);
	else
		snprintf(t->name, sizeof(t->name), "%s %s%s", kind, first, more);
	for (; printed < s->count && printed < MOST_PRINTED; printed++)
		text_append(names, sizeof(names), ", ", "%.*s", s->by_unit ? 60 : 16,
			    s->matches[printed].name);
	if (s->count > 1 && !quiet)
		tool_warn("\"%s\" is %zu %ss: %s%s", s->pattern, s->count, kind, names,
			  s->count > printed ? ", ..." : "");
}

/* Finds the control groups of --unit or --container. */
static int find_groups(struct tool_target *t, bool quiet, struct error *e)
{
	struct container_list containers = { 0 };
	struct group_search s = {
		.t = t,
		.pattern = t->unit ?: t->container,
		.by_unit = t->unit,
		.containers = &containers,
	};
	int err = t->unit ? 0 : containers_find(t->container, &containers, e);

	s.similar = similar_to(s.pattern);
	/* cgroup v1 where both are: it is there with the controller that only v1 has then. */
	for (int v1 = 1; v1 >= 0 && !err && !s.count; v1--)
		if (cgroup_each(v1, visit_group, &s) == -ENOMEM)
			err = error_no_memory(e);
	if (!err && !s.count) {
		explain_no_group(&s, e);
		err = -ESRCH;
	}
	if (!err && s.count > TARGET_MOST_GROUPS) {
		error_set(e, 0, "more than %d %ss are meant by \"%s\"", TARGET_MOST_GROUPS,
			  s.by_unit ? "unit" : "container", s.pattern);
		error_hint(e, "record the whole machine: -a; report and top take --%s then",
			   s.by_unit ? "unit" : "container");
		err = -EINVAL;
	}
	for (size_t i = 0; i < s.count && !err; i++)
		err = add_group(t, s.matches[i].path, e);
	if (!err)
		describe_groups(&s, t, quiet);
	free(s.matches);
	container_list_free(&containers);
	return err;
}

static int find_user(struct tool_target *t, struct error *e)
{
	struct similar similar = similar_to(t->of_user);
	const struct passwd *entry;
	uint64_t uid;

	if (number_parse(t->of_user, 0, UINT32_MAX - 1, &uid) == 0) {
		entry = getpwuid(uid);
		t->uid = uid;
		snprintf(t->name, sizeof(t->name), "user %s", entry ? entry->pw_name : t->of_user);
		return 0;
	}
	entry = getpwnam(t->of_user);
	if (entry) {
		t->uid = entry->pw_uid;
		snprintf(t->name, sizeof(t->name), "user %s", t->of_user);
		return 0;
	}
	setpwent();
	while ((entry = getpwent()))
		similar_offer(&similar, entry->pw_name);
	endpwent();
	error_set(e, 0, "there is no user \"%s\"", t->of_user);
	if (*similar.best)
		error_hint(e, "one has the name %s", similar.best);
	else
		error_hint(e, "list those whose processes run with: ps -eo user; a number is "
			      "taken as it is");
	return -ESRCH;
}

int tool_find_target(struct tool_target *t, bool quiet, struct error *e)
{
	size_t count = 0, names = t->name_count, pids = t->pid_count;
	struct wanted *wanted = calloc(names + pids + 1, sizeof(*wanted));
	int err = wanted ? 0 : error_no_memory(e), code;
	regex_t regex;
	char why[256];

	if (t->children && (t->no_inherit || !(names || pids || t->pgrep))) {
		free(wanted);
		return error_usage(e, "profiltool -p PID --children",
				   t->no_inherit ? "--children and --no-inherit exclude each other"
						 : "--children is for processes: -p or --pgrep");
	}
	if (t->unit || t->container || t->cgroup || t->of_user) {
		free(wanted);
		return t->of_user  ? find_user(t, e)
		       : t->cgroup ? add_group(t, t->cgroup, e)
				   : find_groups(t, quiet, e);
	}
	if (t->pgrep && !err) {
		code = regcomp(&regex, t->pgrep, REG_EXTENDED | REG_NOSUB);
		if (code) {
			regerror(code, &regex, why, sizeof(why));
			free(wanted);
			return error_usage(
				e,
				"put a backslash before a character that stands for itself; "
				"see regex(7)",
				"--pgrep takes a regular expression, not \"%s\": %s", t->pgrep,
				why);
		}
		wanted[count++].regex = &regex;
	}
	for (size_t i = 0; i < names + pids && !err; i++) {
		struct wanted *w = &wanted[count];

		if (i < names) {
			w->name = strndup(t->names[i].text, t->names[i].size);
		} else if (kill(t->pids[i - names], 0) && errno == ESRCH) {
			w->is_pid = true;
			if (asprintf(&w->name, "%d", t->pids[i - names]) < 0)
				w->name = NULL;
		} else {
			continue;
		}
		if (!w->name)
			err = error_no_memory(e);
		w->similar = similar_to(w->name ?: "");
		count++;
	}
	if (count && !err) {
		/* Needed where /proc hides other users' processes. */
		capabilities_raise();
		err = look_at_all(t, wanted, count, e);
		/* Distributions name some programs with their version, which one need not know. */
		for (size_t i = 0; i < count && !err; i++) {
			struct wanted *w = &wanted[i];

			if (w->found || !*w->versioned || w->several)
				continue;
			free(w->name);
			w->name = strdup(w->versioned);
			err = w->name ? look_at_all(t, w, 1, e) : error_no_memory(e);
		}
		capabilities_lower();
	}
	for (size_t i = 0; i < count && !err; i++) {
		const struct wanted *w = &wanted[i];

		if (w->is_pid && w->found) {
			err = error_set(e, 0, "there is no process %s, but a program of that name",
					w->name);
			error_hint(e, "--pgrep '^([^ ]*/)?%s( |$)' takes it, or -p %s", w->name,
				   w->pids);
		} else if (!w->is_pid && !w->found) {
			err = find_none(w, t, e);
		} else if (!w->is_pid && !quiet) {
			const char *what = w->name ?: t->pgrep;

			if (w->found == 1)
				tool_warn("\"%s\" is process %s", what, w->pids);
			else
				tool_warn("\"%s\" is %zu processes: %s%s", what, w->found, w->pids,
					  w->found > MOST_PRINTED ? ", ..." : "");
		}
	}
	for (size_t i = 0; i < count; i++)
		free(wanted[i].name);
	if (t->pgrep)
		regfree(&regex);
	free(wanted);
	return err;
}

/* Bound: caller: ticks per second; then: the option is refused. */
#define MOST_HZ 100000
/*
 * Bound: caller: skipped processes that are named in warnings; then: the last says how many more
 * there are.
 */
#define MOST_WARNINGS 5
/* No divisor of the usual clocks, so that ticks do not run in lockstep with them. */
#define DEFAULT_HZ 99

int tool_option_pids(const char *value, void *member, struct error *e)
{
	struct tool_target *t = member;
	char *copy = strdup(value), *rest = copy, *word;
	uint64_t pid;
	int err = 0;

	if (!copy)
		return error_no_memory(e);
	while (!err && (word = strsep(&rest, ","))) {
		if (*word && *word != '-' && word[strspn(word, "0123456789")]) {
			if (t->name_count == TARGET_MOST_NAMES)
				err = error_set(e, 0, "-p takes %d names at most",
						TARGET_MOST_NAMES);
			else
				t->names[t->name_count++] =
					(struct target_name){ value + (word - copy), strlen(word) };
		} else if (number_parse(word, 1, INT32_MAX, &pid)) {
			err = error_set(e, 0, "-p takes process numbers or names, not \"%s\"",
					word);
		} else if (tool_is_target(t, pid)) {
			continue; /* it was named twice */
		} else if (t->pid_count == TARGET_MOST_PIDS) {
			err = error_set(e, 0, "-p takes %d processes at most", TARGET_MOST_PIDS);
		} else {
			t->pids[t->pid_count++] = pid;
		}
	}
	free(copy);
	return err;
}

int tool_option_tid(const char *value, void *member, struct error *e)
{
	uint64_t tid;

	if (number_parse(value, 1, INT32_MAX, &tid))
		return error_set(e, 0, "-t takes a thread number, not \"%s\"", value);
	*(pid_t *)member = tid;
	return 0;
}

int tool_option_frequency(const char *value, void *member, struct error *e)
{
	uint64_t frequency;

	if (number_parse(value, 1, MOST_HZ, &frequency))
		return error_set(e, 0,
				 "-F takes a frequency from 1 to %d Hz, not \"%s\" (the kernel's "
				 "own limit: sysctl kernel.perf_event_max_sample_rate)",
				 MOST_HZ, value);
	*(unsigned int *)member = frequency;
	return 0;
}

int tool_option_duration(const char *value, void *member, struct error *e)
{
	uint64_t duration;

	if (number_parse_seconds(value, &duration) || !duration)
		return error_set(e, 0, "-d takes seconds above 0, as 10 or 0.5, not \"%s\"", value);
	*(uint64_t *)member = duration;
	return 0;
}

void tool_list_events(char *text, size_t size)
{
	tool_list_words(capture_event_names, CAPTURE_EVENTS, text, size);
	text_append(text, size, ", ", "list");
}

int tool_print_events(struct error *e)
{
	bool has_cycles = perf_event_try(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES) == 0;
	int tracefs = events_open_tracefs(e);
	char path[64], line[256];
	FILE *events;

	for (int i = 0; i < CAPTURE_EVENTS; i++)
		if (i != CAPTURE_CYCLES || has_cycles)
			printf("%s\n", capture_event_names[i]);
	if (!has_cycles)
		tool_warn("no cycles: this machine has no performance counters");
	if (tracefs < 0)
		return tracefs;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/available_events", tracefs);
	events = fopen(path, "re");
	close(tracefs);
	if (!events)
		return error_set(e, errno, "cannot read the names of tracepoints");
	while (fgets(line, sizeof(line), events))
		fputs(line, stdout);
	fclose(events);
	return 0;
}

int tool_option_event(const char *value, void *member, struct error *e)
{
	struct tool_event *to = member;
	int event;

	if (strchr(value, ':') || strcmp(value, "list") == 0) {
		*to = (struct tool_event){ CAPTURE_POINT, value, !strchr(value, ':') };
		return 0;
	}
	if (strcmp(value, "task-clock") == 0) /* perf's, which ticks for one thread */
		value = capture_event_names[CAPTURE_CPU_CLOCK];
	event = tool_find_word("-e", value, capture_event_names, CAPTURE_EVENTS, e);
	if (event < 0)
		return event;
	*to = (struct tool_event){ .kind = event };
	return 0;
}

int tool_option_call_graph(const char *value, void *member, struct error *e)
{
	static const char *const names[] = {
		[CAPTURE_NO_STACKS] = "none",
		[CAPTURE_STACKS_AUTO] = "auto",
		[CAPTURE_STACKS_CFI] = "cfi",
		[CAPTURE_STACKS_FP] = "fp",
	};

	if (value && *value == '=') /* -g=METHOD, which is -g with the value "=METHOD" */
		value++;
	if (value && strcmp(value, "dwarf") == 0) /* as perf calls call frame information */
		value = names[CAPTURE_STACKS_CFI];
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(value ?: "auto", names[i]) == 0) {
			*(enum capture_stacks *)member = i;
			return 0;
		}
	return error_set(e, 0,
			 "--call-graph takes auto, dwarf or cfi (call frame information), fp "
			 "(frame pointers) or none, not \"%s\"",
			 value);
}

int tool_target_kinds(const struct tool_target *t)
{
	return (t->pid_count || t->name_count || t->pgrep) + (t->tid > 0) + t->all +
	       (t->cgroup != NULL) + (t->unit != NULL) + (t->container != NULL) +
	       (t->of_user != NULL);
}

void tool_target_free(struct tool_target *t)
{
	while (t->group_count)
		free(t->groups[--t->group_count]);
}

void tool_skip_targets(struct tool_target *t)
{
	size_t kept = 0, skipped = 0;
	bool good[TARGET_MOST_PIDS];
	struct error e;

	/* Needed where /proc hides other users' processes. */
	capabilities_raise();
	for (size_t i = 0; i < t->pid_count; i++)
		kept += good[i] = !target_check(t->pids[i], false, t->kernel, &e);
	capabilities_lower();
	if (!kept || kept == t->pid_count)
		return;
	kept = 0;
	for (size_t i = 0; i < t->pid_count; i++)
		if (good[i])
			t->pids[kept++] = t->pids[i];
		else if (skipped++ < MOST_WARNINGS &&
			 target_check(t->pids[i], false, t->kernel, &e))
			tool_warn("not recorded: %s", e.what);
	if (skipped > MOST_WARNINGS)
		tool_warn("not recorded: %zu more that cannot be profiled",
			  skipped - MOST_WARNINGS);
	t->pid_count = kept;
}

int tool_option_variable(const char *value, void *member, struct error *e)
{
	return context_parse(value, member, e);
}

int tool_option_context(const char *value, void *member, struct error *e)
{
	bool *knows_programs = member;

	*knows_programs = strcmp(value, "auto") == 0;
	if (!*knows_programs && strcmp(value, "none") != 0)
		return error_set(e, 0, "--context takes auto or none, not \"%s\"", value);
	return 0;
}

int tool_option_no_context(const char *value, void *member, struct error *e)
{
	(void)value;
	return tool_option_context("none", member, e);
}

struct capture_options tool_capture_options(const struct tool_target *t)
{
	struct capture_options c = {
		.target = CAPTURE_PROCESSES,
		.pids = t->pids,
		.pid_count = t->pid_count,
		.event = t->event.kind,
		.frequency = t->frequency,
		.children = t->children,
		.origins = true,
		.cpus = t->cpus,
		.inherit = !t->no_inherit,
		.user = t->user,
		.kernel = t->kernel,
		.stacks = t->stacks,
		.trim_code = language_trim,
		.read_rows = parser_read_rows,
		.is_interpreter =
			t->wishes.knows_programs ? context_takes_stacks : language_is_interpreter,
		.unwind_mib = t->unwind_mib,
		.native = t->native,
		.waits = t->waits,
		.waits_percent = 2,
		.wishes = t->wishes.knows_programs || t->wishes.count ? &t->wishes : NULL,
	};

	if (!c.frequency && capture_has_rate(c.event))
		c.frequency = DEFAULT_HZ;
	if (c.event == CAPTURE_POINT && (!c.stacks || c.stacks == CAPTURE_STACKS_SCRIPTS))
		c.stacks = CAPTURE_STACKS_AUTO;
	if (t->tid) {
		c.target = CAPTURE_THREAD;
		c.pids = &t->tid;
		c.pid_count = 1;
	} else if (t->all) {
		c.target = CAPTURE_SYSTEM;
	} else if (t->group_count) {
		c.target = CAPTURE_CGROUP;
		c.cgroups = (const char *const *)t->groups;
		c.cgroup_count = t->group_count;
	} else if (t->of_user) {
		c.target = CAPTURE_USER;
		c.uid = t->uid;
	}
	return c;
}

int tool_start_capture(const struct capture_options *options, struct capture **capture,
		       struct error *e)
{
	static struct parser *rows; /* it ends with us */
	struct capture_options c = *options;
	int err = rows ? 0 : parser_new(&rows, e);

	c.parser = rows;
	return err ?: capture_start(&c, capture, e);
}

int tool_asker(const struct tool_target *t, struct runtime_asker **asker, struct error *e)
{
	*asker = NULL;
	if (t->ask_runtimes && t->no_ask_runtimes)
		return error_usage(e, "give only one of them",
				   "--ask-runtimes and --no-ask-runtimes exclude each other");
	/* Processes that nobody has named, of all users, only if that is asked for. */
	if (t->no_ask_runtimes || (!t->ask_runtimes && (t->all || t->group_count || t->of_user)))
		return 0;
	*asker = runtime_asker_new();
	return *asker ? 0 : error_no_memory(e);
}

void tool_warn_of_clock(const struct tool_target *t)
{
	char cpus[256];

	if (t->event.kind != CAPTURE_TICK)
		return;
	tick_tickless_cpus(cpus, sizeof(cpus));
	if (cpus[0])
		tool_warn("CPUs %s have no tick while a single task runs there (nohz_full): -e "
			  "tick misses what such a task does",
			  cpus);
}

void tool_describe_target(const struct tool_target *t, char *text, size_t size)
{
	pid_t pid = t->pid_count ? t->pids[0] : t->tid;
	char comm[64] = "?";

	if (t->all) {
		snprintf(text, size, "the whole machine");
		return;
	}
	if (*t->name) {
		snprintf(text, size, "%s", t->name);
		return;
	}
	if (t->cgroup) {
		snprintf(text, size, "control group %s", t->cgroup);
		return;
	}
	file_read_line(proc_path(pid, 0, "comm").text, comm, sizeof(comm));
	snprintf(text, size, "%s (%s %d)", comm, t->tid ? "TID" : "PID", pid);
	if (t->pid_count > 1)
		snprintf(text, size, "%s (PID %d) and %zu more", comm, pid, t->pid_count - 1);
}
