// SPDX-License-Identifier: GPL-2.0-only
#include "capture/otel_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/proc.h"
#include "util/proc_maps.h"

/*
 * When a process that has not said anything yet is looked at again, at first and at most; and one
 * that has, to see whether that has changed. Bound: pace.
 */
#define LOOK_NS	    (50 * NS_PER_MS)
#define LOOK_NS_MAX (10 * NS_PER_S)
#define KNOWN_NS    NS_PER_S

/* It may be changing: it is read so often. Bound: pace. */
#define READS 3

/* The header, in the machine's byte order. */
struct otel_header {
	char signature[8]; /* written last */
	uint32_t version;
	uint32_t size;
	uint64_t published_ns; /* 0: it is being changed */
	uint64_t payload;      /* its address */
};

static const char signature[] = "OTEL_CTX";

/* --- Protocol Buffers --- */

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_64_BIT = 1,
	WIRE_BYTES = 2,
	WIRE_32_BIT = 5
};

struct bytes {
	const uint8_t *at, *end;
};

/* False: it goes on behind the end. */
static bool take_varint(struct bytes *m, uint64_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; shift < 64 && m->at < m->end; shift += 7) {
		*number |= (uint64_t)(*m->at & 0x7f) << shift;
		if (!(*m->at++ & 0x80))
			return true;
	}
	return false;
}

/*
 * Takes the next field of a message; of one that has no bytes, *content is empty. Returns its
 * number; 0: the message has ended; or -EINVAL.
 */
static int take_field(struct bytes *m, struct bytes *content)
{
	uint64_t key, size = 0;

	*content = (struct bytes){ 0 };
	if (m->at == m->end)
		return 0;
	if (!take_varint(m, &key) || key >> 3 == 0 || key >> 3 > INT32_MAX)
		return -EINVAL;
	switch (key & 7) {
	case WIRE_VARINT:
		return take_varint(m, &size) ? (int)(key >> 3) : -EINVAL;
	case WIRE_64_BIT:
		size = 8;
		break;
	case WIRE_32_BIT:
		size = 4;
		break;
	case WIRE_BYTES:
		if (take_varint(m, &size))
			break;
		return -EINVAL;
	default:
		return -EINVAL;
	}
	if (size > (uint64_t)(m->end - m->at))
		return -EINVAL;
	if ((key & 7) == WIRE_BYTES)
		*content = (struct bytes){ m->at, m->at + size };
	m->at += size;
	return key >> 3;
}

/* The last field of a message with this number; empty: there is none. */
static struct bytes find_field(struct bytes m, int number)
{
	struct bytes content, found = { 0 };
	int field;

	while ((field = take_field(&m, &content)) > 0)
		if (field == number)
			found = content;
	return found;
}

static bool is_text(struct bytes m, const char *text)
{
	return (size_t)(m.end - m.at) == strlen(text) && memcmp(m.at, text, m.end - m.at) == 0;
}

/* A name of an attribute as a label: what else is in it is an underscore. */
static void set_name(char to[static OTEL_NAME_SIZE], struct bytes text)
{
	size_t size = text.end - text.at;

	if (size >= OTEL_NAME_SIZE)
		size = 0; /* a part of it would be another name */
	for (size_t i = 0; i < size; i++) {
		char c = text.at[i];

		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.')
			c = '_';
		to[i] = c;
	}
	to[size] = '\0';
}

/* Fields of KeyValue, AnyValue and ArrayValue (opentelemetry/proto/common/v1/common.proto). */
enum {
	RESOURCE_ATTRIBUTES = 1,
	PAIR_KEY = 1,
	PAIR_VALUE = 2,
	VALUE_STRING = 1,
	VALUE_ARRAY = 5,
	ARRAY_VALUES = 1
};

static int take_names(struct otel_process *otel, struct bytes array)
{
	struct bytes value;
	int field;

	otel->names = otel->names ?: calloc(OTEL_NAMES_MAX, sizeof(*otel->names));
	if (!otel->names)
		return -ENOMEM;
	otel->name_count = 0;
	while ((field = take_field(&array, &value)) > 0)
		if (field == ARRAY_VALUES && otel->name_count < OTEL_NAMES_MAX)
			set_name(otel->names[otel->name_count++], find_field(value, VALUE_STRING));
	return field;
}

static int take_text(char **to, struct bytes text)
{
	free(*to);
	*to = text.at < text.end ? strndup((const char *)text.at, text.end - text.at) : NULL;
	return *to || text.at == text.end ? 0 : -ENOMEM;
}

int otel_parse(struct otel_process *otel, const uint8_t *payload, size_t size)
{
	struct bytes m = { payload, payload + size }, pair;
	int field, err = 0;

	while (!err && (field = take_field(&m, &pair)) != 0) {
		struct bytes key, value;

		if (field < 0)
			return field;
		if (field != RESOURCE_ATTRIBUTES)
			continue;
		key = find_field(pair, PAIR_KEY);
		value = find_field(pair, PAIR_VALUE);
		if (is_text(key, "service.name"))
			err = take_text(&otel->service, find_field(value, VALUE_STRING));
		else if (is_text(key, "service.version"))
			err = take_text(&otel->version, find_field(value, VALUE_STRING));
		else if (is_text(key, "threadlocal.attribute_key_map"))
			err = take_names(otel, find_field(value, VALUE_ARRAY));
	}
	return err;
}

/* --- Processes --- */

static void forget_what_it_says(struct otel_process *otel)
{
	free(otel->service);
	free(otel->version);
	free(otel->names);
	*otel = (struct otel_process){ .next_ns = otel->next_ns, .wait_ns = otel->wait_ns };
}

void otel_free(struct process *process)
{
	if (process->otel)
		forget_what_it_says(process->otel);
	free(process->otel);
	process->otel = NULL;
}

/* The address of the mapping that is named so; 0: there is none. */
static uint64_t find_mapping(pid_t pid)
{
	static const char *const names[] = { "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]",
					     "[anon:OTEL_CTX]" };
	FILE *maps = fopen(proc_path(pid, 0, "maps").text, "re");
	uint64_t found = 0;
	char *line = NULL;
	size_t size = 0;

	while (maps && !found && getline(&line, &size, maps) > 0) {
		struct proc_map map;

		if (!strstr(line, signature) || !proc_map_parse(line, &map))
			continue;
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strncmp(map.path, names[i], strlen(names[i])) == 0)
				found = map.start;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

static bool read_header(const struct opener_memory *m, uint64_t address, struct otel_header *header)
{
	return opener_read_memory(m, address, header, sizeof(*header)) == sizeof(*header) &&
	       memcmp(header->signature, signature, sizeof(header->signature)) == 0 &&
	       (header->version == 1 || header->version == 2);
}

/* Returns 0, -ENOMEM, -EAGAIN (it is being changed) or another error: it says nothing. */
static int read_once(const struct opener_memory *m, uint64_t address, struct otel_process *otel)
{
	struct otel_header header, again;
	uint8_t *payload;
	int err;

	if (!read_header(m, address, &header))
		return -EINVAL;
	if (!header.published_ns)
		return -EAGAIN;
	if (header.published_ns == otel->published_ns && address == otel->address)
		return 0;
	if (header.size > OTEL_PAYLOAD_MAX)
		return -EFBIG;
	payload = malloc(header.size + 1);
	if (!payload)
		return -ENOMEM;
	if (opener_read_memory(m, header.payload, payload, header.size) != header.size ||
	    !read_header(m, address, &again) || again.published_ns != header.published_ns) {
		free(payload);
		return -EAGAIN;
	}
	forget_what_it_says(otel);
	err = otel_parse(otel, payload, header.size);
	free(payload);
	otel->address = address;
	otel->published_ns = header.published_ns;
	return err;
}

int otel_read(struct process_table *table, struct process *process)
{
	const struct opener_memory m = {
		.opener = &table->opener,
		.target = { .pid = process->pid, .uid = process_user(process) },
	};
	struct otel_process *otel = process->otel;
	uint64_t address;
	int err = -EAGAIN;

	if (!otel)
		process->otel = otel = calloc(1, sizeof(*otel));
	if (!otel)
		return -ENOMEM;
	if (process->ended || (table->of_user && process->uid != table->uid))
		return 0;
	address = otel->address ?: find_mapping(process->pid);
	for (int i = 0; i < READS && err == -EAGAIN && address; i++)
		err = read_once(&m, address, otel);
	if (err && err != -EAGAIN && err != -ENOMEM)
		otel->address = 0; /* what it has said stays; another mapping may have that now */
	return err == -ENOMEM ? err : 0;
}

int otel_watch(struct process_table *table, struct process *process)
{
	int err = otel_read(table, process);

	if (!err && !process->otel->wait_ns) {
		process->otel->wait_ns = LOOK_NS;
		process->otel->next_ns = now_ns() + LOOK_NS;
		if (process->otel->next_ns < table->next_otel_ns || !table->next_otel_ns)
			table->next_otel_ns = process->otel->next_ns;
	}
	return err;
}

int otel_look_soon(struct process_table *table)
{
	uint64_t now = now_ns();
	int err = 0;

	if (!table->next_otel_ns || now < table->next_otel_ns)
		return 0;
	table->next_otel_ns = 0;
	for (size_t i = 0; i < table->count && !err; i++) {
		struct process *process = &table->processes[i];
		struct otel_process *otel = process->otel;

		if (!otel || !otel->wait_ns || process->ended)
			continue;
		if (now >= otel->next_ns) {
			err = otel_read(table, process);
			otel->wait_ns *= 2;
			if (otel->wait_ns > LOOK_NS_MAX)
				otel->wait_ns = LOOK_NS_MAX;
			otel->next_ns = now + (otel->address ? KNOWN_NS : otel->wait_ns);
		}
		if (!table->next_otel_ns || otel->next_ns < table->next_otel_ns)
			table->next_otel_ns = otel->next_ns;
	}
	return err;
}
