// SPDX-License-Identifier: GPL-2.0-only
#include "format/pieces.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/array.h"
#include "util/order.h"
#include "util/sum.h"
#include "util/utf8.h"

static int add_piece(struct pieces *pieces, const struct profile *p, uint32_t sample,
		     uint64_t time_ns, int64_t value)
{
	const struct profile_labels *l = &p->labels[p->samples[sample].labels];

	return array_add(pieces->list, pieces->count, pieces->room,
			 (struct piece){
				 .thread = (uint64_t)l->generation << 32 | (l->tid ?: l->pid),
				 .time_ns = time_ns,
				 .value = value,
				 .sample = sample,
			 });
}

ORDER(compare_pieces, struct piece, LEAST(thread) ?: LEAST(time_ns) ?: LEAST(sample))

int pieces_find(const struct profile *p, size_t value, struct pieces *pieces)
{
	struct tick_groups ticks;
	struct wait_groups waits;
	int err = tick_list_group(&p->ticks, p->sample_count, &ticks);

	if (err)
		return err;
	err = wait_list_group(&p->waits, p->sample_count, &waits);
	if (err) {
		tick_groups_free(&ticks);
		return err;
	}
	for (uint32_t i = 0; i < p->sample_count && !err; i++) {
		const int64_t *values = &p->values[i * p->value_type_count];
		int64_t left = values[value];
		uint64_t count = magnitude(values[0]);

		if (left <= 0)
			continue;
		for (size_t at = waits.first[i]; at < waits.first[i + 1] && left && !err; at++) {
			int64_t length = waits.waits[at].length_ns < (uint64_t)left
						 ? (int64_t)waits.waits[at].length_ns
						 : left;

			err = add_piece(pieces, p, i, waits.waits[at].since_ns, length);
			left -= length;
		}
		if (waits.first[i + 1] == waits.first[i])
			for (size_t at = ticks.first[i]; at < ticks.first[i + 1] && !err;
			     at++, count--) {
				int64_t part = left / (int64_t)(count ?: 1);

				err = part ? add_piece(pieces, p, i, ticks.times[at], part) : 0;
				left -= part;
			}
		if (left && !err)
			err = add_piece(pieces, p, i, PIECE_UNTIMED, left);
	}
	tick_groups_free(&ticks);
	wait_groups_free(&waits);
	if (!err && pieces->count)
		qsort(pieces->list, pieces->count, sizeof(*pieces->list), compare_pieces);
	return err;
}

void pieces_free(struct pieces *pieces)
{
	free(pieces->list);
	*pieces = (struct pieces){ 0 };
}

void json_text_put(const char *text, FILE *out)
{
	putc('"', out);
	for (size_t size; *text; text += size) {
		uint32_t code;

		size = utf8_decode(text, &code);
		if (!size) {
			fputs("\\ufffd", out);
			size = 1;
		} else if (code > 0xffff && utf8_is_hidden(code)) {
			code -= 0x10000;
			fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (code >> 10),
				0xdc00 + (code & 0x3ff));
		} else if (code < 0x20 || code == '"' || code == '\\' || utf8_is_hidden(code)) {
			fprintf(out, "\\u%04" PRIx32, code);
		} else {
			fwrite(text, 1, size, out);
		}
	}
	putc('"', out);
}
