// SPDX-License-Identifier: GPL-2.0-only
#include "profile/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/pc_name.h"
#include "profile/thread_walls.h"
#include "util/sum.h"

/*
 * Bytes of a name that are matched: the time for it may grow by their square.
 * Bound: files: bytes of a name that patterns are matched with; then: the rest is not matched;
 * seen: not seen.
 */
#define MATCHED_MAX 4096

/*
 * Patterns come from untrusted files, too. glibc takes memory in proportion to the bytes matched
 * times the size of the pattern, about 35 bytes for each: WORK_MAX bounds it to 150 MB. Two seconds
 * of CPU time are more than any real file needs.
 * Bound: files: size of a pattern, nested groups, work and CPU time; also of the caller's; then:
 * the pattern is refused.
 */
#define PATTERN_MAX	  4096
#define PATTERN_DEPTH_MAX 64
#define WORK_MAX	  ((size_t)4 << 20)
#define DROP_NS_MAX	  (2 * 1000000000LL)

/*
 * glibc accepts back-references in extended expressions, unlike POSIX; matching may take forever.
 */
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

/*
 * The size of a pattern with its repetitions expanded, as glibc compiles it; more than PATTERN_MAX:
 * it is too large, or its groups are nested too deeply for glibc, which recurses.
 */
static size_t expanded_size(const char *pattern)
{
	size_t sums[PATTERN_DEPTH_MAX] = { 0 }, depth = 0, atom = 0, times;
	unsigned long low, high;
	char *end;

	for (const char *c = pattern; *c; c++) {
		if (*c == '(') {
			if (++depth == PATTERN_DEPTH_MAX)
				return PATTERN_MAX + 1;
			sums[depth] = 0;
			continue;
		}
		times = 0;
		if (*c == ')' && depth) {
			atom = sums[depth--] + 1;
			sums[depth] += atom;
		} else if (*c == '*' || *c == '?') { /* what is repeated may be repeated again */
			sums[depth]++;
			atom++;
		} else if (*c == '+') { /* glibc compiles it as xx* */
			times = 1;
		} else if (*c == '{') {
			low = high = strtoul(c + 1, &end, 10);
			if (*end == ',')
				high = strtoul(end + 1, &end, 10);
			times = MAX(low, high);
			times = times < PATTERN_MAX ? times + 1 : PATTERN_MAX;
			if (*end == '}')
				c = end;
		} else {
			if (*c == '[') { /* to its end; a "]" that comes first is a member */
				c += c[1] == '^';
				c += c[1] == ']';
				while (c[1] && c[1] != ']') {
					end = NULL;
					if (c[1] == '[' && c[2] && strchr(":.=", c[2]))
						end = strchr(c + 2, ']');
					c = end ?: c + 1;
				}
				c += c[1] == ']';
			} else if (*c == '\\' && c[1]) {
				c++;
			}
			atom = 1;
			sums[depth]++;
		}
		sums[depth] += atom * times;
		atom *= 1 + times;
		if (sums[depth] > PATTERN_MAX || atom > PATTERN_MAX)
			return PATTERN_MAX + 1;
	}
	for (size_t i = depth; i > 0; i--)
		sums[0] += sums[i];
	return sums[0];
}

/* A compiled pattern; the caller regfree()s its regex. */
struct pattern {
	regex_t regex;
	const char *text;
	size_t size; /* expanded */
	size_t work; /* bytes matched since it was compiled * size: what its states may take */
	bool failed; /* no memory: its matches are wrong */
};

static int compile_pattern(struct pattern *pattern, const char *text, struct error *e)
{
	char why[256];
	int code;

	*pattern = (struct pattern){ .text = text };
	if (has_back_reference(text)) {
		error_set_kind(e, ERROR_USAGE, 0, "'%s' has a back-reference", text);
		return error_hint(e, "extended regular expressions have none; see regex(7)");
	}
	pattern->size = expanded_size(text) + 1;
	if (strlen(text) > PATTERN_MAX || pattern->size > PATTERN_MAX) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "'%.100s' is too large a regular expression: with its repetitions "
			       "more than %d characters",
			       text, PATTERN_MAX);
		return error_hint(e, "take a shorter one, or * for the repetitions");
	}
	code = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return 0;
	if (code == REG_ESPACE)
		return error_no_memory(e);
	regerror(code, &pattern->regex, why, sizeof(why));
	error_set_kind(e, ERROR_USAGE, 0, "'%s' is no regular expression: %s", text, why);
	return error_hint(
		e, "put a backslash before a character that stands for itself; see regex(7)");
}

/* glibc keeps all states that it has met: compiling the pattern again frees them. */
static bool matches_n(struct pattern *pattern, const char *text, size_t size)
{
	size_t max =
		WORK_MAX / pattern->size < MATCHED_MAX ? WORK_MAX / pattern->size : MATCHED_MAX;
	regmatch_t part = { .rm_eo = (regoff_t)MIN(size, max) };
	int code;

	if (pattern->failed)
		return false;
	pattern->work += part.rm_eo * pattern->size;
	if (pattern->work > WORK_MAX) {
		regfree(&pattern->regex);
		pattern->work = part.rm_eo * pattern->size;
		if (regcomp(&pattern->regex, pattern->text, REG_EXTENDED | REG_NOSUB)) {
			memset(&pattern->regex, 0, sizeof(pattern->regex));
			pattern->failed = true;
			return false;
		}
	}
	code = regexec(&pattern->regex, text, 1, &part, REG_STARTEND);
	pattern->failed |= code == REG_ESPACE;
	return code == 0;
}

static bool matches_text(struct pattern *pattern, const char *text)
{
	return matches_n(pattern, text, strnlen(text, MATCHED_MAX));
}

/*
 * Allocates *locations, which the caller frees: true for each location with a function, or else an
 * image, that matches. NULL if there is no pattern. Returns 0 or -errno with e set.
 */
static int match_locations(const struct profile *p, const char *pattern, bool **locations,
			   struct error *e)
{
	bool *functions;
	struct pattern regex;
	int err;

	*locations = NULL;
	if (!pattern)
		return 0;
	err = compile_pattern(&regex, pattern, e);
	if (err)
		return err;
	functions = calloc(p->function_count + 1, sizeof(*functions));
	*locations = calloc(p->location_count + 1, sizeof(**locations));
	if (!functions || !*locations) {
		err = error_no_memory(e);
		goto out;
	}
	for (size_t i = 0; i < p->function_count; i++)
		functions[i] = matches_text(&regex, p->functions[i].name);
	for (size_t i = 0; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct profile_image *image = profile_location_image(p, i);
		bool found = false;

		for (uint32_t j = 0; j < l->line_count && !found; j++)
			found = functions[p->lines[l->first_line + j].function];
		(*locations)[i] = found || (image && !profile_is_named(p, i) &&
					    matches_text(&regex, image->path));
	}
	if (regex.failed)
		err = error_no_memory(e);
out:
	free(functions);
	regfree(&regex.regex);
	return err;
}

static bool has_match(const struct profile *p, const struct profile_sample *s, const bool *matching)
{
	for (uint32_t i = 0; i < s->depth; i++)
		if (matching[p->frames[s->first_frame + i]])
			return true;
	return false;
}

/* Sets all_samples and all_cpu_ns, unless an earlier filter did. */
static void note_all(struct profile *p)
{
	struct profile_amount all = profile_amount_before(p);

	p->all_samples = all.samples;
	p->all_cpu_ns = all.cpu_ns;
}

/*
 * Keeps sample i as sample numbers[i], if that is not TICK_REMOVED, and its ticks and waits;
 * numbers are in the order of the samples.
 */
static void keep_samples(struct profile *p, const uint32_t *numbers)
{
	size_t kept = 0, width = p->value_type_count;

	for (size_t i = 0; i < p->sample_count; i++) {
		if (numbers[i] == TICK_REMOVED)
			continue;
		p->samples[kept] = p->samples[i];
		memmove(p->values + kept++ * width, p->values + i * width,
			width * sizeof(*p->values));
	}
	p->sample_count = kept;
	tick_list_renumber(&p->ticks, numbers);
	wait_list_renumber(&p->waits, numbers);
	wait_list_renumber(&p->calls, numbers);
	index_free(&p->sample_index);
	index_free(&p->arc_index);
}

bool profile_is_in_state(const struct profile *p, const struct profile_sample *sample,
			 const struct profile_filter *filter)
{
	const char *reason;
	size_t size;
	enum thread_state state = profile_sample_state(p, sample, &reason, &size);

	if ((filter->states && !(filter->states & 1U << state)) ||
	    (filter->hide_idle && state == THREAD_IDLE))
		return false;
	return !filter->reason || (reason && strlen(filter->reason) == size &&
				   strncmp(filter->reason, reason, size) == 0);
}

int profile_filter(struct profile *p, const struct profile_filter *filter,
		   struct profile_filtered *filtered, struct error *e)
{
	size_t kept = 0, width = p->value_type_count;
	bool has_base = profile_has_base(p);
	bool *focus, *ignore = NULL;
	uint32_t *numbers; /* of each sample afterwards */
	int err;

	if (!filter->focus && !filter->ignore && !filter->states && !filter->hide_idle &&
	    !filter->reason)
		return 0;
	if (!filtered->values)
		filtered->values = calloc(p->value_type_count + 1, sizeof(*filtered->values));
	if (!filtered->values)
		return error_no_memory(e);
	numbers = malloc((p->sample_count + 1) * sizeof(*numbers));
	err = match_locations(p, filter->focus, &focus, e);
	err = err ?: match_locations(p, filter->ignore, &ignore, e);
	if (!err && !numbers)
		err = error_no_memory(e);
	if (err)
		goto out;
	note_all(p);
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct profile_sample *s = &p->samples[i];
		const int64_t *values = p->values + i * width;
		enum profile_stacks stacks;

		if ((!focus || has_match(p, s, focus)) && (!ignore || !has_match(p, s, ignore)) &&
		    profile_is_in_state(p, s, filter)) {
			numbers[i] = kept++;
			continue;
		}
		numbers[i] = TICK_REMOVED;
		stacks = profile_sample_stacks(p, s);
		filtered->stacks = MAX(filtered->stacks, stacks);
		for (size_t j = 0; j < width && (!has_base || profile_is_base(p, s)); j++)
			filtered->values[j] += magnitude(values[j]);
	}
	keep_samples(p, numbers);
	for (size_t i = 0; i < p->arc_count; i++)
		filtered->calls |= p->arcs[i].kind == PROFILE_CALL;
	p->arc_count = 0;
out:
	free(numbers);
	free(focus);
	free(ignore);
	return err;
}

/*
 * Translates a pattern of Go's regexp package, which matches whole names, for regcomp(). The caller
 * frees the result. Returns NULL with e set if it has syntax that regcomp() lacks or interprets
 * differently.
 */
static char *pattern_of_go(const char *from, struct error *e)
{
	char *pattern = malloc(strlen(from) + 5), *to = pattern;
	bool bracket = false, quantified = false, good = true;

	if (!pattern) {
		error_no_memory(e);
		return NULL;
	}
	to = stpcpy(to, "^(");
	for (; *from && good; from++) {
		bool quantifier = !bracket && strchr("*+?}", *from);

		if (*from == '\\') {
			good = !bracket && from[1] &&
			       (strchr("wWsSbB", from[1]) ||
				strchr(".+*?()|[]{}^$\\-/:~ ,#&@", from[1]));
			*to++ = *from;
			if (good)
				*to++ = *++from;
		} else if (quantified && *from == '?') {
			continue; /* whole names match lazily just when they match greedily */
		} else if (!bracket && *from == '(' && from[1] == '?') {
			good = from[2] == ':';
			*to++ = '(';
			from += good ? 2 : 0;
		} else {
			if (*from == '[' && !bracket) {
				bracket = true;
				*to++ = *from;
				if (from[1] == '^')
					*to++ = *++from;
				if (from[1] == ']')
					*to++ = *++from;
				continue;
			}
			if (bracket && *from == '[' && from[1] == ':')
				while (from[1] && *from != ']')
					*to++ = *from++;
			else
				bracket &= *from != ']';
			*to++ = *from;
		}
		quantified = quantifier;
	}
	strcpy(to, ")$");
	if (good)
		return pattern;
	free(pattern);
	error_set(e, 0, "its pattern has syntax of Go's regular expressions that is unsupported");
	return NULL;
}

/* Matches a function's name without parameters, and also without template arguments. */
static bool matches_function(struct pattern *pattern, const char *name)
{
	static const char *const kept[] = { "(anonymous namespace)", "operator()" };
	char plain[MATCHED_MAX];
	size_t size = 0, used = 0, nesting = 0;

	name += *name == '.'; /* entry points on PowerPC */
	while (name[size] && name[size] != '(' && size < MATCHED_MAX) {
		size++;
		for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
			size_t before = strchr(kept[i], '(') - kept[i];

			if (name[size] == '(' && size >= before &&
			    strncmp(name + size - before, kept[i], strlen(kept[i])) == 0)
				size += strlen(kept[i]) - before;
		}
	}
	if (strncmp(name, kept[0], strlen(kept[0])) == 0 && size == 0)
		size = strcspn(name + 1, "(") + 1;
	size = MIN(size, MATCHED_MAX);
	if (matches_n(pattern, name, size))
		return true;
	for (size_t i = 0; i < size; i++) {
		if (name[i] == '<')
			nesting++;
		else if (name[i] == '>' && nesting)
			nesting--;
		else if (!nesting)
			plain[used++] = name[i];
	}
	return used < size && !nesting && matches_n(pattern, plain, used);
}

/*
 * Removes from each stack the outermost of these functions that has a caller, with all that it
 * called, and joins samples whose stacks have become equal. marks: zeroed, one for each location.
 * Returns 0 or -ENOMEM.
 */
static int drop_frames(struct profile *p, const bool *functions, uint8_t *marks)
{
	enum {
		PART = 1, /* inlined functions of the location are dropped */
		WHOLE = 2
	};
	struct profile_sample *samples = p->samples;
	size_t count = p->sample_count, width = p->value_type_count;
	uint32_t *frames = p->frames;
	int64_t *values = p->values;
	uint32_t *numbers = malloc((count + 1) * sizeof(*numbers));
	int err = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_count; i++) {
		struct profile_location *l = &p->locations[i];

		for (uint32_t line = l->line_count; line-- > 0 && !marks[i];) {
			if (!functions[p->lines[l->first_line + line].function])
				continue;
			marks[i] = line + 1 == l->line_count ? WHOLE : PART;
			if (marks[i] == PART) {
				l->first_line += line + 1;
				l->line_count -= line + 1;
			}
		}
	}
	p->samples = NULL;
	p->frames = NULL;
	p->values = NULL;
	p->sample_count = p->sample_room = p->frame_count = p->frame_room = p->value_room = 0;
	index_free(&p->sample_index);
	for (size_t i = 0; i < count && !err; i++) {
		const uint32_t *stack = frames + samples[i].first_frame;
		uint32_t cut = samples[i].depth;

		while (cut > 0 && marks[stack[cut - 1]]) /* nothing is dropped without a caller */
			cut--;
		while (cut > 0 && !marks[stack[cut - 1]])
			cut--;
		cut -= cut > 0 && marks[stack[cut - 1]] == PART;
		err = profile_sample(p, stack + cut, samples[i].depth - cut, samples[i].labels,
				     &numbers[i]);
		if (!err)
			profile_add_values(p, numbers[i], values + i * width);
	}
	if (!err) {
		tick_list_renumber(&p->ticks, numbers);
		wait_list_renumber(&p->waits, numbers);
		wait_list_renumber(&p->calls, numbers);
	}
	free(numbers);
	free(samples);
	free(frames);
	free(values);
	return err;
}

int profile_drop_frames(struct profile *p, struct error *e)
{
	struct pattern drop = { 0 }, keep = { 0 };
	struct timespec start, now;
	bool *functions = NULL;
	uint8_t *marks = NULL;
	char *drop_text, *keep_text = NULL;
	int err;

	if (!*p->drop_frames)
		return 0;
	drop_text = pattern_of_go(p->drop_frames, e);
	if (drop_text && *p->keep_frames)
		keep_text = pattern_of_go(p->keep_frames, e);
	err = !drop_text || (*p->keep_frames && !keep_text) ? -EINVAL : 0;
	err = err ?: compile_pattern(&drop, drop_text, e);
	if (!err && keep_text)
		err = compile_pattern(&keep, keep_text, e);
	if (!err) {
		functions = calloc(p->function_count + 1, sizeof(*functions));
		marks = calloc(p->location_count + 1, sizeof(*marks));
		err = functions && marks ? 0 : error_no_memory(e);
	}
	if (err == -EINVAL)
		e->kind = ERROR_FAILED; /* the file's fault, not the user's */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (size_t i = 0; i < p->function_count && !err; i++) {
		functions[i] = matches_function(&drop, p->functions[i].name) &&
			       !(keep_text && matches_function(&keep, p->functions[i].name));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		if ((now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec >
		    DROP_NS_MAX)
			err = error_set(e, EINVAL, "its pattern takes too long to match");
	}
	if (!err && (drop.failed || keep.failed))
		err = error_no_memory(e);
	if (!err && drop_frames(p, functions, marks))
		err = error_no_memory(e);
	regfree(&drop.regex);
	regfree(&keep.regex);
	free(drop_text);
	free(keep_text);
	free(functions);
	free(marks);
	return err;
}

bool profile_label_filter_is_empty(const struct profile_label_filter *filter)
{
	for (size_t i = 0; i < TAG_COUNT; i++)
		if (filter->tags[i])
			return false;
	return !filter->comm && !filter->label;
}

/* True if there is no pattern or it matches the text. Sets *known if there is a text. */
static bool pattern_keeps(const char *pattern, const char *text, bool *known)
{
	*known |= text && *text;
	return !pattern ||
	       (text && *text && (strcmp(pattern, text) == 0 || fnmatch(pattern, text, 0) == 0));
}

bool profile_unit_matches(const char *pattern, const char *unit)
{
	static const char service[] = ".service";
	char name[256]; /* as long as the name of a control group can be */
	size_t size = strlen(unit);

	if (fnmatch(pattern, unit, 0) == 0)
		return true;
	if (size >= sizeof(name) || size < sizeof(service) ||
	    strcmp(unit + size - (sizeof(service) - 1), service) != 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(size - (sizeof(service) - 1)), unit);
	return fnmatch(pattern, name, 0) == 0;
}

#define ID_SIZE 64 /* of a container, in hexadecimal digits */
/* Bound: format. */
#define ID_PART_MIN 4

bool profile_container_matches(const char *pattern, const char *container)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *slash = strrchr(container, '/'), *id = slash ? slash + 1 : container;
	size_t size = strlen(pattern);

	if (fnmatch(pattern, container, 0) == 0)
		return true;
	return size >= ID_PART_MIN && strspn(pattern, digits) == size && strlen(id) == ID_SIZE &&
	       strspn(id, digits) == ID_SIZE && strncasecmp(pattern, id, size) == 0;
}

/*
 * The name of a container when it was recorded. Of kubernetes' NAMESPACE/POD/CONTAINER, the pod,
 * the container and both are names, too.
 */
static bool container_name_matches(const char *pattern, const char *name)
{
	const char *pod = name ? strchr(name, '/') : NULL,
		   *container = pod ? strchr(pod + 1, '/') : NULL;
	char text[256]; /* as long as a tag of this kind is */

	if (!name)
		return false;
	if (fnmatch(pattern, name, 0) == 0)
		return true;
	if (!container)
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(container - pod - 1), pod + 1);
	return fnmatch(pattern, pod + 1, 0) == 0 || fnmatch(pattern, container + 1, 0) == 0 ||
	       fnmatch(pattern, text, 0) == 0;
}

/*
 * True if the tag is one that the filter asks for. Sets *known if there is one. name: of the
 * container; NULL: none is known.
 */
static bool tag_keeps(const struct profile_label_filter *filter, enum profile_tag_number tag,
		      const char *text, const char *name, bool *known)
{
	const char *pattern = filter->tags[tag];

	if (pattern_keeps(pattern, text, known))
		return true;
	if (!text || !*text)
		return false;
	if (tag == TAG_UNIT)
		return profile_unit_matches(pattern, text);
	if (tag == TAG_USER)
		return filter->user && strcmp(filter->user, text) == 0;
	if (tag != TAG_CONTAINER)
		return false;
	if (container_name_matches(pattern, name))
		return true;
	if (!filter->container_count)
		return profile_container_matches(pattern, text);
	for (size_t i = 0; i < filter->container_count; i++)
		if (strcmp(filter->containers[i], text) == 0)
			return true;
	return false;
}

/* The text of the tag whose key has this size; NULL: none. */
static const char *label_text(const struct profile_labels *labels, const char *key, size_t size)
{
	for (uint32_t i = 0; i < labels->tag_count; i++)
		if (strncmp(labels->tags[i].key, key, size) == 0 && !labels->tags[i].key[size])
			return labels->tags[i].text;
	return NULL;
}

const char *profile_match_labels(const struct profile *p, const struct profile_label_filter *filter,
				 bool *kept)
{
	bool known[TAG_COUNT] = { false }, comm_known = false, label_known = !filter->label;
	const char *pattern = filter->label ? strchrnul(filter->label, '=') : NULL;
	size_t size = pattern ? pattern - filter->label : 0;
	const char *lacking = NULL;

	pattern = pattern && *pattern ? pattern + 1 : pattern;
	for (size_t i = 0; i < p->label_count; i++) {
		const struct profile_labels *l = &p->labels[i];

		kept[i] = pattern_keeps(filter->comm, l->comm, &comm_known);
		kept[i] |=
			pattern_keeps(filter->comm, profile_tag_text(l, TAG_THREAD), &comm_known);
		kept[i] |=
			pattern_keeps(filter->comm, profile_tag_text(l, TAG_PROCESS), &comm_known);
		for (size_t j = 0; j < TAG_COUNT; j++)
			kept[i] &= tag_keeps(filter, j, profile_tag_text(l, j),
					     profile_tag_text(l, TAG_CONTAINER_NAME), &known[j]);
		if (filter->label)
			kept[i] &= pattern_keeps(pattern, label_text(l, filter->label, size),
						 &label_known);
	}
	for (size_t j = 0; j < TAG_COUNT; j++)
		if (filter->tags[j] && !known[j])
			lacking = tag_kinds[j].key;
	if (filter->comm && !comm_known)
		lacking = "comm";
	return label_known ? lacking : filter->label;
}

int profile_filter_labels(struct profile *p, const struct profile_label_filter *filter,
			  const char **lacking)
{
	size_t count = 0, width = p->value_type_count;
	bool *kept = calloc(p->label_count + 1, sizeof(*kept));
	uint32_t *numbers = malloc((p->sample_count + 1) * sizeof(*numbers));
	const char *lacks;

	if (!kept || !numbers) {
		free(kept);
		free(numbers);
		return -ENOMEM;
	}
	lacks = profile_match_labels(p, filter, kept);
	if (lacking)
		*lacking = lacks;
	if (profile_label_filter_is_empty(filter))
		goto out;
	note_all(p);
	for (size_t i = 0; i < p->sample_count; i++)
		numbers[i] = kept[p->samples[i].labels] ? count++ : TICK_REMOVED;
	keep_samples(p, numbers);
	count = 0;
	for (size_t i = 0; i < p->arc_count; i++) {
		if (!kept[p->arcs[i].labels])
			continue;
		p->arcs[count] = p->arcs[i];
		memmove(p->arc_values + count++ * width, p->arc_values + i * width,
			width * sizeof(*p->arc_values));
	}
	p->arc_count = count;
	count = 0;
	for (size_t i = 0; i < p->wall_count; i++)
		if (kept[p->walls[i].labels])
			p->walls[count++] = p->walls[i];
	p->wall_count = count;
	index_free(&p->wall_index);
out:
	free(numbers);
	free(kept);
	return 0;
}

static void extend_by_wait(struct time_interval *interval, const struct timed_wait *wait)
{
	interval_extend(interval, wait->since_ns);
	if (wait->length_ns)
		interval_extend(interval, wait->since_ns + wait->length_ns - 1);
}

struct time_interval profile_recorded(const struct profile *p)
{
	struct time_interval all = { p->time_ns, p->time_ns };

	add_u64(&all.until_ns, p->duration_ns);
	for (size_t i = 0; i < p->ticks.count; i++)
		interval_extend(&all, p->ticks.times[i]);
	for (size_t i = 0; i < p->waits.count; i++)
		extend_by_wait(&all, &p->waits.waits[i]);
	return all;
}

/*
 * True if the wall time of a part of the recording is known: waits have times, or there are none.
 */
static bool has_wall_times(const struct profile *p)
{
	size_t width = p->value_type_count, wall = profile_find_sum(p, PROFILE_SUM_WALL);

	if (wall == width || p->waits.count)
		return wall < width;
	for (size_t i = 0; i < p->sample_count; i++)
		if (p->values[i * width + wall] && !p->values[i * width + PROFILE_SAMPLES])
			return false;
	return true;
}

/* Keeps the values of a clock, and then delay and wall, of which the times are known. */
static void drop_other_values(struct profile *p)
{
	size_t width = p->value_type_count, kept[4] = { PROFILE_SAMPLES }, count = 1;
	size_t others[] = { profile_find_sum(p, PROFILE_SUM_DELAY),
			    profile_find_sum(p, PROFILE_SUM_WALL) };
	size_t clock, default_value = 0;
	struct profile_value_type types[4] = { 0 };

	if (width > PROFILE_CPU && profile_value_ns(p, PROFILE_CPU) == 1)
		kept[count++] = PROFILE_CPU;
	if (!has_wall_times(p))
		others[1] = width;
	clock = count;
	for (size_t i = 0; i < 2; i++)
		if (others[i] < width && others[i] >= clock)
			kept[count++] = others[i];
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t row[4] = { 0 };

		for (size_t k = 0; k < count; k++)
			row[k] = p->values[i * width + kept[k]];
		memcpy(p->values + i * count, row, count * sizeof(*row));
	}
	for (size_t k = 0; k < count; k++) {
		types[k] = p->value_types[kept[k]];
		if (p->default_value == kept[k] + 1)
			default_value = k + 1;
	}
	memcpy(p->value_types, types, count * sizeof(*types));
	p->default_value = default_value;
	p->value_type_count = count;
}

/* Sets a value of a sample, of which `part` of `all` ticks are left. */
static void keep_part(int64_t *value, uint64_t part, int64_t all)
{
	*value = all > 0 ? (__int128)*value * part / all : 0;
}

int profile_filter_times(struct profile *p, const struct time_interval *interval, bool outside)
{
	struct time_interval all = { p->time_ns, p->time_ns };
	uint64_t duration_ns, since_ns = interval->since_ns, until_ns = interval->until_ns,
			      inside_ns;
	struct {
		uint64_t ticks, waited_ns;
	} *left = calloc(p->sample_count + 1, sizeof(*left)); /* of each sample */
	uint32_t *numbers = malloc((p->sample_count + 1) * sizeof(*numbers));
	struct tick_list *ticks = &p->ticks;
	struct wait_list waits = { 0 };
	size_t kept = 0, width, delay, wall;
	int err = left && numbers ? 0 : -ENOMEM;
	int64_t *values;

	if (err)
		goto out;
	note_all(p);
	drop_other_values(p);
	width = p->value_type_count;
	delay = profile_find_sum(p, PROFILE_SUM_DELAY);
	wall = profile_find_sum(p, PROFILE_SUM_WALL);
	add_u64(&all.until_ns, p->duration_ns);
	for (size_t i = 0; i < ticks->count; i++) {
		bool inside = ticks->times[i] >= since_ns && ticks->times[i] < until_ns;

		interval_extend(&all, ticks->times[i]);
		if (inside == outside)
			continue;
		left[ticks->numbers[i]].ticks++;
		ticks->numbers[kept] = ticks->numbers[i];
		ticks->times[kept++] = ticks->times[i];
	}
	ticks->count = kept;
	for (size_t i = 0; i < p->waits.count && !err; i++) {
		const struct timed_wait *wait = &p->waits.waits[i];
		uint64_t end_ns = wait->since_ns + wait->length_ns;
		const struct time_interval rest[] = { { 0, since_ns }, { until_ns, UINT64_MAX } };

		extend_by_wait(&all, wait);
		for (int part = 0; part < (outside ? 2 : 1) && !err; part++) {
			const struct time_interval *keep = outside ? &rest[part] : interval;
			uint64_t from = wait->since_ns, to = end_ns;

			from = MAX(from, keep->since_ns);
			to = MIN(to, keep->until_ns);
			if (from >= to || wall == width)
				continue;
			add_u64(&left[wait->sample].waited_ns, to - from);
			err = wait_list_add(&waits, wait->sample, from, to - from,
					    to == end_ns ? wait->cpu : WAIT_NO_CPU);
		}
	}
	if (err)
		goto out;
	waits.complete = p->waits.complete;
	wait_list_free(&p->waits);
	p->waits = waits;
	waits = (struct wait_list){ 0 };
	wait_list_free(&p->calls); /* and so is their value */
	kept = 0;
	for (size_t i = 0; i < p->sample_count; i++) {
		bool empty = !left[i].ticks && !left[i].waited_ns;
		int64_t all_ticks;

		numbers[i] = empty ? TICK_REMOVED : kept++;
		if (empty)
			continue;
		values = p->values + i * width;
		all_ticks = values[PROFILE_SAMPLES];
		if (delay < width)
			keep_part(&values[delay], left[i].ticks, all_ticks);
		if (wall < width) {
			keep_part(&values[wall], left[i].ticks, all_ticks);
			if (__builtin_add_overflow(values[wall], left[i].waited_ns, &values[wall]))
				values[wall] = INT64_MAX;
		}
		profile_set_ticks(p, left[i].ticks, values);
	}
	keep_samples(p, numbers);
	p->arc_count = 0;
	err = profile_cut_walls(p);

	duration_ns = p->duration_ns ?: all.until_ns - all.since_ns;
	p->all_duration_ns = p->all_duration_ns ?: duration_ns;
	since_ns = MAX(since_ns, all.since_ns);
	until_ns = MIN(until_ns, all.until_ns);
	inside_ns = until_ns > since_ns ? until_ns - since_ns : 0;
	/* The sum of several recordings may have gaps between them. */
	inside_ns = MIN(inside_ns, duration_ns);
	if (!outside) {
		p->time_ns = since_ns < until_ns ? since_ns : all.since_ns;
		p->duration_ns = inside_ns;
	} else {
		if (inside_ns && since_ns == all.since_ns)
			p->time_ns = until_ns;
		p->duration_ns = duration_ns - inside_ns;
	}
out:
	wait_list_free(&waits);
	free(left);
	free(numbers);
	return err;
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
