// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/capabilities.h"
#include "profile/image_name.h"
#include "report/text.h"
#include "record/wait_names.h"
#include "symbol/symbol.h"
#include "tool/tool.h"
#include "util/clock.h"

/* Bound: pace. */
#define SILENT_NS NS_PER_S	    /* shorter work shows no progress */
#define REDRAW_NS (100 * NS_PER_MS) /* between two updates of the line */

struct naming {
	bool (*stop)(void *context);
	void *context;
	bool terminal; /* where a line of progress goes */
	uint64_t next_ns;
	bool shown;
	size_t done, count;
	char what[64];
};

static void show_progress(struct naming *n)
{
	uint64_t now = now_ns();

	if (!n->terminal || now < n->next_ns || !*n->what)
		return;
	n->next_ns = now + REDRAW_NS;
	n->shown = true;
	tool_progress(TOOL_PREFIX "names: %zu of %zu, %s", n->done, n->count, n->what);
}

static void clear_progress(struct naming *n)
{
	if (n->shown)
		tool_progress("%s", "");
	n->shown = false;
}

static void take_progress(size_t done, size_t count, const char *what, void *context)
{
	struct naming *n = context;

	n->done = done;
	n->count = count;
	snprintf(n->what, sizeof(n->what), "%s", what);
	show_progress(n);
}

/* Called more often than take_progress(). */
static bool take_stop(void *context)
{
	struct naming *n = context;

	show_progress(n);
	if (!n->stop || !n->stop(n->context))
		return false;
	clear_progress(n);
	return true;
}

int tool_check_naming(const struct tool_naming *naming, struct error *e)
{
	return symbol_check(&(struct symbol_options){ .debuginfod = naming->debuginfod }, e);
}

/* Has the paths of images without a root directory looked up below this one. */
static int set_roots(struct profile *p, const char *path, struct error *e)
{
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (root < 0)
		return error_set(e, errno, "--symfs: cannot open %s", path);
	for (size_t i = 0; i < p->image_count && !err; i++) {
		struct profile_image *image = &p->images[i];

		if (image->fd >= 0 || image->root >= 0 || image_kind(image->path) != IMAGE_FILE)
			continue;
		image->root = fcntl(root, F_DUPFD_CLOEXEC, 0);
		if (image->root < 0)
			err = error_set(e, errno, "--symfs: cannot open %s", path);
	}
	close(root);
	return err;
}

int tool_name(struct profile *p, const struct tool_naming *naming, bool (*stop)(void *context),
	      void *context, struct error *e)
{
	struct naming n = {
		.stop = stop,
		.context = context,
		.terminal = !naming->quiet && isatty(STDERR_FILENO),
		.next_ns = now_ns() + SILENT_NS,
	};
	struct symbol_options o = {
		.lines = naming->lines,
		.debuginfod = naming->debuginfod,
		.stop = take_stop,
		.progress = take_progress,
		.context = &n,
	};
	size_t known = p->warning_count;
	int err = naming->symfs ? set_roots(p, naming->symfs, e) : 0;

	if (err)
		return err;
	capabilities_raise_for_names();
	err = symbol_resolve(p, &o, e);
	if (!err && wait_names_apply(p))
		err = error_no_memory(e);
	capabilities_lower();
	clear_progress(&n);
	for (size_t i = known; !err && i < p->warning_count; i++)
		tool_warn("%s", p->warnings[i]);
	return err;
}
