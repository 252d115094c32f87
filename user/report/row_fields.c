// SPDX-License-Identifier: GPL-2.0-only
#include "report/row_fields.h"

#include <inttypes.h>
#include <time.h>

#include "report/json_writer.h"
#include "report/text.h"

/* A row's tag as it is shown. utc: as in JSON: times are in UTC. */
static const char *tag_text(const struct tag_kind *tag, const struct row *row, bool utc,
			    char buffer[TABLE_CELL_SIZE])
{
	time_t time = (time_t)row->key->number - 1; /* when the row's windows began */
	struct tm tm;

	if (tag->shown == TAG_TIME_S) {
		if (!row->key->number || !(utc ? gmtime_r(&time, &tm) : localtime_r(&time, &tm)))
			return row_unknown;
		strftime(buffer, TABLE_CELL_SIZE, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M %Z",
			 &tm);
		return buffer;
	}
	if (row->shown_container && !utc) /* JSON has both, whole */
		return row->shown_container;
	if (row->comm[0])
		return row->comm;
	if (row->key->number) {
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64, row->key->number - 1);
		return buffer;
	}
	return tag->missing ?: row_unknown;
}

static const char *hex_text(uint64_t number, char buffer[TABLE_CELL_SIZE])
{
	snprintf(buffer, TABLE_CELL_SIZE, "0x%" PRIx64, number);
	return buffer;
}

void row_columns(struct columns *c, const struct row_view *view, const struct row *row)
{
	const unsigned int fields = view->fields, text = COLUMN_NAMES | COLUMN_TEXT;
	const struct tag_kind *tag = row_view_tag(view);

	if (fields & ROW_ADDRESS)
		COLUMN(c, "address", "address", COLUMN_NAMES,
		       hex_text(row->key->address, c->buffer));
	COLUMN(c, fields & ROW_SOURCE ? "source" : NULL, "source", text | COLUMN_PATH,
	       row->key->source);
	COLUMN(c, fields & ROW_LINE ? "line" : NULL, "line", COLUMN_NAMES | COLUMN_KNOWN,
	       row->key->line);
	COLUMN(c, fields & ROW_FUNCTION ? "function" : NULL,
	       view == row_views ? "name" : "function", text, row->name);
	/* The whole path where there is room for it. */
	COLUMN(c, fields & ROW_IMAGE ? "image" : NULL, "image", text | COLUMN_PATH,
	       c->json || fields == ROW_IMAGE ? row->key->image : text_basename(row->key->image));
	COLUMN(c, fields & ROW_PROCESS ? "pid" : NULL, "pid", COLUMN_OWNER | COLUMN_KNOWN,
	       row->key->pid);
	COLUMN(c, NULL, "generation", COLUMN_KNOWN, row->key->generation);
	COLUMN(c, fields & ROW_THREAD ? "tid" : NULL, "tid", COLUMN_OWNER | COLUMN_KNOWN,
	       row->key->tid);
	if (fields & ROW_COMM)
		COLUMN(c, "name", "name", COLUMN_OWNER | COLUMN_TEXT,
		       c->json || row->comm[0] ? row->comm : row_unknown);
	if (tag && (!c->json || row->comm[0] || row->key->number || tag->shown == TAG_TIME_S))
		COLUMN(c, tag->key, tag->key,
		       COLUMN_OWNER | (tag->shown != TAG_NUMBER ? COLUMN_TEXT : 0),
		       tag_text(tag, row, c->json, c->buffer));
	COLUMN(c, NULL, tag_kinds[TAG_CONTAINER_NAME].key, 0, row->container_name);
}

const char *row_first_text(const struct row_view *view, const struct row *row,
			   char buffer[TABLE_CELL_SIZE])
{
	struct columns c = { .buffer = buffer };

	row_columns(&c, view, row);
	return c.text ?: "";
}

void row_print_more(const struct row_view *view, size_t count, const char *after, FILE *out)
{
	if (count)
		fprintf(out, "... %zu more %s%s\n", count, row_view_noun(view, count), after);
}

void row_print_rest(const struct row_view *view, size_t count, double samples, double all,
		    bool fits, FILE *out)
{
	char percent[TEXT_PERCENT_SIZE], after[TEXT_PERCENT_SIZE + 32];

	text_percent(percent, samples, all);
	snprintf(after, sizeof(after), ", %s %%%s", percent, fits ? "; -E 0 prints all" : "");
	row_print_more(view, count, after, out);
}

/* The same for views that do not use row_columns(). */
static const struct {
	enum row_field field;
	struct table_column column;
} shown[] = {
	{ ROW_PROCESS, { .title = "pid" } },
	{ ROW_THREAD, { .title = "tid" } },
	{ ROW_COMM, { .title = "name", .is_text = true } },
	{ ROW_ADDRESS, { .title = "address" } },
	{ ROW_SOURCE, { .title = "source", .is_text = true, .is_path = true } },
	{ ROW_LINE, { .title = "line" } },
	{ ROW_FUNCTION, { .title = "function", .is_text = true } },
	{ ROW_IMAGE, { .title = "image", .is_text = true, .is_path = true } },
};

#define SHOWN (sizeof(shown) / sizeof(*shown))

size_t row_field_columns(const struct row_view *view, struct table_column *columns)
{
	const struct tag_kind *tag = row_view_tag(view);
	size_t count = 0;

	if (tag)
		columns[count++] = (struct table_column){
			.title = tag->key,
			.is_text = tag->shown != TAG_NUMBER,
		};
	for (size_t i = 0; i < SHOWN; i++)
		if (view->fields & shown[i].field)
			columns[count++] = shown[i].column;
	return count;
}

static const char *number_text(uint64_t number, char buffer[TABLE_CELL_SIZE])
{
	if (!number)
		return "-";
	snprintf(buffer, TABLE_CELL_SIZE, "%" PRIu64, number);
	return buffer;
}

const char *row_field_text(const struct row_view *view, const struct row *row, size_t column,
			   char buffer[TABLE_CELL_SIZE])
{
	const struct callgraph_key *key = row->key;
	const struct tag_kind *tag = row_view_tag(view);
	size_t i = 0;

	if (tag)
		return tag_text(tag, row, false, buffer);
	/* The field of column `column` of those that row_field_columns() stores. */
	while (!(view->fields & shown[i].field) || column-- > 0)
		i++;
	switch (shown[i].field) {
	case ROW_ADDRESS:
		snprintf(buffer, TABLE_CELL_SIZE, "0x%" PRIx64, key->address);
		return buffer;
	case ROW_SOURCE:
		return key->source;
	case ROW_LINE:
		return number_text(key->line, buffer);
	case ROW_FUNCTION:
		return row->name;
	case ROW_IMAGE: /* the whole path where there is room for it */
		return view->fields == ROW_IMAGE ? key->image : text_basename(key->image);
	case ROW_PROCESS:
		return number_text(key->pid, buffer);
	case ROW_THREAD:
		return number_text(key->tid, buffer);
	case ROW_COMM:
		return row->comm[0] ? row->comm : row_unknown;
	case ROW_CODE:
	case ROW_TAG:
	case ROW_TAGS:
		break;
	}
	return "";
}

int row_fields_json(const struct row_view *view, const struct row *row, struct json_object *object)
{
	const struct callgraph_key *key = row->key;
	const struct tag_kind *tag = row_view_tag(view);
	char buffer[TABLE_CELL_SIZE];
	int err = 0;

	if (view->fields & ROW_ADDRESS)
		err = json_add(object, "address", json_hex(key->address));
	err = err ?: json_add_text(object, "source", key->source);
	err = err ?: json_add_number(object, "line", key->line);
	err = err ?: json_add_text(object, view == row_views ? "name" : "function", row->name);
	err = err ?: json_add_text(object, "image", key->image);
	err = err ?: json_add_number(object, "pid", key->pid);
	err = err ?: json_add_number(object, "generation", key->generation);
	err = err ?: json_add_number(object, "tid", key->tid);
	if (view->fields & ROW_COMM)
		err = err ?: json_add_text(object, "name", row->comm);
	if (tag && (row->comm[0] || key->number || tag->shown == TAG_TIME_S))
		err = err ?: json_add_text(object, tag->key, tag_text(tag, row, true, buffer));
	if (row->container_name)
		err = err
			      ?: json_add_text(object, tag_kinds[TAG_CONTAINER_NAME].key,
					       row->container_name);
	return err;
}
