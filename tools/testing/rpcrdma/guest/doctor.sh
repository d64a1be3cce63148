# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios about rpcrdma doctor: what it has to say, and ways to plant what is
# wrong.

. /lab/guest/tools.sh

MODULES=/lib/modules/$(uname -r)
# Runs a program as a user without any rights
NOBODY="setpriv --reuid=65534 --regid=65534 --clear-groups"

# well [HOST]: it finds nothing. The log begins here: earlier scenarios in this guest have left
# errors there.
well() {
	dmesg --clear
	exits 0 tool doctor "$@"
}

# says_what_to_do VERDICT PATTERN: it has said this, and what to do about it.
says_what_to_do() {
	says "^$1 +[a-z]+ +.*$2" &&
		grep -A 1 -E "^$1 +[a-z]+ +.*$2" /tmp/tool.out | sed -n 2p | grep -E '^ {18}-> .'
}

# finds PATTERN [ARGUMENT...]: the doctor says that this is wrong.
finds() {
	exits 1 tool doctor "${@:2}" && says_what_to_do wrong "$1"
}

# finds_only PATTERN [ARGUMENT...]: and nothing else
finds_only() {
	finds "$@" && is 1 "$(grep -c '^wrong ' /tmp/tool.out)"
}

# notes PATTERN [ARGUMENT...]: it says so, and does not take it for wrong.
notes() {
	exits 0 tool doctor "${@:2}" && says_what_to_do note "$1"
}

# cannot_tell PATTERN [ARGUMENT...]: it says that this could not be checked.
cannot_tell() {
	exits 2 tool doctor "${@:2}" && says_what_to_do unknown "$1"
}

# by_way_of PROGRAM COMMAND...: another program runs the doctor
by_way_of() {
	local TOOL="$1 $TOOL"
	"${@:2}"
}

# in_place FILE OTHER COMMAND...: another file, or folder, is mounted over one meanwhile.
in_place() {
	local status
	mount --bind "$2" "$1" || return
	"${@:3}"
	status=$?
	umount "$1"
	return $status
}

# in_own FILE OTHER COMMAND...: the same for a file in /proc/self, of the doctor alone
in_own() {
	cat >/tmp/in-own <<-END
		#!/bin/sh
		mount --bind $2 /proc/\$\$/$1 && exec "\$@"
	END
	chmod +x /tmp/in-own
	by_way_of "unshare --mount /tmp/in-own" "${@:3}"
}

# fake PROGRAM: the doctor finds it first; its shell script is the standard input.
fake() {
	mkdir -p /tmp/fake
	{ echo "#!/bin/sh"; cat; } >"/tmp/fake/$1"
	chmod +x "/tmp/fake/$1"
}

# with_fakes COMMAND...: with the programs that fake() made; then they are gone.
with_fakes() {
	local status
	PATH=/tmp/fake:$PATH "$@"
	status=$?
	rm -r /tmp/fake
	return $status
}
