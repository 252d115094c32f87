// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

#include "script/php_layouts.h"

/* In PHP's fcgi_request (main/fastcgi.c): the bucket of parameters with the hash of REQUEST_URI. */
#define FASTCGI_URI_BUCKET (8296 + 35 * 8)

static void complete(struct elf_file *file, uint64_t size, struct context_variable *variables)
{
	static const unsigned short within[] = { PHP_SAPI_METHOD, PHP_SAPI_CONTEXT, PHP_SAPI_URI };

	(void)file;
	for (size_t i = 0; i < sizeof(within) / sizeof(*within); i++) {
		variables[i].gate = PHP_SAPI_STARTED - within[i];
		variables[i].within = FASTCGI_URI_BUCKET;
		if (size != PHP_SAPI_SIZE && size != PHP_SAPI_SIZE_84)
			variables[i].kind = CONTEXT_NONE;
	}
}

/*
 * The request that PHP answers: its method, and its path without what follows a "?". Behind
 * FastCGI, the URI of sapi_globals is the script's name, one for all pages of most applications:
 * what the client has asked for is a parameter.
 */
const struct context_program context_php_request = {
	.name = "PHP",
	.variables = {
		{ "sapi_globals", CONTEXT_LABEL_ROUTE, CONTEXT_POINTER, CONTEXT_PLAIN, 0,
		  PHP_SAPI_METHOD },
		{ "sapi_globals", CONTEXT_LABEL_ROUTE, CONTEXT_FASTCGI, CONTEXT_PATH, 1,
		  PHP_SAPI_CONTEXT },
		{ "sapi_globals", CONTEXT_LABEL_ROUTE, CONTEXT_POINTER, CONTEXT_PATH, 1,
		  PHP_SAPI_URI },
	},
	.symbols = { "php_request_startup" },
	.complete = complete,
};
