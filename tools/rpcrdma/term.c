// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "term.h"

#define WIDTH	80	/* of a terminal that does not know */

unsigned int term_width(void)
{
	struct winsize size = {};

	if (!isatty(STDOUT_FILENO))
		return 0;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size.ws_col ?: WIDTH;
}

static bool colours(void)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(none && *none) && term && strcmp(term, "dumb");
}

const char *term_colour(enum colour colour)
{
	static const char * const codes[] = {
		[COLOUR_NONE] = "",
		[COLOUR_HEAD] = "\033[1m",
		[COLOUR_GOOD] = "\033[32m",
		[COLOUR_WARN] = "\033[33m",
		[COLOUR_BAD] = "\033[31m",
	};

	return colours() ? codes[colour] : "";
}

const char *term_plain(enum colour colour)
{
	return colour != COLOUR_NONE && colours() ? "\033[0m" : "";
}
