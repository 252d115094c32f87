// SPDX-License-Identifier: GPL-2.0-only
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/executable.h"
#include "tool/tool.h"
#include "util/number.h"

/* Bound: caller: ticks per second; then: the option is refused. */
#define MOST_HZ 100000

#define LIBRARY	     "libprofil.so.1"
#define GMON_LIBRARY "libprofil-gmon.so"

struct run_options {
	const char *hz, *backend, *socket;
	bool strict, quiet, verbose;
};

/* `name`: of the option or variable that has this value. */
static int check_hz(const char *name, const char *value, struct error *e)
{
	uint64_t hz;

	if (number_parse(value, 1, MOST_HZ, &hz) == 0)
		return 0;
	return error_set(e, 0, "%s takes a frequency from 1 to %d Hz, not \"%s\"", name, MOST_HZ,
			 value);
}

static int check_backend(const char *name, const char *value, struct error *e)
{
	static const char *const names[] = { "kmod", "bpf", "daemon", "libc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(value, names[i]) == 0)
			return 0;
	return error_set(e, 0, "%s takes kmod, bpf, daemon or libc, not \"%s\"", name, value);
}

static int parse_hz(const char *value, void *member, struct error *e)
{
	*(const char **)member = value;
	return check_hz("--hz", value, e);
}

static int parse_backend(const char *value, void *member, struct error *e)
{
	*(const char **)member = value;
	return check_backend("--backend", value, e);
}

/* What libprofil takes from the environment, where no option is instead: without a value, its
 * default. */
static int check_variables(const struct run_options *o, struct error *e)
{
	const char *hz = getenv("PROFIL_HZ"), *backend = getenv("PROFIL_BACKEND");
	int err = 0;

	if (!o->hz && hz && *hz)
		err = check_hz("PROFIL_HZ", hz, e);
	if (!err && !o->backend && backend && *backend)
		err = check_backend("PROFIL_BACKEND", backend, e);
	if (err)
		error_hint(e, "unset it, or use the options --hz and --backend");
	return err;
}

#define MEMBER(name) offsetof(struct run_options, name)

static const struct option_spec options[] = {
	{ "hz", 0, "HZ", "ticks per second of CPU time, 1 to 100000 (100)", parse_hz, MEMBER(hz) },
	{ "backend", 0, "kmod|bpf|daemon|libc", "who counts (the first of them that works)",
	  parse_backend, MEMBER(backend) },
	{ "socket", 0, "PATH", "where profild listens (/run/profild/socket)", option_text,
	  MEMBER(socket) },
	{ "strict", 0, NULL, "an error of profil() instead of the C library's signals", NULL,
	  MEMBER(strict) },
	{ "quiet", 'q', NULL, "do not print which back end counts, and how many ticks", NULL,
	  MEMBER(quiet) },
	{ "verbose", 'v', NULL, "print what is preloaded", NULL, MEMBER(verbose) },
	{ 0 },
};

static int check_linked(const struct executable *x, struct error *e)
{
	const char *slash = strrchr(x->interpreter, '/');
	const char *loader = slash ? slash + 1 : x->interpreter;

	if (!*x->interpreter) {
		error_set(e, 0, "%s is statically linked: no library can be loaded into it",
			  x->path);
		error_hint(e, "link it with libprofil.a, named in front of the C library");
		return -ENOEXEC;
	}
	/* The GNU C library's loader is ld-linux-x86-64.so.2, ld64.so.2 or ld.so.1. */
	if (strncmp(loader, "ld-linux", 8) == 0 || strncmp(loader, "ld64.so", 7) == 0 ||
	    strncmp(loader, "ld.so", 5) == 0)
		return 0;
	error_set(e, 0, "%s has another C library, by its loader %s: libprofil needs glibc",
		  x->path, x->interpreter);
	error_hint(e, "build it with glibc, or: profiltool record -- %s", x->path);
	return -ENOEXEC;
}

/*
 * True if a statically linked program contains libprofil.a: if the file has the name of a
 * variable that the library reads. Symbols may be stripped.
 */
static bool has_static_library(const char *path)
{
	static const char name[] = "PROFIL_BACKEND";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[1 << 16];
	size_t kept = 0;
	bool found = false;
	ssize_t size;

	while (fd >= 0 && !found && (size = read(fd, buffer + kept, sizeof(buffer) - kept)) > 0) {
		size_t used = kept + size;

		found = memmem(buffer, used, name, sizeof(name));
		kept = MIN(used, sizeof(name));
		memmove(buffer, buffer + used - kept, kept);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* True if this directory has both libraries, for the program's machine and class. */
static bool has_libraries(const char *directory, const struct executable *program)
{
	char path[PATH_MAX];
	struct executable library;
	struct error ignored;

	if (snprintf(path, sizeof(path), "%s/" GMON_LIBRARY, directory) >= (int)sizeof(path) ||
	    access(path, R_OK))
		return false;
	snprintf(path, sizeof(path), "%s/" LIBRARY, directory);
	return executable_read(path, &library, &ignored) == 0 && library.kind == EXECUTABLE_ELF &&
	       library.class == program->class && library.machine == program->machine;
}

/*
 * Writes the directory of the libraries for a program: below our own directory, so that the build
 * tree and an installed tree both work, or PROFIL_LIBDIR. Returns 0 or -errno with e set.
 */
static int find_libraries(struct executable *program, char directory[PATH_MAX], struct error *e)
{
	static const char *const places[] = {
		"lib",
		"lib32",
		"../lib",
		"../lib32",
		"../lib64",
		"../lib/x86_64-linux-gnu",
		"../lib/aarch64-linux-gnu",
		"../lib/i386-linux-gnu",
	};
	char own[PATH_MAX], path[2 * PATH_MAX];
	struct executable self;
	const char *base;
	bool found = false;

	if (executable_read("/proc/self/exe", &self, e))
		return -ENOENT;
	if (program->kind == EXECUTABLE_UNREADABLE) { /* most likely it is as we are */
		program->class = self.class;
		program->machine = self.machine;
	}
	if (realpath("/proc/self/exe", own)) {
		base = dirname(own);
		for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !found; i++) {
			snprintf(path, sizeof(path), "%s/%s", base, places[i]);
			found = realpath(path, directory) && has_libraries(directory, program);
		}
	}
	if (!found) {
		snprintf(directory, PATH_MAX, "%s", PROFIL_LIBDIR);
		found = has_libraries(directory, program);
	}
	if (found && !strpbrk(directory, " :$"))
		return 0;
	if (found) {
		error_set(e, 0,
			  "libprofil lies in \"%s\", which the loader takes apart at blanks, "
			  "colons and dollars",
			  directory);
		return error_hint(e, "move it, or install it with make install");
	}
	if (program->class == self.class && program->machine == self.machine) {
		error_set(e, 0, "there is no libprofil, neither beside profiltool nor in %s",
			  PROFIL_LIBDIR);
		error_hint(e, "build it with make, or install it with make install");
	} else if (program->machine == EM_386) {
		error_set(e, 0, "%s is a 32-bit program, and there is no libprofil of 32 bits",
			  program->path);
		error_hint(e, "build it with make lib32, or install it with make install-lib32");
	} else {
		error_set(e, 0, "%s is made for another architecture than profiltool",
			  program->path);
		error_hint(e, "use a profiltool that is made for it");
	}
	return -ENOENT;
}

static int set_variable(const char *name, const char *value, struct error *e)
{
	return value && setenv(name, value, 1) ? error_no_memory(e) : 0;
}

static int run_program(int argc, char **argv)
{
	char path[PATH_MAX], directory[PATH_MAX], pid[32], **command;
	struct run_options o = { 0 };
	struct executable program;
	const char *others = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
	bool has_library = false;
	char *preload = NULL, *asan_options = NULL;
	struct error e;
	int err, first, code = tool_options(&run_command, &o, argc, argv, true, &first);

	if (code >= 0)
		return code;
	if (first == argc)
		return tool_misuse("profiltool run -- COMMAND; see profiltool run --help",
				   "run takes a command");
	command = argv + first;
	err = check_variables(&o, &e);
	err = err ?: executable_find(command[0], path, &e);
	err = err ?: executable_read_program(path, &program, &e);
	if (!err && program.privileged) {
		err = error_set(&e, 0,
				"%s gives privileges to who runs it (set-user-ID, set-group-ID or "
				"capabilities): the loader adds no library to it",
				program.path);
		error_hint(&e, "run a copy of it, made with cp, or link it with -lprofil");
	}
	if (!err && program.kind == EXECUTABLE_ELF && !*program.interpreter)
		has_library = has_static_library(program.path);
	if (!err && !has_library)
		err = find_libraries(&program, directory, &e);
	if (!err && !has_library && program.kind == EXECUTABLE_ELF)
		err = check_linked(&program, &e);
	err = err ?: set_variable("PROFIL_HZ", o.hz, &e);
	err = err ?: set_variable("PROFIL_BACKEND", o.backend, &e);
	err = err ?: set_variable("PROFIL_SOCKET", o.socket, &e);
	err = err ?: set_variable("PROFIL_STRICT", o.strict ? "1" : NULL, &e);
	err = err ?: set_variable("PROFIL_VERBOSE", o.quiet ? "0" : "1", &e);
	snprintf(pid, sizeof(pid), "%d", getpid());
	err = err ?: set_variable("PROFIL_RUN", pid, &e);
	/* Libraries that are preloaded already stay, behind ours. */
	if (!err && !has_library &&
	    asprintf(&preload, "%s/" LIBRARY ":%s/" GMON_LIBRARY "%s%s", directory, directory,
		     others && *others ? ":" : "", others ?: "") < 0) {
		preload = NULL;
		err = error_no_memory(&e);
	}
	/*
	 * The address sanitizer's runtime ends programs in which a library is loaded before it. It
	 * has to be the first that defines what both define, which ours and it do not; preloading
	 * it, too, would have it look for leaks in all programs that this one starts. What the user
	 * sets goes before.
	 */
	if (!err && !has_library &&
	    asprintf(&asan_options, "verify_asan_link_order=0%s%s", asan && *asan ? ":" : "",
		     asan ?: "") < 0) {
		asan_options = NULL;
		err = error_no_memory(&e);
	}
	if (preload && o.verbose)
		tool_warn("LD_PRELOAD=%s", preload);
	err = err ?: set_variable("LD_PRELOAD", preload, &e);
	err = err ?: set_variable("ASAN_OPTIONS", asan_options, &e);
	free(preload);
	free(asan_options);
	if (!err) {
		execvp(path, command);
		error_set(&e, errno, "cannot run %s", path);
	}
	return tool_fail(&e);
}

const struct tool_command run_command = {
	.name = "run",
	.arguments = "[OPTION...] -- COMMAND [ARG...]",
	.help = "Runs a program that calls profil(2), or is built with gcc -pg, with libprofil.",
	.purpose = TOOL_RECORD,
	.summary = "a program that calls profil(2) or was built with gcc -pg",
	.options = options,
	.becomes_another = true,
	.run = run_program,
};
