/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_SCRIPT_PERL_H
#define PROFIL_SCRIPT_PERL_H

#include "script/language.h"

/* Perl 5.36 to 5.42, built with threads: see script/language.h and the table of language.c. */
#define PERL_SYMBOLS                                                                               \
	{                                                                                          \
		"PL_thr_key", "Perl_runops_standard", "perl_run", "PL_opargs",                     \
			"PL_bincompat_options", "Perl_call_sv", "Perl_eval_sv", "Perl_amagic_call" \
	}

void perl_find(struct elf_file *file, const struct language_symbol *symbols,
	       struct language_image *image);
void perl_version(const struct elf_file *file, const struct language_symbol *symbols,
		  char text[static LANGUAGE_VERSION_SIZE]);
void perl_trim(struct language_code *code);
void perl_name(const struct language_code *code, char *name, char *file);
uint32_t perl_line(const struct language_code *code, uint32_t instruction);

#endif
