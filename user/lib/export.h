/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef PROFIL_LIB_EXPORT_H
#define PROFIL_LIB_EXPORT_H

/* A function that programs call: libprofil.map lists them. All else is compiled to be hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif
