// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libFuzzer target for requests to `profiltool web --serve`: each gets one whole reply, and the
 * page only by its token. The input: a byte with the size of the parts in which the request comes,
 * and the request.
 */
#include "tool/page_server.c"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define PAGE  "<!DOCTYPE html>"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The server's loop, which is not run here, calls them. */
bool recording_signal_came(void *context)
{
	(void)context;
	return true;
}

int tool_flush(void)
{
	return 0;
}

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "page: %s\n", what);
	abort();
}

/* Has the connection receive the request in parts. Returns whether it remains open. */
static bool receive_parts(const struct page_server *s, struct connection *c, int client,
			  const uint8_t *bytes, size_t size, size_t part)
{
	bool open = true;

	while (size && open && !c->head_size) {
		size_t next = part < size ? part : size;

		if (send(client, bytes, next, MSG_NOSIGNAL) != (ssize_t)next)
			abort();
		open = receive(s, c, strlen(PAGE));
		bytes += next;
		size -= next;
	}
	return open;
}

static void check_reply(const struct connection *c, const uint8_t *bytes, size_t size)
{
	bool has_page = strncmp(c->head, "HTTP/1.1 200 OK\r\n", 17) == 0;

	require(c->head_size < sizeof(c->head) && strlen(c->head) == c->head_size,
		"the reply's size");
	require(strncmp(c->head, "HTTP/1.1 ", 9) == 0 && strstr(c->head, "\r\n\r\n"),
		"the reply's head");
	require(has_page || !c->body_size, "what is refused has no page");
	require(!has_page || memmem(bytes, size, "/" TOKEN "/", strlen(TOKEN) + 2),
		"the page needs the token");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct page_server s = { .listener = -1, .token = TOKEN };
	struct connection c = { 0 };
	int ends[2];
	bool open;

	/* A part has to fit into what the socket holds. */
	if (size < 1 || size > 3 * REQUEST_MAX)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		abort();
	c.fd = ends[0];
	open = receive_parts(&s, &c, ends[1], bytes + 1, size - 1, bytes[0] ? bytes[0] * 32 : 1);
	if (c.head_size)
		check_reply(&c, bytes + 1, size - 1);
	else
		require(open || size == 1, "a request that is closed without a reply");
	while (c.head_size && send_more(&c, PAGE))
		;
	require(c.sent == c.head_size + c.body_size, "the whole reply");
	close(ends[0]);
	close(ends[1]);
	return 0;
}
