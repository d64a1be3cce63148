# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   many processes do I/O on two CPUs while connections break; KCSAN finds no data race
# guests:  um-7-smp
# also:    smp-kcsan smp-debug
# devices: mem
# limit:   120
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/mem.sh"

PATIENCE=$PATIENCE_RESENT

KCSAN=/sys/kernel/debug/kcsan

# The runner looks for reports with a function of the module in them: such a report on the
# console is a failure, see rpcrdma_lab/console.py. The module's address is part of a stack,
# so this is also true of a report about what other code does when the module has called it.
client() {
	local vers
	client_begin
	[ ! -e $KCSAN ] || need "switch KCSAN on" eval "echo on >$KCSAN"
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt nconnect=2
		under_load "v$vers"
		check "v$vers: umount" umount /mnt
		judge "v$vers"
	done
	check "unload, and load again" reload
	need "mount" nfs_mount 4.2 rdma /mnt
	check "verified I/O" eight_jobs
}

# under_load WHAT: eight processes do I/O, while the connection breaks three times.
under_load() {
	local n load
	: >/tmp/load
	load >/tmp/load.log 2>&1 &
	load=$!
	for n in 1 2 3; do
		sleep 1
		check "$1: connection broken, $n of 3" queue_pair_fatal
	done
	rm /tmp/load
	wait $load
	check "$1: verified I/O by eight jobs" ended $?
	check "$1: the same without faults" eight_jobs
}

load() {
	while [ -e /tmp/load ]; do
		eight_jobs || return
	done
}

ended() {
	cat /tmp/load.log
	is 0 "$1"
}

eight_jobs() {
	fio_verify --direct=1 --bsrange=512-256k --numjobs=8 --size=1m
}

reload() {
	rpc.nfsd 0 && unload && load_and_listen
}

# Before the device goes: what the module does when it ends is judged, too.
server_done() {
	server_end
	[ -e $KCSAN ] || return 0
	check "switch KCSAN off" eval "echo off >$KCSAN"
	check "it was working" grep -q 'setup_watchpoints: [1-9]' $KCSAN
	say_races
}

# Print how many races of other parts of the kernel were reported, and the most frequent ones.
say_races() {
	dmesg | sed -n 's/.*BUG: KCSAN: //p' | sort | uniq -c | sort -rn >/tmp/races
	say "$(awk '{ n += $1 } END { print n + 0 }' /tmp/races) reports of $(wc -l </tmp/races) races;" \
		"$(grep -c '\[rdma_mem\]' /tmp/races) of these races are of the test device"
	head -n 20 /tmp/races | sed 's/^/# /'
	cp /tmp/races /lab/out/races
}
