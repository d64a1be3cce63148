# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The packages rpcrdma-dkms and rpcrdma-tools in a root file system with two of Debian's kernels (in_root), and
# then in a guest that boots it (in_guest): see rpcrdma_lab/debs.py. Variables:
#
#   VERSION    of the packages
#   PREVIOUS   the version that is upgraded from
#   KERNEL     in_root: the release of the guest's kernel
#   OTHER      in_root: that of another one
#   MODULES    in_root: 1 if there is a package of the module for that kernel
#   TOOLS      1 if the host's Debian is not newer than the root file system: there its
#              rpcrdma-tools installs, otherwise it does not

. /lab/guest/tools.sh

# The guest compiles what was compiled before, see rpcrdma_lab/debs.py.
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=/var/cache/ccache CCACHE_COMPILERCHECK=none
export CCACHE_SLOPPINESS=include_file_mtime,include_file_ctime,time_macros
# ccache asks for the language of messages.
export LANG=C.UTF-8 LC_ALL=C.UTF-8
# No initial RAM disk is used.
export INITRD=No DEBIAN_FRONTEND=noninteractive

# apt_get WORDS: as an administrator would, from the repository alone. apt has a path of its
# own for what it runs.
apt_get() {
	apt-get -y -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 -o DPkg::Path="$PATH" "$@" </dev/null
}

# Have apt know what is in the folder of packages.
index() {
	(cd /repository && dpkg-scanpackages --multiversion . >Packages) && apt_get update
}

# The folder of packages becomes the only source.
use_repository() {
	rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
	mv /lab/repository /repository
	echo "deb [trusted=yes] file:/repository ./" >/etc/apt/sources.list
	# Modules that no guest uses
	printf 'path-exclude=%s\n' {,/usr}/lib/modules/'*'/kernel/{sound,drivers/{gpu,media,usb,iio,staging,input,hid,scsi,mtd,net/{wireless,ethernet}}}/'*' \
		>/etc/dpkg/dpkg.cfg.d/lab-modules
	index
}

# install_kernel RELEASE: its image and headers
install_kernel() {
	apt_get install --no-install-recommends "linux-image-$1" "linux-headers-$1"
}

# The file of rpcrdma that modprobe takes for a kernel
module_for() {
	modinfo -k "$1" -F filename rpcrdma
}

# takes_ours RELEASE, takes_inbox RELEASE: which module that is
takes_ours() {
	[[ $(module_for "$1") == /lib/modules/$1/updates/dkms/* ]] || { module_for "$1"; return 1; }
}

takes_inbox() {
	[[ $(module_for "$1") == /lib/modules/$1/kernel/* ]] || { module_for "$1"; return 1; }
}

# takes_package RELEASE: modprobe takes the module of the package for that kernel.
takes_package() {
	is "/lib/modules/$1/updates/rpcrdma.ko" "$(module_for "$1")"
}

# is_version RELEASE VERSION: of the module that modprobe takes
is_version() {
	is "$2" "$(modinfo -k "$1" -F version rpcrdma)"
}

# signed RELEASE: by the key that DKMS made on this machine. modinfo prints the serial
# number of its certificate.
signed() {
	local key
	key=$(openssl x509 -inform DER -in /var/lib/dkms/mok.pub -noout -serial | cut -d= -f2)
	is "DKMS module signing key" "$(modinfo -k "$1" -F signer rpcrdma)" &&
		is "$key" "$(modinfo -k "$1" -F sig_key rpcrdma | tr -d ':\n')"
}

# refuses RELEASE WHY: dkms builds nothing for the kernel, with one line that says why, and
# the kernel's package is not hurt.
refuses() {
	local out
	mkdir -p "/lib/modules/$1"
	ln -s "/usr/src/linux-headers-$KERNEL" "/lib/modules/$1/build"
	out=$(run-parts --exit-on-error --arg="$1" /etc/kernel/header_postinst.d 2>&1) ||
		{ echo "$out"; return 1; }
	rm -r "/lib/modules/$1"
	is 1 "$(grep -c "^rpcrdma: $2" <<<"$out")" &&
		! grep -i error <<<"$out"
}

# vendor_stack RELEASE: the one file that it is recognised by
vendor_stack() {
	mkdir -p "/lib/modules/$1/updates/dkms" && touch "/lib/modules/$1/updates/dkms/ib_core.ko"
}

# nothing_left: of the package, in the folders of DKMS and of all kernels
nothing_left() {
	! compgen -G '/usr/src/rpcrdma*' && ! compgen -G '/var/lib/dkms/rpcrdma*' &&
		! find /lib/modules -path '*updates*' -name 'rpcrdma*' | grep .
}

in_root() {
	need "apt takes the repository" use_repository
	need "a kernel installs" install_kernel "$OTHER"
	need "rpcrdma-dkms installs" apt_get install rpcrdma-dkms
	if [ "$TOOLS" = 1 ]; then
		need "rpcrdma-tools installs" apt_get install rpcrdma-tools
		check "its program starts" /usr/sbin/rpcrdma --version
	fi
	check "modprobe takes ours" takes_ours "$OTHER"
	check "it has the package's version" is_version "$OTHER" "$VERSION"
	need "a second kernel installs" install_kernel "$KERNEL"
	check "modprobe takes ours there, too" takes_ours "$KERNEL"
	check "it is signed by the key of DKMS" signed "$KERNEL"
	check "a kernel that no test covers is refused" \
		refuses 6.12.0-124.8.1.el10_1.x86_64 "no test covers kernel 6.12.0-124"
	need "a vendor's RDMA stack" vendor_stack 6.12.1+deb13-amd64
	check "its kernel is refused" refuses 6.12.1+deb13-amd64 ".*/ib_core.ko is of a vendor's"
	check "the first kernel goes" apt_get purge "linux-image-$OTHER" "linux-headers-$OTHER"
	check "its module goes with it" no_module "$OTHER"
	check "rpcrdma-dkms is purged" apt_get purge rpcrdma-dkms
	check "the kernel's own is back" takes_inbox "$KERNEL"
	check "nothing is left" nothing_left
	[ "$MODULES" != 1 ] || one_kernel
	need "the previous version installs" apt_get install "rpcrdma-dkms=$PREVIOUS-1"
	check "modprobe takes it" is_version "$KERNEL" "$PREVIOUS"
	say "$(ccache --show-stats | tr -s ' \n' ' ')"
	keep_packages
}

# The package of the module for one kernel
one_kernel() {
	check "rpcrdma-modules installs" apt_get install "rpcrdma-modules-$KERNEL"
	check "modprobe takes its module" takes_package "$KERNEL"
	check "rpcrdma-modules is purged" apt_get purge "rpcrdma-modules-$KERNEL"
	check "the kernel's own is back again" takes_inbox "$KERNEL"
	check "nothing is left of it" nothing_left
}

no_module() {
	! compgen -G "/lib/modules/$1/updates/dkms/rpcrdma*" && ! dkms status | grep "$1"
}

# The guest's repository has only our packages.
keep_packages() {
	rm /repository/linux-*
	index >/dev/null 2>&1
}

# In the guest

# The version of the module that is loaded; the kernel's own has none.
loaded_version() {
	cat /sys/module/rpcrdma/version 2>/dev/null || echo none
}

# Write, read and compare until /tmp/stop is there. The number of rounds goes to /tmp/rounds.
keep_busy() {
	local round=0
	rm -f /tmp/stop /tmp/broken
	head -c 2000000 /dev/urandom >/tmp/data
	until [ -e /tmp/stop ]; do
		dd if=/tmp/data of=/mnt/busy bs=256k oflag=direct conv=notrunc 2>/dev/null &&
			dd if=/mnt/busy bs=256k iflag=direct 2>/dev/null | cmp - /tmp/data ||
			{ touch /tmp/broken; return; }
		round=$((round + 1))
		echo $round >/tmp/rounds
		sleep 0.2
	done
}

# undisturbed COMMAND...: the command succeeds while the mount is in use, and the mount does
# not notice: no I/O fails, it goes on afterwards, and the connection is the same.
undisturbed() {
	local busy before after status
	before=$(connections_made)
	keep_busy &
	busy=$!
	wait_for 10 test -s /tmp/rounds
	"$@"
	status=$?
	after=$(cat /tmp/rounds)
	wait_for 10 more_rounds "$after" || { echo "no I/O afterwards"; status=1; }
	touch /tmp/stop
	wait $busy
	[ ! -e /tmp/broken ] || { echo "I/O has failed"; status=1; }
	is "$before" "$(connections_made)" || status=1
	rm -f /tmp/rounds
	return $status
}

more_rounds() {
	[ "$(cat /tmp/rounds)" -gt "$1" ]
}

# load VERSION: unload what is loaded, and load what modprobe takes.
load() {
	! loaded || unload_module || return
	modprobe rpcrdma && is "$1" "$(loaded_version)"
}

serve() {
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
	need "mount" nfs_mount 4.2 rdma /mnt
	check "RDMA is in use" mounted_as /mnt 4.2 rdma
	check "verified I/O" fio_verify --size=1m --bs=64k
	[ "$TOOLS" != 1 ] || tools_work
}

# rpcrdma-tools, with whichever version is loaded
tools_work() {
	local TOOL=/usr/sbin/rpcrdma
	need "verbs for user space" verbs_up
	check "rpcrdma show has the mount's connection" shows_mount
	check "rpcrdma doctor finds nothing: 0" exits 0 tool doctor $SERVER4
	check "it sees the mount" says "^ok .* 1 mount uses RDMA$"
}

shows_mount() {
	exits 0 tool show client && says " $SERVER4:$PORT .*${DEVICE}0/1 .*established"
}

stop() {
	check "unmount" unmount_all
	check "stop the NFS server" server_down
}

in_guest() {
	local release
	release=$(uname -r)
	need "network" net_up
	need "$DEVICE device" rdma_up
	need "modprobe takes the package's module" right_module
	need "load the previous version" load "$PREVIOUS"
	serve
	check "upgrade with the mount in use" undisturbed apt_get install rpcrdma-dkms
	check "the new version is there" is_version "$release" "$VERSION"
	check "it is signed" signed "$release"
	check "the old one stays loaded" is "$PREVIOUS" "$(loaded_version)"
	stop
	need "the next load takes the new one" load "$VERSION"
	serve
	check "purge with the mount in use" undisturbed apt_get purge rpcrdma-dkms
	check "nothing is left" nothing_left
	stop
	check "the next load takes the kernel's own" load none
	check "modprobe takes the kernel's own" takes_inbox "$release"
	check "unload it" unload_module
}
