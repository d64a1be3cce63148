# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Operations that need one form of Call or Reply each (RFC 8166 section 3.5),
# with NFSv3 and inline thresholds of 1024 octets. Each, by_NAME, is true if the
# data is right; they build on each other in the order of this list.

FORMS="inline_both_ways read_chunk write_chunk long_call reply_chunk"

# To make a file takes other forms than to use it.
forms_begin() {
	need "an end whose inline sizes are 1024 octets" small_sizes
	need "files to work on" forms_files
}

small_sizes() {
	tune rdma_max_inline_read 1024 && tune rdma_max_inline_write 1024
}

forms_files() {
	head -c 64k /dev/urandom >/tmp/data
	printf 'user:%d:r-x\n' {1001..1300} >/tmp/users
	nfs_mount 3 rdma /mnt && truncate -s 64k /mnt/data && : >/mnt/acl && umount /mnt
}

write_data() {
	dd if=/tmp/data of=/mnt/data bs="$1" count=1 oflag=direct conv=notrunc,nocreat
}

read_data() {
	dd if=/mnt/data of=/tmp/back bs="$1" count=1 iflag=direct
}

by_inline_both_ways() {
	write_data 512 && read_data 512 && cmp -n 512 /tmp/data /tmp/back
}

by_read_chunk() {
	write_data 64k
}

by_write_chunk() {
	read_data 64k && cmp /tmp/data /tmp/back
}

# Nothing of SETACL is DDP-eligible. setfacl has to know the old list first:
# GETACL offers a Reply chunk, which the server does not need yet.
by_long_call() {
	setfacl -M /tmp/users /mnt/acl
}

by_reply_chunk() {
	drop_caches
	is 300 "$(getfacl -cnp /mnt/acl | grep -c '^user:1[0-9]*:r-x')"
}

# travelled WHAT CALLS REPLIES: the forms other than inline ones, if there are
# any, that what was traced last took
travelled() {
	check "$1: Calls, as sent: $2" is "$2" "$(forms call sent)"
	check "$1: Calls, as received: $2" is "$2" "$(forms call received)"
	check "$1: Replies, as sent: $3" is "$3" "$(forms reply sent)"
	check "$1: Replies, as received: $3" is "$3" "$(forms reply received)"
}

forms() {
	sed -n "s/.*rpcrdma_$1_form: .* $2 RDMA_N*O*MSG form=\([^ ]*\) .*/\1/p" /tmp/trace | sort -u |
		awk '$1 != "inline" { others = others " " $1 }
		     END { if (NR) print others ? substr(others, 2) : "inline" }'
}
