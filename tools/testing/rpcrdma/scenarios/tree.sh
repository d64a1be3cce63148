# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   1,000 files (200 on a slow guest) can be made, listed, renamed and removed
# guests:  um
# also:    um/mem um-7-debug/siw debian-6.1
# devices: rxe siw mem
# turns:   NFS's operations
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports

FOLDERS=$((SLOW ? 2 : 10))
FILES=$((FOLDERS * 100))

client() {
	client_begin
	each_version use_tree
}

use_tree() {
	check "v$1: make $FILES files in $FOLDERS folders" make_tree /mnt/tree
	drop_caches
	check "v$1: the client lists them" has_files /mnt/tree $FILES old
	check "v$1: the server has them" has_files $LOCAL/tree $FILES old
	check "v$1: each file has its own name in it" each_its_name /mnt/tree
	check "v$1: rename them" rename_all /mnt/tree
	check "v$1: the server has their new names" has_files $LOCAL/tree $FILES new
	check "v$1: a symbolic link with a long target" \
		link_to /mnt/tree/link "$(printf 'x%.0s' {1..1000})"
	check "v$1: remove them" rm -r /mnt/tree
	check "v$1: the server has nothing left" not test -e $LOCAL/tree
}

make_tree() {
	local folder file
	for ((folder = 0; folder < FOLDERS; folder++)); do
		mkdir -p "$1/$folder"
		for file in {0..99}; do
			echo "old.$file" >"$1/$folder/old.$file" || return
		done
	done
}

# has_files DIRECTORY COUNT PREFIX
has_files() {
	[ "$(find "$1" -type f -name "$3.*" | wc -l)" -eq "$2" ]
}

each_its_name() {
	[ "$(cd "$1" && grep -r . . | awk -F'[/:]' '$3 == $4' | wc -l)" -eq "$FILES" ]
}

# With one process for all files, because starting processes is not what is tested.
rename_all() {
	perl -e 'for (glob "$ARGV[0]/*/old.*") {
		($to = $_) =~ s/old\.([^\/]*)$/new.$1/;
		rename $_, $to or die "$_: $!";
	}' "$1"
}
