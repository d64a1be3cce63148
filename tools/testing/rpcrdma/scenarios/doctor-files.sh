# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma doctor names what files, sysfs and the log say is wrong, each thing on its own
# guests:  um/rxe
# also:    um debian-6.1 debian-13-7
# devices: rxe siw
# modules: ours
# limit:   120
# faults:  the log has what the doctor is to find
#
# Another file is mounted over one that the doctor reads, where the guest itself cannot be made
# so: a kernel that wants signed modules would not load ours any more.

. /lab/guest/doctor.sh

SECURE_BOOT=efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c

client() {
	client_begin
	need "the program" tool_up
	check "all is well: 0" well
	which_module
	vendors_stack
	other_kernels
	signatures
	names_of_module
	limits_of_programs
	mount_tables
	lines_of_log
	check "all is well again: 0" well
}

# What modprobe would take

which_module() {
	local built_in=kernel/net/sunrpc/xprtrdma/rpcrdma.ko release
	release=$(uname -r | tr + .)	# for a pattern
	grep '^[^:]*/ib_core\.ko' $MODULES/modules.dep >/tmp/modules.dep
	check "no module for this kernel" as_if modules.dep \
		finds_only "there is no rpcrdma for kernel $release"
	echo $built_in >/tmp/modules.builtin
	check "the kernel has it built in" as_if modules.dep as_if modules.builtin \
		finds_only "rpcrdma is built into kernel $release"
	echo "$built_in:" >>/tmp/modules.dep
	check "modprobe would take the kernel's own" as_if modules.dep \
		finds_only "for kernel $release modprobe takes the kernel's own rpcrdma"
	other_build
	mkdir -p /tmp/no-taint/rpcrdma
	check "it is not known which one is loaded" in_place /sys/module /tmp/no-taint \
		cannot_tell "/sys/module/rpcrdma/taint cannot be read"
}

other_build() {
	local file
	file=$(modinfo -F filename rpcrdma)
	LC_ALL=C sed 's/srcversion=..../srcversion=0000/' "$file" >/tmp/rpcrdma.ko
	check "another build is installed" in_place "$file" /tmp/rpcrdma.ko \
		notes "the loaded rpcrdma is not the one that is installed"
}

# Its modules have other symbols, so a module that was built against the kernel's does not load.
vendors_stack() {
	local file=updates/dkms/ib_core.ko.xz
	{ grep '^[^:]*/rpcrdma\.ko' $MODULES/modules.dep; echo "$file:"; } >/tmp/modules.dep
	dmesg --clear
	echo "rpcrdma: disagrees about version of symbol rdma_create_id" >/dev/kmsg
	check "a vendor's RDMA stack" as_if modules.dep \
		finds_only "has a vendor's RDMA stack: modprobe takes ${MODULES//+/.}/$file"
	check "it does not say that a build helps" says "[-]> do not build rpcrdma against it"
	dmesg --clear
}

# Another kernel than the running one, and what DKMS has done for it

other_kernels() {
	local kernel=9.9.9-1-amd64 modules=/lib/modules/9.9.9-1-amd64
	local own="for kernel 9.9.9-1-amd64 modprobe takes the kernel's own rpcrdma"
	local log=/var/lib/dkms/rpcrdma/0.1/build/make.log
	mkdir -p $modules/{kernel,build} /usr/src/rpcrdma-0.1 ${log%/*}
	accept "^9[.]9[.]9-[0-9]+-amd64\$"
	echo "kernel/net/sunrpc/xprtrdma/rpcrdma.ko:" >$modules/modules.dep
	index $modules/modules.dep
	check "a newer kernel without headers" finds_only "$own: it has no headers"
	check "it names their package" says "[-]> .* linux-headers-$kernel"
	touch $modules/build/Makefile
	check "nothing is built for a newer kernel" finds_only "$own: DKMS has not built it"
	printf 'DKMS make.log for rpcrdma-0.1 for kernel %s (x86_64)\nx.c:1: error: lab\n' $kernel >$log
	check "the build for a newer kernel failed" \
		finds_only "$own: DKMS could not build it: x.c:1: error: lab"
	accept "^$"
	check "DKMS refuses a newer kernel" finds_only "$own: no test covers this kernel"
	check "it advises another kernel" says "[-]> use a kernel that the tests cover"
	mv $modules /lib/modules/1.0.0-amd64
	check "DKMS refuses an older kernel: 0" notes "for kernel 1.0.0-amd64 modprobe takes"
	echo "updates/dkms/rpcrdma.ko:" >/lib/modules/1.0.0-amd64/modules.dep
	index /lib/modules/1.0.0-amd64/modules.dep
	check "each kernel has it: 0" well
	rm -r /lib/modules/1.0.0-amd64 /usr/src/rpcrdma-0.1 /var/lib/dkms
}

# accept EXPRESSION: the kernels that DKMS builds for
accept() {
	printf '%s\n' PACKAGE_NAME=rpcrdma "BUILD_EXCLUSIVE_KERNEL='$1'" >/usr/src/rpcrdma-0.1/dkms.conf
}

# What wants a signature. The module has none indeed.

signatures() {
	mkdir -p /tmp/firmware/${SECURE_BOOT%/*} /tmp/kernel/security \
		/tmp/module/{rpcrdma,module/parameters}
	printf '\6\0\0\0\1' >/tmp/firmware/$SECURE_BOOT
	check "Secure Boot" in_place /sys/firmware /tmp/firmware \
		finds_only "Secure Boot is on, and the module is not signed"
	lockdown
	cp /sys/module/rpcrdma/{taint,srcversion} /tmp/module/rpcrdma
	echo Y >/tmp/module/module/parameters/sig_enforce
	check "module.sig_enforce" in_place /sys/module /tmp/module \
		finds_only "module.sig_enforce is set, and the module is not signed"
	echo N >/tmp/module/module/parameters/sig_enforce
	check "signatures are not enforced: 0" in_place /sys/module /tmp/module exits 0 tool doctor
	: >/tmp/empty
	check "it is not known whether it is signed" in_place /sys/firmware /tmp/firmware \
		in_place "$(modinfo -F filename rpcrdma)" /tmp/empty \
		cannot_tell "Secure Boot is on, and it is not known whether"
}

lockdown() {
	local mode
	for mode in integrity confidentiality; do
		echo "none integrity confidentiality" | sed "s/$mode/[$mode]/" \
			>/tmp/kernel/security/lockdown
		check "lockdown: $mode" in_place /sys/kernel /tmp/kernel \
			finds_only "the kernel is locked down, and the module is not signed"
	done
	echo "[none] integrity confidentiality" >/tmp/kernel/security/lockdown
	check "no lockdown: 0" in_place /sys/kernel /tmp/kernel exits 0 tool doctor
}

# Names by which the kernel asks for it

names_of_module() {
	local alias
	for alias in rpcrdma6 svcrdma xprtrdma; do
		grep ' rpcrdma$' $MODULES/modules.alias | grep -v "alias $alias " >/tmp/modules.alias
		check "an alias is missing: $alias" as_if modules.alias \
			finds_only "has no alias $alias"
	done
	switched_off /etc/modprobe.d/lab.conf "blacklist rpcrdma"
	switched_off /run/modprobe.d/lab.conf "install rpcrdma /bin/false"
}

switched_off() {
	mkdir -p "${1%/*}"
	echo "$2" >"$1"
	check "modprobe is told not to load it: $2" \
		finds_only "modprobe is told not to load rpcrdma: ${2% /*}"
	rm "$1"
}

# Rights and limits of programs

limits_of_programs() {
	check "little memory may be locked" by_way_of "prlimit --memlock=65536:65536 setpriv
		--bounding-set=-ipc_lock --inh-caps=-ipc_lock" \
		finds_only "programs may lock only 64 KiB"
	check "as much may be locked by root: 0" by_way_of "prlimit --memlock=65536:65536" \
		exits 0 tool doctor
	check "limits cannot be read" in_own limits /tmp/empty \
		cannot_tell "the limit of locked memory cannot be read"
	check "any user may know that the server listens" by_way_of "$NOBODY" \
		knows "the NFS server listens for RDMA at port $PORT"
}

# knows PATTERN: it says that this is so, whatever else it says.
knows() {
	tool doctor >/dev/null
	says "^ok +[a-z]+ +$1"
}

# Mounts

mount_tables() {
	need "mount" nfs_mount 4.2 rdma /mnt
	sed '/^\txprt:\trdma/p; s/^\txprt:\trdma /\txprt:\ttcp /' /proc/self/mountstats >/tmp/mountstats
	check "a mount over RDMA with a connection over TCP" in_own mountstats /tmp/mountstats \
		finds_only "/mnt is mounted with proto=rdma, and has a connection over tcp"
	need "umount" unmount /mnt
	seq -f "36 35 0:40 / /mnt%g rw - nfs4 s:/ rw,proto=rdma" 1100 >/tmp/mountinfo
	check "many mounts: 0" in_own mountinfo /tmp/mountinfo exits 0 tool doctor
	check "it has seen all of them" says "^ok .* 1100 mounts use RDMA$"
	# Nothing can be read from the first pages of a process.
	check "mounts cannot be read" in_own mountinfo '/proc/$$/mem' \
		cannot_tell "/proc/self/mountinfo cannot be read"
	echo "SRC=$SERVER4:$EXPORT TARGET=/mnt ROOT=/ ATTRS=proto=rdma" >/tmp/utab
	mkdir -p /run/mount
	touch /run/mount/utab
	PORT=2049 need "mount over TCP" nfs_mount 4.2 tcp /mnt
	check "the mount command asked for RDMA, and the mount has TCP" \
		in_place /run/mount/utab /tmp/utab \
		finds_only "/mnt is mounted over tcp, and the mount command asks for RDMA"
	need "umount" unmount /mnt
}

# The log. These lines are as the module and the kernel write them.

lines_of_log() {
	logged "wrong" "rxe0: not usable: no memory management extensions"
	logged "wrong" "rxe0: not usable: no memory; load the module again"
	logged "wrong" "disagrees about version of symbol rdma_create_id"
	logged "wrong" "Unknown symbol rdma_create_id (err -2)"
	logged "wrong" "192.0.2.1:20049: work request failed: local protection error (vendor error 0x0)"
	logged "wrong" "192.0.2.1:20049: rxe0 does not stop the queue pair: -EIO: its memory is lost, and rpcrdma stays loaded"
	logged "wrong" "192.0.2.1:20049: refused: too many connection requests wait"
	logged "wrong" "192.0.2.1: refused: too little memory for another connection: add memory"
	logged "wrong" "192.0.2.1:20049: not connected: -ECONNREFUSED: consumer defined"
	logged "wrong" "192.0.2.1:20049: not connected: -ETIMEDOUT"
	logged "wrong" "192.0.2.1:20049: closed: -EPROTO"
	logged "note" "192.0.2.1:20049: no answer in version 2: version 1 for an hour"
	echo "rpcrdma: 192.0.2.1:20049: closed: -EPROTO" >/dev/kmsg
	echo "rpcrdma: 192.0.2.1:20049: connected on rxe0 port 1" >/dev/kmsg
	check "what is past is not found: 0" exits 0 tool doctor
	dmesg --clear
	chmod 600 /dev/kmsg
	check "the log is not for this user" by_way_of "$NOBODY" \
		cannot_tell "the kernel's log cannot be read: Permission denied"
	chmod 644 /dev/kmsg
}

# logged VERDICT LINE
logged() {
	local pattern=${2//[()]/.}
	dmesg --clear
	echo "rpcrdma: $2" >/dev/kmsg
	case $1 in
	wrong) check "the log says: $2" finds_only "\"$pattern\"" ;;
	note) check "the log says: $2" notes "\"$pattern\"" ;;
	esac
	dmesg --clear
}
