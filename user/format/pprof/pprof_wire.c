// SPDX-License-Identifier: GPL-2.0-only
#include "format/pprof/pprof_wire.h"

static const char *take_content(struct wire *w, struct wire_field *f)
{
	uint64_t size = 0;

	switch (f->type) {
	case WIRE_VARINT:
		return wire_take_varint(w, &f->number) ? NULL : "the number is truncated";
	case WIRE_BYTES:
		if (!wire_take_varint(w, &size))
			return "the length is truncated";
		break;
	case WIRE_FIXED64:
		size = 8;
		break;
	case WIRE_FIXED32:
		size = 4;
		break;
	default:
		return "unknown wire type: corrupt, or not a pprof profile";
	}
	f->content = (struct wire){ w->at, w->end };
	if (size > wire_left(w))
		return "the field is longer than the rest of the file: truncated or corrupt";
	w->at += size;
	f->content.end = w->at;
	return NULL;
}

const char *wire_take_field(struct wire *w, struct wire_field *f)
{
	uint64_t tag;

	f->start = w->at;
	if (!wire_take_varint(w, &tag))
		return "the field's tag is truncated";
	if (tag >> 3 == 0 || tag >> 32)
		return "invalid field number: corrupt, or not a pprof profile";
	f->id = tag >> 3;
	f->type = tag & 7;
	return take_content(w, f);
}

bool wire_fits(const ProtobufCMessageDescriptor *message, const struct wire_field *f)
{
	const ProtobufCFieldDescriptor *known =
		protobuf_c_message_descriptor_get_field(message, f->id);

	if (!known)
		return true;
	if (known->type == PROTOBUF_C_TYPE_MESSAGE || known->type == PROTOBUF_C_TYPE_STRING)
		return f->type == WIRE_BYTES;
	return f->type == WIRE_VARINT ||
	       (f->type == WIRE_BYTES && known->label == PROTOBUF_C_LABEL_REPEATED);
}
