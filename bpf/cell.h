/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/* The arithmetic of profil(2), shared by eBPF, the kernel module, the library and the tests. */
#ifndef PROFIL_BPF_CELL_H
#define PROFIL_BPF_CELL_H

/* What cell_index() returns for a cell that no buffer can have. */
#define CELL_NONE (~0ULL)

/*
 * Returns the number of the 16-bit cell that counts a pc `delta` bytes above the offset:
 * floor(delta * scale / 2^17), exact for every delta and scale (profil(2), DESCRIPTION; scale
 * 0x10000 means 1). With scale 0x20000 each byte has a cell of its own.
 *
 * The product has up to 96 bits. delta is split at bit 16: the upper part, times scale, is a
 * multiple of 2^16, so that the division loses nothing. A result above 64 bits is in no buffer.
 */
static inline unsigned long long cell_index(unsigned long long delta, unsigned int scale)
{
	unsigned long long high = delta >> 16, low = delta & 0xffff;
	unsigned long long middle = (high & 0xffffffff) * scale;
	unsigned long long top = (high >> 32) * scale + (middle >> 32);
	unsigned long long byte = (top << 32 | (middle & 0xffffffff)) + (low * scale >> 16);

	if (top >> 32 || byte < top << 32)
		return CELL_NONE;
	return byte >> 1;
}

/* Returns the smallest delta that is counted in a cell, whose number is below 2^46. */
static inline unsigned long long cell_first_delta(unsigned long long cell, unsigned int scale)
{
	return ((cell << 17) + scale - 1) / scale;
}

/*
 * Returns the largest delta that is counted in one of the first `cells` cells. `cells` and scale
 * are not 0.
 */
static inline unsigned long long cell_last_delta(unsigned long long cells, unsigned int scale)
{
	unsigned long long low = 0, high = ~0ULL;

	while (low < high) { /* low is in one of these cells, high + 1 is not */
		unsigned long long middle = high - (high - low) / 2;

		if (cell_index(middle, scale) < cells)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

#endif
