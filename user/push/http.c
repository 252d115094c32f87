// SPDX-License-Identifier: GPL-2.0-only
#include "push/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/file.h"

/*
 * Bound: machine: time for a server to accept, and to answer; then: the attempt fails; again: at
 * the next attempt; share: none; seen: push_retried.
 */
#define CONNECT_MS 5000L
#define TIMEOUT_MS 30000L
/* Bound: caller: bytes of a tenant, and of a token; then: the option is refused. */
#define TENANT_MAX 150
/* Bound: as TENANT_MAX. */
#define TOKEN_MAX 8192

/* http_reply.problem: libcurl's errors are below those of errno. */
#define PROBLEM_CURL (-1000)

struct http {
	const struct push_options *options;
	CURL *curl;
	struct curl_slist *headers;
	char *url;
	bool token_in_clear; /* http:// with a token: connects to loopback addresses only */
	/* Bound: state. */
	bool refused_address; /* the last request would have sent the token to another address */
	/* Bound: state. */
	bool reported_exposed; /* that other users may read the token */
	char message[CURL_ERROR_SIZE];
};

/*
 * libcurl, loaded when the first one is made: a profild that sends nothing does without it and the
 * 35 libraries that it uses. It stays loaded.
 */
#define FUNCTIONS(FUNCTION)      \
	FUNCTION(global_init)    \
	FUNCTION(easy_init)      \
	FUNCTION(easy_cleanup)   \
	FUNCTION(easy_setopt)    \
	FUNCTION(easy_getinfo)   \
	FUNCTION(easy_perform)   \
	FUNCTION(easy_strerror)  \
	FUNCTION(slist_append)   \
	FUNCTION(slist_free_all) \
	FUNCTION(url)            \
	FUNCTION(url_set)        \
	FUNCTION(url_get)        \
	FUNCTION(url_cleanup)    \
	FUNCTION(free)

static struct library {
#define MEMBER(name) __typeof__ (&curl_##name)(name);
	FUNCTIONS(MEMBER)
} lib;

static int load_library(struct error *e)
{
	const struct {
		const char *name;
		void *function;
	} functions[] = {
#define ADDRESS(name) { "curl_" #name, &lib.name },
		FUNCTIONS(ADDRESS)
	};
	void *handle;

	if (lib.global_init)
		return 0;
	/* Debian has it with OpenSSL and with GnuTLS; either will do. */
	handle = dlopen("libcurl.so.4", RTLD_NOW) ?: dlopen("libcurl-gnutls.so.4", RTLD_NOW);
	for (size_t i = sizeof(functions) / sizeof(*functions); handle && i-- > 0;) {
		void *symbol = dlsym(handle, functions[i].name);

		if (!symbol)
			return error_set(e, 0, "cannot push: %s", dlerror());
		memcpy(functions[i].function, &symbol, sizeof(symbol));
	}
	if (handle) {
		if (lib.global_init(CURL_GLOBAL_DEFAULT))
			return error_set(e, ENOMEM, "cannot initialize libcurl");
		return 0;
	}
	error_set(e, 0, "cannot push: %s", dlerror());
	error_hint(e, "install libcurl4 (Debian 12), libcurl4t64 (Debian 13), libcurl (Fedora)");
	return -ENOENT;
}

static int bad_url(const char *url, struct error *e, const char *why)
{
	error_set_kind(e, ERROR_USAGE, 0, "cannot push to %s: %s", url, why);
	error_hint(e, "an example: https://collector.example:4318");
	return -EINVAL;
}

/* Returns a part of the URL; empty: it has none. The caller frees it with curl_free(). */
static char *url_part(CURLU *parsed, CURLUPart part)
{
	char *text = NULL;

	return lib.url_get(parsed, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool has_part(CURLU *parsed, CURLUPart part)
{
	char *text = url_part(parsed, part);

	lib.free(text);
	return text;
}

/*
 * True for 127.0.0.0/8, also as an IPv6 address, and ::1. The names of hosts say nothing: their
 * owners choose the addresses.
 */
static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

	if (address->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (address->sa_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(v6) ||
	       (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET);
}

/*
 * Finds wrong options at the start. The name can have another address later, so open_socket()
 * checks each address again.
 */
static int check_host_of_token(const char *url, const char *host, struct error *e)
{
	const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL, *i;
	char name[NI_MAXHOST] = "", reason[NI_MAXHOST + 64];
	int code;

	snprintf(name, sizeof(name), "%s", host + (*host == '['));
	name[strcspn(name, "]")] = '\0';
	code = getaddrinfo(name, NULL, &wanted, &found);
	if (code) {
		snprintf(reason, sizeof(reason),
			 "a token is sent by https:// only, or to this machine: %.200s: %s", name,
			 gai_strerror(code));
		return bad_url(url, e, reason);
	}
	for (i = found; i && is_loopback(i->ai_addr); i = i->ai_next)
		;
	if (i) {
		char address[NI_MAXHOST] = "";

		getnameinfo(i->ai_addr, i->ai_addrlen, address, sizeof(address), NULL, 0,
			    NI_NUMERICHOST);
		snprintf(reason, sizeof(reason),
			 "a token is sent by https:// only, or to this machine, and %.200s "
			 "is no loopback address",
			 address);
	}
	freeaddrinfo(found);
	return i ? bad_url(url, e, reason) : 0;
}

static int check_url(const struct push_options *o, struct error *e)
{
	char *scheme = NULL, *host = NULL;
	CURLU *parsed = lib.url();
	bool http, https;
	CURLUcode code;
	int err = 0;

	if (!parsed)
		return error_no_memory(e);
	code = lib.url_set(parsed, CURLUPART_URL, o->url, CURLU_NON_SUPPORT_SCHEME);
	if (code != CURLUE_OK) {
		if (code == CURLUE_OUT_OF_MEMORY)
			err = error_no_memory(e);
		else
			err = bad_url(o->url, e, "it is not a valid URL");
		goto out;
	}
	scheme = url_part(parsed, CURLUPART_SCHEME);
	host = url_part(parsed, CURLUPART_HOST);
	http = scheme && strcmp(scheme, "http") == 0;
	https = scheme && strcmp(scheme, "https") == 0;
	if (!http && !https) {
		err = bad_url(o->url, e, "only http:// and https:// are supported");
	} else if (has_part(parsed, CURLUPART_USER) || has_part(parsed, CURLUPART_PASSWORD)) {
		err = bad_url(o->url, e, "a URL with a password would be visible to all users");
	} else if (has_part(parsed, CURLUPART_QUERY) || has_part(parsed, CURLUPART_FRAGMENT)) {
		err = bad_url(o->url, e, "it has a query or fragment");
	} else if (http && o->token_file) {
		err = check_host_of_token(o->url, host ?: "", e);
	}
	if (!err && http && (o->ca || o->certificate))
		err = bad_url(o->url, e, "certificates are for https:// only");
out:
	lib.free(scheme);
	lib.free(host);
	lib.url_cleanup(parsed);
	return err;
}

/* Accepts the IDs that Grafana's servers accept; none ends the header's line. */
static int check_tenant(const char *tenant, struct error *e)
{
	static const char marks[] = "!-_.*'()";
	size_t size = 0;

	while (tenant && tenant[size] &&
	       (isalnum((unsigned char)tenant[size]) || strchr(marks, tenant[size])))
		size++;
	if (!tenant || (size && size <= TENANT_MAX && !tenant[size]))
		return 0;
	return error_set_kind(
		e, ERROR_USAGE, 0,
		"a tenant is up to %d letters, digits and characters of %s, not \"%s\"", TENANT_MAX,
		marks, tenant);
}

/*
 * Reads a bearer token (RFC 6750) from a file, which may end with newlines. *exposed: whether other
 * users may read the file. Returns 0 or -errno with e set.
 */
static int read_token(const char *path, char token[static TOKEN_MAX + 1], bool *exposed,
		      struct error *e)
{
	struct stat status;
	int fd = file_open_regular(-1, path, &status);
	ssize_t size;

	if (fd < 0)
		return error_set(e, -fd, "cannot read the token file %s", path);
	size = read(fd, token, TOKEN_MAX + 1);
	close(fd);
	if (size < 0)
		return error_set(e, errno, "cannot read the token file %s", path);
	if (size > TOKEN_MAX)
		return error_set(e, EFBIG, "the token file %s has more than %d bytes", path,
				 TOKEN_MAX);
	while (size && (token[size - 1] == '\n' || token[size - 1] == '\r'))
		size--;
	token[size] = '\0';
	*exposed = status.st_mode & S_IROTH;
	if (memchr(token, '\0', size))
		return error_set(e, EINVAL, "the token file %s has a NUL", path);
	if (!size) {
		error_set(e, 0, "the token file %s is empty", path);
		return -EINVAL;
	}
	for (const char *c = token; *c; c++) {
		if (*c > ' ' && *c <= '~')
			continue;
		error_set(e, 0, "the token file %s has a character that no token has, at byte %zu",
			  path, (size_t)(c - token) + 1);
		error_hint(e, "it holds only the token: printable ASCII characters, in one line");
		return -EINVAL;
	}
	return 0;
}

static int check_file(const char *path, const char *what, struct error *e)
{
	if (!path || access(path, R_OK) == 0)
		return 0;
	return error_set_kind(e, ERROR_USAGE, errno, "cannot read the %s %s", what, path);
}

static int check_files(const struct push_options *o, struct error *e)
{
	char token[TOKEN_MAX + 1];
	bool exposed;
	int err = check_file(o->ca, "file of certificates", e);

	err = err ?: check_file(o->certificate, "certificate", e);
	err = err ?: check_file(o->key, "key", e);
	if (!err && !o->certificate != !o->key) {
		error_set_kind(e, ERROR_USAGE, 0,
			       "a client's certificate and its key belong together");
		error_hint(e, "give both; they may be in one file");
		return -EINVAL;
	}
	if (!err && o->token_file)
		err = read_token(o->token_file, token, &exposed, e);
	explicit_bzero(token, sizeof(token));
	return err;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http_reply *r = context;
	size_t room = sizeof(r->body) - r->size, taken = size * count;

	if (taken > room) {
		r->too_long = true;
		taken = room;
	}
	memcpy(r->body + r->size, bytes, taken);
	r->size += taken;
	/* Less than all ends the transfer. */
	return taken;
}

static int take_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
			 curl_off_t up)
{
	const struct push_options *o = context;

	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return o->stopped && o->stopped(o->context);
}

/* All connections begin here, after the host's name was resolved and before anything is sent. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http *h = context;

	(void)purpose;
	if (!is_loopback(&address->addr)) {
		h->refused_address = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Sets the options that all requests have. */
static CURLcode set_options(struct http *h)
{
	const struct push_options *o = h->options;
	long timeout_ms = o->timeout_ms ? (long)o->timeout_ms : TIMEOUT_MS;
	CURLcode code = CURLE_OK;

#define SET(option, value) (code = code ?: lib.easy_setopt(h->curl, option, value))
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, MIN(timeout_ms, CONNECT_MS));
	SET(CURLOPT_TIMEOUT_MS, timeout_ms);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A resolver that hangs does not delay the end of the request. */
	SET(CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (o->ca) {
		SET(CURLOPT_CAINFO, o->ca);
		SET(CURLOPT_CAPATH, (char *)NULL);
	}
	if (o->certificate) {
		SET(CURLOPT_SSLCERT, o->certificate);
		SET(CURLOPT_SSLKEY, o->key);
	}
	SET(CURLOPT_HTTPHEADER, h->headers);
	if (o->token_file)
		SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	SET(CURLOPT_URL, h->url);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, "profild/" PROFIL_VERSION);
	SET(CURLOPT_ERRORBUFFER, h->message);
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_XFERINFOFUNCTION, take_progress);
	SET(CURLOPT_XFERINFODATA, (void *)o);
	SET(CURLOPT_NOPROGRESS, 0L);
	if (h->token_in_clear) {
		/* No proxy, whatever the environment says: it would read the token. */
		SET(CURLOPT_PROXY, "");
		SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
		SET(CURLOPT_OPENSOCKETDATA, h);
	}
#undef SET
	return code;
}

static bool add_headers(struct http *h, const struct push_protocol *protocol)
{
	char type[128], tenant[TENANT_MAX + 32];
	/* Empty: libcurl does not wait for a 100 before it sends large bodies. */
	const char *const headers[] = { "Expect:", type, protocol->header,
					h->options->tenant ? tenant : NULL };

	snprintf(type, sizeof(type), "Content-Type: %s", protocol->content_type);
	snprintf(tenant, sizeof(tenant), "X-Scope-OrgID: %s", h->options->tenant ?: "");
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		struct curl_slist *longer = h->headers;

		if (headers[i])
			longer = lib.slist_append(h->headers, headers[i]);
		if (!longer)
			return false;
		h->headers = longer;
	}
	return true;
}

int http_new(const struct push_options *options, const struct push_protocol *protocol,
	     struct http **result, struct error *e)
{
	const char *last = strrchr(protocol->path, '/');
	int size = strlen(options->url), length = strlen(last), err = load_library(e);
	bool is_exact; /* the URL has the last part of the protocol's path, and so all of a path */
	struct http *h;
	CURLcode code;

	*result = NULL;
	err = err ?: check_url(options, e);
	err = err ?: check_tenant(options->tenant, e);
	err = err ?: check_files(options, e);
	if (err)
		return err;
	h = calloc(1, sizeof(*h));
	if (!h)
		return error_no_memory(e);
	h->options = options;
	h->curl = lib.easy_init();
	while (size && options->url[size - 1] == '/')
		size--;
	is_exact = size >= length && memcmp(options->url + size - length, last, length) == 0;
	if (asprintf(&h->url, "%.*s%s", size, options->url, is_exact ? "" : protocol->path) < 0)
		h->url = NULL;
	h->token_in_clear = options->token_file && strncasecmp(options->url, "https:", 6) != 0;
	if (!h->curl || !h->url || !add_headers(h, protocol)) {
		http_free(h);
		return error_no_memory(e);
	}
	code = set_options(h);
	if (code) {
		err = error_set(e, EINVAL, "libcurl cannot push to %s: %s", h->url,
				lib.easy_strerror(code));
		http_free(h);
		return err;
	}
	*result = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	lib.easy_cleanup(h->curl);
	lib.slist_free_all(h->headers);
	free(h->url);
	free(h);
}

const char *http_url(const struct http *h)
{
	return h->url;
}

/* The token is read for each request, because others replace it before it expires. */
static int set_token(struct http *h, struct error *e)
{
	char token[TOKEN_MAX + 1];
	bool exposed = false;
	int err = read_token(h->options->token_file, token, &exposed, e);

	if (!err && lib.easy_setopt(h->curl, CURLOPT_XOAUTH2_BEARER, token))
		err = error_no_memory(e);
	explicit_bzero(token, sizeof(token));
	if (exposed && !h->reported_exposed) {
		struct error exposed_e;

		h->reported_exposed = true;
		error_set(&exposed_e, 0, "all users may read the token file %s",
			  h->options->token_file);
		error_hint(&exposed_e, "chmod o= %s", h->options->token_file);
		h->options->report(PUSH_PROBLEM, &exposed_e, h->options->context);
	}
	return err;
}

/* Sets e to the reason for which a request failed. Returns -errno. */
static int set_curl_error(const struct http *h, CURLcode code, struct error *e)
{
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return error_set(e, ECANCELED, "cannot push to %s", h->url);
	if (h->refused_address && code == CURLE_COULDNT_CONNECT) {
		error_set(e, 0,
			  "cannot push to %s: its host is not this machine now, and a token is "
			  "sent by https:// only",
			  h->url);
		error_hint(e, "give an https:// URL, or an address such as http://127.0.0.1:4318");
		return -EIO;
	}
	error_set(e, 0, "cannot push to %s: %s", h->url,
		  *h->message ? h->message : lib.easy_strerror(code));
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		error_hint(e, "--push-ca has the certificates to trust instead of the system's");
	return code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

int http_post(struct http *h, const struct message_bytes *body, struct http_reply *reply,
	      struct error *e)
{
	const char *type = NULL, *location = NULL;
	curl_off_t retry_after = 0;
	CURLcode code;

	reply->problem = h->options->token_file ? set_token(h, e) : 0;
	if (reply->problem)
		return reply->problem;
	*h->message = '\0';
	h->refused_address = false;
	reply->status = 0;
	reply->size = 0;
	reply->too_long = false;
	code = lib.easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
	code = code ?: lib.easy_setopt(h->curl, CURLOPT_POSTFIELDS, body->at);
	code = code ?: lib.easy_setopt(h->curl, CURLOPT_WRITEDATA, reply);
	code = code ?: lib.easy_perform(h->curl);
	lib.easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &reply->status);
	lib.easy_getinfo(h->curl, CURLINFO_CONTENT_TYPE, &type);
	lib.easy_getinfo(h->curl, CURLINFO_REDIRECT_URL, &location);
	lib.easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &retry_after);
	snprintf(reply->type, sizeof(reply->type), "%.*s", type ? (int)strcspn(type, "; \t") : 0,
		 type ?: "");
	for (char *c = reply->type; *c; c++)
		*c = tolower((unsigned char)*c);
	snprintf(reply->location, sizeof(reply->location), "%s", location ?: "");
	reply->retry_after_s = MAX(retry_after, 0);
	reply->problem = PROBLEM_CURL - (int)code;
	return code && !reply->too_long ? set_curl_error(h, code, e) : 0;
}
