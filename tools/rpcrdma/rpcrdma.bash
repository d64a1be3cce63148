# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Completion of rpcrdma for bash. It needs nothing of the package bash-completion but
# being loaded by it.

_rpcrdma() {
	local word=${COMP_WORDS[COMP_CWORD]} words table="--columns --noheadings --raw"

	case $COMP_CWORD,${COMP_WORDS[1]} in
	1,*) words="show stat monitor ping doctor --help --version" ;;
	*,show) words="client server listeners devices --details --json $table --help" ;;
	*,stat) words="--json $table --help" ;;
	*,monitor) words="--json --help" ;;
	*,ping) words="-c -i -W -4 -6 -q --program --rdma-version --json --help" ;;
	*,doctor) words="--json --quiet --help" ;;
	*) words= ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	case ${COMP_WORDS[1]} in
	ping | doctor) [ "$COMP_CWORD" -lt 2 ] || _rpcrdma_hosts "$word" ;;
	esac
}

# Hosts of /etc/hosts and, as the most likely ones, the servers of NFS mounts
_rpcrdma_hosts() {
	local hosts

	hosts=$(sed -n 's/^\([^# :]*\):.* nfs4\? .*/\1/p' /proc/mounts | sort -u)
	mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$hosts" -- "$1"; compgen -A hostname -- "$1")
}

complete -F _rpcrdma rpcrdma
