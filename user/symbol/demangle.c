// SPDX-License-Identifier: GPL-2.0-only
#include "symbol/demangle.h"

#include <ctype.h>
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else /* Fedora's binutils-devel */
#include <demangle.h>
#endif
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/*
 * Names of 300 characters can expand to gigabytes: each type doubles the one before.
 * Bound: files: bytes of a name as it is written in the source; then: it stays as it is in the
 * file; seen: as that name.
 */
#define OUTPUT_MAX (64 * 1024)

/*
 * libiberty rejects C++ names longer than half its recursion limit. Without that limit, the name's
 * length bounds the recursion: UNLIMITED_MAX characters take less than 1.5 MiB of stack.
 * Bound: files: bytes of a name that is translated; then: it stays as it is in the file; seen: as
 * that name.
 */
#define LIMITED_MAX   (DEMANGLE_RECURSION_LIMIT / 2)
#define UNLIMITED_MAX 4096

/*
 * The D demangler has no callback that could stop it. Back references ('Q') expand.
 * Bound: files: bytes and back references of a name of D; then: it stays as it is in the file;
 * seen: as that name.
 */
#define D_MAX		 1024
#define D_REFERENCES_MAX 12

struct output {
	char *text;
	size_t size;
	size_t room;
	jmp_buf give_up;
};

/*
 * longjmp() is the only way to stop libiberty's expansion. It leaks nothing: with callbacks,
 * libiberty keeps all its memory on the stack.
 */
static void append(const char *text, size_t size, void *context)
{
	struct output *out = context;

	if (out->size + size >= OUTPUT_MAX ||
	    array_reserve(&out->text, &out->room, out->size + size + 1, 1))
		longjmp(out->give_up, 1);
	memcpy(out->text + out->size, text, size);
	out->size += size;
	out->text[out->size] = '\0';
}

static bool demangle_into(struct output *out, const char *symbol, size_t length)
{
	if (setjmp(out->give_up))
		return false;
	/* Rust first: its older scheme also demangles as C++. */
	if (length <= LIMITED_MAX && rust_demangle_callback(symbol, OPTIONS, append, out))
		return true;
	out->size = 0;
	if (length <= LIMITED_MAX)
		return cplus_demangle_v3_callback(symbol, OPTIONS, append, out);
	return cplus_demangle_v3_callback(symbol, OPTIONS | DMGL_NO_RECURSE_LIMIT, append, out);
}

char *demangle(const char *symbol)
{
	size_t length = strnlen(symbol, UNLIMITED_MAX + 1);
	struct output out = { 0 };
	unsigned int references = 0;
	char *text = NULL;

	if (symbol[0] != '_' || length > UNLIMITED_MAX)
		return NULL;
	if (symbol[1] == 'D' &&
	    (isdigit((unsigned char)symbol[2]) || strcmp(symbol, "_Dmain") == 0)) {
		for (size_t i = 0; i < length; i++)
			references += symbol[i] == 'Q';
		if (length <= D_MAX && references <= D_REFERENCES_MAX)
			text = dlang_demangle(symbol, OPTIONS);
	} else if (strchr("ZRG_", symbol[1])) {
		if (demangle_into(&out, symbol, length))
			text = out.text;
		else
			free(out.text);
	}
	if (text && !*text) {
		free(text);
		text = NULL;
	}
	return text;
}
