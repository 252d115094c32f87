// SPDX-License-Identifier: GPL-2.0-only
#include "format/otlp/otlp.h"

#include <stdio.h>

#include "format/gzip.h"
#include "push/request.h"

static int encode_otlp(const struct profile *p, struct message_bytes *body, struct error *e)
{
	struct message_bytes request = { 0 };
	struct gzip_writer *gzip = malloc(sizeof(*gzip));
	char *at = NULL;
	FILE *out = open_memstream(&at, &body->size);
	int err = gzip && out ? otlp_encode(p, NULL, &request, e) : error_no_memory(e);

	if (!err)
		err = gzip_open(gzip, out, e);
	if (!err)
		err = gzip_close(gzip, gzip_write(gzip, request.at, request.size, e), e);
	if (out && fclose(out) && !err)
		err = error_no_memory(e);
	free(gzip);
	message_bytes_free(&request);
	body->at = (uint8_t *)at;
	if (err)
		message_bytes_free(body);
	return err;
}

const struct push_protocol push_otlp = {
	.name = "otlp",
	.path = "/v1development/profiles",
	.bad_request =
		"the server may speak another version of OpenTelemetry's profiles, which are "
		"not stable yet: these are of opentelemetry-proto 1.10 and 1.11",
	.content_type = "application/x-protobuf",
	.header = "Content-Encoding: gzip",
	.encode = encode_otlp,
};
