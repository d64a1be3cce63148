# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what a module costs; rpcrdma_lab/bench.py compares modules and versions
# guests:  um-7 debian-6.12
# steps:   ready up code job traced_job counted_job rest down
#
# Figures are printed as lines of NAME=NUMBER. INLINE are the octets that both ends send inline,
# and VERSION is the highest version of the protocol that both ends may use, if the module is ours.
# These variables describe a job:
#
#   RW         read, write or randrw by fio; create, stat or remove of a tree of files; bare:
#              RDMA Writes without NFS
#   KB         the size of one I/O
#   BUFFERED   1: through the client's page cache, 0: direct I/O
#   NUMJOBS    how many processes do I/O, each of them one I/O at a time
#   BANDWIDTH  of the device, in MB/s; 0: as fast as it can
#   IOS        how many I/Os they do in sum, or files that the tree has; 0 if a job is to take
#              a time
#   MS         that time

TRACING=/sys/kernel/tracing
# How many files a tree has if a job on it is to take a time
FILES=5000
# Set by traced_job and counted_job
TRACED='' COUNT=''

# What variants share: the device, a server's daemons, and files
ready() {
	# Hardware does not check whether posted buffers change.
	[ "$DEVICE" != mem ] || need "load the device without checksums" modprobe rdma_mem checksums=0
	need "network" net_up
	need "$DEVICE device" rdma_up
	need "a server's daemons" server_daemons
	need "make files" make_files
}

up() {
	need "load rpcrdma of $MODULE" load_module
	need "send $INLINE octets inline" set_inline
	[ "$MODULE" = inbox ] || need "allow version $VERSION" versions_up_to "$VERSION" "$VERSION"
	need "NFS server" rpc.nfsd 8
	need "listen for rdma on port $PORT" listen
	need "mount" nfs_mount 3 rdma /mnt
	need "v3 over rdma is what is mounted" mounted_as /mnt 3 rdma
	[ "$MODULE" = inbox ] || need "version $VERSION is used" uses_version
	[ "$DEVICE" != mem ] || need "8 KiB are inline if $INLINE octets are" inline_holds
	count_waits 0
	[ ! -e /proc/lock_stat ] || echo 0 >/proc/lock_stat
	grep ' /mnt nfs ' /proc/mounts | grep -o '[rw]size=[0-9]*'
}

# Both modules are in this guest, so one of them is loaded by its file. insmod does not
# load what it depends on.
load_module() {
	local where=updates
	[ "$MODULE" = ours ] || where=kernel
	modprobe -qa sunrpc rdma_cm
	insmod "$(find "/lib/modules/$(uname -r)/$where" -name 'rpcrdma.ko*')"
}

set_inline() {
	tune rdma_max_inline_read "$INLINE" && tune rdma_max_inline_write "$INLINE" &&
		tune svc_rdma/max_req_size "$INLINE"
}

# A READ and a WRITE of 8 KiB: whether the device transfers anything by RDMA for them. With
# NFSv4.2 an OPEN may have a Reply chunk, too.
inline_holds() {
	local before
	before=$(by_rdma)
	dd if=/mnt/bench.0.0 of=/dev/null bs=8k count=1 iflag=direct &&
		is_by_rdma $((INLINE < 8192)) "$before" || return
	before=$(by_rdma)
	dd if=/dev/zero of=/mnt/bench.0.0 bs=8k count=1 oflag=direct conv=notrunc &&
		is_by_rdma $((INLINE < 8192)) "$before"
}

# is_by_rdma 0|1 BEFORE: whether there was any since by_rdma() was BEFORE
is_by_rdma() {
	is "$1" $(($(by_rdma) > $2))
}

by_rdma() {
	device_stats | awk '$1 ~ /^mem_(writes|reads)/ { n += $2 } END { print n + 0 }'
}

# What steady() has to tell is counted, as it spoils figures.
down() {
	echo "unsteady=$(steady | wc -l)"
	[ ! -e /proc/lock_stat ] || longest_waits >/lab/out/waits
	need "unmount all" unmount_all
	need "stop the NFS server" rpc.nfsd 0
	module_down
}

# Where the code of the module, of the device and of others is
code() {
	cp /proc/kallsyms /lab/out/
	say_code "" rpcrdma
	say_device_code
	say_code_of_others
}

# The version is the 28th number of a connection in mountstats.
uses_version() {
	is "$VERSION" "$(awk '$1 == "xprt:" && $2 == "rdma" { print $30 }' /proc/self/mountstats |
		sort -u)"
}

# say_code PREFIX MODULE: the first and the last symbol of a module's code. The size in
# /proc/modules is not that of the code only.
say_code() {
	awk -v module="[$2]" '$4 == module && $2 ~ /[tT]/ { print $1 }' /proc/kallsyms | sort |
		sed -n "1s/^/$1text=0x/p; \$s/^/$1last_symbol=0x/p"
}

# The code of the device: of its module or, where it is built in, from its first function
# to what follows its last one. Those that load it lie elsewhere.
say_device_code() {
	local module=$DEVICE
	case $DEVICE in
	rxe | mem) module=rdma_$DEVICE ;;
	esac
	if grep -q "^$module " /proc/modules; then
		say_code device_ "$module"
	else
		awk -v mine="^${DEVICE}_" '
			NF != 3 || $2 !~ /[tT]/ { next }
			$3 ~ mine && $3 !~ /module/ { if (!first) first = $1; inside = 1; next }
			inside { after = $1; inside = 0 }
			END { print "device_text=0x" first, "device_end=0x" after }' /proc/kallsyms
	fi
}

# Those above and below the transport, where they are modules
say_code_of_others() {
	local module
	for module in sunrpc nfs nfsv3 nfsd ib_core; do
		! grep -q "^$module " /proc/modules || say_code "${module}_" "$module"
	done
}

# 64 MiB for one process, or 8 MiB for each of eight
make_files() {
	local n
	head -c 64M /dev/zero >"$LOCAL/bench.0.0" || return
	for n in {1..7}; do
		head -c 8M /dev/zero >"$LOCAL/bench.$n.0" || return
	done
}

# Jobs

job() {
	[ "$BANDWIDTH" = 0 ] || need "limit the device" device_option bandwidth "${BANDWIDTH}000000"
	case $RW in
	bare) bare_job ;;
	*) fio_job ;;
	esac
	[ "$BANDWIDTH" = 0 ] || need "do not limit it" device_option bandwidth 0
}

# device_option NAME VALUE: set an option of the test device while it exists.
device_option() {
	local file status=1
	for file in /sys/kernel/debug/rdma_mem/*/"$1"; do
		echo "$2" >"$file" && status=0
	done
	return $status
}

# measure DESCRIPTION COMMAND...: a step whose costs count. The lines before and after it tell
# the runner to read what the guest's process has used.
measure() {
	counters >/tmp/before
	[ -z "$TRACED" ] || echo 1 >$TRACING/tracing_on
	count_waits 1
	echo "# begin"
	need "$@"
	echo "# end"
	count_waits 0
	[ -z "$TRACED" ] || echo 0 >$TRACING/tracing_on
	counters >/tmp/after
	awk 'FNR == NR { was[$1] = $2; next } { printf "%s=%.0f\n", $1, $2 - was[$1] }' \
		/tmp/before /tmp/after
}

# count_waits 0|1: whether waits for locks count, in a kernel with CONFIG_LOCK_STAT
count_waits() {
	[ ! -e /proc/lock_stat ] || echo "$1" >/proc/sys/kernel/lock_stat
}

# The locks that all measured steps since up() have waited for longest
longest_waits() {
	awk 'match($0, /: +[0-9]+ +[0-9]+ /) {
		split(substr($0, RSTART + 1), n)
		printf "%12.0f %9d %11d %s\n", n[5], n[2], n[8], substr($0, 1, RSTART - 1)
	}' /proc/lock_stat | sort -rn | head -n 20
}

# What fio does is counted; what it needs is made before.
fio_job() {
	case $RW in
	read | write | randrw) set_io ;;
	*) set_tree ;;
	esac
	measure "fio" run_fio
	cp /tmp/fio.out /lab/out/fio.json
}

run_fio() {
	$COUNT fio --name=bench --filename_format='bench.$jobnum.$filenum' \
		--numjobs="$NUMJOBS" "${OPTIONS[@]}" --group_reporting --unified_rw_reporting=1 \
		--percentile_list=50:99:99.9 --eta=never --output-format=json \
		--output=/tmp/fio.out || { cat /tmp/fio.out; return 1; }
}

# I/O on a file for each process. Buffered I/O that is to take a time does it in passes, each of
# which begins without pages of the file in the client's cache, and leaves none that are dirty.
set_io() {
	OPTIONS=(--directory=/mnt --rw="$RW" --bs="${KB}k" --size=$((64 / NUMJOBS))m
		--rwmixread=70 --ioengine=psync --direct=$((!BUFFERED)))
	if [ "$IOS" != 0 ]; then
		OPTIONS+=(--io_size="$((IOS * KB / NUMJOBS))k")
	elif [ "$BUFFERED" != 0 ]; then
		OPTIONS+=(--loops=10000 --end_fsync=1 --runtime="${MS}ms")
	else
		OPTIONS+=(--time_based --runtime="${MS}ms")
	fi
}

# A directory of files of one page, which fio takes as they are. It looks at all of them first;
# before the job does, the client forgets them.
set_tree() {
	[ "$IOS" = 0 ] || FILES=$IOS
	need "make a tree" make_tree
	ulimit -n $((FILES + 100))
	OPTIONS=(--directory=/mnt/tree --rw=write --nrfiles="$FILES" --filesize=4k --bs=4k
		--exec_prerun='echo 3 >/proc/sys/vm/drop_caches; :')
	case $RW in
	create) OPTIONS+=(--ioengine=filecreate) ;;
	stat) OPTIONS+=(--ioengine=filestat) ;;
	remove) OPTIONS+=(--ioengine=filedelete) ;;
	esac
}

# If the job does not create the files, the server does, unless they are left from another job.
make_tree() {
	[ "$RW" != create ] || rm -rf $LOCAL/tree
	mkdir -p $LOCAL/tree && drop_caches || return
	[ "$RW" = create ] || eval "truncate -s 4k $LOCAL/tree/bench.0.{0..$((FILES - 1))}"
}

# RDMA Writes in a loop, over the same device
bare_job() {
	local bare=/sys/module/rdma_bare/parameters
	measure "RDMA Writes in a loop" \
		insmod "$(find "/lib/modules/$(uname -r)" -name rdma_bare.ko)" \
		addr=$SERVER4 size=$((KB * 1024)) ms="$MS"
	echo "ops=$(cat $bare/writes)" "us=$(($(cat $bare/nanoseconds) / 1000))"
	need "unload it" rmmod rdma_bare
}

# Counters so far, NAME NUMBER: context switches, RPCs, packets, and what the test device
# counts. None of them is the module's.
counters() {
	awk '
		$1 == "ctxt" { switches = $2 }
		$1 == "device" { here = 0 }
		here { rpcs += $2 }
		$1 == "per-op" { here = 1 }
		FILENAME ~ /sent_pkts/ { packets = $1 }
		FILENAME ~ /snmp/ && $1 == "Tcp:" { packets = $12 }
		END {
			printf "switches %.0f\nrpcs %.0f\n", switches, rpcs
			if (packets != "") printf "packets %.0f\n", packets
		}' /proc/stat /proc/self/mountstats "$(packet_counter)"
	[ "$DEVICE" != mem ] || device_stats
}

# With siw the packets are TCP's. Nothing else uses TCP while a job runs.
packet_counter() {
	case $DEVICE in
	rxe) echo /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts ;;
	siw) echo /proc/net/snmp ;;
	*) echo /dev/null ;;
	esac
}

device_stats() {
	awk '{ sum["mem_" $1] += $2 } END { for (name in sum) printf "%s %.0f\n", name, sum[name] }' \
		/sys/kernel/debug/rdma_mem/*/stats
}

# Run a job and count events.
traced_job() {
	TRACED=1
	need "trace" trace_on
	job
	check "stop tracing" trace_off
	check "no event was lost" not grep -q '^overrun: [1-9]' $TRACING/per_cpu/cpu0/stats
	count_events <$TRACING/trace
	echo >$TRACING/trace
}

# Those of the RDMA core, of DMA, of workqueues and of the scheduler. Kernels before 6.12
# have none of DMA.
events() {
	ls -d $TRACING/events/{rdma_core/{cq_schedule,cq_poll,mr_alloc},dma/dma_map_{page,sg}} \
		$TRACING/events/{workqueue/workqueue_execute_{start,end},sched/sched_switch} 2>/dev/null
}

trace_on() {
	local event
	echo 0 >$TRACING/tracing_on
	echo 16384 >$TRACING/buffer_size_kb
	for event in $(events); do
		echo 1 >"$event/enable" || return
	done
}

trace_off() {
	local event
	for event in $(events); do
		echo 0 >"$event/enable" || return
	done
	echo 1 >$TRACING/tracing_on
}

# The transport causes a switch to a task if that is nfsd, or a kworker which polls a CQ or
# executes a function of the module before the next switch. A kworker that has waited in such
# a function goes on with it. There is one CPU, so all events are in order.
count_events() {
	awk '
		function caused(by) { if (!counted) { switches[by]++; counted = 1 } }
		/ sched_switch: / {
			task = $(NF - 1)
			counted = 0
			if ($(NF - 2) == "next_comm=nfsd") caused("nfsd")
			else if (doing[task] != "") caused(doing[task])
		}
		/ workqueue_execute_start: / {
			works++
			doing[task] = ""
			if (/function ib_cq_poll_work/) doing[task] = "cq"
			else if (/\[rpcrdma\]/) doing[task] = "own"
			if (doing[task] != "") caused(doing[task])
		}
		/ workqueue_execute_end: / { doing[task] = "" }
		/ cq_schedule: / { interrupts++ }
		/ cq_poll: / { polls++; if ($NF > 0) completions += $NF }
		/ mr_alloc: / { allocations++ }
		/ dma_map_(page|sg): / { maps++ }
		END {
			print "interrupts=" interrupts + 0, "polls=" polls + 0,
				"completions=" completions + 0, "allocations=" allocations + 0,
				"works=" works + 0, "maps=" maps + 0
			print "nfsd_switches=" switches["nfsd"] + 0, "cq_switches=" switches["cq"] + 0,
				"own_switches=" switches["own"] + 0, "transport_switches=" \
				switches["nfsd"] + switches["cq"] + switches["own"]
		}'
}

# Run a job and count its instructions: /lab/counted tells the plugin of this guest's QEMU
# when what is measured begins and ends.
counted_job() {
	COUNT=/lab/counted
	job
}

# Memory

free_memory() {
	drop_caches
	awk '/^MemFree:/ { free = $2 } /^SUnreclaim:/ { print free, $2 }' /proc/meminfo
}

# How many transports have connected at least once
connections() {
	awk '$1 == "xprt:" && $5 > 0 { n++ } END { print n + 0 }' /proc/self/mountstats
}

# The memory of MOUNTS times 16 connections, each of which did a few reads of 64 KiB: KiB for
# all of them, just after that and when they have rested for REST seconds. The client uses a
# connection for all mounts of the same address and port, so each mount has a port of its
# own. (Each address would take an entry of the device's GID table.)
rest() {
	local NCONNECT=16 free slab device
	need "unmount" umount /mnt
	need "raise nfsd's limit of connections" limit_connections 4096
	need "listen on $MOUNTS ports" at_each_port listen
	sleep 2
	read -r free slab device < <(all_memory)
	need "mount $MOUNTS times" at_each_port mount_port
	need "read 64 KiB four times on each connection" at_each_port read_port
	need "all have connected" is $((MOUNTS * NCONNECT)) "$(connections)"
	say_memory used
	sleep "$REST"
	need "each connection still has two queue pairs" is $((2 * MOUNTS * NCONNECT)) "$(queue_pairs)"
	say_memory rested
	echo "connections=$((MOUNTS * NCONNECT))"
	need "unmount all" unmount_all
	need "restore nfsd's limit" limit_connections 0
}

# at_each_port FUNCTION: call it once for each mount, with its port as PORT.
at_each_port() {
	local n PORT
	for ((n = 1; n <= MOUNTS; n++)); do
		PORT=$((20100 + n))
		"$1" || return
	done
}

mount_port() {
	nfs_mount 3 rdma "/mnt/$PORT" nconnect=$NCONNECT,retry=0
}

read_port() {
	dd if="/mnt/$PORT/bench.0.0" of=/dev/null bs=64k count=$((4 * NCONNECT)) iflag=direct
}

# Free memory and unreclaimable slab in KiB, and octets that the test device has
all_memory() {
	echo "$(free_memory) $(device_stats 2>/dev/null | awk '$1 == "mem_memory" { print $2 }')"
}

# say_memory WHEN: by how much these have changed since they were free, slab and device
say_memory() {
	local free_now slab_now device_now
	read -r free_now slab_now device_now < <(all_memory)
	echo "$1=$((free - free_now)) $1_slab=$((slab_now - slab))"
	[ -z "$device_now" ] || echo "$1_device=$(((device_now - device) / 1024))"
}
