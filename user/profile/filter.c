// SPDX-License-Identifier: GPL-2.0-only
#include "profile/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pc_name.h"
#include "util/sum.h"

/* Only so many bytes of a name are matched: matching may take time by their square. */
#define MATCHED_MAX 4096

/* glibc takes them in extended expressions, unlike POSIX, and they may run forever. */
static bool has_back_reference(const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern != '\\')
			continue;
		if (*++pattern >= '0' && *pattern <= '9')
			return true;
		if (!*pattern)
			break;
	}
	return false;
}

static int compile(regex_t *regex, const char *pattern, struct error *e)
{
	char why[256];
	int code;

	if (has_back_reference(pattern)) {
		error_set_kind(e, ERROR_USAGE, 0, "'%s' has a back-reference", pattern);
		error_hint(e, "extended regular expressions have none; see regex(7)");
		return -EINVAL;
	}
	code = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return 0;
	if (code == REG_ESPACE)
		return error_no_memory(e);
	regerror(code, regex, why, sizeof(why));
	error_set_kind(e, ERROR_USAGE, 0, "'%s' is no regular expression: %s", pattern, why);
	error_hint(e, "put a backslash before a character that stands for itself; see regex(7)");
	return -EINVAL;
}

static bool matches(const regex_t *regex, const char *text)
{
	regmatch_t part = { .rm_eo = (regoff_t)strnlen(text, MATCHED_MAX) };

	return regexec(regex, text, 1, &part, REG_STARTEND) == 0;
}

static bool location_matches(const struct profile *p, uint32_t location, const regex_t *regex,
			     const bool *functions)
{
	const struct profile_location *l = &p->locations[location];
	const struct profile_image *image = profile_location_image(p, location);

	for (uint32_t i = 0; i < l->line_count; i++)
		if (functions[p->lines[l->first_line + i].function])
			return true;
	return image && !profile_is_named(p, location) && matches(regex, image->path);
}

static void match_all(const struct profile *p, const regex_t *regex, bool *functions,
		      bool *locations)
{
	for (size_t i = 0; i < p->function_count; i++)
		functions[i] = matches(regex, p->functions[i].name);
	for (size_t i = 0; i < p->location_count; i++)
		locations[i] = location_matches(p, i, regex, functions);
}

/* Which locations a pattern matches. The caller frees *locations; NULL: there is no pattern. */
static int match_locations(const struct profile *p, const char *pattern, bool **locations,
			   struct error *e)
{
	bool *functions;
	regex_t regex;
	int err;

	*locations = NULL;
	if (!pattern)
		return 0;
	err = compile(&regex, pattern, e);
	if (err)
		return err;
	functions = calloc(p->function_count + 1, sizeof(*functions));
	*locations = calloc(p->location_count + 1, sizeof(**locations));
	if (functions && *locations)
		match_all(p, &regex, functions, *locations);
	else
		err = error_no_memory(e);
	free(functions);
	regfree(&regex);
	return err;
}

static bool has_match(const struct profile *p, const struct profile_sample *s, const bool *matching)
{
	for (uint32_t i = 0; i < s->depth; i++)
		if (matching[p->frames[s->first_frame + i]])
			return true;
	return false;
}

static void count_filtered(const struct profile *p, size_t sample, struct profile_filtered *f)
{
	enum profile_stacks stacks = profile_sample_stacks(p, &p->samples[sample]);
	const int64_t *values = p->values + sample * p->value_type_count;

	if (stacks > f->stacks)
		f->stacks = stacks;
	for (size_t i = 0; i < p->value_type_count; i++)
		f->values[i] += magnitude(values[i]);
}

/* focus, ignore: locations; NULL: no such pattern. */
static void remove_samples(struct profile *p, const bool *focus, const bool *ignore,
			   struct profile_filtered *filtered)
{
	size_t kept = 0, width = p->value_type_count;

	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];

		if ((focus && !has_match(p, s, focus)) || (ignore && has_match(p, s, ignore))) {
			count_filtered(p, i, filtered);
			continue;
		}
		p->samples[kept] = *s;
		memmove(p->values + kept++ * width, p->values + i * width,
			width * sizeof(*p->values));
	}
	p->sample_count = kept;
	for (size_t i = 0; i < p->arc_count; i++)
		filtered->calls |= p->arcs[i].kind == PROFILE_CALL;
	p->arc_count = 0;
	index_free(&p->sample_index);
	index_free(&p->arc_index);
}

/* The first of several filters sees the whole. */
static void note_all(struct profile *p)
{
	struct profile_amount all = profile_amount_before(p);

	p->all_samples = all.samples;
	p->all_cpu_ns = all.cpu_ns;
}

int profile_filter(struct profile *p, const struct profile_filter *filter,
		   struct profile_filtered *filtered, struct error *e)
{
	bool *focus, *ignore = NULL;
	int err;

	if (!filter->focus && !filter->ignore)
		return 0;
	if (!filtered->values)
		filtered->values = calloc(p->value_type_count + 1, sizeof(*filtered->values));
	if (!filtered->values)
		return error_no_memory(e);
	err = match_locations(p, filter->focus, &focus, e);
	err = err ?: match_locations(p, filter->ignore, &ignore, e);
	if (!err) {
		note_all(p);
		remove_samples(p, focus, ignore, filtered);
	}
	free(focus);
	free(ignore);
	return err;
}

/* --- By labels --- */

const struct profile_tag *profile_find_tag(const struct profile_labels *labels, const char *key)
{
	for (uint32_t i = 0; i < labels->tag_count; i++)
		if (strcmp(labels->tags[i].key, key) == 0)
			return &labels->tags[i];
	return NULL;
}

bool profile_label_filter_is_empty(const struct profile_label_filter *filter)
{
	return !filter->unit && !filter->container && !filter->user && !filter->comm;
}

/* One part of a filter, and whether any sample has that label. */
struct label_rule {
	const char *key, *pattern;
	bool known;
};

static bool rule_keeps(struct label_rule *rule, const struct profile_labels *labels)
{
	bool comm = strcmp(rule->key, "comm") == 0;
	const struct profile_tag *tag = profile_find_tag(labels, comm ? "thread" : rule->key);
	const char *text = tag && tag->text ? tag->text : "";

	if (!rule->pattern)
		return true;
	rule->known |= *text || (comm && *labels->comm);
	return (*text && fnmatch(rule->pattern, text, 0) == 0) ||
	       (comm && *labels->comm && fnmatch(rule->pattern, labels->comm, 0) == 0);
}

static void remove_unlabelled(struct profile *p, const bool *kept_labels)
{
	size_t kept = 0, width = p->value_type_count;

	for (size_t i = 0; i < p->sample_count; i++) {
		if (!kept_labels[p->samples[i].labels])
			continue;
		p->samples[kept] = p->samples[i];
		memmove(p->values + kept++ * width, p->values + i * width,
			width * sizeof(*p->values));
	}
	p->sample_count = kept;
	kept = 0;
	for (size_t i = 0; i < p->arc_count; i++) {
		if (!kept_labels[p->arcs[i].labels])
			continue;
		p->arcs[kept] = p->arcs[i];
		memmove(p->arc_values + kept++ * width, p->arc_values + i * width,
			width * sizeof(*p->arc_values));
	}
	p->arc_count = kept;
	index_free(&p->sample_index);
	index_free(&p->arc_index);
}

int profile_filter_labels(struct profile *p, const struct profile_label_filter *filter,
			  const char **lacking)
{
	struct label_rule rules[] = {
		{ .key = "unit", .pattern = filter->unit },
		{ .key = "container", .pattern = filter->container },
		{ .key = "user", .pattern = filter->user },
		{ .key = "comm", .pattern = filter->comm },
	};
	const size_t count = sizeof(rules) / sizeof(*rules);
	bool *kept = calloc(p->label_count + 1, sizeof(*kept));

	if (lacking)
		*lacking = NULL;
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < p->label_count; i++) {
		kept[i] = true;
		for (size_t j = 0; j < count; j++)
			kept[i] &= rule_keeps(&rules[j], &p->labels[i]);
	}
	for (size_t j = 0; j < count && lacking; j++)
		if (rules[j].pattern && !rules[j].known)
			*lacking = rules[j].key;
	if (!profile_label_filter_is_empty(filter)) {
		note_all(p);
		remove_unlabelled(p, kept);
	}
	free(kept);
	return 0;
}

void profile_filtered_free(struct profile_filtered *filtered)
{
	free(filtered->values);
	*filtered = (struct profile_filtered){ 0 };
}

magnitude_sum profile_filtered_sum(const struct profile_filtered *filtered, size_t value)
{
	return filtered && filtered->values ? filtered->values[value] : 0;
}

enum profile_stacks profile_stacks_unfiltered(const struct profile *p,
					      const struct profile_filtered *filtered)
{
	enum profile_stacks stacks = profile_stacks(p);

	return filtered && filtered->stacks > stacks ? filtered->stacks : stacks;
}
