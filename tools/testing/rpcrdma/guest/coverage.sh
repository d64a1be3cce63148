# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   how often each line ran is told to the host
# guests:  um-gcov
# steps:   coverage

# Of a module that was unloaded the kernel keeps the counts, and adds to them
# when it is loaded again: its unit tests run then.
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
