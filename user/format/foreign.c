// SPDX-License-Identifier: GPL-2.0-only
#include "format/foreign.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <regex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "format/format.h"
#include "util/elf_header.h"

/* --- By the first bytes --- */

/* clang-format off */
#define MAGIC(text) text, sizeof(text) - 1

static const struct {
	const char *bytes;
	size_t size;
	struct foreign foreign;
} magics[] = {
	{ MAGIC("2ELIFREP"), { "a recording of perf in the other byte order",
	  "perf script -i %s | profiltool report -" } },
	{ MAGIC("FLR\0"), { "a recording of Java's Flight Recorder",
	  "async-profiler converts it to pprof: jfrconv %s x.pb.gz" } },
	{ MAGIC("JAVA PROFILE 1.0"), { "a heap dump or profile of Java's hprof",
	  "record the running program: profiltool record -g -p PID -o x.pb.gz" } },
	{ MAGIC("\x28\xb5\x2f\xfd"), { "compressed with zstd", "zstd -dc %s | profiltool report -" } },
	{ MAGIC("\xfd" "7zXZ\0"), { "compressed with xz", "xz -dc %s | profiltool report -" } },
	{ MAGIC("BZh"), { "compressed with bzip2", "bzip2 -dc %s | profiltool report -" } },
	{ MAGIC("\x04\x22\x4d\x18"), { "compressed with lz4", "lz4 -dc %s | profiltool report -" } },
	{ MAGIC("PK\x03\x04"), { "a zip archive", "unzip -p %s | profiltool report -" } },
	{ MAGIC("\x17\x08\x44tracing"), { "a trace of ftrace, by trace-cmd: events in time, not samples",
	  "trace-cmd report -i %s prints it; for a profile: profiltool record -g -o x.pb.gz" } },
	{ MAGIC("PERFFILE"), { "a recording of perf in the format of Linux 2.6",
	  "perf script -i %s | profiltool report -" } },
	{ MAGIC("SIMPLEPERF"), { "a report of Android's simpleperf",
	  "pprof_proto_generator.py of simpleperf makes a pprof file of the perf.data that it was made from" } },
	{ MAGIC("\x5e\x97\xca\xfd"), { "a recording of Sysprof",
	  "Sysprof shows it; for a profile: profiltool record -g -o x.pb.gz" } },
	{ MAGIC("\x04\x08{"), { "data that Ruby has dumped, as stackprof does",
	  "stackprof converts its own: stackprof --stackcollapse %s >x.folded" } },
	{ MAGIC("Nettrace"), { "a trace of .NET's runtime (dotnet-trace)",
	  "record the program, started with DOTNET_PerfMapEnabled=1 in its environment: "
	  "profiltool record -g -p PID -o x.pb.gz" } },
};

static const struct foreign elf_program = {
	"an ELF file (a program), not a profile",
	"to profile it: profiltool record -- %s; as the program of a profile: --executable"
};
static const struct foreign elf_object = { "an ELF file (an object file), not a profile", "" };
/* Both are ET_DYN without an interpreter; the dynamic section may be beyond the window. */
static const struct foreign elf_shared = {
	"an ELF file (a shared object or a static-pie program), not a profile", ""
};
static const struct foreign elf_core = { "an ELF file (a core dump), not a profile", "" };

/* --- pprof's text formats, older than profile.proto --- */

static const struct foreign legacy = {
	"a profile in pprof's old text format",
	"go tool pprof -proto -output x.pb.gz %s; of a Go server, ask for it without debug=1"
};

static const char *const legacy_beginnings[] = {
	"heap profile: ", "heapz ", "growthz ", "goroutine profile: total ",
	"threadcreate profile: total ", "--- contention", "--- mutex:", "--- heap", "--- threadz",
	"--- growth", "--- Thread",
};

/* --- JSON --- */

#define PRINTED_FROM "give the profile that it was printed from"

/* Both words are in the window. */
static const struct {
	const char *words[2];
	struct foreign foreign;
} jsons[] = {
	{ { "speedscope.app/file-format-schema", "" }, { "a profile for speedscope",
	  "www.speedscope.app shows it; its writer may support another format: "
	  "py-spy record -f raw writes folded stacks" } },
	{ { "\"callFrame\"", "\"hitCount\"" }, { "a CPU profile of V8 (Node.js, Chrome)",
	  "Chrome's DevTools show it; or record again: "
	  "profiltool record -g -o x.pb.gz -- node --perf-basic-prof PROGRAM" } },
	{ { "\"callFrame\"", "\"selfSize\"" }, { "a heap profile of V8 (Node.js, Chrome)",
	  "Chrome's DevTools show it" } },
	/* hitCount is optional */
	{ { "\"callFrame\"", "\"nodes\"" }, { "a CPU profile of V8 (Node.js, Chrome)",
	  "Chrome's DevTools show it; or record again: "
	  "profiltool record -g -o x.pb.gz -- node --perf-basic-prof PROGRAM" } },
	{ { "\"preprocessedProfileVersion\"", "" }, { "a profile for the Firefox Profiler",
	  "profiler.firefox.com shows it; or record again: profiltool record -g -o x.pb.gz" } },
	{ { "\"meta\"", "\"processType\"" }, { "a profile for the Firefox Profiler",
	  "profiler.firefox.com shows it; or record again: profiltool record -g -o x.pb.gz" } },
	{ { "\"traceEvents\"", "" }, { "a trace for Chrome: events in time, not samples",
	  "ui.perfetto.dev shows it; for a profile: profiltool record -g -o x.pb.gz" } },
	{ { "\"ph\"", "\"ts\"" }, { "a trace for Chrome: events in time, not samples",
	  "ui.perfetto.dev shows it; for a profile: profiltool record -g -o x.pb.gz" } },
	{ { "\"functions\"", "\"self_percent\"" },
	  { "what profiltool report --json prints", PRINTED_FROM } },
	{ { "\"rows\"", "\"self_percent\"" },
	  { "what profiltool report --json prints", PRINTED_FROM } },
	{ { "\"depth\"", "\"total_percent\"" },
	  { "what profiltool report --json prints", PRINTED_FROM } },
	{ { "\"step_s\"", "\"rows\"" }, { "what profiltool report --json prints", PRINTED_FROM } },
	{ { "\"old_samples\"", "\"new_samples\"" },
	  { "what profiltool diff --json prints", PRINTED_FROM } },
	{ { "\"instructions\"", "\"limit\"" },
	  { "what profiltool annotate --json prints", PRINTED_FROM } },
	{ { "\"stacks\"", "\"pcs\"" }, { "what profiltool dump --json prints", PRINTED_FROM } },
	{ { "\"cost_centres\"", "\"rts_arguments\"" }, { "a profile of a program by GHC (Haskell)",
	  "www.speedscope.app shows it" } },
	{ { "\"dhatFileVersion\"", "" }, { "a heap profile of Valgrind's DHAT",
	  "dh_view.html of Valgrind shows it" } },
};

/* --- Text --- */

/*
 * The first line of a table with its banner or without, of sources (-A), or of counts (-C). None
 * ends with a count, as lines of folded stacks do.
 */
#define GPROF_LINE                                                                               \
	"^(Flat profile:|Call graph( \\(explanation follows\\))?|Each sample counts as .* seconds\\.|" \
	"granularity: each sample hit covers .*[a-z]|no time accumulated|"                       \
	"% +cumulative +self[a-z ]*|index +% time +self +children +called +name|"                \
	"[*]{3} File /.*:|[^ ]+:[0-9]+: \\([^ ]+:0x[0-9a-f]+\\) [0-9]+ executions)[[:space:]]*$"

/* Names of Rust begin with '<', too: "<html::Node as Clone>::clone" is none of these. */
#define PAGE_LINE    "^<(!DOCTYPE|!doctype) html|^<html( lang=.*)?>"
#define PICTURE_LINE "^<([?]xml |!DOCTYPE svg|svg .*xmlns)"

static const struct {
	const char *line; /* the first one, as an extended regular expression */
	const char *word; /* which the file has, too */
	struct foreign foreign;
} texts[] = {
	/* What a Go server prints with debug=2, or a program that crashes */
	{ "^goroutine [0-9]+ \\[[^]]*\\]:$", "", { "the text of Go's goroutines, not a profile",
	  "of a Go server, ask for it without debug=2" } },
	{ GPROF_LINE, "",
	  { "the text that gprof prints", "give gprof's input: gmon.out, with --executable" } },
	/* with MALLOC_CONF=prof:true */
	{ "^heap_v2/[0-9]+$", "", { "a heap profile of jemalloc",
	  "jeprof, with the program, converts it: jeprof --collapsed PROGRAM %s >x.folded" } },
	{ PAGE_LINE, "",
	  { "a page for a browser (HTML)", "give the profile that it was made from" } },
	{ PICTURE_LINE, "<svg", { "a picture (SVG)", "give the profile that it was drawn from" } },
	{ "^(Attaching [0-9]+ probes?[.]{3}|@[A-Za-z0-9_]*\\[)$", "@", { "what bpftrace prints",
	  "of a map of stacks, FlameGraph's script makes a profile: "
	  "stackcollapse-bpftrace.pl %s >x.folded" } },
	{ ".*Time and Allocation Profiling Report", "COST CENTRE", {
	  "a profile of a program by GHC (Haskell), as text",
	  "www.speedscope.app shows the JSON that the program writes with +RTS -pj" } },
	{ "^0 .+ [^ ]+:-?[0-9]+$", "\n1 ", { "traces of phpspy",
	  "its own script makes a profile: stackcollapse-phpspy.pl %s >x.folded" } },
	{ "^Profiling information for ", "\n====", { "a report of Tcl's profiler",
	  "it has sums of each procedure, and no samples" } },
	{ ".", "# gawk profile, created ", { "a program with gawk's counts of its statements",
	  "it has no samples; for a profile: profiltool record -g -- gawk -f PROGRAM" } },
	{ "^desc: ", "\ntime_unit: ", { "a heap profile of Valgrind's Massif", "ms_print %s prints it" } },
	{ "^v [0-9a-f]+ [0-9a-f]+$", "\nX ", { "a heap profile of heaptrack",
	  "its own program converts it: heaptrack_print -f %s -F x.folded" } },
};

/* --- Any other text --- */

static const struct foreign text_file = {
	"a text file that is no profile: neither in Callgrind's format nor folded stacks",
	"folded stacks have lines such as main;work 3; "
	"to record a profile: profiltool record -g -o x.pb.gz -- PROGRAM"
};
/* clang-format on */

/*
 * Bound: files: bytes of a line in which another format is recognised; then: the rest is ignored.
 */
#define LINE_MAX_SIZE 512 /* the rest of a longer line is ignored */

static bool begins(const struct input *in, const char *bytes, size_t size)
{
	return in->size >= size && memcmp(in->bytes, bytes, size) == 0;
}

static const struct foreign *detect_elf(const struct input *in)
{
	struct elf_header h;
	uint64_t at;

	if (in->size < EI_NIDENT || !elf_header_read(&h, in->bytes, in->size))
		return NULL;
	switch (h.type) {
	case ET_REL:
		return &elf_object;
	case ET_CORE:
		return &elf_core;
	case ET_DYN:
		/* All program headers of real files are in the window. */
		at = h.segments;
		for (size_t i = 0; i < h.segment_count && at < in->size; i++) {
			if (elf_segment_read(&h, in->bytes + at, in->size - at).type == PT_INTERP)
				return &elf_program;
			at += elf_segment_size(&h);
		}
		return &elf_shared;
	default:
		return &elf_program;
	}
}

static bool has_word(const struct input *in, const char *word)
{
	return memmem(in->bytes, in->size, word, strlen(word));
}

static const struct foreign *detect_json(const struct input *in)
{
	size_t at = 0;

	while (at < in->size && isspace(in->bytes[at]))
		at++;
	if (at == in->size || (in->bytes[at] != '{' && in->bytes[at] != '['))
		return NULL;
	for (size_t i = 0; i < sizeof(jsons) / sizeof(*jsons); i++)
		if (has_word(in, jsons[i].words[0]) && has_word(in, jsons[i].words[1]))
			return &jsons[i].foreign;
	return NULL;
}

/*
 * True if the first line that is neither blank nor a comment, without indentation and cut to
 * LINE_MAX_SIZE, matches an extended regular expression.
 */
static bool first_line_is(const struct input *in, const char *expression)
{
	char line[LINE_MAX_SIZE];
	regex_t pattern;
	bool found;
	const char *at = (const char *)in->bytes, *end = at + in->size, *newline;
	size_t size;

	while (at < end && (*at == '#' || isspace((unsigned char)*at))) {
		newline = *at == '#' ? memchr(at, '\n', end - at) : at;
		at = newline ? newline + 1 : end;
	}
	newline = memchr(at, '\n', end - at);
	size = (newline ?: end) - at;
	size = size < LINE_MAX_SIZE - 1 ? size : LINE_MAX_SIZE - 1;
	memcpy(line, at, size);
	line[size] = '\0';
	if (regcomp(&pattern, expression, REG_EXTENDED | REG_NOSUB))
		return false;
	found = regexec(&pattern, line, 0, NULL, 0) == 0;
	regfree(&pattern);
	return found;
}

const struct foreign *foreign_detect(const struct input *in)
{
	const struct foreign *elf = detect_elf(in), *json;

	if (elf)
		return elf;
	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
		if (begins(in, magics[i].bytes, magics[i].size))
			return &magics[i].foreign;
	for (size_t i = 0; i < sizeof(legacy_beginnings) / sizeof(*legacy_beginnings); i++)
		if (begins(in, legacy_beginnings[i], strlen(legacy_beginnings[i])))
			return &legacy;
	json = detect_json(in);
	if (json)
		return json;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (has_word(in, texts[i].word) && first_line_is(in, texts[i].line))
			return &texts[i].foreign;
	return NULL;
}

const struct foreign *foreign_text(const struct input *in)
{
	for (size_t i = 0; i < in->size; i++)
		if ((in->bytes[i] < ' ' && !isspace(in->bytes[i]) && in->bytes[i] != '\033') ||
		    in->bytes[i] == '\177')
			return NULL;
	return &text_file;
}

/* --- The hint --- */

/* A path as one word for a shell. */
struct word {
	char text[256];
	size_t size;
};

/* Stands for a path that is unknown or too long. */
static const char any_file[] = "FILE";

static void put(struct word *w, const char *text, size_t size)
{
	if (w->size + size < sizeof(w->text))
		memcpy(w->text + w->size, text, size);
	w->size += size;
}

/*
 * Writes the path, or its first `size` bytes, with quotes if need be. runs: it is a command, which
 * without a slash would be searched in PATH.
 */
static void quote(struct word *w, const char *path, size_t size, bool runs)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./:=@%+,-";
	bool quoted = strspn(path, plain) < size;

	w->size = 0;
	put(w, "'", quoted);
	if (*path == '-' || (runs && !memchr(path, '/', size)))
		put(w, "./", 2);
	for (size_t i = 0; i < size; i++)
		if (path[i] == '\'')
			put(w, MAGIC("'\\''"));
		else
			put(w, path + i, 1);
	put(w, "'", quoted);
	if (w->size >= sizeof(w->text)) {
		w->size = 0;
		put(w, MAGIC(any_file));
	}
	w->text[w->size] = '\0';
}

int foreign_error(const struct foreign *foreign, const struct input *in, struct error *e)
{
	const char *place = strstr(foreign->hint, "%s");
	struct word path, packed;
	bool known = strcmp(in->path, INPUT_STDIN) != 0; /* a name for messages, not for commands */
	bool runs = foreign == &elf_program;
	size_t size = strlen(in->path);
	bool cut = in->inflated && known && format_is_gzip_path(in->path);

	error_set(e, 0, "%s is %s", in->path, foreign->what);
	if (!place) {
		error_hint(e, "%s", foreign->hint);
		return -EINVAL;
	}
	/* Other programs do not inflate: packed is the file, path the name to inflate it to. */
	if (known)
		quote(&packed, in->path, size, false);
	else
		quote(&packed, MAGIC("FILE" FORMAT_GZIP), false);
	if (known && (cut || !in->inflated))
		quote(&path, in->path, size - (cut ? strlen(FORMAT_GZIP) : 0), runs);
	else
		quote(&path, MAGIC(any_file), false);
	error_hint(e, "%s%s%s%s%s%.*s%s%s", in->inflated ? "gzip -dc " : "",
		   in->inflated ? packed.text : "", in->inflated ? " >" : "",
		   in->inflated ? path.text : "", in->inflated ? ", then: " : "",
		   (int)(place - foreign->hint), foreign->hint, path.text, place + strlen("%s"));
	return -EINVAL;
}
