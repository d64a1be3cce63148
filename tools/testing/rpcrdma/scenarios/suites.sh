# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what others test file systems with finds nothing: stress-ng, dbench, fs_mark
# also:    um/rxe um-7/mem debian-6.12/rxe
# devices: rxe mem
# limit:   400
# memory:  3072
# root:    programs
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports

# stress-ng's status where nothing has failed: too few resources, or not implemented here
NO_RESOURCE=3 NOT_IMPLEMENTED=4
# Stressors of the class that do not use the directory they get, and two that fail over TCP, too:
# the process of dup crashes, and fsize finds that NFSv3 does not limit the size of a file.
LEFT_OUT=" bind-mount binderfs eventfd ioprio procfs sysfs dup "
LEFT_OUT_3=" fsize "

# stress-ng kills processes, and a thousand writes wait four seconds for a slot.
PATIENCE=$PATIENCE_RESENT

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "v$vers: mount" nfs_mount $vers rdma /mnt
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		stress $vers
		check "v$vers: dbench, four clients" dbench_run
		check "v$vers: remove what dbench has left" rm -r /mnt/dbench
		files "v$vers: fs_mark"
		check "v$vers: umount" unmount /mnt
	done
}

# stress VERSION: each stressor for two seconds, by two processes that check what they read
stress() {
	local name status names left_out=$LEFT_OUT
	[ "$1" != 3 ] || left_out+=$LEFT_OUT_3
	names=$(stress-ng --class filesystem? 2>&1 | sed -n 's/^class.*stressors: //p')
	need "v$1: stress-ng: it names some" [ -n "$names" ]
	mkdir /mnt/stress
	for name in $names; do
		[[ "$left_out" != *" $name "* ]] || continue
		stress-ng "--$name" 2 --timeout 2s --verify --temp-path /mnt/stress >/tmp/stress.out 2>&1
		status=$?
		case $status in
		$NO_RESOURCE | $NOT_IMPLEMENTED) skip "v$1: stress-ng: $name" "not for this file system" ;;
		*) check "v$1: stress-ng: $name" stressed $status ;;
		esac
	done
	check "v$1: stress-ng: no file is left" find /mnt/stress -type d -delete
}

# stressed STATUS: stress-ng counts some failures without telling by its status. In NFS a file that
# is removed while it is open keeps its directory for a moment.
stressed() {
	cat /tmp/stress.out
	[ "$1" = 0 ] &&
		not grep -P '^(?!.*rmdir .* failed, errno=39).*(fail:|incorrect|corrupt)' /tmp/stress.out
}

# An operation of its log of a file server that has another result is an error.
dbench_run() {
	mkdir /mnt/dbench && dbench -D /mnt/dbench -c /usr/share/dbench/client.txt -t 15 4 \
		>/tmp/dbench 2>&1
	tail -n 40 /tmp/dbench
	# Without a semaphore its processes do not begin together.
	grep -q ^Throughput /tmp/dbench &&
		not grep -iP '^(?!.*barrier semaphore).*(failed|error)' /tmp/dbench
}

# Two processes make files of an odd size, each with fsync.
files() {
	local count=$((SLOW ? 100 : 400))
	check "$1" fs_mark -d /mnt/files -n $((count / 4)) -s 16385 -t 2 -L 2 -D 10 -N 20 -S 1 -k \
		-l /tmp/fs_mark
	check "$1: the server has $count files" is $count \
		"$(find $LOCAL/files -type f -size 16385c | wc -l)"
	drop_caches
	check "$1: the client reads what the server has" diff -r /mnt/files $LOCAL/files
	check "$1: remove them" rm -r /mnt/files
}
