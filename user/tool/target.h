/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_TOOL_TARGET_H
#define PROFIL_TOOL_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "capture/capture.h"
#include "cli/options.h"
#include "record/ask_runtimes.h"
#include "record/cgroup_name.h"
#include "script/context.h"

/* Bound: caller: processes, names and control groups of one command; then: it is refused. */
#define TARGET_MOST_PIDS   1024
#define TARGET_MOST_NAMES  64
#define TARGET_MOST_GROUPS 512 /* each has a descriptor */
#define TARGET_NAME_SIZE   (CGROUP_NAME_SIZE + 64)

/* Options of the commands that watch programs: a member of each one's options. */
struct tool_target {
	pid_t pids[TARGET_MOST_PIDS];
	size_t pid_count;
	/* Of -p, until tool_find_target() has replaced them by PIDs: parts of its value. */
	struct target_name {
		const char *text;
		size_t size;
	} names[TARGET_MOST_NAMES];
	size_t name_count;
	const char *pgrep; /* NULL: none; likewise */
	pid_t tid;	   /* 0: none */
	bool all;
	const char *cgroup, *unit, *container, *of_user; /* as given; NULL: none */
	/* What tool_find_target() has found for them. */
	uid_t uid;
	char *groups[TARGET_MOST_GROUPS]; /* paths of control groups */
	size_t group_count;
	char name[TARGET_NAME_SIZE]; /* of the user, units or containers; "": none of these */
	struct tool_event {
		enum capture_event kind;
		const char *point; /* a tracepoint, or a function; NULL: neither */
		bool list;	   /* what there is */
	} event;
	unsigned int frequency; /* 0: not given */
	bool children, no_inherit, user, kernel, native;
	bool cpus;  /* samples have their CPU: set by the command */
	bool waits; /* the same: waits are recorded, by stack and reason */
	enum capture_stacks stacks;
	unsigned int unwind_mib; /* 0: the default */
	bool ask_runtimes, no_ask_runtimes;
	struct context_wishes wishes; /* of commands that do not set knows_programs: none */
};

/* clang-format off */
#define TOOL_TARGET_OPTIONS(type, member)                                                         \
	{ "pid", 'p', "PID|NAME[,...]", "profile these processes, or all that run this program",       \
	  tool_option_pids, offsetof(type, member) },                                              \
	{ "pgrep", 0, "REGEX", "profile processes whose command line matches, as pgrep -f",         \
	  option_text, offsetof(type, member.pgrep) },                                             \
	{ "uid", 'u', "USER", "profile this user's processes: a name or number", option_text,       \
	  offsetof(type, member.of_user) },                                                        \
	{ "tid", 't', "TID", "profile this thread alone", tool_option_tid,                         \
	  offsetof(type, member.tid) },                                                            \
	{ "all", 'a', NULL, "profile the whole machine", NULL, offsetof(type, member.all) },       \
	{ "cgroup", 'G', "PATH", "profile this control group and those below it", option_text,       \
	  offsetof(type, member.cgroup) }

/* How to sample them. */
#define TOOL_SAMPLING_OPTIONS(type, member)                                                       \
	{ "frequency", 'F', "HZ",                                                                  \
	  "ticks per second of CPU time, 1 to 100000 (99; of tick: its own)",                      \
	  tool_option_frequency, offsetof(type, member.frequency) },                               \
	{ "event", 'e', "EVENT", "the clock (auto: the best there is), or what is counted: a tracepoint, SYSTEM:NAME, or a function's calls, uprobe:IMAGE:FUNCTION, too", \
	  tool_option_event, \
	  offsetof(type, member.event) },                                                          \
	{ "call-graph", 'g', "[=auto|dwarf|fp|none]", "count call stacks (auto); a script's without this", \
	  tool_option_call_graph, offsetof(type, member.stacks) },                                 \
	{ "unwind-memory", 0, "MIB",                                                               \
	  "room for call frame information of programs that start later (64)",                     \
	  option_unwind_memory, offsetof(type, member.unwind_mib) },                          \
	{ "native", 0, NULL, "in stacks of scripts, keep the frames of their interpreter", NULL,     \
	  offsetof(type, member.native) },                                                         \
	{ "ask-runtimes", 0, NULL,                                                                 \
	  "ask Java for the names of its compiled code: the default, but for -a, -u and --cgroup",     \
	  NULL, offsetof(type, member.ask_runtimes) },                                             \
	{ "no-ask-runtimes", 0, NULL, "do not: send nothing to any process", NULL,                 \
	  offsetof(type, member.no_ask_runtimes) },                                                \
	{ "children", 0, NULL, "profile also the children that the processes have already", NULL,  \
	  offsetof(type, member.children) },                                                       \
	{ "no-inherit", 'i', NULL, "do not follow child processes", NULL,                              \
	  offsetof(type, member.no_inherit) },                                                     \
	{ "user", 0, NULL, "count only ticks in user mode", NULL, offsetof(type, member.user) },   \
	{ "kernel", 0, NULL, "count only ticks in the kernel, at the kernel's pc", NULL,           \
	  offsetof(type, member.kernel) }
/* clang-format on */

/* What has a label that no sample has; printed with the size of its name, and that. */
#define TOOL_LABEL_HINT                                                                \
	"profiltool record has it of " CONTEXT_KNOWN ", and by --label %.*s=VARIABLE " \
	"of any program"

/* clang-format off */
/* For whom they work: labels of samples. */
#define TOOL_CONTEXT_OPTIONS(type, member)                                                        \
	{ "label", 0, "NAME=[IMAGE:]SYMBOL[:KIND[:LENGTH]]",                                       \
	  "label samples with the value of a variable: query=debug_query_string",                      \
	  tool_option_variable, offsetof(type, member.wishes) },                                   \
	{ "context", 0, "auto|none",                                                               \
	  "label samples of " CONTEXT_KNOWN ": query, route, ... (auto)",                          \
	  tool_option_context, offsetof(type, member.wishes.knows_programs) },                     \
	{ "no-context", 0, NULL, "the same as --context=none", tool_option_no_context,             \
	  offsetof(type, member.wishes.knows_programs) },                                          \
	{ "literal", 0, NULL, "texts of labels stay as they are: constants are not replaced by ?",     \
	  NULL, offsetof(type, member.wishes.literal) }
/* clang-format on */

/* Parsers for members of struct tool_target: struct context_wishes, and its bool knows_programs. */
option_parser tool_option_variable, tool_option_context, tool_option_no_context;

/* Parsers for struct tool_target, and its members tid, frequency, event and stacks. */
option_parser tool_option_pids, tool_option_tid, tool_option_frequency, tool_option_event;
option_parser tool_option_call_graph;
option_parser tool_option_duration;		/* uint64_t, of -d */
void tool_list_events(char *text, size_t size); /* what -e takes */
int tool_print_events(struct error *e); /* with tracepoints. Returns 0, or a negative errno */

/* The kinds of targets that exclude each other. */
#define TARGET_KINDS "-p, -t, -a, -u, --cgroup, --unit and --container"

/* How many of them were given. */
int tool_target_kinds(const struct tool_target *t);

/*
 * Finds the processes that have the names of -p, or that --pgrep matches, or the control groups of
 * --unit or --container, and reports them unless `quiet`; or the user. Returns 0, or a negative
 * errno with e set: one of them is not there. The caller calls tool_target_free() in any case.
 */
int tool_find_target(struct tool_target *t, bool quiet, struct error *e);
void tool_target_free(struct tool_target *t);

/*
 * Removes, with a warning, those of several processes that cannot be profiled: ended ones, as in
 * the output of pgrep(1), and the kernel's. When none can be profiled, all stay: capture_start()
 * fails with the reason.
 */
void tool_skip_targets(struct tool_target *t);

/* What to capture. It points into t. */
struct capture_options tool_capture_options(const struct tool_target *t);

/* capture_start(), with a process that reads the rows of all users' programs without our rights. */
int tool_start_capture(const struct capture_options *options, struct capture **capture,
		       struct error *e);

/*
 * Sets *asker to what asks the targets' runtimes for the names of their code; NULL: they are not to
 * be asked. Returns 0 or a negative errno with e set.
 */
int tool_asker(const struct tool_target *t, struct runtime_asker **asker, struct error *e);

/* Warns of ticks that the clock cannot take on this machine. */
void tool_warn_of_clock(const struct tool_target *t);

/* "python3 (PID 1234)", for a person. */
void tool_describe_target(const struct tool_target *t, char *text, size_t size);

#endif
