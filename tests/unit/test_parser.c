// SPDX-License-Identifier: GPL-2.0-only
/* The process that reads files, and the checks of what it answers. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbol/batch.h"
#include "symbol/cfi/cfi.h"
#include "symbol/parser.h"
#include "util/clock.h"
#include "util/pack.h"

static struct parser *new_parser(void)
{
	struct parser *p;
	struct error e;

	if (parser_new(&p, &e))
		fail_msg("%s", e.what);
	return p;
}

/* Reads the rows of this program. Returns as parser_read_rows(). */
static int read_own_rows(struct parser *parser, uint32_t user, struct unwind_rows *rows,
			 struct error *e)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err;

	assert_true(fd >= 0);
	err = parser_read_rows(parser, fd, "/proc/self/exe", user, NULL, NULL, rows, e);
	assert_int_equal(close(fd), 0);
	return err;
}

static void test_rows(void **state)
{
	struct parser *parser = new_parser();
	struct unwind_rows own, rows;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(read_own_rows(NULL, 0, &own, &e), 0);
	assert_int_equal(read_own_rows(parser, 0, &rows, &e), 0);
	assert_true(rows.count > 100 && rows.cost_ns);
	assert_int_equal(rows.count, own.count);
	assert_memory_equal(rows.rows, own.rows, rows.count * sizeof(*rows.rows));
	assert_int_equal(rows.rule_count, own.rule_count);
	assert_memory_equal(rows.rules, own.rules, rows.rule_count * sizeof(*rows.rules));
	assert_int_equal(rows.segment_count, own.segment_count);
	assert_memory_equal(rows.segments, own.segments, sizeof(rows.segments));
	assert_memory_equal(&rows.language, &own.language, sizeof(rows.language));
	unwind_rows_free(&own);
	unwind_rows_free(&rows);
	/* Its own vDSO is that of this process; and a file without rows is an error, not its end.
	 */
	assert_int_equal(parser_read_rows(parser, -1, "[vdso]", 0, NULL, NULL, &rows, &e), 0);
	unwind_rows_free(&rows);
	assert_int_equal(parser_read_rows(parser, 0, "/dev/null", 0, NULL, NULL, &rows, &e),
			 -EINVAL);
	assert_int_equal(parser_ends(parser), 0);
	parser_free(parser);
}

static void test_confined(void **state)
{
	struct parser *parser = new_parser();
	char path[64], line[256];
	unsigned int found = 0;
	FILE *status;

	(void)state;
	snprintf(path, sizeof(path), "/proc/%d/status", parser_pid(parser));
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		found += strcmp(line, "CapEff:\t0000000000000000\n") == 0 ||
			 strcmp(line, "CapPrm:\t0000000000000000\n") == 0 ||
			 strcmp(line, "NoNewPrivs:\t1\n") == 0 ||
			 strcmp(line, "Seccomp:\t2\n") == 0;
	fclose(status);
	assert_int_equal(found, 4);
	parser_free(parser);
}

/* One that was killed while it had nothing to do: no file is blamed. */
static void test_killed(void **state)
{
	struct parser *parser = new_parser();
	pid_t pid = parser_pid(parser);
	struct unwind_rows rows;
	struct error e = { 0 };

	(void)state;
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (kill(pid, 0) == 0)
		;
	assert_int_equal(read_own_rows(parser, 1000, &rows, &e), 0);
	unwind_rows_free(&rows);
	assert_int_not_equal(parser_pid(parser), pid);
	assert_int_equal(parser_ends(parser), 0);
	parser_free(parser);
}

/*
 * One that does not go on is killed within a time, and the file is refused. All files of its user
 * are after the second time; those of others are read.
 */
static void test_stopped(void **state)
{
	struct parser *parser = new_parser();
	struct unwind_rows rows;
	struct error e = { 0 };
	uint64_t begin_ns = now_ns();

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		const char *path = i ? "/second" : "/first";

		/* Another one starts with the next file. */
		assert_int_equal(read_own_rows(parser, 1001, &rows, &e), 0);
		unwind_rows_free(&rows);
		assert_true(parser_pid(parser) > 0);
		assert_int_equal(kill(parser_pid(parser), SIGSTOP), 0);
		assert_int_equal(parser_read_rows(parser, 0, path, 1000, NULL, NULL, &rows, &e),
				 -ETIMEDOUT);
		assert_string_equal(e.what,
				    "its file could not be parsed: it was waited for too long");
		assert_int_equal(rows.count, 0);
		assert_int_equal(parser_ends(parser), i + 1);
	}
	assert_int_equal(parser_read_rows(parser, 0, "/first", 1000, NULL, NULL, &rows, &e),
			 -EAGAIN);
	assert_non_null(strstr(e.what, "waited for too long, "));
	assert_int_equal(read_own_rows(parser, 1000, &rows, &e), -EAGAIN);
	assert_non_null(strstr(e.what, "other files of its user"));
	assert_int_equal(read_own_rows(parser, 1001, &rows, &e), 0);
	unwind_rows_free(&rows);
	print_message("%.1f s\n", (now_ns() - begin_ns) / 1e9);
	parser_free(parser);
}

/* --- Answers --- */

/* What is unpacked of a pack whose `size` bytes at `at` are replaced. */
static int unpack_changed_rows(const struct pack *k, size_t at, const void *bytes, size_t size)
{
	struct pack changed = { 0 };
	struct unwind_rows rows;
	struct unpack u;
	int err;

	pack_bytes(&changed, k->bytes, k->size);
	if (size)
		memcpy(changed.bytes + at, bytes, size);
	u = unpack_begin(&changed);
	err = rows_unpack(&u, &rows);
	unwind_rows_free(&rows);
	free(changed.bytes);
	return err;
}

static void test_false_rows(void **state)
{
	struct unwind_address all[] = { { 0x1000, 0 }, { 0x1010, 1 }, { 0x1020, 0 } };
	struct unwind_rule rules[] = { { .cfa = UNWIND_GAP }, { .cfa = UNWIND_SP } };
	const struct unwind_rows rows = {
		.rows = all,
		.count = 3,
		.rules = rules,
		.rule_count = 2,
		.segment_count = 1,
	};
	const size_t counts[] = {
		offsetof(struct unwind_rows, count),
		offsetof(struct unwind_rows, rule_count),
		offsetof(struct unwind_rows, segment_count),
		offsetof(struct unwind_rows, build_id_size),
	};
	const uint64_t numbers[] = { 9, 65537, UINT32_MAX, 1ULL << 60, UINT64_MAX };
	const unsigned int language = LANGUAGES;
	struct unwind_address address = { 0x1000, 0 };
	struct unwind_rule rule = { .cfa = 15 };
	struct pack k = { 0 };
	size_t at;

	(void)state;
	rows_pack(&k, &rows);
	assert_int_equal(unpack_changed_rows(&k, 0, NULL, 0), 0);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++)
			if (i < 3 || numbers[n] > 9)
				assert_int_equal(unpack_changed_rows(&k, counts[i], &numbers[n],
								     sizeof(size_t)),
						 -EBADMSG);
	at = offsetof(struct unwind_rows, language.language);
	assert_int_equal(unpack_changed_rows(&k, at, &language, sizeof(language)), -EBADMSG);
	/* Not sorted; a rule that there is not; a rule of no kind. */
	at = sizeof(rows) + sizeof(*all);
	assert_int_equal(unpack_changed_rows(&k, at, &address, sizeof(address)), -EBADMSG);
	address = (struct unwind_address){ 0x1011, 2 };
	assert_int_equal(unpack_changed_rows(&k, at, &address, sizeof(address)), -EBADMSG);
	at = sizeof(rows) + sizeof(all);
	assert_int_equal(unpack_changed_rows(&k, at, &rule, sizeof(rule)), -EBADMSG);
	for (size_t size = 0; size < k.size; size++) {
		struct pack part = { .bytes = k.bytes, .size = size };

		assert_int_equal(unpack_changed_rows(&part, 0, NULL, 0), -EBADMSG);
	}
	free(k.bytes);
}

#define ADDRESSES 20

/* The file's beginning in memory, by the linker. */
extern const char __executable_start;

/* A profile of this program, with addresses of one function and behind it. */
static struct profile *own_profile(struct batch *b, struct batch_address *addresses)
{
	uint64_t start = (uintptr_t)&__executable_start, here = (uintptr_t)own_profile;
	struct profile *p = profile_new();
	uint32_t image, mapping, location;

	assert_non_null(p);
	assert_int_equal(profile_add_image(p, "/proc/self/exe", NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, start, here + 65536, 0, image, &mapping), 0);
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		assert_int_equal(profile_add_location(p, here + 64 * i, mapping, &location), 0);
		addresses[i] = (struct batch_address){ here + 64 * i, i, 0 };
	}
	*b = (struct batch){ .p = p, .addresses = addresses, .count = ADDRESSES };
	return p;
}

/*
 * Every byte of an answer is changed in turn, and it is cut off everywhere: either it is taken as a
 * whole, and the profile is consistent, or nothing of it is.
 */
static void test_false_names(void **state)
{
	struct names_session session = { 0 };
	struct pack request = { 0 }, k = { 0 };
	struct batch_address addresses[ADDRESSES];
	struct batch b;
	struct profile *p = own_profile(&b, addresses);
	size_t taken = 0, refused = 0;
	struct unpack u;

	(void)state;
	names_pack_request(&request, &b, 1, 0, false);
	u = unpack_begin(&request);
	assert_int_equal(
		names_answer(&u, &session, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &k), 0);
	u = unpack_begin(&k);
	assert_int_equal(names_unpack_answer(&u, &b), 0);
	assert_true(b.was_read && p->function_count > 1 && p->images[0].text_size);
	profile_free(p);
	for (size_t i = 0; i < 2 * k.size; i++) {
		struct pack changed = { .bytes = k.bytes,
					.size = i < k.size ? k.size : i - k.size };
		int err;

		p = own_profile(&b, addresses);
		if (i < k.size)
			k.bytes[i] ^= 0x81;
		u = unpack_begin(&changed);
		err = names_unpack_answer(&u, &b);
		if (i < k.size)
			k.bytes[i] ^= 0x81;
		assert_true(err == 0 || err == -EBADMSG);
		if (err) {
			assert_int_equal(p->line_count, 0);
			assert_int_equal(p->images[0].text_size, 0);
			assert_int_equal(p->function_count, 0);
		}
		for (size_t l = 0; l < p->location_count; l++) {
			const struct profile_location *location = &p->locations[l];

			assert_true((uint64_t)location->first_line + location->line_count <=
				    p->line_count);
			for (uint32_t n = 0; n < location->line_count; n++)
				assert_true(p->lines[location->first_line + n].function <
					    p->function_count);
		}
		taken += !err;
		refused += err != 0;
		profile_free(p);
	}
	print_message("%zu bytes: %zu answers taken, %zu refused\n", k.size, taken, refused);
	assert_true(refused > k.size);
	free(request.bytes);
	free(k.bytes);
}

/* A request that is false, too, ends nothing: it is refused. */
static void test_false_request(void **state)
{
	struct names_session session = { 0 };
	struct pack request = { 0 }, k = { 0 };
	struct batch_address addresses[ADDRESSES];
	struct batch b;
	struct profile *p = own_profile(&b, addresses);

	(void)state;
	names_pack_request(&request, &b, 1, 0, false);
	for (size_t size = 0; size < request.size; size++) {
		struct pack part = { .bytes = request.bytes, .size = size };
		struct unpack u = unpack_begin(&part);

		assert_int_equal(names_answer(&u, &session, open("/dev/null", O_RDONLY), &k),
				 -EBADMSG);
	}
	assert_int_equal(k.size, 0);
	free(request.bytes);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	      cmocka_unit_test(test_confined),
		cmocka_unit_test(test_killed),	      cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_false_rows),    cmocka_unit_test(test_false_names),
		cmocka_unit_test(test_false_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
