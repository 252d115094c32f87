/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_CALLGRIND_READ_H
#define PROFIL_FORMAT_CALLGRIND_READ_H

/* What the parts of the reader share: callgrind.c, _header.c, _events.c, _names.c and _body.c. */

#include "format/callgrind/callgrind.h"
#include "util/scan.h"

/* Events that are counted and inherited ones. KCachegrind gives up at 200. */
#define CALLGRIND_EVENTS_MAX 100

/* What other readers take, too, or nobody minds. */
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

/* Names of one kind that a file gives numbers: "(1) main", then "(1)". */
struct callgrind_names {
	struct callgrind_name *list;
	size_t count, room;
	struct index index; /* by number */
};

/* What is known of an event. Texts are interned; NULL: not told. */
struct callgrind_event {
	const char *name;
	const char *title;
	const char *formula;
	const char *unit;
	uint64_t period;
	bool counted;	/* costs of it are in the file */
	uint32_t value; /* the value type; PROFILE_NONE: none yet */
	enum {
		FORMULA_UNSEEN,
		FORMULA_OPEN, /* being expanded */
		FORMULA_EXPANDED,
		FORMULA_BROKEN /* cyclic, or of events that are not there */
	} state;
	int64_t factors[CALLGRIND_EVENTS_MAX]; /* of each value type in the expanded formula */
};

struct callgrind_events {
	struct callgrind_event list[CALLGRIND_EVENTS_MAX];
	size_t count;
	bool changed;				/* since callgrind_settle_events() */
	uint32_t columns[CALLGRIND_EVENTS_MAX]; /* the value type of each cost; PROFILE_NONE */
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

/* What "summary:" or "totals:" says. */
struct callgrind_claim {
	uint64_t line; /* 0: not said */
	int64_t costs[CALLGRIND_EVENTS_MAX];
	size_t count;
};

/* Where costs fall, but for the position. Texts are interned; NULL: not told. */
struct callgrind_place {
	uint32_t mapping; /* PROFILE_NONE: of no object that is known */
	bool has_object;
	const char *file;     /* of the line */
	const char *function; /* its name */
	const char *home;     /* the file that its function is of */
	uint32_t id;	      /* the function; PROFILE_NONE: not looked for yet */
};

/* A call or jump whose position and costs are in the next cost line. */
struct callgrind_association {
	bool waits;
	struct profile_arc arc;
	struct callgrind_position target;
};

struct callgrind_reader {
	struct input *in;
	struct profile *p;
	struct error *e;

	struct callgrind_names objects, files, functions; /* their numbers */
	struct index mapping_index;			  /* by path */
	struct index function_index;			  /* by name and file */
	struct callgrind_events events;
	size_t width; /* value types that samples have */

	bool has_creator;

	/* The part */
	uint32_t part;
	bool in_body; /* behind its header */
	enum callgrind_subposition positions[POSITION_COUNT];
	size_t position_count;
	struct callgrind_claim summary, totals;
	int64_t sums[CALLGRIND_EVENTS_MAX]; /* of its costs, by value type */
	uint32_t pid, tid;
	uint32_t labels; /* PROFILE_NONE: not made for pid and tid yet */

	/* The line */
	struct callgrind_place here;   /* file: of fl=, fi= or fe= */
	const char *fl;		       /* of fl=; NULL: there was none */
	struct callgrind_place callee; /* of the next call or jump */
	struct callgrind_position last;
	struct callgrind_association association;
	int64_t values[CALLGRIND_EVENTS_MAX];
	int64_t last_costs[CALLGRIND_EVENTS_MAX]; /* by column */

	struct {
		uint64_t count;
		uint64_t first; /* line */
	} oversights[OVERSIGHT_COUNT];
	char mismatch[256]; /* the first total that is another */
};

static inline void callgrind_overlook(struct callgrind_reader *r, enum callgrind_oversight what)
{
	if (r->oversights[what].count++ == 0)
		r->oversights[what].first = r->in->line;
}

/* Decimal, or hexadecimal with 0x before it. */
static inline bool callgrind_take_number(struct text *t, uint64_t *value)
{
	return take(t, "0x") ? take_number(t, 16, value) : take_number(t, 10, value);
}

/* All below return 0 or a negative errno with r->e set. */

int callgrind_intern(struct callgrind_reader *r, struct text t, const char **interned);

/* callgrind_header.c: a line "key: value"; `line` is the whole of it. */
int callgrind_read_header(struct callgrind_reader *r, struct text key, struct text value,
			  struct text line);

/* Whether a key is of a header. */
bool callgrind_is_header(struct text key);

/* The end of a part: checks what it claims. */
int callgrind_end_part(struct callgrind_reader *r);

/* callgrind_events.c: the lines "event:" and "events:" */
int callgrind_read_event(struct callgrind_reader *r, struct text value);
int callgrind_read_events(struct callgrind_reader *r, struct text value);

/* What is known of the event of this name, which is made if need be. */
int callgrind_find_event(struct callgrind_reader *r, struct text name,
			 struct callgrind_event **event);

/* Makes the profile ready for costs of the events. To be called before them if events.changed. */
int callgrind_settle_events(struct callgrind_reader *r);

/* Titles and formulas of all value types, and the values of inherited ones, once all is read. */
int callgrind_finish_events(struct callgrind_reader *r);

/* callgrind_names.c: the name in "(1) name", "(1)" or "name", interned */
int callgrind_take_name(struct callgrind_reader *r, struct callgrind_names *names, struct text t,
			const char **name);
void callgrind_names_free(struct callgrind_names *names);

/* The mapping of an object, PROFILE_NONE when its path is not known; one per path. */
int callgrind_object(struct callgrind_reader *r, const char *path, const uint8_t *build_id,
		     size_t build_id_size, uint32_t *mapping);

/* Sees to place->id: the function's number. */
int callgrind_function(struct callgrind_reader *r, struct callgrind_place *place);

/* callgrind_body.c: "key=value" */
int callgrind_read_body(struct callgrind_reader *r, struct text key, struct text value);
bool callgrind_is_body(struct text key);
int callgrind_read_costs(struct callgrind_reader *r, struct text t);

/* A cost: what is no whole number that fits is overlooked, what is no number at all is false. */
bool callgrind_take_cost(struct callgrind_reader *r, struct text *t, int64_t *cost);

/* No cost line came for the call or jump. */
int callgrind_end_association(struct callgrind_reader *r);

#endif
