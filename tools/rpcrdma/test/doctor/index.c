// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The files that libkmod reads in place of modules.dep and such: a trie of keys with values.
 * A node is its children, then its values; its offset says in its upper bits what it has.
 */

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define MAGIC		0xb007f457
#define VERSION_2_1	0x00020001
#define HAS_VALUES	0x40000000
#define HAS_CHILDREN	0x20000000

/* Points into the text. */
struct entry {
	char key[64];
	const char *value;
};

static void put(FILE *file, uint32_t value)
{
	value = htonl(value);
	fwrite(&value, sizeof(value), 1, file);
}

/* Writes the node of all entries with that prefix. Returns its offset. */
static uint32_t node(FILE *file, const struct entry *entries, size_t count, const char *prefix)
{
	uint32_t children[128] = {}, values = 0, offset;
	size_t i, len = strlen(prefix);
	int ch, first = 128, last = -1;
	char longer[66];

	for (i = 0; i < count; i++) {
		ch = entries[i].key[len];
		if (strncmp(entries[i].key, prefix, len))
			continue;
		values += !ch;
		if (!ch || children[ch])
			continue;
		snprintf(longer, sizeof(longer), "%s%c", prefix, ch);
		children[ch] = node(file, entries, count, longer);
		first = ch < first ? ch : first;
		last = ch > last ? ch : last;
	}
	offset = ftell(file);
	if (last >= 0) {
		offset |= HAS_CHILDREN;
		fputc(first, file);
		fputc(last, file);
		for (ch = first; ch <= last; ch++)
			put(file, children[ch]);
	}
	if (!values)
		return offset;
	put(file, values);
	for (i = 0; i < count; i++)
		if (!strcmp(entries[i].key, prefix)) {
			put(file, i);
			fwrite(entries[i].value, strlen(entries[i].value) + 1, 1, file);
		}
	return offset | HAS_VALUES;
}

/* "alias KEY VALUE", or "path/of/KEY.ko.xz: ..." */
static void read_entry(char *line, struct entry *entry)
{
	char *name;
	size_t i;

	entry->value = line;
	if (!strncmp(line, "alias ", 6)) {
		name = line + 6;
		entry->value = strchr(name, ' ') + 1;
	} else {
		for (name = line, i = 0; line[i] && line[i] != ':'; i++)
			if (line[i] == '/')
				name = line + i + 1;
	}
	snprintf(entry->key, sizeof(entry->key), "%.*s", (int)strcspn(name, ". "), name);
}

void write_index(const char *path, const char *text)
{
	static struct entry entries[64];
	char *copy = strdup(text), *rest = copy, *line;
	FILE *file = fopen(path, "w");
	size_t count = 0;
	uint32_t root;

	if (!copy || !file)
		abort();
	while (count < ARRAY_SIZE(entries) && (line = doctor_line(&rest)))
		if (*line != '#')
			read_entry(line, &entries[count++]);
	put(file, MAGIC);
	put(file, VERSION_2_1);
	put(file, 0);
	root = node(file, entries, count, "");
	fseek(file, 8, SEEK_SET);
	put(file, root);
	fclose(file);
	free(copy);
}
