/* SPDX-License-Identifier: GPL-2.0-only */
/* Profiles the forked children of profiled processes. */
#ifndef PROFIL_KMOD_FORKS_H
#define PROFIL_KMOD_FORKS_H

/* Returns 0 or a negative errno. */
int forks_init(void);
void forks_exit(void);

#endif
