// SPDX-License-Identifier: GPL-2.0-only
#include "capture/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/otel_process.h"
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
	return number < CONTEXT_LABEL_COUNT && of_programs[number] ? of_programs[number] : "";
}

static bool is_label(const struct context_wishes *wishes, unsigned int number)
{
	return number < wishes->count ||
	       (number > CONTEXT_BEFORE_PROGRAMS && number < CONTEXT_LABEL_COUNT);
}

bool context_is_valid(const struct context_image *image, const struct context_wishes *wishes)
{
	if (image->count > CONTEXT_VARIABLES || image->fixed > image->count ||
	    (image->count && !wishes))
		return false;
	for (uint32_t i = 0; i < image->count; i++) {
		const struct context_variable *v = &image->variables[i];

		if (v->kind == CONTEXT_NONE || v->kind >= CONTEXT_KINDS ||
		    v->rule >= CONTEXT_RULES || v->length > CONTEXT_LENGTH ||
		    v->place >= CONTEXT_PLACES ||
		    (!is_label(wishes, v->label) && v->kind != CONTEXT_GO_SLICE &&
		     v->kind != CONTEXT_GO_MAP) ||
		    (v->kind == CONTEXT_RECORD) != (v->label == CONTEXT_LABEL_ATTRIBUTES))
			return false;
	}
	return true;
}

/*
 * Copies a text of a process up to a 0, with spaces for line ends, and ? for what is not text.
 * folds: no space follows another, or is at an end, as a comment may have left them.
 */
static void copy_text(const char *from, bool folds, char *to, size_t to_size)
{
	size_t used = 0;

	while (*from && used + 5 < to_size) {
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

static void set_hex(struct context_text *to, const char *label, const uint8_t *bytes, size_t size)
{
	to->label = label;
	to->is_foreign = false;
	for (size_t i = 0; i < size; i++)
		snprintf(to->text + 2 * i, 3, "%02x", bytes[i]);
}

/* What OpenTelemetry calls otherwise than others do: the same attribute by other libraries' names.
 */
static const char *label_of_attribute(const char *name)
{
	return strcmp(name, "http.route") == 0 || strcmp(name, "http_route") == 0 ? "route" : name;
}

/* Of entries with the same key, the last one counts. Those of keys without a name have no label. */
static size_t read_attributes(const uint8_t *bytes, size_t size, const struct otel_process *otel,
			      struct context_text *texts)
{
	size_t count = 0;

	if (!otel)
		return 0;
	for (size_t i = 0; i + 2 <= size && i + 2 + bytes[i + 1] <= size; i += 2 + bytes[i + 1]) {
		const char *label;
		char text[UINT8_MAX + 1];
		size_t at = 0;

		if (bytes[i] >= otel->name_count || !*otel->names[bytes[i]])
			continue;
		label = label_of_attribute(otel->names[bytes[i]]);
		while (at < count && strcmp(texts[at].label, label) != 0)
			at++;
		if (at == CONTEXT_ATTRIBUTES_MAX)
			continue;
		count += at == count;
		memcpy(text, bytes + i + 2, bytes[i + 1]);
		text[bytes[i + 1]] = '\0';
		texts[at].label = label;
		texts[at].is_foreign = true;
		copy_text(text, false, texts[at].text, sizeof(texts[at].text));
	}
	return count;
}

/*
 * Reads the bytes of a record behind their label. Sets *count to the number of labels. Returns how
 * many bytes they are; 0: there are none.
 */
static size_t read_record(const uint8_t *bytes, size_t left, unsigned int label,
			  const struct otel_process *otel, struct context_text *texts,
			  size_t *count)
{
	size_t size;

	*count = 0;
	if (left < 3)
		return 0;
	size = (bytes[0] & 0x7f) | (bytes[1] & 0x7f) << 7;
	if (size > left - 3)
		return 0;
	bytes += 2;
	if (label == CONTEXT_LABEL_ATTRIBUTES) {
		*count = read_attributes(bytes, size, otel, texts);
	} else if (label == CONTEXT_LABEL_IDS && size == CONTEXT_ID_BYTES) {
		set_hex(&texts[0], "trace_id", bytes, 16);
		set_hex(&texts[1], "span_id", bytes + 16, 8);
		*count = 2;
	} else if (label == CONTEXT_LABELS) {
		texts[0].label = "trace_id";
		texts[0].is_foreign = false;
		snprintf(texts[0].text, sizeof(texts[0].text), "%s", context_others);
		*count = 1;
	}
	return size + 3;
}

size_t context_read_service(const struct otel_process *otel,
			    struct context_text texts[static CONTEXT_TEXTS_MAX], size_t count)
{
	const struct {
		const char *label, *text;
	} service[CONTEXT_SERVICE_MAX] = {
		{ "service", otel ? otel->service : NULL },
		{ "service_version", otel ? otel->version : NULL },
	};

	for (size_t i = 0; i < CONTEXT_SERVICE_MAX && count < CONTEXT_TEXTS_MAX; i++)
		if (service[i].text) {
			texts[count].label = service[i].label;
			texts[count].is_foreign = false;
			copy_text(service[i].text, false, texts[count].text,
				  sizeof(texts[count].text));
			count++;
		}
	return count;
}

size_t context_read_value(const struct context_value *value, const struct context_wishes *wishes,
			  const struct otel_process *otel,
			  struct context_text texts[static CONTEXT_TEXTS_MAX])
{
	char bytes[CONTEXT_VALUE_BYTES + 1];
	size_t i = 0, count = 0, used = value->words * sizeof(uint64_t);

	if (value->words > CONTEXT_VALUE_WORDS)
		return 0;
	memcpy(bytes, value->bytes, used);
	bytes[used] = '\0';
	while (i < used && bytes[i] &&
	       count < CONTEXT_TEXTS_MAX - CONTEXT_ATTRIBUTES_MAX - CONTEXT_SERVICE_MAX) {
		unsigned int label = (bytes[i] & (CONTEXT_NUMBER - 1)) - 1;
		bool is_number = bytes[i] & CONTEXT_NUMBER;
		struct context_text *to = &texts[count];
		size_t size, labels;

		if (bytes[i] & CONTEXT_BLOB) {
			size = read_record((uint8_t *)bytes + i + 1, used - i - 1, label, otel, to,
					   &labels);
			if (!size)
				break;
			count += labels;
			i += size + 1;
			continue;
		}
		size = strlen(bytes + ++i);
		to->is_foreign = bytes[i - 1] == CONTEXT_NAMED;
		if (to->is_foreign) {
			copy_text(bytes + i, true, to->name, sizeof(to->name));
			to->label = to->name;
			i += size + 1;
			size = i < used ? strlen(bytes + i) : 0;
			if (!*to->name || !size)
				break;
		} else if (is_label(wishes, label)) {
			to->label = context_label_name(wishes, label);
		} else {
			break;
		}
		if (is_number) {
			uint64_t number = 0;

			for (size_t k = 0; k < CONTEXT_NUMBER_BYTES && k < size; k++)
				number |= (uint64_t)(bytes[i + k] & 0x7f) << (7 * k);
			snprintf(to->text, sizeof(to->text), "%" PRIu64, number);
		} else {
			copy_text(bytes + i, !wishes->literal, to->text, sizeof(to->text));
		}
		count++;
		i += size + 1;
	}
	return count;
}

bool context_is_cut(const struct context_value *value)
{
	const uint8_t *bytes = (const uint8_t *)value->bytes;
	size_t i = 0, used = value->words * sizeof(uint64_t), keys = 0;
	bool has_key[UINT8_MAX + 1] = { false };

	if (value->hash & CONTEXT_HASH_CUT)
		return true;
	if (value->words > CONTEXT_VALUE_WORDS)
		return false;
	while (i + 3 < used && bytes[i] &&
	       bytes[i] != (CONTEXT_BLOB | (CONTEXT_LABEL_ATTRIBUTES + 1)))
		for (int texts = bytes[i] == CONTEXT_NAMED ? 2 : 1; texts; texts--)
			i += strnlen((const char *)bytes + i, used - i) + 1;
	if (i + 3 < used && bytes[i]) {
		size_t end = i + 3 + ((bytes[i + 1] & 0x7f) | (bytes[i + 2] & 0x7f) << 7);

		for (i += 3; i + 2 <= end && end <= used; i += 2 + bytes[i + 1]) {
			keys += !has_key[bytes[i]];
			has_key[bytes[i]] = true;
		}
	}
	return keys > CONTEXT_ATTRIBUTES_MAX;
}

size_t context_read_others(const struct context_image *image, const struct context_wishes *wishes,
			   struct context_text texts[static CONTEXT_TEXTS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < image->count; i++) {
		texts[count].label =
			image->variables[i].kind == CONTEXT_RECORD
				? "trace_id"
				: context_label_name(wishes, image->variables[i].label);
		texts[count].is_foreign = false;
		snprintf(texts[count].text, sizeof(texts[count].text), "%s", context_others);
		count += *texts[count].label != '\0';
	}
	return count;
}
