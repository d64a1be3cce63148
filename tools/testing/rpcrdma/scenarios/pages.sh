# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with pages of any size 1 MiB is one registration, and a connection takes some MiB at most
# guests:  um/rxe
# also:    um-7/mem debian-13-arm64 debian-13-arm64-16k arm64-64k/rxe arm64-64k/mem
# devices: rxe mem
# modules: ours

. "${BASH_SOURCE%/*}/payload.sh"
. /lab/guest/tools.sh

# Octets that an end may take after I/O of 1 MiB: the server keeps the pages of a WRITE for others.
MOST=$((4 * MIB))

client() {
	client_begin
	need "the program" tool_up
	need "mount" nfs_mount 3 rdma /mnt "rsize=$MIB,wsize=$MIB"
	check "this is what is mounted" grep "rsize=$MIB,wsize=$MIB" /proc/mounts
	need "make random data" dd if=/dev/urandom of=/tmp/data bs=1M count=1 iflag=fullblock
	check "WRITE of 1 MiB: one registration" registers 13 \
		dd if=/tmp/data of=/mnt/data bs=1M oflag=direct
	check "READ of 1 MiB: one registration" registers 14 \
		dd if=/mnt/data of=/tmp/back bs=1M count=1 iflag=direct
	check "what was read is what was written" cmp /tmp/data /tmp/back
	tool show -j >/tmp/show
	say "with pages of $(getconf PAGESIZE) octets they take: client $(memory client), server" \
		"$(memory server)"
	check "the client takes $MOST at most" [ "$(memory client)" -le $MOST ]
	check "the server takes $MOST at most" [ "$(memory server)" -le $MOST ]
	rm -f /tmp/data /tmp/back /mnt/data
}

# registers FIELD COMMAND...: whether it adds one to a number of the connection in mountstats: 13 is
# the segments that the client has offered in Read chunks, 14 those in Write chunks
registers() {
	local before
	before=$(segments "$1")
	"${@:2}" && is $((before + 1)) "$(segments "$1")"
}

segments() {
	awk -v field="$1" '$1 == "xprt:" && $2 == "rdma" { n += $field } END { print n }' \
		/proc/self/mountstats
}

# memory ROLE: octets of the only connection's end
memory() {
	jq ".$1[].memory" /tmp/show
}
