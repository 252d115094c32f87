// SPDX-License-Identifier: GPL-2.0-only
/*
 * caller [-e] [-r REGIONS] WORK: turns profil() on for its own code, or with several REGIONS
 * sprofil() for as many equal parts of it; with 0 neither, and with -e (elsewhere) for addresses
 * where it has none. Prints "ready" and works until a signal ends it. WORK is
 *   nothing   to sleep
 *   loop      a single instruction
 *   memory    2 MiB of it
 *   spread    2 MiB of code, so evenly that every cell of 1 MiB gets ticks
 */
#include <sys/mman.h>

#include "legacy.h"
#include "work.h"

#define SPREAD_SIZE (2U << 20) /* bytes of code */
#define ELSEWHERE   4096

/* The code that is profiled. */
static char *code;
static size_t code_size;

/* A multiplication that waits for the one before, and the return; 4 bytes each. */
#if defined(__x86_64__)
#define MULTIPLY 0xc0af0f48 /* imul %rax,%rax */
#define RETURN	 0x909090c3 /* ret */
#elif defined(__aarch64__)
#define MULTIPLY 0x9b007c00 /* mul x0, x0, x0 */
#define RETURN	 0xd65f03c0 /* ret */
#else
#define MULTIPLY 0
#define RETURN	 0
#endif

/* --- Work --- */

static void prepare_nothing(void)
{
}

static void do_nothing(void)
{
	for (;;)
		pause();
}

static void loop(void)
{
	for (;;)
		;
}

static void use_memory(void)
{
	work_for(UINT64_MAX);
}

static void prepare_spread(void)
{
	uint32_t *instructions;

	instructions =
		mmap(NULL, SPREAD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(instructions != MAP_FAILED, "mmap");
	code = (char *)instructions;
	code_size = SPREAD_SIZE;
	for (size_t i = 0; i < SPREAD_SIZE / 4 - 1; i++)
		instructions[i] = MULTIPLY;
	instructions[SPREAD_SIZE / 4 - 1] = RETURN;
	require(mprotect(code, SPREAD_SIZE, PROT_READ | PROT_EXEC) == 0, "mprotect");
	__builtin___clear_cache(code, code + SPREAD_SIZE);
}

static void run_spread(void)
{
	for (;;)
		((void (*)(void))code)();
}

static const struct work {
	const char *name;
	void (*prepare)(void), (*run)(void);
} works[] = {
	{ "nothing", prepare_nothing, do_nothing },
	{ "loop", prepare_nothing, loop },
	{ "memory", work_prepare, use_memory },
	{ "spread", prepare_spread, run_spread },
};

static const struct work *find_work(const char *name)
{
	for (size_t i = 0; name && i < sizeof(works) / sizeof(*works); i++)
		if (strcmp(works[i].name, name) == 0)
			return &works[i];
	return NULL;
}

/* --- Profiling --- */

static void profil_regions(unsigned int count)
{
	struct prof *regions = calloc(count, sizeof(*regions));
	size_t part = (code_size / count + CODE_PER_CELL - 1) / CODE_PER_CELL * CODE_PER_CELL;

	require(regions, "calloc");
	for (unsigned int i = 0; i < count; i++)
		regions[i] = (struct prof){
			.pr_base = calloc(1, cells_size(part)),
			.pr_size = cells_size(part),
			.pr_off = (size_t)code + i * part,
			.pr_scale = SCALE,
		};
	if (count == 1)
		require(profil(regions->pr_base, regions->pr_size, regions->pr_off, SCALE) == 0,
			"profil");
	else
		require(sprofil(regions, count, NULL, PROF_USHORT) == 0, "sprofil");
}

int main(int argc, char **argv)
{
	bool elsewhere = false, usage = false;
	unsigned int regions = 1;
	const struct work *work;
	int option;

	while ((option = getopt(argc, argv, "er:")) != -1)
		switch (option) {
		case 'e':
			elsewhere = true;
			break;
		case 'r':
			regions = strtoul(optarg, NULL, 10);
			break;
		default:
			usage = true;
		}
	work = find_work(argv[optind]);
	if (usage || !work) {
		fprintf(stderr, "usage: caller [-e] [-r REGIONS] nothing|loop|memory|spread\n");
		return 2;
	}
	require_backend();
	code = __executable_start;
	code_size = etext - __executable_start;
	work->prepare();
	if (elsewhere)
		code = (char *)ELSEWHERE;
	if (regions)
		profil_regions(regions);
	say_ready();
	work->run();
}
