# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared variables: of lib.sh, and for scripts that source this
# A PostgreSQL server for a test, with its files and socket in $work, as a user without privileges. Source
# it after lib.sh.

pgdata=$work/postgres

# find_postgres: sets $postgres to the directory of initdb, postgres and pgbench: PGBINDIR, or that of the
# distribution, which is often not in PATH. Fails if there is none.
find_postgres() {
	for postgres in "${PGBINDIR:-}" "$(pg_config --bindir 2>/dev/null)" \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/bin; do
		[ -x "$postgres/initdb" ] && [ -x "$postgres/postgres" ] &&
			[ -x "$postgres/pgbench" ] && return
	done
	return 1
}

# make_postgres: creates the server's files, and sets $postmaster to the command that runs it.
make_postgres() {
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups env -C "$pgdata")

	chmod 711 "$work"
	install -d -o 65534 -g 65534 -m 700 "$pgdata"
	postmaster=("${as[@]}" "$postgres/postgres" -D "$pgdata/data" -c listen_addresses=
		-c unix_socket_directories="$pgdata" -c fsync=off -c autovacuum=off -c max_wal_size=4GB)
	"${as[@]}" "$postgres/initdb" -A trust -U test -N -D "$pgdata/data" >"$work/initdb.err" 2>&1
}

# pgbench OPTION...: runs pgbench on that server, in the database "postgres".
pgbench() {
	"$postgres/pgbench" -h "$pgdata" -U test "$@" postgres
}
