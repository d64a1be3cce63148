# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   verified I/O over a network that loses and reorders packets
# guests:  um
# also:    um-debug/siw um-7-debug debian-6.1
# devices: rxe siw
# ends:    1 2
# limit:   90
# skip:    * rxe 1 *: what rxe sends to itself passes no interface that could lose packets
# skip:    * siw 2 inbox: siw between two guests hangs or crashes them, with the kernel's own module
# faults:  packets are lost
#
# In one guest, over siw:               In two guests:
#
#   server and client                   end 1: server            end 2: client
#   +--------------------------+        +------------------+     +------------------+
#   | nfsd, port 20049;  mount |        | nfsd, port 20049 |     | mount at /mnt    |
#   | siw0 on lab0: 10.17.0.1  |        | rxe0 or siw0     |     | rxe0 or siw0     |
#   | lo: netem, because siw's |        | 10.17.0.1        |     | 10.17.0.2        |
#   |     packets pass it      |        | vec0/eth0: netem |-----| vec0/eth0: netem |
#   +--------------------------+        +------------------+     +------------------+

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# The 5 % that are reordered are sent without the delay.
NETEM="delay 1ms loss 1% reorder 5%"

# Each lost packet takes rxe of 6.1 more than two seconds.
SIZE=1M
[ "$GUEST" != debian-6.1 ] || SIZE=256K

# The interface that loses packets
lossy_dev() {
	[ "$ENDS" = 2 ] && cable || echo lo
}

begin_losses() {
	need "lose 1 % and reorder 5 % of the packets on $(lossy_dev)" impair "$(lossy_dev)" $NETEM
}

end_losses() {
	tc -s qdisc show dev "$(lossy_dev)" | sed 's/^/# /'
	check "packets were lost" some_lost
	check "restore the network" impair_no_more "$(lossy_dev)"
}

some_lost() {
	tc -s qdisc show dev "$(lossy_dev)" | grep -q '(dropped [1-9]'
}

server() {
	server_begin
	[ "$ENDS" = 1 ] || begin_losses
}

client() {
	client_begin
	begin_losses
	head -c $SIZE /dev/urandom >/tmp/data
	each_of 3 4.2
	end_losses
}

# each_of VERSION...: I/O with each of these NFS versions
each_of() {
	local vers
	for vers; do
		check "mount v$vers" nfs_mount "$vers" rdma /mnt || continue
		check "v$vers: write" dd if=/tmp/data of=/mnt/data bs=64k oflag=direct
		check "v$vers: read and compare" read_back
		check "v$vers: small files" small_files
		check "umount v$vers" umount /mnt
	done
}

read_back() {
	dd if=/mnt/data bs=64k iflag=direct | cmp - /tmp/data
}

small_files() {
	local n
	for n in {1..20}; do
		echo "$n" >"/mnt/$n" && mv "/mnt/$n" "/mnt/to.$n" || return
	done
	drop_caches
	is "$(seq 20)" "$(cat /mnt/to.* | sort -n)" && rm /mnt/to.*
}

server_done() {
	[ "$ENDS" = 1 ] || end_losses
	server_end
}
