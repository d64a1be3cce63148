# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what statuses shows, with each status at each kind of operation, and a soft mount
# also:    um
# devices: mem
# limit:   1500
# steps:   all_statuses
# faults:  connections end in each way

. "${BASH_SOURCE%/*}/statuses.sh"

# All of enum ib_wc_status but success
STATUSES="loc-len loc-qp-op loc-eec-op loc-prot wr-flush mw-bind bad-resp loc-access rem-inv-req
	rem-access rem-op retry-exc rnr-retry-exc loc-rdd-viol rem-inv-rd-req rem-abort inv-eecn
	inv-eec-state fatal resp-timeout general"

CASES=$(for operation in "mem1 "{send,reg,local-inv,recv} "mem0 "{send-inv,write,read,recv}; do
	printf "$operation %s-err\n" $STATUSES
done)

all_statuses() {
	pair_begin
	hard
	soft
	pair_end
}

# The status of dd, and not that of a dd that was killed
gives_up() {
	verified_io
	is 1 $?
}

# A soft mount gives up if the same happens to each attempt, and works again afterwards.
soft() {
	local n
	need "soft: mount" nfs_mount 3 rdma /mnt soft,timeo=20,retrans=1
	check "soft: I/O" verified_io
	# Each of these is about the next Send that none before it is about.
	for n in {1..100}; do
		fault mem1 send 1 retry-exc-err || break
	done
	check "soft: I/O fails while no Send succeeds" gives_up
	check "soft: the faults end" no_fault mem1
	check "soft: I/O" wait_for $RECOVERY verified_io
	check "soft: umount" umount /mnt
}
