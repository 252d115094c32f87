// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include <inttypes.h>
#include <limits.h>
#include <link.h>

#include "profile/merge.h"
#include "symbol/symbol.h"

static const uint8_t build[] = { 1, 2, 3, 4 };
static const uint8_t other_build[] = { 9, 9 };

static void merge_cached(struct profile *to, struct profile *from, struct merge_cache *cache)
{
	struct error e;

	assert_int_equal(profile_merge(to, from, cache, &e), 0);
	profile_free(from);
}

static void merge(struct profile *to, struct profile *from)
{
	merge_cached(to, from, NULL);
}

static uint32_t map_build(struct profile *p, uint64_t start, const char *path, const uint8_t *id,
			  size_t size)
{
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path, id, size, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, start + 0x2000, 0x1000, image, &mapping), 0);
	return mapping;
}

/* A profile of one sample, 0x10 bytes after the beginning of an image that is loaded at `start`. */
static struct profile *loaded_at(uint64_t start, const char *path, const uint8_t *id, size_t size)
{
	struct profile *p = empty_profile(1000);
	uint32_t frame = add_location(p, start + 0x10, map_build(p, start, path, id, size));

	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 3);
	return p;
}

static void name_location(struct profile *p, uint32_t location, const char *name, uint32_t number)
{
	struct profile_line line = { .function = add_function(p, name, "", 0), .line = number };

	assert_int_equal(profile_set_lines(p, location, &line, 1), 0);
}

/* A location whose name is in the file. */
static uint32_t named(struct profile *p, uint64_t address, uint32_t mapping, const char *name,
		      uint32_t number)
{
	struct profile_line line = { .function = add_function(p, name, "", 0), .line = number };
	uint32_t id;

	assert_int_equal(profile_add_line_location(p, address, mapping, &line, 1, &id), 0);
	return id;
}

static void by_build_id(void **state)
{
	struct profile *p = loaded_at(0x55000000, "/bin/a", build, sizeof(build));

	(void)state;
	merge(p, loaded_at(0x66000000, "/other/host/a", build, sizeof(build)));
	assert_int_equal(p->image_count, 1);
	assert_int_equal(p->mapping_count, 1);
	assert_int_equal(p->location_count, 1);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 6);
	assert_int_equal(p->values[1], 6000);
	assert_string_equal(p->images[0].path, "/bin/a");
	profile_free(p);
}

static void by_path(void **state)
{
	struct profile *p = loaded_at(0x55000000, "/bin/a", NULL, 0);

	(void)state;
	merge(p, loaded_at(0x66000000, "/bin/a", build, sizeof(build)));
	merge(p, loaded_at(0x77000000, "/bin/a", NULL, 0));
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 9);
	/* It has its build ID now, so that another build is another file. */
	assert_int_equal(p->images[0].build_id_size, sizeof(build));
	merge(p, loaded_at(0x55000000, "/bin/a", other_build, sizeof(other_build)));
	merge(p, loaded_at(0x55000000, "/bin/b", NULL, 0));
	assert_int_equal(p->image_count, 3);
	assert_int_equal(p->sample_count, 3);
	profile_free(p);
}

static struct profile *file_at(uint64_t start, uint64_t file_id, const char *name)
{
	const struct profile_image file = { .path = "/bin/a", .file_id = file_id };
	struct profile *p = empty_profile(1000);
	uint32_t image, mapping, frame;

	assert_int_equal(profile_add_image_like(p, &file, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, start + 0x2000, 0x1000, image, &mapping), 0);
	frame = add_location(p, start + 0x10, mapping);
	if (name)
		name_location(p, frame, name, 0);
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 3);
	return p;
}

/* What was recorded of files without a build ID is told apart by what the machine has for them. */
static void by_file(void **state)
{
	struct profile *p = file_at(0x55000000, 77, "old");

	(void)state;
	merge(p, file_at(0x66000000, 77, NULL));
	assert_int_equal(p->image_count, 1);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 6);
	/* No file that may be another gets the name. */
	merge(p, file_at(0x55000000, 88, NULL));
	merge(p, loaded_at(0x55000000, "/bin/a", build, sizeof(build)));
	assert_int_equal(p->image_count, 3);
	assert_int_equal(p->sample_count, 3);
	assert_int_equal(p->locations[1].line_count + p->locations[2].line_count, 0);
	merge(p, file_at(0x77000000, 88, NULL));
	assert_int_equal(p->image_count, 3);
	/* Other programs' files name it by its path alone. */
	merge(p, loaded_at(0x55000000, "/bin/a", NULL, 0));
	assert_int_equal(p->image_count, 3);
	profile_free(p);
}

/* JIT code of two processes is different code at the same address. */
static void memory_without_a_file(void **state)
{
	struct profile *p = loaded_at(0x7f0000000000, "[anon]", NULL, 0);

	(void)state;
	merge(p, loaded_at(0x7f0000000000, "[anon]", NULL, 0));
	assert_int_equal(p->sample_count, 1);
	merge(p, loaded_at(0x7f0000100000, "[anon]", NULL, 0));
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->mapping_count, 2);
	profile_free(p);
}

static void kernel_addresses(void **state)
{
	struct profile *p = empty_profile(1000), *q = empty_profile(1000);
	uint64_t start = 1ULL << 63, text = 0xffffffff81000000;
	uint32_t a = add_location(p, text + 5,
				  add_mapping(p, start, UINT64_MAX, start, "[kernel.kallsyms]"));
	uint32_t b = add_location(q, text + 5,
				  add_mapping(q, text, UINT64_MAX, text, "[kernel.kallsyms]"));

	(void)state;
	add_sample(p, &a, 1, add_labels(p, 1, 1, "x", true), 1);
	add_sample(q, &b, 1, add_labels(q, 1, 1, "x", true), 1);
	merge(p, q);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->mapping_count, 1);
	assert_true(p->mappings[0].start == start && p->mappings[0].limit == UINT64_MAX);
	profile_free(p);
}

/* One file has only the text, the other whole pages: the mapping becomes the larger one. */
static void narrow_and_wide_mappings(void **state)
{
	struct profile *p = empty_profile(1000), *q = empty_profile(1000);
	uint32_t a =
		add_location(p, 0x401250, add_mapping(p, 0x401200, 0x401300, 0x1200, "/bin/a"));
	uint32_t wide = add_mapping(q, 0x901000, 0x903000, 0x1000, "/bin/a");
	uint32_t b[] = { add_location(q, 0x901250, wide), add_location(q, 0x902ff0, wide) };

	(void)state;
	add_sample(p, &a, 1, add_labels(p, 0, 0, "", false), 1);
	add_sample(q, b, 2, add_labels(q, 0, 0, "", false), 1);
	merge(p, q);
	assert_int_equal(p->mapping_count, 1);
	assert_int_equal(p->mappings[0].start, 0x401000);
	assert_int_equal(p->mappings[0].limit, 0x403000);
	assert_int_equal(p->mappings[0].offset, 0x1000);
	assert_int_equal(p->location_count, 2);
	assert_int_equal(p->frames[1], a);
	assert_int_equal(p->locations[1].address, 0x402ff0);
	profile_free(p);
}

/* Two processes have a library at two addresses. Each profile's own mapping is used. */
static void same_mapping_comes_first(void **state)
{
	struct profile *p = loaded_at(0x1000000, "/lib/a.so", build, sizeof(build));
	struct profile *q;
	uint32_t second = add_location(p, 0x2000010,
				       map_build(p, 0x2000000, "/lib/a.so", build, sizeof(build)));

	(void)state;
	add_sample(p, &second, 1, 0, 5);
	q = loaded_at(0x2000000, "/lib/a.so", build, sizeof(build));
	merge(p, q);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 3);
	assert_int_equal(p->values[2], 8);
	profile_free(p);
}

static void names_and_no_names(void **state)
{
	struct profile *p = loaded_at(0x55000000, "/bin/a", NULL, 0);
	struct profile *q = empty_profile(1000), *r = empty_profile(1000);
	uint32_t a = named(q, 0x66000010, add_mapping(q, 0x66000000, 0x66002000, 0x1000, "/bin/a"),
			   "work", 12);
	uint32_t b = named(r, 0x10, add_mapping(r, 0, 0x2000, 0x1000, "/bin/a"), "other", 30);

	(void)state;
	add_sample(q, &a, 1, add_labels(q, 0, 0, "", false), 4);
	merge(p, q);
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 7);
	assert_int_equal(p->locations[0].line_count, 1);
	assert_string_equal(p->functions[p->lines[p->locations[0].first_line].function].name,
			    "work");
	/* The symbol table has no lines. */
	q = loaded_at(0x77000000, "/bin/a", NULL, 0);
	name_location(q, 0, "work", 0);
	merge(p, q);
	assert_int_equal(p->sample_count, 1);
	/* Another line is other code: two sources were built. */
	q = loaded_at(0x77000000, "/bin/a", NULL, 0);
	name_location(q, 0, "work", 99);
	merge(p, q);
	assert_int_equal(p->sample_count, 2);
	/* Callgrind has inlined functions at their caller's address. */
	add_sample(r, &b, 1, add_labels(r, 0, 0, "", false), 1);
	merge(p, r);
	assert_int_equal(p->sample_count, 3);
	profile_free(p);
}

static struct profile *without_addresses(void)
{
	struct profile *p = empty_profile(1000);
	uint32_t frames[] = { named(p, 0, PROFILE_NONE, "leaf", 0),
			      named(p, 0, PROFILE_NONE, "root", 0) };

	add_sample(p, frames, 2, add_labels(p, 0, 0, "", false), 2);
	add_sample(p, frames, 1, add_labels(p, 0, 0, "", false), 1);
	return p;
}

static void names_alone(void **state)
{
	struct profile *p = without_addresses();

	(void)state;
	merge(p, without_addresses());
	assert_int_equal(p->location_count, 2);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 4);
	assert_int_equal(p->values[2], 2);
	profile_free(p);
}

struct self {
	uint64_t bias;
	uint64_t vaddr, offset, size; /* of the executable segment */
};

static int find_self(struct dl_phdr_info *info, size_t size, void *context)
{
	struct self *self = context;

	(void)size;
	self->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			self->vaddr = info->dlpi_phdr[i].p_vaddr;
			self->offset = info->dlpi_phdr[i].p_offset;
			self->size = info->dlpi_phdr[i].p_filesz;
		}
	return 1;
}

/* A profile of this program's function find_self(), as recorded when it was loaded elsewhere. */
static struct profile *of_self(const struct self *self, uint64_t bias, bool linked)
{
	uint64_t address = (uintptr_t)find_self - self->bias + bias;
	struct profile *p = empty_profile(1000);
	struct error e;
	char path[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
	uint32_t mapping, frame;

	assert_true(size > 0);
	path[size] = '\0';
	mapping = add_mapping(p, self->vaddr + bias, self->vaddr + bias + self->size,
			      linked ? 0 : self->offset, path);
	p->mappings[mapping].linked = linked;
	frame = add_location(p, address, mapping);
	add_sample(p, &frame, 1, add_labels(p, 0, 0, "", false), 1);
	p->format = "pprof";
	assert_int_equal(symbol_resolve(p, NULL, &e), 0);
	return p;
}

/*
 * DCPI, gmon.out and Callgrind have an image's own addresses; pprof and gperftools have addresses
 * in memory.
 */
static void linked_and_loaded(void **state)
{
	struct self self = { 0 };
	struct profile *p;

	(void)state;
	dl_iterate_phdr(find_self, &self);
	for (int first = 0; first < 2; first++) {
		p = of_self(&self, first ? 0 : 0x550000000000, first);
		merge(p, of_self(&self, 0x7f0000000000, false));
		merge(p, of_self(&self, 0, true));
		assert_int_equal(p->image_count, 1);
		assert_int_equal(p->mapping_count, 1);
		assert_int_equal(p->location_count, 1);
		assert_int_equal(p->sample_count, 1);
		assert_int_equal(p->values[0], 3);
		assert_int_equal(p->locations[0].line_count, 1);
		assert_int_equal(p->locations[0].image_address, (uintptr_t)find_self - self.bias);
		profile_free(p);
	}
}

static void values_of_two_kinds(void **state)
{
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);
	struct profile *q = profile_new();
	uint32_t frame;
	int64_t values[] = { 7, 8, 9 };

	(void)state;
	assert_int_equal(profile_add_value_type(q, "alloc", "bytes"), 0);
	assert_int_equal(profile_add_value_type(q, "samples", "count"), 0);
	assert_int_equal(profile_add_value_type(q, "alloc", "count"), 0);
	assert_int_equal(profile_string(q, "bytes that were asked for", &q->value_types[0].title),
			 0);
	q->value_types[0].period = 512;
	frame = add_location(q, 0x1010, add_mapping(q, 0x1000, 0x3000, 0x1000, "/bin/a"));
	assert_int_equal(profile_add_sample(q, &frame, 1, add_labels(q, 0, 0, "", false), values),
			 0);
	frame = add_location(q, 0x1020, 0);
	assert_int_equal(profile_add_sample(q, &frame, 1, 0, values), 0);
	merge(p, q);
	assert_int_equal(p->value_type_count, 4);
	assert_string_equal(p->value_types[2].type, "alloc");
	assert_string_equal(p->value_types[2].unit, "bytes");
	assert_string_equal(p->value_types[2].title, "bytes that were asked for");
	assert_int_equal(p->value_types[2].period, 512);
	assert_int_equal(p->sample_count, 2);
	assert_memory_equal(p->values, ((int64_t[]){ 11, 3000, 7, 9, 8, 0, 7, 9 }),
			    8 * sizeof(int64_t));
	profile_free(p);
}

static struct profile *of_event(const char *event, uint64_t tick_ns)
{
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);

	profile_set_tick_ns(p, tick_ns);
	assert_int_equal(profile_string(p, event, &p->event), 0);
	return p;
}

static void different_events(void **state)
{
	struct profile *p = of_event("cycles", 0);

	(void)state;
	merge(p, of_event("task-clock", 1000));
	assert_int_equal(p->value_type_count, 3);
	assert_string_equal(p->value_types[0].type, "cycles");
	assert_string_equal(p->value_types[1].type, "cpu");
	assert_string_equal(p->value_types[2].type, "task-clock");
	assert_string_equal(p->event, "");
	assert_int_equal(p->warning_count, 0);
	merge(p, of_event("cycles", 0));
	merge(p, of_event("imiss", 0));
	merge(p, of_event("dmiss", 0));
	assert_int_equal(p->value_type_count, 5);
	assert_int_equal(p->sample_count, 1);
	assert_memory_equal(p->values, ((int64_t[]){ 6, 15000, 3, 3, 3 }), 5 * sizeof(int64_t));
	profile_free(p);
}

static void different_periods(void **state)
{
	struct profile *p = of_event("task-clock", 1000);

	(void)state;
	merge(p, of_event("task-clock", 1000));
	assert_int_equal(profile_tick_ns(p), 1000);
	assert_int_equal(p->warning_count, 0);
	merge(p, of_event("task-clock", 5000));
	assert_string_equal(p->event, "task-clock");
	assert_int_equal(profile_tick_ns(p), 0);
	assert_warned(p, "different periods");
	assert_int_equal(p->values[0], 9);
	profile_free(p);
}

static struct profile *with_call(uint64_t start, uint64_t count, int64_t cost)
{
	struct profile *p = loaded_at(start, "/bin/a", NULL, 0);
	struct profile_arc arc = {
		.from = 0,
		.to = add_location(p, start + 0x100, 0),
		.kind = PROFILE_CALL,
		.count = count,
	};
	int64_t values[] = { cost, cost * 1000 };

	assert_int_equal(profile_add_arc(p, &arc, values), 0);
	arc.kind = PROFILE_CONDITIONAL_JUMP;
	arc.executed = count + 1;
	assert_int_equal(profile_add_arc(p, &arc, NULL), 0);
	return p;
}

static void calls_and_jumps(void **state)
{
	struct profile *p = with_call(0x1000, 5, 30), *q = of_event("cycles", 0);

	(void)state;
	merge(p, with_call(0x5000, 6, 40));
	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	merge(p, q); /* one more value */
	assert_int_equal(p->arc_count, 2);
	assert_int_equal(p->arcs[0].count, 11);
	assert_int_equal(p->arcs[1].count, 11);
	assert_int_equal(p->arcs[1].executed, 13);
	assert_memory_equal(p->arc_values, ((int64_t[]){ 70, 70000, 0, 0, 0, 0 }),
			    6 * sizeof(int64_t));
	profile_free(p);
}

static void set_header(struct profile *p, uint64_t time, uint64_t ticks, const char *host,
		       const char *comment)
{
	p->time_ns = time;
	p->duration_ns = 100;
	p->totals.known = true;
	p->totals.ticks = ticks;
	p->totals.counted = ticks - 1;
	p->totals.cpu_ns = 7;
	p->totals.bpf_ns_per_tick = ticks * 10;
	assert_int_equal(profile_add_lost(p, "ring_full", 1), 0);
	assert_int_equal(profile_string(p, host, &p->host), 0);
	assert_int_equal(profile_string(p, "prog arg", &p->command), 0);
	assert_int_equal(profile_add_comment(p, comment), 0);
	assert_int_equal(profile_add_comment(p, "both"), 0);
	assert_int_equal(profile_warn(p, "warned"), 0);
	assert_int_equal(profile_add_extra(p, "dcpi", 0, "cpuspeed 1", 10), 0);
	assert_int_equal(profile_add_extra(p, "dcpi", PROFILE_NONE, comment, 3), 0);
}

static void header(void **state)
{
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);
	struct profile *q = loaded_at(0x9000, "/bin/a", NULL, 0);

	(void)state;
	set_header(p, 5000, 10, "walnut", "one");
	set_header(q, 4000, 30, "hazel", "two");
	q->bucket = 16;
	merge(p, q);
	assert_int_equal(p->time_ns, 4000);
	assert_int_equal(p->duration_ns, 200);
	assert_int_equal(p->bucket, 16);
	assert_string_equal(p->host, "");
	assert_string_equal(p->command, "prog arg");
	assert_true(p->totals.known);
	assert_int_equal(p->totals.ticks, 40);
	assert_int_equal(p->totals.counted, 38);
	assert_int_equal(p->totals.cpu_ns, 14);
	assert_int_equal(p->totals.bpf_ns_per_tick, (10 * 100 + 30 * 300) / 40);
	assert_int_equal(profile_lost(p), 2);
	assert_int_equal(p->totals.lost_count, 1);
	assert_int_equal(p->comment_count, 3);
	assert_int_equal(p->warning_count, 1);
	assert_int_equal(p->extra_count, 3);
	merge(p, loaded_at(0x9000, "/bin/a", NULL, 0));
	assert_false(p->totals.known);
	assert_int_equal(p->totals.lost_count, 0);
	assert_int_equal(p->time_ns, 4000);
	profile_free(p);
}

/* `ends` of 10 stacks do not reach the start; limit 0: no stacks were recorded. */
static struct profile *with_stacks(const char *method, uint64_t limit, uint64_t ends)
{
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);

	p->totals.known = true;
	p->totals.ticks = 10;
	p->totals.stack_limit = limit;
	assert_int_equal(profile_string(p, method, &p->stacks), 0);
	if (!limit)
		return p;
	p->totals.stacks_user = 10;
	p->totals.stacks_complete = 10 - ends;
	if (ends)
		assert_int_equal(profile_add_stack_end(p, "gap", "/bin/a", ends), 0);
	return p;
}

static void stacks(void **state)
{
	struct profile *p = with_stacks("cfi", 127, 2), *q = with_stacks("cfi", 64, 3);

	(void)state;
	assert_int_equal(profile_add_stack_end(q, "gap", "", 1), 0);
	merge(p, q);
	merge(p, with_stacks("", 0, 0)); /* without stacks: without effect */
	assert_string_equal(p->stacks, "cfi");
	assert_int_equal(p->totals.stack_limit, 127);
	assert_int_equal(p->totals.stacks_user, 20);
	assert_int_equal(p->totals.stacks_complete, 15);
	assert_int_equal(p->totals.stack_end_count, 2);
	assert_string_equal(p->totals.stack_ends[0].cause, "gap");
	assert_string_equal(p->totals.stack_ends[0].image, "/bin/a");
	assert_int_equal(p->totals.stack_ends[0].count, 5);
	assert_string_equal(p->totals.stack_ends[1].image, "");
	q = with_stacks("cfi", 127, 0);
	assert_int_equal(profile_add_stack_end(q, "unreadable", "/bin/b", 6), 0);
	merge(p, q);
	assert_string_equal(p->totals.stack_ends[0].image, "/bin/b"); /* the most first */
	assert_string_equal(p->totals.stack_ends[1].image, "/bin/a");
	merge(p, with_stacks("fp", 127, 0)); /* their ends are unknown */
	assert_string_equal(p->stacks, "");
	assert_int_equal(p->totals.stacks_user, 40);
	merge(p, loaded_at(0x9000, "/bin/a", NULL, 0)); /* without an account */
	assert_int_equal(p->totals.stack_end_count, 0);
	assert_int_equal(p->totals.stacks_user, 0);
	profile_free(p);
	p = with_stacks("", 0, 0);
	merge(p, with_stacks("cfi", 127, 0));
	assert_string_equal(p->stacks, "cfi");
	profile_free(p);
}

static void labels_and_tags(void **state)
{
	const struct profile_tag tag = { .key = "user", .text = "x" };
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct profile *q = loaded_at(0x9000, "/bin/a", NULL, 0);
		struct profile_labels labels = {
			.pid = 4, .comm = "c", .tags = &tag, .tag_count = 1
		};
		uint32_t frame = 0, id;

		assert_int_equal(profile_add_labels(q, &labels, &id), 0);
		add_sample(q, &frame, 1, id, 10);
		merge(p, q);
	}
	assert_int_equal(p->label_count, 2);
	assert_int_equal(p->sample_count, 2);
	assert_int_equal(p->values[0], 9);
	assert_int_equal(p->values[2], 20);
	assert_string_equal(p->labels[1].tags[0].text, "x");
	profile_free(p);
}

static void into_an_empty_one(void **state)
{
	struct profile *p = profile_new(), *q = of_event("cycles", 1234);

	(void)state;
	set_header(q, 4000, 30, "hazel", "two");
	merge(p, q);
	assert_string_equal(p->event, "cycles");
	assert_string_equal(p->host, "hazel");
	assert_string_equal(p->value_types[0].type, "samples");
	assert_int_equal(profile_tick_ns(p), 1234);
	assert_true(p->totals.known);
	assert_int_equal(p->totals.ticks, 30);
	assert_int_equal(p->sample_count, 1);
	profile_free(p);
}

static void nothing_to_add(void **state)
{
	struct profile *p = loaded_at(0x1000, "/bin/a", NULL, 0);

	(void)state;
	merge(p, profile_new());
	assert_int_equal(p->sample_count, 1);
	assert_int_equal(p->values[0], 3);
	profile_free(p);
}

#define STACKS 100000

/* Stacks that depend on a number only; some of them are in no mapping. */
static struct profile *many_stacks(uint64_t start, uint32_t first)
{
	struct profile *p = empty_profile(1000);
	uint32_t mapping = map_build(p, start, "/bin/a", build, sizeof(build));
	uint32_t label = add_labels(p, 1, 1, "x", false);

	for (uint32_t i = first; i < first + STACKS; i++) {
		uint32_t frames[] = { add_location(p, start + i % 997, mapping),
				      add_location(p, start + i / 997 % 997, mapping),
				      add_location(p, 0x10 + i / 997 / 997, PROFILE_NONE) };

		add_sample(p, frames, 3, label, 1);
	}
	return p;
}

static void many(void **state)
{
	struct profile *p = many_stacks(0x10000, 0);
	struct merge_cache cache = { 0 };

	(void)state;
	merge_cached(p, many_stacks(0x90000, STACKS / 2), &cache);
	assert_int_equal(p->sample_count, STACKS / 2 * 3);
	assert_int_equal(profile_total(p, NULL), STACKS * 2);
	/* Small profiles after a large one: the time of each depends on its own size only. */
	for (int i = 0; i < 1000; i++)
		merge_cached(p, loaded_at(0x50000, "/bin/a", build, sizeof(build)), &cache);
	merge_cache_free(&cache);
	assert_int_equal(profile_total(p, NULL), STACKS * 2 + 3000);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_build_id),
		cmocka_unit_test(by_path),
		cmocka_unit_test(by_file),
		cmocka_unit_test(memory_without_a_file),
		cmocka_unit_test(kernel_addresses),
		cmocka_unit_test(narrow_and_wide_mappings),
		cmocka_unit_test(same_mapping_comes_first),
		cmocka_unit_test(names_and_no_names),
		cmocka_unit_test(names_alone),
		cmocka_unit_test(linked_and_loaded),
		cmocka_unit_test(values_of_two_kinds),
		cmocka_unit_test(different_events),
		cmocka_unit_test(different_periods),
		cmocka_unit_test(calls_and_jumps),
		cmocka_unit_test(header),
		cmocka_unit_test(stacks),
		cmocka_unit_test(labels_and_tags),
		cmocka_unit_test(into_an_empty_one),
		cmocka_unit_test(nothing_to_add),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
