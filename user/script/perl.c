// SPDX-License-Identifier: GPL-2.0-only
#include "script/description.h"

#include <stdio.h>
#include <string.h>

#include "script/perl_versions.h"

/* Those of PERL_SYMBOLS */
enum {
	KEY,
	RUNOPS,
	RUN,
	OPERATIONS,
	OPTIONS,
	CALLERS,
	WANTED = CALLERS + PERL_CALLERS
};

static void perl_find(struct elf_file *file, const struct language_symbol *symbols,
		      struct language_image *image)
{
	char options[512] = "";

	for (int i = 0; i < WANTED; i++)
		if (!symbols[i].address)
			return;
	if (symbols[OPTIONS].size >= sizeof(options) ||
	    !language_read_variable(file, symbols[OPTIONS].address, options,
				    symbols[OPTIONS].size) ||
	    strstr(options, "DEBUGGING") || strstr(options, "USE_LONG_DOUBLE") ||
	    strstr(options, "USE_QUADMATH"))
		return;
	for (size_t i = 0; i < sizeof(perl_versions) / sizeof(*perl_versions); i++) {
		if (symbols[OPERATIONS].size != perl_versions[i].operations * 4)
			continue;
		image->language = LANGUAGE_PERL;
		image->version = perl_versions[i].version;
		image->perl.key = symbols[KEY].address;
		image->perl.runops =
			(struct perl_function){ symbols[RUNOPS].address, symbols[RUNOPS].size };
		image->perl.run = (struct perl_function){ symbols[RUN].address, symbols[RUN].size };
		for (int c = 0; c < PERL_CALLERS; c++)
			image->perl.callers[c] =
				(struct perl_function){ symbols[CALLERS + c].address,
							symbols[CALLERS + c].size };
		image->perl.nextstate = perl_versions[i].nextstate;
	}
}

/* The number is in a text alone, "v5.36.0", which the interpreter compares with what modules have.
 */
static void perl_version(const struct elf_file *file, const struct language_symbol *symbols,
			 char text[static LANGUAGE_VERSION_SIZE])
{
	unsigned int minor, patch, minor_found = 0, patch_found = 0;
	char bytes[4096 + 1];
	size_t size, kept = 0;
	int used;

	if (!symbols[RUNOPS].address || !symbols[RUN].address || !symbols[OPERATIONS].address)
		return;
	for (uint64_t at = 0;; at += size) {
		size = elf_source_read(&file->source, bytes + kept, sizeof(bytes) - 1 - kept, at);
		if (!size)
			break;
		bytes[kept + size] = '\0';
		for (size_t i = 0; i + 16 < kept + size; i++)
			if (memcmp(bytes + i, "\0v5.", 4) == 0 &&
			    sscanf(bytes + i + 4, "%3u.%3u%n", &minor, &patch, &used) == 2 &&
			    !bytes[i + 4 + used] &&
			    minor * 1000 + patch > minor_found * 1000 + patch_found) {
				minor_found = minor;
				patch_found = patch;
			}
		/* A text may go on in what is read next. */
		used = MIN(kept + size, 16);
		memmove(bytes, bytes + kept + size - used, used);
		kept = used;
	}
	if (minor_found)
		snprintf(text, LANGUAGE_VERSION_SIZE, "Perl 5.%u.%u%s", minor_found, patch_found,
			 symbols[KEY].address ? "" : " without threads");
	else
		snprintf(text, LANGUAGE_VERSION_SIZE, "this Perl");
}

/* Appends the text of a name key. */
static size_t append_key(char *text, size_t used, const uint8_t *key)
{
	char copy[PERL_NAME_BYTES - PERL_HEK_KEY + sizeof("...")] = "";
	size_t room = PERL_NAME_BYTES - PERL_HEK_KEY;
	bool utf8 = true;
	uint32_t length;

	memcpy(&length, key + PERL_HEK_LEN, sizeof(length));
	key += PERL_HEK_KEY;
	if (length + 2ULL <= room) {
		memcpy(copy, key, length);
		utf8 = key[length + 1] & PERL_HEK_UTF8;
	} else {
		/* Too long: its flags are behind it, and have not been copied. */
		memcpy(copy, key, room);
		strcpy(copy + strlen(copy), "...");
	}
	return language_append(text, used, copy, utf8);
}

/* Clears the hash of a name key, and what follows its flags. */
static void trim_key(uint8_t *key)
{
	uint32_t length;

	memset(key, 0, PERL_HEK_LEN);
	memcpy(&length, key + PERL_HEK_LEN, sizeof(length));
	if (length + 2ULL <= PERL_NAME_BYTES - PERL_HEK_KEY) {
		key += PERL_HEK_KEY;
		key[length + 1] &= PERL_HEK_UTF8;
		memset(key + length + 2, 0, PERL_NAME_BYTES - PERL_HEK_KEY - length - 2);
	}
}

static void perl_trim(struct language_code *code)
{
	if (code->kind != PERL_SUB || code->name_bytes < 2 * PERL_NAME_BYTES)
		return;
	trim_key(code->name);
	trim_key(code->name + PERL_NAME_BYTES);
}

/* Copies a text that may have no end. */
static void copy_text(char *to, size_t size, const uint8_t *from, size_t from_size)
{
	memset(to, 0, size);
	memcpy(to, from, from_size < size ? from_size : size - 1);
}

static void perl_name(const struct language_code *code, char *name, char *file)
{
	char text[LANGUAGE_FILE_BYTES + 1];
	size_t used = 0;

	switch (code->kind) {
	case PERL_SUB:
		if (code->name_bytes < 2 * PERL_NAME_BYTES)
			break;
		used = append_key(name, 0, code->name);
		if (used && used + 8 < LANGUAGE_TEXT_SIZE)
			used = language_append(name, used, "::", false);
		append_key(name, used, code->name + PERL_NAME_BYTES);
		break;
	case PERL_EVAL:
		strcpy(name, "(eval)");
		break;
	case PERL_REQUIRE:
		copy_text(text, sizeof(text), code->name, code->name_bytes);
		language_append(name, language_append(name, 0, "require ", false), text, true);
		break;
	case PERL_PROGRAM:
		strcpy(name, "{main}");
		break;
	}
	copy_text(text, sizeof(text), code->file, code->file_bytes);
	/* A string that is evaluated has a number, another one each time. */
	language_append(file, 0, strncmp(text, "(eval ", 6) == 0 ? "(eval)" : text, true);
}

/* Perl 5.36 to 5.42, built with threads. */
const struct language_description language_perl = {
	.label = "perl",
	.symbols = {
		"PL_thr_key", "Perl_runops_standard", "perl_run", "PL_opargs",
		"PL_bincompat_options", "Perl_call_sv", "Perl_eval_sv", "Perl_amagic_call",
	},
	.find = perl_find,
	.name = perl_name,
	.trim = perl_trim,
	.version = perl_version,
	.interpreter = {
		.images = { "perl", "perl5*", "libperl.so*" },
		.hint = "only Perl 5.36 to 5.42, built with threads, has its functions in the call "
			"stacks",
		.language = "Perl",
		.builds = ", built with threads",
		.major = 5,
		.minor_least = 36,
		.minor_most = 42,
	},
};
