// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

/*
 * PostgreSQL exports what extensions may use, all its variables: also of a stripped file, in the
 * dynamic symbols. The text is that of the outermost statement that the backend runs; NULL between
 * two. Of a prepared statement it is that of its PREPARE, or of the message that had prepared it.
 * A database has no name in a variable of a fixed place: its number (OID) is in pg_database.
 */
const struct context_program context_postgresql = {
	.variables = {
		{ "debug_query_string", CONTEXT_LABEL_QUERY, CONTEXT_POINTER, CONTEXT_SQL },
		{ "application_name", CONTEXT_LABEL_APPLICATION, CONTEXT_POINTER, CONTEXT_PLAIN },
		{ "MyDatabaseId", CONTEXT_LABEL_DATABASE, CONTEXT_U32, CONTEXT_PLAIN },
	},
	.symbols = { "PostgresMain", "MyProcPid" },
};
