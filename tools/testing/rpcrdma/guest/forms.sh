# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios about the forms of Calls and Replies (RFC 8166 section 3.5). Each
# function by_NAME does an operation that needs one form, with NFSv3 and inline thresholds
# of 1024 or 4096 octets, and is true if the data are correct; by_gathered needs large_sizes
# instead, and is not in FORMS. They must be called in this order.

# Users in access control lists. nfsd cannot decode a list of more than a page, nor encode
# a GETACL Reply of more. So one list is for SETACL, which then takes more than 4096
# octets, and a shorter one for GETACL, whose Reply with its header does.
SETACL_USERS=333
GETACL_USERS=325

FORMS="inline_both_ways read_chunk write_chunk long_call reply_chunk"

# The files are made first, because making them uses other forms.
forms_begin() {
	need "set inline sizes of 1024 octets" small_sizes
	need "make the files" forms_files
}

small_sizes() {
	tune rdma_max_inline_read 1024 && tune rdma_max_inline_write 1024
}

large_sizes() {
	tune rdma_max_inline_read 16384 && tune rdma_max_inline_write 16384
}

forms_files() {
	head -c 64k /dev/urandom >/tmp/data
	acl $SETACL_USERS >/tmp/users
	nfs_mount 3 rdma /mnt && truncate -s 64k /mnt/data && : >/mnt/acl && : >/mnt/long_acl &&
		setfacl -M <(acl $GETACL_USERS) /mnt/long_acl && umount /mnt
}

# acl USERS: the entries of an access control list
acl() {
	seq -f 'user:%.0f:r-x' 1001 $((1000 + $1))
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

# 12 KiB, with large_sizes: either end gathers page data of this size instead of copying it.
by_gathered() {
	write_data 12k && read_data 12k && cmp -n 12288 /tmp/data /tmp/back
}

by_read_chunk() {
	write_data 64k
}

by_write_chunk() {
	read_data 64k && cmp /tmp/data /tmp/back
}

# No argument of SETACL is DDP-eligible. setfacl reads the old list before that: its GETACL
# offers a Reply chunk, which the server does not need yet.
by_long_call() {
	setfacl -M /tmp/users /mnt/acl
}

# The list of by_long_call cannot be read over NFS. This is for the server's guest.
long_call_arrived() {
	is $SETACL_USERS "$(getfacl -cnp $LOCAL/acl | grep -c '^user:1[0-9]*:r-x')"
}

by_reply_chunk() {
	drop_caches
	is $GETACL_USERS "$(getfacl -cnp /mnt/long_acl | grep -c '^user:1[0-9]*:r-x')"
}

# Octets that the client has copied since the mount
copied() {
	awk '$1 == "xprt:" && $2 == "rdma" { print $18 }' /proc/self/mountstats
}

# used_forms WHAT CALLS REPLIES: check the forms of the Calls and Replies that were traced
# last. Inline ones count only if there are no others.
used_forms() {
	check "$1: Calls, as sent: $2" is "$2" "$(forms call sent)"
	check "$1: Calls, as received: $2" is "$2" "$(forms call received)"
	check "$1: Replies, as sent: $3" is "$3" "$(forms reply sent)"
	check "$1: Replies, as received: $3" is "$3" "$(forms reply received)"
}

# forms call|reply sent|received: the forms that were traced
forms() {
	sed -n "s/.*rpcrdma_$1_form: .* $2 RDMA_N*O*MSG form=\([^ ]*\) .*/\1/p" /tmp/trace | sort -u |
		awk '$1 != "inline" { others = others " " $1 }
		     END { if (NR) print others ? substr(others, 2) : "inline" }'
}

# invalidated_by WHOM: the server with its Reply, or the client after it
invalidated_by() {
	is "$1" "$(sed -n 's/.*rpcrdma_receive: .*invalidated=1 .*/server/p
			   s/.*rpcrdma_mr_invalidate: .*/client/p' /tmp/trace | sort -u | xargs)"
}
