/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_FORMAT_JSON_TEXT_H
#define PROFIL_FORMAT_JSON_TEXT_H

#include <stdio.h>

/* Writes a text as a JSON string. What is not UTF-8 becomes U+FFFD. */
void json_text_put(const char *text, FILE *out);

#endif
