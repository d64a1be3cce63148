# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# For the script probe: reads the compiler's errors and then rpcrdma-probes.c.

# Whether a header has a text, wherever its lines end.
function says(header, text,	line, all) {
	while ((getline line < (headers "/" header)) > 0)
		all = all " " line
	close(headers "/" header)
	gsub(/[ \t*\/]+/, " ", all)
	gsub(/[ \t*\/]+/, " ", text)
	return index(all, text)
}

function refuse(why) {
	print "rpcrdma: nothing is built for kernel " release ": " why >"/dev/stderr"
	refused = 1
	exit 1
}

FNR == NR {
	errors = errors $0 "\n"
	split($0, part, ":")
	failed[part[1]] = 1
	next
}

!seen++ && !("END" in failed) {
	printf "%s", errors >"/dev/stderr"
	refuse("the compiler cannot read its headers")
}

/^#line/ {
	name = substr($3, 2, length($3) - 2)
	names[++count] = name
}

/^\/\* says: / {
	header = $3
	$1 = $2 = $3 = ""
	if (!says(header, $0))
		failed[name] = 1
}

/^\/\* one of: / {
	gsub(/^.*: | \*\/$/, "")
	choices[++choice] = $0
}

END {
	if (refused)
		exit 1
	if (!seen)
		refuse("the compiler said nothing")
	for (i = 1; i <= choice; i++) {
		found = 0
		n = split(choices[i], part)
		for (j = 1; j <= n; j++)
			found += !(part[j] in failed)
		if (found != 1)
			refuse("exactly one of the probes " choices[i] " has to succeed, and " found " do")
	}
	print "/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */"
	print "/* What kernel " release " has, by rpcrdma-probes.c */"
	for (i = 1; i <= count; i++)
		if (!(names[i] in failed))
			print "#define " names[i]
}
