# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   two machines with our package, nfs.conf and fstab: Debian's Prometheus has their metrics,
# shows:   and our alerts fire while the server's cable is pulled
# also:    debian-6.1 debian-13
# devices: rxe
# ends:    2
# modules: ours
# limit:   600
# root:    prometheus
# steps:   server/1 client/2 alerts/1 client_done/2 server_done/1
# faults:  a cable is pulled
#
#   end 1: server                       end 2: client
#   +---------------------------+       +---------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt/data        |
#   | Prometheus, node_exporter |       | node_exporter             |
#   | rxe0 on lab0: 10.17.0.1   |       | rxe0 on lab0: 10.17.0.2   |
#   |   | the cable to pull     |       |   |                       |
#   | port0 of switch, a bridge |       | port0 of switch           |
#   |   |   with 10.18.0.1      |       |   |   with 10.18.0.2      |
#   | eth0 ---------------------|-------|-- eth0                    |
#   +---------------------------+       +---------------------------+
#
# The module is from its package, too, if the host can build that for the guest's kernel.
#
# Prometheus reads the client over 10.18.0.0/24, which stays. Its intervals are Debian's, and the
# alerts those of the package: one needs two minutes after the cable was pulled, one seven.

. "${BASH_SOURCE%/*}/../guest/machine.sh"

RULES=/usr/share/doc/rpcrdma-tools/examples/rpcrdma.rules.yml
SERVER_HOST=localhost:9100 CLIENT_HOST=10.18.0.2:9100

server() {
	begins
	need "an export" make_export
	need "nfs.conf and exports" make_server
	starts "server"
	check "nfs.conf: the server listens on rdma" server_listens
	installs
	need "Prometheus gets the alerts, and reads the client" make_prometheus
}

client() {
	begins
	ln -s /dev/null $SYSTEM/prometheus.service
	starts "client"
	installs
	need "fstab" cp $EXAMPLES/fstab $ETC
	stops "client"
	starts "client, again"
	need "fstab: it is mounted over RDMA" inside uses_rdma /mnt/data
	check "rpcrdma show names the mount" shows_mount
	need "a service uses it" inside systemd-run --unit=touches -p RequiresMountsFor=/mnt/data \
		bash -c 'while sleep 1; do touch /mnt/data/now; done'
}

begins() {
	need "networks" networks_up
	if [ -e /lab/rpcrdma-modules.deb ]; then
		need "the module's package installs" install_module
	else
		skip "the module's package installs" "the host cannot compile for this kernel"
	fi
	begin
	need "its /etc" make_etc
	# Packages have their documentation there.
	rm $ETC/dpkg/dpkg.cfg.d/99mmdebstrap
}

# Both networks have one cable, so that a host has to answer for an address only where it is.
networks_up() {
	modprobe -qa virtio_net bridge veth
	sysctl -qw net.ipv4.conf.all.arp_ignore=1 &&
		ip link add lab0 type veth peer name port0 && ip link add switch type bridge &&
		ip link set port0 master switch up && ip link set "$(cable)" master switch up &&
		ip addr add "10.18.0.$END/24" dev switch && ip link set switch up
}

# In place of the lab's own. dpkg does not know the guest's kernel.
install_module() {
	rm "/lib/modules/$(uname -r)/updates/rpcrdma.ko" &&
		dpkg -i --force-depends /lab/rpcrdma-modules.deb
}

installs() {
	need "rpcrdma-tools installs" inside dpkg -i /lab/rpcrdma-tools.deb
	need "its timer is enabled" inside systemctl enable --now rpcrdma-metrics.timer
	need "rpcrdma-tools is upgraded" inside dpkg -i /lab/rpcrdma-tools.deb
	check "its timer goes on" inside systemctl is-active rpcrdma-metrics.timer
}

shows_mount() {
	inside rpcrdma show client | grep " $SERVER4:$PORT .* established .* /mnt/data"
}

make_prometheus() {
	sed -i -e "s|^rule_files:|&\n  - $RULES|" -e "s/'$SERVER_HOST'/&, '$CLIENT_HOST'/" \
		$ETC/prometheus/prometheus.yml && inside systemctl restart prometheus
}

alerts() {
	local connected="instance=\"$CLIENT_HOST\",role=\"client\",peer=\"$SERVER4\""
	need "Prometheus has metrics of both machines" wait_for 120 finds 'count(rpcrdma_up == 1) == 2'
	check "it has the mount's connection" wait_for 60 \
		finds "sum(rpcrdma_connections_established{$connected}) == 1"
	check "it has the rate of its RPCs" wait_for 120 \
		finds "rate(rpcrdma_rpcs_total{$connected}[2m]) > 0"
	check "there is no alert" ended 'Rpcrdma.*'
	need "the server's cable is pulled" ip link set port0 down
	check "its port is down: an alert" wait_for 240 fires RpcrdmaPortDown $SERVER_HOST
	check "the client cannot connect: an alert" wait_for 450 \
		fires RpcrdmaServerUnreachable $CLIENT_HOST
	say "alerts: $(prometheus query 'query=ALERTS{alertstate="firing"}' |
		jq -c '[.data.result[].metric | .alertname + " of " + .instance]')"
	touch /tmp/pulled
	need "the cable is back" ip link set port0 up
	check "the client's service goes on" wait_for 60 test $LOCAL/now -nt /tmp/pulled
	check "both alerts end" wait_for 150 ended 'RpcrdmaPortDown|RpcrdmaServerUnreachable'
}

# prometheus PATH PARAMETER: what its HTTP API answers
prometheus() {
	curl -sSfG --data-urlencode "$2" "localhost:9090/api/v1/$1"
}

# finds EXPRESSION: whether it has a result now.
finds() {
	prometheus query "query=$1" | jq -e '.data.result | length > 0'
}

# fires ALERT INSTANCE
fires() {
	finds "ALERTS{alertname=\"$1\",alertstate=\"firing\",instance=\"$2\"}"
}

# ended PATTERN: no such alert is there, firing or pending.
ended() {
	finds "absent(ALERTS{alertname=~\"$1\"})" || { prometheus query 'query=ALERTS'; return 1; }
}

client_done() {
	stops "client"
	end
}

server_done() {
	stops "server"
	check "the export is not in use" umount /srv
	end
}
