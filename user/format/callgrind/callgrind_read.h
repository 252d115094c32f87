/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_CALLGRIND_READ_H
#define PROFIL_FORMAT_CALLGRIND_READ_H

/* The reader: callgrind.c uses _header.c and _body.c; these use _events.c and _names.c. */

#include "format/callgrind/callgrind.h"
#include "util/scan.h"

/* Both counted and derived events. KCachegrind supports 200. */
#define CALLGRIND_EVENTS_MAX 100

/* Deviations from the format that get a warning: other readers accept them, too. */
enum callgrind_oversight {
	OVERSIGHT_BLANKS,
	OVERSIGHT_LINE,
	OVERSIGHT_UNDEFINED,
	OVERSIGHT_REDEFINED,
	OVERSIGHT_DUPLICATE_EVENT,
	OVERSIGHT_COSTS,
	OVERSIGHT_NEGATIVE,
	OVERSIGHT_FRACTION,
	OVERSIGHT_RELATIVE,
	OVERSIGHT_OVERFLOW,
	OVERSIGHT_POSITION,
	OVERSIGHT_NO_FUNCTION,
	OVERSIGHT_NO_CALLEE,
	OVERSIGHT_NO_COSTS,
	OVERSIGHT_COUNT
};

/* Names of one kind by the numbers that a file gives them: "(1) main", later "(1)". */
struct callgrind_names {
	struct callgrind_name *list;
	size_t count, room;
	struct index index; /* by number */
};

/* An event. Texts are interned; NULL: not in the file so far. */
struct callgrind_event {
	const char *name;
	const char *title;
	const char *formula;
	const char *unit;
	uint64_t period;
	bool counted;	/* in an "events:" line: cost lines have its costs */
	uint32_t value; /* its value type; PROFILE_NONE: none yet */
	enum {
		FORMULA_UNSEEN,
		FORMULA_OPEN, /* being expanded */
		FORMULA_EXPANDED,
		FORMULA_BROKEN /* cyclic, or refers to unknown events */
	} state;
	int64_t factors[CALLGRIND_EVENTS_MAX]; /* of each value type, when FORMULA_EXPANDED */
};

struct callgrind_events {
	struct callgrind_event list[CALLGRIND_EVENTS_MAX];
	size_t count;
	bool changed;				/* since callgrind_settle_events() */
	uint32_t columns[CALLGRIND_EVENTS_MAX]; /* value type of each cost; PROFILE_NONE: ignored */
	size_t column_count;
};

/* The subpositions of a line */
enum callgrind_subposition {
	POSITION_INSTR,
	POSITION_BB,
	POSITION_LINE,
	POSITION_COUNT
};

struct callgrind_position {
	uint64_t at[POSITION_COUNT];
};

/* A "summary:" or "totals:" line. */
struct callgrind_claim {
	uint64_t line; /* 0: the part has none */
	int64_t costs[CALLGRIND_EVENTS_MAX];
	size_t count;
};

/* Where costs were counted, except for the position. Texts are interned; NULL: not in the file. */
struct callgrind_place {
	uint32_t mapping; /* of the object; PROFILE_NONE: unknown */
	bool has_object;
	const char *file;     /* source file of the line */
	const char *function; /* name */
	const char *home;     /* source file of the function */
	uint32_t id;	      /* its number in the profile; PROFILE_NONE: not looked up yet */
};

/* A call or jump whose position and costs are in the next cost line. */
struct callgrind_association {
	bool waits; /* for that line */
	struct profile_arc arc;
	struct callgrind_position target;
};

struct callgrind_reader {
	struct input *in;
	struct profile *p;
	struct error *e;

	struct callgrind_names objects, files, functions; /* by number */
	struct index mapping_index;			  /* by path */
	struct index function_index;			  /* by name and file */
	struct callgrind_events events;
	size_t width; /* number of value types in samples so far */

	bool has_creator; /* a "creator:" line */

	/* The current part of the file: a header and a body */
	uint32_t part;
	bool in_body;
	enum callgrind_subposition positions[POSITION_COUNT];
	size_t position_count;
	struct callgrind_claim summary, totals;
	int64_t sums[CALLGRIND_EVENTS_MAX]; /* of the part's costs, by value type */
	uint32_t pid, tid;
	uint32_t labels; /* of pid and tid; PROFILE_NONE: not added yet */

	/* The current line */
	struct callgrind_place here;   /* file: of fl=, fi= or fe= */
	const char *fl;		       /* file of the last fl=; NULL: none */
	struct callgrind_place callee; /* of the next call or jump */
	struct callgrind_position last;
	struct callgrind_association association;
	int64_t values[CALLGRIND_EVENTS_MAX];
	int64_t last_costs[CALLGRIND_EVENTS_MAX]; /* by column */

	struct {
		uint64_t count;
		uint64_t first; /* line */
	} oversights[OVERSIGHT_COUNT];
	char mismatch[256]; /* warning of the first total that differs; "": none */
};

static inline void callgrind_overlook(struct callgrind_reader *r, enum callgrind_oversight what)
{
	if (r->oversights[what].count++ == 0)
		r->oversights[what].first = r->in->line;
}

/* A decimal number, or a hexadecimal one with the prefix 0x. */
static inline bool callgrind_take_number(struct text *t, uint64_t *value)
{
	return take(t, "0x") ? take_number(t, 16, value) : take_number(t, 10, value);
}

/* All that return int return 0, or -errno with r->e set. */

/* callgrind_header.c: reads `line`, which is "key: value". */
int callgrind_read_header(struct callgrind_reader *r, struct text key, struct text value,
			  struct text line);

/* Whether `key` is known in a line "key: value". */
bool callgrind_is_header(struct text key);

/* Ends a part: compares its "summary:" and "totals:" with the sums of its costs. */
int callgrind_end_part(struct callgrind_reader *r);

/* callgrind_events.c: reads the value of a line "event:" or "events:". */
int callgrind_read_event(struct callgrind_reader *r, struct text value);
int callgrind_read_events(struct callgrind_reader *r, struct text value);

/* Sets *event to the event with this name, which is added if it is new. */
int callgrind_find_event(struct callgrind_reader *r, struct text name,
			 struct callgrind_event **event);

/* Adds value types for new events to the profile. Call it before costs if events.changed. */
int callgrind_settle_events(struct callgrind_reader *r);

/* At the end of the file: sets titles and formulas of value types, and computes derived values. */
int callgrind_finish_events(struct callgrind_reader *r);

/* callgrind_names.c: sets *interned to the profile's copy of `t`. */
int callgrind_intern(struct callgrind_reader *r, struct text t, const char **interned);

/* Sets *name to the interned name that `t` stands for: "(1) name", "(1)" or "name". */
int callgrind_take_name(struct callgrind_reader *r, struct callgrind_names *names, struct text t,
			const char **name);
void callgrind_names_free(struct callgrind_names *names);

/* Sets *mapping to the one mapping of the object with this path; PROFILE_NONE if path is "". */
int callgrind_object(struct callgrind_reader *r, const char *path, const uint8_t *build_id,
		     size_t build_id_size, uint32_t *mapping);

/* Sets place->id, unless it is set. */
int callgrind_function(struct callgrind_reader *r, struct callgrind_place *place);

/* callgrind_body.c: reads a line "key=value". */
int callgrind_read_body(struct callgrind_reader *r, struct text key, struct text value);

/* Whether `key` is known in a line "key=value". */
bool callgrind_is_body(struct text key);

/* Reads a cost line. */
int callgrind_read_costs(struct callgrind_reader *r, struct text t);

/*
 * Takes a cost from *t. One that is negative, has a fraction or more than 63 bits gets a warning.
 * False: it is not a number.
 */
bool callgrind_take_cost(struct callgrind_reader *r, struct text *t, int64_t *cost);

/* Drops a call or jump that still waits for its cost line. */
int callgrind_end_association(struct callgrind_reader *r);

#endif
