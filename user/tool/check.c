// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/requirements.h"
#include "cli/capabilities.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "tool/check_profil.h"
#include "tool/executable.h"
#include "tool/tool.h"
#include "util/number.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define DEBUGINFOD	"libdebuginfod.so.1" /* what libdw loads to ask servers */

struct check_options {
	pid_t pid; /* 0: none */
	bool json;
};

static int parse_pid(const char *value, void *member, struct error *e)
{
	uint64_t pid;

	if (number_parse(value, 1, INT32_MAX, &pid))
		return error_set(e, 0, "-p takes a process number, not \"%s\"", value);
	*(pid_t *)member = pid;
	return 0;
}

static const struct option_spec options[] = {
	{ "pid", 'p', "PID", "ask about this process, too", parse_pid,
	  offsetof(struct check_options, pid) },
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct check_options, json) },
	{ 0 },
};

/* Adds what only some commands, or programs that call profil(2), need. */
static void check_others(const struct requirement_facts *f, struct requirements *r)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct requirement *q;
	char path[PATH_MAX];
	struct error ignored;
	void *library = urls && *urls ? dlopen(DEBUGINFOD, RTLD_LAZY) : NULL;

	if (executable_find("objdump", path, &ignored)) {
		q = requirement_add(r, "objdump", REQUIREMENT_LIMITED,
				    "is not in PATH: annotate cannot show instructions");
		error_hint(&q->finding, "apt install binutils");
	} else {
		requirement_add(r, "objdump", REQUIREMENT_OK, "annotate can run it");
	}

	if (access(DEBUG_DIRECTORY, F_OK) == 0)
		requirement_add(r, "debug files", REQUIREMENT_OK, DEBUG_DIRECTORY " is there");
	else
		requirement_add(r, "debug files", REQUIREMENT_ABSENT,
				"there is no " DEBUG_DIRECTORY
				": optional, for source lines and the names in stripped files");

	if (!urls || !*urls) {
		requirement_add(r, "debuginfod", REQUIREMENT_ABSENT,
				"DEBUGINFOD_URLS is not set: optional, for --debuginfod");
	} else if (library) {
		requirement_add(r, "debuginfod", REQUIREMENT_OK, "--debuginfod asks %s", urls);
	} else {
		q = requirement_add(r, "debuginfod", REQUIREMENT_LIMITED, "%s is not installed",
				    DEBUGINFOD);
		error_hint(&q->finding, "apt install libdebuginfod1");
	}
	if (library)
		dlclose(library);
	check_profil(f, r);
}

static const struct {
	const char *name, *color;
} states[] = {
	[REQUIREMENT_OK] = { "ok", "\033[32m" },
	[REQUIREMENT_LIMITED] = { "limited", "\033[33m" },
	[REQUIREMENT_NO] = { "no", "\033[31m" },
	[REQUIREMENT_ABSENT] = { "absent", "" },
};

#define STATE_WIDTH   7
#define NAME_WIDTH    13
#define INDENT	      (STATE_WIDTH + 2 + NAME_WIDTH + 2)
#define NARROW	      60 /* columns of a terminal */
#define BETTER_INDENT (STATE_WIDTH + 2 + sizeof("+  better: ") - 1)

static void print_requirement(const struct requirements *r, const struct requirement *q,
			      const struct report_table_options *o, FILE *out)
{
	bool color = o->color && *states[q->state].color;
	const struct requirement *first = r->list;

	/* The first one with the same hint. */
	while (strcmp(first->finding.hint, q->finding.hint) != 0)
		first++;

	fprintf(out, "%s%-*s%s  %-*s  ", color ? states[q->state].color : "", STATE_WIDTH,
		states[q->state].name, color ? "\033[0m" : "", NAME_WIDTH, q->name);
	text_wrap(q->finding.what, INDENT, o->width < NARROW ? STATE_WIDTH + 2 : INDENT, o->width,
		  out);
	fputc('\n', out);
	if (q->finding.hint[0]) {
		fprintf(out, "%*s-> ", STATE_WIDTH + 2, "");
		if (first != q)
			fprintf(out, "the same as for %s", first->name);
		else /* not wrapped, so that it can be copied */
			text_print(q->finding.hint, out);
		fputc('\n', out);
	}
	if (q->better) {
		fprintf(out, "%*s+  better: ", STATE_WIDTH + 2, "");
		text_wrap(q->better, BETTER_INDENT, BETTER_INDENT, o->width, out);
		fputc('\n', out);
	}
}

static int print_json(const struct requirements *r, struct error *e)
{
	struct json_object *list = json_object_new_array();
	const char *text = NULL;

	for (size_t i = 0; list && i < r->count; i++) {
		const struct requirement *q = &r->list[i];
		struct json_object *object = json_object_new_object();

		if (!object || json_add(object, "requirement", json_text(q->name)) ||
		    json_add(object, "state", json_text(states[q->state].name)) ||
		    json_add(object, "cause", json_text(q->finding.what)) ||
		    json_add(object, "hint", json_text(q->finding.hint)) ||
		    json_add(object, "better", json_text(q->better ?: "")) ||
		    json_object_array_add(list, object)) {
			json_object_put(object);
			json_object_put(list);
			return error_no_memory(e);
		}
	}
	if (list)
		text = json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
								    JSON_C_TO_STRING_SPACED |
								    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text) {
		json_print_text(text, stdout);
		putchar('\n');
	}
	json_object_put(list);
	return text ? 0 : error_no_memory(e);
}

/* The exit code is that of a recording. */
static int run_check(int argc, char **argv)
{
	const struct tool_view view = { .limit = -1 };
	struct report_table_options table;
	struct requirement_facts facts;
	struct check_options o = { 0 };
	struct requirements r = { 0 };
	struct error e;
	int first, code = tool_options(&check_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (first < argc) {
		error_set_kind(&e, ERROR_USAGE, 0, "check takes no argument \"%s\"", argv[first]);
		error_hint(&e, "profiltool check [-p PID]");
		return tool_fail(&e);
	}
	code = EXIT_DONE;
	capabilities_raise();
	requirements_gather(&facts);
	requirements_judge(&facts, &r);
	if (requirements_try(&facts, &r, &e))
		code = tool_exit_code(&e);
	if (o.pid && requirements_of_process(o.pid, &facts, &r, &e) && code == EXIT_DONE)
		code = tool_exit_code(&e);
	capabilities_lower();
	check_others(&facts, &r);
	if (o.json)
		return print_json(&r, &e) ? tool_fail(&e) : code;
	table = tool_table_options(&view);
	for (size_t i = 0; i < r.count; i++)
		print_requirement(&r, &r.list[i], &table, stdout);
	return code;
}

const struct tool_command check_command = {
	.name = "check",
	.records = true,
	.arguments = "[-p PID] [--json]",
	.help = "Checks what recording needs, and prints how to fix what is missing.",
	.options = options,
	.run = run_check,
};
