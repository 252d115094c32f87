// SPDX-License-Identifier: GPL-2.0-only
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/functions.h"
#include "report/text.h"

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

#define GAP	     2	/* blanks between columns */
#define NUMBERS_MAX  4	/* columns that hold numbers */
#define NAME_MIN     12 /* a name is not shortened below this, whatever the width */
#define NAME_PADDING 60 /* in a pipe: one long name must not push all images to the right */
#define HOT_PERCENT  5

/* What a number column shows of a row. */
typedef void number_print(char text[TEXT_PERCENT_SIZE], const struct functions *f,
			  const struct function_row *row);

struct number_column {
	const char *title;
	number_print *print;
	bool hot; /* in red when large */
};

struct table {
	const struct functions *f;
	const struct number_column *numbers;
	size_t number_count;
	size_t shown; /* rows */
	bool color;
	bool shorten;
	size_t number_width[NUMBERS_MAX];
	size_t name_width;
	size_t image_width;
};

static void print_self(char text[TEXT_PERCENT_SIZE], const struct functions *f,
		       const struct function_row *row)
{
	(void)f;
	snprintf(text, TEXT_PERCENT_SIZE, "%" PRIu64, row->self);
}

static void print_self_percent(char text[TEXT_PERCENT_SIZE], const struct functions *f,
			       const struct function_row *row)
{
	text_percent(text, row->self, f->samples);
}

static void print_cumulative_percent(char text[TEXT_PERCENT_SIZE], const struct functions *f,
				     const struct function_row *row)
{
	text_percent(text, row->cumulative, f->samples);
}

static void print_total(char text[TEXT_PERCENT_SIZE], const struct functions *f,
			const struct function_row *row)
{
	(void)f;
	snprintf(text, TEXT_PERCENT_SIZE, "%" PRIu64, row->total);
}

static void print_total_percent(char text[TEXT_PERCENT_SIZE], const struct functions *f,
				const struct function_row *row)
{
	text_percent(text, row->total, f->samples);
}

static const struct number_column flat_numbers[] = {
	{ "samples", print_self, false },
	{ "%", print_self_percent, true },
	{ "cum%", print_cumulative_percent, false },
};

static const struct number_column stack_numbers[] = {
	{ "self", print_self, false },
	{ "self%", print_self_percent, true },
	{ "total", print_total, false },
	{ "total%", print_total_percent, false },
};

static size_t max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void choose_columns(struct table *t, const struct functions *f)
{
	t->f = f;
	t->numbers = f->stacks ? stack_numbers : flat_numbers;
	t->number_count = f->stacks ? 4 : 3;
}

/* The widths that the header and the rows ask for. */
static void measure(struct table *t)
{
	char text[TEXT_PERCENT_SIZE];

	for (size_t i = 0; i < t->number_count; i++)
		t->number_width[i] = strlen(t->numbers[i].title);
	t->name_width = strlen("function");
	t->image_width = strlen("image");
	for (size_t r = 0; r < t->shown; r++) {
		const struct function_row *row = &t->f->rows[r];

		for (size_t i = 0; i < t->number_count; i++) {
			t->numbers[i].print(text, t->f, row);
			t->number_width[i] = max(t->number_width[i], strlen(text));
		}
		t->name_width = max(t->name_width, text_columns(row->name));
		t->image_width = max(t->image_width, text_columns(text_basename(row->image)));
	}
}

/* Makes the widths fit a terminal: numbers stay whole, an image gets a third at most. */
static void fit(struct table *t, size_t width)
{
	size_t used = 0;

	t->shorten = width != 0;
	if (!width) {
		t->name_width = min(t->name_width, NAME_PADDING);
		return;
	}
	t->image_width = min(t->image_width, max(width / 3, NAME_MIN));
	for (size_t i = 0; i < t->number_count; i++)
		used += t->number_width[i] + GAP;
	used += GAP + t->image_width;
	t->name_width = min(t->name_width, max(width > used ? width - used : 0, NAME_MIN));
}

static void print_gap(size_t blanks, FILE *out)
{
	fprintf(out, "%*s", (int)blanks, "");
}

static void print_header(const struct table *t, FILE *out)
{
	fputs(t->color ? BOLD : "", out);
	for (size_t i = 0; i < t->number_count; i++) {
		fprintf(out, "%*s", (int)t->number_width[i], t->numbers[i].title);
		print_gap(GAP, out);
	}
	fprintf(out, "%-*s", (int)t->name_width, "function");
	print_gap(GAP, out);
	fputs("image", out);
	fputs(t->color ? PLAIN "\n" : "\n", out);
}

static void print_numbers(const struct table *t, const struct function_row *row, FILE *out)
{
	char text[TEXT_PERCENT_SIZE];
	/* In double: a count times 100 may not fit 64 bits. */
	bool hot = (double)row->self * 100 >= (double)t->f->samples * HOT_PERCENT;

	for (size_t i = 0; i < t->number_count; i++) {
		bool red = t->color && t->numbers[i].hot && hot;

		t->numbers[i].print(text, t->f, row);
		print_gap(t->number_width[i] - strlen(text), out);
		fprintf(out, "%s%s%s", red ? RED : "", text, red ? PLAIN : "");
		print_gap(GAP, out);
	}
}

/* Prints a name and, where another column follows, what is missing to `width`. */
static int print_name(const struct table *t, const char *raw, size_t width, bool pad, FILE *out)
{
	char *visible = text_visible(raw);
	size_t columns = text_columns(raw);

	if (!visible)
		return -ENOMEM;
	if (t->shorten && columns > width) {
		text_shorten(visible, width);
		columns = width;
	}
	fputs(visible, out);
	free(visible);
	if (pad)
		print_gap(columns < width ? width - columns : 0, out);
	return 0;
}

static int print_row(const struct table *t, const struct function_row *row, FILE *out)
{
	int err;

	print_numbers(t, row, out);
	err = print_name(t, row->name, t->name_width, true, out);
	if (err)
		return err;
	print_gap(GAP, out);
	err = print_name(t, text_basename(row->image), t->image_width, false, out);
	fputc('\n', out);
	return err;
}

static void print_rest(const struct table *t, FILE *out)
{
	size_t rest = t->f->count - t->shown;
	uint64_t above = t->shown ? t->f->rows[t->shown - 1].cumulative : 0;
	char percent[TEXT_PERCENT_SIZE];

	if (!rest)
		return;
	text_percent(percent, t->f->samples - above, t->f->samples);
	fprintf(out, "... %zu more function%s, %s %%\n", rest, rest == 1 ? "" : "s", percent);
}

int report_table(const struct profile *p, const struct report_table_options *options, FILE *out)
{
	struct table t = { .color = options->color };
	struct functions f;
	int err = functions_collect(p, &f);

	if (err)
		return err;
	choose_columns(&t, &f);
	t.shown = options->limit ? min(options->limit, f.count) : f.count;
	measure(&t);
	fit(&t, options->width);
	print_header(&t, out);
	for (size_t i = 0; i < t.shown && !err; i++)
		err = print_row(&t, &f.rows[i], out);
	if (!err)
		print_rest(&t, out);
	functions_free(&f);
	return err;
}
