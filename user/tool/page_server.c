// SPDX-License-Identifier: GPL-2.0-only
#include "tool/page_server.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool/recording.h"
#include "tool/tool.h"
#include "util/clock.h"

/* Bound: caller: connections of browsers at once; then: the oldest is closed; seen: not seen. */
#define CONNECTIONS_MAX 32
/* Bound: caller: bytes of a browser's request; then: it is refused. */
#define REQUEST_MAX 8192 /* bytes; browsers send less than 2,000 */
/*
 * Bound: caller: time for a request or a part of an answer; then: the connection is closed; seen:
 * not seen.
 */
#define PATIENCE_NS (20 * NS_PER_S) /* for a request, or for the next part of an answer */

struct connection {
	int fd;
	uint64_t deadline;
	size_t received;
	char request[REQUEST_MAX + 1];
	char head[1024]; /* of the answer, or all of it */
	size_t head_size, body_size, sent;
};

int page_server_open(struct page_server *s, uint16_t port, struct error *e)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	uint8_t random[PAGE_SERVER_TOKEN / 2];
	int code;

	*s = (struct page_server){ .listener = -1 };
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_set(e, errno, "cannot make a token");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(s->token + 2 * i, 3, "%02x", random[i]);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The port of a server that has just ended is free, whatever its connections wait for. */
	if (s->listener < 0 ||
	    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) ||
	    bind(s->listener, (struct sockaddr *)&address, size) ||
	    listen(s->listener, CONNECTIONS_MAX) ||
	    getsockname(s->listener, (struct sockaddr *)&address, &size)) {
		code = errno;
		error_set(e, code, "cannot listen on port %u of 127.0.0.1", (unsigned int)port);
		if (code == EADDRINUSE || code == EACCES)
			error_hint(e, "--serve alone takes a port that is free");
		return -code;
	}
	s->port = ntohs(address.sin_port);
	return 0;
}

void page_server_introduce(const struct page_server *s, bool quiet)
{
	/* "CLIENT PORT SERVER PORT", which sshd sets. */
	const char *ssh = getenv("SSH_CONNECTION");
	const struct passwd *user = getpwuid(geteuid());
	char server[INET6_ADDRSTRLEN];
	unsigned int port;
	struct in6_addr ignored;

	printf("http://127.0.0.1:%u/%s/\n", s->port, s->token);
	tool_flush();
	if (quiet)
		return;
	fprintf(stderr, TOOL_PREFIX "that address shows the page until Ctrl-C ends this\n");
	if (!ssh || sscanf(ssh, "%*s %*u %45s %u", server, &port) != 2 || port > UINT16_MAX ||
	    (inet_pton(AF_INET, server, &ignored) != 1 &&
	     inet_pton(AF_INET6, server, &ignored) != 1))
		return;
	fprintf(stderr,
		TOOL_PREFIX "for a browser where you logged in from, run there first:\n"
			    "  ssh -N -L %u:127.0.0.1:%u ",
		s->port, s->port);
	if (port != 22)
		fprintf(stderr, "-p %u ", port);
	fprintf(stderr, "%s%s%s\n", user ? user->pw_name : "", user ? "@" : "", server);
}

/* --- A request --- */

static void refuse(struct connection *c, const char *status, const char *why)
{
	c->head_size = snprintf(c->head, sizeof(c->head),
				"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
				"Content-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n"
				"Cache-Control: no-store\r\n%sConnection: close\r\n\r\n%s\n",
				status, strlen(why) + 1,
				strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "", why);
}

/* "localhost" or "127.0.0.1", with any port: ssh -L may use another one. */
static bool is_local(const char *host)
{
	size_t name = strcspn(host, ":");

	return ((name == 9 && strncasecmp(host, "localhost", name) == 0) ||
		(name == 9 && strncmp(host, "127.0.0.1", name) == 0)) &&
	       (!host[name] || (host[name + 1] &&
				strspn(host + name + 1, "0123456789") == strlen(host + name + 1)));
}

/* Takes the same time wherever they differ. */
static bool is_path(const struct page_server *s, const char *target)
{
	unsigned char differs = 0;

	if (strlen(target) != PAGE_SERVER_TOKEN + 2)
		return false;
	for (size_t i = 0; i < PAGE_SERVER_TOKEN; i++)
		differs |= (unsigned char)(target[i + 1] ^ s->token[i]);
	return !differs && target[0] == '/' && target[PAGE_SERVER_TOKEN + 1] == '/';
}

/* Answers a request, whose head is complete. It is overwritten. */
static void answer(const struct page_server *s, struct connection *c, size_t page_size)
{
	char *next = c->request, *line = strsep(&next, "\n"), *method, *target, *version;
	const char *host = NULL, *origin = NULL;

	line[strcspn(line, "\r")] = '\0';
	method = strsep(&line, " ");
	target = strsep(&line, " ");
	version = line;
	if (!target || !version || strncmp(version, "HTTP/1.", 7) != 0 || !isdigit(version[7]) ||
	    version[8]) {
		refuse(c, "400 Bad Request", "This is no request of HTTP/1.");
		return;
	}
	while ((line = strsep(&next, "\n")) && *line && *line != '\r') {
		char *name = strsep(&line, ":");
		const char **value = strcasecmp(name, "Host") == 0     ? &host
				     : strcasecmp(name, "Origin") == 0 ? &origin
								       : NULL;

		/* A name with a blank could hide one of these; two of them could disagree. */
		if (!line || !*name || strpbrk(name, " \t\r") || (value && *value)) {
			refuse(c, "400 Bad Request", "A header of this request is invalid.");
			return;
		}
		line += strspn(line, " \t");
		line[strcspn(line, " \t\r")] = '\0';
		if (value)
			*value = line;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		refuse(c, "405 Method Not Allowed", "Only GET and HEAD are answered.");
	else if (!host || !is_local(host))
		refuse(c, "403 Forbidden", "Only requests to 127.0.0.1 or localhost are answered.");
	else if (origin &&
		 (strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, host) != 0))
		refuse(c, "403 Forbidden", "Requests of other sites' pages are not answered.");
	else if (!is_path(s, target))
		refuse(c, "403 Forbidden",
		       "The address has not the token that profiltool printed.");
	else {
		c->head_size =
			snprintf(c->head, sizeof(c->head),
				 "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
				 "Content-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n"
				 "Content-Security-Policy: frame-ancestors 'none'\r\n"
				 "Cross-Origin-Resource-Policy: same-origin\r\n"
				 "Cross-Origin-Opener-Policy: same-origin\r\n"
				 "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
				 "Connection: close\r\n\r\n",
				 page_size);
		c->body_size = *method == 'G' ? page_size : 0;
	}
}

/* --- Connections --- */

/* Reads what has come. Returns false if the connection is to be closed. */
static bool receive(const struct page_server *s, struct connection *c, size_t page_size)
{
	ssize_t n = recv(c->fd, c->request + c->received, REQUEST_MAX - c->received, 0);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->received += n;
	c->request[c->received] = '\0';
	if (strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n") ||
	    strlen(c->request) < c->received)
		answer(s, c, page_size);
	else if (c->received == REQUEST_MAX)
		refuse(c, "431 Request Header Fields Too Large", "This request is too large.");
	return true;
}

/* Sends what there is room for. Returns false at the end. */
static bool send_more(struct connection *c, const char *page)
{
	bool in_head = c->sent < c->head_size;
	const char *from = in_head ? c->head + c->sent : page + (c->sent - c->head_size);
	size_t rest = c->head_size + (in_head ? 0 : c->body_size) - c->sent;
	ssize_t n = send(c->fd, from, rest, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += n;
	c->deadline = now_ns() + PATIENCE_NS;
	return c->sent < c->head_size + c->body_size;
}

static void drop(struct connection **connections, size_t *count, size_t i)
{
	close(connections[i]->fd);
	free(connections[i]);
	memmove(&connections[i], &connections[i + 1], (--*count - i) * sizeof(*connections));
}

int page_server_run(const struct page_server *s, int signals, const char *page, size_t size,
		    struct error *e)
{
	struct connection *connections[CONNECTIONS_MAX] = { NULL }; /* the oldest first */
	struct pollfd fds[CONNECTIONS_MAX + 2];
	size_t count = 0;
	int err = 0;

	while (!err) {
		int timeout = -1;

		fds[0] = (struct pollfd){ .fd = signals, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
		for (size_t i = 0; i < count; i++) {
			struct connection *c = connections[i];

			fds[i + 2] = (struct pollfd){ .fd = c->fd,
						      .events = c->head_size ? POLLOUT : POLLIN };
			timeout = 1000;
		}
		if (poll(fds, count + 2, timeout) < 0 && errno != EINTR)
			err = error_set(e, errno, "cannot wait for browsers");
		if (err || recording_signal_came(&signals))
			break;
		for (size_t i = count; i-- > 0;) {
			struct connection *c = connections[i];
			bool open = now_ns() < c->deadline;

			if (open && fds[i + 2].revents)
				open = c->head_size ? send_more(c, page) : receive(s, c, size);
			if (!open)
				drop(connections, &count, i);
		}
		if (fds[1].revents) {
			int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			struct connection *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

			/* Whoever connects and says nothing keeps no other away. */
			if (c && count == CONNECTIONS_MAX)
				drop(connections, &count, 0);
			if (c) {
				c->fd = fd;
				c->deadline = now_ns() + PATIENCE_NS;
				connections[count++] = c;
			} else if (fd >= 0) {
				close(fd);
			}
		}
	}
	while (count)
		drop(connections, &count, 0);
	return err;
}

void page_server_close(struct page_server *s)
{
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
}
