/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs of the tests have in machine code. */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

/* The same instruction for ever; what follows is not reached. */
#if defined(__x86_64__) || defined(__i386__)
#define LOOP_CODE                \
	{                        \
		0xeb, 0xfe, 0xc3 \
	} /* jmp itself; ret */
#define LOOP_SIZE  3
#define LOOP_ALIGN 1UL
/* This byte of the code makes it a jump to the next instruction, and to itself again. */
#define LOOP_BYTE  1
#define LOOP_LEAVE 0
#define LOOP_STAY  0xfe
#elif defined(__aarch64__)
#define LOOP_CODE                                     \
	{                                             \
		0, 0, 0, 0x14, 0xc0, 0x03, 0x5f, 0xd6 \
	} /* b itself; ret */
#define LOOP_SIZE  8
#define LOOP_ALIGN 4UL
#define LOOP_BYTE  0
#define LOOP_LEAVE 1
#define LOOP_STAY  0
#endif

/* A system call that is not in libc, whose functions have no frame. */
#if defined(__x86_64__)
#define SYSTEM_CALL(result, number, a, b, c)                   \
	__asm__ volatile("syscall"                             \
			 : "=a"(result)                        \
			 : "a"(number), "D"(a), "S"(b), "d"(c) \
			 : "rcx", "r11", "memory")
#elif defined(__aarch64__)
#define SYSTEM_CALL(result, number, a, b, c)                                                      \
	do {                                                                                      \
		register long x0_ __asm__("x0") = (long)(a);                                      \
		register long x1_ __asm__("x1") = (long)(b);                                      \
		register long x2_ __asm__("x2") = (long)(c);                                      \
		register long x8_ __asm__("x8") = (number);                                       \
                                                                                                  \
		__asm__ volatile("svc #0" : "+r"(x0_) : "r"(x1_), "r"(x2_), "r"(x8_) : "memory"); \
		(result) = x0_;                                                                   \
	} while (0)
#endif

/* An instruction that writes a byte to where the first argument points. */
#if defined(__x86_64__)
#define WRITE_ARGUMENT "movb $1, (%rdi)"
#elif defined(__aarch64__)
#define WRITE_ARGUMENT "strb w0, [x0]"
#endif

/* Counts to 20,000 while the frame pointer is this value. */
#if defined(__x86_64__)
#define COUNT_WITH_FRAME_POINTER(value)                                       \
	__asm__ volatile("push %%rbp\n\tmov %0, %%rbp\n\tmov $20000, %%ecx\n" \
			 "1:\tdec %%ecx\n\tjnz 1b\n\tpop %%rbp"               \
			 :                                                    \
			 : "r"(value)                                         \
			 : "rcx", "memory")
#elif defined(__aarch64__)
#define COUNT_WITH_FRAME_POINTER(value)                                    \
	__asm__ volatile("mov x9, x29\n\tmov x29, %0\n\tmov x10, #20000\n" \
			 "1:\tsubs x10, x10, #1\n\tb.ne 1b\n\tmov x29, x9" \
			 :                                                 \
			 : "r"(value)                                      \
			 : "x9", "x10", "cc", "memory")
#endif

#endif
