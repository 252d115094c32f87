/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_CAPTURE_CONTEXT_H
#define PROFIL_CAPTURE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/context.h"

/*
 * Labels of samples whose text is the value that a variable of the process has: which variables are
 * asked for, and what was read of them. bpf/context.h has how they are read; script/context.h, how
 * they are found in images.
 */

/* Labels that known programs have: X(NUMBER, name). A tag of each is in profile/tags.h. */
#define CONTEXT_PROGRAM_LABELS(X)     \
	X(APPLICATION, "application") \
	X(DATABASE, "database")       \
	X(QUERY, "query")             \
	X(ROLE, "role")               \
	X(ROUTE, "route")

/* Bound: caller: labels by --label; then: the option is refused. */
#define CONTEXT_WISHES_MAX 8

/* The number of a label: of a wish, its own. */
enum context_label {
	CONTEXT_BEFORE_PROGRAMS = CONTEXT_WISHES_MAX - 1,
#define CONTEXT_LABEL_ENUM(number, name) CONTEXT_LABEL_##number,
	CONTEXT_PROGRAM_LABELS(CONTEXT_LABEL_ENUM)
#undef CONTEXT_LABEL_ENUM
	/* Of a struct context_record: the process gives its attributes their names. */
	CONTEXT_LABEL_ATTRIBUTES,
	CONTEXT_LABEL_IDS,
	CONTEXT_LABEL_COUNT
};
_Static_assert(CONTEXT_LABEL_COUNT <= CONTEXT_LABELS, "labels have no room");

/* Bound: caller: bytes of the parts of a --label; then: the option is refused. */
#define CONTEXT_NAME_SIZE   24
#define CONTEXT_SYMBOL_SIZE 128

/* A label, and the variable that it is of. */
struct context_wish {
	char label[CONTEXT_NAME_SIZE];
	char image[CONTEXT_SYMBOL_SIZE]; /* a path or base name; "": any that has the symbol */
	char symbol[CONTEXT_SYMBOL_SIZE];
	uint64_t address; /* instead of a symbol, ELF virtual; 0: none */
	uint16_t length;  /* of a text; 0: as long as the variable, or CONTEXT_LENGTH */
	uint8_t kind;	  /* enum context_kind; CONTEXT_NONE: by the variable's size */
};

struct context_wishes {
	struct context_wish wishes[CONTEXT_WISHES_MAX];
	uint32_t count;
	bool knows_programs; /* those of known programs are read, too */
	bool literal;	     /* texts stay as they are */
};

/* What a label is called. number: below CONTEXT_LABEL_COUNT, and of a wish that there is. */
const char *context_label_name(const struct context_wishes *wishes, unsigned int number);

/* Whether another process may have described the image: it reads files that are not trusted. */
bool context_is_valid(const struct context_image *image, const struct context_wishes *wishes);

/* Bound: as GO_NAME_BYTES. */
#define CONTEXT_LABEL_SIZE 64

/* A label of a sample, as it is printed: UTF-8 without control characters. */
struct context_text {
	const char *label; /* perhaps `name` */
	bool is_foreign;   /* the process has chosen the label */
	char name[CONTEXT_LABEL_SIZE];
	char text[CONTEXT_VALUE_BYTES];
};

/*
 * Labels of a process's service and of a record: its ids, and so many attributes.
 * Bound: users: attributes of a thread's record; then: it has no labels for the others; again:
 * when it has another one; share: the thread's own; seen: context_cut.
 */
#define CONTEXT_ATTRIBUTES_MAX 16
#define CONTEXT_SERVICE_MAX    2

/* Bound: as CONTEXT_VARIABLES. */
#define CONTEXT_TEXTS_MAX 36
_Static_assert(CONTEXT_TEXTS_MAX == CONTEXT_PROCESS_IMAGES * CONTEXT_VARIABLES + 2 +
					    CONTEXT_SERVICE_MAX + CONTEXT_ATTRIBUTES_MAX,
	       "texts have no room");

/* Text of labels whose value had no room. */
extern const char context_others[]; /* "[others]" */

/* What the process of a value says of itself: capture/otel_process.h. */
struct otel_process;

/* Writes the labels of a value to texts[]. otel: or NULL. Returns their number. */
size_t context_read_value(const struct context_value *value, const struct context_wishes *wishes,
			  const struct otel_process *otel,
			  struct context_text texts[static CONTEXT_TEXTS_MAX]);

/* The same of its service; count: of the texts that there are. Returns the new number. */
size_t context_read_service(const struct otel_process *otel,
			    struct context_text texts[static CONTEXT_TEXTS_MAX], size_t count);

/* The same where a value of an image's variables had no room. */
size_t context_read_others(const struct context_image *image, const struct context_wishes *wishes,
			   struct context_text texts[static CONTEXT_TEXTS_MAX]);

/* Whether the thread had more than the value has labels for. */
bool context_is_cut(const struct context_value *value);

#endif
