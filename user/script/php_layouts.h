/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PHP_LAYOUTS_H
#define PROFIL_SCRIPT_PHP_LAYOUTS_H

#include "bpf/script/language.h"

#define PHP_LAYOUT(number, ...)                                                     \
	{                                                                           \
		.language = LANGUAGE_PHP, .version = number, .php = { __VA_ARGS__ } \
	}

/*
 * By minor version: from the headers of each (zend_globals.h, zend_compile.h);
 * bpf/script/php_layout.h has what is the same in all. Compared were 8.1.2, 8.2.36, 8.3.6, 8.4.27
 * and 8.5.4. tests/cli/php_layout.sh compares them with the headers here.
 */
static const struct language_image php_layouts[] = {
	PHP_LAYOUT(0x801, .current = 488, .thrower = 880, .opcodes = 72, .file = 144),
	PHP_LAYOUT(0x802, .current = 488, .thrower = 880, .opcodes = 88, .file = 152),
	PHP_LAYOUT(0x803, .current = 488, .thrower = 880, .opcodes = 80, .file = 144),
	PHP_LAYOUT(0x804, .current = 488, .thrower = 952, .opcodes = 104, .file = 168),
	PHP_LAYOUT(0x805, .current = 512, .thrower = 976, .opcodes = 104, .file = 168),
};

/*
 * In sapi_globals, without threads: the request's method and URI, what the server knows of it, and
 * what is false between requests, whose pointers stay. The same in 8.1 to 8.5; other versions are
 * known by another size.
 */
#define PHP_SAPI_CONTEXT 0
#define PHP_SAPI_METHOD	 8
#define PHP_SAPI_URI	 48
#define PHP_SAPI_STARTED 436
#define PHP_SAPI_SIZE	 552
#define PHP_SAPI_SIZE_84 648 /* from 8.4 on */

#endif
