// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "number.h"

/* strtoul() alone takes signs and blanks, too. */
bool number_parse(const char *text, uint32_t min, uint32_t max, uint32_t *number)
{
	unsigned long value;

	if (!*text || text[strspn(text, "0123456789")])
		return false;
	errno = 0;
	value = strtoul(text, NULL, 10);
	if (errno || value < min || value > max)
		return false;
	*number = value;
	return true;
}
