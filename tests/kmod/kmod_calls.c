// SPDX-License-Identifier: GPL-2.0-only
/* Arguments of the calls of /dev/profil, valid and invalid: kmod_device.h. */
#include "kmod_device.h"

#include <poll.h>
#include <stddef.h>

/* --- What is none of its calls --- */

static void unknown_calls(void)
{
	static const unsigned long calls[] = {
		0,
		1,
		PROFIL_IOC_SET - 1,
		PROFIL_IOC_QUERY + 1,
		_IO(0xBC, 0x50),
		_IOW(0xBD, 0x50, struct profil_device_set),
		_IOWR(0xBD, 0x52, struct profil_device_query),
		(unsigned int)~0,
	};
	struct profil_device_query query = { .size = sizeof(query) };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		expect(ioctl(device(), calls[i], &query) == -1 && errno == ENOTTY,
		       "call 0x%lx: %m, not ENOTTY", calls[i]);
}

static void not_a_file(void)
{
	struct pollfd poll_device = { .fd = device(), .events = POLLIN | POLLOUT };
	char byte = 0;

	expect(read(device(), &byte, 1) == -1, "it can be read");
	expect(write(device(), &byte, 1) == -1, "it can be written");
	expect(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device(), 0) == MAP_FAILED, "it is mapped");
	expect(poll(&poll_device, 1, 0) >= 0, "poll: %m");
	lseek(device(), 1000000, SEEK_SET);
	expect_alive();
}

static void opened_otherwise(void)
{
	static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK | O_APPEND };
	int other;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct profil_device_query now = { .size = sizeof(now) };

		other = open(PROFIL_DEVICE, flags[i]);
		expect(other >= 0, "open with 0x%x: %m", flags[i]);
		expect(ioctl(other, PROFIL_IOC_QUERY, &now) == 0, "QUERY: %m");
		close(other);
	}
	other = open(PROFIL_DEVICE, O_PATH);
	expect(ioctl(other, PROFIL_IOC_OFF) == -1 && errno == EBADF, "OFF by O_PATH: %m");
}

/* --- Structures where none can be --- */

#define KERNEL 0xffff888000000000ULL

/* Two pages, of which the second is not there. */
static char *make_edge(int protection)
{
	char *memory = make_memory(2 * PAGE);

	munmap(memory + PAGE, PAGE);
	mprotect(memory, PAGE, protection);
	return memory + PAGE;
}

static void structures_nowhere(void)
{
	char *edge = make_edge(PROT_READ | PROT_WRITE);
	char *places[] = {
		NULL,
		(char *)1,
		(char *)-1,
		(char *)(uintptr_t)KERNEL,
		(char *)(uintptr_t)0x800000000000,
		make_edge(PROT_NONE) - PAGE,
		edge,
		edge - 8,
		edge - 1,
	};
	unsigned int size = sizeof(struct profil_device_query);

	memcpy(edge - 8, &size, sizeof(size));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		expect(ioctl(device(), PROFIL_IOC_SET, places[i]) == -1 && errno == EFAULT,
		       "SET at %p: %m", places[i]);
		expect(ioctl(device(), PROFIL_IOC_QUERY, places[i]) == -1 && errno == EFAULT,
		       "QUERY at %p: %m", places[i]);
	}
	expect_alive();
}

/* Its regions are read from there, or written to there. */
static void query_read_only(void)
{
	struct profil_device_query *now = make_memory(PAGE);
	char *constant = make_edge(PROT_READ) - PAGE;

	now->size = sizeof(*now);
	now->region_count = 1;
	turn_on(cells32);
	now->regions = address(constant);
	expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 && errno == EFAULT,
	       "regions to read-only memory: %m");
	now->regions = KERNEL;
	expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 && errno == EFAULT,
	       "regions to the kernel: %m");
	now->regions = ~0ULL - 7;
	expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 && errno == EFAULT,
	       "regions to the end of all: %m");
	mprotect(now, PAGE, PROT_READ);
	expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 && errno == EFAULT,
	       "to read-only memory: %m");
	expect(is_on(), "off");
}

/* Neither they nor the regions need be aligned, nor lie in one page. */
static void structures_anywhere(void)
{
	char *memory = make_memory(2 * PAGE);

	for (int shift = 1; shift < 64; shift++) {
		char *set = memory + PAGE - shift;
		struct profil_device_region region = everywhere(cells32, sizeof(cells32));
		struct profil_device_set good = {
			.size = sizeof(good),
			.hz = 100,
			.region_count = 1,
			.regions = address(set + 64),
		};

		memcpy(set, &good, sizeof(good));
		memcpy(set + 64, &region, sizeof(region));
		expect(ioctl(device(), PROFIL_IOC_SET, set) == 0, "%d bytes before a page: %m",
		       shift);
	}
}

/* --- Fields --- */

/* A call that is right. Its first and last region are of no code; the other is of the spinner. */
struct call {
	struct profil_device_set set;
	struct profil_device_region regions[3];
};

static unsigned short buffers[3][CELLS];

static struct call right_call(void)
{
	static struct call call;

	call = (struct call){
		.set = { .size = sizeof(call.set), .hz = 1000, .region_count = 3 },
		.regions = { hot_region(buffers[0], sizeof(buffers[0])),
			     hot_region(buffers[1], sizeof(buffers[1])),
			     hot_region(buffers[2], sizeof(buffers[2])) },
	};
	call.regions[0].offset = call.regions[0].first = 0x1000;
	call.regions[0].last = 0x1fff;
	call.regions[2].offset = call.regions[2].first = ~0x1fffULL;
	call.regions[2].last = ~0xfffULL;
	return call;
}

static int make_call(struct call *call)
{
	if (call->set.regions == 0)
		call->set.regions = address(call->regions);
	return ioctl(device(), PROFIL_IOC_SET, &call->set);
}

/* A field of the call, and what is to come of a value there: an error, or one of two. */
struct field {
	const char *name;
	size_t at, width;
	__u64 value;
	int error, other;
};

#define FIELD(name) #name, offsetof(struct call, name), sizeof(((struct call *)NULL)->name)

static void set_field(struct call *call, const struct field *field, __u64 value)
{
	memcpy((char *)call + field->at, &value, field->width);
}

static const struct field refused[] = {
	{ FIELD(set.size), 0, EINVAL, EINVAL },
	{ FIELD(set.size), 1, EINVAL, EINVAL },
	{ FIELD(set.size), sizeof(struct profil_device_set) - 1, EINVAL, EINVAL },
	{ FIELD(set.size), sizeof(struct call), E2BIG, E2BIG },
	{ FIELD(set.size), 4096, E2BIG, E2BIG },
	{ FIELD(set.size), 0x80000000, E2BIG, EINVAL },
	{ FIELD(set.size), ~0U, E2BIG, EINVAL },
	{ FIELD(set.flags), PROFIL_ON, E2BIG, EINVAL },
	{ FIELD(set.flags), 4, E2BIG, E2BIG },
	{ FIELD(set.flags), 0x80000001, E2BIG, E2BIG },
	{ FIELD(set.flags), ~0U, E2BIG, E2BIG },
	{ FIELD(set.hz), 0, EINVAL, EINVAL },
	{ FIELD(set.hz), 0x80000000, EINVAL, EINVAL },
	{ FIELD(set.hz), ~0U, EINVAL, EINVAL },
	{ FIELD(set.region_count), 0, EINVAL, EINVAL },
	{ FIELD(set.region_count), 10000, E2BIG, E2BIG },
	/* Times 48 and times 56, it is little more than 2^32. */
	{ FIELD(set.region_count), 0x05555556, E2BIG, E2BIG },
	{ FIELD(set.region_count), 0x04924925, E2BIG, E2BIG },
	{ FIELD(set.region_count), 0x80000003, E2BIG, E2BIG },
	{ FIELD(set.region_count), ~0U, E2BIG, E2BIG },
	{ FIELD(set.regions), 1, EFAULT, EFAULT },
	{ FIELD(set.regions), 0x800000000000, EFAULT, EFAULT },
	{ FIELD(set.regions), 0x7ffffffffff0, EFAULT, EFAULT },
	{ FIELD(set.regions), KERNEL, EFAULT, EFAULT },
	{ FIELD(set.regions), ~0ULL, EFAULT, EFAULT },
	/* Not in their order, or not apart from each other. */
	{ FIELD(regions[0].last), ~0ULL, EINVAL, EINVAL },
	{ FIELD(regions[0].first), ~0ULL, EINVAL, EINVAL },
	{ FIELD(regions[1].first), 0, EINVAL, EINVAL },
	{ FIELD(regions[1].first), ~0ULL, EINVAL, EINVAL },
	{ FIELD(regions[1].last), 0, EINVAL, EINVAL },
	{ FIELD(regions[1].last), ~0x1fffULL, EINVAL, EINVAL },
	{ FIELD(regions[1].last), ~0ULL, EINVAL, EINVAL },
	{ FIELD(regions[1].offset), ~0ULL, EINVAL, EINVAL },
	{ FIELD(regions[2].first), ~0x2000ULL, EINVAL, EINVAL },
	{ FIELD(regions[2].last), ~0x2000ULL, EINVAL, EINVAL },
	{ FIELD(regions[2].unused), 1, E2BIG, EINVAL },
	{ FIELD(regions[0].unused), ~0U, E2BIG, EINVAL },
	{ FIELD(regions[1].buffer), 0xffff800000000000, EFAULT, EFAULT },
	{ FIELD(regions[1].buffer), KERNEL, EFAULT, EFAULT },
	{ FIELD(regions[2].buffer), ~0ULL, EFAULT, EFAULT },
	{ FIELD(regions[2].buffer), -(__u64)sizeof(buffers[2]), EFAULT, EFAULT },
	{ FIELD(regions[0].bufsiz), 0x7fffffffffffffff, EFAULT, EFAULT },
	{ FIELD(regions[1].bufsiz), 0xffff800000000000, EFAULT, EFAULT },
	{ FIELD(regions[2].bufsiz), ~0ULL, EFAULT, EFAULT },
};

/* What was on is on as before. */
static void refused_fields(void)
{
	struct call call;

	turn_on(cells32);
	burn_counted(1);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		const struct field *field = &refused[i];
		struct profil_device_query now;
		int result;

		call = right_call();
		set_field(&call, field, field->value);
		result = make_call(&call);
		expect(result == -1 && (errno == field->error || errno == field->other),
		       "%s 0x%llx: %d, %m", field->name, field->value, result);
		now = query();
		if (!expect(now.flags == (PROFIL_ON | PROFIL_WIDE) && now.region_count == 1,
			    "%s 0x%llx: what was on is not", field->name, field->value))
			turn_on(cells32);
	}
	burn_counted(2);
	expect_exact("after all", cells32, 0);
}

static void limits(void)
{
	struct profil_device_query now = query();
	struct call call = right_call();

	expect(now.max_hz >= 1000 && now.max_regions >= 16, "at most %u Hz, %u regions", now.max_hz,
	       now.max_regions);
	call.set.hz = now.max_hz + 1;
	expect(make_call(&call) == -1 && errno == EINVAL, "more than max_hz: %m");
	call.set.hz = now.max_hz;
	expect(make_call(&call) == 0 && query().hz == now.max_hz, "max_hz: %m");
	call.set.hz = 1;
	expect(make_call(&call) == 0 && query().hz == 1, "1 Hz: %m");
}

/* Every value that is good for surprise, in every field. */
static void every_value(void)
{
	static const struct field fields[] = {
		{ FIELD(set.size), 0, 0, 0 },
		{ FIELD(set.flags), 0, 0, 0 },
		{ FIELD(set.hz), 0, 0, 0 },
		{ FIELD(set.region_count), 0, 0, 0 },
		{ FIELD(set.regions), 0, 0, 0 },
		{ FIELD(regions[1].first), 0, 0, 0 },
		{ FIELD(regions[1].last), 0, 0, 0 },
		{ FIELD(regions[1].offset), 0, 0, 0 },
		{ FIELD(regions[1].buffer), 0, 0, 0 },
		{ FIELD(regions[1].bufsiz), 0, 0, 0 },
		{ FIELD(regions[1].scale), 0, 0, 0 },
		{ FIELD(regions[1].unused), 0, 0, 0 },
	};
	const __u64 values[] = {
		0,
		1,
		2,
		3,
		5,
		7,
		255,
		0xfff,
		0x1000,
		0x1001,
		0xffff,
		0x10000,
		0x1ffff,
		0x20000,
		0x20001,
		0x7fffffff,
		0x80000000,
		0xffffffff,
		0x100000000,
		0x7ffffffff000,
		0x7fffffffffff,
		0x800000000000,
		0x7fffffffffffffff,
		0x8000000000000000,
		KERNEL,
		0xffffffff81000000,
		0xffffffffff600000,
		~0ULL - 1,
		~0ULL,
		address(__start_hot) + 1,
		address(buffers) + 1,
	};
	struct call call;
	int result;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		for (size_t j = 0; j < sizeof(values) / sizeof(*values); j++) {
			call = right_call();
			set_field(&call, &fields[i], values[j]);
			result = make_call(&call);
			expect(result == 0 || errno == EINVAL || errno == EFAULT || errno == E2BIG,
			       "%s 0x%llx: %m", fields[i].name, values[j]);
			if (result == 0)
				burn(0.1);
		}
	}
	expect_alive();
}

/* --- Sizes of structures --- */

/* Of a later program, which knows more than the kernel. */
static void greater_set(void)
{
	struct {
		struct profil_device_set set;
		unsigned char more[200];
	} later = { .set = { .size = sizeof(later), .hz = 100, .region_count = 1 } };
	struct profil_device_region region = everywhere(cells32, sizeof(cells32));

	later.set.regions = address(&region);
	expect(ioctl(device(), PROFIL_IOC_SET, &later) == 0, "zeroes behind it: %m");
	for (size_t i = 0; i < sizeof(later.more); i += 33) {
		later.more[i] = 1;
		expect(ioctl(device(), PROFIL_IOC_SET, &later) == -1 && errno == E2BIG,
		       "1 at byte %zu behind it: %m", i);
		later.more[i] = 0;
	}
	later.set.size = sizeof(later.set);
	memset(later.more, 1, sizeof(later.more));
	expect(ioctl(device(), PROFIL_IOC_SET, &later) == 0, "anything behind its size: %m");
}

static void greater_query(void)
{
	struct {
		struct profil_device_query query;
		unsigned char more[200];
	} later = { .query = { .size = sizeof(later) } };

	expect(ioctl(device(), PROFIL_IOC_QUERY, &later) == 0, "zeroes behind it: %m");
	expect(later.query.size == sizeof(later), "the size became %u", later.query.size);
	later.more[100] = 1;
	expect(ioctl(device(), PROFIL_IOC_QUERY, &later) == -1 && errno == E2BIG,
	       "1 behind it: %m");
	memset(&later, GUARD, sizeof(later));
	later.query = (struct profil_device_query){ .size = sizeof(later.query) };
	expect(ioctl(device(), PROFIL_IOC_QUERY, &later) == 0, "anything behind its size: %m");
	expect_guarded("behind a query", later.more, sizeof(later.more));
}

static void smaller_query(void)
{
	static const unsigned int sizes[] = { 0, 1, 4, sizeof(struct profil_device_query) - 1 };
	const unsigned int huge[] = { PAGE + 1, 0x80000000, ~0U };
	struct profil_device_query *now = make_memory(2 * PAGE);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		now->size = sizes[i];
		expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 && errno == EINVAL,
		       "size %u: %m", sizes[i]);
	}
	for (size_t i = 0; i < sizeof(huge) / sizeof(*huge); i++) {
		now->size = huge[i];
		expect(ioctl(device(), PROFIL_IOC_QUERY, now) == -1 &&
			       (errno == E2BIG || errno == EINVAL || errno == EFAULT),
		       "size %u: %m", huge[i]);
	}
}

/* --- QUERY --- */

static void told_when_off(void)
{
	struct profil_device_query zero = { .size = sizeof(zero) }, now = query();

	zero.version = PROFIL_DEVICE_VERSION;
	zero.max_hz = now.max_hz;
	zero.max_regions = now.max_regions;
	expect(memcmp(&now, &zero, sizeof(now)) == 0, "before SET, not all else is 0");
	turn_on(cells32);
	burn_counted(2);
	expect(turn_off() == 0, "OFF: %m");
	now = query();
	expect(memcmp(&now, &zero, sizeof(now)) == 0, "after OFF, not all else is 0");
}

/* It writes as many regions as fit, and returns how many there are. */
static void told_regions(void)
{
	struct call call = right_call();
	struct profil_device_region told[5];

	need(make_call(&call) == 0, "SET");
	for (unsigned int room = 0; room <= 5; room++) {
		struct profil_device_query now = { .size = sizeof(now), .region_count = room };
		unsigned int count = room < 3 ? room : 3;

		now.regions = address(told);
		memset(told, GUARD, sizeof(told));
		expect(ioctl(device(), PROFIL_IOC_QUERY, &now) == 0, "room for %u: %m", room);
		expect(now.region_count == 3 && now.hz == 1000 && now.flags == PROFIL_ON,
		       "%u regions, %u Hz, flags 0x%x", now.region_count, now.hz, now.flags);
		expect(memcmp(told, call.regions, count * sizeof(*told)) == 0,
		       "room for %u: others than were set", room);
		expect_guarded("behind the regions", told + count, (5 - count) * sizeof(*told));
		expect(now.regions == address(told), "their address became 0x%llx", now.regions);
	}
}

/* To write none, the kernel needs no memory. */
static void told_no_regions(void)
{
	struct profil_device_query now = { .size = sizeof(now), .region_count = ~0U };

	turn_on(cells32);
	expect(ioctl(device(), PROFIL_IOC_QUERY, &now) == 0 && now.region_count == 1,
	       "regions at 0: %m");
	now = (struct profil_device_query){ .size = sizeof(now), .regions = KERNEL };
	expect(ioctl(device(), PROFIL_IOC_QUERY, &now) == 0 && now.region_count == 1,
	       "room for none: %m");
}

static void off_and_off(void)
{
	expect(turn_off() == 0, "OFF before SET: %m");
	turn_on(cells32);
	burn_counted(1);
	expect(turn_off() == 0, "OFF: %m");
	expect(turn_off() == 0, "OFF again: %m");
	expect_alive();
}

static const struct row rows[] = {
	{ "any", "unknown calls", unknown_calls },
	{ "any", "it can neither be read, written nor mapped", not_a_file },
	{ "any", "opened to read, to write, as a path", opened_otherwise },
	{ "any", "structures nowhere", structures_nowhere },
	{ "any", "answers to where nothing can be written", query_read_only },
	{ "any", "structures at any address", structures_anywhere },
	{ "any", "SET: what is refused changes nothing", refused_fields },
	{ "any", "SET: the limits of the rate", limits },
	{ "any", "SET: every value in every field", every_value },
	{ "any", "SET: of a later program", greater_set },
	{ "any", "QUERY: of a later program", greater_query },
	{ "any", "QUERY: sizes", smaller_query },
	{ "any", "QUERY: when it is off", told_when_off },
	{ "any", "QUERY: regions", told_regions },
	{ "any", "QUERY: no regions", told_no_regions },
	{ "any", "OFF: twice", off_and_off },
};

int main(int argc, char **argv)
{
	return run_kmod_row(argc, argv, rows, sizeof(rows) / sizeof(*rows));
}
