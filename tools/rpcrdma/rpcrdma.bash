# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Completion of rpcrdma for bash. It needs nothing of the package bash-completion but
# being loaded by it.

_rpcrdma() {
	local word before command words i
	local table="--columns --sort --top --noheadings --raw"

	# What Readline takes for a word ends at each colon, of which IPv6 addresses have many.
	before=${COMP_LINE:0:COMP_POINT}
	word=${before##*[[:blank:]]}
	read -ra before <<<"${before%"$word"}"
	for ((i = 1; i < ${#before[@]}; i++)); do
		case ${before[i]} in
		-*) ;;
		*) command=${before[i]}; break ;;
		esac
	done

	case $command,${before[-1]} in
	*,-[ciWws] | *,-[!-]*[ciWws] | *,--count | *,--interval | *,--timeout | *,--deadline | \
		*,--size | *,--program | *,--top | reload,--wait) words= ;;
	metrics,-o | metrics,--output) compopt -o default; words= ;;
	*,--rdma-version) words="1 2" ;;
	stat,--columns | stat,--sort)
		words="ID ROLE PEER RPC/s SENT/s RECV/s P50 P99 CREDITS WAITS/s ERRORS/s" ;;
	*,--columns | *,--sort)
		words="ID PEER DEVICE STATE SINCE CREDITS ERRORS SENT RECEIVED P99 INLINE V SWITCH"
		words+=" MOUNTS CLIENT ROLE CONNECTS RPCS WAITS LOCAL ACCEPTED REFUSED WAITING"
		words+=" USABLE PROTOCOL NETDEV PAGES BUILD VERSION SRCVERSION FILE" ;;
	show,to) words=$(_rpcrdma_servers) ;;
	show,device) words=$(ls /sys/class/infiniband 2>/dev/null) ;;
	show,state) words="resolving connecting pending accepting established closing closed" ;;
	show,mount) words=$(_rpcrdma_mounts) ;;
	,*) words="show stat monitor metrics ping doctor status reload help version"
		words+=" --json --help --version" ;;
	help,*) words="show stat monitor metrics ping doctor status reload" ;;
	show,*) words="client server listeners devices peers module to device state mount"
		words+=" --all --details --json $table --help" ;;
	stat,*) words="peers --json $table --help" ;;
	monitor,*) words="--json --help" ;;
	metrics,*) words="--output --per-peer --help" ;;
	status,*) words="--json --nagios --help" ;;
	reload,*) words="--force --wait --help" ;;
	ping,*) words="--count --interval --timeout --deadline --size --ipv4 --ipv6 --program"
		words+=" --rdma-version --quiet --json --help $(_rpcrdma_hosts)" ;;
	doctor,*) words="--json --quiet --help $(_rpcrdma_hosts)" ;;
	*) words= ;;
	esac
	# Not by compgen -W, which expands words as the shell does, and servers choose some of them.
	read -rd '' -a words <<<"$words"
	COMPREPLY=()
	for i in "${words[@]}"; do
		[[ $i != "$word"* ]] || COMPREPLY+=("$i")
	done
	# Readline replaces only what is behind the last colon.
	[[ $word != *:* || $COMP_WORDBREAKS != *:* ]] ||
		COMPREPLY=("${COMPREPLY[@]#"${word%:*}:"}")
}

# Names that the shell would not take as they are, as with blanks, are left out here and below.
_rpcrdma_mounts() {
	sed -n 's/^[^ ]* \([[:alnum:]/.,:@%+_-]*\) nfs4\? .*proto=rdma.*/\1/p' /proc/mounts
}

# Servers of NFS mounts; IPv6 addresses are in brackets there.
_rpcrdma_servers() {
	sed -n 's/^\[\([[:alnum:]:.%_-]*\)\]:.* nfs4\? .*/\1/p
		s/^\([[:alnum:]._-]*\):.* nfs4\? .*/\1/p' /proc/mounts | sort -u
}

# They are the most likely hosts; then those of /etc/hosts
_rpcrdma_hosts() {
	_rpcrdma_servers
	compgen -A hostname
}

complete -F _rpcrdma rpcrdma
