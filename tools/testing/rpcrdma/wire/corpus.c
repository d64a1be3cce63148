// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * corpus FOLDER: write each golden message, whole and cut off after each word, and
 * messages at each limit to files in FOLDER. The fuzzer starts from these.
 */
#include <stdio.h>

#include "golden.h"
#include "limits.h"

static int write_file(const char *folder, const char *name, const void *octets,
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

static int write_limits(const char *folder, u32 version)
{
	static struct limits_message message;
	const char *name;
	char file[64];
	int ret = 0;
	u32 i;

	for (i = 0; limits_write(&message, i, version, &name); i++) {
		snprintf(file, sizeof(file), "limit_v%u_%s", version, name);
		ret |= write_file(folder, file, message.word, message.words * sizeof(__be32));
	}
	return ret;
}

static int write_golden(const char *folder, const struct golden *golden)
{
	char file[64];
	int ret = 0;
	u32 len;

	for (len = golden->len; len; len -= sizeof(__be32)) {
		snprintf(file, sizeof(file), "%s_%u", golden->name, len);
		ret |= write_file(folder, file, golden->octets, len);
	}
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
		ret |= write_golden(argv[1], golden);
	ret |= write_file(argv[1], "private_data", rpcrdma_golden_private,
			  sizeof(rpcrdma_golden_private));
	ret |= write_file(argv[1], "private_data_cut_off", rpcrdma_golden_private,
			  sizeof(rpcrdma_golden_private) - 1);
	ret |= write_limits(argv[1], RPCRDMA_VERSION_ONE);
	ret |= write_limits(argv[1], RPCRDMA_VERSION_TWO);
	return ret;
}
