// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
/*
 * Every format, and every pair of formats one after the other, with random profiles: what is read
 * back is what was written, reduced to what the formats keep. PROFIL_TEST_SEED is the seed of the
 * first profile, PROFIL_TEST_ROUNDS the number of profiles.
 */
#include "format_fixture.h"

#include <ftw.h>
#include <inttypes.h>

#include "profile/pc_name.h"

#define ROUNDS	    40
#define MOST_DEPTH  12
#define MOST_VALUES 8

/* --- Random profiles --- */

struct source {
	uint64_t state;
	struct profile *p;
	bool linked; /* addresses are the images' own */
	uint32_t labels[6];
	uint32_t locations[60];
	unsigned int location_count;
};

static uint64_t draw(struct source *s, uint64_t limit)
{
	s->state = s->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (s->state >> 33) % limit;
}

static bool chance(struct source *s, unsigned int percent)
{
	return draw(s, 100) < percent;
}

static const char *const images[] = {
	"/usr/bin/prog", "/opt/my app/lib with blank.so.1", "/lib/\xc3\xbcn\xc3\xaf.so", "/a;b/(c)",
	"relative.so",
};

static const char *const functions[] = {
	"main",
	"operator new(unsigned long)",
	"a;b",
	"(2)x",
	"(2)",
	"std::map<int, char [3]>::at(int) const",
	"\xe5\x87\xbd\xe6\x95\xb0",
	"ends 12",
	"fn=(1) x",
	"# hash",
	"back\\slash\\x3b",
	"0x401000",
	"+1",
	"calls=1",
};

static const char *const files[] = { "", "src/a.c", "/usr/include/c++/12/a b.h" };

static const char *const comms[] = { "", "prog", "my thread", "[kworker]", "\xc3\xbc" };

/* A name of 5000 characters, like those of C++. */
static const char *long_name(void)
{
	static char name[5001];

	memset(name, 'x', sizeof(name) - 1);
	memcpy(name, "ns::", 4);
	return name;
}

static struct profile_line draw_line(struct source *s)
{
	uint64_t which = draw(s, sizeof(functions) / sizeof(*functions) + 1);
	const char *name = which ? functions[which - 1] : long_name();
	struct profile_function f = { name, name, files[draw(s, 3)], 0 };
	struct profile_line line = { 0 };

	assert_int_equal(profile_add_function(s->p, &f, &line.function), 0);
	if (*f.file)
		line.line = 1 + draw(s, 100000);
	return line;
}

static void add_images(struct source *s)
{
	uint64_t count = 1 + draw(s, sizeof(images) / sizeof(*images));
	uint8_t build_id[20];

	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = s->linked ? 0x10000 + i * 0x1000 : (0x7f00 + i) << 24;
		uint32_t image, mapping;

		for (size_t j = 0; j < sizeof(build_id); j++)
			build_id[j] = draw(s, 256);
		assert_int_equal(profile_add_image(s->p, images[i], build_id,
						   chance(s, 50) ? sizeof(build_id) : 0, &image),
				 0);
		assert_int_equal(profile_add_mapping(s->p, start, start + 0x4000,
						     s->linked ? 0 : 0x1000, image, &mapping),
				 0);
		s->p->mappings[mapping].linked = s->linked;
		/* As after resolving, so that addresses are those in the file, too. */
		s->p->images[image].text_start = s->linked ? start : 0x1000;
		s->p->images[image].text_size = 0x4000;
	}
}

/* Even addresses, which are different cells of gmon.out. */
static void add_locations(struct source *s, bool named)
{
	s->location_count = 2 + draw(s, sizeof(s->locations) / sizeof(*s->locations) - 1);
	for (unsigned int i = 0; i < s->location_count; i++) {
		uint32_t mapping = draw(s, s->p->mapping_count);
		uint64_t address = s->p->mappings[mapping].start + 2 + draw(s, 0x1ff0) * 2;
		struct profile_line lines[3];
		uint32_t count = named ? 1 + draw(s, 3) : 0, *id = &s->locations[i];

		if (chance(s, 10))
			count = 0;
		for (uint32_t j = 0; j < count; j++)
			lines[j] = draw_line(s);
		*id = add_location(s->p, address, mapping);
		if (count && !s->p->locations[*id].line_count)
			assert_int_equal(profile_set_lines(s->p, *id, lines, count), 0);
	}
}

static void add_some_labels(struct source *s)
{
	const struct profile_tag all[] = {
		{ .key = "user id", .text = "a=b;c" },
		{ .key = "size", .number = 4096, .unit = "bytes" },
		{ .key = "size", .number = -1, .unit = "bytes" },
	};

	for (size_t i = 0; i < sizeof(s->labels) / sizeof(*s->labels); i++) {
		struct profile_labels l = { .comm = comms[draw(s, 5)], .kernel = chance(s, 20) };

		if (chance(s, 70)) {
			l.pid = 1 + draw(s, 1000);
			l.tid = l.pid + draw(s, 2);
		}
		if (chance(s, 30)) {
			l.tags = all + draw(s, 2);
			l.tag_count = 1 + draw(s, 2);
		}
		assert_int_equal(profile_add_labels(s->p, &l, &s->labels[i]), 0);
	}
}

/* When the recording began, since the epoch. */
#define START_NS 1700000000123456789ULL

static void set_clock(struct source *s)
{
	static const uint64_t periods[] = { 1000000, 4000000, 10000000 };

	assert_int_equal(profile_add_clock(s->p, periods[draw(s, 3)]), 0);
	assert_int_equal(profile_string(s->p, "task-clock", &s->p->event), 0);
}

static void set_events(struct source *s)
{
	static const char *const events[] = { "cycles", "imiss", "Ir" };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(profile_add_value_type(s->p, events[i], "count"), 0);
		s->p->value_types[i].period = 1000 * (i + 1);
	}
}

static void draw_values(struct source *s, int64_t *values)
{
	bool clock = profile_tick_ns(s->p);

	for (size_t i = 0; i < s->p->value_type_count; i++)
		values[i] = chance(s, 80) ? 1 + draw(s, chance(s, 90) ? 10 : 100000) : 0;
	if (clock) {
		values[0] += !values[0];
		values[1] = values[0] * profile_tick_ns(s->p);
	}
}

static void add_samples(struct source *s, unsigned int most_depth)
{
	uint64_t count = 2 + draw(s, 200);

	for (uint64_t i = 0; i < count; i++) {
		/*
		 * Some without a caller: the gperftools writer guards a caller that all have in
		 * common.
		 */
		uint32_t frames[MOST_DEPTH], depth = 1 + draw(s, i % 8 ? most_depth : 1);
		int64_t values[3];

		for (uint32_t j = 0; j < depth; j++)
			frames[j] = s->locations[draw(s, s->location_count)];
		draw_values(s, values);
		assert_int_equal(
			profile_add_sample(s->p, frames, depth, s->labels[draw(s, 6)], values), 0);
	}
	/* Some ticks have a time, in no order. */
	for (uint32_t i = 0; i < s->p->sample_count && profile_tick_ns(s->p); i++)
		for (int64_t n = draw(s, 5); n > 0 && n <= s->p->values[2 * i]; n--)
			assert_int_equal(
				tick_list_add(&s->p->ticks, i, START_NS + 100000 * draw(s, 25000)),
				0);
}

/* As in Callgrind files; between functions of one image, which gmon.out requires. */
static void add_arcs(struct source *s)
{
	for (int i = 0; i < 60; i++) {
		struct profile_arc arc = {
			.from = s->locations[draw(s, s->location_count)],
			.to = s->locations[draw(s, s->location_count)],
			.labels = s->labels[0],
			.kind = draw(s, 3),
			.count = 1 + draw(s, 1000),
		};
		int64_t values[3] = { 0 };

		if (s->p->locations[arc.from].mapping != s->p->locations[arc.to].mapping)
			continue;
		if (arc.kind == PROFILE_CALL)
			draw_values(s, values);
		if (arc.kind == PROFILE_CONDITIONAL_JUMP)
			arc.executed = arc.count + draw(s, 10);
		assert_int_equal(profile_add_arc(s->p, &arc, values), 0);
	}
}

static void set_header(struct source *s)
{
	struct profile_totals *t = &s->p->totals;

	s->p->bits = 64;
	s->p->time_ns = START_NS;
	s->p->duration_ns = 2500000000;
	assert_int_equal(profile_string(s->p, "walnut", &s->p->host), 0);
	assert_int_equal(profile_string(s->p, "prog --all \"x y\"", &s->p->command), 0);
	assert_int_equal(profile_add_comment(s->p, "a comment: of some words"), 0);
	if (!profile_tick_ns(s->p))
		return;
	t->known = true;
	t->counted = profile_total(s->p, NULL);
	t->excluded = 7;
	t->out_of_range = 3;
	t->kernel = 1;
	t->cpu_ns = 123456789;
	t->ticks = t->counted + t->excluded + t->out_of_range + 2;
	assert_int_equal(profile_add_lost(s->p, "ring_full", 2), 0);
}

static struct profile *make_profile(uint64_t seed, bool arcs)
{
	struct source s = { .state = seed * 0x9e3779b97f4a7c15, .p = profile_new() };

	assert_non_null(s.p);
	s.linked = chance(&s, 50);
	if (chance(&s, 50))
		set_clock(&s);
	else
		set_events(&s);
	add_images(&s);
	add_locations(&s, chance(&s, 80));
	add_some_labels(&s);
	/*
	 * The Callgrind writer derives calls from stacks: a profile with recorded calls has no
	 * stacks.
	 */
	add_samples(&s, arcs ? 1 : MOST_DEPTH);
	if (arcs)
		add_arcs(&s);
	set_header(&s);
	return s.p;
}

/* --- The contents of a profile, as text --- */

/* The value types in the order of their names: formats have any order. */
static void order_types(const struct profile *p, size_t order[MOST_VALUES])
{
	assert_true(p->value_type_count <= MOST_VALUES);
	for (size_t i = 0; i < p->value_type_count; i++) {
		size_t at = i;

		for (; at > 0 &&
		       strcmp(p->value_types[i].type, p->value_types[order[at - 1]].type) < 0;
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

struct row {
	char *key;
	int64_t *values;
};

struct rows {
	struct row *rows;
	size_t count;
	size_t width; /* the values of a row */
};

#define HAS(aspect) ((keeps & KEEPS(aspect)) != 0)

static void put_line(const struct profile *p, const struct profile_line *line, unsigned int keeps,
		     FILE *out)
{
	const struct profile_function *f = &p->functions[line->function];

	fputs(f->name, out);
	if (HAS(LINES) && line->line)
		fprintf(out, "@%s:%" PRIu32, line->file ?: f->file, line->line);
}

static void put_image(const struct profile *p, const struct profile_location *l, unsigned int keeps,
		      FILE *out)
{
	const struct profile_image *image = &p->images[p->mappings[l->mapping].image];

	fprintf(out, "|%s", image->path);
	for (unsigned int i = 0; HAS(BUILD_IDS) && i < image->build_id_size; i++)
		fprintf(out, "%s%02x", i ? "" : "#", image->build_id[i]);
}

/* One of the functions at a location, counted from the innermost; or the location itself. */
static void put_frame(const struct profile *p, uint32_t location, uint32_t number,
		      unsigned int keeps, FILE *out)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_image *image = profile_location_image(p, location);
	char *name = NULL;

	fputs("\n  ", out);
	if (HAS(ADDRESSES))
		fprintf(out, "0x%" PRIx64 " ", l->image_address);
	if (HAS(NAMES) && l->line_count) {
		put_line(p, &p->lines[l->first_line + number], keeps, out);
	} else if (HAS(NAMES) && !HAS(ADDRESSES)) {
		name = profile_pc_name(image ? image->path : "", l->image_address);
		assert_non_null(name);
		fputs(name, out);
		free(name);
	}
	if (HAS(IMAGES) && image)
		put_image(p, l, keeps, out);
}

/* All functions at a location. Where a format has no inlined functions, they are frames. */
static void put_location(const struct profile *p, uint32_t location, unsigned int keeps, FILE *out)
{
	const struct profile_location *l = &p->locations[location];
	bool expand = HAS(NAMES) && !HAS(INLINED);

	put_frame(p, location, 0, keeps, out);
	for (uint32_t i = 1; i < l->line_count && HAS(NAMES); i++) {
		if (expand) {
			put_frame(p, location, i, keeps, out);
			continue;
		}
		fputs(" in ", out);
		put_line(p, &p->lines[l->first_line + i], keeps, out);
	}
}

static void put_labels(const struct profile_labels *l, unsigned int keeps, FILE *out)
{
	if (HAS(THREADS))
		fprintf(out, " %" PRIu32 "/%" PRIu32 " %s", l->pid, l->tid, l->comm);
	if (HAS(MODE) && l->kernel)
		fputs(" kernel", out);
	for (uint32_t i = 0; HAS(TAGS) && i < l->tag_count; i++) {
		const struct profile_tag *t = &l->tags[i];

		fprintf(out, " %s=%s %" PRId64 " %s", t->key, t->text ?: "", t->number, t->unit);
	}
}

/* Whether a value type is compared: those that follow from others are not. */
static bool type_matters(const struct profile *p, size_t number, unsigned int keeps)
{
	if (!HAS(VALUES))
		return number == profile_value(p, NULL);
	return strcmp(p->value_types[number].unit, "nanoseconds") != 0;
}

static void put_values(const struct profile *p, const int64_t *values, unsigned int keeps,
		       FILE *out)
{
	size_t order[MOST_VALUES];

	order_types(p, order);
	for (size_t i = 0; i < p->value_type_count; i++)
		if (type_matters(p, order[i], keeps) && values[order[i]])
			fprintf(out, " %s=%" PRId64,
				HAS(VALUES) ? p->value_types[order[i]].type : "count",
				values[order[i]]);
}

static bool values_matter(const struct profile *p, const int64_t *values, unsigned int keeps)
{
	for (size_t i = 0; i < p->value_type_count; i++)
		if (type_matters(p, i, keeps) && values[i])
			return true;
	return false;
}

static void add_row(struct rows *rows, char *key, const int64_t *values)
{
	struct row row = { key, calloc(rows->width, sizeof(*row.values)) };

	rows->rows = reallocarray(rows->rows, rows->count + 1, sizeof(*rows->rows));
	assert_true(rows->rows && row.values);
	memcpy(row.values, values, rows->width * sizeof(*values));
	rows->rows[rows->count++] = row;
}

static char *sample_key(const struct profile *p, size_t number, unsigned int keeps)
{
	const struct profile_sample *s = &p->samples[number];
	uint32_t depth = s->depth;
	char *key = NULL;
	size_t size;
	FILE *out = open_memstream(&key, &size);

	assert_non_null(out);
	put_labels(&p->labels[s->labels], keeps, out);
	if (!HAS(ADDRESSES) && !HAS(NAMES) && !HAS(IMAGES))
		depth = 0;
	if (HAS(STACKS))
		for (uint32_t i = 0; i < depth; i++)
			put_location(p, p->frames[s->first_frame + i], keeps, out);
	else if (depth)
		put_frame(p, p->frames[s->first_frame], 0, keeps, out);
	assert_int_equal(fclose(out), 0);
	return key;
}

static char *arc_key(const struct profile *p, const struct profile_arc *a, unsigned int keeps)
{
	uint32_t lines = p->locations[a->to].line_count;
	char *key = NULL;
	size_t size;
	FILE *out = open_memstream(&key, &size);

	assert_non_null(out);
	fprintf(out, " arc %d", a->kind);
	put_frame(p, a->from, 0, keeps, out);
	/* The callee is the function that the others are inlined into. */
	put_frame(p, a->to, a->kind == PROFILE_CALL && lines ? lines - 1 : 0, keeps, out);
	assert_int_equal(fclose(out), 0);
	return key;
}

static int compare_rows(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

/* Prints the rows in order, with the sums of equal keys, and frees them. */
static void print_rows(struct rows *rows, const struct profile *p, unsigned int keeps, bool counts,
		       FILE *out)
{
	if (rows->count)
		qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_rows);
	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->rows[i], *next = row + 1;

		if (i + 1 < rows->count && strcmp(row->key, next->key) == 0) {
			for (size_t j = 0; j < rows->width; j++)
				next->values[j] += row->values[j];
		} else {
			if (counts)
				fprintf(out, "count=%" PRId64 "/%" PRId64, row->values[0],
					row->values[1]);
			put_values(p, row->values + (counts ? 2 : 0), keeps, out);
			fprintf(out, "%s\n", row->key);
		}
		free(row->key);
		free(row->values);
	}
	free(rows->rows);
}

static void print_samples(const struct profile *p, unsigned int keeps, FILE *out)
{
	struct rows rows = { .width = p->value_type_count };

	for (size_t i = 0; i < p->sample_count; i++) {
		const int64_t *values = p->values + i * rows.width;

		if (values_matter(p, values, keeps))
			add_row(&rows, sample_key(p, i, keeps), values);
	}
	print_rows(&rows, p, keeps, false, out);
}

/* Rows of samples, each with one time. */
static void print_times(const struct profile *p, unsigned int keeps, FILE *out)
{
	struct rows rows = { .width = 1 };

	for (size_t i = 0; i < p->ticks.count; i++) {
		char *sample = sample_key(p, p->ticks.numbers[i], keeps), *key;

		assert_true(asprintf(&key, " %" PRIu64 "%s", p->ticks.times[i], sample) > 0);
		add_row(&rows, key, (int64_t[]){ 1 });
		free(sample);
	}
	qsort(rows.rows, rows.count, sizeof(*rows.rows), compare_rows);
	for (size_t i = 0; i < rows.count; i++) {
		fprintf(out, "tick%s\n", rows.rows[i].key);
		free(rows.rows[i].key);
		free(rows.rows[i].values);
	}
	free(rows.rows);
}

static void print_arcs(const struct profile *p, unsigned int keeps, FILE *out)
{
	struct rows rows = { .width = 2 + p->value_type_count };
	int64_t *row = calloc(rows.width, sizeof(*row));

	assert_non_null(row);
	for (size_t i = 0; i < p->arc_count; i++) {
		const struct profile_arc *a = &p->arcs[i];

		if (a->kind == PROFILE_CALL ? !HAS(CALLS) : !HAS(JUMPS))
			continue;
		row[0] = a->count;
		row[1] = a->executed;
		memset(row + 2, 0, p->value_type_count * sizeof(*row));
		if (HAS(COSTS))
			memcpy(row + 2, p->arc_values + i * p->value_type_count,
			       p->value_type_count * sizeof(*row));
		add_row(&rows, arc_key(p, a, keeps), row);
	}
	free(row);
	print_rows(&rows, p, keeps, true, out);
}

static void print_account(const struct profile_totals *t, FILE *out)
{
	fprintf(out,
		"ticks %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		"\n",
		t->known, t->ticks, t->counted, t->out_of_range, t->excluded, t->kernel, t->cpu_ns);
	for (size_t i = 0; i < t->lost_count; i++)
		fprintf(out, "lost %s %" PRIu64 "\n", t->lost[i].cause, t->lost[i].count);
}

/* Whether a sample that matters has a frame in this mapping. */
static bool has_frames(const struct profile *p, uint32_t mapping, unsigned int keeps)
{
	for (size_t i = 0; i < p->sample_count; i++) {
		const uint32_t *frames = p->frames + p->samples[i].first_frame;

		if (!values_matter(p, p->values + i * p->value_type_count, keeps))
			continue;
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			if (p->locations[frames[j]].mapping == mapping)
				return true;
	}
	return false;
}

static bool has_value(const struct profile *p, size_t type)
{
	for (size_t i = 0; i < p->sample_count; i++)
		if (p->values[i * p->value_type_count + type])
			return true;
	return false;
}

static void print_header(const struct profile *p, unsigned int keeps, FILE *out)
{
	size_t order[MOST_VALUES];

	if (HAS(EVENT))
		fprintf(out, "event %s\n", p->event);
	order_types(p, order);
	if (HAS(PERIOD))
		fprintf(out, "period %" PRIu64 "\n", profile_tick_ns(p));
	for (size_t i = 0; HAS(PERIOD) && HAS(VALUES) && i < p->value_type_count; i++)
		if (p->value_types[order[i]].period && has_value(p, order[i]))
			fprintf(out, "%s %" PRIu64 "\n", p->value_types[order[i]].type,
				p->value_types[order[i]].period);
	if (HAS(TIME))
		fprintf(out, "time %" PRIu64 "\n", p->time_ns);
	if (HAS(DURATION))
		fprintf(out, "duration %" PRIu64 "\n", p->duration_ns);
	if (HAS(HOST))
		fprintf(out, "host %s\n", p->host);
	if (HAS(COMMAND))
		fprintf(out, "command %s\n", p->command);
	if (HAS(ACCOUNT))
		print_account(&p->totals, out);
	for (size_t i = 0; HAS(COMMENTS) && i < p->comment_count; i++)
		fprintf(out, "comment %s\n", p->comments[i]);
	for (size_t i = 0; HAS(MAPPINGS) && i < p->mapping_count; i++)
		if (!p->mappings[i].linked && has_frames(p, i, keeps))
			fprintf(out, "mapping %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n",
				p->mappings[i].start, p->mappings[i].limit, p->mappings[i].offset,
				p->images[p->mappings[i].image].path);
}

/* arcs: with calls and jumps, if they are recorded, not derived from stacks. */
static char *canonical(const struct profile *p, unsigned int keeps, bool arcs)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	print_header(p, keeps, out);
	print_samples(p, keeps, out);
	if (HAS(TICK_TIMES) && p->ticks.count)
		print_times(p, keeps, out);
	if (arcs)
		print_arcs(p, keeps, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* --- There and back --- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int through_directory(const struct format *format, const struct profile *p,
			     struct profile **back, struct error *e)
{
	const char *parent = getenv("TMPDIR");
	char *path;
	int err;

	assert_true(asprintf(&path, "%s/roundtrip-XXXXXX", parent ?: "/tmp") > 0);
	assert_non_null(mkdtemp(path));
	err = format->write_directory(p, &(struct format_options){ 0 }, path, e);
	err = err ?: format_read(path, NULL, back, e);
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
	return err;
}

/* Writes and reads. NULL with e set: the format cannot hold any of it. */
static struct profile *through(const struct format *format, const struct profile *p,
			       struct error *e)
{
	struct profile *back = NULL;

	if (format->write_directory) {
		if (through_directory(format, p, &back, e))
			return NULL;
	} else {
		char *text = NULL;
		struct bytes b = { 0 };
		FILE *out = open_memstream(&text, &b.size);
		int err = format->write(p, &(struct format_options){ 0 }, out, e);

		assert_int_equal(fclose(out), 0);
		b.start = (uint8_t *)text;
		err = err ?: read_file(&b, &back, e);
		bytes_free(&b);
		if (err)
			return NULL;
	}
	assert_string_equal(back->format, format->name);
	return back;
}

static void compare_texts(const char *a, const char *b, const char *what)
{
	size_t at = 0, line = 0;

	if (strcmp(a, b) == 0)
		return;
	for (; a[at] && a[at] == b[at]; at++)
		if (a[at] == '\n')
			line = at + 1;
	/* Prints the whole row, which may begin some lines earlier. */
	while (line > 1 && (a[line] == ' ' && a[line + 1] == ' '))
		for (line--; line > 0 && a[line - 1] != '\n'; line--)
			;
	fail_msg("%s:\nwritten \"%.600s\"\nread    \"%.600s\"", what, a + line, b + line);
}

/*
 * Formats of addresses cannot hold a profile from a format without addresses, and gmon.out needs
 * files that are known.
 */
static bool may_refuse(const struct format *format, const struct profile *p, unsigned int keeps)
{
	if (!(keeps & (KEEPS(ADDRESSES) | KEEPS(NAMES))))
		return true;
	return strcmp(format->name, "gmon") == 0 && !p->images[0].text_size &&
	       !p->mappings[0].linked;
}

static void compare(const struct profile *p, const struct profile *back, unsigned int keeps,
		    const char *what)
{
	bool arcs = p->arc_count;
	char *written, *read;

	/* The format may have other values for these. */
	if (p->mappings[0].linked)
		keeps &= ~KEEPS(MAPPINGS);
	if (!profile_tick_ns(p) && !(keeps & KEEPS(VALUES)))
		keeps &= ~KEEPS(PERIOD);
	written = canonical(p, keeps, arcs);
	read = canonical(back, keeps, arcs);
	compare_texts(written, read, what);
	free(written);
	free(read);
}

static void there_and_back(struct profile *p, const struct format *a, const char *name)
{
	struct error e = { 0 };
	struct profile *one = through(a, p, &e);
	char what[256];

	snprintf(what, sizeof(what), "%s as %s", name, a->name);
	if (!one && !may_refuse(a, p, a->keeps))
		fail_msg("%s: %s", what, e.what);
	if (!one)
		return;
	compare(p, one, a->keeps, what);
	/* The default value, the only one that some formats keep, can be another. */
	if (a->keeps & KEEPS(VALUES))
		p->default_value =
			1 + profile_value(p, one->value_types[profile_value(one, NULL)].type);
	for (const struct format *const *b = format_all; *b; b++) {
		unsigned int keeps = a->keeps & (*b)->keeps;
		struct profile *two;

		if (!(*b)->read || !(*b)->write)
			continue;
		snprintf(what, sizeof(what), "%s as %s, then %s", name, a->name, (*b)->name);
		two = through(*b, one, &e);
		if (!two && !may_refuse(*b, one, keeps))
			fail_msg("%s: %s", what, e.what);
		if (two)
			compare(p, two, keeps, what);
		profile_free(two);
	}
	p->default_value = 0;
	profile_free(one);
}

static unsigned int number_of(const char *variable, unsigned int otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void each_format(bool arcs)
{
	unsigned int first = number_of("PROFIL_TEST_SEED", 1);
	unsigned int rounds = number_of("PROFIL_TEST_ROUNDS", ROUNDS);
	const char *only = getenv("PROFIL_TEST_FORMAT");

	for (unsigned int seed = first; seed < first + rounds; seed++) {
		struct profile *p = make_profile(seed, arcs);
		char name[64];

		snprintf(name, sizeof(name), "profile %u%s", seed, arcs ? " with calls" : "");
		for (const struct format *const *a = format_all; *a; a++)
			if ((*a)->read && (*a)->write && (!only || strcmp((*a)->name, only) == 0))
				there_and_back(p, *a, name);
		profile_free(p);
	}
}

static void stacks(void **state)
{
	(void)state;
	each_format(false);
}

static void calls_and_jumps(void **state)
{
	(void)state;
	each_format(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks),
		cmocka_unit_test(calls_and_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
