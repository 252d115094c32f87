/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROFIL_RECORD_LIVE_FILES_H
#define PROFIL_RECORD_LIVE_FILES_H

#include "profile/profile.h"

/*
 * For a profile that another process has recorded: opens the files of its images, and those of the
 * names of generated code, as the processes that still run have them mapped. At the same path there
 * may be another file by now, or in another mount namespace. Returns 0 or -ENOMEM.
 */
int live_files_open(struct profile *p);

#endif
