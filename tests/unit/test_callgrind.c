// SPDX-License-Identifier: GPL-2.0-only
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "format_fixture.h"

#include <errno.h>

#include "format/callgrind/callgrind.h"

static const struct format *const callgrind = &format_callgrind;

static struct profile *read_text(const char *text)
{
	struct bytes b = { 0 };
	struct profile *p;

	bytes_add_text(&b, text);
	p = read_good(callgrind, &b);
	bytes_free(&b);
	return p;
}

/* A file that is read without a warning. */
static struct profile *read_clean(const char *text)
{
	struct profile *p = read_text(text);

	if (p->warning_count)
		fail_msg("%s", p->warnings[0]);
	return p;
}

static void reject_text(const char *text, const char *words)
{
	struct bytes b = { 0 };

	bytes_add_text(&b, text);
	read_bad(callgrind, &b, words);
	bytes_free(&b);
}

static void warns(const char *text, const char *words)
{
	struct profile *p = read_text(text);

	assert_warned(p, words);
	profile_free(p);
}

/* A location as one text: "OBJECT FILE FUNCTION [in FILE] LINE 0xADDRESS". */
static const char *describe(const struct profile *p, uint32_t location)
{
	static char text[512];
	const struct profile_location *l = &p->locations[location];
	const struct profile_line *line = &p->lines[l->first_line];
	const struct profile_function *f = &p->functions[line->function];
	const struct profile_image *image = profile_location_image(p, location);

	assert_int_equal(l->line_count, 1);
	assert_ptr_equal(f->name, f->system_name);
	assert_int_equal(l->image_address, l->address);
	snprintf(text, sizeof(text), "%s %s %s%s%s %u 0x%llx", image ? image->path : "-",
		 *f->file ? f->file : "-", f->name, line->file ? " in " : "",
		 line->file ? line->file : "", line->line, (unsigned long long)l->address);
	return text;
}

static void assert_sample(const struct profile *p, size_t sample, const char *place, int64_t cost)
{
	assert_true(sample < p->sample_count);
	assert_int_equal(p->samples[sample].depth, 1);
	assert_string_equal(describe(p, p->frames[p->samples[sample].first_frame]), place);
	assert_int_equal(p->values[sample * p->value_type_count], cost);
}

static void assert_arc(const struct profile *p, size_t arc, const char *from, const char *to,
		       uint64_t count, int64_t cost)
{
	assert_true(arc < p->arc_count);
	assert_string_equal(describe(p, p->arcs[arc].from), from);
	assert_string_equal(describe(p, p->arcs[arc].to), to);
	assert_int_equal(p->arcs[arc].count, count);
	assert_int_equal(p->arc_values[arc * p->value_type_count], cost);
}

static void costs_and_calls(void **state)
{
	struct profile *p = read_clean("events: Instructions\n\n"
				       "fl=(1) file1.c\nfn=(1) main\n16 20\n"
				       "cfn=(2) func1\ncalls=1 50\n16 400\n"
				       "cfl=(2) file2.c\ncfn=(3) func2\ncalls=3 20\n16 400\n"
				       "\nfn=(2)\n51 100\ncfl=(2)\ncfn=(3)\ncalls=2 20\n51 300\n"
				       "\nfl=(2)\nfn=(3)\n20 700\n20 1\n");

	(void)state;
	assert_int_equal(p->value_type_count, 1);
	assert_string_equal(p->value_types[0].type, "Instructions");
	assert_string_equal(p->value_types[0].unit, "count");
	assert_int_equal(p->sample_count, 3);
	assert_sample(p, 0, "- file1.c main 16 0x0", 20);
	assert_sample(p, 1, "- file1.c func1 51 0x0", 100);
	assert_sample(p, 2, "- file2.c func2 20 0x0", 701);
	assert_int_equal(p->arc_count, 3);
	assert_arc(p, 0, "- file1.c main 16 0x0", "- file1.c func1 50 0x0", 1, 400);
	assert_arc(p, 1, "- file1.c main 16 0x0", "- file2.c func2 20 0x0", 3, 400);
	assert_arc(p, 2, "- file1.c func1 51 0x0", "- file2.c func2 20 0x0", 2, 300);
	assert_int_equal(p->function_count, 3);
	assert_int_equal(p->mapping_count, 0);
	profile_free(p);
}

static void positions(void **state)
{
	struct profile *p = read_clean("positions: instr line\nevents: ticks\n"
				       "ob=/bin/x\nfl=f.c\nfn=func\n"
				       "0x80001234 90 1\n+3 * 5\n+1 +1 6\n-4 -1 2\n* * 1\n"
				       "+0xf 0x10 3\n2147488000 7 4\n");

	(void)state;
	assert_int_equal(p->sample_count, 5);
	assert_sample(p, 0, "/bin/x f.c func 90 0x80001234", 4);
	assert_sample(p, 1, "/bin/x f.c func 90 0x80001237", 5);
	assert_sample(p, 2, "/bin/x f.c func 91 0x80001238", 6);
	assert_sample(p, 3, "/bin/x f.c func 16 0x80001243", 3);
	assert_sample(p, 4, "/bin/x f.c func 7 0x80001100", 4);
	assert_int_equal(p->mapping_count, 1);
	assert_true(p->mappings[0].linked);
	assert_int_equal(p->mappings[0].start, 0x80001000);
	assert_int_equal(p->mappings[0].limit, 0x80002000);
	assert_int_equal(p->mappings[0].offset, 0);
	profile_free(p);

	p = read_clean("positions: instr bb line\nevents: t\nob=x\nfn=f\n0xffffffffffffffff 9 1 2\n"
		       "-1 +1 +1 3\nob=y\n0 1 1 1\n");
	assert_int_equal(p->sample_count, 3);
	assert_sample(p, 0, "x - f 1 0xffffffffffffffff", 2);
	assert_sample(p, 1, "x - f 2 0xfffffffffffffffe", 3);
	assert_int_equal(p->mappings[0].start, 0xfffffffffffff000);
	assert_int_equal(p->mappings[0].limit, UINT64_MAX);
	assert_int_equal(p->mappings[1].limit, 0);
	profile_free(p);

	p = read_clean("positions: instr\nevents: t\nfn=f\n0x10 1\n+4 2\n");
	assert_sample(p, 1, "- - f 0 0x14", 2);
	profile_free(p);
	warns("events: t\nfn=f\n1 1\n-2 5\n", "line 4: a relative position is below 0");
	p = read_text("events: t\nfn=f\n1 1\n-2 5\n+3 7\n");
	assert_sample(p, 1, "- - f 0 0x0", 5);
	assert_sample(p, 2, "- - f 2 0x0", 7);
	profile_free(p);
}

static void names(void **state)
{
	struct profile *p;

	(void)state;
	/* All are defined before use; a number only stands for its text. */
	p = read_clean("events: t\nfl=(1) a.c\nfl=(2) b.c\nfn=(1) f\nfn=(2) g\nob=(0x1) /lib/x y\n"
		       "fl=(1)\nfn=(1)\n1 1\nfl=(2)\nfn=(1)\n1 2\nob=(1)\nfn=(2)\n1 3\n");
	assert_int_equal(p->sample_count, 3);
	assert_sample(p, 0, "/lib/x y a.c f 1 0x0", 1);
	assert_sample(p, 1, "/lib/x y b.c f 1 0x0", 2);
	assert_sample(p, 2, "/lib/x y b.c g 1 0x0", 3);
	assert_int_equal(p->function_count, 3);
	assert_int_equal(p->mapping_count, 1);
	profile_free(p);

	p = read_clean(
		"events: t\nob=\nfl=\nfn=\n1 1\nob=???\nfl=???\nfn=???\n2 1\n"
		"fn=(below main)\n1 1\nfn=std::vector<int>::operator=\n1 1\nfn= f=g: x\n1 1\n"
		"fn=(99999999999999999999) far\n1 1\n");
	assert_sample(p, 0, "- - ??? 1 0x0", 1);
	assert_sample(p, 1, "- - ??? 2 0x0", 1);
	assert_sample(p, 2, "- - (below main) 1 0x0", 1);
	assert_sample(p, 3, "- - std::vector<int>::operator= 1 0x0", 1);
	assert_sample(p, 4, "- - f=g: x 1 0x0", 1);
	assert_sample(p, 5, "- - (99999999999999999999) far 1 0x0", 1);
	profile_free(p);

	p = read_text("events: t\nfl=(1) a.c\nfn=(9)\n1 1\nfn=(8)\n1 2\n");
	assert_sample(p, 0, "- a.c (9) 1 0x0", 1);
	assert_sample(p, 1, "- a.c (8) 1 0x0", 2);
	assert_warned(p, "line 3: the number of a name is not defined (and 1 more)");
	profile_free(p);

	p = read_text("events: t\nfn=(1) f\n1 1\nfn=(1) f\n1 1\nfn=(1) g\n1 2\n");
	assert_sample(p, 1, "- - g 1 0x0", 2);
	assert_int_equal(p->warning_count, 1);
	assert_warned(p, "line 6: the number of a name is defined again");
	profile_free(p);

	/* The next part may reuse the numbers or define new ones. */
	p = read_clean(
		"events: t\nfn=(1) f\n1 1\nfn=(2) h\n\nevents: t\nfn=(1) g\n1 2\nfn=(2)\n1 3\n");
	assert_sample(p, 1, "- - g 1 0x0", 2);
	assert_sample(p, 2, "- - h 1 0x0", 3);
	profile_free(p);
}

static void files(void **state)
{
	struct profile *p;

	(void)state;
	/*
	 * A callee is in the caller's file, unless cfi= names another. After fn=, the file of fl=
	 * applies again.
	 */
	p = read_clean("events: t\nfl=a.c\nfn=f\n90 1\nfi=h.h\n5 10\ncfn=g\ncalls=1 50\n5 100\n"
		       "fe=a.c\n91 2\nfi=h.h\n6 3\nfn=g\n50 100\n");
	assert_sample(p, 0, "- a.c f 90 0x0", 1);
	assert_sample(p, 1, "- a.c f in h.h 5 0x0", 10);
	assert_sample(p, 2, "- a.c f 91 0x0", 2);
	assert_sample(p, 3, "- a.c f in h.h 6 0x0", 3);
	assert_sample(p, 4, "- a.c g 50 0x0", 100);
	assert_arc(p, 0, "- a.c f in h.h 5 0x0", "- h.h g 50 0x0", 1, 100);
	profile_free(p);

	p = read_clean("events: t\nfi=a.py\nfn=f\n1 1\nfi=b.py\nfn=g\n2 2\n");
	assert_sample(p, 0, "- a.py f 1 0x0", 1);
	assert_sample(p, 1, "- b.py g 2 0x0", 2);
	profile_free(p);

	p = read_clean("events: t\nfl=a.c\nfn=f\n1 1\nob=lib.so\n2 2\n");
	assert_sample(p, 0, "- a.c f 1 0x0", 1);
	assert_sample(p, 1, "lib.so a.c f 2 0x0", 2);
	profile_free(p);
}

static void calls(void **state)
{
	struct profile *p;

	(void)state;
	/* cob= and cfl= apply to one call, in any order; cfi= is the same as cfl=. */
	p = read_clean(
		"events: t\nob=x\nfl=a.c\nfn=f\ncob=y\ncfn=g\ncfi=b.c\ncalls=1 1\n# one\n\n1 10\n"
		"cfn=h\ncalls=2 0x5\n1 20\ncob=???\ncfn=i\ncalls=3\n2 30\n"
		"cfn=h\ncalls=5 5\n1 7\n");
	assert_int_equal(p->sample_count, 0);
	assert_int_equal(p->arc_count, 3);
	assert_arc(p, 0, "x a.c f 1 0x0", "y b.c g 1 0x0", 1, 10);
	assert_arc(p, 1, "x a.c f 1 0x0", "x a.c h 5 0x0", 7, 27);
	assert_arc(p, 2, "x a.c f 2 0x0", "- a.c i 0 0x0", 3, 30);
	profile_free(p);

	/*
	 * Targets are relative to the last cost line; those of Go's writer are relative to another.
	 */
	p = read_clean(
		"positions: instr line\nevents: t\nfn=f\n0x1000 10 1\ncfn=g\ncalls=20 +16 -2\n"
		"* +1 15\ncfn=h\ncalls=0 +16 7\n+1 * 5\ncfn=i\ncalls=0 0x2000 8\n* * 6\n+1 +1 1\n");
	assert_arc(p, 0, "- - f 11 0x1000", "- - g 8 0x1010", 20, 15);
	assert_arc(p, 1, "- - f 11 0x1001", "- - h 7 0x0", 0, 5);
	assert_arc(p, 2, "- - f 11 0x1001", "- - i 8 0x2000", 0, 6);
	assert_sample(p, 1, "- - f 12 0x1002", 1);
	profile_free(p);

	p = read_clean("creator: x\nevents: t\nfn=f\n10 1\ncfn=g\ncalls=0 +5\n* 5\n");
	assert_arc(p, 0, "- - f 10 0x0", "- - g 15 0x0", 0, 5);
	profile_free(p);

	p = read_text("events: t\nfn=f\ncalls=1 1\n2 5\n");
	assert_arc(p, 0, "- - f 2 0x0", "- - ??? 1 0x0", 1, 5);
	assert_warned(p, "line 4: a call does not name its callee");
	profile_free(p);
	/* The next function's costs are its own. */
	p = read_text("events: t\nfn=f\ncfn=g\ncalls=1 1\nfn=h\n2 5\ncfn=g\ncalls=1 1\n");
	assert_int_equal(p->arc_count, 0);
	assert_sample(p, 0, "- - h 2 0x0", 5);
	assert_warned(p, "line 5: no cost line follows the call or jump, which is lost "
			 "(and 1 more)");
	profile_free(p);
	p = read_clean("events: t\nfn=f\n1 1\ncfn=f\nrcalls=3 1\n2 5\n");
	assert_arc(p, 0, "- - f 2 0x0", "- - f 1 0x0", 3, 5);
	profile_free(p);
}

static void jumps(void **state)
{
	struct profile *p =
		read_clean("positions: instr line\nevents: t\nob=x\nfl=a.c\nfn=f\n"
			   "0x100 5 1\njcnd=19/20 -16 *\n* * \n+4 +1 2\n"
			   "jcnd=30 20 0x200 7\n* *\njump=4 +0x10 +2\n* * 0\n"
			   "jfi=b.c\njfn=g\njump=5 0x300 8\n* * \njfi=b.h\njump=6 +1 *\n"
			   "* * 9\n+1 * 3\n");

	(void)state;
	assert_int_equal(p->sample_count, 3);
	assert_int_equal(p->arc_count, 5);
	assert_arc(p, 0, "x a.c f 5 0x100", "x a.c f 5 0xf0", 19, 0);
	assert_int_equal(p->arcs[0].kind, PROFILE_CONDITIONAL_JUMP);
	assert_int_equal(p->arcs[0].executed, 20);
	assert_arc(p, 1, "x a.c f 6 0x104", "x a.c f 7 0x200", 20, 0);
	assert_int_equal(p->arcs[1].kind, PROFILE_CONDITIONAL_JUMP);
	assert_int_equal(p->arcs[1].executed, 30);
	assert_arc(p, 2, "x a.c f 6 0x104", "x a.c f 8 0x114", 4, 0);
	assert_int_equal(p->arcs[2].kind, PROFILE_JUMP);
	assert_int_equal(p->arcs[2].executed, 0);
	assert_arc(p, 3, "x a.c f 6 0x104", "x b.c g 8 0x300", 5, 0);
	assert_arc(p, 4, "x a.c f 6 0x104", "x a.c f in b.h 6 0x105", 6, 0);
	assert_sample(p, 2, "x a.c f 6 0x105", 3);
	profile_free(p);
}

static void assert_value(const struct profile *p, size_t value, const char *type, const char *unit,
			 const char *title, const char *formula, uint64_t total)
{
	assert_true(value < p->value_type_count);
	assert_string_equal(p->value_types[value].type, type);
	assert_string_equal(p->value_types[value].unit, unit);
	assert_string_equal(p->value_types[value].title, title);
	assert_string_equal(p->value_types[value].formula, formula);
	assert_int_equal(profile_value(p, type), value);
	assert_int_equal(profile_total(p, type), total);
}

static void events(void **state)
{
	struct profile *p;

	(void)state;
	p = read_clean("event: Ir : Instruction Fetches\nevent: All = 10 Sum + 2*Dr + 3Ir\n"
		       "event: Sum = Ir + 0x2 * Dr : Both\nevents: Ir Dr\nevent: Dr: Data\n"
		       "fn=f\n1 10 5\ncfn=g\ncalls=1 1\n1 1 1\n");
	assert_int_equal(p->value_type_count, 4);
	assert_value(p, 0, "Ir", "count", "Instruction Fetches", "", 10);
	assert_value(p, 1, "Dr", "count", "Data", "", 5);
	assert_value(p, 2, "All", "count", "", "10 Sum + 2*Dr + 3Ir", 240);
	assert_value(p, 3, "Sum", "count", "Both", "Ir + 0x2 * Dr", 20);
	assert_int_equal(p->arc_values[2], 35);
	assert_int_equal(p->arc_values[3], 3);
	profile_free(p);

	p = read_text("event: A = B\nevent: B = t + A\nevent: C = t + nothing\nevent: D = t +\n"
		      "event: t = 5 t\nevent: E = 9223372036854775807 t + t\nevent: : x\n"
		      "events: t\nfn=f\n1 2\n");
	assert_int_equal(p->value_type_count, 2);
	assert_value(p, 0, "t", "count", "", "", 2);
	assert_value(p, 1, "E", "count", "", "9223372036854775807 t + t", INT64_MAX);
	assert_warned(p, "the event A is lost: \"B\" is cyclic");
	assert_warned(p, "the event B is lost");
	assert_warned(p, "the event C is lost");
	assert_warned(p, "the event D is lost");
	assert_warned(p, "line 7: the line is not in the format");
	profile_free(p);

	p = read_clean("events: samples ns\nfn=f\n1 2 2000\n");
	assert_value(p, 0, "samples", "count", "", "", 2);
	assert_value(p, 1, "cpu", "nanoseconds", "", "", 2000);
	profile_free(p);
	p = read_clean("events: cpu(ms) Time_(10ns) () (x) y()\nfn=f\n1 2 3\n");
	assert_value(p, 0, "cpu", "ms", "", "", 2);
	assert_value(p, 1, "Time_", "10ns", "", "", 3);
	assert_value(p, 2, "()", "count", "", "", 0);
	assert_value(p, 3, "(x)", "count", "", "", 0);
	assert_value(p, 4, "y()", "count", "", "", 0);
	profile_free(p);
	p = read_text("events: a a b\nfn=f\n1 1 2 4\n");
	assert_int_equal(p->value_type_count, 2);
	assert_value(p, 0, "a", "count", "", "", 1);
	assert_value(p, 1, "b", "count", "", "", 4);
	assert_warned(p, "an event is listed twice");
	profile_free(p);
}

static void parts(void **state)
{
	struct profile *p =
		read_clean("# callgrind format\nversion: 1\npid: 7\ncmd: ./x a\npart: 1\n"
			   "thread: 1\npositions: instr line\nevents: a b\nsummary: 3 4\n"
			   "fl=(1) f.c\nfn=(1) f\n0x10 1 1 1\n+1 +1 2 3\n\ntotals: 3 4\n\n"
			   "part: 2\nthread: 2\npositions: line\nevent: s = b + 2 c\n"
			   "events: c b\nsummary: 10 20\n"
			   "fn=(1)\n5 10 20\ntotals: 10 20\n"
			   "thread: 3\nfn=(1)\n5 1 1\n");

	(void)state;
	assert_int_equal(p->value_type_count, 4);
	assert_value(p, 0, "a", "count", "", "", 3);
	assert_value(p, 1, "b", "count", "", "", 25);
	assert_value(p, 2, "c", "count", "", "", 11);
	assert_value(p, 3, "s", "count", "", "b + 2 c", 47);
	assert_int_equal(p->sample_count, 4);
	assert_sample(p, 1, "- f.c f 2 0x11", 2);
	assert_sample(p, 2, "- f.c f 5 0x0", 0);
	assert_int_equal(p->label_count, 3);
	assert_int_equal(p->labels[p->samples[0].labels].pid, 7);
	assert_int_equal(p->labels[p->samples[0].labels].tid, 1);
	assert_int_equal(p->labels[p->samples[2].labels].pid, 7);
	assert_int_equal(p->labels[p->samples[2].labels].tid, 2);
	assert_int_equal(p->labels[p->samples[3].labels].tid, 3);
	assert_string_equal(p->command, "./x a");
	profile_free(p);
}

static void header(void **state)
{
	struct profile *p = read_clean(
		"version: 1\ncreator: callgrind-3.19.0\npid: 99999999999\ncmd:  ./x  \npart: 1\n\n"
		"desc: I1 cache: \ndesc: Timerange: Basic block 0 - 29239\ndesc: no colon\n"
		"desc: Event: task-clock\ndesc: Period: 1000000 ns\ndesc: Period: 5000 cycles\n"
		"desc: Unit: mem bytes\ndesc: Start: 17 ns\ndesc: Duration: 18 ns\ndesc: Host: "
		"h.example\n"
		"desc: Ticks: 100\ndesc: Counted: 90\ndesc: Out of range: 1\ndesc: Excluded: 2\n"
		"desc: Kernel: 3\ndesc: CPU time: 4 ns\ndesc: BPF time per tick: 5 ns\n"
		"desc: Interrupt time: 6 ns\ndesc: Lost: 7 ring full\ndesc: Build ID: 00aBff "
		"/bin/x\n"
		"desc: Comment: one: two\ndesc: Period: soon\ndesc: Ticks: many\ndesc: Build ID: "
		"0x1 /y\n"
		"positions: line\nevents: cycles mem\nob=/bin/x\nfn=f\n1 1\n");
	static const char *const kept[] = {
		"desc: I1 cache:",   "desc: Timerange: Basic block 0 - 29239",
		"desc: no colon",    "desc: Period: soon",
		"desc: Ticks: many", "desc: Build ID: 0x1 /y",
	};

	(void)state;
	assert_string_equal(p->command, "./x");
	assert_int_equal(p->labels[0].pid, 0);
	assert_string_equal(p->event, "task-clock");
	assert_int_equal(profile_tick_ns(p), 1000000);
	assert_int_equal(p->value_types[0].period, 5000);
	assert_string_equal(p->value_types[1].unit, "bytes");
	assert_int_equal(p->time_ns, 17);
	assert_int_equal(p->duration_ns, 18);
	assert_string_equal(p->host, "h.example");
	assert_true(p->totals.known);
	assert_int_equal(p->totals.ticks, 100);
	assert_int_equal(p->totals.counted, 90);
	assert_int_equal(p->totals.out_of_range, 1);
	assert_int_equal(p->totals.excluded, 2);
	assert_int_equal(p->totals.kernel, 3);
	assert_int_equal(p->totals.cpu_ns, 4);
	assert_int_equal(p->totals.bpf_ns_per_tick, 5);
	assert_int_equal(p->totals.interrupt_ns, 6);
	assert_int_equal(profile_lost(p), 7);
	assert_string_equal(p->totals.lost[0].cause, "ring full");
	assert_int_equal(p->image_count, 1);
	assert_string_equal(p->images[0].path, "/bin/x");
	assert_int_equal(p->images[0].build_id_size, 3);
	assert_memory_equal(p->images[0].build_id, "\0\xab\xff", 3);
	assert_int_equal(p->comment_count, 1);
	assert_string_equal(p->comments[0], "one: two");
	assert_int_equal(p->extra_count, sizeof(kept) / sizeof(*kept));
	for (size_t i = 0; i < p->extra_count; i++) {
		assert_string_equal(p->extras[i].format, "callgrind");
		assert_int_equal(p->extras[i].image, PROFILE_NONE);
		assert_string_equal(p->extras[i].bytes, kept[i]);
	}
	profile_free(p);
}

static void costs(void **state)
{
	struct profile *p;

	(void)state;
	p = read_clean("events: a b c\nfn=f\n1\n2 5\n3 0x10 6\n4 0 0 0\n");
	assert_int_equal(p->sample_count, 2);
	assert_sample(p, 0, "- - f 2 0x0", 5);
	assert_sample(p, 1, "- - f 3 0x0", 16);
	assert_int_equal(p->values[4], 6);
	profile_free(p);

	p = read_text("events: t\nfn=f\n1 -1\n2 1.5\n3 3\n4 18446744073709551616\n4 1\n5 1 2 3\n");
	assert_int_equal(p->sample_count, 5);
	assert_sample(p, 0, "- - f 1 0x0", -1);
	assert_sample(p, 1, "- - f 2 0x0", 1);
	assert_sample(p, 3, "- - f 4 0x0", INT64_MAX);
	assert_sample(p, 4, "- - f 5 0x0", 1);
	assert_warned(p, "line 4: a cost has a fraction");
	assert_warned(p, "line 6: a cost has more than 63 bits");
	assert_warned(p, "line 8: the line has more costs than there are events");
	profile_free(p);

	p = read_text("events: t\n1 5\nfl=a.c\nfn=f\n1 1\n");
	assert_sample(p, 0, "- - ??? 1 0x0", 5);
	assert_warned(p, "line 2: costs come before any function");
	profile_free(p);
}

static void totals(void **state)
{
	struct profile *p;

	(void)state;
	profile_free(
		read_clean("events: a b\nsummary: 3 4\nfn=f\n1 3\n2 0 4\ncfn=g\ncalls=1 1\n1 9 9\n"
			   "totals: 3 4\n"));
	profile_free(read_clean("summary: 3 4\nevents: a b\nfn=f\n1 3 4\n"));
	/* Xdebug writes it in the body, where it has no effect. */
	p = read_clean("events: a\nfl=x\nfn=f\n\nsummary: 5\n\n1 5\n");
	assert_sample(p, 0, "- x f 1 0x0", 5);
	profile_free(p);
	/* Callgrind's totals can differ, and are kept; without samples they are the sum. */
	p = read_clean("events: a b\nsummary: 3 5\nfn=f\n1 3 4\ntotals: 3 4\n");
	assert_int_equal(p->extra_count, 1);
	assert_string_equal(p->extras[0].bytes, "summary: 3 5");
	profile_free(p);
	warns("events: a b\nsummary: 3 5\nfn=f\n1 3 4\n",
	      "line 2: summary says 5 b, but the sum of the costs is 4");
	warns("events: a\nfn=f\n1 3\ntotals: 30\n", "line 4: totals says 30 a");
}

static void accept_with_warning(void **state)
{
	struct profile *p;

	(void)state;
	p = read_clean("events:\tIr\tDr\r\nfl=a.c\r\nfn=f\r\n90\t1\t2 \r\n\r\n91 \t 3 \t4\t");
	assert_int_equal(p->value_type_count, 2);
	assert_string_equal(p->value_types[1].type, "Dr");
	assert_sample(p, 0, "- a.c f 90 0x0", 1);
	assert_sample(p, 1, "- a.c f 91 0x0", 3);
	assert_int_equal(p->values[3], 4);
	profile_free(p);

	p = read_text(
		"foo: bar\nevents:Ir\n  fl=a.c\n fn=f\n 90 1\nzzz\nunknown=1\nbaz: 1 2\n91 4\n");
	assert_sample(p, 0, "- a.c f 90 0x0", 1);
	assert_sample(p, 1, "- a.c f 91 0x0", 4);
	assert_warned(p, "line 3: the line begins with a blank (and 2 more)");
	assert_warned(p, "line 1: the line is not in the format and is ignored (and 3 more)");
	profile_free(p);
	profile_free(read_clean("version: 0\nevents: t\nfn=f\n1 1\n"));
}

/* Costs relative to the line before, as speedscope reads them. */
static void relative_costs(void **state)
{
	struct profile *p = read_text("events: t u\nfn=f\n1 -5 7\n2 10 +1\n3 -4 *\n4 * -9\n");

	(void)state;
	assert_int_equal(p->sample_count, 4);
	assert_int_equal(p->values[0], -5);
	assert_int_equal(p->values[1], 7);
	assert_int_equal(p->values[2], 10);
	assert_int_equal(p->values[3], 8);
	assert_int_equal(p->values[4], 6);
	assert_int_equal(p->values[5], 8);
	assert_int_equal(p->values[6], 6);
	assert_int_equal(p->values[7], -1);
	profile_free(p);
}

static void reject(void **state)
{
	char text[4096] = "events:";

	(void)state;
	reject_text("# callgrind format\nversion: 2\nevents: t\n", "input:2: version 2");
	reject_text("# callgrind format\nversion: 1\n",
		    "input:2: the file has no \"events:\" line");
	reject_text("# callgrind format\nfn=f\n1 2\nevents: t\n",
		    "input:3: a cost line before any \"events:\" line");
	reject_text("# callgrind format\nevents: \n", "input:2: events: lists no event");
	reject_text("# callgrind format\npositions: line instr\n",
		    "input:2: positions: has other words");
	reject_text("# callgrind format\npositions: word\n", "input:2: positions: has other words");
	reject_text("# callgrind format\npositions:\n", "input:2: positions: is empty");
	reject_text("events: t\nfn=f\n1 x\n", "input:3: a cost is not a number");
	reject_text("events: t\nfn=f\n1 5x\n", "input:3: a cost is not a number");
	reject_text("events: t\nfn=f\n1 *5\n", "input:3: a cost is not a number");
	reject_text("events: t\nfn=f\n1 -\n", "input:3: a cost is not a number");
	warns("events: t\nfn=f\n+x 1\n", "line 3: the line is not in the format");
	reject_text("events: t\nfn=f\n1x 1\n", "input:3: a position is not a number");
	reject_text("events: t\nfn=f\n*+ 1\n", "input:3: ");
	reject_text("events: t\nfn=f\n99999999999999999999 1\n",
		    "input:3: a position is not a number");
	reject_text("positions: instr line\nevents: t\nfn=f\n0x10\n", "input:4: a position");
	reject_text("events: t\nfn=f\ncfn=g\ncalls=x 1\n", "input:4: the count is not a number");
	reject_text("events: t\nfn=f\njump= 1\n1 1\njump=\n", "input:5: the count is not a number");
	reject_text("events: t\nfn=f\njcnd=5\n", "input:3: the count is not a number");
	reject_text("events: t\nfn=f\njcnd=5/x 1\n", "input:3: the count is not a number");
	for (int i = 0; i <= 100; i++)
		sprintf(text + strlen(text), " e%d", i);
	strcat(text, "\nfn=f\n1 1\n");
	reject_text(text, "input:1: the line has more than 100 events");
}

static bool detects(const char *text)
{
	struct input in = { .path = "input", .bytes = (const uint8_t *)text, .size = strlen(text) };

	return callgrind->detect(&in);
}

static void detect(void **state)
{
	static const char *const others[] = {
		"main;work;leaf 42\nmain;events: 3\n",
		"main 1\n",
		"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/"
		"nologin\n",
		"#include <stdio.h>\nint main(void)\n{\nevents: return 0;\n}\n",
		"version: 3\nservices:\n  web:\n    image: x\n",
		"version: 2\nevents: push\n  - a\n",
		"events: push\njobs:\n  build:\n",
		"fn=main\n1 2\n",
		"1 2\n3 4\n",
		"[general]\nevents: a\n",
		"7f0000-7f1000 r-xp 0 0:0 0 /x\n",
		"--- symbol\nbinary=/bin/x\n",
		"",
	};
	char *text = NULL;

	(void)state;
	assert_true(detects("# callgrind format\n"));
	assert_true(detects("\n# callgrind format\r\nversion: 1\n"));
	assert_true(detects("events: t\nfl=a.c\n"));
	assert_true(detects("events:t\r\n\r\n1 2\r\n"));
	assert_true(detects("foo: bar\nevents: t\n# x\nob=\n"));
	assert_true(detects("desc: I1 cache: 1\ncmd: ./p\nevents: Ir Dr \n"));
	assert_true(detects("\n==== NEW PROFILING FILE ====\nversion: 1\nevents: t\nfn=f\n"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (detects(others[i]))
			fail_msg("taken for Callgrind: %s", others[i]);
	/* A command longer than the window */
	assert_true(asprintf(&text, "version: 1\ncreator: x\ncmd: %0*d\nevents: t\n",
			     (int)INPUT_WINDOW, 0) > 0);
	text[INPUT_WINDOW] = '\0';
	assert_true(detects(text));
	free(text);
}

/* A file with everything in it, to be truncated and damaged. */
static const char sample_file[] =
	"# callgrind format\nversion: 1\ncreator: x\npid: 7\ncmd: ./x a\npart: 1\nthread: 2\n"
	"desc: Trigger: end\ndesc: Build ID: abcd /x\ndesc: Lost: 3 full\ndesc: Period: 10 Ir\n"
	"positions: instr line\nevent: Sum = Ir + 2 Dr : Both\nevents: Ir Dr\nsummary: 8 3\n\n"
	"ob=(1) /x\nfl=(1) a.c\nfn=(1) f\n0x1000 10 1 1\n+4 +1 2\nfi=(2) b.h\n+3 1 5 2\n"
	"cob=(2) /y\ncfi=(3) c.c\ncfn=(2) g\ncalls=2 0x500 3\n* * 100 50\njcnd=1/2 -4 *\n* *\n"
	"totals: 8 3\n\npart: 2\nevents: Bc\nfn=(1)\n7 7\n";

static void hostile(void **state)
{
	static char name[1 << 20];
	struct bytes b = { 0 };

	(void)state;
	bytes_add_text(&b, sample_file);
	profile_free(read_clean(sample_file));
	survive_truncation(callgrind, &b);
	for (size_t i = 0; i < b.size * 8; i++) {
		struct profile *p;
		struct error e = { 0 };

		b.start[i / 8] ^= 1 << i % 8;
		if (read_part(callgrind, b.start, b.size, &p, &e))
			assert_true(e.what[0] != '\0');
		profile_free(p);
		b.start[i / 8] ^= 1 << i % 8;
	}
	bytes_free(&b);

	/* A name of 1 MB, a NUL, invalid UTF-8 */
	bytes_add_text(&b, "events: t\nfn=(1) ");
	memset(name, 0xff, sizeof(name));
	memcpy(name, "a:=(", 4);
	bytes_add(&b, name, sizeof(name));
	bytes_add(&b, "\n1 1\nfn=a\0b\n1 1\n1 \0 2\n", 23);
	survive(callgrind, b.start, b.size);
	bytes_free(&b);
	survive(callgrind, (const uint8_t *)"events: t\n+18446744073709551615 9\n+1 1\n-9 1\n", 42);
}

static struct profile *read_hostile(const char *text, int expected)
{
	struct input in = { .path = "input", .bytes = (const uint8_t *)text, .size = strlen(text) };
	struct profile *p = profile_new();
	struct error e;

	assert_non_null(p);
	assert_int_equal(callgrind->read(&in, p, &e), expected);
	return p;
}

/*
 * What was read before an error is complete: inherited events are computed, mappings have their
 * sizes.
 */
static void partial(void **state)
{
	struct profile *p = read_hostile("positions: instr\nevent: s = 2 t\nevents: t\nob=x\nfn=f\n"
					 "0x10 3\n+4 x",
					 -EINVAL);

	(void)state;
	assert_int_equal(p->sample_count, 1);
	assert_value(p, 0, "t", "count", "", "", 3);
	assert_value(p, 1, "s", "count", "", "2 t", 6);
	assert_int_equal(p->mappings[0].limit, 0x1000);
	profile_free(p);
	/* Events that come after all costs */
	p = read_hostile("event: s = 2 t\nevents: t\nfn=f\n1 3\nevents: u t\n", 0);
	assert_int_equal(p->value_type_count, 3);
	assert_value(p, 1, "s", "count", "", "2 t", 6);
	assert_value(p, 2, "u", "count", "", "", 0);
	profile_free(p);
}

/* The time is proportional to the size: no list is searched from end to end. */
static void many_parts(void **state)
{
	struct bytes b = { 0 };
	char *text = NULL;
	FILE *out = open_memstream(&text, &b.size);
	struct profile *p;

	(void)state;
	assert_non_null(out);
	for (int i = 0; i < 100000; i++)
		fprintf(out, "desc: Trigger: %d\nevents: t\nsummary: 9\nob=(%d) o%d\n", i, i, i);
	for (int i = 0; i < 100000; i++)
		fprintf(out, "events: t\nsummary: 9\nob=(%d)\nfn=(%d) f%d\n1 1\n", i, i, i);
	assert_int_equal(fclose(out), 0);
	b.start = (uint8_t *)text;
	p = read_good(callgrind, &b);
	assert_int_equal(p->sample_count, 100000);
	assert_int_equal(p->mapping_count, 100000);
	assert_int_equal(p->warning_count, 1);
	profile_free(p);
	bytes_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_and_calls), cmocka_unit_test(positions),
		cmocka_unit_test(names),	   cmocka_unit_test(files),
		cmocka_unit_test(calls),	   cmocka_unit_test(jumps),
		cmocka_unit_test(events),	   cmocka_unit_test(parts),
		cmocka_unit_test(header),	   cmocka_unit_test(costs),
		cmocka_unit_test(totals),	   cmocka_unit_test(accept_with_warning),
		cmocka_unit_test(relative_costs),  cmocka_unit_test(reject),
		cmocka_unit_test(detect),	   cmocka_unit_test(hostile),
		cmocka_unit_test(partial),	   cmocka_unit_test(many_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
