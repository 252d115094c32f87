// SPDX-License-Identifier: GPL-2.0-only
#include "profile/tags.h"

#include <string.h>

const struct tag_kind tag_kinds[TAG_COUNT] = {
#define TAG_KIND(number, ...) { __VA_ARGS__ },
	PROFILE_TAGS(TAG_KIND)
#undef TAG_KIND
};

const struct profile_tag *profile_find_tag(const struct profile_labels *labels, const char *key)
{
	for (uint32_t i = 0; i < labels->tag_count; i++)
		if (strcmp(labels->tags[i].key, key) == 0)
			return &labels->tags[i];
	return NULL;
}

const char *profile_tag_text(const struct profile_labels *labels, enum profile_tag_number number)
{
	const struct profile_tag *tag = profile_find_tag(labels, tag_kinds[number].key);

	return tag ? tag->text : NULL;
}
