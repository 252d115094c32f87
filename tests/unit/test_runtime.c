// SPDX-License-Identifier: GPL-2.0-only
/* Which runtime gets a hint, by the processes and images of test profiles. */
#include <stdlib.h>

#include "stack_fixture.h"
#include "symbol/runtime.h"

static void add_for(struct profile *p, uint32_t pid, const char *stack, int64_t count)
{
	add_labelled(p, &(struct profile_labels){ .pid = pid, .tid = pid, .comm = "" }, stack,
		     count);
}

static uint32_t image_of(const struct profile *p, const char *path)
{
	for (uint32_t i = 0; i < p->image_count; i++)
		if (strcmp(p->images[i].path, path) == 0)
			return i;
	fail_msg("no image %s", path);
	return 0;
}

static char *hints_of(const struct profile *p, const char *path)
{
	struct runtimes *r = runtimes_new(p);
	char *hints;

	assert_non_null(r);
	hints = runtimes_hints(r, image_of(p, path), "why");
	runtimes_free(r);
	return hints;
}

/* Frees p. */
static void assert_hints(struct profile *p, const char *path, const char *expected)
{
	char *hints = hints_of(p, path);

	assert_non_null(hints);
	assert_string_equal(hints, expected);
	free(hints);
	profile_free(p);
}

#define JAVA_END                                                                    \
	" Compiler.perfmap while it is recorded, or record it with --ask-runtimes " \
	"(both: Java 17 or later), or start it with "                               \
	"-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
#define NODE "start it with node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof"

/* A runtime of another process gets no hint. */
static void of_each_process(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "/usr/lib/jvm/x/lib/server/libjvm.so@gc", 1);
	add_for(p, 7, "[anon]@", 60);
	add_for(p, 7, "[anon]@named", 1000);
	add_for(p, 8, "/usr/bin/node@main [anon]@", 30);
	add_for(p, 9, "/usr/bin/node@main [anon]@", 40);
	add_for(p, 5, "/usr/sbin/nginx@main [anon]@", 50);
	add_for(p, 6, "/usr/bin/php8.2@main /usr/bin/php8.2@", 500);
	add_for(p, 6, "/usr/bin/php8.2@main [anon]@", 5);
	assert_hints(p, "[anon]",
		     "why; Java (PID 7): run jcmd 7" JAVA_END
		     "; Node.js (PID 9 and 1 more): " NODE);
}

/* Its code was mapped, and has no sample. */
static void of_the_only_process(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "[anon]@", 60);
	mapping_of(p, "/usr/lib/jvm/x/bin/java");
	assert_hints(p, "[anon]", "why; Java (PID 7): run jcmd 7" JAVA_END);
}

static void of_any_process(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "[anon]@", 60);
	add_for(p, 8, "[anon]@", 60);
	mapping_of(p, "/usr/lib/libjvm.so");
	mapping_of(p, "/usr/lib/x86_64-linux-gnu/libnode.so.108 (deleted)");
	assert_hints(p, "[anon]", "why; Java: run jcmd PID" JAVA_END "; Node.js: " NODE);
}

static void of_a_file_without_processes(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "/usr/lib/libjvm.so@gc //anon@", 60);
	assert_hints(p, "//anon", "why; Java: run jcmd PID" JAVA_END);
}

static void both_kinds_of_java(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "/usr/lib/libjvm.so@a /usr/lib/libj9vm29.so@b [anon]@", 60);
	assert_hints(p, "[anon]", "why; OpenJ9 (PID 7): start it with java -XX:+PerfTool");
}

static void every_pattern(void **state)
{
	static const char *const paths[][2] = {
		{ "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "Erlang" },
		{ "/opt/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so", ".NET" },
		{ "/usr/bin/mono-sgen", "Mono" },
		{ "/usr/sbin/php-fpm8.2", "PHP" },
		{ "/usr/lib/apache2/modules/libphp8.2.so", "PHP" },
		{ "/usr/lib/x86_64-linux-gnu/libruby-3.3.so.3.3.0", "Ruby" },
		{ "/usr/local/bin/wasmtime", "wasmtime" },
		{ "/usr/lib/postgresql/15/bin/postgres", "PostgreSQL" },
		{ "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0", "LuaJIT" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct profile *p = new_profile();
		char stack[256], start[64];
		char *hints;

		snprintf(stack, sizeof(stack), "%s@f [anon]@", paths[i][0]);
		snprintf(start, sizeof(start), "why; %s (PID 7): ", paths[i][1]);
		add_for(p, 7, stack, 1);
		hints = hints_of(p, "[anon]");
		assert_non_null(hints);
		assert_int_equal(strncmp(hints, start, strlen(start)), 0);
		free(hints);
		profile_free(p);
	}
}

static void no_runtime(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "/usr/bin/noder@f /tmp/php/f@g /usr/lib/libjvmti.so@h [anon]@", 60);
	assert_hints(p, "[anon]", "why");
}

/* A process has written its file: only Java needs a command for functions compiled later. */
static void with_a_file(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "/usr/bin/node@main [anon]@", 30);
	p->images[image_of(p, "[anon]")].path = "[jit 7]";
	assert_hints(p, "[jit 7]", "why");
	p = new_profile();
	add_for(p, 7, "/usr/lib/libjvm.so@main [anon]@", 30);
	p->images[image_of(p, "[anon]")].path = "[jit 7]";
	assert_hints(p, "[jit 7]", "why; Java (PID 7): run jcmd 7" JAVA_END);
}

static void an_image_with_few_samples(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add_for(p, 7, "/usr/lib/libjvm.so@main", 1000);
	add_for(p, 7, "/usr/lib/libjvm.so@main [anon]@", 9);
	assert_hints(p, "[anon]", "why");
}

static const char *interpreter(struct profile *p, const char *path)
{
	mapping_of(p, path);
	static char text[RUNTIME_HINT_SIZE];

	return runtime_interpreter(p, image_of(p, path), text);
}

static void interpreters(void **state)
{
	static const char stacks[] = "recorded with -g, Python 3.11",
			  new[] = "-X perf (version 3.12 or later";
	struct profile *p = new_profile();

	(void)state;
	assert_non_null(strstr(interpreter(p, "/usr/bin/python2.7 (deleted)"),
			       "Python 2.7 is not supported: "));
	assert_non_null(strstr(interpreter(p, "/usr/lib/libpython3.9.so.1.0"),
			       "Python 3.9 is not supported: "));
	assert_non_null(strstr(interpreter(p, "/usr/bin/python3.11"), stacks));
	assert_non_null(strstr(interpreter(p, "/usr/lib/libpython3.14.so.1.0"), stacks));
	assert_non_null(strstr(interpreter(p, "/usr/bin/python3"), stacks));
	assert_non_null(strstr(interpreter(p, "/usr/lib/libpython3.13t.so.1.0"),
			       "free-threaded Python 3.13 is not supported: "));
	assert_non_null(
		strstr(interpreter(p, "/usr/bin/python3.15"), "Python 3.15 is not supported: "));
	assert_non_null(strstr(interpreter(p, "/usr/bin/php7.4"), "PHP 7.4 is not supported: "));
	assert_non_null(
		strstr(interpreter(p, "/usr/sbin/php-fpm8.6"), "PHP 8.6 is not supported: "));
	assert_non_null(strstr(interpreter(p, "/usr/sbin/php-fpm8.4"), "recorded with -g"));
	assert_non_null(strstr(interpreter(p, "/usr/local/bin/php"), "recorded with -g"));
	assert_non_null(strstr(interpreter(p, "/usr/bin/perl"), "recorded with -g, Perl"));
	assert_non_null(strstr(interpreter(p, "/usr/bin/perl5.36.0"), "recorded with -g, Perl"));
	assert_non_null(
		strstr(interpreter(p, "/usr/lib/libperl.so.5.34"), "Perl 5.34 is not supported: "));
	assert_non_null(
		strstr(interpreter(p, "/usr/bin/perl5.44"), "Perl 5.44 is not supported: "));
	p->stacks = "cfi";
	assert_non_null(strstr(interpreter(p, "/usr/bin/python3.12"), new));
	assert_non_null(strstr(interpreter(p, "/usr/bin/perl"), "only Perl 5.36 to 5.42"));
	assert_non_null(
		strstr(interpreter(p, "/usr/lib/apache2/modules/libphp8.2.so"), "only PHP"));
	assert_null(interpreter(p, "/usr/bin/perldoc"));
	assert_null(interpreter(p, "/usr/bin/rubyist"));
	assert_null(interpreter(p, "[anon]"));
	add(p, "[anon]@py::main:/x.py /usr/bin/python3.12@eval", 1);
	assert_null(interpreter(p, "/usr/bin/python3.12"));
	profile_free(p);
}

/* Node.js interprets only what runs seldom: a tenth of the samples must be in its handlers. */
static void interpreter_that_does_much_else(void **state)
{
	static const char node[] = "/usr/bin/node";
	struct profile *p = new_profile();

	(void)state;
	add(p, "/usr/bin/node@Builtins_LdarHandler", 9);
	add(p, "/usr/bin/node@Builtins_HandlerOfOthers", 91);
	assert_null(interpreter(p, node));
	add(p, "/usr/bin/node@Builtins_AddHandler", 2);
	assert_non_null(strstr(interpreter(p, node), "--interpreted-frames-native-stack"));
	add(p, "/usr/bin/node@Builtins_AddHandler [jit 7]@JS:~f", 1);
	assert_null(interpreter(p, node));
	profile_free(p);
}

static void frame_hints(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	add(p, "/usr/bin/node@main", 1);
	assert_null(runtime_frame_hint(p, "[jit 7]"));
	add(p, "/usr/lib/jvm/x/lib/server/libjvm.so@gc", 1);
	assert_non_null(strstr(runtime_frame_hint(p, "[jit 7]"), "-XX:+PreserveFramePointer"));
	assert_non_null(runtime_frame_hint(p, "[anon]"));
	assert_null(runtime_frame_hint(p, "/usr/lib/libc.so.6"));
	add(p, "/usr/lib/jvm/x/lib/default/libj9vm29.so@gc", 1);
	assert_null(runtime_frame_hint(p, "[jit 7]"));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_each_process),
		cmocka_unit_test(of_the_only_process),
		cmocka_unit_test(of_any_process),
		cmocka_unit_test(of_a_file_without_processes),
		cmocka_unit_test(both_kinds_of_java),
		cmocka_unit_test(every_pattern),
		cmocka_unit_test(no_runtime),
		cmocka_unit_test(with_a_file),
		cmocka_unit_test(an_image_with_few_samples),
		cmocka_unit_test(interpreters),
		cmocka_unit_test(interpreter_that_does_much_else),
		cmocka_unit_test(frame_hints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
