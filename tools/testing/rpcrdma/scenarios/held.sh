# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   mountstats counts what waits for Sends while the client's device completes none
# guests:  um
# also:    um-7-debug
# devices: mem
# modules: ours
# steps:   held

. "${BASH_SOURCE%/*}/../guest/mem.sh"

held() {
	pair_begin
	need "mount" nfs_mount 3 rdma /mnt noac
	need "a file" cp /tmp/data /mnt/data
	reply_first
	no_send
	check "umount" unmount /mnt
	pair_end
}

# number FIELD: of the connection in mountstats, numbered as in the administrator guide
number() {
	awk -v field="$1" '$1 == "xprt:" && $2 == "rdma" { print $(field + 2) }' /proc/self/mountstats
}

grown_beyond() {
	[ "$(number "$1")" -gt "$2" ]
}

# The device still gathers the pages of a WRITE that goes inline, as far as the client knows. So
# the Reply has to wait.
reply_first() {
	local before writer
	before=$(number 27)
	need "the device completes no Send" fault mem1 send 1 hold
	dd if=/tmp/data of=/mnt/data bs=8k count=1 oflag=direct conv=notrunc,nocreat status=none &
	writer=$!
	check "a Reply waits for the end of its Call's Send: number 27" \
		wait_for 10 grown_beyond 27 "$before"
	sleep 0.5
	check "the WRITE is not over before that" kill -0 $writer
	check "one Reply waits, and no more" is $((before + 1)) "$(number 27)"
	check "let go of the Sends" release mem1
	wait $writer
	check "then the WRITE succeeds" is 0 $?
}

# What is copied into a Send does not wait for it, until there are no more Sends.
no_send() {
	local before asker
	before=$(number 26)
	need "the device completes no Send again" fault mem1 send 1 hold
	ask &
	asker=$!
	check "no Send is free: number 26" wait_for 20 grown_beyond 26 "$before"
	check "let go of the Sends again" release mem1
	wait $asker
	check "then all Calls are answered" is 0 $?
	check "the file is right" same_sum /tmp/data /mnt/data
}

# Each of these is a Call at least, and the next one comes after its Reply.
ask() {
	local n
	for ((n = 0; n < 500; n++)); do
		[ -e /mnt/data ] || return
	done
}
