// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses to names, with programs that are built here: each runs once and prints where the kernel
 * mapped its functions; nm gives the expected answer.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory_fixture.h"
#include "profile/pc_name.h"
#include "symbol/batch.h"
#include "symbol/demangle.h"
#include "symbol/file_cache.h"
#include "symbol/parser.h"
#include "symbol/symbol.h"

static const char program_source[] =
	"#include <stdio.h>\n"
	"#include <string.h>\n"
	"#define KEEP __attribute__((noinline, used, noipa))\n"
	"KEEP static int quiet(int x) { return x * 3 + 1; }\n"
	"KEEP int loud(int x) { return quiet(x) + 2; }\n"
	"KEEP int __inner(int x) { return x * 5; }\n"
	"int outer(int x) __attribute__((weak, alias(\"__inner\")));\n"
	"KEEP static int __twin(int x) { return x * 9 + 4; }\n"
	"static int __GI___twin(int x) __attribute__((used, alias(\"__twin\")));\n"
	"KEEP int release(int x) { return x * 11 + 2; }\n"
	"int crelease(int x) __attribute__((alias(\"release\")));\n"
	"__asm__(\".pushsection .text\\n.globl bare\\nbare: nop\\nnop\\nnop\\nnop\\nret\\n\"\n"
	"        \".globl after_bare\\n.type after_bare, %function\\nafter_bare: ret\\n\"\n"
	"        \".size after_bare, 1\\n.popsection\");\n"
	"extern void bare(void);\n"
	"#ifdef LIBRARY\n"
	"extern int library_work(int x);\n"
	"#endif\n"
	"static void tell(const char *name, unsigned long pc)\n"
	"{\n"
	"	FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n"
	"	unsigned long start, limit, offset;\n"
	"	char line[512], path[256];\n"
	"	while (maps && fgets(line, sizeof(line), maps))\n"
	"		if (sscanf(line, \"%lx-%lx %*s %lx %*s %*s %255s\", &start, &limit, "
	"&offset,\n"
	"			   path) == 4 && pc >= start && pc < limit)\n"
	"			printf(\"%s %lx %lx %lx %lx %s\\n\", name, pc, start, limit, "
	"offset, path);\n"
	"	if (maps)\n"
	"		fclose(maps);\n"
	"}\n"
	"#define TELL(f) tell(#f, (unsigned long)f)\n"
	"int main(void)\n"
	"{\n"
	"	TELL(quiet), TELL(loud), TELL(outer), TELL(bare), TELL(__twin), TELL(release);\n"
	"#ifdef LIBRARY\n"
	"	TELL(library_work);\n"
	"#endif\n"
	"	return loud(1) == 0;\n"
	"}\n";

static const char library_source[] =
	"__attribute__((noinline, used)) static int library_quiet(int x) { return x * 7; }\n"
	"int library_work(int x) { return library_quiet(x) + 1; }\n";

static const char cxx_source[] =
	"#include <cstdio>\n"
	"namespace shape { template <class T> __attribute__((noinline, used)) T area(T w, T h)\n"
	"{ return w * h; } }\n"
	"int main() { return shape::area<int>(2, 3) == 0; }\n";

/* The address of a program's function in memory. */
struct place {
	char name[64];
	uint64_t pc, start, limit, offset;
	char path[256];
};

static size_t read_bytes(const char *name, char **bytes)
{
	FILE *f = fopen(in_directory(name), "rb");
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	*bytes = malloc(st.st_size);
	assert_non_null(*bytes);
	assert_int_equal(fread(*bytes, 1, st.st_size, f), st.st_size);
	fclose(f);
	return st.st_size;
}

/* The process that reads the files; NULL: this one. The names are the same. */
static struct parser *parser;

static int setup(void **state)
{
	(void)state;
	if (directory_make())
		return -1;
	write_file("program.c", program_source, sizeof(program_source) - 1);
	write_file("library.c", library_source, sizeof(library_source) - 1);
	write_file("shape.cc", cxx_source, sizeof(cxx_source) - 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	parser_free(parser);
	parser = NULL;
	return directory_remove();
}

/* From here on another process reads the files, in another directory. */
static int start_parser(void **state)
{
	struct error e;

	return teardown(state) || setup(state) || parser_new(&parser, &e) ? -1 : 0;
}

static void build(const char *output, const char *flags)
{
	if (shell("gcc -O1 -g0 -o %s program.c %s", output, flags)) {
		print_message("cannot build with %s\n", flags);
		skip();
	}
}

static struct place address_of(const char *program, const char *function)
{
	struct place place;
	char command[512], line[1024];
	bool found = false;
	FILE *f;

	snprintf(command, sizeof(command), "'%s/%s'", directory, program);
	f = popen(command, "r");
	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%63s %lx %lx %lx %lx %255s", place.name, &place.pc,
			       &place.start, &place.limit, &place.offset, place.path) == 6 &&
			strcmp(place.name, function) == 0;
	while (fgets(line, sizeof(line), f))
		;
	pclose(f);
	assert_true(found);
	return place;
}

static uint64_t nm_address(const char *program, const char *symbol)
{
	char command[512];
	uint64_t address = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm %s/%s | awk '$3 == \"%s\" { print $1 }'", directory,
		 program, symbol);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx", &address), 1);
	pclose(f);
	return address;
}

/*
 * The same, had it been loaded at `bias`: for programs that this kernel may not execute, as those
 * of 32 bits in some virtual machines.
 */
static struct place place_in_file(const char *program, const char *function, uint64_t bias)
{
	struct place place = { .pc = bias + nm_address(program, function) };
	uint64_t address, size;
	char command[512];
	FILE *f;

	snprintf(command, sizeof(command),
		 "readelf -lW %s/%s | awk '$1 == \"LOAD\" && / E / { print $2, $3, $5 }'",
		 directory, program);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx %lx %lx", &place.offset, &address, &size), 3);
	pclose(f);
	place.start = bias + address / 4096 * 4096;
	place.limit = (bias + address + size + 4095) / 4096 * 4096;
	place.offset = place.offset / 4096 * 4096;
	assert_true(snprintf(place.path, sizeof(place.path), "%s/%s", directory, program) <
		    (int)sizeof(place.path));
	return place;
}

static uint32_t add_address(struct profile *p, uint64_t address, uint32_t mapping)
{
	struct profile_labels none = { .comm = "" };
	uint32_t location, labels;
	int64_t one = 1;

	assert_int_equal(profile_add_location(p, address, mapping, &location), 0);
	assert_int_equal(profile_add_labels(p, &none, &labels), 0);
	assert_int_equal(profile_add_sample(p, &location, 1, labels, &one), 0);
	return location;
}

static struct profile *new_profile(void)
{
	struct profile *p = profile_new();

	assert_non_null(p);
	assert_int_equal(profile_add_value_type(p, "samples", "count"), 0);
	return p;
}

/* A profile with one address, that of the function's second byte. */
static struct profile *profile_at(const struct place *place, const char *path)
{
	struct profile *p = new_profile();
	uint32_t image, mapping;

	assert_int_equal(profile_add_image(p, path ? path : place->path, NULL, 0, &image), 0);
	assert_int_equal(
		profile_add_mapping(p, place->start, place->limit, place->offset, image, &mapping),
		0);
	assert_int_equal(add_address(p, place->pc + 1, mapping), 0);
	return p;
}

static const struct profile_function *function_at(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];

	return l->line_count ? &p->functions[p->lines[l->first_line].function] : NULL;
}

static const char *name_at(const struct profile *p, uint32_t location)
{
	const struct profile_function *f = function_at(p, location);

	return f ? f->name : NULL;
}

static void resolve(struct profile *p)
{
	const struct symbol_options o = { .parser = parser };
	struct error e = { 0 };

	assert_int_equal(symbol_resolve(p, &o, &e), 0);
}

static void assert_named(struct profile *p, const char *name)
{
	resolve(p);
	if (!name_at(p, 0))
		print_message("unnamed: %s\n", p->images[0].unnamed);
	assert_non_null(name_at(p, 0));
	assert_string_equal(name_at(p, 0), name);
	assert_null(p->images[0].unnamed);
	profile_free(p);
}

static void assert_unnamed(struct profile *p, const char *reason)
{
	resolve(p);
	assert_false(profile_is_named(p, 0));
	assert_non_null(p->images[0].unnamed);
	if (!strstr(p->images[0].unnamed, reason))
		assert_string_equal(p->images[0].unnamed, reason);
	profile_free(p);
}

/* The name of a function at that place, and its address in the file. */
static void check_function(const char *program, const char *function, const struct place *place)
{
	struct profile *p = profile_at(place, NULL);

	resolve(p);
	assert_non_null(name_at(p, 0));
	assert_string_equal(name_at(p, 0), function);
	assert_int_equal(p->locations[0].image_address, nm_address(program, function) + 1);
	profile_free(p);
}

static const char *const functions[] = { "quiet", "loud", "outer", "bare", "__twin", "release" };

static void check_program(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		struct place place = address_of(name, functions[i]);

		check_function(name, functions[i], &place);
	}
}

static void check_file(const char *name, uint64_t bias)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		struct place place = place_in_file(name, functions[i], bias);

		check_function(name, functions[i], &place);
	}
}

static void test_pie(void **state)
{
	(void)state;
	build("pie", "-pie -fPIE");
	check_program("pie");
}

static void test_no_pie(void **state)
{
	(void)state;
	build("nopie", "-no-pie -fno-pie");
	check_program("nopie");
}

static void test_static(void **state)
{
	(void)state;
	build("static", "-static");
	check_program("static");
	build("staticpie", "-static-pie -fPIE");
	check_program("staticpie");
}

static void test_32_bit(void **state)
{
	(void)state;
	build("m32", "-m32 -pie -fPIE");
	check_file("m32", 0x56555000);
	build("m32nopie", "-m32 -no-pie -fno-pie");
	check_file("m32nopie", 0);
}

/* Segments whose addresses are not congruent with their offsets, unlike those of GNU ld. */
static void test_other_layouts(void **state)
{
	(void)state;
	build("fixed", "-no-pie -fno-pie -Wl,-Ttext-segment=0x7000000");
	check_program("fixed");
	build("huge", "-pie -fPIE -Wl,-z,max-page-size=0x200000");
	check_program("huge");
	build("joined", "-pie -fPIE -Wl,-z,noseparate-code");
	check_program("joined");
	build("lld", "-pie -fPIE -fuse-ld=lld");
	check_program("lld");
}

static void test_shared_library(void **state)
{
	struct place place;

	(void)state;
	assert_int_equal(shell("gcc -O1 -shared -fPIC -o libwork.so library.c"), 0);
	build("user", "-DLIBRARY -pie -fPIE -L. -lwork -Wl,-rpath,'$ORIGIN'");
	place = address_of("user", "library_work");
	assert_non_null(strstr(place.path, "libwork.so"));
	assert_named(profile_at(&place, NULL), "library_work");
	/* Stripped, it keeps its exported symbols. */
	assert_int_equal(shell("strip libwork.so"), 0);
	place = address_of("user", "library_work");
	assert_named(profile_at(&place, NULL), "library_work");
}

/*
 * A stub that calls a function of a library has no symbol of its own; it gets that function's name.
 */
static void test_plt(void **state)
{
	struct place place = { .start = 0x10000000, .limit = 0x20000000 };
	unsigned long address, offset;
	char line[512], name[65];
	FILE *f;

	(void)state;
	build("plt", "-no-pie -fno-pie -fcf-protection=none -Wl,-z,lazy");
	snprintf(line, sizeof(line),
		 "readelf -SW %s/plt | awk '/ \\.plt /{sub(/.*\\.plt/, \"\"); "
		 "print $2, $3}'",
		 directory);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx %lx", &address, &offset), 2);
	pclose(f);
	snprintf(line, sizeof(line), "objdump -d -j .plt %s/plt | grep -o '[a-z0-9_]*@plt>:'",
		 directory);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%64[^>]", name), 1);
	pclose(f);
	place.pc = place.start + offset + 16 + 6;
	assert_named(profile_at(&place, in_directory("plt")), name);
	/* The common part of all stubs: they jump there until the loader has bound them. */
	place.pc = place.start + offset;
	assert_named(profile_at(&place, in_directory("plt")), "[plt]");
}

/* Reads the offset of .plt in a file that was built. */
static unsigned long plt_offset(const char *name)
{
	unsigned long offset;
	char line[512];
	FILE *f;

	snprintf(line, sizeof(line),
		 "readelf -SW %s/%s | awk '/ \\.plt /{sub(/.*\\.plt/, \"\"); print $3}'", directory,
		 name);
	f = popen(line, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx", &offset), 1);
	pclose(f);
	return offset;
}

/* Every instruction of the stubs, which have four, or six where landing pads may be. */
static void test_plt_of_arm64(void **state)
{
	static const char *const flags[] = {
		"-shared",
		"-pie -mbranch-protection=standard -Wl,-z,force-bti",
	};
	struct place place = { .start = 0x10000000, .limit = 0x20000000 };

	(void)state;
	for (int kind = 0, size = 4; kind < 2; kind++, size = 6) {
		if (shell("echo 'int put(int), other(int); int call(int a) { return put(a) + "
			  "other(a) + a; }' | clang --target=aarch64-linux-gnu -w -O1 -fPIC -x c - "
			  "-fuse-ld=lld -nostdlib "
			  "-Wl,-z,lazy,--unresolved-symbols=ignore-all,-e,call "
			  "%s -o arm64",
			  flags[kind]))
			skip();
		place.pc = place.start + plt_offset("arm64");
		assert_named(profile_at(&place, in_directory("arm64")), "[plt]");
		place.pc += 32;
		for (int i = 0; i < 2 * size; i++, place.pc += 4)
			assert_named(profile_at(&place, in_directory("arm64")),
				     i < size ? "put@plt" : "other@plt");
	}
}

static void test_stripped(void **state)
{
	struct symbol_extent extent = { 0 };
	struct place place;
	struct profile *p;
	struct error e;
	uint64_t start;
	char name[64];

	(void)state;
	build("bare", "-pie -fPIE");
	start = nm_address("bare", "quiet");
	assert_int_equal(shell("strip bare"), 0);
	place = address_of("bare", "quiet");
	assert_unnamed(profile_at(&place, NULL), "stripped: no symbol table");
	/* Named by the beginning of its frame description. */
	p = profile_at(&place, NULL);
	resolve(p);
	snprintf(name, sizeof(name), "bare+0x%jx", (uintmax_t)start);
	assert_string_equal(name_at(p, 0), name);
	assert_int_equal(symbol_extents(p, NULL, &extent, &e), 0);
	assert_int_equal(extent.start, start);
	assert_true(extent.limit > start + 2 && extent.limit < start + 100);
	profile_free(p);
	/* Without one, by the beginning of its code. */
	build("dumb", "-pie -fPIE -fno-asynchronous-unwind-tables");
	start = nm_address("dumb", "quiet");
	assert_int_equal(shell("strip dumb"), 0);
	place = address_of("dumb", "quiet");
	p = profile_at(&place, NULL);
	resolve(p);
	snprintf(name, sizeof(name), "dumb+0x%jx", (uintmax_t)start);
	assert_string_equal(name_at(p, 0), name);
	profile_free(p);
	build("exporting", "-pie -fPIE -rdynamic");
	assert_int_equal(shell("strip exporting"), 0);
	place = address_of("exporting", "quiet");
	assert_unnamed(profile_at(&place, NULL), "stripped: only exported functions have names");
	place = address_of("exporting", "loud");
	assert_named(profile_at(&place, NULL), "loud");
}

/*
 * Assembly without sizes, as in musl: an exported function's name may cover functions behind it
 * that are not exported.
 */
static void test_without_size(void **state)
{
	static const char source[] = ".text\n"
				     ".macro function name\n"
				     ".type \\name, %function\n"
				     "\\name: nop; nop; nop; nop; nop; nop; nop; nop; ret\n"
				     ".endm\n"
				     ".globl described, plain\n"
				     ".cfi_startproc\n"
				     "function described\n"
				     ".cfi_endproc\n"
				     ".cfi_startproc\n"
				     "function hidden_described\n"
				     ".cfi_endproc\n"
				     "function plain\n"
				     "function hidden\n";
	static const struct {
		const char *function;
		unsigned int distance;
		const char *with_table, *stripped;
	} expected[] = {
		{ "described", 4, "described", "described" },
		{ "hidden_described", 4, "hidden_described", NULL },
		{ "plain", 0, "plain", "plain" },
		{ "plain", 4, "plain", "plain+?" },
		{ "hidden", 4, "hidden", "plain+?" },
	};
	char start[64];
	uint64_t addresses[5];

	(void)state;
	write_file("sizeless.s", source, sizeof(source) - 1);
	assert_int_equal(shell("gcc -shared -nostdlib -o sizeless.so sizeless.s"), 0);
	for (size_t i = 0; i < 5; i++)
		addresses[i] = nm_address("sizeless.so", expected[i].function);
	snprintf(start, sizeof(start), "sizeless.so+0x%jx", (uintmax_t)addresses[1]);
	for (int stripped = 0; stripped < 2; stripped++) {
		struct profile *p = new_profile();
		uint32_t image, mapping;

		if (stripped)
			assert_int_equal(shell("strip sizeless.so"), 0);
		assert_int_equal(profile_add_image(p, in_directory("sizeless.so"), NULL, 0, &image),
				 0);
		assert_int_equal(profile_add_mapping(p, 0, UINT64_MAX, 0, image, &mapping), 0);
		p->mappings[mapping].linked = true;
		for (size_t i = 0; i < 5; i++)
			add_address(p, addresses[i] + expected[i].distance, mapping);
		/* Twice: as when top draws again. */
		resolve(p);
		resolve(p);
		for (size_t i = 0; i < 5; i++) {
			assert_string_equal(name_at(p, i), !stripped ? expected[i].with_table
							   : expected[i].stripped
								   ? expected[i].stripped
								   : start);
			assert_int_equal(profile_is_named(p, i), !stripped || i == 0 || i == 2);
		}
		if (stripped)
			assert_non_null(strstr(p->images[0].unnamed, "only exported functions"));
		profile_free(p);
	}
}

/* With a build ID, and by the checksum without one. */
static void check_debug_link(const char *flags)
{
	struct place place;

	build("linked", flags);
	assert_int_equal(shell("objcopy --only-keep-debug linked linked.debug && strip linked && "
			       "objcopy --add-gnu-debuglink=linked.debug linked"),
			 0);
	place = address_of("linked", "quiet");
	assert_named(profile_at(&place, NULL), "quiet");
	assert_int_equal(shell("mkdir -p .debug && mv linked.debug .debug/"), 0);
	assert_named(profile_at(&place, NULL), "quiet");
	/* A debug file of another build is not used. */
	assert_int_equal(shell("gcc -O2 -DOTHER -Wl,--build-id=0x12345678 -o other program.c && "
			       "objcopy --only-keep-debug other .debug/linked.debug"),
			 0);
	assert_unnamed(profile_at(&place, NULL), "stripped: no symbol table");
	assert_int_equal(shell("rm .debug/linked.debug"), 0);
	assert_unnamed(profile_at(&place, NULL), "stripped: no symbol table");
}

static void test_debug_link(void **state)
{
	(void)state;
	check_debug_link("-pie -fPIE -Wl,--build-id=sha1");
	check_debug_link("-pie -fPIE -Wl,--build-id=none");
}

static void test_mini_debuginfo(void **state)
{
	struct place place;

	(void)state;
	build("mini", "-pie -fPIE -rdynamic");
	if (shell("objcopy --only-keep-debug mini mini.sym && xz -k mini.sym && strip mini && "
		  "objcopy --add-section .gnu_debugdata=mini.sym.xz mini"))
		skip();
	place = address_of("mini", "quiet");
	assert_named(profile_at(&place, NULL), "quiet");
	place = address_of("mini", "loud");
	assert_named(profile_at(&place, NULL), "loud");
}

/* 300 MB of zeros in 45 KB of xz, more than UNPACKED_MAX: refused. */
static void test_mini_debuginfo_bomb(void **state)
{
	struct place place;

	(void)state;
	build("bomb", "-pie -fPIE");
	if (shell("head -c 300000000 /dev/zero | xz -0 > bomb.xz && strip bomb && "
		  "objcopy --add-section .gnu_debugdata=bomb.xz bomb"))
		skip();
	place = address_of("bomb", "quiet");
	assert_unnamed(profile_at(&place, NULL), "stripped: no symbol table");
}

static void test_replaced(void **state)
{
	struct place place;
	struct profile *p;

	(void)state;
	build("first", "-pie -fPIE -Wl,--build-id=0x0102030405060708");
	place = address_of("first", "loud");
	p = profile_at(&place, NULL);
	resolve(p);
	assert_string_equal(name_at(p, 0), "loud");
	assert_int_equal(p->images[0].build_id_size, 8);
	assert_memory_equal(p->images[0].build_id, "\1\2\3\4\5\6\7\10", 8);
	profile_free(p);

	p = profile_at(&place, NULL);
	p->images[0].build_id_size = 8;
	memcpy(p->images[0].build_id, "\1\2\3\4\5\6\7\11", 8);
	assert_unnamed(p, "another file has its path here (build ID differs)");
}

static void test_deleted(void **state)
{
	struct place place;
	struct profile *p;
	char path[600];

	(void)state;
	build("gone", "-pie -fPIE -Wl,--build-id=0x0102030405060708");
	place = address_of("gone", "loud");
	snprintf(path, sizeof(path), "%s (deleted)", in_directory("gone"));

	/* The same build was installed again: it serves for the deleted file. */
	p = profile_at(&place, path);
	p->images[0].build_id_size = 8;
	memcpy(p->images[0].build_id, "\1\2\3\4\5\6\7\10", 8);
	assert_named(p, "loud");
	/* Unknown without a build ID. */
	assert_unnamed(profile_at(&place, path), "file deleted");

	p = profile_at(&place, path);
	p->images[0].fd = open(in_directory("gone"), O_RDONLY | O_CLOEXEC);
	assert_true(p->images[0].fd >= 0);
	assert_int_equal(unlink(in_directory("gone")), 0);
	resolve(p);
	assert_string_equal(name_at(p, 0), "loud");
	assert_int_not_equal(fcntl(p->images[0].fd, F_GETFD), -1);
	profile_free(p);

	assert_unnamed(profile_at(&place, path), "file deleted");
	assert_unnamed(profile_at(&place, NULL), "no such file");
}

static void test_no_program(void **state)
{
	struct place place = { .pc = 0x10100, .start = 0x10000, .limit = 0x20000 };

	(void)state;
	assert_unnamed(profile_at(&place, in_directory("program.c")), "not an ELF file");
	write_file("empty", "", 0);
	assert_unnamed(profile_at(&place, in_directory("empty")), "not an ELF file");
	assert_unnamed(profile_at(&place, directory), "not a regular file");
	assert_int_equal(mkfifo(in_directory("fifo"), 0600), 0);
	assert_unnamed(profile_at(&place, in_directory("fifo")), "not a regular file");
	assert_unnamed(profile_at(&place, "/dev/null"), "not a regular file");
	assert_int_equal(shell("gcc -c program.c -o object.o"), 0);
	assert_unnamed(profile_at(&place, in_directory("object.o")), "neither an ELF program");
	assert_unnamed(profile_at(&place, "[heap]"), "anonymous memory (JIT or generated code)");
	assert_unnamed(profile_at(&place, "//anon"), "anonymous memory (JIT or generated code)");
	assert_unnamed(profile_at(&place, "/memfd:jit (deleted)"), "anonymous memory");
	assert_unnamed(profile_at(&place, "[vdso32]"), "vdso of another process");
}

static void test_not_permitted(void **state)
{
	struct place place;
	int status;
	pid_t child;

	(void)state;
	build("secret", "-pie -fPIE");
	place = address_of("secret", "loud");
	assert_int_equal(chmod(in_directory("secret"), 0), 0);
	child = fork();
	if (child == 0) {
		struct profile *p = profile_at(&place, NULL);
		struct error e;

		/* Root may read all files: become the user nobody, in a directory open to all. */
		if (chmod(directory, 0755) || (geteuid() == 0 && (setgid(65534) || setuid(65534))))
			_exit(2);
		_exit(symbol_resolve(p, NULL, &e) || !p->images[0].unnamed ||
		      strcmp(p->images[0].unnamed, "not permitted") != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The vDSO is a copy in a memfd. */
static void test_vdso(void **state)
{
	struct place place = { .path = "[vdso]" };
	FILE *maps = fopen("/proc/self/maps", "r");
	struct profile *p;
	char line[512];

	(void)state;
	assert_non_null(maps);
	while (!place.start && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%lx-%lx", &place.start, &place.limit);
	fclose(maps);
	if (!place.start)
		skip();
	p = new_profile();
	uint32_t image, mapping;
	assert_int_equal(profile_add_image(p, "[vdso]", NULL, 0, &image), 0);
	assert_int_equal(profile_add_mapping(p, place.start, place.limit, 0, image, &mapping), 0);
	p->images[0].fd = memfd_create("vdso", MFD_CLOEXEC);
	assert_true(p->images[0].fd >= 0);
	assert_true(write(p->images[0].fd, (void *)place.start, place.limit - place.start) > 0);
	for (uint64_t pc = place.start; pc < place.limit; pc += 16)
		add_address(p, pc, mapping);
	resolve(p);

	bool found = false;
	for (uint32_t i = 0; i < p->location_count; i++)
		found |= name_at(p, i) && strstr(name_at(p, i), "clock_gettime");
	assert_true(found);
	profile_free(p);
}

static void test_cxx(void **state)
{
	struct place place = { .start = 0x555500000000, .limit = 0x555600000000 };
	struct profile *p;

	(void)state;
	if (shell("g++ -O1 -no-pie -fno-pie -Wl,-z,noseparate-code -o shape shape.cc"))
		skip();
	/* One segment from offset 0: the offset is the address less the segment's. */
	place.pc = place.start + nm_address("shape", "_ZN5shape4areaIiEET_S1_S1_") - 0x400000;
	p = profile_at(&place, in_directory("shape"));
	resolve(p);
	assert_non_null(function_at(p, 0));
	assert_string_equal(function_at(p, 0)->name, "int shape::area<int>(int, int)");
	assert_string_equal(function_at(p, 0)->system_name, "_ZN5shape4areaIiEET_S1_S1_");
	assert_string_equal(function_at(p, 0)->file, "");
	profile_free(p);
}

static void assert_demangled(const char *symbol, const char *name)
{
	char *text = demangle(symbol);

	if (!name) {
		assert_null(text);
		return;
	}
	assert_non_null(text);
	assert_string_equal(text, name);
	free(text);
}

static void test_demangle(void **state)
{
	(void)state;
	assert_demangled("main", NULL);
	assert_demangled("", NULL);
	assert_demangled("_", NULL);
	assert_demangled("_Z", NULL);
	assert_demangled("_ZN", NULL);
	assert_demangled("_start", NULL);
	assert_demangled("_D", NULL);
	assert_demangled("_ZN3foo3barEv", "foo::bar()");
	assert_demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
			 "core::fmt::Write::write_fmt");
	assert_demangled("_RNvC6_123foo3bar", "123foo::bar");
	assert_demangled("_D3std5stdio4File5closeMFZv", "std.stdio.File.close()");
	assert_demangled("_Dmain", "D main");
}

/* Names that would expand without end, or overflow the stack. */
static void test_demangle_hostile(void **state)
{
	static char name[100000];
	char *end = stpcpy(name, "_Z1f");

	(void)state;
	end = stpcpy(end, "St4pairIiiE");
	for (int i = 0; i < 40; i++)
		end += sprintf(end, "S_IS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36],
			       "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	free(demangle(name));
	for (size_t size = 100; size < sizeof(name); size = size * 3 / 2) {
		static const char *const fillers[] = { "P", "N1a", "I1a", "FvP",
						       "X", "cv",  "S_",  "L" };

		for (size_t f = 0; f < sizeof(fillers) / sizeof(*fillers); f++) {
			end = stpcpy(name, "_Z1f");
			while (end < name + size - 4)
				end = stpcpy(end, fillers[f]);
			free(demangle(name));
			name[1] = 'R';
			free(demangle(name));
			name[1] = 'D';
			name[2] = '3';
			free(demangle(name));
		}
	}
}

/*
 * Two images and two copies of one: each is resolved by its own file, the one with most samples
 * first.
 */
static void test_many(void **state)
{
	struct place first, second;
	struct profile *p = new_profile();
	uint32_t image, mapping, again, locations[3];

	(void)state;
	build("one", "-pie -fPIE");
	build("two", "-pie -fPIE -static-pie");
	first = address_of("one", "loud");
	second = address_of("two", "quiet");
	profile_add_image(p, first.path, NULL, 0, &image);
	profile_add_mapping(p, first.start, first.limit, first.offset, image, &mapping);
	profile_add_mapping(p, first.start + (1ULL << 32), first.limit + (1ULL << 32), first.offset,
			    image, &again);
	locations[0] = add_address(p, first.pc, mapping);
	locations[1] = add_address(p, first.pc + (1ULL << 32), again);
	profile_add_image(p, second.path, NULL, 0, &image);
	profile_add_mapping(p, second.start, second.limit, second.offset, image, &mapping);
	locations[2] = add_address(p, second.pc, mapping);
	add_address(p, 0x1234, PROFILE_NONE);
	resolve(p);
	assert_string_equal(name_at(p, locations[0]), "loud");
	assert_string_equal(name_at(p, locations[1]), "loud");
	assert_string_equal(name_at(p, locations[2]), "quiet");
	assert_null(name_at(p, 3));
	profile_free(p);
}

/* --- Kept between calls, and limits --- */

/* Bytes that this process has read since it began. */
static uint64_t bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "r");
	uint64_t bytes = 0;

	if (!f)
		skip();
	assert_int_equal(fscanf(f, "rchar: %lu", &bytes), 1);
	fclose(f);
	return bytes;
}

struct unread {
	size_t count;
	char why[256];
};

static void note_unread(const char *path, const char *why, void *context)
{
	struct unread *unread = context;

	(void)path;
	unread->count++;
	snprintf(unread->why, sizeof(unread->why), "%s", why);
}

/* Resolves as for a window of 5 s. Returns how many bytes were read for it. */
static uint64_t resolve_window(struct profile *p, struct symbol_cache *cache, struct unread *unread)
{
	const struct symbol_options o = {
		.cache = cache,
		.parser = NULL, /* the bytes that this process reads are counted */
		.window_ns = 5000000000,
		.unread = note_unread,
		.context = unread,
	};
	uint64_t before = bytes_read();
	struct error e = { 0 };

	*unread = (struct unread){ 0 };
	assert_int_equal(symbol_resolve(p, &o, &e), 0);
	return bytes_read() - before;
}

/*
 * A profile with an address in every 32 bytes of the code of a file that this process maps, behind
 * its procedure linkage table.
 */
static struct profile *profile_of_code(const char *name, uint64_t *size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, limit, offset;
	struct profile *p = new_profile();
	char line[512], path[256];
	uint32_t image, mapping;
	struct stat status;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %255s", &start, &limit, &offset, path) !=
			    4 ||
		    !strstr(path, name))
			continue;
		assert_int_equal(stat(path, &status), 0);
		*size = status.st_size;
		assert_int_equal(profile_add_image(p, path, NULL, 0, &image), 0);
		assert_int_equal(profile_add_mapping(p, start, limit, offset, image, &mapping), 0);
		for (uint64_t at = start + 4096; at < limit; at += 32)
			add_address(p, at, mapping);
	}
	fclose(maps);
	assert_true(p->location_count > 1000);
	return p;
}

/* What is kept gives the same names, and no table is read again. */
static void check_kept(const char *name)
{
	struct symbol_cache *cache = symbol_cache_new();
	uint64_t size, first, second;
	struct profile *plain = profile_of_code(name, &size), *once = profile_of_code(name, &size),
		       *again = profile_of_code(name, &size);
	struct unread unread;

	assert_non_null(cache);
	resolve(plain);
	first = resolve_window(once, cache, &unread);
	assert_int_equal(unread.count, 0);
	second = resolve_window(again, cache, &unread);
	assert_int_equal(unread.count, 0);
	for (uint32_t i = 0; i < plain->location_count; i++) {
		const char *expected = name_at(plain, i);

		assert_string_equal(name_at(once, i) ?: "", expected ?: "");
		assert_string_equal(name_at(again, i) ?: "", expected ?: "");
	}
	assert_string_equal(once->images[0].unnamed ?: "", plain->images[0].unnamed ?: "");
	assert_string_equal(again->images[0].unnamed ?: "", plain->images[0].unnamed ?: "");
	print_message("%s: read %lu bytes, then %lu\n", name, first, second);
	assert_true(second < first / 4 && second < 64 * 1024);
	profile_free(plain);
	profile_free(once);
	profile_free(again);
	symbol_cache_free(cache);
}

static void test_kept(void **state)
{
	(void)state;
	check_kept("/test_symbol"); /* with .symtab */
	check_kept("/libc.so");	    /* stripped: exported symbols, and call frame information */
}

/* A file that was written to is read again, although its name and inode are the same. */
static void test_kept_until_changed(void **state)
{
	struct symbol_cache *cache = symbol_cache_new();
	struct unread unread;
	struct profile *p;
	struct place place;

	(void)state;
	build("changes", "-no-pie");
	place = address_of("changes", "loud");
	assert_int_equal(shell("cp changes program"), 0);
	for (int i = 0; i < 2; i++) {
		p = profile_at(&place, in_directory("program"));
		resolve_window(p, cache, &unread);
		assert_string_equal(name_at(p, 0), i ? "renamed" : "loud");
		profile_free(p);
		assert_int_equal(shell("objcopy --redefine-sym loud=renamed changes changed && "
				       "cat changed >program"),
				 0);
	}
	symbol_cache_free(cache);
}

/* Makes the symbol table of a copy of a program `mib` MiB of null symbols, which take no space. */
static void make_sparse(const char *program, const char *copy, uint64_t mib)
{
	uint64_t offset;
	Elf64_Ehdr header;
	Elf64_Shdr section;
	struct stat status;
	int fd;

	assert_int_equal(shell("cp %s %s", program, copy), 0);
	fd = open(in_directory(copy), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (size_t i = 0; i < header.e_shnum; i++) {
		offset = header.e_shoff + i * sizeof(section);
		assert_int_equal(pread(fd, &section, sizeof(section), offset), sizeof(section));
		if (section.sh_type != SHT_SYMTAB)
			continue;
		section.sh_offset = (status.st_size + 4095) / 4096 * 4096;
		section.sh_size = (mib << 20) / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
		assert_int_equal(pwrite(fd, &section, sizeof(section), offset), sizeof(section));
		assert_int_equal(ftruncate(fd, section.sh_offset + section.sh_size), 0);
	}
	close(fd);
}

static void test_too_large(void **state)
{
	struct symbol_cache *cache = symbol_cache_new();
	struct unread unread;
	struct profile *p;
	struct place place;
	uint64_t first, second;

	(void)state;
	build("honest", "-no-pie");
	place = address_of("honest", "loud");
	make_sparse("honest", "sparse", 1000);
	p = profile_at(&place, in_directory("sparse"));
	first = resolve_window(p, cache, &unread);
	assert_null(name_at(p, 0));
	assert_int_equal(unread.count, 1);
	assert_non_null(strstr(unread.why, "not read: its symbols take more than 0.25 s of CPU"));
	assert_string_equal(p->images[0].unnamed, unread.why);
	assert_true(first < (uint64_t)600 << 20);
	second = resolve_window(p, cache, &unread);
	assert_int_equal(unread.count, 1);
	assert_non_null(strstr(unread.why, "not read: its symbols take more than 0.25 s of CPU"));
	assert_string_equal(p->images[0].unnamed, unread.why);
	print_message("read %lu bytes, then %lu\n", first, second);
	assert_true(second < 64 * 1024);
	profile_free(p);
	symbol_cache_free(cache);
}

/* Keeps symbols that take about `kib` KiB for a file of a user. */
static void keep(struct file_cache *cache, ino_t inode, uid_t user, size_t kib)
{
	const struct file_key key = { .inode = inode, .user = user };
	struct kept_file *file = file_cache_get(cache, &key);
	struct kept_symbols symbols = { 0 };
	char name[977];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_non_null(file);
	for (size_t i = 0; i < kib; i++)
		file_cache_add(&symbols, &(struct cover_symbol){ .start = i, .name = name });
	file_cache_keep_symbols(cache, file, &symbols);
	kept_symbols_free(&symbols);
}

static bool is_kept(struct file_cache *cache, ino_t inode, uid_t user)
{
	const struct file_key key = { .inode = inode, .user = user };

	return file_cache_get(cache, &key)->has_symbols;
}

/* One user's files push out his own only, and too large a file none. */
static void test_kept_shares(void **state)
{
	struct file_cache *cache = file_cache_new();
	size_t kept = 0;

	(void)state;
	keep(cache, 1, 0, 1000);
	keep(cache, 2, 4002, 1000);
	for (ino_t inode = 100; inode < 150; inode++)
		keep(cache, inode, 4001, 1000);
	assert_true(is_kept(cache, 1, 0));
	assert_true(is_kept(cache, 2, 4002));
	assert_true(is_kept(cache, 149, 4001));
	for (ino_t inode = 149; inode >= 100 && is_kept(cache, inode, 4001); inode--)
		kept++;
	assert_in_range(kept, 4, 8); /* of 8 MiB */
	keep(cache, 3, 0, 10000);
	assert_false(is_kept(cache, 3, 0));
	assert_true(is_kept(cache, 1, 0));
	/* Any number of empty ones */
	for (ino_t inode = 1000; inode < 10000; inode++)
		keep(cache, inode, 4001, 0);
	assert_true(is_kept(cache, 1, 0));
	assert_true(is_kept(cache, 2, 4002));
	file_cache_free(cache);
}

static void add_file(struct profile *p, const struct place *place, const char *name, uid_t owner)
{
	uint32_t image, mapping;
	struct stat status;

	assert_int_equal(stat(in_directory(name), &status), 0);
	if (status.st_uid != owner) /* else it would be another file to the cache */
		assert_int_equal(chown(in_directory(name), owner, owner), 0);
	profile_add_image(p, in_directory(name), NULL, 0, &image);
	profile_add_mapping(p, place->start, place->limit, place->offset, image, &mapping);
	add_address(p, place->pc + 1, mapping);
}

/* Whatever files one user has: those of root and of others are read in the same window. */
static void test_shares(void **state)
{
	struct symbol_cache *cache = symbol_cache_new();
	struct unread unread;
	struct place place;
	uint64_t bytes;
	char name[32];

	(void)state;
	if (geteuid())
		skip();
	build("honest", "-no-pie");
	place = address_of("honest", "loud");
	assert_int_equal(shell("cp honest of_root && cp honest of_other"), 0);
	for (size_t window = 0; window < 12; window++) {
		struct profile *p = new_profile();

		for (int i = 0; i < 12; i++) {
			snprintf(name, sizeof(name), "sparse%d", i);
			if (!window)
				make_sparse("honest", name, 500);
			add_file(p, &place, name, 4001);
		}
		add_file(p, &place, "of_root", 0);
		add_file(p, &place, "of_other", 4002);
		bytes = resolve_window(p, cache, &unread);
		assert_int_equal(unread.count, 12);
		assert_string_equal(name_at(p, 12), "loud");
		assert_string_equal(name_at(p, 13), "loud");
		assert_true(bytes < (uint64_t)300 << 20);
		profile_free(p);
	}
	assert_true(bytes < 64 * 1024); /* all of them have been tried, and are not again */
	symbol_cache_free(cache);
}

static bool stop_at_once(void *context)
{
	++*(int *)context;
	return true;
}

static void test_stop(void **state)
{
	struct error e = { 0 };
	struct profile *p;
	struct place place;
	int asked = 0;
	struct symbol_options stopping = { .stop = stop_at_once, .context = &asked };

	(void)state;
	build("stop", "-pie -fPIE");
	place = address_of("stop", "loud");
	p = profile_at(&place, NULL);
	assert_int_equal(symbol_resolve(p, &stopping, &e), 0);
	assert_int_equal(asked, 1);
	assert_null(name_at(p, 0));
	assert_null(p->images[0].unnamed);
	resolve(p);
	assert_string_equal(name_at(p, 0), "loud");
	profile_free(p);
}

/* A location with a name keeps it, and its address in the image is set nevertheless. */
static void test_named_before(void **state)
{
	struct profile_function f = { .name = "mine", .system_name = "mine", .file = "" };
	struct profile_line line = { 0 };
	struct profile *p, *unnamed;
	struct place place;

	(void)state;
	build("named", "-no-pie");
	place = address_of("named", "loud");
	unnamed = profile_at(&place, NULL);
	resolve(unnamed);
	p = profile_at(&place, NULL);
	assert_int_equal(profile_add_function(p, &f, &line.function), 0);
	assert_int_equal(profile_set_lines(p, 0, &line, 1), 0);
	resolve(p);
	assert_string_equal(name_at(p, 0), "mine");
	assert_int_equal(p->locations[0].image_address, unnamed->locations[0].image_address);
	assert_int_equal(p->locations[0].image_address, p->locations[0].address);
	assert_true(p->images[0].text_size != 0);
	profile_free(unnamed);
	profile_free(p);
}

/* The extent of a function equals that of nm. */
static void test_extents(void **state)
{
	struct symbol_extent extents[2] = { 0 };
	struct error e = { 0 };
	struct profile *p;
	struct place place;
	bool wanted[2] = { true, false };

	(void)state;
	build("extents", "-no-pie");
	place = address_of("extents", "loud");
	p = profile_at(&place, NULL);
	add_address(p, place.pc + 2, 0);
	assert_int_equal(symbol_extents(p, wanted, extents, &e), 0);
	assert_int_equal(extents[0].start, place.pc);
	assert_true(extents[0].limit > place.pc + 2 && extents[0].limit < place.pc + 100);
	assert_int_equal(extents[1].limit, 0);
	assert_int_equal(symbol_extents(p, NULL, extents, &e), 0);
	assert_int_equal(extents[1].start, place.pc);
	assert_null(p->images[0].unnamed);
	assert_null(name_at(p, 0));
	profile_free(p);
}

static void test_kernel(void **state)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long address = 0;
	char line[512], symbol[256] = "", type;
	struct profile *p;
	uint32_t image, mapping;

	(void)state;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %c %255s", &address, &type, symbol) == 3 &&
		    strcmp(symbol, "schedule") == 0)
			break;
	if (f)
		fclose(f);
	if (strcmp(symbol, "schedule") != 0 || !address)
		skip();
	p = new_profile();
	profile_add_image(p, "[kernel.kallsyms]", NULL, 0, &image);
	profile_add_mapping(p, 0xffff800000000000ULL, UINT64_MAX, 0, image, &mapping);
	add_address(p, address + 5, mapping);
	add_address(p, address + 6, PROFILE_NONE);
	resolve(p);
	assert_string_equal(name_at(p, 0), "schedule");
	assert_string_equal(name_at(p, 1), "schedule");
	assert_true(p->locations[0].image_address == address + 5);
	profile_free(p);
}

static void check_kallsyms(const char *text, const char *const names[3], const char *why)
{
	struct profile *p = new_profile();
	struct batch_address addresses[3];
	struct batch b = { .p = p, .addresses = addresses, .count = 3, .image = PROFILE_NONE };

	write_file("kallsyms", text, strlen(text));
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t address = 0xffffffff81000010ULL + 0x100 * (2 - i);

		addresses[i] = (struct batch_address){ .address = address };
		addresses[i].location = add_address(p, address, PROFILE_NONE);
	}
	assert_int_equal(kallsyms_resolve_from(&b, in_directory("kallsyms")), 0);
	for (uint32_t i = 0; i < 3; i++) {
		if (names[i])
			assert_string_equal(name_at(p, i), names[i]);
		else
			assert_null(name_at(p, i));
	}
	assert_non_null(strstr(b.why.what, why));
	profile_free(p);
}

static void test_kallsyms_text(void **state)
{
	static const char *const named[] = { "in_module", NULL, "plain" };
	static const char *const unnamed[] = { NULL, NULL, NULL };

	(void)state;
	check_kallsyms("ffffffff81000000 t __plain\n"
		       "ffffffff81000000 t plain\n"
		       "ffffffff81000000 T _stext\n"
		       "ffffffff81000100 D data\n"
		       "ffffffff81000200 t in_module\t[some]\n"
		       "ffffffff81000300 t next\t[some]\n",
		       (const char *const[]){ "in_module", NULL, "_stext" }, "no kernel symbol");
	check_kallsyms("ffffffff81000200 t in_module\t[some]\n"
		       "ffffffff81000000 t __plain\n"
		       "ffffffff81000000 t plain\n"
		       "ffffffff81000100 b data\n",
		       named, "no kernel symbol");
	check_kallsyms("0000000000000000 T _stext\n0000000000000000 t plain\n", unnamed,
		       "kptr_restrict");
	check_kallsyms("", unnamed, "kptr_restrict");
	check_kallsyms("nonsense\n\n zz\nffffffff81000000", unnamed, "kptr_restrict");
	/* Nothing for a megabyte before it. */
	check_kallsyms("ffffffff80000000 T far\n", unnamed, "no kernel symbol");
}

/* Any result is accepted, but no crash. */
static void resolve_bytes(const char *bytes, size_t size, const struct place *place)
{
	struct profile *p = new_profile();
	uint32_t image, mapping;

	profile_add_image(p, in_directory("broken"), NULL, 0, &image);
	profile_add_mapping(p, place->start, place->limit, place->offset, image, &mapping);
	for (uint64_t pc = place->pc - 64; pc < place->pc + 256; pc += 8)
		add_address(p, pc, mapping);
	p->images[0].fd = memfd_create("broken", MFD_CLOEXEC);
	assert_true(p->images[0].fd >= 0);
	assert_int_equal(write(p->images[0].fd, bytes, size), size);
	resolve(p);
	for (uint32_t i = 0; i < p->location_count; i++)
		assert_true(name_at(p, i) || p->images[0].unnamed);
	profile_free(p);
}

/* PROFIL_TEST_THOROUGH=1: every truncation and many more flipped bits. */
static void check_damaged(const char *name, const struct place *place)
{
	bool thorough = getenv("PROFIL_TEST_THOROUGH") != NULL;
	char *bytes;
	size_t size = read_bytes(name, &bytes);

	for (size_t cut = 0; cut < size; cut += thorough ? 1 : 37)
		resolve_bytes(bytes, cut, place);
	srandom(1);
	for (int i = 0; i < (thorough ? 60000 : 2000); i++) {
		size_t flips = 1 + random() % 4, at[4];

		for (size_t j = 0; j < flips; j++) {
			/* The headers at both ends do most damage. */
			size_t range = random() % 2 ? size : 1024;

			at[j] = random() % range;
			if (random() % 3 == 0)
				at[j] = size - 1 - at[j];
			bytes[at[j]] ^= 1 << (random() % 8);
		}
		resolve_bytes(bytes, size, place);
		for (size_t j = 0; j < flips; j++)
			bytes[at[j]] = bytes[at[j]] ^ (i % 2 ? 0xff : 0);
	}
	free(bytes);
}

static void test_damaged(void **state)
{
	struct place place;

	(void)state;
	build("small", "-pie -fPIE -s -rdynamic -Wl,-z,noseparate-code");
	place = address_of("small", "loud");
	check_damaged("small", &place);
	build("small", "-pie -fPIE -Wl,-z,noseparate-code");
	place = address_of("small", "loud");
	check_damaged("small", &place);
	if (shell("objcopy --only-keep-debug small small.sym && xz -kf small.sym && strip small && "
		  "objcopy --add-section .gnu_debugdata=small.sym.xz small && touch small.debug && "
		  "objcopy --add-gnu-debuglink=small.debug small"))
		return;
	check_damaged("small", &place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pie),
		cmocka_unit_test(test_no_pie),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_32_bit),
		cmocka_unit_test(test_other_layouts),
		cmocka_unit_test(test_shared_library),
		cmocka_unit_test(test_without_size),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_plt_of_arm64),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_debug_link),
		cmocka_unit_test(test_mini_debuginfo),
		cmocka_unit_test(test_mini_debuginfo_bomb),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_not_permitted),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_demangle),
		cmocka_unit_test(test_demangle_hostile),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_named_before),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_kept_until_changed),
		cmocka_unit_test(test_kept_shares),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kallsyms_text),
		cmocka_unit_test(test_damaged),
	};

	/* Each test twice, in one group: TAP has one plan. */
	struct CMUnitTest both[2 * sizeof(tests) / sizeof(tests[0])];
	char names[sizeof(tests) / sizeof(tests[0])][64];
	const size_t n = sizeof(tests) / sizeof(tests[0]);

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s, with a parser", tests[i].name);
		both[i] = both[n + i] = tests[i];
		both[n + i].name = names[i];
	}
	both[n].setup_func = start_parser;
	return cmocka_run_group_tests(both, setup, teardown);
}
