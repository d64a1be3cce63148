# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios with PostgreSQL, in a guest whose root has it. Its socket is in /tmp.

as_postgres() {
	setpriv --reuid postgres --regid postgres --clear-groups /usr/lib/postgresql/*/bin/"$@"
}

# postgres DIRECTORY start|stop: pg_ctl waits until the file with its process id is gone, but as
# long as it has not ended, its file system is busy.
postgres() {
	as_postgres pg_ctl -D "$1" -l /tmp/postgres.log -sw -m fast "$2" ||
		{ cat /tmp/postgres.log; return 1; }
	[ "$2" = start ] || wait_for 5 not pgrep -u postgres
}

# make_database DIRECTORY: one for pgbench, in an empty directory that is postgres' own
make_database() {
	as_postgres initdb -D "$1" -A trust --no-sync || return
	printf "%s = '%s'\n" unix_socket_directories /tmp listen_addresses '' >>"$1/postgresql.conf"
	postgres "$1" start && as_postgres pgbench -h /tmp -qi postgres && postgres "$1" stop
}

# pgbench_run TRANSACTIONS [OPTION...]: by each of four clients
pgbench_run() {
	as_postgres pgbench -h /tmp -n -c 4 -t "$@" postgres
}

sql() {
	as_postgres psql -h /tmp -At postgres -c "$1"
}

# How many transactions of pgbench the database has
transactions() {
	sql "SELECT count(*) FROM pgbench_history"
}

# Each transaction of pgbench adds the same to an account, a teller and a branch.
balances() {
	local history table sums=
	history=$(sql "SELECT coalesce(sum(delta), 0) FROM pgbench_history") || return
	for table in accounts tellers branches; do
		sums+=" $(sql "SELECT sum(${table:0:1}balance) FROM pgbench_$table")"
	done
	is " $history $history $history" "$sums"
}

# Each index has each row, and no page is damaged.
sound() {
	as_postgres pg_amcheck -h /tmp --install-missing --heapallindexed postgres
}
