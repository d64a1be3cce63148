// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * corpus FOLDER: write each golden message to a file in FOLDER. The fuzzer
 * starts from these.
 */
#include <stdio.h>

#include "golden.h"

static int write_file(const char *folder, const char *name, const u8 *octets,
		      u32 len)
{
	char path[4096];
	FILE *file;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (!file) {
		perror(path);
		return 1;
	}
	ret = fwrite(octets, 1, len, file) != len;
	ret |= fclose(file) != 0;
	if (ret)
		perror(path);
	return ret;
}

int main(int argc, char **argv)
{
	const struct golden *golden;
	int ret = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	for (golden = rpcrdma_golden_messages;
	     golden < rpcrdma_golden_messages + GOLDEN_COUNT; golden++)
		ret |= write_file(argv[1], golden->name, golden->octets,
				  golden->len);
	ret |= write_file(argv[1], "private_data", rpcrdma_golden_private,
			  sizeof(rpcrdma_golden_private));
	return ret;
}
