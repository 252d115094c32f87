/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_JSON_WRITER_H
#define PROFIL_REPORT_JSON_WRITER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes one JSON object piece by piece, so that a large profile need not be in memory a second
 * time as a tree of json-c. The first error is kept and returned by json_end(). Each member is on
 * a line of its own, and so is each element of a list.
 */
struct json_writer {
	FILE *out;
	bool in_list;
	bool any; /* the next member or element needs a comma */
	int err;
};

void json_begin(struct json_writer *w, FILE *out);

/* Returns 0 or -ENOMEM. Errors of printing are left to ferror(out). */
int json_end(struct json_writer *w);

/* A member of the object. Consumes the value; NULL means that memory ran out. */
void json_member(struct json_writer *w, const char *key, struct json_object *value);

/* The same; omitted when the text is NULL or "", or the number is 0. */
void json_member_text(struct json_writer *w, const char *key, const char *raw);
void json_member_number(struct json_writer *w, const char *key, uint64_t number);

/* A member that is a list, whose elements come in between. */
void json_begin_list(struct json_writer *w, const char *key);
void json_end_list(struct json_writer *w);

/* An element of the list: a value, consumed as above, or what the caller prints next. */
void json_element(struct json_writer *w, struct json_object *value);
void json_next_element(struct json_writer *w);

/*
 * Prints a value, which is consumed and may be NULL. spacing: JSON_C_TO_STRING_SPACED or
 * JSON_C_TO_STRING_PLAIN. Returns 0 or -ENOMEM.
 */
int json_print(struct json_object *value, int spacing, FILE *out);

/* A value as json_print() prints it, spaced; to be free()d, or NULL. Consumes the value. */
char *json_string(struct json_object *value);

/* Values. NULL: memory ran out. */
struct json_object *json_text(const char *raw);
struct json_object *json_hex(uint64_t value);
struct json_object *json_decimal(double value, int decimals);
struct json_object *json_percent(double part, double whole); /* printed with two decimals */

/*
 * Adds a value to an object or an array. Consumes the value; when it or the object is NULL, memory
 * ran out: then the object is released and becomes NULL, so that who makes one looks at it once, at
 * the end.
 */
void json_add(struct json_object **object, const char *key, struct json_object *value);
void json_append(struct json_object **array, struct json_object *value);

/* json_add() with a key that comes from a profile, and may be no UTF-8. */
void json_add_named(struct json_object **object, const char *raw_key, struct json_object *value);

/* json_add(), omitted when the text is NULL or "", or the number is 0. */
void json_add_text(struct json_object **object, const char *key, const char *raw);
void json_add_number(struct json_object **object, const char *key, uint64_t number);

#endif
