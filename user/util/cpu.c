// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/number.h"

/* Bound: format. */
#define KHZ_MAX ((uint64_t)1000000000) /* no CPU is faster: a higher value is an error */

/*
 * Returns the highest frequency in kHz that a file of the CPUs' cpufreq directories has, as a
 * machine may have CPUs of different frequencies; 0: there is no such file.
 */
static uint64_t highest_khz(const char *file)
{
	uint64_t highest = 0, khz;
	char path[128], line[32];

	for (int cpu = 0;; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/%s", cpu, file);
		if (file_read_line(path, line, sizeof(line)) ||
		    number_parse(line, 1, KHZ_MAX, &khz))
			return highest;
		highest = khz > highest ? khz : highest;
	}
}

/* x86: "cpu MHz : 2000.000"; LoongArch: "CPU MHz"; POWER: "clock : 3425.000000MHz" */
static uint64_t cpuinfo_mhz(void)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	double highest = 0;
	char line[4096];

	while (in && fgets(line, sizeof(line), in)) {
		const char *value = strchr(line, ':');
		double mhz;

		if (!value || (strncasecmp(line, "cpu MHz", strlen("cpu MHz")) != 0 &&
			       strncmp(line, "clock\t", strlen("clock\t")) != 0))
			continue;
		mhz = strtod(value + 1, NULL);
		highest = mhz > highest && mhz <= KHZ_MAX / 1000 ? mhz : highest;
	}
	file_close_stream(in);
	return highest + 0.5;
}

uint64_t cpu_mhz(void)
{
	uint64_t khz = highest_khz("base_frequency") ?: highest_khz("cpuinfo_max_freq");

	return khz ? (khz + 500) / 1000 : cpuinfo_mhz();
}

uint64_t return_address_signature(void)
{
#ifdef __aarch64__
	/* Bit 55 is 0 in an address of user space, and never part of the signature. */
	const uint64_t all = ~(UINT64_C(1) << 55);
	register uint64_t address __asm__("x30") = all;

	/* xpaclri removes the signature; CPUs that sign nothing do nothing. */
	__asm__("hint #7" : "+r"(address));
	return all & ~address;
#else
	return 0;
#endif
}
