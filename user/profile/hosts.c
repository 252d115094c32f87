// SPDX-License-Identifier: GPL-2.0-only
#include "profile/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hosts_add(struct hosts *h, const char *host)
{
	size_t i = 0;

	if (!*host || h->count == HOSTS_MAX)
		return 0;
	while (i < h->count && strcmp(h->names[i], host) != 0)
		i++;
	if (i < h->count)
		return 0;
	h->names[i] = strdup(host);
	if (!h->names[i])
		return -ENOMEM;
	h->count++;
	return 0;
}

bool hosts_are_several(const struct hosts *h, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < h->count && used < size; i++)
		used += snprintf(text + used, size - used, "%s%s", i ? ", " : "", h->names[i]);
	if (h->count == HOSTS_MAX && used < size)
		snprintf(text + used, size - used, ", ...");
	return h->count > 1;
}

void hosts_free(struct hosts *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->names[i]);
	h->count = 0;
}
