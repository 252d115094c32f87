// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/zstd.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define ZSTD_LIBRARY "libzstd.so.1"

int zstd_begin(struct zstd *z)
{
	void *library = dlopen(ZSTD_LIBRARY, RTLD_NOW);
	const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "ZSTD_createDStream", &z->create }, { "ZSTD_freeDStream", &z->destroy },
		{ "ZSTD_initDStream", &z->reset },    { "ZSTD_decompressStream", &z->decompress },
		{ "ZSTD_isError", &z->is_error },
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *symbol = library ? dlsym(library, functions[i].name) : NULL;

		if (!symbol)
			return -ENOTSUP;
		memcpy(functions[i].function, &symbol, sizeof(symbol));
	}
	z->stream = z->create();
	return z->stream ? 0 : -ENOMEM;
}

void zstd_end(struct zstd *z)
{
	if (z->stream)
		z->destroy(z->stream);
	z->stream = NULL;
}

bool zstd_restart(struct zstd *z)
{
	return !z->is_error(z->reset(z->stream));
}

bool zstd_decompress(struct zstd *z, struct zstd_out *out, struct zstd_in *in)
{
	return !z->is_error(z->decompress(z->stream, out, in));
}
