// SPDX-License-Identifier: GPL-2.0-only
#include "capture/privilege.h"

int privilege_error(struct error *e, int code, const char *what)
{
	error_set_kind(e, ERROR_NOT_PERMITTED, code, "%s", what);
	error_hint(e, "run it as root, or give the program the capabilities: "
		      "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog=ep PROGRAM");
	return -code;
}
