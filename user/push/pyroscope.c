// SPDX-License-Identifier: GPL-2.0-only
/*
 * A window for Pyroscope's push.v1.PusherService, by the connect protocol: a pprof file for each
 * service and kind of value. Pyroscope keeps a series for each combination of labels, also of those
 * inside of the files, where only the process's name remains.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "format/pprof/pprof.h"
#include "profile/service.h"
#include "push/request.h"
#include "pyroscope.pb-c.h"

/* Bound: size. */
#define LABELS_MAX 4
#define UUID_SIZE  sizeof("00000000-0000-0000-0000-000000000000")

/* The files of a service: what their series are called. */
enum kind {
	KIND_CPU,
	KIND_DELAY,
	KIND_OFF_CPU,
	KINDS
};

static const char *const kind_names[KINDS] = { "process_cpu", "delay", "off_cpu" };

/* A service's part of a request. */
struct part {
	Profil__Pyroscope__RawProfileSeries series;
	Profil__Pyroscope__RawSample sample;
	Profil__Pyroscope__LabelPair labels[LABELS_MAX];
	Profil__Pyroscope__RawSample *sample_pointer;
	Profil__Pyroscope__LabelPair *label_pointers[LABELS_MAX];
	char id[UUID_SIZE];
};

static int add_label(struct part *part, const char *name, const char *value)
{
	Profil__Pyroscope__LabelPair *label = &part->labels[part->series.n_labels];

	if (!*value)
		return 0;
	profil__pyroscope__label_pair__init(label);
	label->name = (char *)name;
	label->value = message_text(value);
	part->label_pointers[part->series.n_labels++] = label;
	return label->value ? 0 : -ENOMEM;
}

/* Whether a value of the profile is in files of this kind. off_cpu is none of its values. */
static bool has_value(const struct profile *p, enum kind kind, size_t value)
{
	enum profile_sum sum = profile_sum(p, value);

	return kind == KIND_CPU ? sum < PROFILE_SUM_DELAY
				: kind == KIND_DELAY && sum == PROFILE_SUM_DELAY;
}

/*
 * Writes the samples of a service that have values of a kind as a pprof file, in a copy of the
 * profile. `part` has its own arrays of samples, values and value types for that. file->len 0:
 * there are none.
 */
static int write_file(const struct profile *part, const struct profile *p, const struct services *s,
		      size_t service, enum kind kind, ProtobufCBinaryData *file, struct error *e)
{
	const struct format_options options = { .utf8 = true };
	struct profile copy = *part;
	char *bytes = NULL;
	FILE *out;
	int err;

	copy.sample_count = copy.value_type_count = 0;
	for (size_t i = 0; i < p->value_type_count; i++)
		if (has_value(p, kind, i))
			copy.value_types[copy.value_type_count++] = p->value_types[i];
	if (kind == KIND_OFF_CPU)
		copy.value_types[copy.value_type_count++] = (struct profile_value_type){
			.type = "off_cpu", .unit = "nanoseconds", .title = "", .formula = ""
		};
	if (copy.default_value > copy.value_type_count)
		copy.default_value = 0;
	/* Servers name a type of values by its period, too: see kind_of() of OTLP. */
	if (kind == KIND_DELAY && copy.value_type_count)
		copy.value_types[0].period = 1;
	for (size_t i = 0; i < p->sample_count; i++) {
		int64_t *to = &copy.values[copy.sample_count * copy.value_type_count], any = 0;

		if (s->of_sample[i] != service)
			continue;
		if (kind == KIND_OFF_CPU)
			any = *to++ = profile_off_cpu(p, i);
		for (size_t j = 0; j < p->value_type_count; j++) {
			if (!has_value(p, kind, j))
				continue;
			*to = p->values[i * p->value_type_count + j];
			any |= *to++;
		}
		if (any)
			copy.samples[copy.sample_count++] = p->samples[i];
	}
	file->len = 0;
	if (!copy.sample_count)
		return 0;
	out = open_memstream(&bytes, &file->len);
	err = out ? format_pprof.write(&copy, &options, out, e) : error_no_memory(e);
	if (out && fclose(out) && !err)
		err = error_no_memory(e);
	file->data = (uint8_t *)bytes;
	return err;
}

static int make_part(struct part *part, const struct profile *samples, const struct profile *p,
		     const struct services *s, size_t service, enum kind kind, struct error *e)
{
	const struct service *from = &s->items[service];
	uint8_t id[MESSAGE_ID_SIZE];
	char *text = part->id;
	int err;

	profil__pyroscope__raw_profile_series__init(&part->series);
	profil__pyroscope__raw_sample__init(&part->sample);
	message_profile_id(p, kind * s->count + service, id);
	for (size_t i = 0; i < MESSAGE_ID_SIZE; i++)
		text += sprintf(text, "%s%02x", i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", id[i]);
	part->sample.id = part->id;
	part->sample_pointer = &part->sample;
	part->series.n_samples = 1;
	part->series.samples = &part->sample_pointer;
	part->series.labels = part->label_pointers;
	/* The names of labels are those that the server has for profiles that come by OTLP. */
	err = add_label(part, "__name__", kind_names[kind]);
	err = err ?: add_label(part, "service_name", from->name);
	err = err ?: add_label(part, "host_name", p->host);
	if (!err && from->container)
		err = add_label(
			part,
			service_container_key(from->container, "container_id", "container_name"),
			from->container);
	if (err)
		return error_no_memory(e);
	return write_file(samples, p, s, service, kind, &part->sample.raw_profile, e);
}

/*
 * Makes the profile as the engine is to see it: without its comments, account and most labels. It
 * has its own arrays of all that differs, which the caller frees. Returns 0 or -ENOMEM.
 */
static int make_view(struct profile *p, const struct profile *from)
{
	*p = *from;
	p->samples = calloc(from->sample_count + 1, sizeof(*p->samples));
	p->values = calloc(from->sample_count * from->value_type_count + 1, sizeof(*p->values));
	p->value_types = calloc(from->value_type_count + 1, sizeof(*p->value_types));
	p->labels = calloc(from->label_count + 1, sizeof(*p->labels));
	p->totals = (struct profile_totals){ 0 };
	p->comment_count = 0;
	p->extra_count = 0;
	p->wall_count = 0;
	p->ticks.count = p->waits.count = 0; /* parts have other numbers of samples */
	if (!p->samples || !p->values || !p->value_types || !p->labels)
		return -ENOMEM;
	for (size_t i = 0; i < p->label_count; i++)
		p->labels[i].comm = from->labels[i].comm;
	return 0;
}

static int encode_pyroscope(const struct profile *p, struct message_bytes *body, struct error *e)
{
	Profil__Pyroscope__PushRequest request = PROFIL__PYROSCOPE__PUSH_REQUEST__INIT;
	struct services s = { 0 };
	struct part *parts = NULL;
	struct profile view = { 0 };
	size_t made = 0;
	int err = services_find(p, profile_value(p, NULL), &s, e);

	if (err)
		goto out;
	parts = calloc(KINDS * s.count + 1, sizeof(*parts));
	request.series = calloc(KINDS * s.count + 1, sizeof(*request.series));
	if (!parts || !request.series || make_view(&view, p)) {
		err = error_no_memory(e);
		goto out;
	}
	for (size_t i = 0; i < KINDS * s.count && !err; i++) {
		err = make_part(&parts[i], &view, p, &s, i / KINDS, i % KINDS, e);
		made++;
		if (parts[i].sample.raw_profile.len)
			request.series[request.n_series++] = &parts[i].series;
	}
	if (err)
		goto out;
	body->size = body->room = protobuf_c_message_get_packed_size(&request.base);
	body->at = malloc(body->size + 1);
	if (body->at)
		protobuf_c_message_pack(&request.base, body->at);
	else
		err = error_no_memory(e);
out:
	for (size_t i = 0; i < made; i++) {
		for (size_t k = 0; k < parts[i].series.n_labels; k++)
			free(parts[i].labels[k].value);
		free(parts[i].sample.raw_profile.data);
	}
	free(parts);
	free(request.series);
	free(view.samples);
	free(view.values);
	free(view.value_types);
	free(view.labels);
	services_free(&s);
	return err;
}

const struct push_protocol push_pyroscope = {
	.name = "pyroscope",
	.path = "/push.v1.PusherService/Push",
	.content_type = "application/proto",
	.header = "Connect-Protocol-Version: 1",
	.encode = encode_pyroscope,
};
