/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_LAST_ERROR_H
#define PROFIL_LIB_LAST_ERROR_H

/* What profil_error() tells is never longer. */
#define ERROR_SIZE 640

/* Why the call fails, a sentence for profil_error() in this thread. Returns -code. */
int profil__error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a system call that failed, with the text for errno behind it. Returns -errno. */
int profil__system_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The sentence itself; "" when there is none. */
const char *profil__error_text(void);

/* None from now on. */
void profil__error_clear(void);

#endif
