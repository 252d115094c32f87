// SPDX-License-Identifier: GPL-2.0-only
#include "report/row_fields.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "profile/thread_state.h"
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

void row_state_columns(struct columns *c, const struct row *row)
{
	const char *state = row && row->key->state ? row->key->state : "", *reason = NULL;
	char reason_text[THREAD_STATE_SIZE] = "";
	const enum thread_state number = thread_state_of(state, &reason, &(size_t){ 0 });

	if (reason) /* up to the bracket */
		snprintf(reason_text, sizeof(reason_text), "%.*s", (int)strlen(reason) - 1, reason);
	COLUMN(c, NULL, "state", 0, thread_state_names[number]);
	COLUMN(c, NULL, "reason", 0, reason_text);
	COLUMN(c, "state", NULL, COLUMN_NAMES | COLUMN_TEXT | COLUMN_WHOLE,
	       thread_state_text(state, c->buffer));
}

void row_columns(struct columns *c, const struct row_view *view, const struct row *row)
{
	const unsigned int fields = view->fields, text = COLUMN_NAMES | COLUMN_TEXT;
	const struct tag_kind *tag = row_view_tag(view);

	if (fields & ROW_STATE)
		row_state_columns(c, row);
	if (fields & ROW_ADDRESS)
		COLUMN(c, "address", "address", COLUMN_NAMES,
		       text_hex(c->buffer, row->key->address));
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
		COLUMN(c, view->name, view->name,
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
