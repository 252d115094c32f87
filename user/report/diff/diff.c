// SPDX-License-Identifier: GPL-2.0-only
#include "report/diff/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/row_fields.h"
#include "report/table.h"
#include "report/text.h"

/* Terminals with fewer columns have no range%, which few need. */
#define NARROW 100

/* The contents of a column of numbers. */
enum content {
	OLD_VALUE,
	OLD_AMOUNT,
	NEW_VALUE,
	NEW_AMOUNT,
	DIFFERENCE,
	RANGE,
	SIGNIFICANCE,
	NUMBERS_MAX
};

struct diff {
	const struct comparison *c;
	struct table_column columns[NUMBERS_MAX + ROW_FIELDS_MAX]; /* numbers, then the fields */
	enum content contents[NUMBERS_MAX];
	size_t numbers;
};

/* The normalised range: |a - b| / (a + b), in percent. */
static double normalized_range(const struct compared *row)
{
	double sum = fabs(row->amount[OLD]) + fabs(row->amount[NEW]);

	return sum > 0 ? fabs(row->difference) * 100 / sum : 0;
}

/*
 * Writes a number with two decimals, or three. Printed as integers, because the locale may have
 * another decimal point. is_signed: positive ones get a "+".
 */
static const char *print_decimals(double value, int decimals, bool is_signed,
				  char buffer[TABLE_CELL_SIZE])
{
	uint64_t unit = decimals == 3 ? 1000 : 100;
	uint64_t scaled = (uint64_t)(fmin(fabs(value), 1e12) * (double)unit + 0.5);
	const char *sign = "";

	if (scaled && value < 0)
		sign = "-";
	else if (scaled && is_signed)
		sign = "+";
	snprintf(buffer, TABLE_CELL_SIZE, "%s%" PRIu64 ".%0*" PRIu64, sign, scaled / unit, decimals,
		 scaled % unit);
	return buffer;
}

/* Writes an amount, in percent or a unit of time. */
static const char *print_amount(const struct comparison *c, double value, bool is_signed,
				char buffer[TABLE_CELL_SIZE])
{
	return print_decimals(value, c->amount == AMOUNT_SHARE ? 2 : 3, is_signed, buffer);
}

/* Times in seconds. */
static const char *print_value(const struct comparison *c, const struct row *row,
			       enum comparison_side side, char buffer[TABLE_CELL_SIZE])
{
	int64_t value = comparison_value(c, row, side);

	if (comparison_is_of_times(c))
		snprintf(buffer, TABLE_CELL_SIZE, "%.3f", (double)value / 1e9);
	else
		snprintf(buffer, TABLE_CELL_SIZE, "%" PRId64, value);
	return buffer;
}

static const char *diff_cell(const void *context, size_t number, size_t column,
			     char buffer[TABLE_CELL_SIZE])
{
	const struct diff *d = context;
	const struct compared *row = &d->c->compared[number];

	if (column >= d->numbers)
		return row_field_text(d->c->rows.view, row->row, column - d->numbers, buffer);
	switch (d->contents[column]) {
	case OLD_VALUE:
		return print_value(d->c, row->row, OLD, buffer);
	case NEW_VALUE:
		return print_value(d->c, row->row, NEW, buffer);
	case OLD_AMOUNT:
		return print_amount(d->c, row->amount[OLD], false, buffer);
	case NEW_AMOUNT:
		return print_amount(d->c, row->amount[NEW], false, buffer);
	case DIFFERENCE:
		return print_amount(d->c, row->difference, true, buffer);
	case RANGE:
		text_decimal(buffer, normalized_range(row));
		return buffer;
	case SIGNIFICANCE:
		return chance_text(&row->chance, buffer, TABLE_CELL_SIZE);
	case NUMBERS_MAX:
		break;
	}
	return "";
}

static bool is_row_hot(const void *context, size_t number)
{
	const struct comparison *c = ((const struct diff *)context)->c;
	const struct compared *row = &c->compared[number];

	/* Without significance, a change by so many percentage points. */
	return c->has_p ? row->chance.p <= CHANCE_LEVEL
			: fabs(row->difference) >= TABLE_HOT_PERCENT;
}

static bool is_row_faint(const void *context, size_t number)
{
	const struct comparison *c = ((const struct diff *)context)->c;

	return c->has_p && c->compared[number].chance.p > CHANCE_LEVEL;
}

static size_t rows_to_show(const struct comparison *c, const struct report_table_options *o)
{
	return o->limit && o->limit < c->count ? o->limit : c->count;
}

int report_diff(const struct comparison *c, const struct report_table_options *o, FILE *out)
{
	static const char *const titles[][NUMBERS_MAX] = {
		[AMOUNT_SHARE] = { "old", "old%", "new", "new%", "diff", "range%", "p" },
		[AMOUNT_TIME] = { "old", "old s", "new", "new s", "diff s", "range%", "p" },
		[AMOUNT_RATE] = { "old", "old ms/s", "new", "new ms/s", "diff ms/s", "range%",
				  "p" },
	};
	const bool is_of_times = comparison_is_of_times(c);
	struct diff d = { .c = c };
	struct table t = {
		.columns = d.columns,
		.row_count = rows_to_show(c, o),
		.cell = diff_cell,
		.is_hot = is_row_hot,
		.is_faint = is_row_faint,
		.context = &d,
		.width = o->width,
		.color = o->color,
	};
	int err;

	for (int i = 0; i < NUMBERS_MAX; i++) {
		if ((i == RANGE && o->width && o->width < NARROW) ||
		    (i == SIGNIFICANCE && !c->has_p) ||
		    /* They would be there twice. */
		    (is_of_times && c->amount == AMOUNT_TIME && (i == OLD_VALUE || i == NEW_VALUE)))
			continue;
		d.columns[d.numbers] = (struct table_column){
			.title = !is_of_times	  ? titles[c->amount][i]
				 : i == OLD_VALUE ? "old s"
				 : i == NEW_VALUE ? "new s"
						  : titles[c->amount][i],
			.is_hot = i == DIFFERENCE || i == SIGNIFICANCE,
			.is_optional = i == OLD_VALUE || i == NEW_VALUE,
		};
		d.contents[d.numbers++] = i;
	}
	t.column_count = d.numbers + row_field_columns(c->rows.view, d.columns + d.numbers);
	err = table_print(&t, out);
	if (err)
		return err;
	row_print_more(c->rows.view, c->count - t.row_count, "", out);
	row_print_more(c->rows.view, c->omitted, ", not significant", out);
	return 0;
}

static void print_side(const struct comparison *c, enum comparison_side side, const char *prefix,
		       const char *name, FILE *out)
{
	const struct profile *p = c->profiles[side];
	char *counted = rows_title(p, profile_value(p, c->value));

	fprintf(out, "%s%s: ", prefix, side == OLD ? "old" : "new");
	text_print(name, out);
	if (comparison_is_of_times(c)) {
		fprintf(out, ": %.3f s of ", (double)profile_total(p, c->value) / 1e9);
		text_print(p->value_types[profile_value(p, c->value)].type, out);
		fputs(" time", out);
	} else {
		fprintf(out, ": %" PRId64 " ", profile_total(p, c->value));
		text_print(counted ?: "", out);
	}
	if (p->event[0] && counted && strcmp(p->event, counted) != 0) {
		fputs(comparison_is_of_times(c) ? "; " : " of ", out);
		text_print(p->event, out);
	}
	if (profile_tick_ns(p))
		fprintf(out, ", %.4g Hz", 1e9 / (double)profile_tick_ns(p));
	if (p->all_cpu_ns)
		fprintf(out, ", %.2f s of %.2f s of CPU", (double)profile_amount(p).cpu_ns / 1e9,
			(double)p->all_cpu_ns / 1e9);
	else if (p->totals.cpu_ns)
		fprintf(out, ", %.2f s of CPU", (double)p->totals.cpu_ns / 1e9);
	else if (comparison_seconds(c, side) > 0)
		fprintf(out, ", %.2f s", comparison_seconds(c, side));
	if (p->duration_ns)
		fprintf(out, " in %.2f s", (double)p->duration_ns / 1e9);
	fputc('\n', out);
	free(counted);
}

void report_diff_summary(const struct comparison *c, const char *const *names, const char *prefix,
			 FILE *out)
{
	const bool is_of_times = comparison_is_of_times(c);
	const char *const amounts[] = {
		[AMOUNT_SHARE] = is_of_times ? "shares of all of it" : "shares of all samples",
		[AMOUNT_TIME] = is_of_times ? "the time itself" : "CPU time",
		[AMOUNT_RATE] = is_of_times ? "the time in each second of the recordings"
					    : "CPU time in each second of the recordings",
	};
	double was = c->all_rate[OLD], is = c->all_rate[NEW];
	size_t all = c->count + c->omitted, side = OLD;
	bool selected = c->profiles[OLD]->all_samples || c->profiles[NEW]->all_samples;

	print_side(c, OLD, prefix, names[OLD], out);
	print_side(c, NEW, prefix, names[NEW], out);
	fprintf(out, "%scompared: %s%s%s\n", prefix, amounts[c->amount],
		selected && c->amount == AMOUNT_SHARE && !is_of_times ? " that are selected" : "",
		c->rows.by_total ? ", with what is called" : "");
	/* Shares stay the same where everything takes more. */
	if ((was > 0 || is > 0) && (c->amount == AMOUNT_RATE || c->all_p <= CHANCE_LEVEL)) {
		char before[TABLE_CELL_SIZE], after[TABLE_CELL_SIZE];

		fprintf(out, "%sin each second: %s ms, then %s ms", prefix,
			print_decimals(was, 3, false, before), print_decimals(is, 3, false, after));
		if (was > 0 && is > 0) {
			text_decimal(before, is / was);
			fprintf(out, ": %s times as much", before);
		}
		if (c->amount == AMOUNT_SHARE)
			fputs("; --normalize rate compares that", out);
		fputc('\n', out);
	}
	while (side < SIDES && profile_find_value(c->profiles[side], PROFILE_WALL_TYPE) <
				       c->profiles[side]->value_type_count)
		side++;
	if (side == SIDES && !is_of_times)
		fprintf(out, "%sboth have waits: --value wall compares them\n", prefix);
	if (!c->has_p)
		return;
	fputs(prefix, out);
	chance_print(c->significant, all, row_view_noun(c->rows.view, all), out);
}

/* Adds the time that the samples of a side stand for, and how long it was recorded. */
static void side_json(struct json_writer *w, const struct comparison *c, enum comparison_side side)
{
	double seconds = comparison_seconds(c, side);
	uint64_t duration_ns = c->profiles[side]->duration_ns;

	json_member(w, side == OLD ? "old_samples" : "new_samples",
		    json_object_new_uint64(magnitude_u64(c->rows.columns[side].samples)));
	if (seconds > 0)
		json_member(w, side == OLD ? "old_s" : "new_s", json_decimal(seconds, 3));
	if (duration_ns)
		json_member(w, side == OLD ? "old_duration_s" : "new_duration_s",
			    json_decimal((double)duration_ns / 1e9, 3));
}

static struct json_object *json_amount(const struct comparison *c, double value)
{
	char text[TABLE_CELL_SIZE];

	print_amount(c, value, true, text);
	return json_object_new_double_s(value, text + (*text == '+'));
}

static struct json_object *row_object(const struct comparison *c, const struct compared *row)
{
	static const char *const keys[][SIDES] = {
		[AMOUNT_SHARE] = { "old_percent", "new_percent" },
		[AMOUNT_TIME] = { "old_seconds", "new_seconds" },
		[AMOUNT_RATE] = { "old_ms_per_s", "new_ms_per_s" },
	};
	const char *const *key = keys[c->amount];
	struct json_object *object = json_object_new_object();
	int64_t old = comparison_value(c, row->row, OLD), new = comparison_value(c, row->row, NEW);
	int err = row_fields_json(c->rows.view, row->row, object);

	err = err ?: json_add(object, "old", json_object_new_int64(old));
	err = err ?: json_add(object, key[OLD], json_amount(c, row->amount[OLD]));
	err = err ?: json_add(object, "new", json_object_new_int64(new));
	err = err ?: json_add(object, key[NEW], json_amount(c, row->amount[NEW]));
	err = err ?: json_add(object, "difference", json_amount(c, row->difference));
	err = err ?: json_add(object, "range_percent", json_decimal(normalized_range(row), 2));
	if (!err && c->has_p && row->chance.least <= CHANCE_LEVEL)
		err = json_add(object, "p", json_decimal(row->chance.p, 6));
	if (!err && c->has_p)
		err = json_add(object, "significant",
			       json_object_new_boolean(row->chance.p <= CHANCE_LEVEL));
	return json_checked(object, err);
}

int report_diff_json(const struct comparison *c, const struct report_table_options *o, FILE *out)
{
	static const char *const names[] = {
		[AMOUNT_SHARE] = "share",
		[AMOUNT_TIME] = "time",
		[AMOUNT_RATE] = "rate",
	};
	size_t shown = rows_to_show(c, o), omitted = c->count - shown + c->omitted;
	struct json_writer w;

	json_begin(&w, out);
	side_json(&w, c, OLD);
	side_json(&w, c, NEW);
	json_member(&w, "by", json_text(c->rows.view->name));
	json_member(&w, "normalize", json_text(names[c->amount]));
	json_member(&w, "amount", json_text(c->rows.by_total ? "total" : "self"));
	json_begin_list(&w, "rows");
	for (size_t i = 0; i < shown && !w.err; i++)
		json_element(&w, row_object(c, &c->compared[i]));
	json_end_list(&w);
	json_member_number(&w, "left_out", omitted);
	return json_end(&w);
}
