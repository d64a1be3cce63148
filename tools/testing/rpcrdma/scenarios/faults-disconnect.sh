# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   when either end keeps dropping the connection, no RPC is lost or executed twice
# guests:  um-7-debug/mem
# also:    um-debug/mem um-7-debug arm64-64k/rxe
# devices: rxe siw mem
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/faults.sh"

PATIENCE=$PATIENCE_RESENT

# sunrpc's own fault injection
INJECT=/sys/kernel/debug/fail_sunrpc

client() {
	local vers
	client_begin
	reclaim_watch
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		dropped_by client $vers
		dropped_by server $vers
		check "umount v$vers" umount /mnt
	done
	reclaim_end
}

# dropped_by END VERSION: I/O while an end drops the connection every 50th time
dropped_by() {
	local what="v$2, by the $1" before
	before=$(connections_made)
	need "$what: every 50th time" drop_by "$1"
	check "$what: each change is executed once" change_things /mnt/things
	check "$what: verified I/O" fio_verify --direct=1 --bsrange=4k-256k --numjobs=2
	check "$what: stop that" eval "echo 0 >$INJECT/probability"
	say "$what: $(($(connections_made) - before)) new connections"
	check "$what: connections were dropped" [ "$(connections_made)" -gt $((before + 1)) ]
}

# drop_by END: configure the fault injection.
drop_by() {
	local end ignore
	for end in client server; do
		ignore=Y
		[ "$end" != "$1" ] || ignore=N
		echo $ignore >$INJECT/ignore-$end-disconnect || return
	done
	echo Y >$INJECT/ignore-cache-wait &&
		echo 0 >$INJECT/verbose &&
		echo 50 >$INJECT/interval &&
		echo -1 >$INJECT/times &&
		echo 100 >$INJECT/probability
}

# Each of these operations fails if it is executed twice. With NFSv3 the server's duplicate
# request cache must recognise a Call that is repeated on another connection.
change_things() {
	perl -e '
		my $in = shift;
		mkdir $in or die "mkdir: $!";
		for (1 .. 60) {
			open my $file, ">", "$in/$_" or die "open: $!";
			close $file or die "close: $!";
			rename "$in/$_", "$in/to.$_" or die "rename: $!";
			link "$in/to.$_", "$in/link.$_" or die "link: $!";
			unlink "$in/to.$_" or die "unlink: $!";
			unlink "$in/link.$_" or die "unlink: $!";
		}
		rmdir $in or die "rmdir: $!"' "$1"
}
