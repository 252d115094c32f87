// SPDX-License-Identifier: GPL-2.0-only
#include "tool/top_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "cli/capabilities.h"
#include "record/live_files.h"
#include "util/clock.h"

/* Bound: pace. */
#define LOOK_MS 100 /* between two calls of capture_handle() when nothing happens */

/*
 * The profile is compacted when it has grown by this many samples: most of them have faded by then;
 * or by this many labels, which all threads have that begin meanwhile.
 * Bound: size.
 */
#define MOST_SAMPLES 16384

/*
 * Reads the CPU time of this program and of objdump, which it runs. Returns what it used since the
 * last call, in percent of a CPU.
 */
static double read_own_cpu(struct watch *w)
{
	uint64_t used_before = w->own_cpu_ns, at_before = w->own_at_ns;
	struct rusage used;

	w->own_at_ns = now_ns();
	w->own_cpu_ns = 0;
	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++)
		if (getrusage(who, &used) == 0)
			w->own_cpu_ns += rusage_ns(&used);
	if (w->own_at_ns == at_before)
		return 0;
	return (double)(w->own_cpu_ns - used_before) * 100 / (w->own_at_ns - at_before);
}

static void end_capture(struct watch *w)
{
	capabilities_raise();
	capture_profile_end(w->growth);
	capture_free(w->capture);
	capabilities_lower();
	if (w->is_served)
		service_close(&w->service);
	w->is_served = false;
	merge_cache_free(&w->merged);
	runtime_asker_free(w->asker);
	w->asker = NULL;
	w->growth = NULL;
	w->capture = NULL;
}

int watch_start(struct watch *w, const struct tool_target *target, uint64_t half_life_ns,
		int signals, struct error *e)
{
	const char *path = service_path();
	struct capture_options options;
	int err;

	*w = (struct watch){ .target = *target };
	tool_describe_target(target, w->name, sizeof(w->name));
	w->status.target = w->name;
	if (live_init(&w->live, half_life_ns))
		return error_no_memory(e);
	options = tool_capture_options(&w->target);
	options.windows = options.wall = true;
	w->live.waits = target->waits;
	if (path) {
		err = service_check(target, false, e);
		err = err ?: service_start(&w->service, path, &options, 0, signals, e);
		w->is_served = w->has_wall = !err;
		read_own_cpu(w);
		if (!err)
			waits_describe(target, 0, w->idle.waits, sizeof(w->idle.waits));
		return err;
	}
	err = tool_asker(target, &w->asker, e);
	if (err)
		return err;
	capabilities_raise();
	err = tool_start_capture(&options, &w->capture, e);
	if (err && e->kind == ERROR_KERNEL_LACKS) { /* perhaps for the wall time alone */
		options.wall = options.waits = false;
		err = tool_start_capture(&options, &w->capture, e);
	}
	capabilities_lower();
	w->has_wall = options.wall;
	if (!err && target->waits && (!options.waits || capture_no_waits(w->capture))) {
		err = error_set_kind(e, ERROR_KERNEL_LACKS, 0,
				     "waits are not recorded, which needs Linux 5.18%s%s",
				     options.waits ? ": " : "",
				     options.waits ? capture_no_waits(w->capture) : "");
		error_hint(e, "profiltool check");
	}
	/* Windows with waits are profiles of their own, whose names say for what threads wait. */
	if (!err && !target->waits)
		err = capture_profile_begin(&w->growth, w->live.p, w->capture, e);
	w->samples_before = w->live.p->sample_count;
	w->labels_before = w->live.p->label_count;
	read_own_cpu(w);
	return err;
}

int watch_recorded(struct watch *w, struct profile *p, const char *name, const char *value,
		   const struct profile_filtered *filtered, struct error *e)
{
	*w = (struct watch){ .ended = true };
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->status = (struct live_status){
		.target = w->name,
		.lost = profile_lost(p),
		.bpf_ns_per_tick = p->totals.bpf_ns_per_tick,
	};
	if (live_init(&w->live, 0)) {
		profile_free(p);
		return error_no_memory(e);
	}
	profile_free(w->live.p);
	w->live.p = p;
	w->live.tried = p->location_count; /* windows have names */
	w->live.elapsed_ns = w->live.wall_ns = p->duration_ns;
	w->live.machine_ns = p->totals.machine_ns;
	w->live.recorded = true;
	w->live.filtered = filtered;
	w->live.value = profile_value(p, value);
	/* CPU time of a clock is shown as samples, too. */
	if (w->live.value == PROFILE_SAMPLES && p->value_type_count > PROFILE_CPU &&
	    profile_is_clock_time(p, PROFILE_CPU))
		w->live.value = PROFILE_CPU;
	return 0;
}

void watch_free(struct watch *w)
{
	end_capture(w);
	live_free(&w->live);
}

int watch_wait(struct watch *w, struct pollfd *fds, nfds_t count, uint64_t until_ns,
	       struct error *e)
{
	int ready = 0, err = 0;

	while (!err && !ready) {
		uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
		int timeout =
			left / NS_PER_MS < LOOK_MS ? (left + NS_PER_MS - 1) / NS_PER_MS : LOOK_MS;

		/* poll() ignores a descriptor of -1. */
		fds[count] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (w->capture)
			fds[count].fd = capture_fd(w->capture);
		if (!left || (w->capture && capture_ended(w->capture)) ||
		    (w->is_served && service_has_ended(&w->service)))
			break;
		if (poll(fds, count + 1, timeout) < 0 && errno != EINTR)
			return error_set(e, errno, "cannot wait for samples");
		if (w->capture) {
			capabilities_raise();
			err = capture_handle(w->capture, e);
			/* What had no name may have one now. */
			if (w->asker && runtime_asker_poll(w->asker, w->capture))
				w->live.tried = 0;
			capabilities_lower();
		}
		for (nfds_t i = 0; i < count; i++)
			ready |= fds[i].revents;
	}
	return err;
}

static void update_status(struct watch *w, const struct account *account, uint64_t lost,
			  uint64_t duration_ns)
{
	struct live_status *s = &w->status;

	s->lost += lost;
	w->any |= account->counted > 0;
	w->idle.excluded |= account->excluded > 0;
	w->idle.no_cpu_time = w->target.of_user;
	w->idle.cpu_ns += account->cpu_ns;
	w->cpu_ns += account->cpu_ns;
	w->idle.duration_ns += duration_ns;
	s->bpf_ns_per_tick = account->bpf_ns_per_tick;
	s->own_percent = read_own_cpu(w);
}

static void update_from_capture(struct watch *w, const struct capture_totals *from)
{
	update_status(w, &from->account, from->ring_full, from->duration_ns);
}

/* Takes a window from profild, or of waits. Samples and names are dropped as in watch_update(). */
static int update_from_window(struct watch *w, struct error *e)
{
	struct profile *p = NULL;
	int err = 0;

	if (w->is_served) {
		err = service_take(&w->service, false, &p, e);
		/* Whoever waits for the next table finds the signal. */
		if (err == -EINTR)
			return 0;
		w->ended = err || w->service.end != RECORD_GOES_ON;
	} else {
		capabilities_raise();
		w->ended = capture_ended(w->capture);
		err = w->ended ? capture_stop(w->capture, e) : capture_cut(w->capture, e);
		err = err ?: profile_from_capture(w->capture, &p, e);
		capabilities_lower();
	}
	if (!err) {
		live_fade(&w->live, p->duration_ns, p->totals.machine_ns);
		/* They would be of all windows, and nothing here is by time. */
		tick_list_free(&p->ticks);
		wait_list_free(&p->waits);
		capabilities_raise_for_names();
		err = w->target.waits ? live_name_waits(&w->live, p, e) : 0;
		capabilities_lower();
	}
	err = err ?: profile_merge(w->live.p, p, &w->merged, e);
	if (!err)
		update_status(w, &p->totals.account, profile_lost(p), p->duration_ns);
	profile_free(p);
	if (!err && w->ended) {
		end_capture(w);
	} else if (!err && (w->live.p->sample_count - w->samples_before > MOST_SAMPLES ||
			    w->live.p->label_count - w->labels_before > MOST_SAMPLES)) {
		merge_cache_free(&w->merged);
		w->merged = (struct merge_cache){ 0 };
		err = live_compact(&w->live) ? error_no_memory(e) : 0;
		w->samples_before = w->live.p->sample_count;
		w->labels_before = w->live.p->label_count;
	}
	if (!err && w->live.p->image_count != w->images_before) {
		w->images_before = w->live.p->image_count;
		err = live_files_open(w->live.p) ? error_no_memory(e) : 0;
	}
	err = err ?: live_name(&w->live, e);
	if (!err && live_collect(&w->live))
		err = error_no_memory(e);
	w->any |= w->live.waits && w->live.sum;
	return err;
}

int watch_update(struct watch *w, struct error *e)
{
	struct capture_totals totals;
	int err;

	if (w->is_served || w->target.waits)
		return update_from_window(w, e);
	capabilities_raise();
	w->ended = capture_ended(w->capture);
	err = w->ended ? capture_stop(w->capture, e) : capture_cut(w->capture, e);
	if (!err) {
		/* The window's own time: to start and to cut may take long, before and after it. */
		capture_totals(w->capture, &totals);
		live_fade(&w->live, totals.duration_ns, totals.machine_ns);
		err = capture_profile_add(w->growth, e);
	}
	if (!err)
		update_from_capture(w, &totals);
	capabilities_lower();

	if (!err && w->ended) {
		end_capture(w);
	} else if (!err && (w->live.p->sample_count - w->samples_before > MOST_SAMPLES ||
			    w->live.p->label_count - w->labels_before > MOST_SAMPLES)) {
		/* Drop the samples that have faded, with their locations, images and open files. */
		capture_profile_end(w->growth);
		w->growth = NULL;
		err = live_compact(&w->live) ? error_no_memory(e) : 0;
		err = err ?: capture_profile_begin(&w->growth, w->live.p, w->capture, e);
		w->samples_before = w->live.p->sample_count;
		w->labels_before = w->live.p->label_count;
	}

	capabilities_raise_for_names();
	err = err ?: live_name(&w->live, e);
	capabilities_lower();
	if (!err && live_collect(&w->live))
		err = error_no_memory(e);
	return err;
}

int watch_stop(struct watch *w, struct error *e)
{
	struct capture_totals totals;
	int err = 0;

	if (!w->capture || w->any)
		return 0;
	capabilities_raise();
	err = capture_stop(w->capture, e);
	if (!err) {
		capture_totals(w->capture, &totals);
		update_from_capture(w, &totals);
		waits_describe(&w->target, 0, w->idle.waits, sizeof(w->idle.waits));
	}
	capabilities_lower();
	return err;
}
