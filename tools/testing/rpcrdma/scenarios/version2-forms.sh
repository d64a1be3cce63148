# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   in version 2 all NFS versions have correct data, and each operation uses the form that it should
# guests:  um
# also:    um/mem um-debug/rxe um-7-debug/siw debian-6.1
# devices: rxe siw mem
# modules: ours
# limit:   90

. "${BASH_SOURCE%/*}/../guest/forms.sh"

client() {
	client_begin
	need "both ends may use version 2" versions_up_to 2 2
	forms_begin
	each_version use_version_2
	invalidation
}

# use_version_2 VERSION: I/O over one connection, in version 2 from its first message on
use_version_2() {
	check "v$1: the connection was made with a first Call in version 2" traced new_transport "$1"
	in_version_2 "v$1"
	if [ "$1" = 3 ]; then
		form inline_both_ways "inline" "inline"
		form read_chunk "read" "inline"
		form write_chunk "write" "write"
		form long_call "long reply" "inline"
		check "long_call: the list arrived" long_call_arrived
		form reply_chunk "reply" "reply"
	else
		data read_chunk "v$1" call read
		data write_chunk "v$1" reply write
	fi
	check "v$1: verified I/O, 512 B to 1 MiB" \
		traced fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=2m
	in_version_2 "v$1"
	check "v$1: a long directory" long_directory /mnt/long
	check "v$1: a symbolic link" link_to /mnt/link target
	check "v$1: one connection" is 1 "$(connections_made)"
}

# Mount again, so that the trace has the first messages.
new_transport() {
	unmount /mnt && nfs_mount "$1" rdma /mnt
}

in_version_2() {
	check "$1: all messages are in version 2" is 2 "$(versions_traced)"
	check "$1: none is an error" not grep 'rpcrdma_reply_form: .* RDMA_ERROR' /tmp/trace
}

# form OPERATION CALLS REPLIES: with NFSv3, do an operation and check its forms, see
# used_forms.
form() {
	check "$1: the data are correct" traced "by_$1"
	used_forms "$1" "$2" "$3"
	in_version_2 "$1"
}

# data OPERATION WHAT call|reply FORM: with NFSv4, where some Calls offer a Reply chunk in
# addition, one of the Calls or Replies must have the form.
data() {
	check "$2, $1: the data are correct" traced "by_$1"
	check "$2, $1: a $3 has the form $4" grep -wq "$4" <(sed -n \
		"s/.*rpcrdma_$3_form: .* sent .* form=\([^ ]*\) .*/\1/p" /tmp/trace | tr + '\n')
}

# In version 2 each Call names the handle that may be invalidated, or none. Private data
# have no say.
invalidation() {
	local switch
	who_invalidates "by default" server
	for switch in rdma_remote_invalidation svc_rdma/remote_invalidation; do
		need "$switch=0" tune $switch 0
		who_invalidates "$switch=0" client
		need "$switch=1" tune $switch 1
	done
	for switch in rdma_private_data svc_rdma/private_data; do
		need "$switch=0" tune $switch 0
		who_invalidates "$switch=0" server
		need "$switch=1" tune $switch 1
	done
}

# who_invalidates WHAT END: a READ's handle is invalidated by this end.
who_invalidates() {
	check "$1: mount" nfs_mount 3 rdma /mnt
	form write_chunk "write" "write"
	check "$1: the $2 invalidates the handle" invalidated_by "$2"
	check "$1: umount" unmount /mnt
}
