// SPDX-License-Identifier: GPL-2.0-only
#include "report/changes/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/callgraph.h"
#include "profile/filter.h"
#include "profile/tags.h"
#include "report/changes/data.h"
#include "report/row_view.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/sum.h"

/*
 * Names in windows are those of any process: so many functions of services are kept at most.
 * Bound: users: functions of all services in one comparison; then: further ones are left out;
 * again: with a shorter interval; share: none: first come; seen: in the report, "left out".
 */
#define MOST_FUNCTIONS 1000000
/*
 * Bound: users: callers of a function in one comparison; then: further ones are left out; again:
 * with a shorter interval; share: the function's own; seen: not seen.
 */
#define MOST_CALLERS 32

/* From so many on, those are forgotten that have had fewer ticks than some number, up to this. */
#define MANY_FUNCTIONS 100000
#define FEW_TICKS      16

/* --- What is known by a name --- */

struct service_key {
	uint32_t host;
	const char *name;
	bool container;
};

static bool service_equal(const void *array, uint32_t number, const void *key)
{
	const struct changes_service *s = (const struct changes_service *)array + number;
	const struct service_key *k = key;

	return s->host == k->host && s->container == k->container && strcmp(s->name, k->name) == 0;
}

static int find_service(struct changes_data *d, const struct service_key *key, uint32_t *number)
{
	uint64_t hash = hash_bytes(key->name, strlen(key->name), key->host * 2 + key->container);
	struct changes_service *s;

	*number = index_find(&d->service_index, hash, service_equal, d->services, key);
	if (*number != INDEX_NONE)
		return 0;
	if (array_reserve(&d->services, &d->service_room, d->service_count + 1,
			  sizeof(*d->services)))
		return -ENOMEM;
	s = &d->services[d->service_count];
	*s = (struct changes_service){ .host = key->host, .container = key->container };
	s->name = strdup(key->name);
	*number = d->service_count++;
	return s->name ? index_add(&d->service_index, hash, *number) : -ENOMEM;
}

struct function_key {
	uint32_t service;
	const char *function, *image;
};

static bool function_equal(const void *array, uint32_t number, const void *key)
{
	const struct changes_function *f = (const struct changes_function *)array + number;
	const struct function_key *k = key;

	return f->service == k->service && !f->function == !k->function &&
	       (!f->function || strcmp(f->function, k->function) == 0) &&
	       strcmp(f->image, k->image) == 0;
}

static uint64_t function_hash(const struct function_key *key)
{
	uint64_t hash = hash_bytes(key->image, strlen(key->image), key->service);

	return key->function ? hash_bytes(key->function, strlen(key->function), hash) : hash;
}

/* *number: INDEX_NONE if there is no room for another one. */
static int find_function(struct changes *c, const struct function_key *key, uint32_t *number)
{
	struct changes_data *d = c->data;
	uint64_t hash = function_hash(key);
	struct changes_function *f;

	*number = index_find(&d->function_index, hash, function_equal, d->functions, key);
	if (*number != INDEX_NONE)
		return 0;
	if (d->function_count == MOST_FUNCTIONS) {
		c->left_out++;
		return 0;
	}
	if (array_reserve(&d->functions, &d->function_room, d->function_count + 1,
			  sizeof(*d->functions)))
		return -ENOMEM;
	f = &d->functions[d->function_count];
	*f = (struct changes_function){ .service = key->service };
	*number = d->function_count++;
	f->image = strdup(key->image);
	f->function = key->function ? strdup(key->function) : NULL;
	if (!f->image || (key->function && !f->function))
		return -ENOMEM;
	return index_add(&d->function_index, hash, *number);
}

/* The cell of the last block. */
static struct changes_cell *last_cell(struct changes_cells *c, uint32_t block)
{
	if (c->count && c->cells[c->count - 1].block == block)
		return &c->cells[c->count - 1];
	if (array_reserve(&c->cells, &c->room, c->count + 1, sizeof(*c->cells)))
		return NULL;
	c->cells[c->count] = (struct changes_cell){ .block = block };
	return &c->cells[c->count++];
}

/* The account of the last block. */
static struct changes_account *last_account(struct changes_service *s, uint32_t block)
{
	if (s->account_count && s->accounts[s->account_count - 1].block == block)
		return &s->accounts[s->account_count - 1];
	if (array_reserve(&s->accounts, &s->account_room, s->account_count + 1,
			  sizeof(*s->accounts)))
		return NULL;
	s->accounts[s->account_count] = (struct changes_account){ .block = block };
	return &s->accounts[s->account_count++];
}

/* --- One window --- */

struct window {
	struct changes *c;
	const struct profile *p;
	uint64_t start_ns, limit_ns;
	uint32_t block;
	size_t samples; /* the number of that value */
	size_t delay;	/* and of that one, or value_type_count */
	/* Of each labels, and of none: a service's number. */
	uint32_t *services;
};

/* Finds the block of a window, which is the last one or is begun. */
static int find_block(struct window *w, const char *host)
{
	struct changes_data *d = w->c->data;
	struct changes_block *block = d->block_count ? &d->blocks[d->block_count - 1] : NULL;
	uint64_t length_ns = BLOCK_S * NS_PER_S;

	if (!d->host_count || strcmp(d->hosts[d->host_count - 1], host) != 0) {
		if (array_reserve(&d->hosts, &d->host_room, d->host_count + 1, sizeof(*d->hosts)))
			return -ENOMEM;
		d->hosts[d->host_count] = strdup(host);
		if (!d->hosts[d->host_count++])
			return -ENOMEM;
		block = NULL;
	}
	if (!block || w->limit_ns - w->start_ns > length_ns ||
	    w->start_ns / length_ns != block->start_ns / length_ns) {
		if (array_reserve(&d->blocks, &d->block_room, d->block_count + 1,
				  sizeof(*d->blocks)))
			return -ENOMEM;
		block = &d->blocks[d->block_count++];
		*block = (struct changes_block){
			.host = d->host_count - 1,
			.start_ns = w->start_ns,
		};
	}
	block->limit_ns = w->limit_ns;
	add_u64(&block->recorded_ns, w->p->duration_ns);
	w->block = d->block_count - 1;
	return 0;
}

/*
 * Finds the service of each labels: the container, or else the unit; PROFILE_NONE if it is of
 * neither, as sessions and the kernel's threads are.
 */
static int find_services(struct window *w)
{
	const struct profile *p = w->p;
	uint32_t host = w->c->data->host_count - 1;
	int err = 0;

	w->services = calloc(p->label_count + 1, sizeof(*w->services));
	if (!w->services)
		return -ENOMEM;
	for (size_t i = 0; i <= p->label_count && !err; i++) {
		const struct profile_labels *l = i < p->label_count ? &p->labels[i] : NULL;
		const char *container = l ? profile_tag_text(l, TAG_CONTAINER) : NULL;
		const char *unit = l ? profile_tag_text(l, TAG_UNIT) : NULL;
		struct service_key key = {
			.host = host,
			.name = container ?: unit,
			.container = container,
		};

		w->services[i] = PROFILE_NONE;
		if (key.name)
			err = find_service(w->c->data, &key, &w->services[i]);
	}
	return err;
}

static uint32_t service_of(const struct window *w, const struct profile_sample *s)
{
	return w->services[s->labels < w->p->label_count ? s->labels : w->p->label_count];
}

static bool process_equal(const void *array, uint32_t number, const void *key)
{
	return ((const struct changes_process *)array)[number].pid == *(const uint32_t *)key;
}

static int note_process(const struct window *w, struct changes_service *s, uint32_t pid)
{
	uint64_t hash = hash_u64(pid, 0);
	uint32_t number = index_find(&s->process_index, hash, process_equal, s->processes, &pid);

	if (!pid)
		return 0;
	if (number == INDEX_NONE) {
		if (array_reserve(&s->processes, &s->process_room, s->process_count + 1,
				  sizeof(*s->processes)))
			return -ENOMEM;
		number = s->process_count++;
		s->processes[number] =
			(struct changes_process){ .pid = pid, .first_ns = w->start_ns };
		if (index_add(&s->process_index, hash, number))
			return -ENOMEM;
	}
	s->processes[number].last_start_ns = w->start_ns;
	s->processes[number].last_ns = w->limit_ns;
	return 0;
}

struct build_key {
	const char *image, *id;
};

static bool build_equal(const void *array, uint32_t number, const void *key)
{
	const struct changes_build *b = (const struct changes_build *)array + number;
	const struct build_key *k = key;

	return strcmp(b->id, k->id) == 0 && strcmp(b->image, k->image) == 0;
}

/* A service has few images, and each few builds; but one that runs tests has as many as these. */
static int note_build(const struct window *w, struct changes_service *s,
		      const struct profile_image *image)
{
	char id[BUILD_ID_TEXT_SIZE];
	const struct build_key key = { row_image_of_any_run(image->path), id };
	struct changes_build *b;
	uint32_t number;
	uint64_t hash;

	build_id_format(image->build_id, image->build_id_size, id);
	hash = hash_bytes(id, strlen(id), hash_bytes(key.image, strlen(key.image), 0));
	number = index_find(&s->build_index, hash, build_equal, s->builds, &key);
	if (number != INDEX_NONE) {
		s->builds[number].last_ns = w->limit_ns;
		return 0;
	}
	if (array_reserve(&s->builds, &s->build_room, s->build_count + 1, sizeof(*s->builds)))
		return -ENOMEM;
	b = &s->builds[s->build_count];
	*b = (struct changes_build){ .first_ns = w->start_ns, .last_ns = w->limit_ns };
	strcpy(b->id, id);
	b->image = strdup(key.image);
	if (!b->image)
		return -ENOMEM;
	return index_add(&s->build_index, hash, s->build_count++);
}

static void add_waits(struct changes_waits *to, const struct changes_waits *from)
{
	add_u64(&to->ran_ns, from->ran_ns);
	add_u64(&to->waited_ns, from->waited_ns);
	add_i64(&to->delay_ns, from->delay_ns);
	add_i64(&to->delay_cpu_ns, from->delay_cpu_ns);
}

/* For how long ticks stand. */
static int64_t ticks_ns(const struct window *w, int64_t ticks)
{
	int64_t ns;

	if (__builtin_mul_overflow(ticks, w->p->period_ns, &ns))
		return ticks < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

/* Adds the ticks of services, and notes what ran in them. */
static int add_services(struct window *w)
{
	const struct profile *p = w->p;
	struct changes_data *d = w->c->data;
	/* A build is noted once for each image and service that follow each other. */
	uint32_t last_image = PROFILE_NONE, last_service = PROFILE_NONE;
	int err = 0;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		int64_t ticks = p->values[i * p->value_type_count + w->samples];
		uint32_t number = service_of(w, sample);
		struct changes_account *account;
		struct changes_waits delays = { 0 };
		struct changes_service *s;
		struct changes_cell *cell;

		if (ticks <= 0)
			continue;
		if (w->delay < p->value_type_count) {
			delays.delay_ns = p->values[i * p->value_type_count + w->delay];
			delays.delay_cpu_ns = ticks_ns(w, ticks);
			add_waits(&d->blocks[w->block].waits, &delays);
		}
		if (number == PROFILE_NONE)
			continue;
		s = &d->services[number];
		cell = last_cell(&s->cells, w->block);
		if (!cell)
			return -ENOMEM;
		add_i64(&cell->self, ticks_ns(w, ticks));
		cell->total = cell->self;
		add_u64(&cell->ticks, ticks);
		if (w->delay < p->value_type_count) {
			account = last_account(s, w->block);
			if (!account)
				return -ENOMEM;
			add_waits(&account->waits, &delays);
		}
		if (sample->labels < p->label_count)
			err = note_process(w, s, p->labels[sample->labels].pid);
		for (uint32_t k = 0; k < sample->depth && !err; k++) {
			uint32_t mapping = p->locations[p->frames[sample->first_frame + k]].mapping;
			uint32_t image =
				mapping == PROFILE_NONE ? PROFILE_NONE : p->mappings[mapping].image;

			if (image == PROFILE_NONE || !p->images[image].build_id_size ||
			    (image == last_image && number == last_service))
				continue;
			last_image = image;
			last_service = number;
			err = note_build(w, s, &p->images[image]);
		}
	}
	return err;
}

/* Adds for how long threads of services ran, waited for a CPU and were blocked. */
static int add_accounts(struct window *w)
{
	const struct profile *p = w->p;
	struct changes_data *d = w->c->data;

	for (size_t i = 0; i < p->wall_count; i++) {
		const struct profile_wall *wall = &p->walls[i];
		const struct changes_waits waits = { wall->ran_ns, wall->runnable_ns, 0, 0 };
		uint32_t number = w->services[wall->labels];
		struct changes_account *account;

		add_waits(&d->blocks[w->block].waits, &waits);
		if (number == PROFILE_NONE)
			continue;
		account = last_account(&d->services[number], w->block);
		if (!account)
			return -ENOMEM;
		add_waits(&account->waits, &waits);
		add_u64(&account->blocked_ns, wall->blocked_ns);
		/* Once, for all labels of this service. */
		if (d->services[number].accounted_ns != w->limit_ns)
			add_u64(&account->recorded_ns, p->duration_ns);
		d->services[number].accounted_ns = w->limit_ns;
	}
	return 0;
}

/* The function of a node, in a service; cached in `known`, as the number + 1. */
static int function_of(struct window *w, const struct callgraph_key *key, uint32_t service,
		       uint32_t *known, uint32_t *number)
{
	struct function_key wanted = {
		.service = service,
		.function = key->function,
		.image = key->image ?: row_unknown,
	};
	int err = 0;

	*number = *known - 1;
	if (!*known)
		err = find_function(w->c, &wanted, number);
	*known = *number + 1;
	return err;
}

static int add_caller(struct changes_function *f, uint32_t number, int64_t total)
{
	for (size_t i = 0; i < f->caller_count; i++)
		if (f->callers[i].number == number) {
			add_i64(&f->callers[i].total, total);
			return 0;
		}
	/* Who has so many callers has no main one. */
	if (f->caller_count == MOST_CALLERS)
		return 0;
	if (array_reserve(&f->callers, &f->caller_room, f->caller_count + 1, sizeof(*f->callers)))
		return -ENOMEM;
	f->callers[f->caller_count++] = (struct changes_caller){ number, total };
	return 0;
}

/* Adds to functions who has called them. */
static int add_callers(struct window *w, const struct callgraph *g,
		       const struct callgraph_places *places)
{
	const struct profile *p = w->p;
	struct changes_data *d = w->c->data;
	/* Of the last service: samples of one follow each other. */
	uint32_t *known = calloc(g->node_count + 1, sizeof(*known)), last = PROFILE_NONE;
	int err = known ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->sample_count && !err; i++) {
		const struct profile_sample *sample = &p->samples[i];
		const uint32_t *frames = &p->frames[sample->first_frame];
		int64_t ticks = p->values[i * p->value_type_count + w->samples];
		uint32_t service = service_of(w, sample), callee = INDEX_NONE, number;

		if (service == PROFILE_NONE)
			continue;
		if (service != last)
			memset(known, 0, (g->node_count + 1) * sizeof(*known));
		last = service;
		for (uint32_t k = 0; k < sample->depth && ticks > 0 && !err; k++)
			for (uint32_t at = places->first[frames[k]];
			     at < places->first[frames[k] + 1] && !err; at++) {
				uint32_t node = places->nodes[at];

				err = function_of(w, &g->nodes[node].key, service, &known[node],
						  &number);
				if (!err && callee != INDEX_NONE && number != INDEX_NONE &&
				    callee != number)
					err = add_caller(&d->functions[callee], number,
							 ticks_ns(w, ticks));
				callee = number;
			}
	}
	free(known);
	return err;
}

/* Adds what functions took. */
static int add_functions(struct window *w)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.column_count = 1,
		.unknown = row_unknown,
		.image_name = row_image_of_any_run,
	};
	struct changes_data *d = w->c->data;
	struct callgraph_places places = { 0 };
	struct callgraph g = { 0 };
	int err = callgraph_init(&g, &options);

	err = err ?: callgraph_place(&g, w->p, &places);
	err = err ?: add_callers(w, &g, &places);
	if (!err) {
		places.keys = calloc(w->p->label_count + 1, sizeof(*places.keys));
		err = places.keys ? 0 : -ENOMEM;
	}
	/* Nodes are divided by services: by their numbers. */
	for (size_t i = 0; i <= w->p->label_count && !err; i++)
		places.keys[i].number = w->services[i] == PROFILE_NONE ? 0 : w->services[i] + 1;
	err = err ?: callgraph_count(&g, &places, &w->samples, 1, 0);
	for (size_t i = 0; i < g.node_count && !err; i++) {
		const struct callgraph_key *key = &g.nodes[i].key;
		const struct callgraph_cost *cost = &g.costs[i];
		struct function_key wanted = {
			.service = key->number - 1,
			.function = key->function,
			.image = key->image ?: row_unknown,
		};
		struct changes_cell *cell;
		uint32_t number;

		if (!key->number || (cost->self <= 0 && cost->total <= 0))
			continue;
		err = find_function(w->c, &wanted, &number);
		if (err || number == INDEX_NONE)
			continue;
		cell = last_cell(&d->functions[number].cells, w->block);
		if (!cell) {
			err = -ENOMEM;
			continue;
		}
		add_i64(&cell->self, ticks_ns(w, cost->self));
		add_i64(&cell->total, ticks_ns(w, cost->total));
	}
	free(places.keys);
	callgraph_places_free(&places);
	callgraph_free(&g);
	return err;
}

/* --- Many functions --- */

static void free_function(struct changes_function *f)
{
	free(f->function);
	free(f->image);
	free(f->cells.cells);
	free(f->callers);
}

/* Whether a function has had no tick in this block, and few before. */
static bool is_rare(const struct changes_function *f, uint32_t block, int64_t few_ns)
{
	int64_t sum = 0;

	for (size_t i = 0; i < f->cells.count; i++) {
		add_i64(&sum, f->cells.cells[i].total);
		if (f->cells.cells[i].block == block)
			return false;
	}
	return sum < few_ns;
}

static size_t count_rare(const struct changes_data *d, uint32_t block, int64_t few_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < d->function_count; i++)
		count += is_rare(&d->functions[i], block, few_ns);
	return count;
}

/* Removes the callers that have no new number, and numbers the others anew. */
static void renumber_callers(struct changes_function *f, const uint32_t *numbers)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->caller_count; i++) {
		f->callers[kept] = f->callers[i];
		f->callers[kept].number = numbers[f->callers[i].number];
		kept += f->callers[kept].number != INDEX_NONE;
	}
	f->caller_count = kept;
}

/*
 * Forgets functions of so few ticks that they would not be compared, if there are many: programs
 * that are built to be tested once have ever new ones. Half of them, or as many as there are.
 */
static int forget_rare(const struct window *w)
{
	struct changes_data *d = w->c->data;
	uint32_t *numbers = calloc(d->function_count + 1, sizeof(*numbers));
	int64_t few = 2;
	size_t kept = 0;
	int err = numbers ? 0 : -ENOMEM;

	while (!err && few < FEW_TICKS &&
	       count_rare(d, w->block, ticks_ns(w, few)) < d->function_count / 2)
		few *= 2;
	for (size_t i = 0; i < d->function_count && !err; i++) {
		struct changes_function *f = &d->functions[i];

		numbers[i] = INDEX_NONE;
		if (is_rare(f, w->block, ticks_ns(w, few))) {
			free_function(f);
			continue;
		}
		numbers[i] = kept;
		d->functions[kept++] = *f;
	}
	if (!err) {
		d->function_count = kept;
		d->function_limit = kept > MANY_FUNCTIONS / 2 ? 2 * kept : MANY_FUNCTIONS;
		index_free(&d->function_index);
	}
	for (size_t i = 0; i < kept && !err; i++) {
		struct changes_function *f = &d->functions[i];
		const struct function_key key = { f->service, f->function, f->image };

		renumber_callers(f, numbers);
		err = index_add(&d->function_index, function_hash(&key), i);
	}
	free(numbers);
	return err;
}

int changes_begin(struct changes *c)
{
	*c = (struct changes){ .data = calloc(1, sizeof(*c->data)) };
	if (!c->data)
		return -ENOMEM;
	c->data->function_limit = MANY_FUNCTIONS;
	return 0;
}

int changes_add(struct changes *c, const char *host, uint64_t start_ns, uint64_t limit_ns,
		const struct profile *p)
{
	struct window w = {
		.c = c,
		.p = p,
		.start_ns = start_ns,
		.limit_ns = limit_ns,
		.samples = profile_find_value(p, "samples"),
		.delay = profile_delay(p),
	};
	int err;

	/* Without a period, it is not known what ticks stand for. */
	if (w.samples == p->value_type_count || !p->period_ns || !p->sample_count)
		return 0;
	err = find_block(&w, host);
	err = err ?: find_services(&w);
	err = err ?: add_services(&w);
	err = err ?: add_accounts(&w);
	err = err ?: add_functions(&w);
	if (!err && c->data->function_count > c->data->function_limit)
		err = forget_rare(&w);
	free(w.services);
	return err;
}

struct change *changes_append(struct changes *c, size_t *room, uint32_t service)
{
	const struct changes_service *s = &c->data->services[service];
	struct change *change;

	if (array_reserve(&c->changes, room, c->count + 1, sizeof(*c->changes)))
		return NULL;
	change = &c->changes[c->count++];
	*change = (struct change){
		.host = c->data->hosts[s->host],
		.service = s->name,
		.container = s->container,
		.number = service,
	};
	return change;
}

/* The first metric that is this service's; NULL: none. */
static const struct changes_metric *metric_of(const struct changes_service *s,
					      const struct changes_options *o)
{
	for (size_t i = 0; i < o->metric_count; i++) {
		const struct changes_metric *m = &o->metrics[i];

		if (!m->unit || (s->container ? profile_container_matches(m->unit, s->name)
					      : profile_unit_matches(m->unit, s->name)))
			return m;
	}
	return NULL;
}

static bool is_on_both_sides(const struct changes_data *d, const struct changes_service *s,
			     uint64_t at_ns)
{
	return s->cells.count && d->blocks[s->cells.cells[0].block].start_ns < at_ns &&
	       d->blocks[s->cells.cells[s->cells.count - 1].block].limit_ns > at_ns;
}

static void name_packages(struct change *change, const struct archive_packages *packages)
{
	for (size_t i = 0; packages && i < change->image_count; i++)
		for (int side = 0; side < CHANGE_SIDES; side++)
			change->images[i].packages[side] =
				packages_find(packages, change->images[i].builds[side]);
}

int changes_find(struct changes *c, const struct changes_options *o)
{
	size_t room = 0;
	int err = 0;

	for (uint32_t i = 0; i < c->data->service_count && !err; i++) {
		const struct changes_metric *metric = metric_of(&c->data->services[i], o);
		size_t first = c->count;

		if (o->at_ns) {
			if (!is_on_both_sides(c->data, &c->data->services[i], o->at_ns))
				continue;
			struct change *change = changes_append(c, &room, i);

			if (!change)
				return -ENOMEM;
			change->asked = true;
			change->begin_ns = change->end_ns = o->at_ns;
		} else {
			err = changes_find_deploys(c, &room, i);
		}
		for (size_t k = first; k < c->count; k++) {
			c->changes[k].metric = metric;
			name_packages(&c->changes[k], o->packages);
		}
	}
	return err ?: changes_judge(c, o);
}

bool change_image_has_versions(const struct change_image *image)
{
	const struct archive_package *before = image->packages[BEFORE];
	const struct archive_package *after = image->packages[AFTER];

	return before && after &&
	       (strcmp(before->name, after->name) != 0 ||
		strcmp(before->version, after->version) != 0);
}

enum change_outcome changes_outcome(const struct changes *c)
{
	enum change_outcome worst = c->count ? CHANGE_TOO_EARLY : CHANGE_NONE;

	for (size_t i = 0; i < c->count; i++)
		if (c->changes[i].outcome > worst)
			worst = c->changes[i].outcome;
	return worst;
}

void changes_free(struct changes *c)
{
	struct changes_data *d = c->data;

	for (size_t i = 0; i < c->count; i++) {
		free(c->changes[i].images);
		free(c->changes[i].rows);
	}
	free(c->changes);
	for (size_t i = 0; d && i < d->host_count; i++)
		free(d->hosts[i]);
	for (size_t i = 0; d && i < d->service_count; i++) {
		struct changes_service *s = &d->services[i];

		for (size_t k = 0; k < s->build_count; k++)
			free(s->builds[k].image);
		free(s->builds);
		index_free(&s->build_index);
		free(s->processes);
		index_free(&s->process_index);
		free(s->cells.cells);
		free(s->accounts);
		free(s->name);
	}
	for (size_t i = 0; d && i < d->function_count; i++)
		free_function(&d->functions[i]);
	if (d) {
		free(d->hosts);
		free(d->blocks);
		free(d->services);
		free(d->functions);
		index_free(&d->service_index);
		index_free(&d->function_index);
	}
	free(d);
	*c = (struct changes){ 0 };
}
