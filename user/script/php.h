/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PHP_H
#define PROFIL_SCRIPT_PHP_H

#include "script/language.h"

/* PHP 8.1 to 8.5, without threads (NTS): see script/language.h and the table of language.c. */
#define PHP_SYMBOLS                                                                         \
	{                                                                                   \
		"executor_globals", "execute_ex", "zend_ce_generator", "zend_flf_functions" \
	}

void php_find(struct elf_file *file, const struct language_symbol *symbols,
	      struct language_image *image);
void php_trim(struct language_code *code);
void php_name(const struct language_code *code, char *name, char *file);
void php_version(const struct elf_file *file, const struct language_symbol *symbols,
		 char text[static LANGUAGE_VERSION_SIZE]);
uint32_t php_line(const struct language_code *code, uint32_t instruction);

#endif
