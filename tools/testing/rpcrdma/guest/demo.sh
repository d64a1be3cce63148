# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   NFS over RDMA works; it prints what it does for a user
# guests:  debian-6.12 debian-13
# steps:   demo

# tell WORDS: print a line.
tell() {
	printf '%s\n' "${*:+  }$*"
}

# must COMMAND...: run a command that must succeed, with its output in /tmp/out.
must() {
	"$@" >/tmp/out 2>&1 && return
	tell "'$*' failed:"
	cat /tmp/out
	exit 1
}

demo() {
	local size read
	must net_up
	must rdma_up
	must modprobe rpcrdma
	must server_up
	must listen
	must nfs_mount 4.2 rdma /mnt
	must mounted_as /mnt 4.2 rdma
	tell
	tell "What is mounted:"
	tell "    \$ mount -t nfs -o proto=rdma,port=$PORT $SERVER4:$EXPORT /mnt"
	tell "    $(grep ' /mnt ' /proc/mounts | cut -d' ' -f1-3)"
	tell "    $(grep ' /mnt ' /proc/mounts | grep -o 'vers=[^,]*'), $(grep ' /mnt ' /proc/mounts | grep -o 'proto=[^,]*')," \
		"on $(modinfo -F filename rpcrdma)"
	tell "    $(rdma link show rxe0/1)"
	tell
	must dd if=/dev/urandom of=/tmp/data bs=1M count=32
	must cp /tmp/data /mnt/data
	drop_caches
	must same_sum /tmp/data $LOCAL/data
	must same_sum /tmp/data /mnt/data
	tell "A file of 32 MiB was copied to the server and read back; its SHA-256 is the same"
	tell "in all three places:"
	tell "    $(sha256sum </mnt/data | cut -c1-64)"
	tell
	tell "Throughput, one job, direct I/O (this is an emulated machine: see that it works,"
	tell "not how fast it is):"
	tell "    block    read MB/s   write MB/s"
	for size in 4k 64k 1m; do
		must speed read $size
		read=$(tail -n 1 /tmp/out)
		must speed write $size
		tell "$(printf '    %-5s %12s %12s' $size "$read" "$(tail -n 1 /tmp/out)")"
	done
	tell
	must umount /mnt
}

# speed read|write BLOCK: MB/s
speed() {
	fio --name=demo --filename=/mnt/data --rw="$1" --bs="$2" --direct=1 --size=32m \
		--runtime=4 --time_based --ioengine=psync --minimal >/tmp/fio || return
	awk -F';' -v read="$([ "$1" = read ] && echo 1)" \
		'{ printf "%.1f", (read ? $7 : $48) * 1024 / 1000000 }' /tmp/fio
}
