/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between machines. arch_MACHINE.h: the registers of an interrupted thread, for BPF
 * programs. walk_MACHINE.h: what the stack walk knows of frames and code, for BPF programs and user
 * space; registers.h has the registers' numbers. And in other directories:
 *   Makefile                              BPF_ARCH_*
 *   user/symbol/cfi/cfi.c                 machines[]: the registers of call frame information
 *   user/symbol/elf.c                     the code of PLT stubs
 *   user/util/cpu.c                       how return addresses are signed
 *   user/lib/mcount.S                     what gcc -pg calls
 *   user/capture/requirements_judge.c     the machines that are tested, their packages
 *   tests/progs/machine.h                 code of programs that tests profile
 *   tests/kernels/arm64.sh                a build for arm64, and a machine that it runs in
 */
#ifndef PROFIL_BPF_ARCH_H
#define PROFIL_BPF_ARCH_H

#include <bpf/bpf_helpers.h>

#if defined(__TARGET_ARCH_x86)
#include "arch_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch_arm64.h"
#else
#error "no arch_MACHINE.h: see bpf/arch.h"
#endif

#endif
