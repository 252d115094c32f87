// SPDX-License-Identifier: GPL-2.0-only
/* Units and containers by the paths of control groups, as the programs that make them name them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/cgroup_name.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const struct {
	const char *path, *unit, *container;
} groups[] = {
	{ "/", NULL, NULL },
	{ "", NULL, NULL },
	{ "/init.scope", "init.scope", NULL },
	{ "/system.slice/nginx.service", "nginx.service", NULL },
	{ "/system.slice/nginx.service/workers", "nginx.service", NULL },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", NULL },
	{ "/system.slice/_cpu.service", "cpu.service", NULL },
	{ "/user.slice/user-1000.slice/session-3.scope", "user-1000.slice/session-3.scope", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/gnome.service",
	  "user@1000.service/gnome.service", NULL },
	/* What a user names like a unit, a user or a container of others */
	{ "/user.slice/user-65534.slice/user@65534.service/app.slice/postgresql.service",
	  "user@65534.service/postgresql.service", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/user-0.slice/"
	  "user@0.service/system.slice/postgresql.service",
	  "user@1000.service/postgresql.service", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/system.slice/docker-" ID ".scope",
	  "user@1000.service/docker-" ID ".scope", "user-1000.slice/" ID },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	  ".scope/container/system.slice/x.service",
	  "user@1000.service/x.service", "user-1000.slice/" ID },
	{ "/user.slice/user-1000.slice/user@1000.service/lxc.payload.web", "user@1000.service",
	  "user-1000.slice/web" },
	{ "/user.slice/user-1000.slice/session-3.scope/postgresql.service",
	  "session-3.scope/postgresql.service", NULL },
	/* A service that was given its groups, and a container in another one */
	{ "/system.slice/runner.service/postgresql.service", "runner.service/postgresql.service",
	  NULL },
	{ "/docker/" ID "/docker/" ID2, NULL, ID "/" ID2 },
	{ "/system.slice/docker-" ID ".scope/system.slice/postgresql.service",
	  "docker-" ID ".scope/postgresql.service", ID },
	{ "/docker/" ID "/system.slice/postgresql.service", ID "/postgresql.service", ID },
	/* Docker with systemd, with control groups of its own, and Podman */
	{ "/system.slice/docker-" ID ".scope", "docker-" ID ".scope", ID },
	{ "/docker/" ID, NULL, ID },
	{ "/machine.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope", ID },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "libpod-conmon-" ID ".scope", NULL },
	/* Kubernetes */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
	  "cri-containerd-" ID ".scope",
	  "cri-containerd-" ID ".scope", ID },
	{ "/kubepods/besteffort/pod9f7f/" ID, NULL, ID },
	/* Containers with names; a service in one */
	{ "/lxc.payload.web/system.slice/x.service", "lxc.payload.web/x.service", "web" },
	{ "/lxc.payload.", NULL, NULL },
	{ "/machine.slice/machine-deb\\x2d12.scope", "machine-deb\\x2d12.scope", "deb\\x2d12" },
	{ "/machine.slice/systemd-nspawn@sid.service/payload", "systemd-nspawn@sid.service",
	  "sid" },
	/* Neither */
	{ "/docker/0123456789abcdef", NULL, NULL },
	{ "/x" ID, NULL, NULL },
	{ "/.service", NULL, NULL },
};

static void expect(const char *path, bool found, const char *name, const char *wanted)
{
	if (found != (wanted != NULL) || (found && strcmp(name, wanted) != 0))
		fail_msg("%s: \"%s\", not \"%s\"", path, found ? name : "none",
			 wanted ? wanted : "none");
}

static void find_names(void **state)
{
	char name[CGROUP_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		expect(groups[i].path, cgroup_unit(groups[i].path, name), name, groups[i].unit);
		expect(groups[i].path, cgroup_container(groups[i].path, name), name,
		       groups[i].container);
	}
}

static void cut_long_names(void **state)
{
	char path[600], name[CGROUP_NAME_SIZE];

	(void)state;
	memset(path, 'x', sizeof(path));
	strcpy(path + sizeof(path) - sizeof(".service"), ".service");
	assert_true(cgroup_unit(path, name));
	assert_int_equal(strlen(name), CGROUP_NAME_SIZE - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_names),
		cmocka_unit_test(cut_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
