# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the server calls its clients back by the connection that they made (RFC 8167)
# guests:  um um-debug debian-6.1 debian-6.12
# also:    smp-debug
# devices: rxe siw

# nfsd remembers for up to a minute what it has recalled, and delegates that no more:
# by hashes in a filter of 256 bits, which more files would fill for everybody.
FILES=16

client() {
	local vers
	client_begin
	for vers in 4.1 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		check "v$vers: make $FILES files" make_files $vers
		check "v$vers: the server delegates most of them" wait_for $((SLOW ? 60 : 20)) delegated $vers
		check "v$vers: and has them back as soon as somebody else writes" recalled $vers
		check "v$vers: nothing is delegated any more" is 0 "$(delegations)"
		check "v$vers: the client reads what was written" is $FILES "$(cat /mnt/$vers.* | grep -c more)"
		check "umount" umount /mnt
	done
}

# Others for each version: what was recalled is not delegated again so soon.
make_files() {
	local n
	for ((n = 0; n < FILES; n++)); do
		echo some >"$LOCAL/$1.$n"
	done
}

delegated() {
	cat /mnt/$1.* >/dev/null && [ "$(delegations)" -ge $((FILES / 2)) ]
}

delegations() {
	cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg'
}

# A client that could not be reached would keep each writer waiting for a lease
# period, ten seconds. All at a time: there are fewer credits for that than files.
recalled() {
	local n pids=()
	for ((n = 0; n < FILES; n++)); do
		timeout $((SLOW ? 60 : 9)) bash -c "echo more >>$LOCAL/$1.$n" &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n" || return
	done
}
