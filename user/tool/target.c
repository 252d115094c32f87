// SPDX-License-Identifier: GPL-2.0-only
#include "tool/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/target.h"
#include "capture/tick.h"
#include "cli/capabilities.h"
#include "script/language.h"
#include "symbol/parser.h"
#include "tool/tool.h"
#include "util/file.h"
#include "util/number.h"
#include "util/proc.h"

/* Bound: caller: ticks per second; then: the option is refused. */
#define MOST_HZ 100000
/*
 * Bound: caller: skipped processes that are named in warnings; then: the last says how many more
 * there are.
 */
#define MOST_WARNINGS 5
/* No divisor of the usual clocks, so that ticks do not run in lockstep with them. */
#define DEFAULT_HZ 99

bool tool_is_target(const struct tool_target *t, pid_t pid)
{
	for (size_t i = 0; i < t->pid_count; i++)
		if (t->pids[i] == pid)
			return true;
	return false;
}

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
}

int tool_option_event(const char *value, void *member, struct error *e)
{
	int event;

	if (strcmp(value, "task-clock") == 0) /* perf's, which ticks for one thread */
		value = capture_event_names[CAPTURE_CPU_CLOCK];
	event = tool_find_word("-e", value, capture_event_names, CAPTURE_EVENTS, e);
	if (event < 0)
		return event;
	*(enum capture_event *)member = event;
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
			tool_warn("skipped: %s", e.what);
	if (skipped > MOST_WARNINGS)
		tool_warn("skipped: %zu more that cannot be profiled", skipped - MOST_WARNINGS);
	t->pid_count = kept;
}

struct capture_options tool_capture_options(const struct tool_target *t)
{
	struct capture_options c = {
		.target = CAPTURE_PROCESSES,
		.pids = t->pids,
		.pid_count = t->pid_count,
		.event = t->event,
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
		.is_interpreter = language_is_interpreter,
		.unwind_mib = t->unwind_mib,
		.native = t->native,
		.waits_percent = 2,
	};

	if (!c.frequency && capture_has_rate(c.event))
		c.frequency = DEFAULT_HZ;
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

	if (t->event != CAPTURE_TICK)
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
