# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   programs of rdma-core that connect to the server do no harm, and it drops what they send
# guests:  um
# also:    um-7-debug debian-6.12
# devices: rxe siw
# turns:   the connections that are made
# modules: ours
# faults:  the programs are killed

. "${BASH_SOURCE%/*}/../guest/requester.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

client() {
	client_begin
	need "the tool" tool_up
	need "user space may use verbs" verbs_up
	# 16 octets: RFC 8166 section 4.5 has messages of less than 28 octets dropped silently.
	stranger 1 rping -c -a $SERVER4 -p $PORT -C 1
	# It waits for a message of the server.
	stranger 0 ucmatose -s $SERVER4 -p $PORT -C 10
}

# stranger MESSAGES PROGRAM...: it connects, and sends so many.
stranger() {
	local dropped pid
	dropped=$(counter dropped)
	"${@:2}" </dev/null >"/lab/out/$2.log" 2>&1 &
	pid=$!
	check "$2: it connects" wait_for 10 show_is 1 server length
	check "$2: a client mounts" nfs_mount 4.2 rdma /mnt
	check "$2: it writes and reads" other_client
	check "$2: it made one connection, and sent nothing again" steady
	check "$2: unmount" umount /mnt
	check "$2: $1 of the program's messages were dropped" is $((dropped + $1)) "$(counter dropped)"
	check "$2: no answer ended it" kill -9 $pid
	check "$2: no connection is left" wait_for 10 show_is 0 server length
}
