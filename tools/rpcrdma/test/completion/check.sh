#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Whether rpcrdma.bash completes words, and runs nothing that a mount's name has. Prints KTAP.

here=$(cd "${0%/*}" && pwd)
# shellcheck source=/dev/null
. "$here/../../rpcrdma.bash"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
number=0
failed=0

cat >"$folder/mounts" <<EOF
10.17.0.1:/a /mnt nfs4 rw,proto=rdma 0 0
[fd17::1]:/b /mnt2 nfs rw,proto=rdma6 0 0
server:/c /tcp nfs4 rw,proto=tcp 0 0
10.17.0.1:/d /mnt/\$(touch\${IFS}$folder/ran) nfs4 rw,proto=rdma 0 0
\$(touch\${IFS}$folder/ran):/e /mnt/two\\040words nfs4 rw,proto=rdma 0 0
EOF

# Another /proc/mounts
# shellcheck disable=SC2317
sed() {
	command sed "${@/#\/proc\/mounts/$folder/mounts}"
}

# completes LINE WORDS: what Tab behind LINE offers
completes() {
	local result=ok
	COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=' :' COMPREPLY=()
	_rpcrdma 2>/dev/null
	number=$((number + 1))
	if [ "${COMPREPLY[*]}" != "$2" ] || [ -e "$folder/ran" ]; then
		result="not ok"
		failed=1
		echo "# ${COMPREPLY[*]}"
	fi
	echo "$result $number - \"$1\""
}

echo "KTAP version 1"
completes "rpcrdma st" "stat status"
completes "rpcrdma show mount " "/mnt /mnt2"
completes "rpcrdma show mount /mnt2" "/mnt2"
completes "rpcrdma show to " "10.17.0.1 fd17::1 server"
completes "rpcrdma show to fd17:" ":1"
completes "rpcrdma show state es" "established"
completes "rpcrdma show client --s" "--sort"
completes "rpcrdma metrics -o " ""
completes "rpcrdma ping --si" "--size"
completes "rpcrdma ping -s " ""
completes "rpcrdma ping --deadline " ""
completes "rpcrdma ping -qc " ""
completes "rpcrdma ping fd17:" ":1"
completes "rpcrdma doctor fd17::" "1"
completes "rpcrdma show listeners --sort A" "ACCEPTED"
completes "rpcrdma show mod" "module"
completes "rpcrdma reload --" "--force --wait --help"
completes "rpcrdma reload --wait " ""
completes "rpcrdma show state '" ""
echo "1..$number"
exit $failed
