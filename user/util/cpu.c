// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause
#include "util/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/number.h"

#define KHZ_MAX ((uint64_t)1000000000) /* no CPU is faster: a higher value is an error */

/* A frequency in kHz from the CPU's cpufreq directory; 0: the file does not exist. */
static uint64_t read_khz(int cpu, const char *file)
{
	char path[128], line[32];
	uint64_t khz;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/%s", cpu, file);
	if (file_read_line(path, line, sizeof(line)) || number_parse(line, 1, KHZ_MAX, &khz))
		return 0;
	return khz;
}

/* A machine may have CPUs of different frequencies. */
static uint64_t highest_khz(const char *file)
{
	uint64_t highest = 0, khz;

	for (int cpu = 0; (khz = read_khz(cpu, file)); cpu++)
		highest = khz > highest ? khz : highest;
	return highest;
}

/* x86: "cpu MHz : 2000.000"; LoongArch: "CPU MHz"; POWER: "clock : 3425.000000MHz". Else 0. */
static double line_mhz(const char *line)
{
	const char *value = strchr(line, ':');

	if (!value || (strncasecmp(line, "cpu MHz", strlen("cpu MHz")) != 0 &&
		       strncmp(line, "clock\t", strlen("clock\t")) != 0))
		return 0;
	return strtod(value + 1, NULL);
}

static uint64_t cpuinfo_mhz(void)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	double highest = 0;
	char line[4096];

	while (in && fgets(line, sizeof(line), in)) {
		double mhz = line_mhz(line);

		highest = mhz > highest && mhz <= KHZ_MAX / 1000 ? mhz : highest;
	}
	if (in)
		fclose(in);
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
