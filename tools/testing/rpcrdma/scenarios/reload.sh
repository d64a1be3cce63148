# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma reload replaces a server's module while a client writes, or leaves the old one
# guests:  um
# also:    um-7-debug debian-6.1 debian-13-7
# devices: rxe
# ends:    2
# modules: ours
# limit:   150
# faults:  the server's module is replaced
#
# A build is the module's file with another srcversion, mounted over the installed one.

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. /lab/guest/tools.sh

# Where DKMS keeps what it has built
KEPT=/var/lib/dkms/rpcrdma/0/$(uname -r)/x86_64/module
BUILD=0

server() {
	server_begin
	need "listen on another port, too" second_port
	need "the program" tool_up
	# The client can read what has failed.
	ln -sf $LOCAL/orders.log /tmp/orders.log
	take_orders &
	echo $! >/tmp/orders.pid
}

second_port() {
	local PORT=20050
	listen
}

client() {
	local vers
	client_begin
	need "the program" tool_up
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt lookupcache=none
		check "v$vers: the mount holds the client's module" held
		check "v$vers: clients are not cut off unasked" told refuses
		reconnects "v$vers: the server's module is replaced" told replaces
		reconnects "v$vers: the new module does not load" told undoes
		check "umount v$vers" umount /mnt
	done
}

server_done() {
	kill "$(cat /tmp/orders.pid)"
	# It may leave a program behind that has its log open.
	wait_for 5 not fuser -s $LOCAL/orders.log
	rm -rf /tmp/orders.log /var/lib/dkms/rpcrdma
	check "the build that was installed before" umount "$(modinfo -F filename rpcrdma)"
	server_end
}

held() {
	exits 1 tool reload --force && says "/mnt is mounted over RDMA, and holds the module"
}

# told FUNCTION: the server runs it.
told() {
	order "$1" || { cat /mnt/orders.log; return 1; }
}

# At the server

# install_build SCRIPT: what sed makes of the module's file
install_build() {
	local file
	file=$(modinfo -F filename rpcrdma)
	umount "$file" 2>/dev/null
	LC_ALL=C sed "$1" "$file" >/tmp/build.ko && mount --bind /tmp/build.ko "$file"
}

# runs BUILD
runs() {
	is "$1" "$(cut -c -4 /sys/module/rpcrdma/srcversion)"
}

listens() {
	is "rdma 20049 rdma 20049 rdma 20050 rdma 20050" \
		"$(grep rdma /proc/fs/nfsd/portlist | sort | xargs)"
}

refuses() {
	local before
	before=$(cut -c -4 /sys/module/rpcrdma/srcversion)
	BUILD=$((BUILD + 1))
	install_build "s/srcversion=..../srcversion=000$BUILD/" || return
	tool doctor
	says "the loaded rpcrdma is not the one that is installed" &&
		exits 0 tool show module && says "The installed one waits" &&
		exits 1 tool reload && says "1 connection of clients: 10\.17\.0\.2:" && runs "$before"
}

replaces() {
	local monitor
	timeout 60 "$TOOL" monitor &
	monitor=$!
	wait_for 10 in_a_group && exits 0 tool reload --force &&
		says "Clients are cut off, 1 connection: 10\.17\.0\.2:" && runs 000$BUILD &&
		listens && { wait $monitor; is 2 $?; }
}

# A symbol that no kernel has
undoes() {
	mkdir -p "$KEPT" && cp /tmp/build.ko "$KEPT/rpcrdma.ko" || return
	install_build "s/srcversion=..../srcversion=9999/; s/svc_reg_xprt_class/svc_reg_xprt_clasX/g" ||
		return
	exits 2 tool reload --force && says "does not load, the old one runs again" &&
		runs 000$BUILD && listens
}
