// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of profild ends a thread while profild attaches to it, and a set-user-ID program gets
 * the thread's number. Replays that, as root:
 *
 *   profil_number PROFILD VICTIM   PROFILD is its PID, VICTIM this program with the set-user-ID
 * bit. Prints "OWN OTHER": the client's ticks in its own loop, and those in the loop that only
 * VICTIM ran
 *
 * PROFILD is stopped by ptrace(2) when it is about to open an event for the number, or, if it opens
 * none, when it sends the client its maps. The program also has these roles:
 *
 *   profil_number client
 *   profil_number victim
 */
#include "profil_loop.h"

#include <dlfcn.h>
#include <linux/sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* Where the victim's loop is; and behind that the client's, in a cell of its own. */
#define VICTIM_PC 0x10000000UL
#define CLIENT_PC (VICTIM_PC + 16)
#define USER	  65534

/* Before profild gives up, it tries for some time: held too long, it has found it over. */
#define ATTEMPTS 100

/* --- The roles --- */

static void await_byte(void)
{
	char byte;

	need(read(STDIN_FILENO, &byte, 1) == 1, "a byte");
}

static void *end_when_told(void *end)
{
	atomic_int *tid = end;
	char byte;

	*tid = gettid();
	while (read(STDIN_FILENO, &byte, 1) != 1)
		;
	return NULL;
}

/* counted: a cell in which it is to have a tick, or NULL */
static void run_loop(uintptr_t pc, const unsigned short *counted)
{
	struct loop loop;

	need(loop_make(&loop, pc), "the place of the loop");
	loop_start(&loop);
	loop_wait_counted(&loop, 200, counted);
	loop_stop(&loop);
	loop_unmap(&loop);
}

/* Its first thread waits in profil() while another reads from standard input, and ends. */
static int be_client(void)
{
	const char *(*reason)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "profil_error");
	static atomic_int tid;
	pthread_t thread;

	need(reason, "libprofil");
	need(pthread_create(&thread, NULL, end_when_told, &tid) == 0, "pthread_create");
	while (!tid)
		sched_yield();
	printf("%d\n", tid);
	fflush(stdout);
	if (profil(cells, sizeof(cells), VICTIM_PC, 0x10000))
		printf("%s\n", reason());
	else
		puts("on");
	fflush(stdout);
	pthread_join(thread, NULL);
	await_byte();
	run_loop(CLIENT_PC, &cells[(CLIENT_PC - VICTIM_PC) / 2]);
	profil_off();
	printf("%u %u\n", cells[(CLIENT_PC - VICTIM_PC) / 2], cells[0]);
	return 0;
}

static int be_victim(void)
{
	need(geteuid() != getuid(), "set-user-ID");
	puts("ready");
	fflush(stdout);
	await_byte();
	run_loop(VICTIM_PC, NULL);
	puts("done");
	return 0;
}

/* --- What they are made by --- */

struct role {
	pid_t pid;
	int in;	   /* to its standard input */
	FILE *out; /* from its standard output */
};

/* A child of this number, or 0: of any. */
static pid_t fork_as(pid_t number)
{
	const struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = number ? (uintptr_t)&number : 0,
		.set_tid_size = number != 0,
	};
	pid_t child;

	/* It is taken for a moment after its thread is out of sight. */
	do
		child = syscall(SYS_clone3, &args, sizeof(args));
	while (child < 0 && errno == EEXIST);
	need(child >= 0, "clone3");
	return child;
}

static struct role start_role(const char *program, const char *name, pid_t number)
{
	struct role role;
	int in[2], out[2];

	need(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe");
	role.pid = fork_as(number);
	if (role.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		need(setresgid(USER, USER, USER) == 0 && setresuid(USER, USER, USER) == 0,
		     "setresuid");
		execl(program, program, name, NULL);
		need(false, program);
	}
	close(in[0]);
	close(out[1]);
	role.in = in[1];
	role.out = fdopen(out[0], "r");
	return role;
}

static void tell_role(const struct role *role)
{
	need(write(role->in, "", 1) == 1, "a pipe");
}

static void hear(const struct role *role, char *line, size_t size)
{
	need(fgets(line, size, role->out) != NULL, "an answer");
	line[strcspn(line, "\n")] = '\0';
}

static void end_role(const struct role *role)
{
	kill(role->pid, SIGKILL);
	waitpid(role->pid, NULL, 0);
	close(role->in);
	fclose(role->out);
}

/* --- Holding profild --- */

/* Whether it is about to open an event on the number, or to send the maps: by sendmsg() alone. */
static bool is_there(pid_t profild, pid_t number)
{
	struct __ptrace_syscall_info info;

	need(ptrace(PTRACE_GET_SYSCALL_INFO, profild, sizeof(info), &info) > 0, "the system call");
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	if (info.entry.nr == SYS_perf_event_open)
		return (pid_t)info.entry.args[1] == number;
	return info.entry.nr == SYS_sendmsg;
}

static void hold(pid_t profild, pid_t number)
{
	int status, signal;

	do {
		need(waitpid(profild, &status, __WALL) == profild && WIFSTOPPED(status), "profild");
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && is_there(profild, number))
			return;
		/* Its own signals are passed on, stops of ptrace's are not. */
		signal = status >> 16 || WSTOPSIG(status) & 0x80 ? 0 : WSTOPSIG(status);
	} while (ptrace(PTRACE_SYSCALL, profild, 0, signal) == 0);
	need(false, "PTRACE_SYSCALL");
}

static struct role replace_thread(const struct role *client, pid_t number, const char *program)
{
	struct role victim;
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", client->pid, number);
	tell_role(client);
	while (access(path, F_OK) == 0)
		sched_yield();
	victim = start_role(program, "victim", number);
	hear(&victim, line, sizeof(line));
	return victim;
}

/* Prints what came of it and returns true, or says why profild did not count. */
static bool replay(pid_t profild, const char *program, char *line, size_t size)
{
	struct role client, victim;
	bool counts;
	pid_t number;

	need(ptrace(PTRACE_SEIZE, profild, 0, PTRACE_O_TRACESYSGOOD) == 0, "PTRACE_SEIZE");
	need(ptrace(PTRACE_INTERRUPT, profild, 0, 0) == 0, "PTRACE_INTERRUPT");
	client = start_role("/proc/self/exe", "client", 0);
	hear(&client, line, size);
	number = atoi(line);
	hold(profild, number);
	victim = replace_thread(&client, number, program);
	need(ptrace(PTRACE_DETACH, profild, 0, 0) == 0, "PTRACE_DETACH");
	hear(&client, line, size);
	counts = strcmp(line, "on") == 0;
	if (counts) {
		tell_role(&victim);
		hear(&victim, line, size);
		tell_role(&client);
		hear(&client, line, size);
		puts(line);
	}
	end_role(&victim);
	end_role(&client);
	return counts;
}

int main(int argc, char **argv)
{
	char line[512];

	if (argc == 2)
		return strcmp(argv[1], "client") == 0 ? be_client() : be_victim();
	need(argc == 3, "profil_number PROFILD VICTIM");
	for (int i = 0; i < ATTEMPTS; i++)
		if (replay(atoi(argv[1]), argv[2], line, sizeof(line)))
			return 0;
	printf("profild did not count: %s\n", line);
	return 1;
}
