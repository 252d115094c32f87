// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib/lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void profil__lock(void)
{
	pthread_mutex_lock(&lock);
}

bool profil__try_lock(void)
{
	return pthread_mutex_trylock(&lock) == 0;
}

void profil__unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void profil__lock_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}
