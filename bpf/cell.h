/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-only OR BSD-2-Clause */
/* The arithmetic of profil(2), once: for eBPF, the kernel module, the library and the tests. */
#ifndef PROFIL_BPF_CELL_H
#define PROFIL_BPF_CELL_H

/* What cell_index() returns for a cell that no buffer can have. */
#define CELL_NONE (~0ULL)

/*
 * The number of the 16-bit cell that a pc `delta` bytes behind the offset is counted in:
 * floor(delta * scale / 2^17), exact for every delta and scale: profil(2), DESCRIPTION, with scale
 * 0x10000 for 1. Scale 0x20000 gives each byte a cell of its own.
 *
 * The product has up to 96 bits. delta is split at bit 16, which loses nothing, for what is above
 * it makes whole numbers; what is more than 64 bits then belongs to no buffer.
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

/*
 * The last delta that is counted in one of the first `cells` cells, of which there is at least one.
 * The next delta is the first of a later cell. scale is not 0.
 */
static inline unsigned long long cell_last_delta(unsigned long long cells, unsigned int scale)
{
	unsigned long long low = 0, high = ~0ULL;

	while (low < high) { /* the cell of low is among them, that of high + 1 is not */
		unsigned long long middle = high - (high - low) / 2;

		if (cell_index(middle, scale) < cells)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

#endif
