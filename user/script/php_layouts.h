/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PHP_LAYOUTS_H
#define PROFIL_SCRIPT_PHP_LAYOUTS_H

#include "bpf/script/language.h"

/*
 * By minor version: from the headers of each (zend_globals.h, zend_compile.h);
 * bpf/script/php_layout.h has what is the same in all. Compared were 8.1.2, 8.2.36, 8.3.6, 8.4.27
 * and 8.5.4. tests/cli/php_layout.sh compares them with the headers here.
 */
static const struct language_image php_layouts[] = {
	{
		.language = LANGUAGE_PHP,
		.version = 0x801,
		.php = { .current = 488, .thrower = 880, .opcodes = 72, .file = 144 },
	},
	{
		.language = LANGUAGE_PHP,
		.version = 0x802,
		.php = { .current = 488, .thrower = 880, .opcodes = 88, .file = 152 },
	},
	{
		.language = LANGUAGE_PHP,
		.version = 0x803,
		.php = { .current = 488, .thrower = 880, .opcodes = 80, .file = 144 },
	},
	{
		.language = LANGUAGE_PHP,
		.version = 0x804,
		.php = { .current = 488, .thrower = 952, .opcodes = 104, .file = 168 },
	},
	{
		.language = LANGUAGE_PHP,
		.version = 0x805,
		.php = { .current = 512, .thrower = 976, .opcodes = 104, .file = 168 },
	},
};

#endif
