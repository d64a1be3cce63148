// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "term.h"

/* What a terminal has that does not know its size */
#define WIDTH	80
#define HEIGHT	24

bool term_is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}

static struct winsize size(void)
{
	struct winsize size = {};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size;
}

unsigned int term_width(void)
{
	if (!term_is_terminal())
		return 0;
	return size().ws_col ?: WIDTH;
}

unsigned int term_height(void)
{
	if (!term_is_terminal())
		return 0;
	return size().ws_row ?: HEIGHT;
}

static bool colours(void)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	return term_is_terminal() && !(none && *none) &&
	       term && strcmp(term, "dumb");
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
