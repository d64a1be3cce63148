// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * replay FILE...: give each file to the fuzzer's code, where there is no libFuzzer. What it finds
 * ends the program by abort().
 */
#include <stdio.h>

#include "invariants.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int main(int argc, char **argv)
{
	static u8 octets[8192];
	size_t size;
	FILE *file;
	int i;

	for (i = 1; i < argc; i++) {
		file = fopen(argv[i], "rb");
		if (!file) {
			perror(argv[i]);
			return 1;
		}
		size = fread(octets, 1, sizeof(octets), file);
		fclose(file);
		LLVMFuzzerTestOneInput(octets, size);
	}
	printf("%d inputs\n", argc - 1);
	return 0;
}
