# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   git, rsync, sqlite, postgres, make and overlayfs find what they wrote; also with krb5i
# also:    um/rxe um-7/mem debian-6.12/rxe
# devices: rxe mem
# limit:   900
# memory:  3072
# root:    programs
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports

. "${BASH_SOURCE%/*}/../guest/krb5.sh"
. "${BASH_SOURCE%/*}/../guest/postgres.sh"

SEC=sys:krb5i
# Programs are killed. A Call also waits for the daemons, which make a context.
PATIENCE=$PATIENCE_RESENT
# What programs read: the headers of libc and of the kernel, in a repository of git
HEADERS=/tmp/headers
# Rows that each of two writers of sqlite inserts; transactions of each client of pgbench
ROWS=150 TRANSACTIONS=$((SLOW ? 50 : 150))

server() {
	server_begin
	kerberos_up postgres
	need "postgres logs in" log_in postgres
}

client() {
	local sec program
	client_begin
	need "headers in a repository" make_headers
	for sec in sys krb5i; do
		need "$sec: mount" nfs_mount 4.2 rdma /mnt sec=$sec
		need "$sec: v4.2 over rdma is what is mounted" mounted_as /mnt 4.2 rdma
		for program in git rsync sqlite postgres module overlayfs; do
			attempt use_$program "$sec: $program"
		done
		check "$sec: remove all" rm -r /mnt/*
		# nfsd may have closed a connection with krb5i, see known-failures.rst.
		[ $sec = krb5i ] || check "$sec: each Call was sent once" steady
		check "$sec: umount" umount /mnt
	done
}

make_headers() {
	git config --global user.name lab && git config --global user.email lab@guest &&
		cp -a /usr/include $HEADERS && git init -q $HEADERS && git -C $HEADERS add . &&
		git -C $HEADERS commit -qm headers
}

# has_headers DIRECTORY: read from the server
has_headers() {
	drop_caches
	diff -r --no-dereference --exclude=.git $HEADERS "$1"
}

use_git() {
	local git="git -C /mnt/git"
	need "$1: clone" git clone -q --no-local $HEADERS /mnt/git
	check "$1: the work tree is that of the origin" has_headers /mnt/git
	check "$1: change, commit, and go back" change_and_revert $git
	check "$1: gc" $git gc -q --prune=now
	drop_caches
	check "$1: fsck" $git fsck --full --strict
	check "$1: no file has changed" is "" "$($git status --porcelain)"
	check "$1: the work tree is that of the origin, still" has_headers /mnt/git
	check "$1: the server's files are a sound repository" git -C $LOCAL/git fsck --full --strict
}

change_and_revert() {
	echo >>/mnt/git/errno.h && "$@" mv stdio.h moved.h && "$@" commit -qam changed &&
		"$@" revert -n HEAD && "$@" commit -qm reverted
}

use_rsync() {
	local sync="rsync -a --delete --exclude=.git --no-whole-file"
	# NFS of 7.3 loses them: see known-failures.rst.
	[[ $(uname -r) != 7.* ]] || sync+=" --no-times"
	need "$1: copy" $sync $HEADERS/ /mnt/rsync
	drop_caches
	check "$1: all checksums are the same" is "" "$($sync -ci $HEADERS/ /mnt/rsync)"
	check "$1: change, lengthen and remove files" \
		eval "cd /mnt/rsync && echo more >>stdio.h && echo less >errno.h && rm -r linux"
	check "$1: put in order what differs, in place" $sync -c --inplace $HEADERS/ /mnt/rsync
	check "$1: the files are those of the source" has_headers /mnt/rsync
	check "$1: the server's are, too" has_headers $LOCAL/rsync
}

# A log that writers share by memory and locks (WAL), and a writer that is killed
use_sqlite() {
	local one two victim
	mkdir /mnt/sqlite
	need "$1: make a table, with WAL" is wal "$(lite "PRAGMA journal_mode=WAL;
		CREATE TABLE rows (writer INTEGER, number INTEGER PRIMARY KEY, text TEXT);")"
	insert 1 $ROWS & one=$!
	insert 2 $ROWS & two=$!
	insert 3 100000 2>/dev/null & victim=$!
	wait $one; check "$1: a writer has written" is 0 $?
	wait $two; check "$1: another has written" is 0 $?
	pkill -9 -P $victim sqlite3
	wait $victim 2>/dev/null
	check "$1: a third was killed" [ $? != 0 ]
	drop_caches
	check "$1: integrity_check" is ok "$(lite "PRAGMA integrity_check;")"
	check "$1: each row is there" is "$ROWS|$ROWS" "$(lite "SELECT sum(writer = 1), sum(writer = 2)
		FROM rows WHERE text = 'row ' || number;")"
	check "$1: the third's are without a gap" is 1 "$(lite "SELECT
		count(*) = coalesce(max(number) - 300000000, 0) FROM rows WHERE writer = 3;")"
	check "$1: the server's file is sound" is ok \
		"$(sqlite3 $LOCAL/sqlite/rows "PRAGMA integrity_check;")"
}

lite() {
	sqlite3 -cmd ".timeout 60000" /mnt/sqlite/rows "$@"
}

# insert WRITER COUNT: each row is a transaction.
insert() {
	awk -v writer="$1" -v count="$2" 'BEGIN { for (n = 1; n <= count; n++) {
		number = writer * 100000000 + n
		printf "INSERT INTO rows VALUES (%d, %d, '\''row %d'\'');\n", writer, number, number
	} }' >/tmp/insert.$1
	lite </tmp/insert.$1
}

use_postgres() {
	local before
	# Over the mount root cannot make it for another user with krb5i: no names are mapped.
	need "$1: a directory" install -d -o postgres $LOCAL/postgres
	need "$1: a database" make_database /mnt/postgres
	need "$1: start" postgres /mnt/postgres start
	check "$1: pgbench, four clients" pgbench_run $TRANSACTIONS
	check "$1: the amounts balance" balances
	before=$(transactions)
	check "$1: each transaction is there" is $((4 * TRANSACTIONS)) "$before"
	kill_postgres
	need "$1: start after kill -9" postgres /mnt/postgres start
	check "$1: the amounts balance after kill -9" balances
	check "$1: none that was acknowledged is lost" \
		[ "$(transactions)" -ge $((before + $(acknowledged))) ]
	check "$1: some were made before" [ "$(acknowledged)" -gt 0 ]
	check "$1: tables and indexes are sound" sound
	check "$1: stop" postgres /mnt/postgres stop
	drop_caches
	need "$1: start, and read all from the server" postgres /mnt/postgres start
	check "$1: the amounts balance, read from the server" balances
	check "$1: stop again" postgres /mnt/postgres stop
}

# pgbench logs each transaction that was acknowledged.
kill_postgres() {
	rm -f /tmp/acknowledged.*
	pgbench_run 100000 -l --log-prefix=/tmp/acknowledged >/tmp/pgbench.log 2>&1 &
	sleep "$(seconds 2)"
	pkill -9 -u postgres -x postgres
	wait $!
	wait_for 10 not pgrep -u postgres
}

acknowledged() {
	cat /tmp/acknowledged.* | wc -l
}

# The same compiler, paths and sources make the same module.
use_module() {
	if ! quick; then
		skip "$1: build" "takes long on this guest"
		return
	fi
	[ -e /tmp/module/$KO ] || need "module: build it without NFS" build_module /tmp/module
	need "$1: build" build_module /mnt/module
	drop_caches
	check "$1: it is the same as without NFS" cmp /tmp/module/$KO /mnt/module/$KO
	check "$1: the server has it" cmp /tmp/module/$KO $LOCAL/module/$KO
}

KO=net/sunrpc/xprtrdma/rpcrdma.ko

# build_module DIRECTORY: our module, for the kernel whose headers the root has
build_module() {
	local status
	mkdir -p "$1" /tmp/build && mount --bind "$1" /tmp/build && cp -r /lab/source/. /tmp/build &&
		make -C /tmp/build KDIR="$(echo /usr/src/linux-headers-*-amd64)" UNTESTED=1
	status=$?
	umount /tmp/build && return $status
}

# What has images of containers has their layers on NFS; the kernel refuses the one that is written.
use_overlayfs() {
	local all=/tmp/overlay/all layers=/mnt/layers
	mkdir -p /tmp/overlay/{upper,work,all} $layers/{top,upper,work}
	need "$1: a layer" rsync -a --exclude=.git $HEADERS/ $layers/base
	need "$1: another layer" eval "echo changed >$layers/top/errno.h"
	check "$1: none on NFS may be written to" refuses_upper \
		"lowerdir=$layers/base,upperdir=$layers/upper,workdir=$layers/work" $all
	need "$1: mount both" overlay_mount
	check "$1: the upper one is seen" is changed "$(cat $all/errno.h)"
	check "$1: and what is below" \
		eval "cd $HEADERS && cmp stdio.h $all/stdio.h && diff -r linux $all/linux"
	check "$1: write, rename and remove" eval \
		"cd $all && echo more >>stdio.h && mv stdlib.h moved.h && rm -r linux"
	need "$1: umount" umount $all
	drop_caches
	need "$1: mount again" overlay_mount
	check "$1: what was written is there" eval "cd $all &&
		cmp <(cat $HEADERS/stdio.h; echo more) stdio.h && cmp $HEADERS/stdlib.h moved.h"
	check "$1: what was removed is not" not ls $all/linux $all/stdlib.h
	check "$1: umount again" umount $all
	check "$1: the layer is as it was" has_headers $layers/base
	rm -r /tmp/overlay
}

overlay_mount() {
	mount -t overlay overlay $all -o \
		"lowerdir=$layers/top:$layers/base,upperdir=/tmp/overlay/upper,workdir=/tmp/overlay/work"
}

# refuses_upper OPTIONS DIRECTORY
refuses_upper() {
	not mount -t overlay overlay -o "$@" && dmesg | grep "upper fs missing required features"
}

server_done() {
	kerberos_down
	server_end
}
