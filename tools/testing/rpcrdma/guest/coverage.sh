# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the host gets the counts of how often each line ran
# guests:  um-gcov
# steps:   coverage

# The kernel keeps the counts of a module that was unloaded, and adds to them when it is
# loaded again.
coverage() {
	check "the counts of every object file" copy_counts
}

copy_counts() {
	local file name
	while read -r file; do
		name=/lab/out/gcov/${file##*/xprtrdma/}
		mkdir -p "${name%/*}" && cat "$file" >"$name" || return
	done < <(find /sys/kernel/debug/gcov -name '*.gcda')
	test -s /lab/out/gcov/main.gcda
}
