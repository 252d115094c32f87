// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include "format/loss.h"

/* In the source tree, in which the tests run. */
#define PAGE "user/tool/profil-formats.5"

#define MOST_COLUMNS 16

static const struct format *const nothing = &(const struct format){ .name = "nothing" };

static const char *losses_of(const struct profile *p, const struct format *format,
			     const struct format_options *options)
{
	static char text[1024];

	if (!loss_list(p, loss_aspects(p), format, options, text, sizeof(text)))
		return "";
	assert_true(*text);
	return text;
}

static const char *losses(const struct profile *p, const struct format *format)
{
	return losses_of(p, format, &(struct format_options){ 0 });
}

static void list(void **state)
{
	struct profile *p = empty_profile(1000);
	uint32_t mapping = add_mapping(p, 0x1000, 0x2000, 0, "/bin/a");
	uint32_t frames[] = { add_location(p, 0x1010, mapping), add_location(p, 0x1020, mapping) };

	(void)state;
	add_sample(p, frames, 1, add_labels(p, 0, 0, "", false), 1);
	assert_string_equal(losses(p, nothing), "addresses, images, mappings and the period");
	assert_string_equal(losses(p, format_by_name("pprof")), "");
	add_sample(p, frames, 2, add_labels(p, 7, 8, "x", true), 1);
	assert_string_equal(losses(p, format_by_name("gperftools")),
			    "processes and threads and the CPU mode of ticks");
	assert_int_equal(profile_add_extra(p, "callgrind", PROFILE_NONE, "desc: x", 7), 0);
	assert_string_equal(losses(p, format_by_name("gperftools")),
			    "processes and threads, the CPU mode of ticks and what only "
			    "callgrind has");
	assert_null(strstr(losses(p, format_by_name("callgrind")), "only callgrind"));
	profile_free(p);
}

/* What is written is the value that report shows. */
static void value(void **state)
{
	struct profile *p = profile_new();
	const struct format *folded = format_by_name("folded");

	(void)state;
	assert_int_equal(profile_add_value_type(p, "alloc_objects", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "inuse_space", "bytes"), 0);
	p->default_value = 2;
	assert_string_equal(losses(p, folded), "more than one value (inuse_space is written)");
	assert_string_equal(
		losses_of(p, folded, &(struct format_options){ .value = "alloc_objects" }),
		"more than one value (alloc_objects is written)");
	profile_free(p);
}

/* Calls and jumps are reported separately, and so are counts and costs. */
static void arcs(void **state)
{
	static const int64_t costs[] = { 5, 0 };
	struct profile *p = empty_profile(1000);
	uint32_t location = add_location(p, 0, PROFILE_NONE);
	struct profile_arc arc = { location,	 location, add_labels(p, 0, 0, "", false),
				   PROFILE_JUMP, 1,	   0 };

	(void)state;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	assert_string_equal(losses(p, nothing), "jumps and the period");
	arc.kind = PROFILE_CALL;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	assert_string_equal(losses(p, nothing), "call counts, jumps and the period");
	assert_int_equal(profile_add_arc(p, &arc, costs), 0);
	assert_string_equal(losses(p, nothing),
			    "call counts, inclusive costs of calls, jumps and the period");
	profile_free(p);
}

/* Another representation of the same information is not a loss. */
static void no_noise(void **state)
{
	struct profile *p = empty_profile(1000);
	uint32_t mapping = add_mapping(p, 0x1000, 0x2000, 0, "");
	uint32_t frame = add_location(p, 0x1010, mapping);

	(void)state;
	p->mappings[mapping].linked = true;
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 1);
	assert_string_equal(losses(p, format_by_name("gmon")), "");
	/* Events are no ticks: CPU time beside them is another value. */
	p->value_types[0].period = 65536;
	assert_string_equal(losses(p, format_by_name("gmon")),
			    "more than one value (samples is written) and the period in events");
	assert_string_equal(losses(p, format_by_name("gperftools")),
			    "more than one value (samples is written) and the period in events");
	assert_string_equal(losses(p, format_by_name("pprof")), "");
	profile_free(p);
}

/* Cuts a line of a column list into its cells. Returns how many they are. */
static size_t split_cells(char *line, char *cells[MOST_COLUMNS])
{
	static const char item[] = ".It ", gap[] = " Ta ";
	size_t count = 0;

	assert_int_equal(strncmp(line, item, strlen(item)), 0);
	line[strcspn(line, "\n")] = '\0';
	for (char *at = line + strlen(item); at; count++) {
		char *next = strstr(at, gap);

		assert_true(count < MOST_COLUMNS);
		cells[count] = at;
		if (next)
			*next = '\0';
		at = next ? next + strlen(gap) : NULL;
	}
	return count;
}

/* The formats of the table's columns, from the second on. */
static size_t read_header(FILE *in, const struct format *formats[MOST_COLUMNS])
{
	char *line = NULL, *cells[MOST_COLUMNS];
	size_t room = 0, count;

	do
		assert_true(getline(&line, &room, in) > 0);
	while (strncmp(line, ".Bl -column", strlen(".Bl -column")) != 0);
	assert_true(getline(&line, &room, in) > 0);
	count = split_cells(line, cells);
	for (size_t i = 1; i < count; i++) {
		formats[i] = format_by_name(cells[i]);
		assert_non_null(formats[i]);
	}
	free(line);
	return count;
}

static void man_page(void **state)
{
	const struct format *formats[MOST_COLUMNS] = { NULL };
	char *line = NULL, *cells[MOST_COLUMNS];
	size_t room = 0, columns, all = 0;
	FILE *in = fopen(PAGE, "r");

	(void)state;
	if (!in) {
		print_message("# no %s here: not done\n", PAGE);
		skip();
	}
	columns = read_header(in, formats);
	for (const struct format *const *f = format_all; *f; f++)
		all += (*f)->read && ((*f)->write || (*f)->write_directory);
	assert_int_equal(columns, all + 1);
	for (enum format_aspect i = 0; i < ASPECT_COUNT; i++) {
		assert_true(getline(&line, &room, in) > 0);
		assert_int_equal(split_cells(line, cells), columns);
		assert_string_equal(cells[0], aspect_name(i));
		for (size_t j = 1; j < columns; j++)
			if (strcmp(cells[j], formats[j]->keeps >> i & 1 ? "yes" : "\\-") != 0)
				fail_msg("%s: %s of %s", PAGE, aspect_name(i), formats[j]->name);
	}
	assert_true(getline(&line, &room, in) > 0);
	assert_string_equal(line, ".El\n");
	free(line);
	fclose(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list),	    cmocka_unit_test(value),	cmocka_unit_test(arcs),
		cmocka_unit_test(no_noise), cmocka_unit_test(man_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
