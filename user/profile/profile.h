/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_PROFILE_PROFILE_H
#define PROFIL_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "util/account.h"
#include "util/error.h"
#include "util/index.h"
#include "util/sum.h"
#include "util/tick_list.h"
#include "util/wait_list.h"

/*
 * The profile in memory. Every reader makes one, every writer takes one, every report works on
 * one. Elements are numbered from 0 in their arrays and refer to each other by number, so that
 * arrays may grow. Strings are interned: equal strings are the same pointer, and live as long
 * as the profile. One thread at a time.
 *
 * Addresses: the leaf's is its pc; a caller's lies inside its call instruction, which is the
 * return address - 1. Readers and writers of formats that hold return addresses convert.
 */

#define PROFILE_NONE UINT32_MAX
/* Bound: format. */
#define PROFILE_BUILD_ID_MAX 32

/* A file, the kernel, or named memory ([vdso], [anon]) that holds code. */
struct profile_image {
	const char *path; /* or [vdso], [kernel.kallsyms], [anon]; never NULL, may be "" */
	uint8_t build_id[PROFILE_BUILD_ID_MAX];
	unsigned int build_id_size; /* 0: unknown */
	int fd;	  /* the open file, which may be deleted; -1: none. The profile closes it */
	int root; /* the root directory of path, if not ours; else -1. The profile closes it */
	const char *unnamed;  /* why its addresses have no names; NULL: they have, or were not
				 resolved */
	const char *unopened; /* why its file could not be opened while recording; NULL: it could,
				 or this is no recording */
	/*
	 * Its executable segments, in its own numbering: from the start of the first to the end of
	 * the last. 0 and 0: unknown.
	 */
	uint64_t text_start, text_size;
	unsigned int bits; /* 32 or 64: the size of its addresses; 0: unknown */
	/*
	 * The user who chose what the file holds, on the recorded machine; 0: root, who recorded,
	 * or unknown. Images of different providers are different: a build ID may be forged.
	 */
	uint32_t provider;
	/*
	 * Of a file without a known build ID: profile_file_id(), which two files of one path do not
	 * share; 0: unknown.
	 */
	uint64_t file_id;
};

/* A mapping of a part of an image: memory [start, limit) holds the file from offset on. */
struct profile_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint32_t image;
	/*
	 * start and limit are addresses in the image's own numbering, as files that know no process
	 * have them (gmon.out, Callgrind); offset is then 0 until the symbol layer has seen
	 * the ELF file, which sets it and makes this false.
	 */
	bool linked;
};

struct profile_function {
	const char *name;	 /* as shown: demangled; never empty */
	const char *system_name; /* as in the symbol table */
	const char *file;	 /* source file, "" when unknown */
	uint32_t start_line;	 /* 0: unknown */
};

/* One source line of a location: there are several for inlined functions, innermost first. */
struct profile_line {
	uint32_t function;
	uint32_t line;	  /* 0: unknown */
	uint32_t column;  /* 0: unknown */
	const char *file; /* the source file, where it is not the function's; else NULL */
};

struct profile_location {
	uint64_t address;
	/*
	 * The same in the image's own numbering: what `addr2line -e image` takes, once the symbol
	 * layer has seen the ELF file; until then the offset in the file; the address itself
	 * when no mapping is known.
	 */
	uint64_t image_address;
	uint32_t mapping;    /* PROFILE_NONE: in none that is known */
	uint32_t first_line; /* its lines are profile.lines[first_line .. + line_count] */
	uint32_t line_count; /* 0: no name */
	bool folded; /* identical code folding: functions of other names have this code, too */
};

/* A label that has no field in profile_labels: a text, or a number with its unit. */
struct profile_tag {
	const char *key;
	const char *text; /* NULL: it is a number */
	int64_t number;
	const char *unit; /* of the number; "" when none */
};

/* The key of a text that the user labelled samples with. */
#define PROFILE_LABEL_KEY "label"

/* Labels that the samples of one thread in one mode share. */
struct profile_labels {
	uint32_t pid; /* 0: unknown */
	uint32_t tid;
	/*
	 * How many earlier processes of the recording had this pid. The pid and the generation
	 * identify a process.
	 */
	uint32_t generation;
	const char *comm;		/* "" when unknown */
	bool kernel;			/* the thread was in the kernel */
	const struct profile_tag *tags; /* tag_count of them, in order; NULL: none */
	uint32_t tag_count;
};

struct profile_sample {
	size_t first_frame; /* its stack is profile.frames[first_frame .. + depth], leaf first */
	uint32_t depth;	    /* 0: counted without a pc */
	uint32_t labels;
};

/*
 * What one value of each sample counts, in which unit; views show one of them. A profile of one
 * clock has samples/count, and mostly cpu/nanoseconds (profile_add_clock()), before any others; one
 * that was recorded here then has delay/nanoseconds: for how long threads waited for the CPU
 * meanwhile. A profile of several events has a type for each, named after the event, with the unit
 * count.
 */
struct profile_value_type {
	const char *type; /* samples, cpu, ... or an event: cycles, Ir, ... */
	const char *unit; /* count, nanoseconds, ... */
	/*
	 * Of ticks of a clock, and of the CPU time that follows from them: what a tick stands for;
	 * 0: it is neither, or this is unknown.
	 */
	uint64_t tick_ns;
	uint64_t period;     /* events that a count stands for; 0: it counts ticks, or unknown */
	const char *title;   /* a longer name for display; "": none */
	const char *formula; /* "Ir + 2 Dw": the sum of others that it is; "" when counted itself */
};

/*
 * A call or a jump that was counted apart from the samples, as in Callgrind files and gmon.out. Its
 * values (profile.arc_values, like a sample's) are the inclusive cost of the callee; all 0 when
 * that is unknown, and for jumps.
 */
enum profile_arc_kind {
	PROFILE_CALL,
	PROFILE_JUMP,
	PROFILE_CONDITIONAL_JUMP
};

struct profile_arc {
	uint32_t from; /* location of the call or jump */
	uint32_t to;   /* location of the callee's beginning, or of the jump's target */
	uint32_t labels;
	enum profile_arc_kind kind;
	uint64_t count;	   /* how often it was taken; 0: unknown */
	uint64_t executed; /* how often a conditional jump was executed, taken or not; else 0 */
};

/*
 * A line or field of a file that no other member of the profile can hold, for the writer of the
 * same format. Equal ones are stored once.
 */
struct profile_extra {
	const char *format; /* the format's name */
	uint32_t image;	    /* the image that it describes; PROFILE_NONE: the whole file */
	const char *bytes;  /* followed by a NUL; may contain NULs */
	size_t size;	    /* without that NUL */
};

/*
 * The wall time of the threads that share labels: wall_ns = on_cpu_ns + runnable_ns + blocked_ns +
 * idle_ns + unknown_ns. runnable: no CPU was free; blocked: all other waits that are not known to
 * be idle, see profile_split_idle(); unknown: at most this long, as their end was lost.
 */
struct profile_wall {
	uint32_t labels;
	uint64_t threads;
	uint64_t wall_ns, on_cpu_ns, runnable_ns, blocked_ns, idle_ns, unknown_ns;
};

struct profile_lost {
	const char *cause;
	uint64_t count;
};

/* Why stacks in user space do not reach the program's start. */
struct profile_stack_end {
	const char *cause; /* as in profile_stack_causes[] */
	const char *image; /* the path of the last frame's image; "": unknown */
	uint64_t count;
};

/*
 * A control group that its quota stopped while threads of the recording were in it or below it. The
 * time is that of all CPUs on which its threads waited for that.
 */
struct profile_throttled {
	const char *cgroup;	     /* its path */
	uint64_t quota_ns, every_ns; /* of CPU time every every_ns; quota_ns 0: none at the end */
	uint64_t periods, throttled_periods, throttled_ns;
};

/* The account of the recording: ticks = counted + out_of_range + excluded + the sum of lost. */
struct profile_totals {
	bool known; /* false: the file did not carry it */
	ACCOUNT_MEMBERS;
	struct profile_throttled *throttled;
	size_t throttled_count, throttled_room;
	struct profile_lost *lost;
	size_t lost_count;
	size_t lost_room;
	/* Of the user stacks that are not complete, but for those that were cut off. */
	struct profile_stack_end *stack_ends;
	size_t stack_end_count, stack_end_room;
};

/* A location with several lines is a stack by itself: its functions are inlined in each other. */
enum profile_stacks {
	PROFILE_NO_STACKS,
	PROFILE_INLINED_STACKS, /* of one location; not where calls were counted apart */
	PROFILE_CALL_STACKS
};

struct profile {
	/* What was recorded */
	const char *stacks;   /* "cfi" or "fp": how they were walked; "" when unknown */
	const char *event;    /* task-clock, cycles, ...; "" when unknown */
	uint64_t frequency;   /* of the clock, as requested, in Hz; 0: unknown */
	uint64_t time_ns;     /* when recording began, since the epoch; 0: unknown */
	uint64_t duration_ns; /* 0: unknown */
	const char *host;     /* the machine's name; "" when unknown */
	const char *command;  /* the program with its arguments; "" when unknown */
	/* Regular expressions of functions whose frames pprof drops and keeps; "": none */
	const char *drop_frames, *keep_frames;
	uint64_t bucket; /* addresses stand for ranges of so many bytes; 0 or 1: exact */
	struct profile_totals totals;

	/*
	 * Of a profile from which samples were selected, by labels or functions: the samples before
	 * that, and their CPU time (0: unknown). The totals stay those of the recording.
	 * all_samples is 0 if none were removed. all_duration_ns: where samples were selected by
	 * time, how long was recorded, and duration_ns is the length of the interval; else 0.
	 */
	uint64_t all_samples, all_cpu_ns, all_duration_ns;

	/* About the file that it was read from, for dump; 0 and NULL when recorded here */
	const char *format;
	unsigned int bits; /* 32 or 64: the target's address size */
	bool big_endian;
	bool return_addresses; /* the file holds callers as return addresses */
	bool salvaged;	       /* from a truncated or corrupt file: samples may be missing */

	struct profile_value_type *value_types; /* at least one */
	size_t value_type_count, value_type_room;
	size_t default_value; /* number + 1 of the one that readers of the file show; 0: unknown */
	bool names_default;   /* the file itself names it: pprof's default_sample_type */
	struct profile_image *images;
	size_t image_count, image_room;
	struct profile_mapping *mappings; /* the main executable's first, when known */
	size_t mapping_count, mapping_room;
	struct profile_function *functions;
	size_t function_count, function_room;
	struct profile_line *lines;
	size_t line_count, line_room;
	struct profile_location *locations;
	size_t location_count, location_room;
	struct profile_labels *labels;
	size_t label_count, label_room;
	uint32_t *frames; /* locations: all stacks, concatenated */
	size_t frame_count, frame_room;
	struct profile_sample *samples;
	size_t sample_count, sample_room;
	int64_t *values;   /* sample i's are values[i * value_type_count .. + value_type_count] */
	size_t value_room; /* in samples' worth of value_type_count */
	/*
	 * When ticks came that the PROFILE_SAMPLES of samples count, in ns since the epoch. A
	 * sample has at most as many as it counts; the times of the others are unknown.
	 */
	struct tick_list ticks;
	/*
	 * When the waits were that the PROFILE_SUM_WALL of samples sums up, by the same clock;
	 * none of other samples. The lengths of a sample's are at most its value; when the rest was
	 * is unknown.
	 */
	struct wait_list waits;
	/*
	 * When the calls were that the PROFILE_SUM_SPAN of samples sums up, by the same clock, in
	 * the sample's thread. Its leaf is the function. Their lengths are at most its value.
	 */
	struct wait_list calls;
	struct profile_arc *arcs;
	size_t arc_count, arc_room;
	int64_t *
		arc_values; /* arc i's are arc_values[i * value_type_count .. + value_type_count] */
	size_t arc_value_room;

	struct profile_wall *walls; /* one for each labels; none: not recorded */
	size_t wall_count, wall_room;

	const char **comments; /* free text that the format carried */
	size_t comment_count, comment_room;
	const char **warnings; /* what a reader ignored: one sentence each */
	size_t warning_count, warning_room;
	struct profile_extra *extras; /* in the order in which they were added */
	size_t extra_count, extra_room;

	size_t string_bytes; /* of all strings that are interned, without NULs */

	/*
	 * Set while a file is read: above so many bytes, functions that add to the profile fail
	 * with -ENOMEM, and too_large is set. 0: no limit.
	 */
	size_t bytes_max;
	bool too_large;

	/* private to profile.c */
	size_t bytes; /* about as much memory as it takes */
	char **strings;
	size_t string_count, string_room;
	struct profile_tag **tag_lists;
	size_t tag_list_count, tag_list_room;
	struct index string_index, image_index, location_index, line_index, function_index,
		label_index, tag_index, sample_index, arc_index, extra_index, wall_index;
};

/* An empty profile, or NULL when memory runs out. Free it with profile_free(). */
struct profile *profile_new(void);
void profile_free(struct profile *p);

/* Counts a reader's own memory, too, towards p->bytes_max. Returns 0 or -ENOMEM. */
int profile_charge(struct profile *p, size_t bytes);

/*
 * These functions return 0 or -ENOMEM. `id` receives the number of the element: of the existing one
 * when there is an equal one (mappings are always new). Strings are copied.
 */
int profile_string(struct profile *p, const char *text, const char **interned);
int profile_string_n(struct profile *p, const char *text, size_t size, const char **interned);

/* What a value sums up, as its type and unit say. */
enum profile_sum {
	PROFILE_SUM_OTHER, /* of another event, or of what a file has beside samples */
	PROFILE_SUM_SAMPLES,
	PROFILE_SUM_CPU,
	PROFILE_SUM_DELAY,
	PROFILE_SUM_WALL,    /* the time of all states of threads */
	PROFILE_SUM_WOKE,    /* of who ended waits: how long these had been */
	PROFILE_SUM_SPAN,    /* of a function whose calls were recorded: how long these took */
	PROFILE_SUM_LATENCY, /* of ticks: profile_add_latency(); in no file */
};

enum profile_sum profile_sum(const struct profile *p, size_t value);

/* The number of the first value that is this sum, not OTHER, or value_type_count. */
size_t profile_find_sum(const struct profile *p, enum profile_sum sum);

/*
 * Before the first sample, or with profile_widen_values() behind it. What else it has is the
 * caller's to fill in.
 */
int profile_add_value_type(struct profile *p, const char *type, const char *unit);

int profile_add_sum(struct profile *p, enum profile_sum sum);

/* The same, with all that a value of another profile has. */
int profile_add_value_like(struct profile *p, const struct profile_value_type *like);

/* Numbers of the values of a clock. */
enum {
	PROFILE_SAMPLES,
	PROFILE_CPU,
	PROFILE_DELAY /* where it was added behind the others; else see profile_find_sum() */
};

#define PROFILE_DELAY_TYPE   "delay"
#define PROFILE_WALL_TYPE    "wall"
#define PROFILE_LATENCY_TYPE "latency"

/*
 * Adds the value types of a clock, as the first: samples/count and, if its period is known (not 0),
 * the CPU time that follows from it.
 */
int profile_add_clock(struct profile *p, uint64_t tick_ns);

/* Adds the value samples, each of which stands for so many of p->event. */
int profile_add_events(struct profile *p, uint64_t period);

/*
 * Samples are ticks of a clock, which stand for the CPU time of its period, or events, of which a
 * sample stands for a number. What is said of ticks, such as their rate, is not true of events.
 */
bool profile_has_clock(const struct profile *p);

/* The CPU time that a tick stands for, in ns; 0: unknown, or samples are no ticks. */
uint64_t profile_tick_ns(const struct profile *p);

/*
 * Sets that of the samples and their CPU time; of the first value if the profile has neither. For
 * readers that learn of it when the values are known.
 */
void profile_set_tick_ns(struct profile *p, uint64_t tick_ns);

/* The same of a number of ticks. It saturates. */
uint64_t profile_ticks_ns(const struct profile *p, uint64_t ticks);

/* The rate that was asked for, or that of the period; 0: unknown, or samples are no ticks. */
double profile_hz(const struct profile *p);

/*
 * The CPU time that 1 of a value stands for, in ns: of ticks their period, of CPU time 1; 0: it is
 * neither, or the period is unknown.
 */
uint64_t profile_value_ns(const struct profile *p, size_t value);

/* Sets the two values of a clock in a sample's row, for this number of ticks; they saturate. */
void profile_set_ticks(const struct profile *p, uint64_t ticks, int64_t *values);

/*
 * Of a recording, how long the threads of a sample were on no CPU, in nanoseconds: its wall time
 * without its CPU time. 0: none, or unknown.
 */
int64_t profile_off_cpu(const struct profile *p, size_t sample);

/* True if the profile is a recording: its values are samples, cpu, and maybe delay, wall and woke.
 */
bool profile_is_recording(const struct profile *p);

/* True if the profile is a recording with the values samples, cpu and delay, and no others. */
bool profile_has_delay(const struct profile *p);

/* True if a value is the CPU time of another one, which counts: it follows from the period. */
bool profile_is_clock_time(const struct profile *p, size_t value);

/* What 1 of a value stands for. */
struct profile_meaning {
	double seconds; /* 0: unknown */
	/*
	 * 0: the value counts no samples, or is negative somewhere: how chance scatters it is
	 * unknown.
	 */
	double samples;
};

struct profile_meaning profile_meaning(const struct profile *p, size_t value);

/*
 * Extends the values of all samples and arcs, which were made when there were `width` value types,
 * by a 0 for each type that was added since.
 */
int profile_widen_values(struct profile *p, size_t width);

/*
 * Images are equal when path, build ID and provider are, and without a build ID file_id. The first
 * call is for provider 0 and file_id 0, the second takes only these members of `image`. fd is -1 in
 * a new one.
 */
int profile_add_image(struct profile *p, const char *path, const uint8_t *build_id,
		      size_t build_id_size, uint32_t *id);
int profile_add_image_like(struct profile *p, const struct profile_image *image, uint32_t *id);

/*
 * Returns profile_image.file_id, which no other file of the machine has: a hash of device, inode,
 * size and time of the last change; the last two are 0 where they are unknown. Never 0.
 */
uint64_t profile_file_id(uint64_t device, uint64_t inode, uint64_t size, struct timespec modified);

int profile_add_mapping(struct profile *p, uint64_t start, uint64_t limit, uint64_t offset,
			uint32_t image, uint32_t *id);
int profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *id);
int profile_add_location(struct profile *p, uint64_t address, uint32_t mapping, uint32_t *id);

/* The location that profile_add_location() made of these, or PROFILE_NONE. */
uint32_t profile_find_location(const struct profile *p, uint64_t address, uint32_t mapping);

/*
 * Puts a location of profile_add_location() that is in no mapping into one: for readers that learn
 * of mappings last. The mapping must not have another location with this address.
 */
int profile_place_location(struct profile *p, uint32_t location, uint32_t mapping);

/*
 * As profile_add_location(), for files that name their locations: one address (0 in files without
 * addresses) may have several, which differ in their lines. `lines` as for profile_set_lines().
 * Neither function finds the locations of the other.
 */
int profile_add_line_location(struct profile *p, uint64_t address, uint32_t mapping,
			      const struct profile_line *lines, uint32_t count, uint32_t *id);

/* The same of what has no address, but is called `name`, of which no file and line are known. */
int profile_add_named_location(struct profile *p, const char *name, uint32_t mapping, uint32_t *id);

/*
 * Replaces the lines of a location, innermost first. profile_add_line_location() no longer finds a
 * location whose lines were replaced.
 */
int profile_set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		      uint32_t count);
/* labels->tags are copied. */
int profile_add_labels(struct profile *p, const struct profile_labels *labels, uint32_t *id);

/* Sets *id to labels that are as those of this number, with more tags behind the others. */
int profile_tag_labels(struct profile *p, uint32_t number, const struct profile_tag *tags,
		       uint32_t count, uint32_t *id);

/* Gives samples, arcs and wall times with labels i the labels map[i]. */
void profile_relabel(struct profile *p, const uint32_t *map);

/*
 * Sets *id to the number of the sample with this stack and labels; adds it, with values of 0, if
 * there is none. frames: depth location numbers, leaf first. Returns 0 or -ENOMEM.
 */
int profile_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		   uint32_t *id);

/* Adds values (value_type_count of them) to a sample's. Sums saturate. */
void profile_add_values(struct profile *p, uint32_t sample, const int64_t *values);

/* Adds values to profile_sample(p, frames, depth, labels). Returns 0 or -ENOMEM. */
int profile_add_sample(struct profile *p, const uint32_t *frames, uint32_t depth, uint32_t labels,
		       const int64_t *values);

/*
 * Adds counts and values (value_type_count of them; NULL: all 0) to the arc with the same from, to,
 * labels and kind; adds the arc if there is none. Sums saturate. Returns 0 or -ENOMEM.
 */
int profile_add_arc(struct profile *p, const struct profile_arc *arc, const int64_t *values);

/* Adds to the wall time of threads with these labels. Sums saturate. Returns 0 or -ENOMEM. */
int profile_add_wall(struct profile *p, const struct profile_wall *wall);

/* Adds `from` to the times of `to`, whose labels stay. */
void profile_sum_wall(struct profile_wall *to, const struct profile_wall *from);

/* The sum of the wall times of all threads; labels is PROFILE_NONE. */
struct profile_wall profile_wall_sum(const struct profile *p);

int profile_add_extra(struct profile *p, const char *format, uint32_t image, const void *bytes,
		      size_t size);
int profile_add_lost(struct profile *p, const char *cause, uint64_t count);

/* Adds to that cause's stacks in that image. Returns 0 or -ENOMEM. */
int profile_add_stack_end(struct profile *p, const char *cause, const char *image, uint64_t count);

/* Adds to what is known of that control group; its quota is the added one. */
int profile_add_throttled(struct profile *p, const struct profile_throttled *throttled);
int profile_add_comment(struct profile *p, const char *text);

/* Adds a warning about what a reader ignored; equal ones are kept once. */
int profile_warn(struct profile *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The number of the value to count: profile_named_value(); if name is NULL or no value has it, the
 * file's default, else type "samples", else the first.
 */
size_t profile_value(const struct profile *p, const char *name);

/*
 * Returns the number of the value with a name that a user gave: its type, its type and unit as
 * tables and Xdebug write them ("Time_/10ns", "Time_(10ns)"), or the beginning of exactly one type.
 * value_type_count: there is none, or *ambiguous: several types begin so.
 */
size_t profile_named_value(const struct profile *p, const char *name, bool *ambiguous);

/* The number of the first value of this type; value_type_count: there is none. */
size_t profile_find_value(const struct profile *p, const char *type);

/*
 * Sum of profile_value(p, type) over all samples; saturates. Values are negative in differences of
 * profiles, and of memory that was freed.
 */
int64_t profile_total(const struct profile *p, const char *type);

/*
 * The sum of their magnitudes, which is what percentages are of; 0: there are no samples. Where
 * pprof -diff_base has subtracted another profile, percentages are of that, as in pprof: of samples
 * for which profile_is_base() is true, if profile_has_base() is.
 */
magnitude_sum profile_magnitude(const struct profile *p, const char *type);
bool profile_has_base(const struct profile *p);
bool profile_is_base(const struct profile *p, const struct profile_sample *sample);

/* How many samples there are, and their CPU time. 0: the profile does not count it. */
struct profile_amount {
	uint64_t samples, cpu_ns;
};

struct profile_amount profile_amount(const struct profile *p);

/* The same before samples were selected: that of all_samples, or profile_amount(). */
struct profile_amount profile_amount_before(const struct profile *p);

/* What stacks the samples have; and one of them. */
enum profile_stacks profile_stacks(const struct profile *p);
enum profile_stacks profile_sample_stacks(const struct profile *p, const struct profile_sample *s);

/* The sum of the lost ticks. */
uint64_t profile_lost(const struct profile *p);

/* How many ticks the CPU time of the target amounts to; 0: unknown. */
uint64_t profile_due(const struct profile *p);

/* The image that a location lies in, or NULL. */
const struct profile_image *profile_location_image(const struct profile *p, uint32_t location);

/* True if it is a line of a script: its mapping is all of a file that is not mapped. */
static inline bool profile_is_script(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];

	return !l->address && l->line_count && l->mapping != PROFILE_NONE &&
	       !p->mappings[l->mapping].limit && !p->mappings[l->mapping].linked;
}

/* The pc of frame `depth` (0 is the leaf) as the file it was read from holds it. */
uint64_t profile_file_pc(const struct profile *p, uint32_t location, uint32_t depth);

#endif
