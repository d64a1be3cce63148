# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   postgres and git lose nothing when the server's kernel dies under them and boots again
# also:    um um-7
# devices: rxe
# ends:    2
# limit:   240
# memory:  2048
# root:    programs
# steps:   server/1 client/2 kill/1 server/1 survived/2 client_done/2 server_done/1
# faults:  the server's guest is killed
#
#   end 1: server                       end 2: client
#   +---------------------------+       +---------------------------+
#   | nfsd, rdma port 20049     |       | postgres, pgbench, git    |
#   | ext4 on /lab/out/disk,    |       | mount at /mnt             |
#   | which kill -9 leaves      |       |                           |
#   | rxe0                      |       | rxe0                      |
#   | 10.17.0.1, fd17::1        |       | 10.17.0.2, fd17::2        |
#   +---------------------------+       +---------------------------+

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/postgres.sh"

PATIENCE=
DISK=/lab/out/disk
# Transactions of each of pgbench's four clients, of which all have to be made
TRANSACTIONS=800

# What the server's memory had is gone at the second time, but not what it has promised to keep:
# files, and which clients it had.
server() {
	begin
	need "a disk" disk_up
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
}

disk_up() {
	[ -e $DISK ] || { truncate -s 1g $DISK && mkfs.ext4 -q $DISK; } || return
	mount -t tmpfs srv /srv && mkdir -p $LOCAL /var/lib/nfs && mount_file $DISK $LOCAL &&
		chmod 1777 $LOCAL && mkdir -p $LOCAL/.clients && rm -rf /var/lib/nfs/nfsdcld &&
		ln -s $LOCAL/.clients /var/lib/nfs/nfsdcld
}

client() {
	client_begin
	need "mount v4.2" nfs_mount 4.2 rdma /mnt
	need "a database" install_database
	need "start postgres" postgres /mnt/postgres start
	git config --global user.name lab && git config --global user.email lab@guest
	need "a repository" git init -q /mnt/git
	pgbench_run $TRANSACTIONS >/tmp/pgbench.log 2>&1 </dev/null &
	{ commit; echo $? >/tmp/commit.end; } >/tmp/commit.log 2>&1 </dev/null &
	need "postgres works" wait_for 30 more_than 200 transactions
	need "git works" wait_for 30 more_than 10 commits
	check "pgbench has not ended" [ "$(transactions)" -lt $((4 * TRANSACTIONS)) ]
}

install_database() {
	install -d -o postgres /mnt/postgres && make_database /mnt/postgres
}

# more_than NUMBER COMMAND
more_than() {
	[ "$("$2")" -gt "$1" ]
}

# A commit for each file, until /tmp/enough is there
commit() {
	local n
	cd /mnt/git && for ((n = 1; ; n++)); do
		[ ! -e /tmp/enough ] || return 0
		seq $n $((n + 5000)) >file.$n && git -c core.fsync=all add file.$n &&
			git -c core.fsync=all commit -qm $n && echo $n >/tmp/committed || return
	done
}

commits() {
	cat /tmp/committed
}

survived() {
	local before
	before=$(commits)
	check "postgres goes on" wait_for $RECOVERY more_than "$(transactions)" transactions
	check "git goes on" wait_for $RECOVERY more_than "$before" commits
	: >/tmp/enough
	check "git ends" wait_for $RECOVERY test -s /tmp/commit.end
	check "pgbench ends" wait_for 180 not pgrep -x pgbench
	check "it has made each transaction" grep \
		"processed: $((4 * TRANSACTIONS))/$((4 * TRANSACTIONS))\$" /tmp/pgbench.log
	check "each is there" is $((4 * TRANSACTIONS)) "$(transactions)"
	check "the amounts balance" balances
	check "stop postgres" postgres /mnt/postgres stop
	drop_caches
	need "start it, and read all from the server" postgres /mnt/postgres start
	check "the amounts balance, read from the server" balances
	check "tables and indexes are sound" sound
	check "stop postgres again" postgres /mnt/postgres stop
	check "git: no commit failed" is 0 "$(cat /tmp/commit.end /tmp/commit.log)"
	check "git: fsck" git -C /mnt/git fsck --full --strict
	check "git: each commit is there" [ "$(git -C /mnt/git rev-list --count HEAD)" -ge "$(commits)" ]
	check "git: no file has changed" is "" "$(git -C /mnt/git status --porcelain -uno)"
	check "git: the files are what was written" files_are_right
}

files_are_right() {
	local n
	for ((n = 1; n <= $(commits); n++)); do
		cmp <(seq $n $((n + 5000))) /mnt/git/file.$n || return
	done
}

server_done() {
	check "stop the NFS server" disk_down
	check "the file system is sound" e2fsck -fn $DISK
	rm $DISK
	server_end
}

disk_down() {
	rpc.nfsd 0 && exportfs -ua && exportfs -f && pkill -x nfsdcld &&
		wait_for 10 umount $LOCAL
}
