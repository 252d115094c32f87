/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_REPORT_JSON_WRITER_H
#define PROFIL_REPORT_JSON_WRITER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes one JSON object piece by piece, so that a large profile need not stand in memory a second
 * time as a tree. The first failure is kept and told by json_end(). Each member is on a line of
 * its own, and so is each element of a list.
 */
struct json_writer {
	FILE *out;
	bool in_list;
	bool any; /* something stands in front of the next member or element */
	int err;
};

void json_begin(struct json_writer *w, FILE *out);
int json_end(struct json_writer *w);

/* A member of the object. The value is consumed; NULL means that there was no memory for it. */
void json_member(struct json_writer *w, const char *key, struct json_object *value);

/* A member that is a list, whose elements come between. */
void json_begin_list(struct json_writer *w, const char *key);
void json_end_list(struct json_writer *w);

/* An element of the list: a value, as above, or what the caller prints behind this. */
void json_element(struct json_writer *w, struct json_object *value);
void json_next_element(struct json_writer *w);

/*
 * Prints JSON of valid UTF-8, as json-c makes it. What it leaves as it is in strings, but would act
 * on a terminal (util/utf8.h), is escaped.
 */
void json_print_text(const char *json, FILE *out);

/* Values; all may be NULL when memory runs out. */
struct json_object *json_text(const char *raw);
struct json_object *json_hex(uint64_t value);
struct json_object *json_decimal(double value, int decimals);

/* Adds a value to an object, which consumes it. Returns 0 or -ENOMEM. */
int json_add(struct json_object *object, const char *key, struct json_object *value);

#endif
