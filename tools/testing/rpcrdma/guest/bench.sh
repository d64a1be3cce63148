# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what a module costs; rpcrdma_lab/bench.py compares modules and versions
# guests:  um debian-6.12
# steps:   up job traced_job counted_job memory down
#
# Figures are printed as lines of NAME=NUMBER. VERSION is the highest version of the protocol
# that both ends may use, if the module is ours. These variables describe a job:
#
#   RW       read or write
#   KB       the size of one I/O
#   NUMJOBS  how many processes do I/O, each of them one I/O at a time
#   IOS      how many I/Os they do in sum; 0 if they do them for a time
#   MS       that time

TRACING=/sys/kernel/tracing
CONNECTIONS=16

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
	server
	[ "$MODULE" = inbox ] || need "allow version $VERSION" allow_version
	need "make files" make_files
	need "mount" nfs_mount 3 rdma /mnt
	need "v3 over rdma is what is mounted" mounted_as /mnt 3 rdma
	[ "$MODULE" = inbox ] || need "version $VERSION is used" uses_version
	grep ' /mnt nfs ' /proc/mounts | grep -o '[rw]size=[0-9]*'
	# The size in /proc/modules is not that of the code only.
	awk '/\[rpcrdma\]/ && $2 ~ /[tT]/ { print $1 }' /proc/kallsyms | sort |
		sed -n '1s/^/text=0x/p; $s/^/last_symbol=0x/p'
}

allow_version() {
	tune rdma_version "$VERSION" && tune svc_rdma/version "$VERSION"
}

# The version is the 28th number of a connection in mountstats.
uses_version() {
	is "$VERSION" "$(awk '$1 == "xprt:" && $2 == "rdma" { print $30 }' /proc/self/mountstats)"
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

job() {
	local switches rpcs packets switches_before rpcs_before packets_before
	read -r switches_before rpcs_before packets_before < <(counters)
	need "fio" run_fio
	read -r switches rpcs packets < <(counters)
	fio_result </tmp/fio.out
	echo "switches=$((switches - switches_before)) rpcs=$((rpcs - rpcs_before))" \
		"packets=$((packets - packets_before))"
}

run_fio() {
	local limit=(--time_based --runtime="${MS}ms")
	[ "$IOS" = 0 ] || limit=(--io_size="$((IOS * KB / NUMJOBS))k")
	fio --name=bench --directory=/mnt --filename_format='bench.$jobnum' \
		--rw="$RW" --bs="${KB}k" --size=$((64 / NUMJOBS))m --numjobs="$NUMJOBS" \
		"${limit[@]}" --ioengine=psync --direct=1 --group_reporting \
		--eta=never --minimal --output=/tmp/fio.out || { cat /tmp/fio.out; return 1; }
}

# What fio did, from its terse output of version 3
fio_result() {
	awk -F';' -v kb="$KB" -v at="$([ "$RW" = read ] && echo 6 || echo 47)" \
		'{ print "ops=" int($at / kb), "ms=" $(at + 3) }'
}

# Context switches, RPCs and packets so far. None of these counters is the module's.
counters() {
	awk '
		$1 == "ctxt" { switches = $2 }
		$1 == "device" { here = 0 }
		here { rpcs += $2 }
		$1 == "per-op" { here = 1 }
		FILENAME ~ /sent_pkts/ { packets = $1 }
		FILENAME ~ /snmp/ && $1 == "Tcp:" { packets = $12 }
		END { print switches, rpcs + 0, packets }' \
		/proc/stat /proc/self/mountstats "$(packet_counter)"
}

# With siw the packets are TCP's. Nothing else uses TCP while a job runs.
packet_counter() {
	case $DEVICE in
	rxe) echo /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts ;;
	siw) echo /proc/net/snmp ;;
	esac
}

# Run a job and count the events of the RDMA core and of workqueues.
traced_job() {
	need "trace" trace_on
	job
	check "stop tracing" trace_off
	check "no event was lost" not grep -q '^overrun: [1-9]' $TRACING/per_cpu/cpu0/stats
	count_events <$TRACING/trace
	echo >$TRACING/trace
}

events() {
	echo $TRACING/events/{rdma_core/{cq_schedule,cq_poll,mr_alloc},workqueue/workqueue_execute_start}
}

trace_on() {
	local event
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
}

count_events() {
	awk '
		/ cq_schedule: / { interrupts++ }
		/ cq_poll: / { polls++; if ($NF > 0) completions += $NF }
		/ mr_alloc: / { allocations++ }
		/ workqueue_execute_start: / { works++ }
		END {
			print "interrupts=" interrupts + 0, "polls=" polls + 0,
				"completions=" completions + 0, "allocations=" allocations + 0,
				"works=" works + 0
		}'
}

# Run a job and count its instructions: /lab/counted tells the plugin of this guest's QEMU
# when fio begins and ends.
counted_job() {
	fio() {
		/lab/counted fio "$@"
	}
	job
}

# The memory of connections that are made and used once: KiB for all of them
memory() {
	local free slab free_up slab_up free_after slab_after
	need "unmount" umount /mnt
	sleep 1
	read -r free slab < <(free_memory)
	need "mount with $CONNECTIONS connections" nfs_mount 3 rdma /mnt nconnect=$CONNECTIONS
	need "use each of them" use_connections
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

# RPCs use the connections in turn.
use_connections() {
	dd if=/mnt/bench.0 of=/dev/null bs=4k count=$((8 * CONNECTIONS)) iflag=direct || return
	[ "$(connections)" -eq $CONNECTIONS ]
}

# How many transports have connected at least once
connections() {
	awk '$1 == "xprt:" && $5 > 0 { n++ } END { print n + 0 }' /proc/self/mountstats
}
