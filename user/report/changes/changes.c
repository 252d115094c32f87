// SPDX-License-Identifier: GPL-2.0-only
#include "report/changes/changes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/callgraph.h"
#include "profile/filter.h"
#include "profile/tags.h"
#include "profile/thread_state.h"
#include "report/changes/data.h"
#include "report/row_view.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/order.h"
#include "util/share_out.h"
#include "util/sum.h"

/*
 * The old build, or the old processes, may run so long beside the new ones: one after another.
 * Bound: pace.
 */
#define ROLLING_NS (15 * 60 * NS_PER_S)

/*
 * Two parts of one deploy, as of a program and its libraries, begin within this time.
 * Bound: pace.
 */
#define TOGETHER_NS (10 * 60 * NS_PER_S)

/* Something that was replaced: the time between the last of the old and the first of the new. */
struct replaced {
	uint64_t begin_ns, end_ns;
	bool rolling; /* the old ran beside the new in this time */
	/* Builds of an image; NULL: processes. */
	const struct changes_build *old, *new;
};

struct replaced_list {
	struct replaced *list;
	size_t count, room;
};

/* By when they began, for qsort(3). */
static int changes_compare_processes(const void *one, const void *other)
{
	const struct changes_process *a = one, *b = other;

	return compare_u64(a->first_ns, b->first_ns);
}

/* Appends a change of a service. Returns it, or NULL: no memory. */
static struct change *changes_append(struct changes *c, size_t *room, uint32_t service)
{
	const struct changes_service *s = &c->data->services[service];
	struct change *change;

	if (array_reserve(&c->changes, room, c->count + 1, sizeof(*c->changes)))
		return NULL;
	change = &c->changes[c->count++];
	*change = (struct change){
		.host = c->data->hosts[s->host],
		.service = s->name,
		.user = s->user,
		.container = s->container,
		.of_system = changes_is_system(c->data, s),
		.number = service,
	};
	return change;
}

static int append(struct replaced_list *l, uint64_t last_old_ns, uint64_t first_new_ns,
		  const struct changes_build *old, const struct changes_build *new)
{
	return array_add(l->list, l->count, l->room,
			 (struct replaced){
				 .begin_ns = MIN(last_old_ns, first_new_ns),
				 .end_ns = MAX(last_old_ns, first_new_ns),
				 .old = old,
				 .rolling = last_old_ns > first_new_ns,
				 .new = new,
			 });
}

/* By image, and then in the order of time. */
ORDER(compare_builds, struct changes_build *const,
      strcmp((*a)->image, (*b)->image) ?: COMPARE((*a)->first_ns, (*b)->first_ns)
                                       ?: COMPARE(*a, *b))

/*
 * A build is deployed when it comes where another one of the same image was before, which is then
 * no longer there. Two that are used side by side are none.
 */
static int find_builds(const struct changes_service *s, struct replaced_list *l)
{
	const struct changes_build **builds = calloc(s->build_count + 1, sizeof(*builds));
	size_t first = 0; /* of those that came when the last one did */
	const struct changes_build *old = NULL;
	int err = builds ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->build_count && !err; i++)
		builds[i] = &s->builds[i];
	if (!err && s->build_count)
		qsort(builds, s->build_count, sizeof(*builds), compare_builds);
	for (size_t i = 0; i < s->build_count && !err; i++) {
		const struct changes_build *new = builds[i];
		bool same_image = i && strcmp(builds[i - 1]->image, new->image) == 0;

		if (!same_image)
			old = NULL;
		if (!same_image || builds[first]->first_ns < new->first_ns) {
			/* Of those that came before, the one that was there last. */
			for (; same_image && first < i; first++)
				if (!old || builds[first]->last_ns > old->last_ns)
					old = builds[first];
			first = i;
		}
		if (old && old->last_ns <= new->first_ns + ROLLING_NS)
			err = append(l, old->last_ns, new->first_ns, old, new);
	}
	free(builds);
	return err;
}

/*
 * A service is restarted when all of its lasting processes are others than before. Both may have
 * ticks in the window in which that was, which is long when windows were merged.
 */
static int find_restarts(struct changes_service *s, struct replaced_list *l)
{
	uint64_t last_start_ns = 0, last_ns = 0;
	int err = 0;

	if (s->process_count)
		qsort(s->processes, s->process_count, sizeof(*s->processes),
		      changes_compare_processes);
	index_free(&s->process_index); /* of another order */
	for (size_t i = 0; i < s->process_count && !err; i++) {
		const struct changes_process *p = &s->processes[i];

		if (!changes_lasts(p))
			continue;
		if (last_ns && p->first_ns >= last_start_ns)
			err = append(l, last_ns, p->first_ns, NULL, NULL);
		last_start_ns = MAX(last_start_ns, p->last_start_ns);
		last_ns = MAX(last_ns, p->last_ns);
	}
	return err;
}

/* The shorter first: when something was replaced is known best by what has most ticks. */
ORDER(compare_lengths, struct replaced,
      COMPARE(a->end_ns - a->begin_ns, b->end_ns - b->begin_ns) ?: LEAST(begin_ns))

ORDER(compare_changes, struct change, LEAST(begin_ns))

/* Appends the deploys of a service, in the order of time. Returns 0 or -ENOMEM. */
static int changes_find_deploys(struct changes *c, size_t *room, uint32_t service)
{
	struct changes_service *s = &c->data->services[service];
	struct replaced_list l = { 0 };
	size_t first = c->count;
	int err = find_builds(s, &l) ?: find_restarts(s, &l);

	if (l.count)
		qsort(l.list, l.count, sizeof(*l.list), compare_lengths);
	for (size_t i = 0; i < l.count && !err; i++) {
		const struct replaced *r = &l.list[i];
		struct change *change;
		size_t k = first;

		while (k < c->count && (r->begin_ns > c->changes[k].end_ns + TOGETHER_NS ||
					c->changes[k].begin_ns > r->end_ns + TOGETHER_NS))
			k++;
		if (k == c->count) {
			change = changes_append(c, room, service);
			if (!change) {
				err = -ENOMEM;
				break;
			}
			change->begin_ns = r->begin_ns;
			change->end_ns = r->end_ns;
		}
		change = &c->changes[k];
		if (r->rolling && r->begin_ns < change->begin_ns)
			change->begin_ns = r->begin_ns;
		if (r->rolling && r->end_ns > change->end_ns)
			change->end_ns = r->end_ns;
		if (r->new) {
			struct change_image *image;

			err = array_reserve(&change->images, &change->image_room,
					    change->image_count + 1, sizeof(*image));
			if (err)
				break;
			image = &change->images[change->image_count++];
			image->name = r->new->image;
			image->part = fmax((double)r->old->ticks / (double)r->old->all,
					   (double)r->new->ticks / (double)r->new->all);
			strcpy(image->builds[BEFORE], r->old->id);
			strcpy(image->builds[AFTER], r->new->id);
		} else {
			change->restarted = true;
		}
	}
	if (c->count > first)
		qsort(c->changes + first, c->count - first, sizeof(*c->changes), compare_changes);
	free(l.list);
	return err;
}

/*
 * What an owner may have here; over it, less of that owner is compared. In bytes, of functions: of
 * each host's system services, and of all its other owners, who share it evenly. One window may
 * exceed it by this factor.
 * Bound: users: bytes of functions of a host's services in one comparison; then: those with the
 * fewest ticks are left out; again: with each window; share: the system's, and all others', of whom
 * each has an even part; seen: the report and the log name the owner.
 */
#define SYSTEM_BYTES  ((size_t)48 << 20)
#define OTHERS_BYTES  ((size_t)48 << 20)
#define OWNER_BYTES   ((size_t)12 << 20) /* of one of these others */
#define WINDOW_EXCESS 2

/*
 * Services of one owner other than the system, and of all of them on a host.
 * Bound: users: services of a user or container, and of all of these, in one comparison; then:
 * further ones are left out; again: at the next look; share: the owner's own, the system's are
 * without limit; seen: the report and the log name the owner.
 */
#define OWNER_SERVICES	256
#define OTHERS_SERVICES 4096

/*
 * Functions of a service of theirs: these are compared with each other.
 * Bound: users: functions of a user's or container's service in one comparison; then: those that
 * take least are left out; again: at the next look; share: the service's own; seen: the report and
 * the log name the owner.
 */
#define SERVICE_FUNCTIONS 4096

/*
 * Deploys of one of them, the newest of each service; and of all.
 * Bound: users: deploys of a user's or container's services in one comparison; then: the oldest are
 * left out; again: at the next look; share: the owner's own; of all, those with few functions
 * first; seen: the report and the log name the owner.
 */
#define OWNER_CHANGES  64
#define OTHERS_CHANGES 4096

/*
 * Builds of a service, of which those that were there last are kept.
 * Bound: users: builds of a service in one comparison; then: the older half is forgotten, and its
 * deploys with it; again: with the next builds; share: the service's own; seen: not seen.
 */
#define SERVICE_BUILDS 1024

/*
 * Processes of a service that are kept apart before those that have ended are joined.
 * Bound: size.
 */
#define SERVICE_PROCESSES 4096

/*
 * Who calls a function: one with so many callers has no main one.
 * Bound: users: callers of a function in one comparison; then: further ones are left out;
 * again: with a shorter interval; share: the function's own; seen: not seen.
 */
#define MOST_CALLERS 32

/* Functions of fewer ticks would not be compared: they are forgotten before any are left out. */
#define FEW_TICKS 16

/*
 * A build is there in a window in which this part of the service's ticks has it in their stacks.
 * With less, it cannot make a difference of what is reported, unless less than 1 % was asked for.
 * Bound: size.
 */
#define REAL_PART 0.01

/* The service of a user's own manager, and what it runs. */
#define USER_MANAGER "user@"

/* --- What is known by a name --- */

struct name {
	uint32_t host;
	const char *text; /* of an owner, NULL: the system */
	size_t size;
	bool is_container; /* that no user has named */
};

EQUAL(owner_equal, struct changes_owner, struct name,
      SAME(host) && !a->name == !b->text &&
	      (!b->text || (strlen(a->name) == b->size && memcmp(a->name, b->text, b->size) == 0)))

static int find_owner(struct changes_data *d, const struct name *key, uint32_t *number)
{
	uint64_t hash = hash_bytes(key->text ?: "", key->size, 2 * key->host + !key->text);
	struct changes_owner *o;

	*number = index_find(&d->owner_index, hash, owner_equal, d->owners, key);
	if (*number != INDEX_NONE)
		return 0;
	if (array_reserve(&d->owners, &d->owner_room, d->owner_count + 1, sizeof(*d->owners)))
		return -ENOMEM;
	o = &d->owners[d->owner_count];
	*o = (struct changes_owner){ .host = key->host };
	o->name = key->text ? strndup(key->text, key->size) : NULL;
	if (key->text && !o->name)
		return -ENOMEM;
	*number = d->owner_count++;
	return index_add(&d->owner_index, hash, *number);
}

/* The owner of what has these labels. *user: whose processes are apart from others of the unit. */
static struct name owner_name(uint32_t host, const struct profile_labels *l, const char **user)
{
	const char *container = profile_tag_text(l, TAG_CONTAINER);
	const char *name = container ?: profile_tag_text(l, TAG_UNIT);
	const char *of = profile_tag_text(l, TAG_USER);
	size_t size = name ? strcspn(name, "/") : 0;

	*user = NULL;
	/* The system names the outermost group; what is in it is named by whoever has that. */
	if (name &&
	    (container || name[size] || strncmp(name, USER_MANAGER, strlen(USER_MANAGER)) == 0))
		return (struct name){ host, name, size, container && !name[size] };
	if (!of || strcmp(of, "root") == 0 || strcmp(of, "0") == 0)
		return (struct name){ host, NULL, 0, false };
	*user = of;
	return (struct name){ host, of, strlen(of), false };
}

struct service_key {
	uint32_t host;
	const char *name, *user;
	bool container;
};

static bool same_text(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

EQUAL(service_equal, struct changes_service, struct service_key,
      SAME(host) && SAME(container) && strcmp(a->name, b->name) == 0 && same_text(a->user, b->user))

/* *number: PROFILE_NONE if the owner has too many. */
static int find_service(struct changes *c, const struct service_key *key, const struct name *owner,
			uint32_t *number)
{
	struct changes_data *d = c->data;
	uint64_t hash = hash_bytes(key->name, strlen(key->name), key->host * 2 + key->container);
	struct changes_service *s;
	struct changes_owner *o;
	uint32_t of;

	if (key->user)
		hash = hash_bytes(key->user, strlen(key->user), hash);
	*number = index_find(&d->service_index, hash, service_equal, d->services, key);
	if (*number != INDEX_NONE)
		return 0;
	*number = PROFILE_NONE;
	if (find_owner(d, owner, &of))
		return -ENOMEM;
	o = &d->owners[of];
	if (o->name &&
	    (o->service_count == OWNER_SERVICES || d->others_services == OTHERS_SERVICES)) {
		o->omitted = true;
		return 0;
	}
	if (array_reserve(&d->services, &d->service_room, d->service_count + 1,
			  sizeof(*d->services)))
		return -ENOMEM;
	s = &d->services[d->service_count];
	*s = (struct changes_service){ .host = key->host,
				       .owner = of,
				       .container = key->container };
	s->name = strdup(key->name);
	s->user = key->user ? strdup(key->user) : NULL;
	*number = d->service_count++;
	o->service_count++;
	d->others_services += o->name != NULL;
	return s->name && (s->user || !key->user) ? index_add(&d->service_index, hash, *number)
						  : -ENOMEM;
}

struct function_key {
	uint32_t service;
	const char *function, *image, *reason;
};

EQUAL(function_equal, struct changes_function, struct function_key,
      SAME(service) && same_text(a->function, b->function) && strcmp(a->image, b->image) == 0 &&
	      same_text(a->reason, b->reason))

static uint64_t function_hash(const struct function_key *key)
{
	uint64_t hash = hash_bytes(key->image, strlen(key->image), key->service);

	if (key->reason)
		hash = hash_bytes(key->reason, strlen(key->reason), hash);
	return key->function ? hash_bytes(key->function, strlen(key->function), hash) : hash;
}

/* About what a function takes of memory, with its part of the index. */
static size_t function_bytes(const struct changes_function *f)
{
	return sizeof(*f) + 64 + strlen(f->image) + (f->function ? strlen(f->function) : 0) +
	       (f->reason ? strlen(f->reason) : 0) + f->cells.room * sizeof(*f->cells.cells) +
	       f->caller_room * sizeof(*f->callers);
}

/* Adds what a function has grown by to what its owner has. */
static void charge(struct changes_data *d, uint32_t service, size_t before, size_t after)
{
	struct changes_owner *o = &d->owners[d->services[service].owner];

	o->bytes += after - before;
	d->bytes[o->name != NULL] += after - before;
}

/* *number: INDEX_NONE if its owner has too many. */
static int find_function(struct changes *c, const struct function_key *key, uint32_t *number)
{
	struct changes_data *d = c->data;
	struct changes_owner *o = &d->owners[d->services[key->service].owner];
	size_t most = (o->name ? OTHERS_BYTES : SYSTEM_BYTES) * WINDOW_EXCESS;
	uint64_t hash = function_hash(key);
	struct changes_function *f;

	*number = index_find(&d->function_index, hash, function_equal, d->functions, key);
	if (*number != INDEX_NONE)
		return 0;
	if (d->bytes[o->name != NULL] >= most) {
		o->omitted = true;
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
	f->reason = key->reason ? strdup(key->reason) : NULL;
	if (!f->image || !f->function != !key->function || !f->reason != !key->reason)
		return -ENOMEM;
	charge(d, key->service, 0, function_bytes(f));
	return index_add(&d->function_index, hash, *number);
}

/* The cell of the last block. */
static struct changes_service_cell *last_cell(struct changes_service *s, uint32_t block)
{
	if (s->cell_count && s->cells[s->cell_count - 1].block == block)
		return &s->cells[s->cell_count - 1];
	return array_add(s->cells, s->cell_count, s->cell_room,
			 (struct changes_service_cell){ .block = block })
		       ? NULL
		       : &s->cells[s->cell_count - 1];
}

/* The account of the last block. */
static struct changes_account *last_account(struct changes_service *s, uint32_t block)
{
	if (s->account_count && s->accounts[s->account_count - 1].block == block)
		return &s->accounts[s->account_count - 1];
	return array_add(s->accounts, s->account_count, s->account_room,
			 (struct changes_account){ .block = block })
		       ? NULL
		       : &s->accounts[s->account_count - 1];
}

/* --- Which stacks of a window are read --- */

/*
 * Locations of a window that are read: of the system; of all others, and of one container or one
 * user of these. Many users' stacks have each their own.
 * Bound: users: locations of a window that are read for a comparison; then: further stacks are not
 * read, their ticks have no function; again: with each window; share: the system's, and all
 * others', of whom each has an even part; seen: the report and the log name the owner.
 */
#define SYSTEM_LOCATIONS    1000000
#define OTHERS_LOCATIONS    262144
#define CONTAINER_LOCATIONS 65536
#define USER_LOCATIONS	    16384

struct reading_owner {
	struct name name;
	uint64_t limit, kept; /* locations; limit: at first how many there may be */
};

struct changes_reading {
	struct stack_choice choice;
	struct reading_owner *owners;
	size_t count, room;
	struct index index;
	uint32_t *of_labels; /* numbers of owners, + 1 */
	size_t label_room;
	bool has_limits;
};

EQUAL(reading_owner_equal, struct reading_owner, struct name,
      a->name.size == b->size && !a->name.text == !b->text &&
	      (!b->text || memcmp(a->name.text, b->text, b->size) == 0))

/* As in struct stack_choice. Texts of labels are the profile's, which outlives the reading. */
static int note_stack(void *context, const struct profile_labels *l, uint32_t number, size_t frames)
{
	struct changes_reading *r = context;
	const char *user;
	struct name name;
	uint64_t hash;
	uint32_t at;

	if (array_reserve(&r->of_labels, &r->label_room, (size_t)number + 1, sizeof(*r->of_labels)))
		return -ENOMEM;
	if (!r->of_labels[number]) {
		name = owner_name(0, l, &user);
		hash = hash_bytes(name.text ?: "", name.size, !name.text);
		at = index_find(&r->index, hash, reading_owner_equal, r->owners, &name);
		if (at == INDEX_NONE) {
			at = r->count;
			if (array_add_indexed(r->owners, r->count, r->room, &r->index, hash,
					      (struct reading_owner){ .name = name }))
				return -ENOMEM;
		}
		r->of_labels[number] = at + 1;
	}
	r->owners[r->of_labels[number] - 1].limit += frames;
	return 0;
}

static bool keep_stack(void *context, uint32_t number, size_t locations)
{
	struct changes_reading *r = context;
	struct reading_owner *o = &r->owners[r->of_labels[number] - 1];

	if (!r->has_limits) {
		/* How many locations each owner may have, by how many frames there are. */
		uint64_t *sizes = calloc(r->count + 1, sizeof(*sizes));
		uint64_t most = OTHERS_LOCATIONS / r->count;
		size_t count = 0;

		for (size_t i = 0; i < r->count && sizes; i++)
			if (r->owners[i].name.text)
				sizes[count++] = r->owners[i].limit;
		if (sizes)
			most = share_out(sizes, count, OTHERS_LOCATIONS);
		free(sizes);
		for (size_t i = 0; i < r->count; i++) {
			const struct name *name = &r->owners[i].name;
			uint64_t own = name->is_container ? CONTAINER_LOCATIONS : USER_LOCATIONS;

			r->owners[i].limit = !name->text  ? SYSTEM_LOCATIONS
					     : most < own ? most
							  : own;
		}
		r->has_limits = true;
	}
	if (o->kept + locations > o->limit && locations)
		return false;
	o->kept += locations;
	return true;
}

static void reading_free(struct changes_reading *r)
{
	free(r->owners);
	free(r->of_labels);
	index_free(&r->index);
	*r = (struct changes_reading){ 0 };
}

const struct stack_choice *changes_choice(struct changes *c)
{
	struct changes_reading *r = c->data->reading;

	reading_free(r);
	r->choice = (struct stack_choice){ r, note_stack, keep_stack };
	return &r->choice;
}

/* --- One window --- */

struct window {
	struct changes *c;
	const struct profile *p;
	uint64_t start_ns, limit_ns;
	uint32_t block;
	size_t samples; /* the number of that value */
	size_t delay;	/* and of that one, or value_type_count */
	size_t wall;	/* the same, of the time of threads by what they did */
	/* Of each labels, and of none: a service's number, and whether it is the system's. */
	uint32_t *services;
	bool *systems;
	/* Numbers of samples of services: those of the system first, then of who has fewest. */
	uint32_t *order;
	size_t ordered;
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
		d->bytes[false] = d->bytes[true] = d->others_services = 0;
		block = NULL;
	}
	if (!block || w->limit_ns - w->start_ns > length_ns ||
	    w->start_ns / length_ns != block->start_ns / length_ns) {
		if (array_add(d->blocks, d->block_count, d->block_room,
			      (struct changes_block){ .host = d->host_count - 1,
						      .start_ns = w->start_ns }))
			return -ENOMEM;
		block = &d->blocks[d->block_count - 1];
	}
	block->limit_ns = w->limit_ns;
	add_u64(&block->recorded_ns, w->p->duration_ns);
	if (w->wall < w->p->value_type_count)
		add_u64(&block->waits_ns, w->p->duration_ns);
	if (w->p->totals.known) {
		add_u64(&block->ticks, w->p->totals.ticks);
		for (size_t i = 0; i < w->p->totals.lost_count; i++)
			add_u64(&block->lost, w->p->totals.lost[i].count);
	}
	w->block = d->block_count - 1;
	return 0;
}

/*
 * Finds the service of each labels: the container, or else the unit; PROFILE_NONE if it is of
 * neither, as the kernel's threads are.
 */
static int find_services(struct window *w)
{
	static const struct profile_labels none = { .comm = "" };
	const struct profile *p = w->p;
	uint32_t host = w->c->data->host_count - 1;
	int err = 0;

	w->services = calloc(p->label_count + 1, sizeof(*w->services));
	w->systems = calloc(p->label_count + 1, sizeof(*w->systems));
	if (!w->services || !w->systems)
		return -ENOMEM;
	for (size_t i = 0; i <= p->label_count && !err; i++) {
		const struct profile_labels *l = i < p->label_count ? &p->labels[i] : &none;
		const char *container = profile_tag_text(l, TAG_CONTAINER);
		struct service_key key = {
			.host = host,
			.name = container ?: profile_tag_text(l, TAG_UNIT),
			.container = container,
		};
		struct name owner = owner_name(host, l, &key.user);

		w->services[i] = PROFILE_NONE;
		w->systems[i] = !owner.text;
		if (key.name)
			err = find_service(w->c, &key, &owner, &w->services[i]);
	}
	return err;
}

static uint32_t service_of(const struct window *w, const struct profile_sample *s)
{
	return w->services[s->labels < w->p->label_count ? s->labels : w->p->label_count];
}

static bool is_systems(const struct window *w, uint32_t labels)
{
	return w->systems[labels < w->p->label_count ? labels : w->p->label_count];
}

static int compare_services(const void *one, const void *other, void *context)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	const struct changes_data *d = context;
	const struct changes_owner *x = &d->owners[d->services[a].owner];
	const struct changes_owner *y = &d->owners[d->services[b].owner];

	return (x->name != NULL) - (y->name != NULL) ?: compare_u64(x->samples, y->samples)
		       ?: (x > y) - (x < y) ?: (a > b) - (a < b);
}

/* Orders samples by service. */
static int order_samples(struct window *w)
{
	const struct profile *p = w->p;
	struct changes_data *d = w->c->data;
	uint32_t *services = calloc(d->service_count + 1, sizeof(*services));
	size_t *counts = calloc(d->service_count + 1, sizeof(*counts)), at = 0;

	w->order = calloc(p->sample_count + 1, sizeof(*w->order));
	if (!services || !counts || !w->order) {
		free(services);
		free(counts);
		return -ENOMEM;
	}
	for (size_t i = 0; i < d->owner_count; i++)
		d->owners[i].samples = 0;
	for (size_t i = 0; i < d->service_count; i++)
		services[i] = i;
	for (size_t i = 0; i < p->sample_count; i++) {
		uint32_t service = service_of(w, &p->samples[i]);

		if (service == PROFILE_NONE)
			continue;
		counts[service]++;
		if (d->owners[d->services[service].owner].name)
			d->owners[d->services[service].owner].samples++;
	}
	qsort_r(services, d->service_count, sizeof(*services), compare_services, d);
	for (size_t i = 0; i < d->service_count; i++) {
		size_t count = counts[services[i]];

		counts[services[i]] = at;
		at += count;
	}
	w->ordered = at;
	for (size_t i = 0; i < p->sample_count; i++) {
		uint32_t service = service_of(w, &p->samples[i]);

		if (service != PROFILE_NONE)
			w->order[counts[service]++] = i;
	}
	free(services);
	free(counts);
	return 0;
}

EQUAL(process_equal, struct changes_process, uint32_t, a->pid == *b)

/*
 * Joins processes that have ended, if they ran at the same time: when all were replaced is known as
 * before. Forgets those that did not last.
 */
static int join_processes(const struct window *w, struct changes_service *s)
{
	struct changes_process *joined = NULL;
	size_t kept = 0;
	int err = 0;

	qsort(s->processes, s->process_count, sizeof(*s->processes), changes_compare_processes);
	for (size_t i = 0; i < s->process_count; i++) {
		struct changes_process p = s->processes[i];

		if (p.last_ns < w->start_ns) {
			if (!changes_lasts(&p))
				continue;
			if (joined && p.first_ns < joined->last_start_ns) {
				joined->last_start_ns = MAX(joined->last_start_ns, p.last_start_ns);
				joined->last_ns = MAX(joined->last_ns, p.last_ns);
				continue;
			}
			p.pid = 0;
			joined = &s->processes[kept];
		}
		s->processes[kept++] = p;
	}
	s->process_count = kept;
	index_free(&s->process_index);
	for (size_t i = 0; i < kept && !err; i++)
		if (s->processes[i].pid)
			err = index_add(&s->process_index, hash_u64(s->processes[i].pid, 0), i);
	return err;
}

static int note_process(const struct window *w, struct changes_service *s, uint32_t pid)
{
	uint64_t hash = hash_u64(pid, 0);
	uint32_t number = index_find(&s->process_index, hash, process_equal, s->processes, &pid);

	if (!pid)
		return 0;
	if (number == INDEX_NONE) {
		if (s->process_count && s->process_count % SERVICE_PROCESSES == 0 &&
		    join_processes(w, s))
			return -ENOMEM;
		number = s->process_count;
		if (array_add_indexed(
			    s->processes, s->process_count, s->process_room, &s->process_index,
			    hash, (struct changes_process){ .pid = pid, .first_ns = w->start_ns }))
			return -ENOMEM;
	}
	s->processes[number].last_start_ns = w->start_ns;
	s->processes[number].last_ns = w->limit_ns;
	return 0;
}

struct build_key {
	const char *image, *id;
};

static uint64_t build_hash(const char *image, const char *id)
{
	return hash_bytes(id, strlen(id), hash_bytes(image, strlen(image), 0));
}

EQUAL(build_equal, struct changes_build, struct build_key,
      strcmp(a->id, b->id) == 0 && strcmp(a->image, b->image) == 0)

ORDER(compare_last, struct changes_build, MOST(last_ns) ?: MOST(first_ns))

/* Forgets the half of the builds that was not there for longest. */
static int forget_builds(struct changes_service *s)
{
	int err = 0;

	qsort(s->builds, s->build_count, sizeof(*s->builds), compare_last);
	while (s->build_count > SERVICE_BUILDS / 2)
		free(s->builds[--s->build_count].image);
	index_free(&s->build_index);
	for (size_t i = 0; i < s->build_count && !err; i++)
		err = index_add(&s->build_index, build_hash(s->builds[i].image, s->builds[i].id),
				i);
	return err;
}

/*
 * Notes that ticks of a service's have this image in their stacks, of all that it had in the
 * window. A service has few images, and each few builds; but one that runs tests has many.
 */
static int note_build(const struct window *w, struct changes_service *s,
		      const struct profile_image *image, uint64_t ticks, uint64_t all)
{
	char id[BUILD_ID_TEXT_SIZE];
	const struct build_key key = { row_image_of_any_run(image->path), id };
	struct changes_build *b;
	uint32_t number;
	uint64_t hash;

	build_id_format(image->build_id, image->build_id_size, id);
	hash = build_hash(key.image, id);
	number = index_find(&s->build_index, hash, build_equal, s->builds, &key);
	if (number == INDEX_NONE) {
		if (s->build_count == SERVICE_BUILDS && forget_builds(s))
			return -ENOMEM;
		if (array_reserve(&s->builds, &s->build_room, s->build_count + 1,
				  sizeof(*s->builds)))
			return -ENOMEM;
		number = s->build_count;
		b = &s->builds[number];
		*b = (struct changes_build){ .first_ns = w->start_ns };
		strcpy(b->id, id);
		b->image = strdup(key.image);
		if (!b->image)
			return -ENOMEM;
		s->build_count++;
		if (index_add(&s->build_index, hash, number))
			return -ENOMEM;
	}
	b = &s->builds[number];
	/* Two files of one image and build, of which users have one each, are one. */
	if (b->last_ns != w->limit_ns)
		add_u64(&b->all, all);
	add_u64(&b->ticks, ticks);
	b->last_ns = w->limit_ns;
	return 0;
}

static void add_waits(struct changes_waits *to, const struct changes_waits *from)
{
	add_u64(&to->on_cpu_ns, from->on_cpu_ns);
	add_u64(&to->waited_ns, from->waited_ns);
	add_i64(&to->delay_ns, from->delay_ns);
	add_i64(&to->delay_cpu_ns, from->delay_cpu_ns);
}

/* For how long ticks stand. */
static int64_t ticks_ns(const struct window *w, int64_t ticks)
{
	int64_t ns = saturate_i64(profile_ticks_ns(w->p, magnitude(ticks)));

	return ticks < 0 ? -ns : ns;
}

/* What is added up of one service in a window. */
struct image_ticks {
	uint64_t *ticks;   /* of each image: with it in their stacks */
	size_t *seen;	   /* of each image: the last sample that it was in, + 1 */
	uint32_t *touched; /* those with ticks */
	size_t count;
};

static void add_images(const struct window *w, size_t number, uint64_t ticks, struct image_ticks *t)
{
	const struct profile *p = w->p;
	const struct profile_sample *sample = &p->samples[number];

	for (uint32_t k = 0; k < sample->depth; k++) {
		uint32_t mapping = p->locations[p->frames[sample->first_frame + k]].mapping;
		uint32_t image =
			mapping == PROFILE_NONE ? PROFILE_NONE : p->mappings[mapping].image;

		if (image == PROFILE_NONE || !p->images[image].build_id_size ||
		    t->seen[image] == number + 1)
			continue;
		t->seen[image] = number + 1;
		if (!t->ticks[image])
			t->touched[t->count++] = image;
		add_u64(&t->ticks[image], ticks);
	}
}

/* Adds the ticks of one service, which has these samples, and notes what ran in it. */
static int add_service(struct window *w, const uint32_t *samples, size_t count,
		       struct image_ticks *t)
{
	const struct profile *p = w->p;
	struct changes_service *s = &w->c->data->services[service_of(w, &p->samples[*samples])];
	struct changes_service_cell *cell = NULL;
	uint64_t all = 0;
	int err = 0;

	t->count = 0;
	for (size_t i = 0; i < count && !err; i++) {
		const struct profile_sample *sample = &p->samples[samples[i]];
		const int64_t *values = &p->values[samples[i] * p->value_type_count];
		const struct profile_labels *l =
			sample->labels < p->label_count ? &p->labels[sample->labels] : NULL;
		const struct profile_location *leaf;
		int64_t ticks = values[w->samples];

		if (ticks <= 0)
			continue;
		cell = cell ?: last_cell(s, w->block);
		if (!cell)
			return -ENOMEM;
		add_i64(&cell->cpu_ns, ticks_ns(w, ticks));
		add_u64(&cell->ticks, ticks);
		if (l && profile_tag_text(l, TAG_INCOMPLETE))
			add_u64(&cell->cut, ticks);
		/* Or its function has no name of its own, but one like [python] or [others]. */
		leaf = sample->depth ? &p->locations[p->frames[sample->first_frame]] : NULL;
		if (!leaf || (leaf->line_count &&
			      *p->functions[p->lines[leaf->first_line].function].name == '['))
			add_u64(&cell->nameless, ticks);
		/* As of stacks that were not read. */
		w->c->data->owners[s->owner].omitted |= !sample->depth;
		add_u64(&all, ticks);
		if (w->delay < p->value_type_count) {
			const struct changes_waits delays = { 0, 0, values[w->delay],
							      ticks_ns(w, ticks) };
			struct changes_account *account = last_account(s, w->block);

			if (!account)
				return -ENOMEM;
			add_waits(&account->waits, &delays);
		}
		if (l)
			err = note_process(w, s, l->pid);
		add_images(w, samples[i], ticks, t);
	}
	for (size_t i = 0; i < t->count && !err; i++) {
		uint32_t image = t->touched[i];

		if ((double)t->ticks[image] >= REAL_PART * (double)all)
			err = note_build(w, s, &p->images[image], t->ticks[image], all);
		t->ticks[image] = 0;
	}
	return err;
}

/* Adds the ticks of services, and delay of the system. */
static int add_services(struct window *w)
{
	const struct profile *p = w->p;
	struct changes_waits *of_system = &w->c->data->blocks[w->block].waits;
	struct image_ticks t = {
		.ticks = calloc(p->image_count + 1, sizeof(*t.ticks)),
		.seen = calloc(p->image_count + 1, sizeof(*t.seen)),
		.touched = calloc(p->image_count + 1, sizeof(*t.touched)),
	};
	int err = t.ticks && t.seen && t.touched ? 0 : -ENOMEM;
	size_t end;

	for (size_t i = 0; i < w->ordered && !err; i = end) {
		uint32_t number = service_of(w, &p->samples[w->order[i]]);

		for (end = i + 1; end < w->ordered; end++)
			if (service_of(w, &p->samples[w->order[end]]) != number)
				break;
		err = add_service(w, &w->order[i], end - i, &t);
	}
	for (size_t i = 0; i < p->sample_count && w->delay < p->value_type_count; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		const struct changes_waits delays = { 0, 0, values[w->delay],
						      ticks_ns(w, values[w->samples]) };

		if (values[w->samples] > 0 && is_systems(w, p->samples[i].labels))
			add_waits(of_system, &delays);
	}
	free(t.ticks);
	free(t.seen);
	free(t.touched);
	return err;
}

/* Adds for how long threads of services were in each state. */
static int add_accounts(struct window *w)
{
	const struct profile *p = w->p;
	struct changes_data *d = w->c->data;

	for (size_t i = 0; i < p->wall_count; i++) {
		const struct profile_wall *wall = &p->walls[i];
		const struct changes_waits waits = { wall->on_cpu_ns, wall->runnable_ns, 0, 0 };
		uint32_t number = w->services[wall->labels];
		struct changes_account *account;

		if (is_systems(w, wall->labels))
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

/* What functions of services took in a window, in ticks; those of a service follow each other. */
struct costs {
	struct function_cost {
		uint32_t node, number; /* of the function */
		size_t sample;	       /* the last one that it was in, + 1 */
		int64_t self, total;
	} * costs;
	size_t count, room;
	size_t first;	   /* of the last service */
	uint32_t *of_node; /* of each node in that, and of none: which cost, + 1 */
};

/* Finds the cost of a node in a service. *cost: NULL if its owner has too many functions. */
static int find_cost(struct window *w, struct costs *c, uint32_t service,
		     const struct callgraph_key *key, uint32_t node, struct function_cost **cost)
{
	const struct function_key wanted = {
		.service = service,
		.function = key->function,
		.image = key->image ?: row_unknown,
	};
	uint32_t number;

	*cost = c->of_node[node] ? &c->costs[c->of_node[node] - 1] : NULL;
	if (*cost)
		return 0;
	if (find_function(w->c, &wanted, &number))
		return -ENOMEM;
	if (number == INDEX_NONE)
		return 0;
	if (array_add(c->costs, c->count, c->room,
		      (struct function_cost){ .node = node, .number = number }))
		return -ENOMEM;
	*cost = &c->costs[c->count - 1];
	c->of_node[node] = c->count;
	return 0;
}

static int add_caller(struct changes_data *d, struct changes_function *f, uint32_t number,
		      int64_t total)
{
	size_t before = function_bytes(f);

	for (size_t i = 0; i < f->caller_count; i++)
		if (f->callers[i].number == number) {
			add_i64(&f->callers[i].total, total);
			return 0;
		}
	/* Who has so many callers has no main one. */
	if (f->caller_count == MOST_CALLERS)
		return 0;
	if (array_add(f->callers, f->caller_count, f->caller_room,
		      (struct changes_caller){ number, total }))
		return -ENOMEM;
	charge(d, f->service, before, function_bytes(f));
	return 0;
}

/* Adds a sample to the functions of its stack, and to each of these who has called it. */
static int add_stack(struct window *w, struct costs *c, const struct callgraph *g,
		     const struct callgraph_places *places, size_t sample)
{
	static const struct callgraph_key no_pc = { .function = CALLGRAPH_NO_PC };
	const struct profile_sample *s = &w->p->samples[sample];
	const uint32_t *frames = &w->p->frames[s->first_frame], *first = places->first;
	int64_t ticks = w->p->values[sample * w->p->value_type_count + w->samples];
	uint32_t service = service_of(w, s), callee = INDEX_NONE, number;
	struct function_cost *cost;
	int err = 0;

	if (ticks <= 0)
		return 0;
	if (!s->depth) {
		err = find_cost(w, c, service, &no_pc, g->node_count, &cost);
		if (!err && cost) {
			add_i64(&cost->self, ticks);
			add_i64(&cost->total, ticks);
		}
		return err;
	}
	for (uint32_t k = 0; k < s->depth && !err; k++)
		for (uint32_t at = first[frames[k]]; at < first[frames[k] + 1] && !err; at++) {
			uint32_t node = places->nodes[at];

			err = find_cost(w, c, service, &g->nodes[node].key, node, &cost);
			number = !err && cost ? cost->number : INDEX_NONE;
			if (number != INDEX_NONE && at == first[frames[0]] && !k)
				add_i64(&cost->self, ticks);
			/* Once, however often it recurs. */
			if (number != INDEX_NONE && cost->sample != sample + 1)
				add_i64(&cost->total, ticks);
			if (number != INDEX_NONE)
				cost->sample = sample + 1;
			if (callee != INDEX_NONE && number != INDEX_NONE && callee != number)
				err = add_caller(w->c->data, &w->c->data->functions[callee], number,
						 ticks_ns(w, ticks));
			callee = number;
		}
	return err;
}

/* Adds to the cell of the last block. */
static int add_cost(struct window *w, struct changes_function *f, int64_t self, int64_t total)
{
	struct changes_cells *c = &f->cells;
	size_t before = function_bytes(f);

	if (!c->count || c->cells[c->count - 1].block != w->block) {
		if (array_add(c->cells, c->count, c->room,
			      (struct changes_cell){ .block = w->block }))
			return -ENOMEM;
		charge(w->c->data, f->service, before, function_bytes(f));
	}
	c->cells[c->count - 1].self += (float)self;
	c->cells[c->count - 1].total += (float)total;
	add_i64(&f->total, total);
	return 0;
}

/* Adds what functions took. */
static int add_functions(struct window *w)
{
	const struct callgraph_options options = {
		.fields = CALLGRAPH_FUNCTION | CALLGRAPH_IMAGE | CALLGRAPH_NO_ADDRESS,
		.unknown = row_unknown,
		.image_name = row_image_of_any_run,
	};
	struct callgraph_places places = { 0 };
	struct callgraph g = { 0 };
	struct costs c = { 0 };
	uint32_t last = PROFILE_NONE;
	int err = callgraph_init(&g, &options);

	err = err ?: callgraph_place(&g, w->p, &places);
	if (!err) {
		c.of_node = calloc(g.node_count + 1, sizeof(*c.of_node));
		err = c.of_node ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < w->ordered && !err; i++) {
		uint32_t service = service_of(w, &w->p->samples[w->order[i]]);

		for (; service != last && c.first < c.count; c.first++)
			c.of_node[c.costs[c.first].node] = 0;
		last = service;
		err = add_stack(w, &c, &g, &places, w->order[i]);
	}
	for (size_t i = 0; i < c.count && !err; i++)
		err = add_cost(w, &w->c->data->functions[c.costs[i].number],
			       ticks_ns(w, c.costs[i].self), ticks_ns(w, c.costs[i].total));
	free(c.costs);
	free(c.of_node);
	callgraph_places_free(&places);
	callgraph_free(&g);
	return err;
}

/* The text of the label by which rows are, or what stands for none. */
static const char *label_text(const struct window *w, const struct profile_sample *s)
{
	const struct row_view *by = w->c->by;
	const struct profile_tag *tag =
		s->labels < w->p->label_count ? profile_find_tag(&w->p->labels[s->labels], by->name)
					      : NULL;

	w->c->has_label |= tag != NULL;
	return tag && tag->text ? tag->text : row_view_tag(by)->missing ?: row_unknown;
}

/* Adds a value of a sample to the function, or label, of this name. */
static int add_named(struct window *w, const struct function_key *key, int64_t ns)
{
	uint32_t number;

	if (find_function(w->c, key, &number))
		return -ENOMEM;
	return number == INDEX_NONE ? 0 : add_cost(w, &w->c->data->functions[number], ns, ns);
}

/* Adds what ran with each text of the label. */
static int add_labels(struct window *w)
{
	int err = 0;

	for (size_t i = 0; i < w->ordered && !err; i++) {
		const struct profile_sample *s = &w->p->samples[w->order[i]];
		int64_t ticks = w->p->values[w->order[i] * w->p->value_type_count + w->samples];
		const struct function_key key = { service_of(w, s), label_text(w, s), "", NULL };

		if (ticks > 0)
			err = add_named(w, &key, ticks_ns(w, ticks));
	}
	return err;
}

/* Adds for how long threads were blocked: by the function that waits, or the label, and for what.
 */
static int add_blocked(struct window *w)
{
	const struct profile *p = w->p;
	int err = 0;

	for (size_t i = 0; i < w->ordered && w->wall < p->value_type_count && !err; i++) {
		const struct profile_sample *s = &p->samples[w->order[i]];
		int64_t ns = p->values[w->order[i] * p->value_type_count + w->wall];
		struct function_key key = { service_of(w, s), NULL, row_unknown, NULL };
		char text[THREAD_STATE_SIZE];
		const char *reason;
		size_t size;
		uint32_t at;

		if (ns <= 0 || profile_sample_state(p, s, &reason, &size) != THREAD_BLOCKED)
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)size, reason);
		key.reason = text;
		at = profile_wait_frame(p, s);
		if (w->c->by) {
			key.function = label_text(w, s);
			key.image = "";
		} else if (at) {
			uint32_t number = p->frames[s->first_frame + at];
			const struct profile_location *l = &p->locations[number];

			key.image = row_image_of_any_run(row_image_path(p, number));
			if (l->line_count)
				key.function = p->functions[p->lines[l->first_line].function].name;
		}
		err = add_named(w, &key, ns);
	}
	return err;
}

/* --- Many functions --- */

static void free_function(struct changes_function *f)
{
	free(f->function);
	free(f->reason);
	free(f->image);
	free(f->cells.cells);
	free(f->callers);
}

/* Whether a function is forgotten: one of so few ticks, and of not many in the last block alone. */
static bool is_forgotten(const struct window *w, const struct changes_function *f, int64_t few)
{
	return f->total < ticks_ns(w, few) &&
	       (few > FEW_TICKS || !f->cells.count ||
		f->cells.cells[f->cells.count - 1].block != w->block);
}

/* Sets how many bytes each owner of this host may keep, and returns whether one has more. */
static bool set_limits(struct changes_data *d, uint64_t *sizes)
{
	uint64_t others;
	size_t count = 0;

	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].name && d->owners[i].host == d->host_count - 1)
			sizes[count++] = d->owners[i].bytes;
	/* Less than what is too much, so that it is not done again with each window. */
	others = d->bytes[true] > OTHERS_BYTES ? share_out(sizes, count, OTHERS_BYTES / 4 * 3)
					       : UINT64_MAX;
	for (size_t i = 0; i < d->owner_count; i++) {
		struct changes_owner *o = &d->owners[i];

		o->few = 0;
		o->limit = o->name ? others : SYSTEM_BYTES / 4 * 3;
		if (o->name && o->bytes > OWNER_BYTES && o->limit > OWNER_BYTES / 4 * 3)
			o->limit = OWNER_BYTES / 4 * 3;
		if (o->host != d->host_count - 1 || (!o->name && o->bytes <= SYSTEM_BYTES))
			o->limit = UINT64_MAX;
	}
	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].bytes > d->owners[i].limit)
			return true;
	return false;
}

/* Sets what is few for each owner who has more than its limit. functions: room for all numbers. */
static int set_few(const struct window *w, uint32_t *functions)
{
	struct changes_data *d = w->c->data;
	size_t *ends = calloc(d->owner_count + 1, sizeof(*ends)), at = 0;

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < d->function_count; i++)
		ends[d->services[d->functions[i].service].owner]++;
	for (size_t i = 0; i < d->owner_count; i++) {
		size_t count = ends[i];

		ends[i] = at;
		at += count;
	}
	for (size_t i = 0; i < d->function_count; i++)
		functions[ends[d->services[d->functions[i].service].owner]++] = i;
	for (size_t i = 0, first = 0; i < d->owner_count; first = ends[i++]) {
		struct changes_owner *o = &d->owners[i];

		if (o->bytes <= o->limit)
			continue;
		for (o->few = 2; o->few < INT64_MAX / 4; o->few *= 2) {
			size_t kept = 0;

			for (size_t k = first; k < ends[i]; k++) {
				const struct changes_function *f = &d->functions[functions[k]];

				kept += is_forgotten(w, f, o->few) ? 0 : function_bytes(f);
			}
			if (kept <= o->limit)
				break;
		}
		o->omitted |= o->few > FEW_TICKS;
	}
	free(ends);
	return 0;
}

/*
 * Forgets functions of who has too many, those of the fewest ticks first: at first such as would
 * not be compared, as programs that are built to be tested once have ever new ones.
 */
static int forget_rare(const struct window *w)
{
	struct changes_data *d = w->c->data;
	uint64_t *sizes = calloc(d->owner_count + 1, sizeof(*sizes));
	uint32_t *numbers = calloc(d->function_count + 1, sizeof(*numbers));
	int err = sizes && numbers ? 0 : -ENOMEM;
	size_t kept = 0;

	if (err || !set_limits(d, sizes))
		goto out;
	err = set_few(w, numbers);
	for (size_t i = 0; i < d->function_count && !err; i++) {
		struct changes_function *f = &d->functions[i];
		const struct changes_owner *o = &d->owners[d->services[f->service].owner];

		numbers[i] = INDEX_NONE;
		if (o->few && is_forgotten(w, f, o->few)) {
			charge(d, f->service, function_bytes(f), 0);
			free_function(f);
			continue;
		}
		numbers[i] = kept;
		d->functions[kept++] = *f;
	}
	if (err)
		goto out;
	d->function_count = kept;
	index_free(&d->function_index);
	for (size_t i = 0; i < kept && !err; i++) {
		struct changes_function *f = &d->functions[i];
		const struct function_key key = { f->service, f->function, f->image, f->reason };
		size_t callers = 0;

		for (size_t k = 0; k < f->caller_count; k++) {
			f->callers[callers] = f->callers[k];
			f->callers[callers].number = numbers[f->callers[k].number];
			callers += f->callers[callers].number != INDEX_NONE;
		}
		f->caller_count = callers;
		err = index_add(&d->function_index, function_hash(&key), i);
	}
out:
	free(sizes);
	free(numbers);
	return err;
}

int changes_begin(struct changes *c, const struct row_view *by)
{
	*c = (struct changes){ .by = by, .data = calloc(1, sizeof(*c->data)) };
	if (c->data)
		c->data->reading = calloc(1, sizeof(*c->data->reading));
	return c->data && c->data->reading ? 0 : -ENOMEM;
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
		.delay = profile_find_sum(p, PROFILE_SUM_DELAY),
		.wall = profile_find_sum(p, PROFILE_SUM_WALL),
	};
	int err;

	/* Without a period, it is not known what ticks stand for. */
	if (w.samples == p->value_type_count || !profile_tick_ns(p) || !p->sample_count)
		return 0;
	err = find_block(&w, host);
	err = err ?: find_services(&w);
	err = err ?: order_samples(&w);
	err = err ?: add_services(&w);
	err = err ?: add_accounts(&w);
	err = err ?: (c->by ? add_labels(&w) : add_functions(&w));
	err = err ?: add_blocked(&w);
	if (!err && (c->data->bytes[false] > SYSTEM_BYTES || c->data->bytes[true] > OWNER_BYTES))
		err = forget_rare(&w);
	free(w.services);
	free(w.systems);
	free(w.order);
	return err;
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

/* By service and image, those of waits last. */
static int compare_functions(const void *one, const void *other, void *context)
{
	const struct changes_function *functions = context;
	const struct changes_function *a = &functions[*(const uint32_t *)one];
	const struct changes_function *b = &functions[*(const uint32_t *)other];

	return compare_u64(a->service, b->service) ?: !!a->reason - !!b->reason
		       ?: strcmp(a->image, b->image)
		       ?: strcmp(a->function ?: "", b->function ?: "")
		       ?: strcmp(a->reason ?: "", b->reason ?: "");
}

/* The most expensive first, and waits last. */
static int compare_totals(const void *one, const void *other, void *context)
{
	const struct changes_function *functions = context;
	int64_t a = functions[*(const uint32_t *)one].total;
	int64_t b = functions[*(const uint32_t *)other].total;

	bool x = functions[*(const uint32_t *)one].reason;
	bool y = functions[*(const uint32_t *)other].reason;

	return x - y ?: (a < b) - (a > b) ?: compare_functions(one, other, context);
}

/* Gives each service its functions: those of others than the system as many as may be compared. */
static int order_functions(struct changes_data *d)
{
	size_t at = 0;

	d->order = calloc(d->function_count + 1, sizeof(*d->order));
	if (!d->order)
		return -ENOMEM;
	for (size_t i = 0; i < d->function_count; i++)
		d->services[d->functions[i].service].count++;
	for (size_t i = 0; i < d->service_count; i++) {
		d->services[i].first = at;
		at += d->services[i].count;
		d->services[i].count = 0;
	}
	for (size_t i = 0; i < d->function_count; i++) {
		struct changes_service *s = &d->services[d->functions[i].service];

		d->order[s->first + s->count++] = i;
	}
	for (size_t i = 0; i < d->service_count; i++) {
		struct changes_service *s = &d->services[i];
		uint32_t *order = d->order + s->first;

		if (s->count > SERVICE_FUNCTIONS && !changes_is_system(d, s)) {
			qsort_r(order, s->count, sizeof(*order), compare_totals, d->functions);
			s->count = SERVICE_FUNCTIONS;
			d->owners[s->owner].omitted = true;
		}
		qsort_r(order, s->count, sizeof(*order), compare_functions, d->functions);
		while (s->count && d->functions[order[s->count - 1]].reason) {
			s->count--;
			s->wait_count++;
		}
	}
	return 0;
}

/* Those who have little first: what comes last may be ended by a limit. */
static int compare_bytes(const void *one, const void *other, void *context)
{
	const struct changes_data *d = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	uint32_t x = d->services[a].owner, y = d->services[b].owner;

	return compare_u64(d->owners[x].bytes, d->owners[y].bytes) ?: compare_u64(x, y)
		       ?: compare_u64(a, b);
}

/* Adds the changes of a service, of whose owner only some are compared. */
static int find_changes(struct changes *c, size_t *room, uint32_t number,
			const struct changes_options *o)
{
	struct changes_service *s = &c->data->services[number];
	struct changes_owner *owner = &c->data->owners[s->owner];
	const struct changes_block *blocks = c->data->blocks;
	const struct changes_metric *metric = metric_of(s, o);
	size_t first = c->count, most = SIZE_MAX;
	int err = 0;

	if (owner->name)
		most = c->count < OTHERS_CHANGES ? OWNER_CHANGES - owner->change_count : 0;
	if (!most) {
		owner->omitted = true;
		return 0;
	}
	if (!o->at_ns) {
		err = changes_find_deploys(c, room, number);
	} else if (s->cell_count && blocks[s->cells[0].block].start_ns < o->at_ns &&
		   blocks[s->cells[s->cell_count - 1].block].limit_ns > o->at_ns) {
		struct change *change = changes_append(c, room, number);

		if (!change)
			return -ENOMEM;
		change->asked = true;
		change->begin_ns = change->end_ns = o->at_ns;
	}
	if (c->count - first > most) {
		size_t over = c->count - first - most;

		for (size_t i = 0; i < over; i++)
			free(c->changes[first + i].images);
		memmove(&c->changes[first], &c->changes[first + over], most * sizeof(*c->changes));
		c->count -= over;
		owner->omitted = true;
	}
	owner->change_count += c->count - first;
	for (size_t k = first; k < c->count; k++) {
		struct change *change = &c->changes[k];

		change->metric = metric;
		for (size_t i = 0; o->packages && i < change->image_count; i++)
			for (int side = 0; side < CHANGE_SIDES; side++)
				change->images[i].packages[side] =
					packages_find(o->packages, change->images[i].builds[side]);
	}
	return err;
}

int changes_find(struct changes *c, const struct changes_options *o, bool of_system)
{
	struct changes_data *d = c->data;
	size_t first = c->count, count = 0;
	uint32_t *services = calloc(d->service_count + 1, sizeof(*services));
	int err = services ? 0 : -ENOMEM;

	if (!err && !d->order)
		err = order_functions(d);
	for (uint32_t i = 0; i < d->service_count && !err; i++)
		if (changes_is_system(d, &d->services[i]) == of_system)
			services[count++] = i;
	if (!err && !of_system)
		qsort_r(services, count, sizeof(*services), compare_bytes, d);
	for (size_t i = 0; i < count && !err; i++)
		err = find_changes(c, &c->room, services[i], o);
	free(services);
	return err ?: changes_judge(c, o, first);
}

const char *changes_omitted(const struct changes *c, bool of_system)
{
	const struct changes_data *d = c->data;
	const struct changes_owner *most = NULL;

	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].omitted && !d->owners[i].name == of_system &&
		    (!most || d->owners[i].bytes > most->bytes))
			most = &d->owners[i];
	return !most ? NULL : most->name ?: "the system";
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
		worst = MAX(worst, c->changes[i].outcome);
	return worst;
}

void changes_free(struct changes *c)
{
	struct changes_data *d = c->data;

	for (size_t i = 0; i < c->count; i++) {
		free(c->changes[i].images);
		free(c->changes[i].rows);
		free(c->changes[i].waits);
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
		free(s->cells);
		free(s->accounts);
		free(s->name);
		free(s->user);
	}
	for (size_t i = 0; d && i < d->function_count; i++)
		free_function(&d->functions[i]);
	for (size_t i = 0; d && i < d->owner_count; i++)
		free(d->owners[i].name);
	if (d && d->reading)
		reading_free(d->reading);
	if (d) {
		free(d->reading);
		free(d->owners);
		index_free(&d->owner_index);
		free(d->order);
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
