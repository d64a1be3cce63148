# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what a module costs real programs; rpcrdma_lab/bench.py compares modules
# guests:  um-7
# steps:   ready up code job down
#
# RW is the program. INLINE are the octets that both ends send inline; MODULE may be tcp, which
# has no rpcrdma. The export has
#
#   tree       the headers of libc and of the kernel: a work tree of git, with one changed file
#   tree.git   a bare repository of them
#   new        where a program writes; at first it is empty, or a copy of $MADE/RW

. /lab/guest/bench.sh
. /lab/guest/postgres.sh

MADE=/srv/made
# How many C files make compiles; transactions of each of pgbench's four clients, and of sqlite
PARTS=40 TRANSACTIONS=150 INSERTS=600

# Has MADV_PAGEOUT write its memory to swap. What is unchanged when it asks again is dropped.
SWAPPER='
import mmap, os
MADV_PAGEOUT = 21
data = os.urandom(4096) * 4096
memory = mmap.mmap(-1, len(data), flags=mmap.MAP_PRIVATE)
memory.write(data)
memory.madvise(MADV_PAGEOUT)
while "Writeback: 0 " not in " ".join(open("/proc/meminfo").read().split()):
    pass
assert memory[:] == data
memory.madvise(MADV_PAGEOUT)
assert memory[:] == data
'

# ready() calls this. At the end each program runs once on the server's own files, which also
# reads it from disk. But swap: in a tmpfs nothing can be swapped to.
make_files() {
	head -c 8k /dev/zero >$LOCAL/bench.0.0 && mkdir $MADE && make_headers && make_parts &&
		install -d -o postgres $MADE/pgbench && make_database $MADE/pgbench && make_inserts &&
		make_swap || return
	for RW in tar-x tar-c rsync git-clone git-status make-j2 pgbench sqlite overlayfs; do
		MODULE=none job
	done
}

# A clone has a log, whose author git would look up in the DNS.
make_headers() {
	local git="git -C $LOCAL/tree"
	git config --global user.name lab && git config --global user.email lab@guest || return
	cp -a /usr/include $LOCAL/tree && git init -q $LOCAL/tree && $git add . &&
		$git commit -qm headers && $git gc -q &&
		git clone -q --bare --no-local $LOCAL/tree $LOCAL/tree.git &&
		echo >>$LOCAL/tree/errno.h && $git status && tar -cf $MADE/tree.tar -C $LOCAL tree
}

# A C program that prints the sum of what the functions in its files return
make_parts() {
	local n
	mkdir $MADE/make-j2 && cd $MADE/make-j2 || return
	for ((n = 1; n <= PARTS; n++)); do
		echo "int part$n(void);" >part$n.h
		echo "#include \"part$n.h\"" >>parts.h
		printf '#include <%s.h>\n' errno stdio stdlib string unistd >part$n.c
		printf '#include "parts.h"\nint part%d(void) { return %d; }\n' $n $n >>part$n.c
	done
	printf '#include <stdio.h>\n#include "parts.h"\n' >main.c
	printf 'int main(void) { return printf("%%d", 0%s) < 0; }\n' \
		"$(printf ' + part%d()' $(seq $PARTS))" >>main.c
	printf '%s\n' 'main: $(patsubst %.c,%.o,$(wildcard *.c))' '	$(CC) -o $@ $^' >Makefile
}

make_inserts() {
	{
		echo "CREATE TABLE numbers (number INTEGER PRIMARY KEY, text TEXT);"
		printf "INSERT INTO numbers VALUES (%d, 'a line of text');\n" $(seq $INSERTS)
	} >$MADE/inserts.sql
}

# Three times as large as what is swapped: the kernel keeps no place of what was read in a full one.
make_swap() {
	mkdir $MADE/swap && head -c 48M /dev/zero >$MADE/swap/file && chmod 600 $MADE/swap/file &&
		mkswap $MADE/swap/file
}

up() {
	: >/tmp/unsteady
	if [ "$MODULE" != tcp ]; then
		need "load rpcrdma of $MODULE" load_module
		need "send $INLINE octets inline" set_inline
	fi
	# Without NFSv3 there is no lockd, whose grace period locks would wait for.
	need "NFS server" rpc.nfsd -N 3 8
	[ "$MODULE" = tcp ] || need "listen for rdma on port $PORT" listen
	need "mount" mount_export
	[ "$MODULE" = tcp ] || need "8 KiB are inline if $INLINE octets are" inline_holds
	grep ' /mnt nfs4 ' /proc/mounts | grep -o '[rw]size=[0-9]*'
	need "unmount" umount /mnt
}

mount_export() {
	case $MODULE in
	none) mount --bind $LOCAL /mnt ;;
	tcp) PORT=2049 nfs_mount 4.2 tcp /mnt ;;
	*) nfs_mount 4.2 rdma /mnt && mounted_as /mnt 4.2 rdma ;;
	esac
}

down() {
	echo "unsteady=$(wc -l </tmp/unsteady)"
	need "stop the NFS server" rpc.nfsd 0
	[ "$MODULE" = tcp ] || module_down
}

# Each program has a mount of its own, so that it begins without anything in the client's caches.
job() {
	need "files as they were at first" set_files
	need "mount" mount_export
	[ "$RW" != pgbench ] || need "start postgres" postgres /mnt/new start
	measure "$RW" timed_program
	[ "$RW" != pgbench ] || need "stop postgres" postgres /mnt/new stop
	steady >>/tmp/unsteady
	need "unmount" umount /mnt
	need "$RW has done what it should" check_program
	cat /tmp/elapsed
}

set_files() {
	rm -rf $LOCAL/new
	if [ -e "$MADE/$RW" ]; then
		cp -a "$MADE/$RW" $LOCAL/new
	else
		mkdir $LOCAL/new
	fi
}

# Until the server has all that was written
timed_program() {
	local since=${EPOCHREALTIME/./}
	run_program && sync -f /mnt || return
	echo "elapsed_us=$((${EPOCHREALTIME/./} - since))" >/tmp/elapsed
}

run_program() {
	case $RW in
	tar-x) tar -xf $MADE/tree.tar -C /mnt/new ;;
	tar-c) tar -cf /tmp/tree.tar -C /mnt tree ;;
	rsync) rsync -a --no-times $LOCAL/tree /mnt/new ;;
	git-clone) git clone -q /mnt/tree.git /mnt/new ;;
	git-status) git -C /mnt/tree status --porcelain >/tmp/status ;;
	make-j2) make -C /mnt/new -sj2 ;;
	pgbench) pgbench_run $TRANSACTIONS >/tmp/transactions ;;
	sqlite) sqlite3 /mnt/new/numbers <$MADE/inserts.sql ;;
	overlayfs) read_layers ;;
	swap) swapon /mnt/new/file && python3 -c "$SWAPPER" && swapoff /mnt/new/file ;;
	esac
}

# A folder that the lower one of two layers has
read_layers() {
	mkdir -p /tmp/layers && mount -t overlay overlay -o lowerdir=/mnt/tree.git:/mnt/tree \
		/tmp/layers && tar -cf /tmp/tree.tar -C /tmp/layers linux && umount /tmp/layers
}

# By what the server has then, or what the program has printed
check_program() {
	cd $LOCAL/new || return
	case $RW in
	tar-x | rsync) diff -r --no-dereference tree ../tree ;;
	tar-c) tar -df /tmp/tree.tar -C $LOCAL ;;
	git-clone) git fsck && is "" "$(git status --porcelain)" ;;
	git-status) is " M errno.h" "$(cat /tmp/status)" ;;
	make-j2) is $((PARTS * (PARTS + 1) / 2)) "$(./main)" ;;
	pgbench) grep "processed: $((4 * TRANSACTIONS))/$((4 * TRANSACTIONS))\$" /tmp/transactions ;;
	sqlite) is $INSERTS "$(sqlite3 numbers 'SELECT count(*) FROM numbers')" ;;
	overlayfs) tar -df /tmp/tree.tar -C $LOCAL/tree ;;
	swap) not grep file /proc/swaps ;;
	esac
}
