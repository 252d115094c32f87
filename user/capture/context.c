// SPDX-License-Identifier: GPL-2.0-only
#include "capture/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

const char context_others[] = "[others]";

const char *context_label_name(const struct context_wishes *wishes, unsigned int number)
{
	static const char *const of_programs[CONTEXT_LABEL_COUNT] = {
#define CONTEXT_LABEL_TEXT(number, name) [CONTEXT_LABEL_##number] = (name),
		CONTEXT_PROGRAM_LABELS(CONTEXT_LABEL_TEXT)
#undef CONTEXT_LABEL_TEXT
	};

	if (number < CONTEXT_WISHES_MAX)
		return wishes->wishes[number].label;
	return number < CONTEXT_LABEL_COUNT ? of_programs[number] : "";
}

static bool is_label(const struct context_wishes *wishes, unsigned int number)
{
	return number < wishes->count ||
	       (number > CONTEXT_BEFORE_PROGRAMS && number < CONTEXT_LABEL_COUNT);
}

bool context_is_valid(const struct context_image *image, const struct context_wishes *wishes)
{
	if (image->count > CONTEXT_VARIABLES || (image->count && !wishes))
		return false;
	for (uint32_t i = 0; i < image->count; i++) {
		const struct context_variable *v = &image->variables[i];

		if (v->kind == CONTEXT_NONE || v->kind >= CONTEXT_KINDS ||
		    v->rule >= CONTEXT_RULES || v->length > CONTEXT_LENGTH ||
		    !is_label(wishes, v->label))
			return false;
	}
	return true;
}

/*
 * Copies a text of a process up to a 0, with spaces for line ends, and ? for what is not text.
 * folds: no space follows another, or is at an end, as a comment may have left them.
 */
static void copy_text(const char *from, bool folds, char to[static CONTEXT_VALUE_BYTES])
{
	size_t used = 0;

	while (*from && used + 5 < CONTEXT_VALUE_BYTES) {
		uint32_t code = 0;
		size_t size = utf8_decode(from, &code);

		if (*from == '\n' || *from == '\t' || *from == '\r') {
			to[used++] = ' ';
		} else if (!size || utf8_is_hidden(code)) {
			to[used++] = '?';
		} else {
			memcpy(to + used, from, size);
			used += size;
		}
		from += size ?: 1;
		if (folds && to[used - 1] == ' ' && (used == 1 || to[used - 2] == ' '))
			used--;
	}
	while (folds && used && to[used - 1] == ' ')
		used--;
	to[used] = '\0';
}

size_t context_read_value(const struct context_value *value, const struct context_wishes *wishes,
			  struct context_text texts[static CONTEXT_TEXTS_MAX])
{
	char bytes[CONTEXT_VALUE_BYTES + 1];
	size_t count = 0, used = value->words * sizeof(uint64_t);

	if (value->words > CONTEXT_VALUE_WORDS)
		return 0;
	memcpy(bytes, value->bytes, used);
	bytes[used] = '\0';
	for (size_t i = 0; i < used && bytes[i] && count < CONTEXT_TEXTS_MAX;) {
		unsigned int label = (bytes[i] & (CONTEXT_NUMBER - 1)) - 1;
		bool is_number = bytes[i] & CONTEXT_NUMBER;
		struct context_text *to = &texts[count];
		size_t size = strlen(bytes + ++i);

		if (!is_label(wishes, label))
			break;
		to->label = context_label_name(wishes, label);
		if (is_number) {
			uint64_t number = 0;

			for (size_t k = 0; k < CONTEXT_NUMBER_BYTES && k < size; k++)
				number |= (uint64_t)(bytes[i + k] & 0x7f) << (7 * k);
			snprintf(to->text, sizeof(to->text), "%" PRIu64, number);
		} else {
			copy_text(bytes + i, !wishes->literal, to->text);
		}
		count++;
		i += size + 1;
	}
	return count;
}

size_t context_read_others(const struct context_image *image, const struct context_wishes *wishes,
			   struct context_text texts[static CONTEXT_TEXTS_MAX])
{
	for (size_t i = 0; i < image->count; i++) {
		texts[i].label = context_label_name(wishes, image->variables[i].label);
		snprintf(texts[i].text, sizeof(texts[i].text), "%s", context_others);
	}
	return image->count;
}
