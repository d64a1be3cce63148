# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   programs of rdma-core that speak another protocol come to an end, and disturb nobody
# also:    um/rxe um-7-debug/rxe debian-6.12
# devices: rxe
# modules: ours
# faults:  the server closes connections with what is no message

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

client() {
	client_begin
	need "verbs for user space" verbs_up
	need "mount" nfs_mount 4.2 rdma /mnt
	# They exchange another header than RPC-over-RDMA's.
	survives "rping fails" not ends rping -c -a $SERVER4 -p $PORT -C 1 -v
	check "it has ended by itself" not timed_out
	# It counts a flushed Receive as an answer, and may say that all is well.
	survives "ucmatose ends" eval "ends ucmatose -s $SERVER4 -p $PORT -C 2 -S 200; not timed_out"
	survives "ucmatose ends that sends what is too long" \
		eval "ends ucmatose -s $SERVER4 -p $PORT -C 2 -S 65536; not timed_out"
	check "the mount has not connected again" is 1 "$(connections_made)"
	check "no end of their connections is left" wait_for 40 two_ends
	check "umount" umount /mnt
}

# ends PROGRAM...: run it for a while.
ends() {
	local status
	timeout -k 1 "$(seconds 30)" "$@" </dev/null
	status=$?
	echo $status >/tmp/status
	return $status
}

timed_out() {
	grep -x '124\|137' /tmp/status
}

# Whether nobody but the mount has connected queue pairs
two_ends() {
	is 2 "$(rdma resource show qp | grep -c "type RC")"
}
