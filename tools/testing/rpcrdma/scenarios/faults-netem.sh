# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   verified I/O over a network that loses and reorders packets
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# ends:    1 2
# limit:   90
# skip:    * rxe 1 *: what rxe sends to itself passes no interface that could lose it
# skip:    um-debug * 2 *: lockdep rejects a lock of User-Mode Linux's vector network driver
# skip:    smp-debug * 2 *: two of the slowest guests take minutes
# skip:    * siw 2 inbox: siw between two guests hangs or crashes them, with the kernel's own module

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# In reorder's terms: these do not wait the millisecond.
BADLY="delay 1ms loss 1% reorder 5%"

# Each loss costs rxe of 6.1 more than two seconds.
SIZE=1M
[ "$GUEST" != debian-6.1 ] || SIZE=256K

# In one guest siw's packets pass lo.
bad_dev() {
	[ "$ENDS" = 2 ] && cable || echo lo
}

begin_badly() {
	need "1 % of the packets on $(bad_dev) are lost, 5 % overtake" impair "$(bad_dev)" $BADLY
}

end_well() {
	tc -s qdisc show dev "$(bad_dev)" | sed 's/^/# /'
	check "packets were lost" not no_loss
	check "the network is as it was" impair_no_more "$(bad_dev)"
}

no_loss() {
	tc -s qdisc show dev "$(bad_dev)" | grep -q '(dropped 0,'
}

server() {
	server_begin
	[ "$ENDS" = 1 ] || begin_badly
}

client() {
	client_begin
	begin_badly
	head -c $SIZE /dev/urandom >/tmp/data
	each_of 3 4.2
	end_well
}

each_of() {
	local vers
	for vers; do
		check "mount v$vers" nfs_mount "$vers" rdma /mnt || continue
		check "v$vers: write" dd if=/tmp/data of=/mnt/data bs=64k oflag=direct
		check "v$vers: the data came back" read_back
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
	[ "$ENDS" = 1 ] || end_well
	server_end
}
