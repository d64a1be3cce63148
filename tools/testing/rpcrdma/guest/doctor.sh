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

# index FILE...: write FILE.bin, which programs read in its place, for files like modules.dep,
# modules.alias and modules.builtin. depmod makes them of what there is.
index() {
	python3 - "$@" <<-'END'
		import re, struct, sys

		def entry(number, line):
		    alias = re.match(r"alias (\S+) (\S+)", line)
		    name = re.match(r"(?:[^:]*/)?([^/:.]*)", line)[1].replace("-", "_")
		    return (alias[1], number, alias[2]) if alias else (name, number, line)

		def node(entries, depth):
		    """A node with all that have so much in common. Returns its offset."""
		    here = [e for e in entries if len(e[0]) == depth]
		    below = {}
		    for e in entries:
		        if len(e[0]) > depth:
		            below.setdefault(ord(e[0][depth]), []).append(e)
		    children = {ch: node(some, depth + 1) for ch, some in below.items()}
		    offset = len(data) | (0x20000000 if children else 0) | (0x40000000 if here else 0)
		    if children:
		        first, last = min(children), max(children)
		        data.extend([first, last])
		        for ch in range(first, last + 1):
		            data.extend(struct.pack(">I", children.get(ch, 0)))
		    if here:
		        data.extend(struct.pack(">I", len(here)))
		        for _, number, value in here:
		            data.extend(struct.pack(">I", number) + value.encode() + b"\0")
		    return offset

		for file in sys.argv[1:]:
		    data = bytearray(struct.pack(">III", 0xb007f457, 0x00020001, 0))
		    lines = [line.strip() for line in open(file) if line[0] != "#"]
		    root = node([entry(*pair) for pair in enumerate(lines)], 0)
		    data[8:12] = struct.pack(">I", root)
		    open(file + ".bin", "wb").write(data)
	END
}

# as_if LIST COMMAND...: the list of this kernel's modules, such as modules.dep, is what
# /tmp/LIST has meanwhile.
as_if() {
	index "/tmp/$1" || return
	in_place "$MODULES/$1.bin" "/tmp/$1.bin" "${@:2}"
}
