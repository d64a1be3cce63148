# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The library of scenarios. A scenario defines client(). It also defines server(),
# client_done() and server_done() if the ones at the end of this file do not fit. The
# runner calls, in this order,
#
#   server, client, client_done, server_done
#
# all in one guest, or server and server_done in one guest, client and client_done in
# another. It sets these variables:
#
#   MODULE  which rpcrdma: ours, inbox, or old, which is ours of an earlier commit
#   DEVICE  rxe or siw, or mem, which is the test device
#   ENDS    1: client and server are in this guest; 2: each has a guest of its own
#   END     which of two guests this is: 1 is the server's, 2 the client's
#   GUEST   the name of this guest
#   SLOW    1 on a guest on which everything takes very long, else 0. A scenario then
#           does less.
#   FAULTS  1 if the scenario says that connections break in it, else 0. See unmount.
#   PACE    how much time this guest takes at the moment, in percent of what User-Mode
#           Linux takes on a quick machine, at most 400. seconds() uses it. The demo,
#           the shell and the benchmark do not set it and get 400.

SERVER4=10.17.0.1 SERVER6=fd17::1
# The path that clients mount, and its path on the server. nfs.conf makes /srv, a tmpfs,
# the root of all exports, because the guest's own root cannot be exported.
EXPORT=/export LOCAL=/srv/export
PORT=20049
STEPS=0 FAILED=0
PACE=${PACE:-400}
# Whether this is a quick guest: one CPU, and no checks
quick() {
	[[ $GUEST == um || $GUEST == um-7 ]]
}

# Seconds that an RPC may take, see watch_rpcs: more where many wait for a slow CPU. A scenario in
# which connections break, or which holds Calls, may set it.
PATIENCE=
[ "$FAULTS" != 0 ] || { quick && PATIENCE=4 || PATIENCE=8; }
# What it is where Calls are sent again, or processes killed, whose session slots are probed: if the
# server still executes a Call, it answers NFS4ERR_DELAY, and an NFSv4 client waits 15 s.
PATIENCE_RESENT=20

say() {
	echo "# $*"
}

# check DESCRIPTION COMMAND...: a step that must succeed.
check() {
	local what=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	STEPS=$((STEPS + 1))
	if [ $status -eq 0 ]; then
		echo "ok $STEPS - $what"
	else
		echo "not ok $STEPS - $what"
		say "'$(cut -c -300 <<<"$*")' ended with status $status"
		[ -z "$out" ] || sed 's/^/# /' <<<"$out" | cut -c -1000
		FAILED=$((FAILED + 1))
	fi
	return $status
}

# need DESCRIPTION COMMAND...: a step that must succeed for the scenario, or the attempt, to go
# on.
need() {
	check "$@" || finish
}

# attempt COMMAND...: steps that the scenario can do without. A need that fails ends the attempt
# alone; the scenario goes on, and fails at its end. Variables that the steps set are lost.
attempt() {
	rm -f /tmp/attempt
	(
		trap 'echo $STEPS $FAILED >/tmp/attempt' EXIT
		"$@"
	)
	read -r STEPS FAILED </tmp/attempt || check "an attempt ends by itself" false
}

# skip DESCRIPTION REASON: a step that is not done.
skip() {
	STEPS=$((STEPS + 1))
	echo "ok $STEPS - $1 # SKIP $2"
}

# End the scenario's function, with status 1 if a step has failed.
finish() {
	exit $((FAILED > 0))
}

# seconds COUNT: so many on User-Mode Linux on a quick machine, up to four times as many
# on slower guests. Not more, because most waits are for timers of a protocol, which run
# at the same speed everywhere.
seconds() {
	echo $((($1 * PACE + 99) / 100))
}

# wait_for COUNT COMMAND...: wait until the command succeeds, for "seconds COUNT" at most.
wait_for() {
	wait_until "$(seconds "$1")" "${@:2}"
}

# within COUNT COMMAND...: the same, for COUNT seconds on any guest. For what must not wait for a
# timer: no slow guest may take a time in which one expires.
within() {
	local since=$SECONDS
	wait_until "$1" "${@:2}" && [ $((SECONDS - since)) -le "$1" ]
}

# wait_until SECONDS COMMAND...: the pause grows by a twentieth from 50 to 500 ms, because each look
# makes processes. A success is noticed so much later.
wait_until() {
	local limit=$((SECONDS + $1)) pause=50
	until "${@:2}" >/dev/null 2>&1; do
		[ $SECONDS -lt $limit ] || return 1
		sleep ${pause}e-3
		pause=$((pause < 476 ? pause * 21 / 20 : 500))
	done
}

# Network and RDMA device

# The network namespace that mounts are made in, if it is not the server's, see guest/mem.sh
NETNS=

# The interface that the RDMA device uses
netdev() {
	if [ "$ENDS" = 1 ] || [ -e /sys/class/net/lab0 ]; then
		echo lab0
	else
		cable
	fi
}

# The interface that connects two guests
cable() {
	basename "$(ls -d /sys/class/net/{vec,eth,ens,enp}[0-9]* 2>/dev/null | head -n 1)"
}

net_up() {
	[ "$ENDS" = 1 ] || modprobe -q virtio_net
	if [ "$ENDS" = 1 ] && [ ! -e /sys/class/net/lab0 ]; then
		modprobe -q dummy numdummies=0
		ip link add lab0 type dummy
	fi
	give_addresses "$(netdev)" 0 "${END:-1}"
}

# give_addresses INTERFACE NETWORK HOST [COMMAND]: the command, if any, runs ip where that is.
give_addresses() {
	"${@:4}" ip link set "$1" up && "${@:4}" ip addr replace "10.17.$2.$3/24" dev "$1" &&
		"${@:4}" ip addr replace "fd17:$2::$3/64" dev "$1" nodad
}

rdma_up() {
	case $DEVICE in
	rxe) modprobe -qa crc32_generic rdma_rxe ;;
	siw) modprobe -qa crc32_generic siw ;;
	mem) modprobe rdma_mem || return ;;
	esac
	rdma link show "${DEVICE}0/1" >/dev/null 2>&1 ||
		rdma link add "${DEVICE}0" type "$DEVICE" netdev "$(netdev)"
	# A work item of the kernel adds the addresses to the GID table.
	wait_for 5 gid_ready
}

gid_ready() {
	has_gid "${DEVICE}0"
}

# The GID of an iWARP port is no address.
has_gid() {
	has_iwarp "$1" || grep -q fd17 "/sys/class/infiniband/$1/ports/1/gids/"*
}

has_iwarp() {
	grep -q RNIC "/sys/class/infiniband/$1/node_type"
}

# At its end the test device says what is left of it, as a violation.
rdma_down() {
	rdma link delete "${DEVICE}0"
	ip link delete lab0 2>/dev/null || true
	[ "$DEVICE" != mem ] || wait_for 5 modprobe -r rdma_mem
}

# The module under test

loaded() {
	grep -q '^rpcrdma ' /proc/modules
}

right_module() {
	local file
	file=$(modinfo -F filename rpcrdma) || return 1
	case $MODULE in
	ours | old) [[ $file == */updates/* ]] ;;
	inbox) [[ $file == */kernel/* ]] ;;
	esac
}

module_up() {
	need "rpcrdma is the $MODULE module" right_module
	need "load rpcrdma" modprobe rpcrdma
}

unload_module() {
	within 8 modprobe -r rpcrdma
}

module_down() {
	check "unload rpcrdma" unload_module
	check "rpcrdma is not loaded any more" not loaded
}

not() {
	! "$@"
}

# is WANTED FOUND: true if both are the same.
is() {
	[ "$1" = "$2" ] || { echo "it is '$2' instead of '$1'"; return 1; }
}

# tune NAME VALUE: set a tunable for new connections.
tune() {
	echo "$2" >"/proc/sys/sunrpc/$1"
}

# versions_up_to CLIENT SERVER: the highest version of RPC-over-RDMA that each end may use on
# new connections
versions_up_to() {
	tune rdma_version "$1" && tune svc_rdma/version "$2"
}

# traced COMMAND...: write what our tracepoints print meanwhile to /tmp/trace.
traced() {
	local tracing=/sys/kernel/tracing status
	: >$tracing/trace
	echo 1 >$tracing/events/rpcrdma/enable
	"$@"
	status=$?
	echo 0 >$tracing/events/rpcrdma/enable
	cat $tracing/trace >/tmp/trace
	return $status
}

# The versions of all Calls and Replies that were traced last, at both ends
versions_traced() {
	sed -nE 's/.*rpcrdma_(call|reply)_form: .* version=([0-9]+) .*/\2/p' /tmp/trace | sort -u | xargs
}

# versions_sent TRACE: the version of each Call that was sent, in the order of sending
versions_sent() {
	sed -n 's/.*rpcrdma_call_form: .* sent .* version=\([0-9]*\) .*/\1/p' "$1"
}

# calls_traced VERSION: how many Calls in this version were sent
calls_traced() {
	versions_sent /tmp/trace | grep -cx "$1"
}

# NFS server

server_daemons() {
	mkdir -p /var/lib/nfs/{sm,sm.bak,rpc_pipefs,nfsdcld}
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab
	mountpoint -q /var/lib/nfs/rpc_pipefs ||
		mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
	mountpoint -q /proc/fs/nfsd || { modprobe -q nfsd; mount -t nfsd nfsd /proc/fs/nfsd; }
	mkdir -p /srv
	mountpoint -q /srv || mount -t tmpfs srv /srv
	mkdir -p -m 1777 $LOCAL
	printf '[exports]\nrootdir=/srv\n' >/etc/nfs.conf
	echo "$EXPORT *(rw,no_root_squash,no_subtree_check,insecure,fsid=17,sec=${SEC:-sys})" >/etc/exports
	pgrep -x rpcbind >/dev/null || rpcbind -i -w
	pgrep -x nfsdcld >/dev/null || nfsdcld
	exportfs -ra
	pgrep -x rpc.mountd >/dev/null || start_mountd
}

# On 6.1 mountd must not see clients: reading about one that goes is a use after free in nfsd.
start_mountd() {
	case $(uname -r) in
	6.1.*)
		mount --make-rshared / && unshare --mount --propagation slave sh -c "
			mount -t tmpfs none /proc/fs/nfsd/clients && exec rpc.mountd -p 20048"
		;;
	*) rpc.mountd -p 20048 ;;
	esac
}

server_up() {
	server_daemons || return
	# In the first second after the boot nfsd takes each new client for an expired one.
	while grep -q '^0\.' /proc/uptime; do sleep 0.1; done
	echo "${LEASE:-10}" >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	# lockd has a grace period of its own. The server delegates nothing during it.
	echo 3 >/proc/sys/fs/nfs/nlm_timeout
	echo 3 >/proc/sys/fs/nfs/nlm_grace_period
	rpc.nfsd "${NFSD_THREADS:-8}"
}

listen() {
	echo "rdma $PORT" >/proc/fs/nfsd/portlist && grep -q "^rdma $PORT\$" /proc/fs/nfsd/portlist
}

server_down() {
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd
	pkill -x nfsdcld
	pkill -x rpcbind
	wait_for 5 not pgrep -x 'rpc.mountd|nfsdcld|rpcbind'
	# The next server shall know no clients, so that it has no grace period.
	rm -rf /var/lib/nfs/nfsdcld
	umount /srv
}

# append_to_all FILE...: write to all at the same time. The server keeps each writer waiting
# until the delegation of its file is returned.
append_to_all() {
	local one pids=() status=0
	for one in "$@"; do
		echo more >>"$one" &
		pids+=($!)
	done
	for one in "${pids[@]}"; do
		wait "$one" || status=1
	done
	return $status
}

# NFS client

# nfs_mount VERSION NETID DIRECTORY [OPTIONS]: mount the export.
nfs_mount() {
	local vers=$1 netid=$2 dir=$3 opts=$4 host=$SERVER4 proto
	[ "$netid" != rdma6 ] || host="[$SERVER6]"
	mkdir -p "$dir"
	case $vers in
	3)
		proto=tcp
		[ "$netid" != rdma6 ] || proto=tcp6
		opts="nolock,mountport=20048,mountproto=$proto${opts:+,$opts}"
		;;
	esac
	${NETNS:+nsenter "--net=/run/netns/$NETNS"} mount -t nfs \
		-o "vers=$vers,proto=$netid,port=$PORT${opts:+,$opts}" "$host:$EXPORT" "$dir"
}

# uses_rdma DIRECTORY: whether all transports of a mount are rdma, by its statistics.
uses_rdma() {
	awk -v dir="$1" '
		$1 == "device" { here = $5 == dir }
		here && $1 == "xprt:" { n++; if ($2 != "rdma") bad = 1 }
		END { exit !(n && !bad) }' /proc/self/mountstats
}

# operations NAME: how many Calls of an NFS operation the present mounts have sent
operations() {
	awk -v name="$1:" '$1 == name { n += $2 } END { print n + 0 }' /proc/self/mountstats
}

# How many connections the present mounts have made
connections_made() {
	awk '$1 == "xprt:" && $2 == "rdma" { n += $5 } END { print n + 0 }' /proc/self/mountstats
}

# more_connections COUNT: whether the present mounts have made more connections than that.
more_connections() {
	[ "$(connections_made)" -gt "$1" ]
}

# The folders in sysfs of all transports over RDMA
rdma_transports() {
	compgen -G '/sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma'
}

# The only one of them, after others that are not used any more have gone
the_transport() {
	wait_for 10 one_transport && rdma_transports
}

one_transport() {
	[ "$(rdma_transports | wc -l)" = 1 ]
}

# How many queue pairs connections have, at both ends. The CM's own is of another type.
queue_pairs() {
	rdma resource show qp | grep -c 'type RC'
}

no_connection() {
	is 0 "$(queue_pairs)"
}

# drop_connection TRANSPORT: have the client close a connection. sunrpc does that when an
# address is written to the transport's dstaddr, even if it is the same. The write waits for
# the transport's lock and may miss its wakeup, so it has a timeout and may have to be
# repeated.
drop_connection() {
	timeout -s KILL "$(seconds 1)" bash -c 'echo "$1" >"$2"' drop_connection $SERVER4 "$1/dstaddr"
}

# Have the client close all its connections. Transports that the server has for callbacks
# refuse that.
drop_connections() {
	local transport
	for transport in $(rdma_transports); do
		drop_connection "$transport"
	done
}

# mount_file FILE DIRECTORY. mount -o loop of Debian 12 has the device open for writing meanwhile,
# which kernels without BLK_DEV_WRITE_MOUNTED refuse.
mount_file() {
	local loop
	# It is detached when it is unmounted.
	loop=$(losetup -f --show "$1") && mount "$loop" "$2" && losetup -d "$loop"
}

# mounted_as DIRECTORY VERSION NETID: whether that is what is mounted.
mounted_as() {
	grep -q " $1 nfs4\?.*[, ]vers=$2,.*proto=$3,.*port=$PORT" /proc/mounts && uses_rdma "$1"
}

# limit_connections COUNT: above a limit of its own nfsd closes connections; 0 is the default.
# Kernels 7.x have no such file, and no limit for clients that have sent a Call.
limit_connections() {
	local file=/proc/fs/nfsd/max_connections
	[ ! -e $file ] || echo $1 >$file
}

# each_version FUNCTION: mount each NFS version at /mnt and call the function with it. On
# slower guests only the oldest and the newest version.
each_version() {
	local vers versions="3 4.2"
	! quick || versions="3 4.0 4.1 4.2"
	for vers in $versions; do
		check "mount v$vers" nfs_mount $vers rdma /mnt || continue
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		"$1" $vers
		check "umount v$vers" unmount /mnt
	done
}

drop_caches() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

same_sum() {
	[ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ]
}

# Operations on a mounted directory. Each is true if the data are correct.

# fio_verify OPTIONS: write and compare. The options say in what sizes and with how many
# jobs.
fio_verify() {
	fio --name=verify --directory=/mnt --filename_format='verify.$jobnum' \
		--rw=randwrite --size=$((SLOW ? 2 : 8))m --ioengine=psync --blocksize_unaligned=0 \
		--verify=crc32c --verify_fatal=1 --randseed=17 --group_reporting \
		--minimal --output=/tmp/fio.out "$@" || { cat /tmp/fio.out; return 1; }
	rm -f /mnt/verify.*
}

# long_directory DIRECTORY: make, list and remove a directory that takes several pages.
long_directory() {
	make_long_directory "$1" && drop_caches && lists_long_directory "$1" && rmdir "$1"/* "$1"
}

# Directories, because nfsd would delegate each file, and to return 200 delegations at once may
# exceed the window of RPCSEC_GSS, see known-failures.rst. Of directories 7.x asks for the
# parent's alone.
make_long_directory() {
	mkdir "$1" "$1"/a-name-long-enough-to-need-more-than-one-page-{1..200}
}

lists_long_directory() {
	is 200 "$(ls "$1" | wc -l)"
}

# link_to NAME TARGET: make, read and remove a symbolic link.
link_to() {
	ln -s "$2" "$1" && [ "$(readlink "$1")" = "$2" ] && rm "$1"
}

# Whether each transport of the present mounts has made one connection at most, and each Call
# was sent once and answered in time, by their statistics. The first Call, a NULL, is sent
# again to a server that does not know version 2.
steady() {
	awk '
		$1 == "device" { dir = $5 }
		$1 == "xprt:" && $2 == "rdma" && $5 > 1 { print dir ": connected " $5 " times"; bad = 1 }
		$1 !~ /^[A-Z0-9_]+:$/ || NF < 9 { next }
		$3 > $2 && $1 != "NULL:" { print dir ": sent again: " $0; bad = 1 }
		$4 > 0 { print dir ": too late: " $0; bad = 1 }
		END { exit bad }' /proc/self/mountstats
}

# unmount DIRECTORY: umount. It fails if not all has gone well until now.
unmount() {
	local status=0
	[ "$FAULTS" != 0 ] || steady || status=$?
	umount "$1" && return $status
}

unmount_all() {
	local dir
	for dir in $(awk '$3 ~ /^nfs4?$/ { print $2 }' /proc/mounts | tac); do
		unmount "$dir" || return
	done
}

# How long RPCs take

# A trace instance of its own
LATE=/sys/kernel/tracing/instances/late

# watch_rpcs: from now on record each RPC that has taken longer than PATIENCE in the guest's own
# time, those of callbacks as well. Most timers that would end a wait whose wake-up was lost are
# longer than 4 s, see Time in testing.rst. The size of the first buffer is set, too: once an
# instance has one, Linux 6.1 leaves the first buffer at 7 KiB.
watch_rpcs() {
	local event=$LATE/events/sunrpc/rpc_stats_latency
	echo 1408 >/sys/kernel/tracing/buffer_size_kb &&
		mkdir -p $LATE && echo 64 >$LATE/buffer_size_kb && : >$LATE/trace &&
		limit_rpcs $PATIENCE && echo 1 >$event/enable
}

# limit_rpcs SECONDS: record those that take longer.
limit_rpcs() {
	echo "execute > ${1}000000" >$LATE/events/sunrpc/rpc_stats_latency/filter
}

none_late() {
	[ -e $LATE/trace ] && not grep -v '^#' $LATE/trace
}

# Functions that scenarios begin and end with

begin() {
	need "network" net_up
	need "$DEVICE device" rdma_up
	module_up
	[ -z "$PATIENCE" ] || need "record RPCs that take more than $PATIENCE s" watch_rpcs
}

end() {
	[ -z "$PATIENCE" ] || check "no RPC took more than $PATIENCE s" none_late
	module_down
	check "remove the $DEVICE device" rdma_down
}

server_begin() {
	begin
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
}

server_end() {
	check "stop the NFS server" server_down
	end
}

server() {
	server_begin
}

client_begin() {
	[ "$ENDS" = 1 ] || begin
}

client_done() {
	check "unmount" unmount_all
	[ "$ENDS" = 1 ] || end
}

server_done() {
	server_end
}
