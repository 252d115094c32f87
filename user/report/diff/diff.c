// SPDX-License-Identifier: GPL-2.0-only
#include "report/diff/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text.h"

/* Terminals with fewer columns have no range%, which few need. */
#define NARROW 100

/* Bound: pace. */
#define LARGEST_COLUMNS 24 /* of a name in the last line */

struct diff {
	const struct comparison *c;
	bool is_of_times;
	bool is_narrow;
};

static void diff_columns(struct columns *c, const void *view, size_t number)
{
	static const struct {
		const char *titles[SIDES], *keys[SIDES], *difference;
	} amounts[] = {
		[AMOUNT_SHARE] = { { "old%", "new%" }, { "old_percent", "new_percent" }, "diff" },
		[AMOUNT_TIME] = { { "old s", "new s" },
				  { "old_seconds", "new_seconds" },
				  "diff s" },
		[AMOUNT_RATE] = { { "old ms/s", "new ms/s" },
				  { "old_ms_per_s", "new_ms_per_s" },
				  "diff ms/s" },
	};
	static const char *const values[][SIDES] = { { "old", "new" }, { "old s", "new s" } };
	const struct diff *d = view;
	const enum comparison_amount amount = d->c->amount;
	const struct compared *row = number < d->c->count ? &d->c->compared[number] : NULL;
	const unsigned int decimals = amount == AMOUNT_SHARE ? 2 : 3;

	/* Without significance, a change by so many percentage points. */
	LOOKS(c,
	      .hot = d->c->has_p ? row->chance.p <= CHANCE_LEVEL
				 : fabs(row->difference) >= TABLE_HOT_PERCENT,
	      .faint = d->c->has_p && row->chance.p > CHANCE_LEVEL);
	row_columns(c, d->c->rows.view, row ? row->row : NULL);
	for (enum comparison_side side = OLD; side < SIDES; side++) {
		/* Times would be there twice. */
		COLUMN(c,
		       d->is_of_times && amount == AMOUNT_TIME ? NULL
							       : values[d->is_of_times][side],
		       values[false][side], COLUMN_OPTIONAL | (d->is_of_times ? COLUMN_NS : 0),
		       comparison_value(d->c, row->row, side));
		COLUMN(c, amounts[amount].titles[side], amounts[amount].keys[side], decimals,
		       row->amount[side]);
	}
	COLUMN(c, amounts[amount].difference, "difference", decimals | COLUMN_SIGNED | COLUMN_HOT,
	       row->difference);
	/* The normalised range: |a - b| / (a + b). */
	COLUMN(c, d->is_narrow ? NULL : "range%", "range_percent", 0,
	       column_share(fabs(row->difference),
			    fabs(row->amount[OLD]) + fabs(row->amount[NEW])));
	if (!d->c->has_p)
		return;
	COLUMN(c, "p", NULL, COLUMN_HOT, chance_text(&row->chance, c->buffer, TABLE_CELL_SIZE));
	if (c->json && row->chance.least <= CHANCE_LEVEL)
		COLUMN(c, NULL, "p", 6, row->chance.p);
	COLUMN(c, NULL, "significant", 0, json_object_new_boolean(row->chance.p <= CHANCE_LEVEL));
}

int report_diff(const struct comparison *c, const struct report_table_options *o, FILE *out)
{
	const struct diff d = {
		.c = c,
		.is_of_times = comparison_is_of_times(c),
		.is_narrow = o->width && o->width < NARROW,
	};
	size_t shown = report_rows(o, c->count);
	int err = table_print(diff_columns, &d, shown, o->width, o->color, out);

	if (err)
		return err;
	row_print_more(c->rows.view, c->count - shown, "", out);
	row_print_more(c->rows.view, c->omitted, ", not significant", out);
	return 0;
}

static void print_side(const struct comparison *c, enum comparison_side side, const char *prefix,
		       const char *name, FILE *out)
{
	const struct profile *p = c->profiles[side];
	char *counted = rows_title(p, profile_value(p, c->value));

	fprintf(out, "%s%s: ", prefix, side == OLD ? "old" : "new");
	if (comparison_is_of_times(c))
		text_printf(out, "%s: %.3f s of %s time", name,
			    (double)profile_total(p, c->value) / 1e9,
			    p->value_types[profile_value(p, c->value)].type);
	else
		text_printf(out, "%s: %" PRId64 " %s", name, profile_total(p, c->value),
			    counted ?: "");
	if (p->event[0] && counted && strcmp(p->event, counted) != 0)
		text_printf(out, "%s%s", comparison_is_of_times(c) ? "; " : " of ", p->event);
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

/* Prints "more: f +34.81, ...; less: g -25.04, ...": of each up to three that differ. */
static void print_largest(const struct comparison *c, const char *prefix, FILE *out)
{
	static const char *const units[] = {
		[AMOUNT_SHARE] = "",
		[AMOUNT_TIME] = " s",
		[AMOUNT_RATE] = " ms/s",
	};
	char buffer[TABLE_CELL_SIZE];
	const char *gap = prefix;

	for (int less = 0; less < 2; less++) {
		int shown = 0;

		for (size_t i = 0; i < c->count && shown < 3; i++) {
			const struct compared *row = &c->compared[i];

			if (row->chance.p > CHANCE_LEVEL || (row->difference < 0) != less)
				continue;
			if (!shown++)
				fprintf(out, "%s%s: ", gap, less ? "less" : "more");
			else
				fputs(", ", out);
			text_print_in(row->row->name
					      ?: row_first_text(c->rows.view, row->row, buffer),
				      LARGEST_COLUMNS, out);
			fprintf(out, " %+.*f%s", c->amount == AMOUNT_SHARE ? 2 : 3, row->difference,
				units[c->amount]);
			gap = "; ";
		}
	}
	fputs(gap == prefix ? "" : "\n", out);
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
			text_number(before, was, 3, false), text_number(after, is, 3, false));
		if (was > 0 && is > 0) {
			text_decimal(before, is / was);
			fprintf(out, ": %s times as much", before);
		}
		if (c->amount == AMOUNT_SHARE)
			fputs("; --normalize rate compares that", out);
		fputc('\n', out);
	}
	while (side < SIDES && profile_find_sum(c->profiles[side], PROFILE_SUM_WALL) <
				       c->profiles[side]->value_type_count)
		side++;
	if (side == SIDES && !is_of_times)
		fprintf(out, "%sboth have waits: --value wall compares them\n", prefix);
	if (!c->has_p)
		return;
	fputs(prefix, out);
	chance_print(c->significant, all, row_view_noun(c->rows.view, all), out);
	print_largest(c, prefix, out);
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

int report_diff_json(const struct comparison *c, const struct report_table_options *o, FILE *out)
{
	static const char *const names[] = {
		[AMOUNT_SHARE] = "share",
		[AMOUNT_TIME] = "time",
		[AMOUNT_RATE] = "rate",
	};
	const struct diff d = { .c = c };
	size_t shown = report_rows(o, c->count), omitted = c->count - shown + c->omitted;
	struct json_writer w;

	json_begin(&w, out);
	side_json(&w, c, OLD);
	side_json(&w, c, NEW);
	json_member(&w, "by", json_text(c->rows.view->name));
	json_member(&w, "normalize", json_text(names[c->amount]));
	json_member(&w, "amount", json_text(c->rows.by_total ? "total" : "self"));
	columns_list(&w, "rows", diff_columns, &d, shown);
	json_member_number(&w, "omitted", omitted);
	return json_end(&w);
}
