// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/requirements.h"
#include "kmod/device.h"
#include "lib/protocol.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "tool/executable.h"
#include "tool/tool.h"
#include "util/file.h"
#include "util/number.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define OPTIONAL	"optional, for programs that call profil(2)"
#define DEBUGINFOD	"libdebuginfod.so.1" /* what libdw loads to ask servers */

struct check_options {
	pid_t pid; /* 0: none */
	bool json;
};

static int parse_pid(const char *value, void *member, struct error *e)
{
	uint64_t pid;

	if (number_parse(value, 1, INT32_MAX, &pid))
		return error_set(e, 0, "-p takes a process number, not \"%s\"", value);
	*(pid_t *)member = pid;
	return 0;
}

static const struct option_spec options[] = {
	{ "pid", 'p', "PID", "ask about this process, too", parse_pid,
	  offsetof(struct check_options, pid) },
	{ "json", 0, NULL, "print it as JSON", NULL, offsetof(struct check_options, json) },
	{ 0 },
};

/* --- What only some commands need --- */

static void check_objdump(struct requirements *r)
{
	struct requirement *q;
	char path[PATH_MAX];
	struct error ignored;

	if (!executable_find("objdump", path, &ignored)) {
		requirement_add(r, "objdump", REQUIREMENT_OK, "annotate can run it");
		return;
	}
	q = requirement_add(r, "objdump", REQUIREMENT_LIMITED,
			    "is not in PATH: annotate cannot show instructions");
	error_hint(&q->finding, "apt install binutils");
}

static void check_debug_files(struct requirements *r)
{
	if (access(DEBUG_DIRECTORY, F_OK) == 0)
		requirement_add(r, "debug files", REQUIREMENT_OK, DEBUG_DIRECTORY " is there");
	else
		requirement_add(r, "debug files", REQUIREMENT_ABSENT,
				"there is no " DEBUG_DIRECTORY
				": optional, for source lines and the names in stripped files");
}

static void check_debuginfod(struct requirements *r)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct requirement *q;
	void *library;

	if (!urls || !*urls) {
		requirement_add(r, "debuginfod", REQUIREMENT_ABSENT,
				"DEBUGINFOD_URLS is not set: optional, for --debuginfod");
		return;
	}
	library = dlopen(DEBUGINFOD, RTLD_LAZY);
	if (library) {
		dlclose(library);
		requirement_add(r, "debuginfod", REQUIREMENT_OK, "--debuginfod asks %s", urls);
		return;
	}
	q = requirement_add(r, "debuginfod", REQUIREMENT_LIMITED, "%s is not installed",
			    DEBUGINFOD);
	error_hint(&q->finding, "apt install libdebuginfod1");
}

/* Waits for profild's greeting (protocol.h). Returns 0 or a negative errno. */
static int ask_profild(const char *path, struct profild_reply *reply)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval timeout = { .tv_sec = 1 };
	int fd, err = 0;
	ssize_t size;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    (size = recv(fd, reply, sizeof(*reply), 0)) < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	else if (size != sizeof(*reply) || reply->version != PROFILD_VERSION)
		err = -EPROTO;
	close(fd);
	return err;
}

static void check_profild(struct requirements *r)
{
	const char *path = getenv("PROFIL_SOCKET") ?: PROFILD_SOCKET;
	struct profild_reply reply;
	struct requirement *q;
	int err = ask_profild(path, &reply);

	if (err == -ENOENT) {
		q = requirement_add(r, "profild", REQUIREMENT_ABSENT,
				    "is not running: optional, for programs of users without "
				    "privileges that call profil(2)");
		error_hint(&q->finding, "systemctl enable --now profild.socket");
	} else if (err) {
		q = requirement_add(r, "profild", REQUIREMENT_LIMITED, "%s: %s", path,
				    strerror(-err));
		error_hint(&q->finding, "systemctl restart profild.socket profild");
	} else if (reply.error) {
		reply.message[sizeof(reply.message) - 1] = '\0';
		requirement_add(r, "profild", REQUIREMENT_LIMITED, "refuses this process: %s",
				reply.message);
	} else {
		requirement_add(r, "profild", REQUIREMENT_OK, "answers at %s", path);
	}
}

/* --- The kernel module --- */

/* Whether depmod(8) knows the module. */
static bool is_installed(const char *release)
{
	char path[256], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	list = fopen(path, "re");
	if (!list)
		return false;
	while (!found && getline(&line, &size, list) > 0) {
		line[strcspn(line, ":")] = '\0'; /* what it depends on */
		found = strstr(line, "/profil.ko") != NULL;
	}
	free(line);
	fclose(list);
	return found;
}

static bool must_be_signed(const struct requirement_facts *f)
{
	char enforced[8] = "";

	file_read_line("/sys/module/module/parameters/sig_enforce", enforced, sizeof(enforced));
	return enforced[0] == 'Y' || strstr(f->lockdown, "[integrity]") ||
	       strstr(f->lockdown, "[confidentiality]");
}

static void check_absent_device(const struct requirement_facts *f, struct requirements *r)
{
	const char *rule = must_be_signed(f) ? "; this kernel takes it only if it is signed" : "";
	struct requirement *q;
	char disabled[8] = "";

	if (access("/sys/module/profil", F_OK) == 0) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				    "the kernel module is loaded, but its device is not in this "
				    "/dev, as in a container: " OPTIONAL);
		error_hint(&q->finding,
			   "outside of the container: run it with --device " PROFIL_DEVICE);
		return;
	}
	if (file_read_line("/proc/sys/kernel/modules_disabled", disabled, sizeof(disabled)) ==
	    -ENOENT) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"this kernel was built without modules: " OPTIONAL);
		return;
	}
	if (!is_installed(f->release)) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"the kernel module is not installed: " OPTIONAL "%s", rule);
		return;
	}
	q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
			    "the kernel module is installed, but not loaded: " OPTIONAL "%s", rule);
	if (disabled[0] == '1')
		error_hint(&q->finding, "boot with profil in /etc/modules-load.d: "
					"kernel.modules_disabled is 1 until then");
	else
		error_hint(&q->finding, "modprobe profil");
}

static void check_closed_device(int code, struct requirements *r)
{
	struct stat status = { 0 };
	struct requirement *q;
	struct group *group;

	stat(PROFIL_DEVICE, &status);
	group = getgrgid(status.st_gid);
	q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
			    "cannot be opened: %s: its mode is %04o, its group %s (%u)",
			    strerror(code), status.st_mode & 07777,
			    group ? group->gr_name : "unknown", status.st_gid);
	if (code == EPERM)
		error_hint(&q->finding,
			   "outside of the container: run it with --device " PROFIL_DEVICE);
	else if (code != EACCES)
		error_hint(&q->finding, "modprobe profil");
	else if (group && status.st_mode & 0040)
		error_hint(&q->finding, "as root: usermod -aG %s USER, who then logs in again",
			   group->gr_name);
	else
		error_hint(&q->finding, "as root: chmod 0666 " PROFIL_DEVICE);
}

static void check_device_answer(int fd, struct requirements *r)
{
	struct profil_device_query answer = { .size = sizeof(answer) };
	struct requirement *q;

	if (ioctl(fd, PROFIL_IOC_QUERY, &answer)) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
				    "does not answer as the kernel module does: %s",
				    strerror(errno));
		error_hint(&q->finding, "as root: rm " PROFIL_DEVICE " && modprobe profil");
	} else if (answer.version != PROFIL_DEVICE_VERSION) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_LIMITED,
				    "the kernel module speaks version %u, this program version %d",
				    answer.version, PROFIL_DEVICE_VERSION);
		error_hint(&q->finding, "modprobe -r profil && modprobe profil");
	} else {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_OK,
				"version %u of the kernel module: up to %u Hz, %u regions",
				answer.version, answer.max_hz, answer.max_regions);
	}
}

static void check_module(const struct requirement_facts *f, struct requirements *r)
{
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		check_device_answer(fd, r);
		close(fd);
	} else if (errno == ENOENT) {
		check_absent_device(f, r);
	} else {
		check_closed_device(errno, r);
	}
}

/* --- Output --- */

static const struct {
	const char *name, *color;
} states[] = {
	[REQUIREMENT_OK] = { "ok", "\033[32m" },
	[REQUIREMENT_LIMITED] = { "limited", "\033[33m" },
	[REQUIREMENT_NO] = { "no", "\033[31m" },
	[REQUIREMENT_ABSENT] = { "absent", "" },
};

#define STATE_WIDTH 7
#define NAME_WIDTH  13
#define INDENT	    (STATE_WIDTH + 2 + NAME_WIDTH + 2)
#define NARROW	    60 /* columns of a terminal */

/* The first one with the same hint. */
static const struct requirement *same_hint(const struct requirements *r,
					   const struct requirement *q)
{
	const struct requirement *first = r->list;

	while (strcmp(first->finding.hint, q->finding.hint) != 0)
		first++;
	return first;
}

static void print_requirement(const struct requirements *r, const struct requirement *q,
			      const struct report_table_options *o, FILE *out)
{
	bool color = o->color && *states[q->state].color;
	const struct requirement *first = same_hint(r, q);

	fprintf(out, "%s%-*s%s  %-*s  ", color ? states[q->state].color : "", STATE_WIDTH,
		states[q->state].name, color ? "\033[0m" : "", NAME_WIDTH, q->name);
	text_wrap(q->finding.what, INDENT, o->width < NARROW ? STATE_WIDTH + 2 : INDENT, o->width,
		  out);
	fputc('\n', out);
	if (!q->finding.hint[0])
		return;
	fprintf(out, "%*s-> ", STATE_WIDTH + 2, "");
	if (first != q)
		fprintf(out, "the same as for %s", first->name);
	else /* not wrapped, so that it can be copied */
		text_print(q->finding.hint, out);
	fputc('\n', out);
}

static struct json_object *requirement_json(const struct requirement *q)
{
	struct json_object *object = json_object_new_object();

	if (object && (json_add(object, "requirement", json_text(q->name)) ||
		       json_add(object, "state", json_text(states[q->state].name)) ||
		       json_add(object, "cause", json_text(q->finding.what)) ||
		       json_add(object, "hint", json_text(q->finding.hint)))) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

static int print_json(const struct requirements *r, struct error *e)
{
	struct json_object *list = json_object_new_array();
	const char *text = NULL;

	for (size_t i = 0; list && i < r->count; i++) {
		struct json_object *object = requirement_json(&r->list[i]);

		if (!object || json_object_array_add(list, object)) {
			json_object_put(object);
			json_object_put(list);
			return error_no_memory(e);
		}
	}
	if (list)
		text = json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
								    JSON_C_TO_STRING_SPACED |
								    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text) {
		json_print_text(text, stdout);
		putchar('\n');
	}
	json_object_put(list);
	return text ? 0 : error_no_memory(e);
}

/* --- The command --- */

static void check_others(const struct requirement_facts *f, struct requirements *r)
{
	check_objdump(r);
	check_debug_files(r);
	check_debuginfod(r);
	check_profild(r);
	check_module(f, r);
}

/* Returns an exit code: that of a recording. */
static int check(const struct check_options *o, struct requirements *r)
{
	struct requirement_facts facts;
	struct error e;
	int code = EXIT_DONE;

	requirements_gather(&facts);
	requirements_judge(&facts, r);
	if (requirements_try(&facts, r, &e))
		code = tool_exit_code(&e);
	if (o->pid && requirements_of_process(o->pid, &facts, r, &e) && code == EXIT_DONE)
		code = tool_exit_code(&e);
	check_others(&facts, r);
	return code;
}

static int run(int argc, char **argv)
{
	const struct tool_view view = { .limit = -1 };
	struct report_table_options table;
	struct check_options o = { 0 };
	struct requirements r = { 0 };
	struct error e;
	int first, code = tool_options(&check_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (first < argc) {
		error_set_kind(&e, ERROR_USAGE, 0, "check takes no argument \"%s\"", argv[first]);
		error_hint(&e, "profiltool check [-p PID]");
		return tool_fail(&e);
	}
	code = check(&o, &r);
	if (o.json)
		return print_json(&r, &e) ? tool_fail(&e) : code;
	table = tool_table_options(&view);
	for (size_t i = 0; i < r.count; i++)
		print_requirement(&r, &r.list[i], &table, stdout);
	return code;
}

const struct tool_command check_command = {
	.name = "check",
	.arguments = "[-p PID] [--json]",
	.help = "Checks what recording needs, and prints how to fix what is missing.",
	.options = options,
	.run = run,
};
