// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pprof_fixture.h"

static void add_tagged_sample(struct profile *p, uint32_t frame)
{
	const struct profile_tag tags[] = {
		{ "mode", "user", 0, "" },
		{ "bytes", NULL, 4096, "bytes" },
		{ "bytes", NULL, 0, "bytes" },
		{ "pid", "the first", 0, "" },
		{ "negative", NULL, -5, "" },
		{ "key", "a", 0, "" },
		{ "key", "b", 0, "" },
		{ "tid", NULL, 7000000000, "" },
		{ "\xff not UTF-8", "\xfe", 0, "" },
	};
	struct profile_labels labels = { .pid = 7, .comm = "", .tags = tags, .tag_count = 9 };
	uint32_t id;

	assert_int_equal(profile_add_labels(p, &labels, &id), 0);
	add_sample(p, &frame, 1, id, 4);
}

/* Adds members that have no field in pprof, only comments. */
static void add_members_in_comments(struct profile *p, uint32_t linked)
{
	p->mappings[linked].linked = true;
	p->images[p->mappings[linked].image].text_start = 0x2000;
	p->images[p->mappings[linked].image].text_size = 0x500;
	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	assert_int_equal(profile_string(p, "a host", &p->host), 0);
	assert_int_equal(profile_string(p, "a b=c 'd'\n", &p->command), 0);
	p->bucket = 16;
	assert_int_equal(profile_string(p, "A long = title", &p->value_types[0].title), 0);
	assert_int_equal(profile_string(p, "2 samples", &p->value_types[1].formula), 0);
	p->value_types[0].period = 12345;
	p->totals = (struct profile_totals){ .known = true,
					     .ticks = 20,
					     .counted = 17,
					     .out_of_range = 1,
					     .excluded = 1,
					     .kernel = 1,
					     .cpu_ns = UINT64_MAX,
					     .bpf_ns_per_tick = 300,
					     .interrupt_ns = 900 };
	assert_int_equal(profile_add_lost(p, "ring=full", 1), 0);
	assert_int_equal(profile_string(p, "cfi", &p->stacks), 0);
	p->totals.stack_limit = 127;
	p->totals.stacks_truncated = 2;
	p->totals.stacks_user = 16;
	p->totals.stacks_complete = 3;
	assert_int_equal(profile_add_stack_end(p, "gap", "/lib/a b=c 7\n\033[31m", 5), 0);
	assert_int_equal(profile_add_stack_end(p, "unreadable", "", 4), 0);
	assert_int_equal(profile_add_stack_end(p, "gap", "/lib/other", UINT64_MAX), 0);
}

static struct profile *full_profile(void)
{
	static const uint8_t build_id[] = { 0xde, 0xad, 0xbe, 0xef };
	struct profile *p = empty_profile(10101010);
	struct profile_function leaf = { "ns::leaf(int)", "_ZN2ns4leafEi", "leaf.cc", 3 };
	struct profile_function root = { "main", "main", "", 0 };
	struct profile_line lines[] = { { .function = 0, .line = 5, .column = 17 },
					{ .function = 1, .line = 12 } };
	uint32_t image, exe, kernel, f[5];

	assert_int_equal(profile_add_image(p, "/bin/a b", build_id, 4, &image), 0);
	assert_int_equal(profile_add_mapping(p, 0x400000, 0x500000, 0x1000, image, &exe), 0);
	kernel = add_mapping(p, 0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]");
	f[0] = add_location(p, 0x400100, exe);
	f[1] = add_location(p, 0x400200, exe);
	f[2] = add_location(p, 0xffffffff81000100, kernel);
	f[3] = add_location(p, 0x1234, PROFILE_NONE);
	f[4] = add_location(p, 0x2345, add_mapping(p, 0x2000, 0x3000, 0, "/bin/linked"));
	p->locations[f[1]].folded = true;
	assert_int_equal(profile_add_function(p, &leaf, &image), 0);
	assert_int_equal(profile_add_function(p, &root, &image), 0);
	assert_int_equal(profile_set_lines(p, f[0], lines, 2), 0);
	assert_int_equal(profile_set_lines(p, f[1], lines + 1, 1), 0);
	add_sample(p, f, 2, add_labels(p, 7, 8, "a thread", false), 5);
	add_sample(p, f, 2, add_labels(p, 7, 9, "", false), 6);
	add_sample(p, (uint32_t[]){ f[2], f[1] }, 2, add_labels(p, 7, 8, "a thread", true), 1);
	add_sample(p, f + 3, 1, add_labels(p, 0, 0, "", false), 2);
	add_sample(p, f + 4, 1, 0, 3);
	add_sample(p, f, 0, 0, 3);
	add_tagged_sample(p, f[0]);
	p->time_ns = 1700000000000000000;
	p->duration_ns = 1500000000;
	assert_int_equal(profile_add_comment(p, "free text"), 0);
	assert_int_equal(profile_add_comment(p, "profil:ticks=many"), 0);
	add_members_in_comments(p, p->mapping_count - 1);
	return p;
}

static void assert_same_lines(const struct profile *p, uint32_t a, const struct profile *q,
			      uint32_t b)
{
	const struct profile_location *x = &p->locations[a], *y = &q->locations[b];

	assert_true(x->address == y->address);
	assert_int_equal(x->mapping, y->mapping);
	assert_int_equal(x->folded, y->folded);
	assert_int_equal(x->line_count, y->line_count);
	for (uint32_t i = 0; i < x->line_count; i++) {
		const struct profile_line *m = &p->lines[x->first_line + i];
		const struct profile_line *n = &q->lines[y->first_line + i];
		const struct profile_function *f = &p->functions[m->function];
		const struct profile_function *g = &q->functions[n->function];

		assert_int_equal(m->line, n->line);
		assert_int_equal(m->column, n->column);
		assert_string_equal(f->name, g->name);
		assert_string_equal(f->system_name, g->system_name);
		assert_string_equal(f->file, g->file);
		assert_int_equal(f->start_line, g->start_line);
	}
}

static void assert_same_tags(const struct profile_labels *a, const struct profile_labels *b)
{
	assert_int_equal(a->tag_count, b->tag_count);
	for (uint32_t i = 0; i < a->tag_count; i++) {
		const struct profile_tag *t = &a->tags[i], *u = &b->tags[i];

		assert_string_equal(t->key, u->key);
		assert_int_equal(!t->text, !u->text);
		assert_string_equal(t->text ?: "", u->text ?: "");
		assert_true(t->number == u->number);
		assert_string_equal(t->unit, u->unit);
	}
}

static void assert_same_samples(const struct profile *p, const struct profile *q)
{
	assert_int_equal(p->sample_count, q->sample_count);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_labels *a = &p->labels[p->samples[i].labels];
		const struct profile_labels *b = &q->labels[q->samples[i].labels];

		assert_int_equal(p->samples[i].depth, q->samples[i].depth);
		for (uint32_t j = 0; j < p->samples[i].depth; j++)
			assert_same_lines(p, p->frames[p->samples[i].first_frame + j], q,
					  q->frames[q->samples[i].first_frame + j]);
		assert_memory_equal(p->values + 2 * i, q->values + 2 * i, 16);
		assert_int_equal(a->pid, b->pid);
		assert_int_equal(a->tid, b->tid);
		assert_string_equal(a->comm, b->comm);
		assert_int_equal(a->kernel, b->kernel);
		assert_same_tags(a, b);
	}
}

static void assert_same_header(const struct profile *p, const struct profile *q)
{
	assert_string_equal(p->event, q->event);
	assert_int_equal(profile_tick_ns(p), profile_tick_ns(q));
	assert_int_equal(p->time_ns, q->time_ns);
	assert_int_equal(p->duration_ns, q->duration_ns);
	assert_string_equal(p->host, q->host);
	assert_string_equal(p->command, q->command);
	assert_int_equal(p->bucket, q->bucket);
	assert_int_equal(p->value_type_count, q->value_type_count);
	for (size_t i = 0; i < p->value_type_count; i++) {
		assert_string_equal(p->value_types[i].type, q->value_types[i].type);
		assert_string_equal(p->value_types[i].unit, q->value_types[i].unit);
		assert_string_equal(p->value_types[i].title, q->value_types[i].title);
		assert_string_equal(p->value_types[i].formula, q->value_types[i].formula);
		assert_int_equal(p->value_types[i].period, q->value_types[i].period);
	}
	assert_int_equal(p->mapping_count, q->mapping_count);
	assert_memory_equal(p->mappings, q->mappings, p->mapping_count * sizeof(*p->mappings));
	for (size_t i = 0; i < p->image_count; i++) {
		assert_string_equal(p->images[i].path, q->images[i].path);
		assert_int_equal(p->images[i].text_start, q->images[i].text_start);
		assert_int_equal(p->images[i].text_size, q->images[i].text_size);
		assert_int_equal(p->images[i].build_id_size, q->images[i].build_id_size);
		assert_memory_equal(p->images[i].build_id, q->images[i].build_id,
				    PROFILE_BUILD_ID_MAX);
	}
}

static void assert_same_account(const struct profile_totals *a, const struct profile_totals *b)
{
	assert_int_equal(a->known, b->known);
	assert_memory_equal(&a->account, &b->account, sizeof(a->account));
	assert_int_equal(a->lost_count, b->lost_count);
	for (size_t i = 0; i < a->lost_count; i++) {
		assert_string_equal(a->lost[i].cause, b->lost[i].cause);
		assert_int_equal(a->lost[i].count, b->lost[i].count);
	}
	assert_int_equal(a->stack_end_count, b->stack_end_count);
	for (size_t i = 0; i < a->stack_end_count; i++) {
		assert_string_equal(a->stack_ends[i].cause, b->stack_ends[i].cause);
		assert_string_equal(a->stack_ends[i].image, b->stack_ends[i].image);
		assert_true(a->stack_ends[i].count == b->stack_ends[i].count);
	}
}

static void round_trip(void **state)
{
	struct profile *p = full_profile(), *q;
	struct bytes b = write_bytes(pprof, p);

	(void)state;
	q = read_file_good(&b);
	assert_string_equal(q->format, "pprof");
	assert_same_header(p, q);
	assert_same_samples(p, q);
	assert_int_equal(q->comment_count, 2);
	assert_string_equal(q->comments[0], "free text");
	assert_string_equal(q->comments[1], "profil:ticks=many");
	assert_same_account(&p->totals, &q->totals);
	assert_string_equal(q->stacks, "cfi");
	assert_int_equal(q->totals.stack_end_count, 3);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Each cause is searched for among all. */
static void stack_ends_are_bounded(void **state)
{
	struct profile *p = empty_profile(5), *q;
	char text[64];
	struct bytes b;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "profil:stack_end.gap=1 /lib/%d", i);
		assert_int_equal(profile_add_comment(p, text), 0);
	}
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->totals.stack_end_count, 256);
	assert_string_equal(q->totals.stack_ends[255].image, "/lib/255");
	assert_int_equal(q->comment_count, 1000 - 256);
	profile_free(q);
	bytes_free(&b);
	/* Nor are more written. */
	profile_free(p);
	p = full_profile();
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "/lib/%d", i);
		assert_int_equal(profile_add_stack_end(p, "gap", text, 1), 0);
	}
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->totals.stack_end_count, 256);
	assert_int_equal(q->comment_count, 2);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void address_kind_travels(void **state)
{
	struct profile *p = full_profile(), *q;
	struct bytes b;

	(void)state;
	p->bits = 32;
	p->big_endian = true;
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->bits, 32);
	assert_true(q->big_endian);
	assert_int_equal(q->comment_count, 2);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void no_account_stays_none(void **state)
{
	struct profile *p = empty_profile(5), *q;
	struct bytes b = write_bytes(pprof, p);

	(void)state;
	q = read_file_good(&b);
	assert_false(q->totals.known);
	assert_int_equal(q->comment_count, 0);
	assert_int_equal(q->sample_count, 0);
	assert_int_equal(profile_tick_ns(q), 5);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

static void malformed_accounts_stay_comments(void **state)
{
	static const char *const texts[] = { "profil:ticks",
					     "profil:ticks=",
					     "profil:ticks=-1",
					     "profil:ticks=1x",
					     "profil:ticks= 1",
					     "profil:tocks=1",
					     "profil:lost.=1",
					     "profil:event=",
					     "profil:",
					     "profil:ticks=18446744073709551616",
					     "ticks=1",
					     "profil:stacks=",
					     "profil:stacks_complete=-1",
					     "profil:stack_end.",
					     "profil:stack_end.gap",
					     "profil:stack_end.gap=",
					     "profil:stack_end.=1 /a",
					     "profil:stack_end.gap=x /a",
					     "profil:stack_end.gap=-1 /a",
					     "profil:stack_end.gap= 1 /a",
					     "profil:stack_end.gap=1",
					     "profil:stack_end.gap=1/a",
					     "profil:stack_end.gap=18446744073709551616 /a" };
	struct profile *p = empty_profile(5), *q;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(profile_add_comment(p, texts[i]), 0);
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->comment_count, sizeof(texts) / sizeof(*texts));
	assert_false(q->totals.known);
	assert_int_equal(q->totals.stack_end_count, 0);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Only locations that samples use are written, and the main program's mapping. */
static void unused_is_omitted(void **state)
{
	struct profile *p = empty_profile(5), *q;
	uint32_t frame;
	struct bytes b;

	(void)state;
	add_mapping(p, 0x1000, 0x2000, 0, "/main");
	add_mapping(p, 0x3000, 0x4000, 0, "/unused");
	frame = add_location(p, 0x5000, add_mapping(p, 0x5000, 0x6000, 0, "/used"));
	add_location(p, 0x3000, 1);
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 1);
	b = write_bytes(pprof, p);
	q = read_file_good(&b);
	assert_int_equal(q->mapping_count, 2);
	assert_string_equal(q->images[0].path, "/main");
	assert_string_equal(q->images[1].path, "/used");
	assert_int_equal(q->location_count, 1);
	profile_free(q);
	profile_free(p);
	bytes_free(&b);
}

/* Writes the profile and reads it back. */
static struct profile *again(const struct profile *p)
{
	struct bytes b = write_bytes(pprof, p);
	struct profile *q = read_file_good(&b);

	bytes_free(&b);
	return q;
}

/* A sample's two events, and their periods: one has a field, the other a comment. */
static void periods_of_events(void **state)
{
	struct profile *p = profile_new(), *q;
	struct bytes b, raw;

	(void)state;
	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "cycles", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "cpu/event=0x3c/", "count"), 0);
	p->value_types[0].period = 1000003;
	p->value_types[1].period = 77;
	b = write_bytes(pprof, p);
	raw = inflated(&b);
	assert_non_null(memmem(raw.start, raw.size, "profil:period.cpu/event=0x3c/=77", 32));
	assert_null(memmem(raw.start, raw.size, "profil:period.cycles", 20));
	q = read_file_good(&b);
	assert_same_header(p, q);
	assert_int_equal(profile_tick_ns(q), 0);
	assert_int_equal(q->extra_count, 0);
	profile_free(q);
	profile_free(p);
	bytes_free(&raw);
	bytes_free(&b);
}

/* One source file in the function, another in the line: pprof has them by function. */
static void line_of_another_file(void **state)
{
	struct profile *p = empty_profile(5), *q;
	struct profile_function f = { "main", "main", "main.c", 3 };
	const struct profile_line lines[] = { { .line = 5, .file = "inlined.h" },
					      { .line = 7, .file = "inlined.h" },
					      { .line = 9 } };
	uint32_t frame, function;

	(void)state;
	assert_int_equal(profile_add_function(p, &f, &function), 0);
	frame = add_location(p, 0x1000, PROFILE_NONE);
	assert_int_equal(profile_set_lines(p, frame, lines, 3), 0);
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 1);
	q = again(p);
	assert_int_equal(q->line_count, 3);
	assert_int_equal(q->function_count, 2);
	for (int i = 0; i < 3; i++) {
		const struct profile_function *g = &q->functions[q->lines[i].function];

		assert_int_equal(q->lines[i].line, lines[i].line);
		assert_string_equal(g->name, "main");
		assert_string_equal(g->file, lines[i].file ?: "main.c");
	}
	profile_free(q);
	profile_free(p);
}

/* Fields that struct profile has no member for are kept for the pprof writer. */
static struct bytes file_with_extras(void)
{
	static const char *const strings[] = { "space",	  "bytes",
					       "drop|it", "https://a.b/",
					       "not hex", "[kernel.kallsyms]_text",
					       "thread",  "worker",
					       "pid",	  "id" };
	static const uint8_t unknown[] = { 0xa0, 1, 5, 0xa2, 1, 2, 0, 0 };
	/* of two locations, with the labels thread=worker and pid=5, with a unit */
	static const uint8_t sample[] = { SAMPLE << 3 | 2,
					  22,
					  0x0a,
					  2,
					  41,
					  42,
					  0x12,
					  2,
					  1,
					  1,
					  0x1a,
					  4,
					  8,
					  14,
					  0x10,
					  15,
					  0x1a,
					  6,
					  8,
					  16,
					  24,
					  5,
					  0x20,
					  17 };
	struct bytes b = small_file();

	MESSAGE(&b, PPROF_PERIOD_TYPE, 1, 8, 2, 9);
	add_number(&b, PPROF_PERIOD, 524288);
	add_number(&b, PPROF_DEFAULT_SAMPLE_TYPE, 1);
	add_number(&b, PPROF_DROP_FRAMES, 10);
	add_number(&b, PPROF_KEEP_FRAMES, 6);
	add_number(&b, PPROF_DOC_URL, 11);
	bytes_add(&b, unknown, sizeof(unknown));
	MESSAGE(&b, MAPPING, 1, 31, 2, 1, 3, 2, 5, 5, 6, 12);
	MESSAGE(&b, MAPPING, 1, 32, 2, 3, 3, 4, 5, 13);
	MESSAGE(&b, LOCATION, 1, 41, 2, 31, 3, 1, 5, 1);
	MESSAGE(&b, LOCATION, 1, 42, 2, 32, 3, 3);
	bytes_add(&b, sample, sizeof(sample));
	add_strings(&b);
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		add_text(&b, STRING, strings[i]);
	return b;
}

static bool has_extra(const struct profile *p, const struct profile_extra *x)
{
	for (size_t i = 0; i < p->extra_count; i++)
		if (p->extras[i].size == x->size &&
		    memcmp(p->extras[i].bytes, x->bytes, x->size) == 0)
			return true;
	return false;
}

static bool has_bytes(const struct bytes *b, const void *bytes, size_t size)
{
	return memmem(b->start, b->size, bytes, size);
}

static void extras(void **state)
{
	struct bytes b = file_with_extras(), written, raw;
	struct profile *p = read_good(pprof, &b), *q;

	(void)state;
	assert_int_equal(profile_tick_ns(p), 0);
	assert_int_equal(profile_value(p, NULL), 0);
	assert_string_equal(p->labels[1].comm, "worker");
	assert_int_equal(p->labels[1].pid, 5);
	assert_int_equal(p->labels[1].tag_count, 0);
	assert_true(p->locations[1].folded);
	assert_string_equal(p->images[2].path, "[kernel.kallsyms]");
	written = write_bytes(pprof, p);
	raw = inflated(&written);
	assert_true(has_bytes(&raw, "[kernel.kallsyms]_text", 22));
	assert_true(has_bytes(&raw, "not hex", 7));
	assert_true(has_bytes(&raw, "\xa0\1\5\xa2\1\2\0", 8));
	assert_false(has_bytes(&raw, "comm", 4));
	assert_false(has_bytes(&raw, "profil:", 7));
	q = read_good(pprof, &raw);
	assert_int_equal(q->extra_count, 6);
	assert_int_equal(p->extra_count, 6);
	assert_string_equal(q->drop_frames, p->drop_frames);
	assert_string_equal(q->keep_frames, p->keep_frames);
	assert_true(*p->drop_frames && *p->keep_frames);
	assert_true(p->names_default); /* even though it is what is shown anyway */
	assert_true(q->names_default);
	for (size_t i = 0; i < p->extra_count; i++)
		assert_true(has_extra(q, &p->extras[i]));
	assert_same_header(p, q);
	assert_same_samples(p, q);
	profile_free(q);
	profile_free(p);
	bytes_free(&raw);
	bytes_free(&written);
	bytes_free(&b);
}

/* A mapping of all addresses is in the image's own numbering, as for pprof. */
static void whole_mapping_is_linked(void **state)
{
	struct profile *p = empty_profile(5), *q;
	uint32_t frame[3];

	(void)state;
	frame[0] = add_location(p, 0x1000, add_mapping(p, 0, UINT64_MAX, 0, "/bin/a"));
	frame[1] = add_location(p, 0x1000, add_mapping(p, 0, UINT64_MAX, 0, ""));
	frame[2] = add_location(p, 0x1000, add_mapping(p, 0, UINT64_MAX, 0, "[anon]"));
	add_sample(p, frame, 3, add_labels(p, 0, 0, "", false), 1);
	q = again(p);
	assert_true(q->mappings[0].linked);
	assert_false(q->mappings[1].linked);
	assert_false(q->mappings[2].linked);
	assert_int_equal(q->comment_count, 0);
	profile_free(q);
	profile_free(p);
}

/* Of any truncated file the rest is read; a complete file gives no warning. */
static void salvage(void **state)
{
	struct profile *p = full_profile();
	struct bytes written = write_bytes(pprof, p), raw = inflated(&written), b;
	size_t most = 0;

	(void)state;
	for (size_t size = 1; size <= raw.size; size++) {
		struct profile *q = profile_new();

		assert_non_null(q);
		assert_int_equal(read_salvage(&raw, size, q), 0);
		assert_true(q->value_type_count > 0);
		assert_true(q->sample_count >= most || size == raw.size);
		most = q->sample_count;
		b = write_bytes(pprof, q);
		bytes_free(&b);
		assert_int_equal(q->salvaged, q->warning_count > 0);
		assert_int_equal(q->salvaged, size < raw.size);
		profile_free(q);
	}
	assert_true(most > 0);
	bytes_free(&raw);
	bytes_free(&written);
	profile_free(p);
}

static void survive_anything(void **state)
{
	struct profile *p = full_profile();
	struct bytes b = write_bytes(pprof, p), raw = inflated(&b), small = small_file();

	(void)state;
	add_strings(&small);
	survive_truncation(pprof, &raw);
	survive_bit_flips(pprof, &raw);
	survive_truncation(pprof, &small);
	survive_bit_flips(pprof, &small);
	bytes_free(&raw);
	bytes_free(&b);
	bytes_free(&small);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(stack_ends_are_bounded),
		cmocka_unit_test(address_kind_travels),
		cmocka_unit_test(no_account_stays_none),
		cmocka_unit_test(malformed_accounts_stay_comments),
		cmocka_unit_test(unused_is_omitted),
		cmocka_unit_test(periods_of_events),
		cmocka_unit_test(line_of_another_file),
		cmocka_unit_test(extras),
		cmocka_unit_test(whole_mapping_is_linked),
		cmocka_unit_test(salvage),
		cmocka_unit_test(survive_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
