// SPDX-License-Identifier: GPL-2.0-only
/* The data of `top`: how samples fade, the rows and the chosen one, and what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "format/pprof/pprof.h"
#include "report/live/live.h"
#include "tool/top_watch.h"

#define TICK 10000000	/* ns */
#define S    1000000000 /* ns */

static void begin(struct live *l, uint64_t half_life_ns)
{
	assert_int_equal(live_init(l, half_life_ns), 0);
	assert_int_equal(profile_add_clock(l->p, TICK), 0);
}

/* A function in an image, each at an address of its own. */
static uint32_t add_function(struct live *l, const char *name, const char *path, uint64_t address)
{
	struct profile_function f = { .name = name, .system_name = name, .file = "" };
	struct profile_line line = { 0 };
	uint32_t image, mapping, location;

	assert_int_equal(profile_add_image(l->p, path, NULL, 0, &image), 0);
	assert_int_equal(
		profile_add_mapping(l->p, address, address + 0x100, address, image, &mapping), 0);
	assert_int_equal(profile_add_location(l->p, address, mapping, &location), 0);
	if (name) {
		assert_int_equal(profile_add_function(l->p, &f, &line.function), 0);
		assert_int_equal(profile_set_lines(l->p, location, &line, 1), 0);
	}
	return location;
}

static void count_stack(struct live *l, const uint32_t *frames, uint32_t depth, uint32_t pid,
			bool kernel, int64_t ticks)
{
	struct profile_labels labels = { .pid = pid, .tid = pid, .comm = "name", .kernel = kernel };
	int64_t values[] = { ticks, ticks * TICK };
	uint32_t id;

	assert_int_equal(profile_add_labels(l->p, &labels, &id), 0);
	assert_int_equal(profile_add_sample(l->p, frames, depth, id, values), 0);
}

static void count(struct live *l, uint32_t location, uint32_t pid, int64_t ticks)
{
	count_stack(l, &location, 1, pid, false, ticks);
}

static const struct row *shown(const struct live *l, size_t number)
{
	assert_true(number < l->shown_count);
	return &l->rows.rows[l->shown[number]];
}

static void assert_shown(const struct live *l, size_t number, const char *name)
{
	assert_string_equal(shown(l, number)->name, name);
}

/* Three functions of two processes: 60, 30 and 10 ticks in a second. */
static void begin_three(struct live *l, uint64_t half_life_ns)
{
	begin(l, half_life_ns);
	live_fade(l, S, 0);
	count(l, add_function(l, "zeta", "/bin/a", 0x1000), 1, 60);
	count(l, add_function(l, "alpha", "/bin/b", 0x2000), 2, 30);
	count(l, add_function(l, "mid", "/bin/a", 0x3000), 1, 10);
	assert_int_equal(live_collect(l), 0);
}

static void test_fade(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 2LL * S);
	assert_int_equal(shown(&l, 0)->counts->self, 60 * TICK);
	live_fade(&l, 2LL * S, 0);
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(shown(&l, 0)->counts->self, 30 * TICK);
	assert_true(l.elapsed_ns > 2.49 * S && l.elapsed_ns < 2.51 * S);
	assert_int_equal(l.p->values[PROFILE_SAMPLES], 60);
	live_fade(&l, 2LL * S * 13, 0); /* 10 ticks are less than 1/1024 tick */
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 2);
	live_free(&l);
}

/* Rows of images have no other name. */
static void test_images_by_name(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 0);
	live_show(&l, row_view_by_name("image"));
	l.sort = LIVE_BY_NAME;
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 2);
	assert_string_equal(shown(&l, 0)->key->image, "/bin/a");
	assert_string_equal(shown(&l, 1)->key->image, "/bin/b");
	live_free(&l);
}

static void test_no_fading(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 0);
	live_fade(&l, S, 0);
	count(&l, 1, 2, 5);
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 1);
	assert_int_equal(shown(&l, 0)->counts->self, 5 * TICK);
	assert_int_equal((uint64_t)l.elapsed_ns, S);
	live_free(&l);
}

static void test_order(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, S);
	assert_shown(&l, 0, "zeta");
	assert_shown(&l, 1, "alpha");
	assert_shown(&l, 2, "mid");
	l.sort = LIVE_BY_NAME;
	assert_int_equal(live_collect(&l), 0);
	assert_shown(&l, 0, "alpha");
	assert_shown(&l, 2, "zeta");
	l.sort = LIVE_BY_IMAGE;
	assert_int_equal(live_collect(&l), 0);
	assert_shown(&l, 0, "zeta");
	assert_shown(&l, 2, "alpha");
	live_free(&l);
}

static void test_totals(void **state)
{
	uint32_t frames[2];
	struct live l;

	(void)state;
	begin(&l, S);
	frames[0] = add_function(&l, "leaf", "/bin/a", 0x1000);
	frames[1] = add_function(&l, "root", "/bin/a", 0x2000);
	live_fade(&l, S, 0);
	count_stack(&l, frames, 2, 1, false, 10);
	count_stack(&l, frames + 1, 1, 1, false, 1);
	l.sort = LIVE_BY_TOTAL;
	assert_int_equal(live_collect(&l), 0);
	assert_true(l.rows.stacks);
	assert_shown(&l, 0, "root");
	assert_int_equal(shown(&l, 0)->counts->total, 11 * TICK);
	live_free(&l);
}

static void test_match(void **state)
{
	struct error e;
	struct live l;

	(void)state;
	begin_three(&l, S);
	assert_int_equal(live_match(&l, "^(AL|MI)", &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 2);
	assert_shown(&l, 0, "alpha");
	assert_int_equal(live_match(&l, "/bin/a", &e), 0); /* the image */
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 2);
	assert_shown(&l, 0, "zeta");
	assert_int_not_equal(live_match(&l, "(", &e), 0);
	assert_string_equal(l.pattern, "/bin/a");
	assert_int_equal(live_match(&l, "", &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 3);
	live_free(&l);
}

static void test_enter(void **state)
{
	struct error e;
	struct live l;

	(void)state;
	begin_three(&l, S);
	l.view = row_view_by_name("process");
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(shown(&l, 1)->key->pid, 2);
	assert_int_equal(live_enter(&l, shown(&l, 1), &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 1);
	assert_shown(&l, 0, "alpha");
	assert_int_equal(l.rows.columns->samples, 100 * TICK); /* shares are those of all */
	assert_true(live_leave(&l)); /* back to processes, on the row that it entered */
	assert_int_equal(live_collect(&l), 0);
	assert_int_equal(l.shown_count, 2);
	assert_int_equal(live_row(&l)->key->pid, 2);
	assert_false(live_leave(&l));
	live_free(&l);
}

static void test_cursor(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 100LL * S);
	l.cursor = 1;	     /* alpha */
	count(&l, 2, 1, 90); /* mid is the first now */
	assert_int_equal(live_collect(&l), 0);
	assert_shown(&l, 0, "mid");
	assert_int_equal(l.cursor, 2);
	assert_string_equal(live_row(&l)->name, "alpha");
	l.cursor = 0;
	count(&l, 1, 1, 900);
	assert_int_equal(live_collect(&l), 0);
	assert_string_equal(live_row(&l)->name, "alpha");
	l.cursor = 2;
	live_fade(&l, 10000LL * S, 0);
	assert_int_equal(live_collect(&l), 0);
	assert_null(live_row(&l));
	assert_int_equal(l.cursor, 0);
	live_free(&l);
}

/* Faded samples are dropped; the rest stays, and locations are not looked up again. */
static void test_compact(void **state)
{
	struct live l;
	uint32_t last;
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	begin_three(&l, S);
	l.p->images[0].fd = fd;
	count(&l, add_function(&l, NULL, "/bin/none", 0x4000), 1, 5);
	l.tried = l.p->location_count;
	live_fade(&l, 30LL * S, 0);
	count(&l, 2, 1, 7);
	count(&l, 3, 1, 4);
	last = add_function(&l, NULL, "/bin/none", 0x5000);
	count(&l, last, 1, 2);
	assert_int_equal(live_compact(&l), 0);
	assert_int_equal(l.p->sample_count, 3);
	assert_int_equal(l.p->location_count, 3);
	assert_int_equal(l.tried, 2);
	assert_int_equal(l.p->image_count, 2);
	assert_int_equal(l.p->images[0].fd, fd);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(profile_tick_ns(l.p), TICK);
	assert_int_equal(live_collect(&l), 0);
	assert_shown(&l, 0, "mid");
	assert_shown(&l, 1, "none+0x4000");
	assert_shown(&l, 2, "none+0x5000");
	assert_int_equal(shown(&l, 0)->counts->self, 7 * TICK);
	live_free(&l);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_names_once(void **state)
{
	struct error e;
	struct live l;

	(void)state;
	begin(&l, S);
	count(&l, add_function(&l, NULL, "/nowhere/at/all", 0x1000), 1, 1);
	assert_int_equal(live_name(&l, &e), 0);
	assert_int_equal(l.tried, 1);
	assert_int_equal(live_collect(&l), 0);
	assert_non_null(live_unnamed(&l, shown(&l, 0)));
	l.p->images[0].unnamed = NULL;
	assert_int_equal(live_name(&l, &e), 0);
	assert_null(l.p->images[0].unnamed);
	l.naming_ns = -S; /* has taken too much time: later */
	count(&l, add_function(&l, NULL, "/nowhere/else", 0x2000), 1, 1);
	assert_int_equal(live_name(&l, &e), 0);
	assert_int_equal(l.tried, 1);
	live_free(&l);
}

/* A function of which only the start is known has no name, and a reason for that. */
static void test_named_by_start(void **state)
{
	struct error e;
	struct live l;

	(void)state;
	begin(&l, S);
	count(&l, add_function(&l, "all+0x1000", "/nowhere/at/all", 0x1008), 1, 1);
	assert_int_equal(live_name(&l, &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_shown(&l, 0, "all+0x1000");
	assert_non_null(live_unnamed(&l, shown(&l, 0)));
	live_free(&l);
	begin(&l, S);
	count(&l, add_function(&l, "other+0x1000", "/nowhere/at/all", 0x1008), 1, 1);
	assert_int_equal(live_name(&l, &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_null(live_unnamed(&l, shown(&l, 0)));
	live_free(&l);
}

/* ---- Text ---- */

static char *text_of(const struct live *l, int what, unsigned int width)
{
	struct live_status s = { .target = "it\033[2J", .lost = 3, .bpf_ns_per_tick = 200 };
	struct live_table_options o = { .count = 2, .width = width };
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (what == 'h')
		assert_int_equal(live_header(l, &s, LIVE_HEADER_LINES, width, out), 0);
	else if (what == 'j')
		assert_int_equal(live_json(l, &s, 2, out), 0);
	else
		assert_int_equal(live_table(l, &o, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void assert_text(const struct live *l, int what, unsigned int width, const char *wanted)
{
	char *text = text_of(l, what, width);

	if (!strstr(text, wanted))
		fail_msg("not there: %s\nin:\n%s", wanted, text);
	free(text);
}

static void test_text(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 5LL * S);
	count_stack(&l, NULL, 0, 1, true, 25);
	assert_int_equal(live_collect(&l), 0);
	assert_text(&l, 'h', 0, "it\\x1b[2J");
	assert_text(&l, 'h', 0,
		    "CPU 125.0 %, kernel 25.0 %, 125 samples/s, 3 lost; BPF 200 ns/tick");
	assert_text(&l, 'h', 0, "functions by self, fading by half in 5 s\n");
	assert_text(&l, 't', 0, "     %    cpu%  function  image\n 48.00    60.0  zeta      a\n");
	assert_text(&l, 't', 0, "\n... 2 more functions, 28.00 %\n");
	assert_text(&l, 't', 60, "\n 48.00    60.0  zeta                        a\n");
	assert_text(&l, 'j', 0, "\"name\":\"zeta\",\"image\":\"/bin/a\",\"self_percent\":48.00");
	assert_text(&l, 'j', 0, "\"cpu_percent\":125.0");
	live_free(&l);
}

/* Two CPUs have 101 ticks each in a second at 100 Hz, as the first one comes at its begin. */
static void test_most_cpu(void **state)
{
	struct live l;

	(void)state;
	begin(&l, 0);
	live_fade(&l, S, 2LL * S);
	count(&l, add_function(&l, "one", "/bin/a", 0x1000), 1, 101);
	count_stack(&l, &(uint32_t){ add_function(&l, "other", "/bin/a", 0x2000) }, 1, 1, true,
		    101);
	assert_int_equal(live_collect(&l), 0);
	assert_text(&l, 'h', 0, "CPU 200.0 %, kernel 100.0 %, 202 samples/s");
	assert_text(&l, 't', 0, "\n    101   50.00   100.0  one       a\n");
	assert_text(&l, 'j', 0, "\"samples\":202,\"kernel\":101,\"cpu_percent\":200.0,\"lost\":3");
	/* Half of the time of two seconds. */
	live_fade(&l, 2LL * S, 4LL * S);
	count(&l, 0, 1, 200);
	assert_int_equal(live_collect(&l), 0);
	assert_text(&l, 'h', 0, "CPU 100.0 %, kernel 0.0 %, 100 samples/s");
	live_free(&l);
}

/*
 * A second of two CPUs that come after another time: the percentages are of the time in which the
 * samples were counted, whenever they are taken.
 */
static void test_update(void **state)
{
	struct record_reply reply = {
		.version = RECORD_NEWEST,
		.type = RECORD_RESULT,
		.end = RECORD_GOES_ON,
	};
	struct watch w = { .is_served = true,
			   .status.target = "t",
			   .service.signals = -1,
			   .service.version = RECORD_NEWEST };
	struct live window;
	char *bytes;
	size_t size;
	FILE *out = open_memstream(&bytes, &size);
	struct error e;
	int pair[2];

	(void)state;
	begin(&window, 0);
	window.p->duration_ns = S;
	window.p->totals.known = true;
	window.p->totals.machine_ns = 2LL * S;
	count(&window, add_function(&window, NULL, "/bin/a", 0x1000), 1, 200);
	assert_int_equal(format_pprof.write(window.p, &(struct format_options){ 0 }, out, &e), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	reply.size = size;
	assert_int_equal(send(pair[1], &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(send(pair[1], bytes, size, 0), size);
	free(bytes);
	live_free(&window);

	assert_int_equal(live_init(&w.live, 0), 0);
	w.service.socket = pair[0];
	assert_int_equal(watch_update(&w, &e), 0);
	assert_int_equal((uint64_t)w.live.elapsed_ns, S);
	assert_text(&w.live, 'h', 0, "CPU 200.0 %, kernel 0.0 %, 200 samples/s");
	close(pair[1]);
	watch_free(&w);
}

static void test_narrow(void **state)
{
	struct live l;

	(void)state;
	begin_three(&l, 5LL * S);
	for (unsigned int width = 20; width < 200; width++) {
		char *text = text_of(&l, 'h', width), *rest = text, *line;

		while ((line = strsep(&rest, "\n")))
			assert_true(strlen(line) <= width);
		free(text);
	}
	live_free(&l);
}

static void test_nothing(void **state)
{
	struct error e;
	struct live l;

	(void)state;
	assert_int_equal(live_init(&l, S), 0);
	live_fade(&l, S, 0);
	assert_int_equal(live_name(&l, &e), 0);
	assert_int_equal(live_collect(&l), 0);
	assert_null(live_row(&l));
	assert_text(&l, 'h', 80, "CPU 0.0 %");
	assert_text(&l, 't', 80, "function");
	assert_text(&l, 'j', 0, "\"rows\":[]");
	assert_int_equal(live_compact(&l), 0);
	live_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fade),	       cmocka_unit_test(test_no_fading),
		cmocka_unit_test(test_images_by_name), cmocka_unit_test(test_order),
		cmocka_unit_test(test_totals),	       cmocka_unit_test(test_match),
		cmocka_unit_test(test_enter),	       cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_compact),	       cmocka_unit_test(test_names_once),
		cmocka_unit_test(test_named_by_start), cmocka_unit_test(test_text),
		cmocka_unit_test(test_most_cpu),       cmocka_unit_test(test_update),
		cmocka_unit_test(test_narrow),	       cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
