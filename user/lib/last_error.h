/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_LAST_ERROR_H
#define PROFIL_LIB_LAST_ERROR_H

/* The longest message of profil_error(), in bytes. */
#define ERROR_SIZE 640

/* Sets the message of profil_error() in this thread, a sentence. Returns -code. */
int profil__error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a system call that failed: appends the text of errno. Returns -errno. */
int profil__system_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns this thread's message; "" when there is none. */
const char *profil__error_text(void);

/* Sets the message to "". */
void profil__error_clear(void);

#endif
