/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_EXPORT_H
#define PROFIL_LIB_EXPORT_H

/* Marks a public function, which libprofil.map lists as well. All others are hidden by default. */
#define EXPORT __attribute__((visibility("default")))

#endif
