// SPDX-License-Identifier: GPL-2.0-only
#include "script/context.h"

/*
 * In struct Port of a connection (libpq/libpq-be.h): where the name of the database is; its user's
 * follows.
 */
static const struct {
	unsigned int version;
	unsigned short database;
} layouts[] = { { 15, 328 }, { 16, 328 }, { 17, 320 }, { 18, 384 } };

static void complete(struct elf_file *file, uint64_t size, struct context_variable *variables)
{
	unsigned short database = 0;
	unsigned int version[3];

	(void)size;
	if (context_version(file, "postgres (PostgreSQL) ", version))
		for (size_t i = sizeof(layouts) / sizeof(*layouts); i--;)
			if (version[0] == layouts[i].version)
				database = layouts[i].database;
	for (size_t i = 0; i < CONTEXT_VARIABLES; i++)
		if (variables[i].kind == CONTEXT_MEMBER) {
			variables[i].within =
				variables[i].label == CONTEXT_LABEL_ROLE ? database + 8 : database;
			if (!database)
				variables[i].kind = CONTEXT_NONE;
		}
}

/*
 * PostgreSQL exports what extensions may use, all its variables: also of a stripped file, in the
 * dynamic symbols. The text is that of the outermost statement that the backend runs; NULL between
 * two. Of a prepared statement it is that of its PREPARE, or of the message that had prepared it.
 * Backends with a client know their database and user by name, others, and those of a version that
 * is not known, the database's number (OID).
 */
const struct context_program context_postgresql = {
	.variables = {
		{ "MyProcPort", CONTEXT_LABEL_ROLE, CONTEXT_MEMBER, CONTEXT_PLAIN, 0, 0 },
		{ "MyProcPort", CONTEXT_LABEL_DATABASE, CONTEXT_MEMBER, CONTEXT_PLAIN, 0, 0 },
		{ "MyDatabaseId", CONTEXT_LABEL_DATABASE, CONTEXT_U32, CONTEXT_PLAIN, 0, 0 },
		{ "application_name", CONTEXT_LABEL_APPLICATION, CONTEXT_POINTER, CONTEXT_PLAIN, 0, 0 },
		{ "debug_query_string", CONTEXT_LABEL_QUERY, CONTEXT_POINTER, CONTEXT_SQL, 0, 0 },
	},
	/* Who has connected, and to what, is settled before the first statement. */
	.fixed = 3,
	.symbols = { "PostgresMain", "MyProcPid", "debug_query_string" },
	.complete = complete,
};
