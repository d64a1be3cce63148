# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what a module costs; rpcrdma_lab/bench.py compares modules and versions
# guests:  um debian-6.12
# steps:   up connect job traced_job counted_job memory rest down
#
# Figures are printed as lines of NAME=NUMBER. VERSION is the highest version of the protocol
# that both ends may use, if the module is ours. These variables describe a job:
#
#   RW         read or write by fio; create, stat or remove of a tree of files; bare: RDMA
#              Writes without NFS
#   KB         the size of one I/O
#   NUMJOBS    how many processes do I/O, each of them one I/O at a time
#   NCONNECT   how many connections the mount has
#   BANDWIDTH  of the device, in MB/s; 0: as fast as it can
#   IOS        how many I/Os they do in sum, or files that the tree has; 0 if a job is to take
#              a time
#   MS         that time

TRACING=/sys/kernel/tracing
CONNECTIONS=16
# A job on trees that is to take a time does so many of them, with so many files each.
TREES=3
FILES=1000
# Set by traced_job and counted_job
TRACED='' COUNT=''

# Both modules are in this guest, so one of them is loaded by its file. insmod does not
# load what it depends on.
module_up() {
	local where=updates
	[ "$MODULE" = ours ] || where=kernel
	modprobe -qa sunrpc rdma_cm
	need "load rpcrdma of $MODULE" \
		insmod "$(find "/lib/modules/$(uname -r)/$where" -name 'rpcrdma.ko*')"
}

up() {
	# Hardware does not check whether posted buffers change.
	[ "$DEVICE" != mem ] || need "load the device without checksums" modprobe rdma_mem checksums=0
	server
	[ "$MODULE" = inbox ] || need "allow version $VERSION" allow_version
	need "make files" make_files
	need "mount" nfs_mount 3 rdma /mnt
	need "v3 over rdma is what is mounted" mounted_as /mnt 3 rdma
	[ "$MODULE" = inbox ] || need "version $VERSION is used" uses_version
	grep ' /mnt nfs ' /proc/mounts | grep -o '[rw]size=[0-9]*'
	say_code "" rpcrdma
	say_device_code
	say_code_of_others
}

allow_version() {
	tune rdma_version "$VERSION" && tune svc_rdma/version "$VERSION"
}

# The version is the 28th number of a connection in mountstats.
uses_version() {
	is "$VERSION" "$(awk '$1 == "xprt:" && $2 == "rdma" { print $30 }' /proc/self/mountstats)"
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
	head -c 64M /dev/zero >"$LOCAL/bench.0" || return
	for n in {1..7}; do
		head -c 8M /dev/zero >"$LOCAL/bench.$n" || return
	done
}

down() {
	client_done
	server_done
}

# Mount again, with NCONNECT connections.
connect() {
	need "unmount" umount /mnt
	sleep 1
	need "mount with $NCONNECT connections" nfs_mount 3 rdma /mnt nconnect="$NCONNECT"
	need "use each of them" use_connections "$NCONNECT"
}

# Jobs

job() {
	: >/tmp/changes
	SPENT=0
	[ "$BANDWIDTH" = 0 ] || need "limit the device" device_option bandwidth "${BANDWIDTH}000000"
	case $RW in
	read | write) io_job ;;
	bare) bare_job ;;
	*) tree_job ;;
	esac
	[ "$BANDWIDTH" = 0 ] || need "do not limit it" device_option bandwidth 0
	awk '{ sum[$1] += $2 } END { for (name in sum) printf "%s=%.0f\n", name, sum[name] }' \
		/tmp/changes
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
	local start
	counters >/tmp/before
	[ -z "$TRACED" ] || echo 1 >$TRACING/tracing_on
	echo "# begin"
	start=${EPOCHREALTIME/./}
	need "$@"
	SPENT=$((SPENT + ${EPOCHREALTIME/./} - start))
	echo "# end"
	[ -z "$TRACED" ] || echo 0 >$TRACING/tracing_on
	counters >/tmp/after
	awk 'FNR == NR { was[$1] = $2; next } { printf "%s %.0f\n", $1, $2 - was[$1] }' \
		/tmp/before /tmp/after >>/tmp/changes
}

io_job() {
	measure "fio" run_fio
	cp /tmp/fio.out /lab/out/fio.json
}

run_fio() {
	local limit=(--time_based --runtime="${MS}ms")
	[ "$IOS" = 0 ] || limit=(--io_size="$((IOS * KB / NUMJOBS))k")
	$COUNT fio --name=bench --directory=/mnt --filename_format='bench.$jobnum' \
		--rw="$RW" --bs="${KB}k" --size=$((64 / NUMJOBS))m --numjobs="$NUMJOBS" \
		"${limit[@]}" --ioengine=psync --direct=1 --group_reporting \
		--percentile_list=50:99:99.9 --eta=never --output-format=json \
		--output=/tmp/fio.out || { cat /tmp/fio.out; return 1; }
}

# A tree of files is made, looked at and removed; one of these counts.
tree_job() {
	local n work trees=1 files=$IOS
	[ "$IOS" != 0 ] || { trees=$TREES; files=$FILES; }
	export -f tree_create tree_stat tree_remove
	for ((n = 0; n < trees; n++)); do
		for work in create stat remove; do
			drop_caches
			if [ $work = "$RW" ]; then
				measure "$work $files files" on_tree $work "$files"
			else
				need "$work $files files" on_tree $work "$files"
			fi
		done
	done
	echo "ops=$((trees * files))" "us=$SPENT"
}

on_tree() {
	$COUNT bash -c "tree_$1 /mnt/tree $2"
}

# tree_create DIRECTORY FILES: files without data, a hundred to a directory
tree_create() {
	local n
	mkdir "$1" || return
	for ((n = 0; n < $2; n++)); do
		((n % 100)) || mkdir "$1/$((n / 100))" || return
		: >"$1/$((n / 100))/$n" || return
	done
}

tree_stat() {
	local n
	for ((n = 0; n < $2; n++)); do
		[ -f "$1/$((n / 100))/$n" ] || return
	done
}

tree_remove() {
	rm -r "$1"
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

# The memory of connections that are made and used once: KiB for all of them
memory() {
	local free slab free_up slab_up free_after slab_after
	need "unmount" umount /mnt
	sleep 1
	read -r free slab < <(free_memory)
	need "mount with $CONNECTIONS connections" nfs_mount 3 rdma /mnt nconnect=$CONNECTIONS
	need "use each of them" use_connections $CONNECTIONS
	read -r free_up slab_up < <(free_memory)
	need "unmount" umount /mnt
	# The server closes its end asynchronously.
	sleep 2
	read -r free_after slab_after < <(free_memory)
	echo "connections=$CONNECTIONS free=$((free - free_up)) slab=$((slab_up - slab))" \
		"lost=$((free - free_after)) slab_lost=$((slab_after - slab))"
}

free_memory() {
	drop_caches
	awk '/^MemFree:/ { free = $2 } /^SUnreclaim:/ { print free, $2 }' /proc/meminfo
}

# use_connections COUNT: RPCs use the connections in turn.
use_connections() {
	dd if=/mnt/bench.0 of=/dev/null bs=4k count=$((8 * $1)) iflag=direct || return
	[ "$(connections)" -eq "$1" ]
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
	dd if="/mnt/$PORT/bench.0" of=/dev/null bs=64k count=$((4 * NCONNECT)) iflag=direct
}

# The CM's own queue pair is of another type.
queue_pairs() {
	rdma resource show qp | grep -c 'type RC'
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
