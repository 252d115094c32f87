// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "report/web/web.h"
#include "tool/page_server.h"
#include "tool/recording.h"
#include "tool/tool.h"
#include "util/file.h"
#include "util/number.h"

struct web_command_options {
	const char *output;
	const char *earlier; /* path of the profile to compare with */
	const char *title;
	const char *value;
	double code_percent;
	bool no_code, no_sources;
	const char *source_path;
	struct serving {
		bool wanted;
		uint16_t port; /* 0: any */
	} serving;
	struct profile_filter filter;
	struct tool_reading reading;
};

static int take_share(const char *value, void *member, struct error *e)
{
	if (tool_option_percent(value, member, e))
		return error_set(e, 0, "--code takes a percentage from 0 to 100, not \"%s\"",
				 value);
	return 0;
}

static int take_port(const char *value, void *member, struct error *e)
{
	struct serving *serving = member;
	uint64_t port = 0;

	if (value && number_parse(value, 1, UINT16_MAX, &port))
		return error_set(e, 0, "--serve takes a port from 1 to 65535, not \"%s\"", value);
	serving->wanted = true;
	serving->port = port;
	return 0;
}

/* clang-format off */
static const struct option_spec options[] = {
	{ "output", 'o', "PAGE", "write it to PAGE, .html; - is standard output",
	  option_text, offsetof(struct web_command_options, output) },
	{ "serve", 0, "[=PORT]", "show it to a browser on this machine, and print its address",
	  take_port, offsetof(struct web_command_options, serving) },
	{ "diff", 0, "OLD", "compare it with this profile",
	  option_text, offsetof(struct web_command_options, earlier) },
	{ "title", 0, "TEXT", "what stands above it", option_text,
	  offsetof(struct web_command_options, title) },
	{ "value", 0, "TYPE", "what is shown first, when there are several: an event, cpu, ...",
	  option_text, offsetof(struct web_command_options, value) },
	{ "code", 0, "PERCENT",
	  "with the code of functions that have this share of the samples (1), in what they call, too",
	  take_share, offsetof(struct web_command_options, code_percent) },
	{ "no-code", 0, NULL, "without any code", NULL,
	  offsetof(struct web_command_options, no_code) },
	{ "no-source", 0, NULL, "with instructions, but without source lines", NULL,
	  offsetof(struct web_command_options, no_sources) },
	{ "source-path", 0, "DIRECTORY",
	  "where to look for source files that are not in their place", tool_option_directory,
	  offsetof(struct web_command_options, source_path) },
	TOOL_QUERY_OPTIONS(struct web_command_options, reading.query),
	TOOL_FILTER_OPTIONS(struct web_command_options, filter),
	TOOL_READING_OPTIONS(struct web_command_options, reading),
	{ 0 },
};
/* clang-format on */

struct page {
	struct profile *p, *earlier;
	struct web_options options;
	char *text; /* serve(): all of it */
	size_t size;
};

static int write_page(FILE *out, void *context, struct error *e)
{
	struct page *page = context;

	if (!page->text)
		return web_print(page->p, page->earlier, &page->options, out, e);
	fwrite(page->text, 1, page->size, out);
	return 0;
}

/* Shows the page until a signal comes. Returns 0, or a negative errno with e set. */
static int serve(struct page *page, const struct web_command_options *o, struct error *e)
{
	struct page_server server;
	int signals = -1, err = page_server_open(&server, o->serving.port, e);
	FILE *out = err ? NULL : open_memstream(&page->text, &page->size);

	if (out) {
		err = web_print(page->p, page->earlier, &page->options, out, e);
		if (fclose(out) && !err)
			err = error_no_memory(e);
	} else if (!err) {
		err = error_no_memory(e);
	}
	if (!err && o->output)
		err = file_write(o->output, FILE_LIKE_SHELL, write_page, page, e);
	if (!err) {
		signals = recording_open_signals(e);
		err = signals < 0 ? signals : 0;
	}
	if (!err) {
		page_server_introduce(&server, o->reading.naming.quiet);
		err = page_server_run(&server, signals, page->text, page->size, e);
	}
	if (signals >= 0)
		close(signals);
	page_server_close(&server);
	return err;
}

/* Refuses to overwrite a profile that is read. Returns 0 or -errno with e set. */
static int check_output(char *const *paths, int count, const struct web_command_options *o,
			struct error *e)
{
	const char *dot = strrchr(o->output, '.');

	if (o->serving.wanted && strcmp(o->output, "-") == 0)
		return error_usage(e, "write the page to a file as well: -o page.html",
				   "--serve prints an address, not the page");
	if (tool_find_in_output(paths, count, o->output) ||
	    (o->earlier && tool_find_in_output((char *const *)&o->earlier, 1, o->output)))
		return error_usage(e, "write the page to another file: -o page.html",
				   "-o %s is one of the profiles to read", o->output);
	if (tool_is_unnamed(o->output))
		return 0;
	if (!dot || (strcasecmp(dot, ".html") != 0 && strcasecmp(dot, ".htm") != 0))
		return error_usage(e, "end it in .html, so that browsers know what it is",
				   "the name %s is not that of a page", o->output);
	return file_check_writable(o->output, e);
}

static int run_web(int argc, char **argv)
{
	struct tool_ignored ignored = {
		.what = "--no-code",
		.options = "code no-source source-path",
	};
	struct web_command_options o = { .code_percent = 1 };
	struct profile_filtered filtered[2] = { 0 };
	struct page page = { 0 };
	struct tool_inputs in;
	struct error e;
	int first, err, code = tool_options(&web_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	ignored.applies = o.no_code;
	if (tool_check_ignored(&web_command, &ignored, 1, first, argv, &e))
		return tool_fail(&e);
	if (!o.output && !o.serving.wanted)
		o.output = "profile.html";
	o.reading.query.times = o.reading.query.by_time = true;
	tool_find_inputs(argv + first, argc - first, &o.reading.query, &in);
	if (!in.count)
		return tool_misuse("profiltool web FILE... -o PAGE.html", "web takes a profile");
	err = o.output ? check_output(in.paths, in.count, &o, &e) : 0;
	err = err ?: tool_read_all(in.paths, in.count, &o.reading, &page.p, &e);
	err = err ?: tool_check_value(page.p, o.value, &e);
	if (!err && o.earlier)
		err = tool_read_all((char *const *)&o.earlier, 1, &o.reading, &page.earlier, &e);
	err = err ?: tool_filter(page.p, &o.filter, o.value, &filtered[0], &e);
	if (!err && page.earlier)
		err = profile_filter(page.earlier, &o.filter, &filtered[1], &e);
	if (err) {
		code = tool_fail(&e);
		goto out;
	}
	if (!page.p->sample_count) {
		tool_warn("%s: there are no samples to show", in.paths[0]);
		code = EXIT_NO_SAMPLES;
		goto out;
	}
	page.options = (struct web_options){
		.title = o.title ?: (*page.p->command ? page.p->command : in.paths[0]),
		.value = o.value,
		.code_percent = o.code_percent,
		.no_code = o.no_code,
		.no_sources = o.no_sources,
		.source_path = o.source_path,
		.debuginfod = o.reading.naming.debuginfod,
	};
	if (o.serving.wanted)
		err = serve(&page, &o, &e);
	else if (strcmp(o.output, "-") != 0)
		err = file_write(o.output, FILE_LIKE_SHELL, write_page, &page, &e);
	else
		err = write_page(stdout, &page, &e); /* main() checks for errors of writing */
	code = err ? tool_fail(&e) : tool_done(page.p);
out:
	free(page.text);
	profile_filtered_free(&filtered[0]);
	profile_filtered_free(&filtered[1]);
	profile_free(page.p);
	profile_free(page.earlier);
	return code;
}

const struct tool_command web_command = {
	.name = "web",
	.arguments = "[OPTION...] FILE... [-o PAGE.html | --serve]",
	.help = "Writes a page that shows profiles in a browser: one file, which needs no server. "
		"--serve shows it at once.",
	.purpose = TOOL_LOOK,
	.summary = "a page for a browser: over time, flame graph, table, threads",
	.options = options,
	.groups =
		(const struct option_group[]){
			{ "output", "The page" },
			{ "since", "Which samples" },
			{ "executable", "Reading files" },
			{ 0 },
		},
	.run = run_web,
};
