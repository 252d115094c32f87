// SPDX-License-Identifier: GPL-2.0-only
#include "report/web/web_code.h"

#include <errno.h>
#include <stdlib.h>

#include "format/gzip.h"

static const char style_sheet[] =
#include "web.css.h"
	;

static const char body[] =
#include "web.html.h"
	;

static const char script[] =
#include "web.js.h"
	;

/* The base64 of the SHA-256 of each: what the page's policy allows. */
static const char style_hash[] =
#include "web.css.hash.h"
	;

static const char script_hash[] =
#include "web.js.hash.h"
	;

static void print_base64(const uint8_t *bytes, size_t size, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16;

		if (i + 1 < size)
			three |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < size)
			three |= bytes[i + 2];
		putc(digits[three >> 18], out);
		putc(digits[three >> 12 & 63], out);
		putc(i + 1 < size ? digits[three >> 6 & 63] : '=', out);
		putc(i + 2 < size ? digits[three & 63] : '=', out);
	}
}

/* Prints the data, deflated, as text that needs no escape. */
static int print_packed(const struct profile *p, const struct profile *earlier,
			const struct web_code *code, const struct web_options *o, FILE *out,
			struct error *e)
{
	struct gzip_writer w;
	char *bytes = NULL;
	size_t size = 0;
	FILE *packed = open_memstream(&bytes, &size), *plain;
	int err;

	if (!packed)
		return error_no_memory(e);
	err = gzip_open(&w, packed, e);
	if (!err) {
		/* A page is written once and sent to others: size matters more than time. */
		if (deflateParams(&w.z, Z_BEST_COMPRESSION, Z_DEFAULT_STRATEGY) != Z_OK)
			err = error_no_memory(e);
		plain = gzip_stream(&w);
		if (!plain)
			err = error_no_memory(e);
		if (plain && !err)
			err = web_print_data(p, earlier, code, o, plain);
		if (err == -ENOMEM)
			err = error_no_memory(e);
		if (err == -E2BIG) {
			error_set(e, 0, "more than %d call paths, which no browser could show",
				  WEB_PATHS_MAX);
			error_hint(e, "select a part: --focus FUNCTION, --comm NAME, or some time");
		}
		if (plain && fclose(plain) && !err)
			err = error_no_memory(e);
		err = gzip_close(&w, err, e);
	}
	if (fclose(packed) && !err)
		err = error_no_memory(e);
	if (!err)
		print_base64((const uint8_t *)bytes, size, out);
	free(bytes);
	return err;
}

int web_print(struct profile *p, const struct profile *earlier, const struct web_options *o,
	      FILE *out, struct error *e)
{
	struct web_code code = { 0 };
	int err = o->no_code ? 0 : web_code_make(&code, p, o, e);

	if (err)
		goto out;
	/* The policy: only this script and style, no picture, no connection, no frame, no form. */
	fprintf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<title>profil</title>\n<style>%s</style>\n</head>\n<body>\n%s",
		script_hash, style_hash, style_sheet, body);
	fputs("<script type=\"application/octet-stream\" id=\"profile\">", out);
	err = print_packed(p, earlier, &code, o, out, e);
	fprintf(out, "</script>\n<script>%s</script>\n</body>\n</html>\n", script);
out:
	web_code_free(&code);
	return err;
}
