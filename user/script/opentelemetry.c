// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

/*
 * Tracers and libraries that publish what a thread works for as OpenTelemetry has it (OTEP 4947):
 * a thread-local pointer of the program or of a library. capture/otel_process.h has what the
 * process says of itself.
 */
const struct context_program context_opentelemetry = {
	.variables = {
		{ "otel_thread_ctx_v1", CONTEXT_LABEL_ATTRIBUTES, CONTEXT_RECORD, CONTEXT_LITERAL, 0, 0 },
	},
};
