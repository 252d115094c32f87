// SPDX-License-Identifier: GPL-2.0-only
/* The Callgrind writer: exact texts of small profiles made by hand, and the sums of large ones. */
#include "format_fixture.h"

#include <inttypes.h>

#include "format/callgrind/callgrind.h"

#define DEPTH(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define STACK(...) (const uint32_t[]){ __VA_ARGS__ }, DEPTH(__VA_ARGS__)

/* The beginning and the end of the file; the tests compare the part between them. */
#define HEAD "# callgrind format\nversion: 1\ncreator: profil " PROFIL_VERSION "\n"

/* ---- making profiles ---- */

static struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	assert_int_equal(add_labels(p, 0, 0, "", false), 0);
	return p;
}

static uint32_t add_line(struct profile *p, uint64_t address, uint32_t mapping, uint32_t function,
			 uint32_t line)
{
	struct profile_line l = { .function = function, .line = line };
	uint32_t location = add_location(p, address, mapping);

	assert_int_equal(profile_set_lines(p, location, &l, 1), 0);
	return location;
}

/* A location by its name alone, as in files without addresses. */
static uint32_t add_named(struct profile *p, uint32_t function, uint32_t line, const char *file)
{
	struct profile_line l = { .function = function, .line = line, .file = file };
	uint32_t location;

	assert_int_equal(profile_add_line_location(p, 0, PROFILE_NONE, &l, 1, &location), 0);
	return location;
}

static void add_stack(struct profile *p, int64_t count, const uint32_t *frames, uint32_t depth)
{
	assert_int_equal(profile_add_sample(p, frames, depth, 0, &count), 0);
}

static void add_arc(struct profile *p, uint32_t from, uint32_t to, enum profile_arc_kind kind,
		    uint64_t count, uint64_t executed, const int64_t *values)
{
	struct profile_arc arc = { from, to, 0, kind, count, executed };

	assert_int_equal(profile_add_arc(p, &arc, values), 0);
}

/* ---- the written text ---- */

static char *written(const struct profile *p, bool instr)
{
	struct format_options options = { .instr_positions = instr };
	struct error e = { 0 };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (callgrind_write(p, &options, out, &e))
		fail_msg("%s", e.what);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

static void assert_written(const struct profile *p, bool instr, const char *expected)
{
	char *text = written(p, instr);

	assert_string_equal(text, expected);
	free(text);
}

static void assert_holds(const struct profile *p, const char *words)
{
	char *text = written(p, false);

	if (!strstr(text, words))
		fail_msg("\"%s\" is not in\n%s", words, text);
	free(text);
}

/* The sum of the costs of calls of one function, as a reader computes it. */
static uint64_t inclusive(const char *text, const char *name)
{
	char id[32] = "", pattern[64];
	uint64_t sum = 0;
	bool called = false, cost = false;

	snprintf(pattern, sizeof(pattern), ") %s\n", name);
	for (const char *at = strstr(text, pattern); at && !*id; at--)
		if (*at == '(')
			sscanf(at, "%31[^)]", id);
	for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, "cfn=", 4) == 0)
			called = strncmp(line + 4, id, strlen(id)) == 0 &&
				 line[4 + strlen(id)] == ')';
		if (cost) {
			sum += strtoull(strchr(line, ' '), NULL, 10);
			called = false;
		}
		cost = called && strncmp(line, "calls=", 6) == 0;
	}
	return sum;
}

static void assert_inclusive(const struct profile *p, const char *name, uint64_t expected)
{
	char *text = written(p, false);

	assert_int_equal(inclusive(text, name), expected);
	free(text);
}

/* ---- the tests ---- */

static void test_empty(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	assert_written(p, false,
		       HEAD "part: 1\npositions: line\nevents: samples\nsummary: 0\n\ntotals: 0\n");
	assert_written(
		p, true,
		HEAD "part: 1\npositions: instr line\nevents: samples\nsummary: 0\n\ntotals: 0\n");
	profile_free(p);
}

static void test_flat(void **state)
{
	struct profile *p = new_profile();
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0, "/usr/bin/prog");
	uint32_t lib = add_mapping(p, 0x7f0000, 0x7f9000, 0x1000, "/lib/libc.so.6");
	uint32_t work = add_function(p, "work", "/src/a.c", 5);

	(void)state;
	add_stack(p, 3, STACK(add_line(p, 0x401010, exe, work, 7)));
	add_stack(p, 2, STACK(add_line(p, 0x401000, exe, work, 6)));
	add_stack(p, 1, STACK(add_line(p, 0x401014, exe, work, 7)));
	add_stack(p, 4, STACK(add_location(p, 0x7f0abc, lib)));
	add_stack(p, 5, STACK(add_location(p, 0xdead, PROFILE_NONE)));
	add_stack(p, 6, NULL, 0);
	add_stack(p, -1, STACK(add_line(p, 0x401020, exe, work, 9)));
	assert_written(p, false,
		       HEAD "part: 1\npositions: line\nevents: samples\nsummary: 20\n\n"
			    "ob=(1) /usr/bin/prog\nfl=(1) /src/a.c\nfn=(1) work\n6 2\n7 4\n9 -1\n\n"
			    "ob=(2) /lib/libc.so.6\nfl=(2) ???\nfn=(2) libc.so.6+0x1abc\n0 4\n\n"
			    "ob=(3) ???\nfl=(2)\nfn=(3) 0xdead\n0 5\n\n"
			    "ob=(3)\nfl=(2)\nfn=(4) [no pc]\n0 6\n\ntotals: 20\n");
	assert_written(p, true,
		       HEAD "part: 1\npositions: instr line\nevents: samples\nsummary: 20\n\n"
			    "ob=(1) /usr/bin/prog\nfl=(1) /src/a.c\nfn=(1) work\n"
			    "0x1000 6 2\n+16 7 3\n+4 7 1\n+12 9 -1\n\n"
			    "ob=(2) /lib/libc.so.6\nfl=(2) ???\nfn=(2) libc.so.6+0x1abc\n"
			    "0x1abc 0 4\n\n"
			    "ob=(3) ???\nfl=(2)\nfn=(3) 0xdead\n0xdead 0 5\n\n"
			    "ob=(3)\nfl=(2)\nfn=(4) [no pc]\n0x0 0 6\n\ntotals: 20\n");
	profile_free(p);
}

/* main calls work twice from one line and once from another; work calls into a library. */
static struct profile *stack_profile(void)
{
	struct profile *p = new_profile();
	uint32_t exe = add_mapping(p, 0x400000, 0x500000, 0, "/usr/bin/prog");
	uint32_t lib = add_mapping(p, 0x7f0000, 0x7f9000, 0x1000, "/lib/libc.so.6");
	uint32_t main_function = add_function(p, "main", "/src/a.c", 20);
	uint32_t work = add_function(p, "work", "/src/b.c", 5);
	uint32_t main_21 = add_line(p, 0x402000, exe, main_function, 21);
	uint32_t main_22 = add_line(p, 0x402008, exe, main_function, 22);
	uint32_t work_6 = add_line(p, 0x401000, exe, work, 6);
	uint32_t copy = add_line(p, 0x7f0abc, lib, add_function(p, "copy", "", 0), 0);

	add_stack(p, 3, STACK(work_6, main_21));
	add_stack(p, 2, STACK(copy, work_6, main_21));
	add_stack(p, 4, STACK(work_6, main_22));
	add_stack(p, 1, STACK(main_22));
	return p;
}

static void test_stacks(void **state)
{
	struct profile *p = stack_profile();

	(void)state;
	assert_written(p, false,
		       HEAD "part: 1\npositions: line\nevents: samples\nsummary: 10\n\n"
			    "ob=(1) ???\nfl=(1) ???\nfn=(1) [root]\n"
			    "cob=(2) /usr/bin/prog\ncfl=(2) /src/a.c\ncfn=(2) main\n"
			    "calls=10 20\n0 10\n\n"
			    "ob=(2)\nfl=(2)\nfn=(2)\n"
			    "cob=(2)\ncfl=(3) /src/b.c\ncfn=(3) work\ncalls=5 5\n21 5\n"
			    "22 1\ncob=(2)\ncfl=(3)\ncfn=(3)\ncalls=4 5\n22 4\n\n"
			    "ob=(2)\nfl=(3)\nfn=(3)\n6 7\n"
			    "cob=(3) /lib/libc.so.6\ncfl=(1)\ncfn=(4) copy\ncalls=2 0\n6 2\n\n"
			    "ob=(3)\nfl=(1)\nfn=(4)\n0 2\n\ntotals: 10\n");
	profile_free(p);
}

static void test_stacks_instr(void **state)
{
	struct profile *p = stack_profile();

	(void)state;
	assert_written(p, true,
		       HEAD "part: 1\npositions: instr line\nevents: samples\nsummary: 10\n\n"
			    "ob=(1) ???\nfl=(1) ???\nfn=(1) [root]\n"
			    "cob=(2) /usr/bin/prog\ncfl=(2) /src/a.c\ncfn=(2) main\n"
			    "calls=10 0x0 20\n0x0 0 10\n\n"
			    "ob=(2)\nfl=(2)\nfn=(2)\n"
			    "cob=(2)\ncfl=(3) /src/b.c\ncfn=(3) work\ncalls=5 0x0 5\n0x2000 21 5\n"
			    "+8 22 1\ncob=(2)\ncfl=(3)\ncfn=(3)\ncalls=4 -8200 5\n* 22 4\n\n"
			    "ob=(2)\nfl=(3)\nfn=(3)\n0x1000 6 7\n"
			    "cob=(3) /lib/libc.so.6\ncfl=(1)\ncfn=(4) copy\ncalls=2 -4096 0\n"
			    "* 6 2\n\n"
			    "ob=(3)\nfl=(1)\nfn=(4)\n0x1abc 0 2\n\ntotals: 10\n");
	profile_free(p);
}

static void test_recursion(void **state)
{
	struct profile *p = new_profile();
	uint32_t top = add_named(p, add_function(p, "top", "a.c", 1), 1, NULL);
	uint32_t self = add_named(p, add_function(p, "self", "a.c", 2), 2, NULL);
	uint32_t even = add_named(p, add_function(p, "even", "a.c", 3), 3, NULL);
	uint32_t odd = add_named(p, add_function(p, "odd", "a.c", 4), 4, NULL);

	(void)state;
	add_stack(p, 10, STACK(self, self, self, top));
	add_stack(p, 20, STACK(odd, even, odd, even, odd, top));
	add_stack(p, 5, STACK(even, odd, even, top));
	add_stack(p, 3, STACK(odd));
	add_stack(p, 2, STACK(top, odd, top));
	assert_inclusive(p, "top", 37);
	assert_inclusive(p, "self", 10);
	assert_inclusive(p, "even", 25);
	assert_inclusive(p, "odd", 30);
	profile_free(p);
}

/* Functions of one name in two files, or in two objects, are two functions. */
static void test_function_key(void **state)
{
	struct profile *p = new_profile();
	uint32_t a = add_mapping(p, 0x1000, 0x2000, 0, "/a"),
		 b = add_mapping(p, 0x3000, 0x4000, 0, "/b");
	uint32_t x = add_function(p, "f", "x.c", 0), y = add_function(p, "f", "y.c", 0);

	(void)state;
	add_stack(p, 1, STACK(add_line(p, 0x1000, a, x, 1)));
	add_stack(p, 2, STACK(add_line(p, 0x1001, a, y, 1)));
	add_stack(p, 4, STACK(add_line(p, 0x3000, b, x, 1)));
	assert_written(p, false,
		       HEAD "part: 1\npositions: line\nevents: samples\nsummary: 7\n\n"
			    "ob=(1) /a\nfl=(1) x.c\nfn=(1) f\n1 1\n\n"
			    "ob=(1)\nfl=(2) y.c\nfn=(2) f\n1 2\n\n"
			    "ob=(2) /b\nfl=(1)\nfn=(3) f\n1 4\n\ntotals: 7\n");
	profile_free(p);
}

static void test_inlined(void **state)
{
	struct profile *p = new_profile();
	uint32_t exe = add_mapping(p, 0x1000, 0x2000, 0, "/a");
	uint32_t caller = add_line(p, 0x1000, exe, add_function(p, "main", "a.c", 1), 2);
	uint32_t inlined = add_location(p, 0x1010, exe);
	struct profile_line lines[] = {
		{ .function = add_function(p, "inner", "a.h", 3), .line = 4 },
		{ .function = add_function(p, "outer", "a.c", 5), .line = 6 },
	};

	(void)state;
	assert_int_equal(profile_set_lines(p, inlined, lines, 2), 0);
	add_stack(p, 3, STACK(inlined, caller));
	assert_inclusive(p, "inner", 3);
	assert_inclusive(p, "outer", 3);
	assert_holds(p, "fn=(3) inner\n4 "
			"3\n\nob=(2)\nfl=(2)\nfn=(4)\ncob=(2)\ncfl=(3)\ncfn=(3)\ncalls=3 3\n6 3\n");
	profile_free(p);

	/* One location with several lines is a stack, too. */
	p = new_profile();
	inlined = add_location(p, 0x1010, PROFILE_NONE);
	lines[0].function = add_function(p, "inner", "a.h", 3);
	lines[1].function = add_function(p, "outer", "a.c", 5);
	assert_int_equal(profile_set_lines(p, inlined, lines, 2), 0);
	add_stack(p, 3, STACK(inlined));
	assert_written(
		p, false,
		HEAD
		"part: 1\npositions: line\nevents: samples\nsummary: 3\n\n"
		"ob=(1) ???\nfl=(1) ???\nfn=(1) [root]\ncfl=(3) a.c\ncfn=(3) outer\ncalls=3 5\n"
		"0 3\n\nob=(1)\nfl=(2) a.h\nfn=(2) inner\n4 3\n\n"
		"ob=(1)\nfl=(3)\nfn=(3)\ncfl=(2)\ncfn=(2)\ncalls=3 3\n6 3\n\n"
		"totals: 3\n");
	profile_free(p);
}

/*
 * A profile as the Callgrind reader makes it, with code that was included into a function, calls
 * and jumps.
 */
static struct profile *arc_profile(void)
{
	struct profile *p = new_profile();
	uint32_t f = add_function(p, "f", "a.c", 1), g = add_function(p, "g", "a.c", 50);
	uint32_t f_2 = add_named(p, f, 2, NULL), f_7 = add_named(p, f, 7, "a.h");
	uint32_t g_50 = add_named(p, g, 50, NULL), g_51 = add_named(p, g, 51, NULL);

	add_stack(p, 1, STACK(f_2));
	add_stack(p, 2, STACK(f_7));
	add_stack(p, 40, STACK(g_51));
	add_arc(p, f_7, g_50, PROFILE_CALL, 5, 0, (const int64_t[]){ 30 });
	add_arc(p, f_2, g_50, PROFILE_CALL, 0, 0, (const int64_t[]){ 10 });
	add_arc(p, g_51, g_50, PROFILE_CONDITIONAL_JUMP, 3, 9, NULL);
	add_arc(p, g_51, f_7, PROFILE_JUMP, 4, 0, NULL);
	return p;
}

static void test_arcs(void **state)
{
	struct profile *p = arc_profile();

	(void)state;
	assert_written(p, false,
		       HEAD "part: 1\npositions: line\nevents: samples\nsummary: 43\n\n"
			    "ob=(1) ???\nfl=(1) a.c\nfn=(1) f\n"
			    "2 1\ncfn=(2) g\ncalls=1 50\n2 10\n"
			    "fi=(2) a.h\n7 2\ncfl=(1)\ncfn=(2)\ncalls=5 50\n7 30\n\n"
			    "ob=(1)\nfl=(1)\nfn=(2)\n51 40\n"
			    "jcnd=3/9 50\n51\n"
			    "jfi=(2)\njfn=(1)\njump=4 7\n51\n\ntotals: 43\n");
	profile_free(p);
}

/* Stacks contain the calls: adding recorded calls would count them twice. */
static void test_arcs_and_stacks(void **state)
{
	struct profile *p = arc_profile();

	(void)state;
	add_stack(p, 7, STACK(add_named(p, add_function(p, "deep", "", 0), 0, NULL), 0));
	assert_inclusive(p, "g", 40);
	assert_inclusive(p, "deep", 7);
	profile_free(p);
}

/* Calls without a cost each get a share of the callee's cost by their count, as in gprof. */
static void test_counted_calls(void **state)
{
	static const struct {
		char caller, callee;
		uint64_t count;
	} calls[] = {
		{ 'c', 'a', 5 }, { 'a', 'c', 1 }, { 'b', 'c', 2 },  { 'm', 'a', 9 },
		{ 'm', 'b', 1 }, { 'c', 'c', 7 }, { 'b', 'z', 10 },
	};
	struct profile *p = new_profile();
	uint32_t locations[128];

	(void)state;
	for (const char *name = "abcmz"; *name; name++)
		locations[(int)*name] = add_named(
			p, add_function(p, (const char[]){ *name, 0 }, "a.c", *name), *name, NULL);
	add_stack(p, 10, &locations['m'], 1);
	add_stack(p, 20, &locations['a'], 1);
	add_stack(p, 30, &locations['b'], 1);
	add_stack(p, 41, &locations['c'], 1);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		add_arc(p, locations[(int)calls[i].caller], locations[(int)calls[i].callee],
			PROFILE_CALL, calls[i].count, 0, NULL);
	/* m calls a, which calls c; c's calls of a and of itself make cycles. */
	assert_inclusive(p, "m", 0);
	assert_inclusive(p, "a", 20 + 13);
	assert_inclusive(p, "b", 30 + 28);
	assert_inclusive(p, "c", 41);
	assert_inclusive(p, "z", 0);
	assert_holds(p, "cfn=(1)\ncalls=9 97\n109 33\n");
	assert_holds(p, "calls=5 97\n99 0\n");
	profile_free(p);
}

static void test_events(void **state)
{
	struct profile *p = profile_new();
	const int64_t values[] = { 7, 6, 0, 99 };
	uint32_t location;

	(void)state;
	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "Ir", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "cache miss", "count"), 0);
	assert_int_equal(profile_add_value_type(p, "space", "bytes"), 0);
	assert_int_equal(profile_add_value_type(p, "Sum", "count"), 0);
	p->value_types[0].title = "Instruction Fetches";
	p->value_types[1].period = 1000;
	p->value_types[3].formula = "Ir + cache_miss";
	p->value_types[3].title = "Both";
	assert_int_equal(add_labels(p, 0, 0, "", false), 0);
	location = add_named(p, add_function(p, "f", "a.c", 1), 1, NULL);
	assert_int_equal(profile_add_sample(p, &location, 1, 0, values), 0);
	assert_written(p, false,
		       HEAD "part: 1\ndesc: Period: 1000 cache_miss\ndesc: Unit: space bytes\n"
			    "positions: line\nevent: Ir : Instruction Fetches\n"
			    "event: Sum = Ir + cache_miss : Both\n"
			    "events: Ir cache_miss space\nsummary: 7 6 0\n\n"
			    "ob=(1) ???\nfl=(1) a.c\nfn=(1) f\n1 7 6 0\n\ntotals: 7 6 0\n");
	profile_free(p);
}

static void fill_header(struct profile *p)
{
	const uint8_t build_id[] = { 0xab, 0x01 };
	uint32_t image;

	profile_set_tick_ns(p, 10101010);
	p->time_ns = 1700000000123456789;
	p->duration_ns = 2000000000;
	assert_int_equal(profile_string(p, "task-clock", &p->event), 0);
	assert_int_equal(profile_string(p, "sirius", &p->host), 0);
	assert_int_equal(profile_string(p, "prog -x\n1", &p->command), 0);
	p->totals = (struct profile_totals){ .known = true,
					     .ticks = 9,
					     .counted = 4,
					     .kernel = 1,
					     .cpu_ns = 90,
					     .bpf_ns_per_tick = 800 };
	assert_int_equal(profile_add_lost(p, "buffer was full", 5), 0);
	assert_int_equal(profile_add_image(p, "/a b", build_id, 2, &image), 0);
	assert_int_equal(profile_add_image(p, "/mapped", build_id, 2, &image), 0);
	assert_int_equal(profile_add_comment(p, "first\tcomment"), 0);
	assert_int_equal(profile_add_extra(p, "callgrind", PROFILE_NONE, "desc: Trigger: end", 18),
			 0);
	assert_int_equal(profile_add_extra(p, "dcpi", PROFILE_NONE, "desc: x", 7), 0);
	assert_int_equal(profile_add_extra(p, "callgrind", PROFILE_NONE, "rubbish", 7), 0);
}

static void test_header(void **state)
{
	struct profile *p = empty_profile(0);
	uint32_t label = add_labels(p, 1234, 1235, "prog", false);
	uint32_t location, mapping;

	(void)state;
	fill_header(p);
	assert_int_equal(profile_add_mapping(p, 0, 9, 0, 0, &mapping), 0);
	location = add_line(p, 1, mapping, add_function(p, "f", "a.c", 1), 1);
	add_sample(p, &location, 1, label, 2);
	assert_written(p, false,
		       HEAD "pid: 1234\ncmd: prog -x 1\npart: 1\nthread: 1235\n"
			    "desc: Event: task-clock\ndesc: Period: 10101010 ns\n"
			    "desc: Start: 1700000000123456789 ns\ndesc: Duration: 2000000000 ns\n"
			    "desc: Host: sirius\ndesc: Ticks: 9\ndesc: Counted: 4\n"
			    "desc: Kernel: 1\ndesc: CPU time: 90 ns\n"
			    "desc: BPF time per tick: 800 ns\ndesc: Lost: 5 buffer was full\n"
			    "desc: Build ID: ab01 /a b\ndesc: Comment: first comment\n"
			    "desc: Trigger: end\npositions: line\nevents: samples ns\n"
			    "summary: 2 20202020\n\n"
			    "ob=(1) /a b\nfl=(1) a.c\nfn=(1) f\n1 2 20202020\n\n"
			    "totals: 2 20202020\n");
	/* A second thread of the same process, then another process */
	add_labels(p, 1234, 1236, "prog", false);
	assert_holds(p, "\npid: 1234\ncmd: prog -x 1\npart: 1\ndesc: Event");
	add_labels(p, 77, 77, "other", false);
	assert_holds(p, "\ncreator: profil " PROFIL_VERSION "\ncmd: prog -x 1\npart: 1\n");
	profile_free(p);
}

static void assert_named(const char *name, const char *expected)
{
	struct profile *p = new_profile();
	char line[128];

	add_stack(p, 1, STACK(add_named(p, add_function(p, name, name, 0), 0, NULL)));
	snprintf(line, sizeof(line), "\nfl=(1) %s\nfn=(1) %s\n0 1\n", expected, expected);
	assert_holds(p, line);
	profile_free(p);
}

static void test_hostile_names(void **state)
{
	(void)state;
	assert_named("a\nfn=(1) b\rc\td\x7f", "a fn=(1) b c d ");
	assert_named("\xc3\xbc\xe2\x80\xae\xc2\x9b\xff\xe4",
		     "\xc3\xbc\\xe2\\x80\\xae\\xc2\\x9b\\xff\\xe4");
	assert_named("(2)x", "(2)x");
	assert_named(" (3)", "(3)");
	assert_named(" \t\n", "???");
	assert_named("???", "???");
	assert_named("operator new[](unsigned long)", "operator new[](unsigned long)");
	assert_named("caf\xc3\xa9 \xff", "caf\xc3\xa9 \\xff");
}

static void test_large_counts(void **state)
{
	struct profile *p = new_profile();
	uint32_t f = add_named(p, add_function(p, "f", "a.c", 1), 4000000000, NULL);
	uint32_t g = add_named(p, add_function(p, "g", "a.c", 1), 1, NULL);

	(void)state;
	add_stack(p, INT64_MAX, STACK(f, g));
	add_stack(p, INT64_MAX, STACK(f, f, g));
	assert_holds(p, "\nsummary: 9223372036854775807\n");
	assert_holds(p, "\n4000000000 9223372036854775807\n");
	assert_holds(p, "\ncalls=18446744073709551614 1\n1 9223372036854775807\n");
	profile_free(p);
}

/* An address far from the last one is written as an absolute address. */
static void test_far_addresses(void **state)
{
	struct profile *p = new_profile();
	uint32_t f = add_function(p, "f", "a.c", 0);
	char *text;

	(void)state;
	add_stack(p, 1, STACK(add_line(p, 0x1000, PROFILE_NONE, f, 1)));
	add_stack(p, 1, STACK(add_line(p, 0x100001000, PROFILE_NONE, f, 1)));
	add_stack(p, 1, STACK(add_line(p, 0xffffffffff600000, PROFILE_NONE, f, 1)));
	add_stack(p, 1, STACK(add_line(p, 0x1fffff000, PROFILE_NONE, f, 1)));
	text = written(p, true);
	assert_non_null(strstr(text, "0x1000 1 1\n0x100001000 1 1\n+4294959104 1 1\n"
				     "0xffffffffff600000 1 1\n"));
	free(text);
	profile_free(p);
}

/* ---- many random stacks: the sums that readers compute are those of the stacks ---- */

enum {
	MANY = 2000,
	KINDS = 12,
	DEEPEST = 9
};

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 33;
}

static void test_random_stacks(void **state)
{
	struct profile *p = new_profile();
	uint32_t locations[KINDS], frames[DEEPEST];
	uint64_t expected[KINDS] = { 0 }, seed = 1;
	char name[16], *text;

	(void)state;
	for (uint32_t i = 0; i < KINDS; i++) {
		snprintf(name, sizeof(name), "f%" PRIu32 "_", i);
		locations[i] = add_named(p, add_function(p, name, "a.c", i), i, NULL);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t depth = 1 + next_random(&seed) % DEEPEST, seen = 0;

		for (uint32_t j = 0; j < depth; j++) {
			uint32_t f = next_random(&seed) % KINDS;

			frames[j] = locations[f];
			expected[f] += seen & 1U << f ? 0 : 1 + i % 3;
			seen |= 1U << f;
		}
		add_stack(p, 1 + i % 3, frames, depth);
	}
	text = written(p, false);
	for (uint32_t i = 0; i < KINDS; i++) {
		snprintf(name, sizeof(name), "f%" PRIu32 "_", i);
		assert_int_equal(inclusive(text, name), expected[i]);
	}
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_stacks),		cmocka_unit_test(test_stacks_instr),
		cmocka_unit_test(test_recursion),	cmocka_unit_test(test_function_key),
		cmocka_unit_test(test_inlined),		cmocka_unit_test(test_arcs),
		cmocka_unit_test(test_arcs_and_stacks), cmocka_unit_test(test_counted_calls),
		cmocka_unit_test(test_events),		cmocka_unit_test(test_header),
		cmocka_unit_test(test_hostile_names),	cmocka_unit_test(test_large_counts),
		cmocka_unit_test(test_far_addresses),	cmocka_unit_test(test_random_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
