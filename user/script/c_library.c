// SPDX-License-Identifier: GPL-2.0-only
#include "script/c_library.h"

#include <string.h>

#include "script/description.h"

void c_library_take_symbol(struct c_library_symbols *s, const char *name, const GElf_Sym *symbol)
{
	if (name[0] != '_' || name[1] != '_') {
		if (strcmp(name, "_thread_db_pthread_dtvp") == 0)
			s->vector = symbol->st_value;
		else if (strcmp(name, "_thread_db_dtv_dtv") == 0)
			s->elements = symbol->st_value;
		else if (strcmp(name, "_thread_db_sizeof_pthread") == 0)
			s->thread_size = symbol->st_value;
	} else if (strcmp(name, "__tls_get_addr") == 0) {
		s->get_address = symbol->st_value;
		s->get_address_size = symbol->st_size;
	} else if (strcmp(name, "__libc_start_main") == 0) {
		s->has_start = true;
	}
}

/* A vector that is so many bytes behind the thread pointer. */
static struct context_vector vector_at(int64_t offset, enum context_vector_shift shift)
{
	if (offset % 8 || offset / 8 != (signed char)(offset / 8))
		return (struct context_vector){ 0 };
	return (struct context_vector){ .word = offset / 8, .shift = shift };
}

/* Each descriptor has the bits of an element, their number, and an offset in bytes. */
static struct context_vector of_glibc(const struct elf_file *file, GElf_Half machine,
				      const struct c_library_symbols *s)
{
	uint32_t vector[3], elements[3], size = 0;

	if (!language_read_variable(file, s->vector, vector, sizeof(vector)) ||
	    !language_read_variable(file, s->elements, elements, sizeof(elements)) ||
	    vector[0] != 64 || elements[0] != 8 << CONTEXT_GLIBC || elements[2])
		return (struct context_vector){ 0 };
	/* The thread pointer is at the begin of struct pthread on x86-64, and at its end on arm64.
	 */
	if (machine == EM_AARCH64 &&
	    (!s->thread_size || !language_read_variable(file, s->thread_size, &size, sizeof(size))))
		return (struct context_vector){ 0 };
	return vector_at((int64_t)vector[2] - size, CONTEXT_GLIBC);
}

/* Bytes of musl's __tls_get_addr() that are read; it has 25 in 1.2. Bound: size. */
#define CODE_BYTES 64

/*
 * musl says it nowhere but in this function:
 *	mov %fs:0,%rax; mov OFFSET(%rax),%rdx; ... (%rdx,%rcx,8) ...
 * arm64: mrs x1,tpidr_el0; ldur x1,[x1,#OFFSET]; ldr x1,[x1,x2,lsl #3]
 */
static struct context_vector of_musl(const struct elf_file *file, GElf_Half machine,
				     const struct c_library_symbols *s)
{
	static const uint8_t load_thread[] = { 0x25, 0, 0, 0, 0 };
	size_t size = MIN(s->get_address_size, CODE_BYTES);
	uint8_t code[CODE_BYTES + 8] = { 0 };
	int64_t offset = 0;
	int thread = -1;

	if (!language_read_variable(file, s->get_address, code, size))
		return (struct context_vector){ 0 };
	for (size_t i = 0; machine == EM_AARCH64 && i + 4 <= size; i += 4) {
		uint32_t word = code[i] | code[i + 1] << 8 | code[i + 2] << 16 |
				(uint32_t)code[i + 3] << 24;

		if ((word & 0xffe00c00) == 0xf8400000)
			offset = (int64_t)((uint64_t)word << 43) >> 55;
		else if ((word & 0xffe0fc00) == 0xf8607800 && offset)
			return vector_at(offset, CONTEXT_MUSL);
	}
	for (size_t i = 0; machine == EM_X86_64 && i < size; i++) {
		const uint8_t *at = code + i;

		if (thread < 0) {
			if (at[0] == 0x64 && at[1] == 0x48 && at[2] == 0x8b &&
			    (at[3] & 0xc7) == 4 &&
			    memcmp(at + 4, load_thread, sizeof(load_thread)) == 0)
				thread = at[3] >> 3;
		} else if (at[0] == 0x48 && at[1] == 0x8b && (at[2] & 0xc7) == (0x40 | thread)) {
			offset = (int8_t)at[3];
		} else if (offset && (at[0] & 0xf8) == 0x48 && (at[1] == 0x8b || at[1] == 3) &&
			   (at[2] & 7) == 4 && at[3] >> 6 == 3) {
			return vector_at(offset, CONTEXT_MUSL);
		}
	}
	return (struct context_vector){ 0 };
}

struct context_vector c_library_vector(const struct elf_file *file, GElf_Half machine,
				       const struct c_library_symbols *s)
{
	if (s->vector && s->elements)
		return of_glibc(file, machine, s);
	if (s->get_address && s->has_start)
		return of_musl(file, machine, s);
	return (struct context_vector){ 0 };
}
