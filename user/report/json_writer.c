// SPDX-License-Identifier: GPL-2.0-only
#include "report/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/text.h"
#include "util/utf8.h"

/*
 * Prints JSON text as json-c makes it, which is valid UTF-8. Characters in strings that json-c
 * keeps, but that act on a terminal (util/utf8.h), are escaped.
 */
static void print_text(const char *json, FILE *out)
{
	const char *printed = json;
	uint32_t code;

	while (*json) {
		size_t size = utf8_decode(json, &code);

		if (*json == '\n' || !size || !utf8_is_hidden(code)) {
			json += size ?: 1;
			continue;
		}
		fwrite(printed, 1, json - printed, out);
		if (code < 0x10000)
			fprintf(out, "\\u%04x", code);
		else
			fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
				0xdc00 + (code & 0x3ff));
		json += size;
		printed = json;
	}
	fputs(printed, out);
}

void json_begin(struct json_writer *w, FILE *out)
{
	*w = (struct json_writer){ .out = out };
	fputc('{', out);
}

int json_end(struct json_writer *w)
{
	fputs("\n}\n", w->out);
	return w->err;
}

/* Begins the line of a member or an element. */
static void begin_line(struct json_writer *w)
{
	fputs(w->any ? ",\n  " : "\n  ", w->out);
	fputs(w->in_list ? "  " : "", w->out);
	w->any = true;
}

int json_print(struct json_object *value, int spacing, FILE *out)
{
	const char *text = NULL;

	if (value)
		text = json_object_to_json_string_ext(value,
						      spacing | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		print_text(text, out);
	json_object_put(value);
	return text ? 0 : -ENOMEM;
}

char *json_string(struct json_object *value)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out) {
		json_object_put(value);
		return NULL;
	}
	err = json_print(value, JSON_C_TO_STRING_SPACED, out);
	if (fclose(out) || err) {
		free(text);
		return NULL;
	}
	return text;
}

static void print_value(struct json_writer *w, struct json_object *value)
{
	int err = json_print(value, JSON_C_TO_STRING_SPACED, w->out);

	w->err = w->err ?: err;
}

void json_member(struct json_writer *w, const char *key, struct json_object *value)
{
	begin_line(w);
	fprintf(w->out, "\"%s\": ", key);
	print_value(w, value);
}

void json_member_text(struct json_writer *w, const char *key, const char *raw)
{
	if (raw && *raw)
		json_member(w, key, json_text(raw));
}

void json_member_number(struct json_writer *w, const char *key, uint64_t number)
{
	if (number)
		json_member(w, key, json_object_new_uint64(number));
}

void json_begin_list(struct json_writer *w, const char *key)
{
	begin_line(w);
	fprintf(w->out, "\"%s\": [", key);
	w->in_list = true;
	w->any = false;
}

void json_end_list(struct json_writer *w)
{
	fputs(w->any ? "\n  ]" : "]", w->out);
	w->in_list = false;
	w->any = true;
}

void json_element(struct json_writer *w, struct json_object *value)
{
	begin_line(w);
	print_value(w, value);
}

void json_next_element(struct json_writer *w)
{
	begin_line(w);
}

struct json_object *json_text(const char *raw)
{
	char *text = text_utf8(raw);
	struct json_object *value = text ? json_object_new_string(text) : NULL;

	free(text);
	return value;
}

struct json_object *json_hex(uint64_t value)
{
	char text[TEXT_PERCENT_SIZE];

	return json_object_new_string(text_hex(text, value));
}

struct json_object *json_decimal(double value, int decimals)
{
	char text[TEXT_PERCENT_SIZE];

	return json_object_new_double_s(value, text_number(text, value, decimals, false));
}

struct json_object *json_percent(double part, double whole)
{
	char text[TEXT_PERCENT_SIZE];

	text_percent(text, part, whole);
	return json_object_new_double_s(whole > 0 ? part * 100 / whole : 0, text);
}

void json_add(struct json_object **object, const char *key, struct json_object *value)
{
	if (*object && value && json_object_object_add(*object, key, value) == 0)
		return;
	json_object_put(value);
	json_object_put(*object);
	*object = NULL;
}

void json_append(struct json_object **array, struct json_object *value)
{
	if (*array && value && json_object_array_add(*array, value) == 0)
		return;
	json_object_put(value);
	json_object_put(*array);
	*array = NULL;
}

void json_add_named(struct json_object **object, const char *raw_key, struct json_object *value)
{
	char *key = text_utf8(raw_key);

	if (!key) {
		json_object_put(value);
		value = NULL;
	}
	json_add(object, key, value);
	free(key);
}

void json_add_text(struct json_object **object, const char *key, const char *raw)
{
	if (raw && *raw)
		json_add(object, key, json_text(raw));
}

void json_add_number(struct json_object **object, const char *key, uint64_t number)
{
	if (number)
		json_add(object, key, json_object_new_uint64(number));
}
