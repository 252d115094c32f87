// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "format/folded.h"
#include "profile/pc_name.h"

struct writer {
	const struct profile *p;
	FILE *out;
	char **functions; /* of each function: its name escaped; NULL: as it is */
	char **unnamed;	  /* what each location without a name is called; NULL for others */
};

static int escape_functions(struct writer *w)
{
	const struct profile *p = w->p;

	for (size_t i = 0; i < p->function_count; i++)
		if (folded_escape(p->functions[i].name, &w->functions[i]))
			return -ENOMEM;
	return 0;
}

static int name_location(struct writer *w, uint32_t location)
{
	const struct profile_image *image = profile_location_image(w->p, location);
	char *name =
		profile_pc_name(image ? image->path : "", w->p->locations[location].image_address);

	if (!name || folded_escape(name, &w->unnamed[location])) {
		free(name);
		return -ENOMEM;
	}
	if (w->unnamed[location])
		free(name);
	else
		w->unnamed[location] = name;
	return 0;
}

static int make_names(struct writer *w)
{
	const struct profile *p = w->p;
	int err;

	w->functions = calloc(p->function_count + 1, sizeof(*w->functions));
	w->unnamed = calloc(p->location_count + 1, sizeof(*w->unnamed));
	if (!w->functions || !w->unnamed)
		return -ENOMEM;
	err = escape_functions(w);
	for (uint32_t i = 0; i < p->location_count && !err; i++)
		if (!p->locations[i].line_count)
			err = name_location(w, i);
	return err;
}

static void free_names(struct writer *w)
{
	for (size_t i = 0; w->functions && i < w->p->function_count; i++)
		free(w->functions[i]);
	for (size_t i = 0; w->unnamed && i < w->p->location_count; i++)
		free(w->unnamed[i]);
	free(w->functions);
	free(w->unnamed);
}

/* The functions inlined at a location are frames like others. */
static void put_location(const struct writer *w, uint32_t location)
{
	const struct profile *p = w->p;
	const struct profile_location *l = &p->locations[location];

	if (!l->line_count)
		fputs_unlocked(w->unnamed[location], w->out);
	for (uint32_t i = l->line_count; i-- > 0;) {
		uint32_t function = p->lines[l->first_line + i].function;

		fputs_unlocked(w->functions[function] ?: p->functions[function].name, w->out);
		if (i)
			putc_unlocked(';', w->out);
	}
}

static void put_sample(const struct writer *w, const struct profile_sample *s, int64_t count)
{
	const uint32_t *frames = w->p->frames + s->first_frame;

	if (!s->depth)
		fputs_unlocked(FOLDED_NO_PC, w->out);
	for (uint32_t i = s->depth; i-- > 0;) {
		put_location(w, frames[i]);
		if (i)
			putc_unlocked(';', w->out);
	}
	fprintf(w->out, " %" PRId64 "\n", count);
}

int folded_write(const struct profile *p, const struct format_options *options, FILE *out,
		 struct error *e)
{
	struct writer w = { .p = p, .out = out };
	size_t value = profile_count_value(p);
	bool any = false;
	int err = make_names(&w);

	(void)options;
	for (size_t i = 0; i < p->sample_count && !err; i++) {
		int64_t count = p->values[i * p->value_type_count + value];

		any |= count;
		if (count)
			put_sample(&w, &p->samples[i], count);
	}
	if (!any) /* an empty file would look like one that was never written */
		fputs("# no samples\n", out);
	free_names(&w);
	if (err)
		return error_no_memory(e);
	return ferror(out) ? error_set(e, errno, "cannot write") : 0;
}
