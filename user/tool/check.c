// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/requirements.h"
#include "cli/capabilities.h"
#include "kmod/device.h"
#include "lib/protocol.h"
#include "report/json_writer.h"
#include "report/text.h"
#include "symbol/symbol.h"
#include "tool/executable.h"
#include "tool/service.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/number.h"

#define DEBUG_DIRECTORY	 "/usr/lib/debug"
#define DEBUGINFOD	 "libdebuginfod.so.1" /* what libdw loads to ask servers */
#define MODULES_DISABLED "/proc/sys/kernel/modules_disabled"
#define OPTIONAL	 "optional, for programs that call profil(2)"
#define USUAL_HZ	 100 /* what profil(3) asks for */

/* What profild is asked to record: at what no administrator forbids, for some ticks. */
#define SERVICE_HZ 99
/* Bound: pace. */
#define SERVICE_NS (NS_PER_S / 5)
#define TIMEOUT_S  10 /* as libprofil's: on a busy machine, the first reply takes seconds */
/* Bound: format. */
#define PARANOID_MAX 2 /* above it, Debian's kernels refuse perf events to all but root */

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

/* Receives one reply and checks its size and version. Returns 0 or a negative errno. */
static int receive_reply(int fd, uint32_t version, struct profild_reply *reply)
{
	ssize_t size = recv(fd, reply, sizeof(*reply), 0);

	if (size < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (size != sizeof(*reply) || reply->version != version)
		return -EPROTO;
	reply->message[sizeof(reply->message) - 1] = '\0';
	return 0;
}

/*
 * Connects to profild, waits for its greeting, and starts and ends a count of this process. Sets
 * *reply to the answer. Returns 0 or a negative errno.
 */
static int ask_profild(const char *path, struct profild_reply *reply)
{
	struct profild_request request = {
		.type = PROFILD_START,
		.frequency = USUAL_HZ,
		.range_count = 1,
		.cell_count = 1,
	};
	struct profil_range range = { 0 }; /* of one address, at which there is no code */
	struct iovec parts[] = { { &request, sizeof(request) }, { &range, sizeof(range) } };
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval timeout = { .tv_sec = TIMEOUT_S };
	struct profild_hello hello;
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		err = -errno;
	else
		err = receive_reply(fd, PROFILD_HELLO_VERSION, reply);
	if (!err && !reply->error) {
		memcpy(&hello, reply, sizeof(hello));
		request.version = profild_choose_version(&hello, PROFILD_OLDEST, PROFILD_NEWEST);
		err = request.version ? 0 : -EPROTO;
	}
	if (!err && !reply->error) {
		if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
			err = -errno;
		else
			err = receive_reply(fd, request.version, reply);
	}
	close(fd); /* ends the counting */
	return err;
}

/* Who counts for programs of this user that call profil(2). */
enum backend {
	BACKEND_LIBC,
	BACKEND_BPF,
	BACKEND_TICK, /* profild, by the scheduler's tick */
	BACKEND_DAEMON,
	BACKEND_KMOD,
};

static enum backend check_profild(const struct requirement_facts *f, struct requirements *r)
{
	const char *path = getenv("PROFIL_SOCKET") ?: PROFILD_SOCKET;
	struct profild_reply reply;
	struct requirement *q;
	int err = ask_profild(path, &reply);
	double hz;

	if (err == -ENOENT) {
		q = requirement_add(r, "profild", REQUIREMENT_ABSENT,
				    "is not running: optional, for programs of users without "
				    "privileges that call profil(2)");
		error_hint(&q->finding, "systemctl enable --now profild.socket");
		return BACKEND_LIBC;
	}
	if (err) {
		q = requirement_add(r, "profild", REQUIREMENT_LIMITED, "%s: %s", path,
				    strerror(-err));
		error_hint(&q->finding, "systemctl restart profild.socket profild");
		return BACKEND_LIBC;
	}
	if (reply.error) {
		requirement_add(r, "profild", REQUIREMENT_LIMITED, "refuses this process: %s",
				reply.message);
		return BACKEND_LIBC;
	}
	if (!reply.tick_ns) {
		requirement_add(r, "profild", REQUIREMENT_LIMITED, "%s: %s", path,
				strerror(EPROTO));
		return BACKEND_LIBC;
	}
	/* Its own clock is within a percent. */
	hz = (double)NS_PER_S / reply.tick_ns;
	if (hz > USUAL_HZ * 0.98 && hz < USUAL_HZ * 1.02) {
		requirement_add(r, "profild", REQUIREMENT_OK, "answers at %s", path);
		return BACKEND_DAEMON;
	}
	q = requirement_add(
		r, "profild", REQUIREMENT_LIMITED,
		"answers at %s, but counts by the scheduler's tick: at %.0f Hz, whatever "
		"rate a program requests",
		path, hz);
	if (f->paranoid > PARANOID_MAX)
		error_hint(&q->finding,
			   "as root: sysctl -w kernel.perf_event_paranoid=%d && "
			   "systemctl restart profild",
			   PARANOID_MAX);
	else
		error_hint(&q->finding, "see why: journalctl -u profild");
	return BACKEND_TICK;
}

static bool has_modules(void)
{
	return access(MODULES_DISABLED, F_OK) == 0;
}

/* True if depmod(8) knows the module. */
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
		line[strcspn(line, ":")] = '\0'; /* its dependencies */
		found = strstr(line, "/profil.ko") != NULL;
	}
	free(line);
	fclose(list);
	return found;
}

/* The device cannot be opened: says why, and how to fix it. */
static void explain_no_device(int code, const struct requirement_facts *f, struct requirements *r)
{
	char enforced[8] = "", disabled[8] = "";
	struct stat status = { 0 };
	struct requirement *q;
	struct group *group;
	const char *rule = "";

	if (code != ENOENT) {
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
			error_hint(&q->finding,
				   "as root: usermod -aG %s USER, who then logs in again",
				   group->gr_name);
		else
			error_hint(&q->finding, "as root: chmod 0666 " PROFIL_DEVICE);
		return;
	}
	if (access("/sys/module/profil", F_OK) == 0) {
		q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				    "the kernel module is loaded, but its device is not in this "
				    "/dev, as in a container: " OPTIONAL);
		error_hint(&q->finding,
			   "outside of the container: run it with --device " PROFIL_DEVICE);
		return;
	}
	if (!has_modules()) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"this kernel was built without modules: " OPTIONAL);
		return;
	}
	file_read_line("/sys/module/module/parameters/sig_enforce", enforced, sizeof(enforced));
	if (enforced[0] == 'Y' || strstr(f->lockdown, "[integrity]") ||
	    strstr(f->lockdown, "[confidentiality]"))
		rule = "; this kernel takes it only if it is signed";
	if (!is_installed(f->release)) {
		requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
				"the kernel module is not installed: " OPTIONAL "%s", rule);
		return;
	}
	q = requirement_add(r, PROFIL_DEVICE, REQUIREMENT_ABSENT,
			    "the kernel module is installed, but not loaded: " OPTIONAL "%s", rule);
	file_read_line(MODULES_DISABLED, disabled, sizeof(disabled));
	if (disabled[0] == '1')
		error_hint(&q->finding, "boot with profil in /etc/modules-load.d: "
					"kernel.modules_disabled is 1 until then");
	else
		error_hint(&q->finding, "modprobe profil");
}

/* Returns true if the device exists and belongs to the module version that libprofil uses. */
static bool check_module(const struct requirement_facts *f, struct requirements *r)
{
	struct profil_device_query answer = { .size = sizeof(answer) };
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	struct requirement *q;
	bool known = false;

	if (fd < 0) {
		explain_no_device(errno, f, r);
		return false;
	}
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
		known = true;
	}
	close(fd);
	return known;
}

static bool is_ambient(unsigned int capability)
{
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1;
}

static const struct {
	enum requirement_state state;
	const char *counts;
	const char *with_profild, *with_module; /* what would be better */
} backends[] = {
	[BACKEND_LIBC] = {
		REQUIREMENT_LIMITED,
		"the C library counts, at 100 Hz in a signal handler, and loses ticks of threads",
		"the kernel counts, in all threads and without a signal, at the rate that is requested "
		"(at the scheduler's where kernel.perf_event_paranoid is above 2)",
		"the kernel counts, in all threads and without a signal, at the rate that is requested, "
		"up to 10000 Hz; counts are exact at any moment",
	},
	[BACKEND_BPF] = {
		REQUIREMENT_OK,
		"each loads an eBPF program, and has a clock of its own",
		"programs have clocks in common, and begin some 50 ms sooner; those of users without "
		"privileges are counted, too",
		"programs have a timer in common, begin some 50 ms sooner, and their counts are exact at "
		"any moment; those of users without privileges are counted, too",
	},
	[BACKEND_TICK] = {
		REQUIREMENT_LIMITED,
		"profild counts, by the scheduler's tick",
		"the rate that a program requests, up to 10000 Hz",
		"the rate that a program requests, up to 10000 Hz, and counts that are exact at any moment",
	},
	[BACKEND_DAEMON] = {
		REQUIREMENT_OK,
		"profild counts",
		NULL,
		"counts that are exact at any moment, not up to 10 ms old, and no daemon",
	},
	[BACKEND_KMOD] = {
		REQUIREMENT_OK,
		"the kernel module counts",
		NULL,
		NULL,
	},
};

/*
 * Adds profild, the kernel module, and what counts for programs of this user that call profil(2);
 * where something is missing, what would be better with it.
 */
static void check_profil(const struct requirement_facts *f, struct requirements *r)
{
	struct requirement *profild = &r->list[r->count], *module;
	enum backend now = check_profild(f, r);
	/* Ambient capabilities, because programs do not inherit those of this program's file. */
	bool can_load_bpf = !f->bpf_code && f->btf &&
			    (geteuid() == 0 || (is_ambient(CAP_BPF) && is_ambient(CAP_PERFMON)));

	module = &r->list[r->count];
	if (check_module(f, r))
		now = BACKEND_KMOD;
	else if (now == BACKEND_LIBC && can_load_bpf)
		now = BACKEND_BPF;
	if (profild->state != REQUIREMENT_OK && f->btf && f->bpf_code != ENOSYS)
		profild->better = backends[now].with_profild;
	if (module->state != REQUIREMENT_OK && has_modules())
		module->better = backends[now].with_module;
	requirement_add(r, "profil(2)", backends[now].state, "for programs of this user, %s",
			backends[now].counts);
}

/*
 * Adds whether profild records this process for its user, who may not. Returns whether it does.
 */
static bool check_service(struct requirements *r)
{
	const pid_t self = getpid();
	const struct capture_options asked = {
		.pids = &self,
		.pid_count = 1,
		.frequency = SERVICE_HZ,
	};
	const char *path = service_path();
	struct profile *p = NULL;
	struct requirement *q;
	struct service s;
	struct error e;
	int err;

	if (!path) {
		q = requirement_add(r, "own processes", REQUIREMENT_ABSENT,
				    "no profild records them: optional, for users without "
				    "privileges");
		error_hint(&q->finding, "systemctl enable --now profil-record.socket");
		return false;
	}
	err = service_start(&s, path, &asked, 0, -1, &e);
	if (!err) {
		uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < SERVICE_NS)
			;
		err = service_take(&s, true, &p, &e);
		service_close(&s);
	}
	if (err) {
		q = requirement_add(r, "own processes", REQUIREMENT_LIMITED, "%s", e.what);
		error_hint(&q->finding, "%s", e.hint);
	} else {
		requirement_add(r, "own processes", REQUIREMENT_OK,
				"profild records them for this user: %" PRIu64
				" ticks of this process",
				p->totals.counted);
	}
	profile_free(p);
	return !err;
}

/* Adds what only some commands need: annotate, and those that resolve names. */
static void check_reading(struct requirements *r)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct requirement *q;
	char path[PATH_MAX];
	struct error ignored;
	void *library = urls && *urls ? dlopen(DEBUGINFOD, RTLD_LAZY) : NULL;

	if (executable_find("objdump", path, &ignored)) {
		q = requirement_add(r, "objdump", REQUIREMENT_LIMITED,
				    "is not in PATH: annotate cannot show instructions");
		error_hint(&q->finding, "apt install binutils");
	} else {
		requirement_add(r, "objdump", REQUIREMENT_OK, "annotate can run it");
	}

	if (access(DEBUG_DIRECTORY, F_OK) == 0)
		requirement_add(r, "debug files", REQUIREMENT_OK, DEBUG_DIRECTORY " is there");
	else
		requirement_add(r, "debug files", REQUIREMENT_ABSENT,
				"there is no " DEBUG_DIRECTORY
				": optional, for source lines and the names in stripped files");

	if (!urls || !*urls) {
		q = requirement_add(r, "debuginfod", REQUIREMENT_ABSENT,
				    "DEBUGINFOD_URLS is not set: optional, for --debuginfod");
		error_hint(&q->finding, SYMBOL_SERVER_HINT);
	} else if (library) {
		requirement_add(r, "debuginfod", REQUIREMENT_OK, "--debuginfod asks %s", urls);
	} else {
		q = requirement_add(r, "debuginfod", REQUIREMENT_LIMITED, "%s is not installed",
				    DEBUGINFOD);
		error_hint(&q->finding, "apt install libdebuginfod1");
	}
	if (library)
		dlclose(library);
}

static const struct {
	const char *name, *color;
} states[] = {
	[REQUIREMENT_OK] = { "ok", "\033[32m" },
	[REQUIREMENT_LIMITED] = { "limited", "\033[33m" },
	[REQUIREMENT_NO] = { "no", "\033[31m" },
	[REQUIREMENT_ABSENT] = { "absent", "" },
};

#define STATE_WIDTH   7
#define NAME_WIDTH    13
#define INDENT	      (STATE_WIDTH + 2 + NAME_WIDTH + 2)
#define NARROW	      60 /* columns of a terminal */
#define BETTER_INDENT (STATE_WIDTH + 2 + sizeof("+  better: ") - 1)

static int print_requirements_json(const struct requirements *r, struct error *e)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < r->count; i++) {
		const struct requirement *q = &r->list[i];
		struct json_object *object = json_object_new_object();

		json_add(&object, "requirement", json_text(q->name));
		json_add(&object, "state", json_text(states[q->state].name));
		json_add(&object, "cause", json_text(q->finding.what));
		json_add(&object, "hint", json_text(q->finding.hint));
		json_add(&object, "better", json_text(q->better ?: ""));
		json_append(&list, object);
	}
	if (json_print(list, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED, stdout))
		return error_no_memory(e);
	putchar('\n');
	return 0;
}

/* The last line, which stays on the screen: whether recording works, and what is not as it should.
 */
static void print_answer(const struct requirements *r, bool works)
{
	static const enum requirement_state worst[] = { REQUIREMENT_NO, REQUIREMENT_LIMITED };

	fputs(works ? "Recording works: profiltool -p PID" : "Recording does not work", stdout);
	for (size_t i = 0; i < 2; i++) {
		const char *gap = i ? "; limited: " : "; no: ";

		for (const struct requirement *q = r->list; q < r->list + r->count; q++)
			if (q->state == worst[i]) {
				printf("%s%s", gap, q->name);
				gap = ", ";
			}
	}
	putchar('\n');
}

/* The exit code is that of a recording. */
static int run_check(int argc, char **argv)
{
	const struct tool_view view = { .limit = -1 };
	struct report_table_options table;
	struct requirement_facts facts;
	struct check_options o = { 0 };
	struct requirements r = { 0 };
	struct error e;
	int first, code = tool_options(&check_command, &o, argc, argv, false, &first);

	if (code >= 0)
		return code;
	if (first < argc)
		return tool_misuse("profiltool check [-p PID]", "check takes no argument \"%s\"",
				   argv[first]);
	code = EXIT_DONE;
	capabilities_raise();
	requirements_gather(&facts);
	requirements_judge(&facts, &r);
	if (requirements_try(&facts, &r, &e))
		code = tool_exit_code(&e);
	if (o.pid && requirements_of_process(o.pid, &facts, &r, &e) && code == EXIT_DONE)
		code = tool_exit_code(&e);
	capabilities_lower();
	if (!capabilities_can_record() && check_service(&r) && !o.pid)
		code = EXIT_DONE;
	check_reading(&r);
	check_profil(&facts, &r);
	if (o.json)
		return print_requirements_json(&r, &e) ? tool_fail(&e) : code;
	table = tool_table_options(&view);
	for (const struct requirement *q = r.list, *same; q < r.list + r.count; q++) {
		bool color = table.color && *states[q->state].color;

		printf("%s%-*s%s  %-*s  ", color ? states[q->state].color : "", STATE_WIDTH,
		       states[q->state].name, color ? "\033[0m" : "", NAME_WIDTH, q->name);
		text_wrap(q->finding.what, INDENT, table.width < NARROW ? STATE_WIDTH + 2 : INDENT,
			  table.width, stdout);
		putchar('\n');
		if (q->finding.hint[0]) {
			same = r.list; /* the first one with this hint */
			while (strcmp(same->finding.hint, q->finding.hint) != 0)
				same++;
			printf("%*s-> ", STATE_WIDTH + 2, "");
			if (same != q)
				printf("the same as for %s", same->name);
			else /* not wrapped, so that it can be copied */
				text_print(q->finding.hint, stdout);
			putchar('\n');
		}
		if (q->better) {
			printf("%*s+  better: ", STATE_WIDTH + 2, "");
			text_wrap(q->better, BETTER_INDENT, BETTER_INDENT, table.width, stdout);
			putchar('\n');
		}
	}
	print_answer(&r, code == EXIT_DONE);
	return code;
}

const struct tool_command check_command = {
	.name = "check",
	.records = true,
	.arguments = "[-p PID] [--json]",
	.help = "Checks what recording needs, and prints how to fix what is missing.",
	.purpose = TOOL_CHECK,
	.summary = "what recording needs, and how to fix what is missing",
	.options = options,
	.run = run_check,
};
