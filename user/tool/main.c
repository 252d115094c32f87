// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "cli/options.h"
#include "tool/tool.h"

/* In the order of --help, within each purpose. */
static const struct tool_command *const commands[] = {
	&record_command,
	&run_command,
	&snapshot_command,
	&top_command,
	&browse_command,
	&report_command,
	&annotate_command,
	&web_command,
	&flamegraph_command,
	&diff_command,
	&changes_command,
	&convert_command,
	&merge_command,
	&dump_command,
	&check_command,
	&why_command,
	NULL,
};

static void print_usage(FILE *out)
{
	static const struct {
		enum tool_purpose purpose;
		const char *title;
	} groups[] = {
		{ TOOL_RECORD, "Record" },     { TOOL_LOOK, "Look" },	{ TOOL_COMPARE, "Compare" },
		{ TOOL_EXCHANGE, "Exchange" }, { TOOL_CHECK, "Check" },
	};

	fputs("profiltool shows where programs spend their time, on CPUs and waiting, and why.\n\n"
	      "  profiltool -p 1234                                 where a process computes\n"
	      "  profiltool why -p 1234 -d 10                       why its requests are slow\n"
	      "  profiltool record --wall -p 1234 -d 5 -o x.pb.gz   for what it waits\n"
	      "  profiltool report --by query x.pb.gz               which query takes the time\n"
	      "  profiltool changes --since Tue                     what a deploy made slower\n"
	      "  profiltool web x.pb.gz -o x.html                   all of it, for a browser\n",
	      out);
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		fprintf(out, "\n%s:\n", groups[i].title);
		for (const struct tool_command *const *c = commands; *c; c++)
			if ((*c)->purpose == groups[i].purpose)
				fprintf(out, "  %-10s  %s\n", (*c)->name,
					(*c)->summary ?: (*c)->help);
	}
	fputs("\nOptions of a command: profiltool COMMAND --help. Version: profiltool --version.\n"
	      "More: man profiltool, man profil-tutorial.\n"
	      "Exit codes: 0 done, 1 failed, 2 usage, 3 written but incomplete, 4 no samples,\n"
	      "5 not permitted, 6 the kernel lacks something.\n",
	      out);
}

int main(int argc, char **argv)
{
	const struct tool_command *command = NULL;
	struct similar similar;
	struct error e;
	bool records;
	int code, err;

	for (const struct tool_command *const *c = commands; *c && argc > 1; c++)
		if (strcmp((*c)->name, argv[1]) == 0)
			command = *c;
	/* Without a command, options are record's. */
	records = command ? command->records : argc > 1 && argv[1][0] == '-';
	if (capabilities_hold_back(records, &e))
		return tool_fail(&e);
	if (!command || !command->becomes_another) {
		/*
		 * A closed standard descriptor would be given to the next file that is opened, and
		 * output meant for a person would go there. The wrong mode makes its use fail, as a
		 * closed one would.
		 */
		for (int fd = 0; fd <= 2; fd++)
			if (fcntl(fd, F_GETFD) < 0)
				(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
		/* A closed pipe must not end a recording before its file is written. */
		signal(SIGPIPE, SIG_IGN);
	}
	if (command) {
		code = command->run(argc - 1, argv + 1);
	} else if (argc < 2) {
		print_usage(stderr);
		code = EXIT_USAGE;
	} else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		   strcmp(argv[1], "help") == 0) {
		print_usage(stdout);
		code = EXIT_DONE;
	} else if (strcmp(argv[1], "--version") == 0) {
		puts("profiltool " PROFIL_VERSION);
		code = EXIT_DONE;
	} else if (argv[1][0] == '-') {
		code = record_command.run(argc, argv);
	} else {
		error_set_kind(&e, ERROR_USAGE, 0, "there is no command \"%s\"", argv[1]);
		similar = similar_to(argv[1]);
		for (const struct tool_command *const *c = commands; *c; c++)
			similar_offer(&similar, (*c)->name);
		if (*similar.best)
			error_hint(&e, "did you mean profiltool %s? see profiltool --help",
				   similar.best);
		else
			error_hint(&e, "see profiltool --help; to profile a program: profiltool "
				       "-p PID");
		code = tool_fail(&e);
	}

	/* A failed write to standard output is an error, unless the reader (a pager) closed it. */
	err = tool_flush();
	if (!err || err == -EPIPE || code == EXIT_FAILED)
		return code;
	error_set(&e, -err, "cannot write to standard output");
	tool_fail(&e);
	return EXIT_FAILED;
}
