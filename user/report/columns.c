// SPDX-License-Identifier: GPL-2.0-only
#include "report/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/json_writer.h"
#include "report/text.h"
#include "util/array.h"

bool columns_next(struct columns *c, const char *title, const char *key, unsigned int format)
{
	c->format = format;
	c->key = key;
	if (c->json)
		return key && c->object;
	if (!title)
		return false;
	if (!c->list_room)
		return c->number++ == c->wanted && !c->is_blank;
	if (!c->err)
		c->err =
			array_reserve(&c->list, &c->list_room, c->list_count + 1, sizeof(*c->list));
	if (!c->err)
		c->list[c->list_count++] = (struct table_column){
			.title = title,
			.is_text = format & COLUMN_TEXT,
			.is_path = format & COLUMN_PATH,
			.is_whole = format & COLUMN_WHOLE,
			.is_hot = format & COLUMN_HOT,
			.is_optional = format & COLUMN_OPTIONAL,
			.rank = format & (COLUMN_OWNER | COLUMN_NAMES),
			.number = c->number++,
		};
	return false;
}

void columns_json_value(struct columns *c, struct json_object *value)
{
	json_add(&c->object, c->key, value);
}

void columns_text(struct columns *c, const char *raw)
{
	if (c->json)
		json_add_text(&c->object, c->key, raw);
	else
		c->text = raw;
}

void columns_double(struct columns *c, double value)
{
	unsigned int decimals = c->format & COLUMN_DECIMALS;

	if (c->json)
		columns_json_value(c, json_decimal(value, c->format >> 14 ?: decimals));
	else
		c->text = text_number(c->buffer, value, decimals, c->format & COLUMN_SIGNED);
}

void columns_share(struct columns *c, struct column_share value)
{
	if (c->json) {
		columns_json_value(c, json_percent(value.part, value.whole));
		return;
	}
	text_percent(c->buffer, value.part, value.whole);
	c->text = c->buffer;
}

void columns_integer(struct columns *c, __int128 value)
{
	if (!value && (c->format & COLUMN_KNOWN)) {
		c->text = "-";
	} else if (c->json) {
		columns_json_value(c, value > INT64_MAX ? json_object_new_uint64(value)
							: json_object_new_int64(value));
	} else if (c->format & COLUMN_NS) {
		c->text = text_number(c->buffer, (double)value / 1e9, 3, false);
	} else {
		snprintf(c->buffer, TABLE_CELL_SIZE, "%s%" PRIu64, value < 0 ? "-" : "",
			 (uint64_t)(value < 0 ? -value : value));
		c->text = c->buffer;
	}
}

struct json_object *columns_json(columns_function *describe, const void *view, size_t row)
{
	char buffer[TABLE_CELL_SIZE];
	struct columns c = {
		.json = true,
		.object = json_object_new_object(),
		.buffer = buffer,
	};

	describe(&c, view, row);
	return c.object;
}

int columns_list(columns_function *describe, const void *view, struct table_column **list,
		 size_t *count)
{
	struct columns c = { 0 };
	size_t kept = 0;

	c.err = array_reserve(&c.list, &c.list_room, 1, sizeof(*c.list));
	if (!c.err)
		describe(&c, view, 0);
	*list = calloc(c.list_count + 1, sizeof(**list));
	if (!*list)
		c.err = -ENOMEM;
	for (unsigned int rank = 0; rank <= COLUMN_NAMES && !c.err; rank += COLUMN_OWNER)
		for (size_t i = 0; i < c.list_count; i++)
			if (c.list[i].rank == rank)
				(*list)[kept++] = c.list[i];
	*count = c.list_count;
	free(c.list);
	return c.err;
}

struct table_looks columns_looks(columns_function *describe, const void *view, size_t row)
{
	struct table_looks looks = { 0 };
	struct columns c = { .looks = &looks, .wanted = SIZE_MAX };

	describe(&c, view, row);
	return looks;
}

const char *columns_cell(columns_function *describe, const void *view, size_t row,
			 const struct table_column *column, char *buffer)
{
	struct columns c = { .buffer = buffer, .wanted = column->number };

	describe(&c, view, row);
	return c.text ?: "";
}
