// SPDX-License-Identifier: GPL-2.0-only
#include "tool/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "archive/coverage.h"
#include "bpf/wait.h"
#include "capture/requirements.h"
#include "cli/capabilities.h"
#include "report/flat/flat.h"
#include "report/text.h"
#include "report/time_slot.h"
#include "report/timeline/timeline.h"
#include "tool/target.h"
#include "symbol/symbol.h"
#include "util/clock.h"
#include "util/number.h"

/* Rows of the terminal that messages took; 0 if they go elsewhere. */
static size_t message_rows;

static void count_rows(size_t columns)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return;
	message_rows += columns ? (columns + size.ws_col - 1) / size.ws_col : 1;
}

void tool_progress(const char *format, ...)
{
	char text[512], *visible;
	struct winsize size;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fputs("\r\033[K", stderr);
	visible = *text ? text_visible(text) : NULL;
	if (visible) {
		/* What wraps could not be replaced. */
		if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
			size.ws_col = 80;
		text_shorten_line(visible, MAX(size.ws_col, 4));
		fputs(visible, stderr);
	}
	free(visible);
	fflush(stderr);
}

/* The text may hold paths and names of processes, which are untrusted. */
static void print_line(const char *indent, const char *text)
{
	text_printf(stderr, TOOL_PREFIX "%s%s\n", indent, text);
	count_rows(strlen(TOOL_PREFIX) + strlen(indent) + text_columns(text));
}

int tool_exit_code(const struct error *e)
{
	static const int codes[] = {
		[ERROR_FAILED] = EXIT_FAILED,
		[ERROR_USAGE] = EXIT_USAGE,
		[ERROR_NOT_PERMITTED] = EXIT_NOT_PERMITTED,
		[ERROR_KERNEL_LACKS] = EXIT_KERNEL_LACKS,
	};

	return codes[e->kind];
}

int tool_fail(const struct error *e)
{
	print_line("", e->what);
	if (e->hint[0])
		print_line("  ", e->hint);
	return tool_exit_code(e);
}

int tool_misuse(const char *hint, const char *format, ...)
{
	struct error e;
	va_list arguments;

	error_usage(&e, hint, "%s", "");
	va_start(arguments, format);
	vsnprintf(e.what, sizeof(e.what), format, arguments);
	va_end(arguments);
	return tool_fail(&e);
}

int tool_refuse(const struct error *e)
{
	struct requirement_facts facts;
	struct requirements r = { 0 };
	int code = tool_fail(e);

	if (code != EXIT_NOT_PERMITTED && code != EXIT_KERNEL_LACKS)
		return code;
	capabilities_raise();
	requirements_gather(&facts);
	capabilities_lower();
	requirements_judge(&facts, &r);
	for (size_t i = 0; i < r.count; i++)
		if (r.list[i].state == REQUIREMENT_NO)
			tool_warn("  %s: %s", r.list[i].name, r.list[i].finding.what);
	if (code == EXIT_NOT_PERMITTED && !capabilities_can_record())
		tool_warn("  or your own processes, where profild runs for that: profild(8), "
			  "--record");
	if (!strstr(e->hint, "profiltool check"))
		tool_warn("  for all requirements: profiltool check");
	return code;
}

void tool_warn(const char *format, ...)
{
	char text[4096 + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	print_line("", text);
}

static void print_usage(const struct tool_command *command, FILE *out)
{
	size_t column = fprintf(out, "profiltool %s ", command->name);

	text_wrap(command->arguments, column, column, HELP_WIDTH, out);
	fputs("\n  ", out);
	text_wrap(command->help, 2, 2, HELP_WIDTH, out);
	fputc('\n', out);
}

static void list_fields(char *text, size_t size)
{
	row_view_list(true, text, size);
}

void tool_list_kinds(char *text, size_t size)
{
	row_view_list(false, text, size);
	text_append(text, size, ", ",
		    "application, container, cpu, database, query, reason, role, route, title, "
		    "unit, user, wait");
}

void tool_list_words(const char *const *words, size_t count, char *text, size_t size)
{
	*text = '\0';
	for (size_t i = 0; i < count; i++)
		if (words[i])
			text_append(text, size, ", ", "%s", words[i]);
}

int tool_find_word(const char *option, const char *value, const char *const *words, size_t count,
		   struct error *e)
{
	char list[TOOL_LIST_SIZE];

	for (size_t i = 0; i < count; i++)
		if (words[i] && strcmp(value, words[i]) == 0)
			return i;
	tool_list_words(words, count, list, sizeof(list));
	return error_set(e, 0, "%s takes one of %s, not \"%s\"", option, list, value);
}

static void list_states(char *text, size_t size)
{
	tool_list_words(thread_state_options, THREAD_STATES, text, size);
}

/* For what threads wait; not for a CPU, which is a state. */
static const char *const reasons[] = {
#define REASON_NAME(number, name, ...) [WAIT_##number] = WAIT_##number == WAIT_CPU ? NULL : (name),
	WAIT_REASON_LIST(REASON_NAME)
#undef REASON_NAME
};

static void list_reasons(char *text, size_t size)
{
	tool_list_words(reasons, WAIT_REASONS, text, size);
}

/* What --help prints below the options, where the completion finds it. */
static const struct {
	const char *metavar;
	void (*write)(char *text, size_t size);
} lists[] = {
	{ "EVENT", tool_list_events }, { "FIELD", list_fields },   { "FORMAT", tool_list_formats },
	{ "KIND", tool_list_kinds },   { "REASON", list_reasons }, { "STATE", list_states },
};

int tool_check_ignored(const struct tool_command *command, const struct tool_ignored *ignored,
		       size_t count, int first, char **argv, struct error *e)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = NULL;

		if (ignored[i].applies)
			name = options_given(command->options, ignored[i].options, first, argv);
		if (!name)
			continue;
		error_set_kind(e, ERROR_USAGE, 0, "--%s is not for %s", name, ignored[i].what);
		return error_hint(e, "%s", ignored[i].hint ?: "leave it out");
	}
	return 0;
}

int tool_options(const struct tool_command *command, void *values, int argc, char **argv, bool stop,
		 int *first)
{
	struct error e;
	char hint[sizeof(e.hint) + 1]; /* and a blank */
	bool help = false;

	if (options_parse(command->options, values, argc, argv, stop, first, &help, &e)) {
		snprintf(hint, sizeof(hint), "%s%s", e.hint, *e.hint ? " " : "");
		error_hint(&e, "%s%s %s --help", hint, "see profiltool", command->name);
		return tool_fail(&e);
	}
	if (!help)
		return -1;
	print_usage(command, stdout);
	options_print(command->options, command->groups, stdout);
	if (command->groups)
		putchar('\n');
	for (const struct option_spec *o = command->options; o->name; o++)
		for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
			char words[TOOL_LIST_SIZE];
			size_t column;

			if (!o->metavar || strcmp(o->metavar, lists[i].metavar) != 0)
				continue;
			lists[i].write(words, sizeof(words));
			column = printf("  %s is one of: ", o->metavar);
			text_wrap(words, column, 4, HELP_WIDTH, stdout);
			putchar('\n');
		}
	return EXIT_DONE;
}

int tool_option_by_image(const char *value, void *member, struct error *e)
{
	(void)value;
	return tool_option_by("image", member, e);
}

int tool_option_by(const char *value, void *member, struct error *e)
{
	static const char slots[] = "time:";
	struct tool_view *view = member;
	char names[TOOL_LIST_SIZE];

	view->step_ns = 0;
	if (strncmp(value, slots, strlen(slots)) == 0) {
		view->rows.view = row_view_by_name("time");
		if (when_parse_length(value + strlen(slots), &view->step_ns) ||
		    view->step_ns < 10 * NS_PER_MS)
			return error_set(
				e, 0, "--by time: takes a length of time from 10ms on, not \"%s\"",
				value + strlen(slots));
		return 0;
	}
	view->rows.view = row_view_find(value, &view->label);
	if (view->rows.view)
		return 0;
	row_view_list(true, names, sizeof(names));
	return error_set(e, 0, "--by takes one of %s, or a label, not \"%s\"", names, value);
}

const struct row_view *tool_view_of_keys(const char *text)
{
	static const struct {
		const char *name;
		uint64_t fields;
	} keys[] = {
		{ "comm", ROW_COMM },
		{ "dso", ROW_IMAGE },
		{ "symbol", ROW_FUNCTION | ROW_IMAGE },
		{ "srcline", ROW_SOURCE | ROW_LINE | ROW_FUNCTION | ROW_IMAGE },
		{ "srcfile", ROW_SOURCE | ROW_IMAGE },
		{ "pid", ROW_PROCESS | ROW_COMM },
		{ "tid", ROW_PROCESS | ROW_THREAD | ROW_COMM },
	};
	const size_t key_count = sizeof(keys) / sizeof(*keys);
	char *copy = strdup(text), *rest = copy, *key;
	uint64_t fields = 0;
	bool known = copy;

	while (known && (key = strsep(&rest, ","))) {
		size_t size = strlen(key), i = 0;

		/* As in perf, a key may be abbreviated to three letters. */
		while (i < key_count && strcmp(key, keys[i].name) != 0 &&
		       (size < 3 || strncmp(key, keys[i].name, size) != 0))
			i++;
		known = i < key_count;
		fields |= known ? keys[i].fields : 0;
	}
	free(copy);
	return known ? row_view_by_fields(fields) : NULL;
}

int tool_check_value(const struct profile *p, const char *type, struct error *e)
{
	char types[256] = "";
	bool ambiguous;

	if (!type || profile_named_value(p, type, &ambiguous) < p->value_type_count)
		return 0;
	for (size_t i = 0; i < p->value_type_count; i++)
		text_append(types, sizeof(types), ", ", "%s", p->value_types[i].type);
	error_set_kind(e, ERROR_USAGE, 0,
		       ambiguous ? "several values of the profile begin with \"%s\""
				 : "the profile has no value \"%s\"",
		       type);
	error_hint(e, "its values are: %s", types);
	return -ENOENT;
}

void tool_show_wall(struct profile *p)
{
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);

	if (wall < p->value_type_count)
		p->default_value = wall + 1;
}

/* Writes "on CPU 0.203 s, idle 1.627 s; waits are for: socket, lock". */
static void describe_times(const struct profile *p, char *text, size_t size)
{
	struct thread_times times;

	*text = '\0';
	profile_thread_times(p, &times);
	for (int i = 0; i < THREAD_STATES; i++)
		if (times.states[i])
			text_append(text, size, ", ", "%s %.3f s", thread_state_names[i],
				    (double)times.states[i] / NS_PER_S);
	for (size_t i = 0; i < times.reason_count; i++)
		text_append(text, size, i ? ", " : "; waits are for: ", "%.*s",
			    (int)times.reasons[i].size, times.reasons[i].name);
}

static bool chooses_waits(const struct profile_filter *filter)
{
	return filter->states || filter->hide_idle || filter->reason;
}

int tool_check_waits(const struct profile *p, const struct profile_filter *filter, struct error *e)
{
	if (!chooses_waits(filter) || profile_find_sum(p, PROFILE_SUM_WALL) < p->value_type_count)
		return 0;
	error_set_kind(e, ERROR_USAGE, 0, "the profile has no waits of threads");
	error_hint(e, "profiltool record --wall records them");
	return -ENOENT;
}

int tool_filter(struct profile *p, const struct profile_filter *filter, const char *value,
		struct profile_filtered *filtered, struct error *e)
{
	const bool waits = chooses_waits(filter);
	size_t wall = profile_find_sum(p, PROFILE_SUM_WALL);
	char percent[TEXT_PERCENT_SIZE], what[512] = "", before[512];
	double all, kept;
	int err = tool_check_waits(p, filter, e);

	if (err)
		return err;
	if (waits && !value)
		tool_show_wall(p);
	if (waits)
		describe_times(p, before, sizeof(before));
	all = profile_magnitude(p, value);
	err = profile_filter(p, filter, filtered, e);
	if (err || (!filter->focus && !filter->ignore && !waits))
		return err;
	if (filter->focus)
		text_append(what, sizeof(what), " ", "--focus %s", filter->focus);
	if (filter->ignore)
		text_append(what, sizeof(what), " ", "--ignore %s", filter->ignore);
	for (int i = 0; i < THREAD_STATES; i++)
		if (filter->states & 1U << i)
			text_append(what, sizeof(what), " ", "--state %s", thread_state_options[i]);
	if (filter->hide_idle)
		text_append(what, sizeof(what), " ", "--idle=hide");
	if (filter->reason)
		text_append(what, sizeof(what), " ", "--reason %s", filter->reason);
	kept = profile_magnitude(p, value);
	text_percent(percent, kept, all);
	tool_warn("%s keeps %s %% of the %s", what, percent,
		  profile_value(p, value) == wall ? "wall time" : "samples");
	if (waits && kept == 0)
		tool_warn("the recording has: %s", before);
	return 0;
}

int tool_option_state(const char *value, void *member, struct error *e)
{
	int state = tool_find_word("--state", value, thread_state_options, THREAD_STATES, e);

	if (state < 0)
		return state;
	*(unsigned int *)member |= 1U << state;
	return 0;
}

int tool_option_reason(const char *value, void *member, struct error *e)
{
	int reason = tool_find_word("--reason", value, reasons, WAIT_REASONS, e);

	*(const char **)member = value;
	return reason < 0 ? reason : 0;
}

int tool_option_idle(const char *value, void *member, struct error *e)
{
	bool *hide = member;

	*hide = strcmp(value, "hide") == 0;
	if (!*hide && strcmp(value, "show") != 0)
		return error_set(e, 0, "--idle takes show or hide, not \"%s\"", value);
	return 0;
}

static bool has_times(const struct profile *p)
{
	return p->ticks.count || p->waits.count;
}

int tool_check_tag(const struct profile *p, const struct row_view *view, struct error *e)
{
	char names[TOOL_LIST_SIZE];

	if (row_view_has_tag(view, p) || !p->sample_count ||
	    (view->fields & ROW_OF_TAG(TAG_TIME) && has_times(p)))
		return 0;
	if (view->fields & ROW_LABEL) {
		row_view_list(true, names, sizeof(names));
		error_set_kind(e, ERROR_USAGE, 0,
			       "--by takes one of %s, or a label of the samples, not \"%s\"", names,
			       view->name);
	} else {
		error_set(e, 0, "--by %s: no sample has a %s", view->name, view->name);
	}
	if (view->fields & ROW_OF_TAG(TAG_TIME))
		error_hint(e, "files of profiltool record have times, and so have the windows of "
			      "profild --continuous: --since TIME");
	else if (view->fields & ROW_OF_TAG(TAG_HOST))
		error_hint(e, "the windows of profild --continuous have it: --since TIME");
	else if (view->fields & ROW_OF_TAG(TAG_CGROUP))
		error_hint(e, "perf record --all-cgroups records it; of a recording of profiltool: "
			      "--by unit, --by container");
	else if (view->fields & ROW_STATE)
		error_hint(e, "profiltool record --wall records waits");
	else if (view->fields & ROW_OF_TAG(TAG_WAKER))
		error_hint(e, "profiltool record --wall records who ended waits");
	else if (view->fields & ROW_OF_TAG(TAG_PEER))
		error_hint(e, "profiltool record --wall records the other ends of sockets");
	else if (view->fields & ROW_CONTEXT)
		error_hint(e, TOOL_LABEL_HINT, (int)strlen(view->name), view->name);
	else if (view->fields & ROW_OF_TAG(TAG_CPU))
		error_hint(e, "the windows of profild --continuous have it: --since TIME; or live: "
			      "profiltool top --by cpu");
	else if (row_view_has_tag(row_view_by_name("user"), p))
		error_hint(e, "nothing ran in one: group by another field, such as --by comm");
	else
		error_hint(e, "files of profiltool record have it, and the windows of profild "
			      "--continuous: --since TIME");
	return -ENOENT;
}

bool tool_has_image(const struct profile *p, const char *image)
{
	bool found = row_image_is(row_unknown, image);

	for (size_t i = 0; i < p->image_count && !found; i++)
		found = row_image_is(p->images[i].path, image);
	return found;
}

int tool_no_image(const char *image, struct error *e)
{
	error_set(e, 0, "there is no image \"%s\"", image);
	error_hint(e, "profiltool report --by image lists the images");
	return -ENOENT;
}

int tool_find_extents(struct profile *p, struct tool_view *view, struct symbol_extent **extents,
		      struct error *e)
{
	*extents = NULL;
	if (!view->rows.view || !(view->rows.view->fields & ROW_ADDRESS))
		return 0;
	*extents = calloc(p->location_count + 1, sizeof(**extents));
	view->rows.extents = *extents;
	return *extents ? symbol_extents(p, NULL, *extents, e) : error_no_memory(e);
}

bool tool_table_is_last(const struct tool_view *view)
{
	return !view->json && isatty(STDOUT_FILENO);
}

int tool_summarize(const struct profile *p, const struct rows_options *rows, const char *target,
		   bool verbose, char **after, struct error *e)
{
	char *text = NULL, *below = NULL;
	size_t size, below_size;
	FILE *out = open_memstream(&text, &size), *last = open_memstream(&below, &below_size);
	int err;

	if (!out || !last) {
		err = -ENOMEM;
	} else if (isatty(STDERR_FILENO) && !verbose) {
		err = report_brief(p, rows, target, after != NULL, out, last);
	} else {
		err = verbose ? report_where(p, rows, TOOL_PREFIX, out) : 0;
		err = err ?: report_summary(p, rows->value, TOOL_PREFIX, target, out);
		err = err ?: report_unnamed(p, rows->value, verbose, TOOL_PREFIX, out);
	}
	if ((out && fclose(out)) || (last && fclose(last)))
		err = -ENOMEM;
	for (int part = 0; part < 2 && !err; part++)
		for (const char *line = part ? below : text, *end; (end = strchr(line, '\n'));
		     line = end + 1)
			count_rows(end - line);
	if (!err)
		fprintf(stderr, "%s%s", after ? "" : below, text);
	free(text);
	if (after)
		*after = below;
	else
		free(below);
	return err ? error_no_memory(e) : 0;
}

#define ROWS_LEAST 3  /* of a table, even in a window of few lines */
#define HINT_WIDTH 60 /* columns in which the line about the rest has a hint, too */

struct report_table_options tool_table_options(const struct tool_view *view)
{
	struct report_table_options options = {
		.rows = view->rows,
		.limit = MAX(view->limit, 0),
		.percent = MAX(view->percent, 0),
		.cpu_time = view->cpu_time,
	};
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
	struct winsize size;
	size_t other;

	if (view->json || !isatty(STDOUT_FILENO))
		return options;
	/* https://no-color.org; and a dumb terminal would show the escapes. */
	options.color = !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return options;
	options.width = size.ws_col;
	if (view->limit >= 0)
		return options;
	/* Room for the header, the line about the rest, the prompt and what is printed besides. */
	other = view->last ? message_rows : 7;
	options.limit = size.ws_row > other + 3 ? size.ws_row - other - 3 : 0;
	options.limit = MAX(options.limit, size.ws_row / 3U);
	options.limit = MAX(options.limit, ROWS_LEAST);
	options.fits = size.ws_col >= HINT_WIDTH;
	return options;
}

/* Prints what was recorded in slots of time. */
static int print_timeline(const struct profile *p, const struct tool_view *view, struct error *e)
{
	struct report_table_options table = tool_table_options(view);
	struct time_interval all = profile_recorded(p);
	struct timeline_options o = {
		.step_ns = view->step_ns,
		.limit = MAX(view->limit, 0),
		.width = table.width,
		.color = table.color,
	};
	struct coverage coverage = { 0 };
	struct time_interval *spans = NULL;
	int err = coverage_add(&coverage, p);

	if (!err)
		spans = calloc(coverage.count + 1, sizeof(*spans));
	if (!spans) {
		coverage_free(&coverage);
		return error_no_memory(e);
	}
	coverage_join(&coverage);
	for (size_t i = 0; i < coverage.count; i++)
		spans[i] = (struct time_interval){ coverage.spans[i].start_ns,
						   coverage.spans[i].end_ns };
	o.span_count = coverage.count;
	/* Files may not say for how long they were recorded. */
	if (!p->time_ns || !p->duration_ns) {
		spans[0] = all;
		o.span_count = 1;
	}
	/* Nor is each tick before the end that they say. */
	else if (all.until_ns > spans[o.span_count - 1].until_ns)
		spans[o.span_count - 1].until_ns = all.until_ns;
	o.spans = spans;
	all = (struct time_interval){ spans[0].since_ns, spans[o.span_count - 1].until_ns };
	if (!o.step_ns)
		o.step_ns = time_slot_step(&all);
	err = view->json ? timeline_json(p, &o, stdout) : timeline_print(p, &o, stdout);
	free(spans);
	coverage_free(&coverage);
	if (err == -E2BIG) {
		error_set_kind(e, ERROR_USAGE, 0, "there would be more than %d slots of time",
			       TIMELINE_SLOTS_MAX);
		error_hint(e, "choose longer ones: --by time:1s; or an interval: --since TIME");
		return err;
	}
	if (err)
		return error_no_memory(e);
	/* A filter may have kept none, which has no times either. */
	if (!p->sample_count || row_view_has_tag(view->rows.view, p))
		return 0;
	return query_check_times("the profile", p->ticks.count, p, e);
}

int tool_print(const struct profile *p, const struct tool_view *view, struct error *e)
{
	const struct row_view *by = view->rows.view;
	struct report_table_options options = tool_table_options(view);
	int err;

	if (by && by->fields & ROW_OF_TAG(TAG_TIME) && (view->step_ns || has_times(p))) {
		err = print_timeline(p, view, e);
		tool_flush();
		return err;
	}
	err = view->json ? report_json(p, &options, stdout) : report_table(p, &options, stdout);

	tool_flush(); /* main() checks for errors */
	return err ? error_no_memory(e) : 0;
}

int tool_flush(void)
{
	static int first_error;

	errno = 0;
	if (fflush(stdout) && !first_error)
		first_error = -errno;
	/* An earlier write failed, errno is lost: another write fails for the same reason. */
	if (ferror(stdout) && !first_error)
		first_error = write(STDOUT_FILENO, "\n", 1) < 0 ? -errno : -EIO;
	return first_error;
}

int tool_option_limit(const char *value, void *member, struct error *e)
{
	uint64_t limit;

	if (number_parse(value, 0, 1000000000, &limit))
		return error_set(e, 0, "-E takes a number of rows (0: all), not \"%s\"", value);
	*(long *)member = limit;
	return 0;
}

int tool_option_directory(const char *value, void *member, struct error *e)
{
	struct stat status;
	int code = stat(value, &status) ? errno : S_ISDIR(status.st_mode) ? 0 : ENOTDIR;

	*(const char **)member = value;
	return code ? error_set(e, code, "%s", value) : 0;
}

int tool_option_percent(const char *value, void *member, struct error *e)
{
	uint64_t billionths;

	/* As seconds: a decimal number, fractions allowed, whatever the locale. */
	if (number_parse_seconds(value, &billionths) || billionths > UINT64_C(100000000000))
		return error_set(e, 0, "--percent takes a number from 0 to 100, not \"%s\"", value);
	*(double *)member = (double)billionths / 1e9;
	return 0;
}
