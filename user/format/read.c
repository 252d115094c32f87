// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fts.h>
#include <regex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/format.h"
#include "profile/merge.h"
#include "util/elf_header.h"
#include "util/sum.h"

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
} text_kinds[] = {
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
	size = MIN(size, LINE_MAX_SIZE - 1);
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
	for (size_t i = 0; i < sizeof(text_kinds) / sizeof(*text_kinds); i++)
		if (has_word(in, text_kinds[i].word) && first_line_is(in, text_kinds[i].line))
			return &text_kinds[i].foreign;
	return NULL;
}

/* For a file of no kind that is known: that it is text, if it is; else NULL. */
static const struct foreign *foreign_text(const struct input *in)
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

/* Sets e to what the file is, with the hint. Returns -EINVAL. */
static int foreign_error(const struct foreign *foreign, const struct input *in, struct error *e)
{
	const char *place = strstr(foreign->hint, "%s");
	struct word path, packed;
	bool known = strcmp(in->path, INPUT_STDIN) != 0; /* a name for messages, not for commands */
	bool runs = foreign == &elf_program;
	size_t size = strlen(in->path);
	bool cut = in->inflated && known && format_is_gzip_path(in->path);

	error_set(e, 0, "%s is %s", in->path, foreign->what);
	if (!place)
		return error_hint(e, "%s", foreign->hint);
	/* Other programs do not inflate: packed is the file, path the name to inflate it to. */
	if (known)
		quote(&packed, in->path, size, false);
	else
		quote(&packed, MAGIC("FILE" FORMAT_GZIP), false);
	if (known && (cut || !in->inflated))
		quote(&path, in->path, size - (cut ? strlen(FORMAT_GZIP) : 0), runs);
	else
		quote(&path, MAGIC(any_file), false);
	return error_hint(e, "%s%s%s%s%s%.*s%s%s", in->inflated ? "gzip -dc " : "",
			  in->inflated ? packed.text : "", in->inflated ? " >" : "",
			  in->inflated ? path.text : "", in->inflated ? ", then: " : "",
			  (int)(place - foreign->hint), foreign->hint, path.text,
			  place + strlen("%s"));
}

/* --- One file --- */

static bool is_folded(const struct format *format)
{
	return strcmp(format->name, "folded") == 0;
}

/* The format of an input, or NULL. Nearly any text could be folded stacks: more of it is judged. */
static const struct format *detect(struct input *in)
{
	const struct format *format = format_detect(in);
	struct error ignored; /* the reader meets it again */

	if (format && !is_folded(format))
		return format;
	input_need(in, FOREIGN_WINDOW, &ignored);
	return format_detect(in);
}

static int unknown_format(struct input *in, struct error *e)
{
	const struct format *named = format_by_extension(in->path);
	const struct foreign *foreign = foreign_detect(in);
	char names[256] = "";

	if (!foreign && named && !named->read) {
		error_set(e, 0, "%s is by its name a file of the format %s, which is only written",
			  in->path, named->name);
		return error_hint(e, "give the profile that it was written from");
	}
	foreign = foreign ?: foreign_text(in);
	if (foreign)
		return foreign_error(foreign, in, e);
	for (const struct format *const *f = format_all; *f; f++)
		if ((*f)->read)
			text_append(names, sizeof(names), ", ", "%s", (*f)->name);
	error_set(e, 0, "%s is not a profile in any supported format", in->path);
	return error_hint(e, "supported formats: %s", names);
}

/* Turns the error into a warning. */
static int note_salvage(const struct input *in, struct profile *p, struct error *e)
{
	p->salvaged = true;
	if (profile_warn(p, "salvaged what comes before this: %s", input_reason(in, e)))
		return error_no_memory(e);
	return 0;
}

static int read_format(const struct format *format, struct input *in, struct profile *p,
		       struct error *e)
{
	int err = format->streams ? 0 : input_need_all(in, e);

	if (err && in->options.salvage && in->size)
		err = note_salvage(in, p, e);
	if (err)
		return err;
	err = format->read(in, p, e);
	if (err == -ENOMEM)
		return error_no_memory(e);
	if (!err || (p->sample_count == 0 && p->arc_count == 0))
		return err;
	if (in->options.salvage && err != -ENOMEM)
		return note_salvage(in, p, e);
	if (err == -EINVAL && p->sample_count && !e->hint[0])
		error_hint(e, "--salvage reads what comes before it");
	return err;
}

/*
 * Budgets of what a file becomes, as of what it inflates to: a minimum, or some times its size if
 * that is more. Files of real programs stay far below.
 * Bound: files: bytes that a file becomes: a minimum, or a multiple of its size, and the same of
 * its samples and frames; then: the file is refused.
 */
#define MEMORY_MIN   ((uint64_t)192 << 20) /* bytes of the profile */
#define MEMORY_TIMES 32
#define FRAMES_MIN   ((uint64_t)16 << 20) /* of all stacks, inlined ones too */
#define FRAMES_TIMES 32
#define TEXT_MIN     ((uint64_t)256 << 20) /* bytes of these frames' names */
#define TEXT_TIMES   256

static uint64_t budget(uint64_t size, uint64_t least, uint64_t times)
{
	return size > least / times ? size * times : least;
}

static int over_budget(const struct input *in, const char *what, struct error *e)
{
	error_set(e, 0,
		  "%s: %s than any profile of its size would: it is corrupt, or made to do harm",
		  in->path, what);
	return error_hint(
		e, "if it is neither, gzip -dc makes it a larger file: the limits grow with it");
}

/*
 * Checks what commands make of the stacks: each of a sample's frames is several where functions are
 * inlined, and each has a name. Returns 0 or -errno with e set.
 */
static int check_stacks(const struct input *in, const struct profile *p, struct error *e)
{
	uint64_t size = input_bytes_read(in), frames = 0, text = 0;
	uint64_t frames_max = budget(size, FRAMES_MIN, FRAMES_TIMES);
	uint64_t text_max = budget(size, TEXT_MIN, TEXT_TIMES);
	uint64_t *names = calloc(p->function_count + 1, sizeof(*names));
	uint64_t *texts = calloc(p->location_count + 1, sizeof(*texts));
	int err = names && texts ? 0 : error_no_memory(e);

	for (size_t i = 0; i < p->function_count && !err; i++)
		names[i] = strlen(p->functions[i].name) + 1;
	for (size_t i = 0; i < p->location_count && !err; i++)
		for (uint32_t j = 0; j < p->locations[i].line_count; j++)
			texts[i] += names[p->lines[p->locations[i].first_line + j].function];
	for (size_t i = 0; i < p->frame_count && !err; i++) {
		frames += p->locations[p->frames[i]].line_count ?: 1;
		add_u64(&text, texts[p->frames[i]]);
		if (frames > frames_max)
			err = over_budget(in, "its stacks have more frames", e);
		else if (text > text_max)
			err = over_budget(in, "its stacks have longer names", e);
	}
	free(names);
	free(texts);
	return err;
}

static int read_input(const struct format *format, struct input *in, struct profile **result,
		      struct error *e)
{
	struct profile *p = profile_new();
	uint64_t size = input_file_size(in);
	int err;

	if (!p)
		return error_no_memory(e);
	if (size)
		p->bytes_max = budget(size, MEMORY_MIN, MEMORY_TIMES);
	err = read_format(format, in, p, e);
	if (p->too_large)
		err = over_budget(in, "takes more memory", e);
	err = err ?: check_stacks(in, p, e);
	p->bytes_max = 0;
	if (err) {
		profile_free(p);
		return err;
	}
	p->format = format->name;
	*result = p;
	return 0;
}

/* --- A directory --- */

/* More than there can be files, as a power of 2 */
#define PARTS 64

/*
 * How many skipped files are named; the warning says how many more there are.
 * Bound: files: skipped files that are named in a warning; then: the warning says how many more
 * there are.
 */
#define NAMED_MAX 10

struct reader {
	const char *path;
	struct input_options options;
	struct error *e;
	/*
	 * What was read: parts[i] is merged from 2^i files, or NULL; those of lower i were read
	 * later. So each file is merged at most PARTS times, however many files there are.
	 */
	struct profile *parts[PARTS];
	struct profile *p;     /* the sum of all parts, in the end; NULL: no file was read */
	struct profile *notes; /* has the warnings about skipped files */
	size_t skipped;
	bool damaged;		 /* at least one skipped file is a profile, or may be one */
	struct error unreadable; /* of the first file that cannot be read; or empty */
	struct hosts hosts;	 /* where the profiles were recorded */
};

/* Skips a file, for the reason in r->e. */
static int skip_file(struct reader *r)
{
	if (r->skipped++ >= NAMED_MAX)
		return 0;
	return profile_warn(r->notes, "not read: %s", r->e->what) ? error_no_memory(r->e) : 0;
}

/*
 * Skips a file that is corrupt, err being -EINVAL, or cannot be read. Without memory returns err.
 */
static int skip_failed(struct reader *r, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err != -EINVAL && !r->unreadable.what[0])
		r->unreadable = *r->e;
	r->damaged = true;
	return skip_file(r);
}

/* Merges *later, if it is not NULL, into parts[i], and moves the sum to *later. */
static int take_part(struct reader *r, size_t i, struct profile **later)
{
	int err = *later ? profile_merge(r->parts[i], *later, NULL, r->e) : 0;

	profile_free(*later);
	*later = r->parts[i];
	r->parts[i] = NULL;
	return err;
}

static int read_file(struct reader *r, const FTSENT *file)
{
	const struct format *format;
	struct profile *p;
	struct input in;
	int err;

	if (file->fts_statp->st_size == 0) {
		error_set(r->e, 0, "%s is empty", file->fts_path);
		return skip_file(r);
	}
	err = input_open(file->fts_path, &r->options, &in, r->e);
	if (err)
		return skip_failed(r, err);
	format = detect(&in);
	/* Here the file's name has to say so, too. */
	if (format && is_folded(format) && !format_matches_path(format, in.path))
		format = NULL;
	if (!format) {
		error_set(r->e, 0, "%s is not a profile", in.path);
		err = skip_file(r);
		goto out;
	}
	err = read_input(format, &in, &p, r->e);
	if (err) {
		err = skip_failed(r, err);
	} else if (hosts_add(&r->hosts, p->host)) {
		profile_free(p);
		err = error_no_memory(r->e);
	} else {
		size_t i = 0;

		for (; r->parts[i] && !err; i++)
			err = take_part(r, i, &p);
		r->parts[i] = p;
	}
out:
	input_close(&in);
	return err;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int read_tree(struct reader *r)
{
	char *const paths[] = { (char *)r->path, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	FTSENT *entry;
	int err = 0;

	if (!tree)
		return error_set(r->e, errno, "cannot read %s", r->path);
	while (!err && (errno = 0, entry = fts_read(tree))) {
		bool hidden = entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.';

		if (hidden && entry->fts_info == FTS_D)
			fts_set(tree, entry, FTS_SKIP);
		if (hidden)
			continue;
		switch (entry->fts_info) {
		case FTS_D:
		case FTS_DP:
			break;
		case FTS_F:
			err = read_file(r, entry);
			break;
		case FTS_DNR:
		case FTS_ERR:
		case FTS_NS:
			err = error_set(r->e, entry->fts_errno, "cannot read %s", entry->fts_path);
			err = skip_failed(r, err);
			break;
		default: /* symbolic links, devices, ... */
			error_set(r->e, 0, "%s is not a regular file", entry->fts_path);
			err = skip_file(r);
		}
	}
	if (!err && errno)
		err = error_set(r->e, errno, "cannot read %s", r->path);
	fts_close(tree);
	for (size_t i = 0; i < PARTS && !err; i++)
		if (r->parts[i])
			err = take_part(r, i, &r->p);
	return err;
}

static int read_directory(const char *path, const struct input_options *options, struct profile **p,
			  struct error *e)
{
	struct reader r = { .path = path, .e = e, .notes = profile_new() };
	int err;

	if (options)
		r.options = *options;
	r.options.ticks = NULL;
	err = r.notes ? read_tree(&r) : error_no_memory(e);

	if (!err && r.p) {
		struct profile *notes = r.notes;
		char hosts[512];

		if (r.skipped > NAMED_MAX)
			err = profile_warn(notes, "not read: %zu more files",
					   r.skipped - NAMED_MAX);
		if (!err && hosts_are_several(&r.hosts, hosts, sizeof(hosts)))
			err = profile_warn(
				notes,
				"it has profiles of several machines, which are added up: %s",
				hosts);
		for (size_t i = 0; i < notes->warning_count && !err; i++)
			err = profile_warn(r.p, "%s", notes->warnings[i]);
		r.p->salvaged |= r.damaged;
		err = err ? error_no_memory(r.e) : 0;
	} else if (!err && r.unreadable.what[0]) {
		*e = r.unreadable;
		err = -EACCES;
	} else if (!err) {
		error_set(e, 0, "%s: there is no profile in this directory", path);
		if (r.skipped)
			error_hint(e, "%s", r.notes->warnings[0]);
		err = -EINVAL;
	}
	for (size_t i = 0; i < PARTS; i++)
		profile_free(r.parts[i]);
	profile_free(r.notes);
	hosts_free(&r.hosts);
	if (err)
		profile_free(r.p);
	else
		*p = r.p;
	return err;
}

int format_read(const char *path, const struct input_options *options, struct profile **p,
		struct error *e)
{
	const struct format *format;
	struct input in;
	int err = input_open(path, options, &in, e);

	if (err == -EISDIR && strcmp(path, "-") != 0)
		return read_directory(path, options, p, e);
	if (err)
		return err;
	format = detect(&in);
	err = format ? read_input(format, &in, p, e) : unknown_format(&in, e);
	input_close(&in);
	return err;
}
