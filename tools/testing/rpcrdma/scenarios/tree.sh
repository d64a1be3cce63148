# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a directory tree of 1,000 files (200 on a slow guest) made, listed, renamed and removed
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# skip:    * siw * inbox: siw may leave a first message lying, and only ours has a remedy

FOLDERS=$((SLOW ? 2 : 10))
FILES=$((FOLDERS * 100))

client() {
	client_begin
	each_version grow_and_fell
}

grow_and_fell() {
	check "v$1: make $FILES files in $FOLDERS folders" grow /mnt/tree
	drop_caches
	check "v$1: the client lists them" has_files /mnt/tree $FILES leaf
	check "v$1: the server has them" has_files $LOCAL/tree $FILES leaf
	check "v$1: each holds its own name" each_its_name /mnt/tree
	check "v$1: rename them" rename_all /mnt/tree
	check "v$1: the server has them by their new names" has_files $LOCAL/tree $FILES fruit
	check "v$1: a symbolic link with a long target" \
		link_to /mnt/tree/link "$(printf 'x%.0s' {1..1000})"
	check "v$1: remove them" rm -r /mnt/tree
	check "v$1: the server has nothing left" not test -e $LOCAL/tree
}

grow() {
	local folder file
	for ((folder = 0; folder < FOLDERS; folder++)); do
		mkdir -p "$1/$folder"
		for file in {0..99}; do
			echo "leaf.$file" >"$1/$folder/leaf.$file" || return
		done
	done
}

has_files() {
	[ "$(find "$1" -type f -name "$3.*" | wc -l)" -eq "$2" ]
}

each_its_name() {
	[ "$(cd "$1" && grep -r . . | awk -F'[/:]' '$3 == $4' | wc -l)" -eq "$FILES" ]
}

# One process each, not a thousand: making processes is not what is tested.
rename_all() {
	perl -e 'for (glob "$ARGV[0]/*/leaf.*") {
		($to = $_) =~ s/leaf\./fruit./;
		rename $_, $to or die "$_: $!";
	}' "$1"
}
