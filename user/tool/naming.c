// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/symbol.h"
#include "tool/tool.h"

int tool_name(struct profile *p, const struct tool_naming *naming, bool (*stop)(void *context),
	      void *context, struct error *e)
{
	struct symbol_options o = {
		.lines = naming->lines,
		.debuginfod = naming->debuginfod,
		.stop = stop,
		.context = context,
	};

	return symbol_resolve(p, &o, e);
}
