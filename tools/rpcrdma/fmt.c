// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "fmt.h"

#define MINUTE	60u
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

void fmt_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

uint64_t fmt_whole(double value)
{
	if (value >= (double)UINT64_MAX)
		return UINT64_MAX;
	return value;
}

struct text fmt_print(const char *format, ...)
{
	struct text text;
	va_list args;

	va_start(args, format);
	vsnprintf(text.s, sizeof(text.s), format, args);
	va_end(args);
	return text;
}

/* Three digits, the last of them after a point if there is room, and a unit */
static struct text scaled(double value, double step, const char *units)
{
	/* What would be printed as a whole step belongs to the next unit. */
	while (value >= step - 0.5 && units[1]) {
		value /= step;
		units++;
	}
	if (value >= 99.95 || value == floor(value))
		return fmt_print("%.0f%c", value, *units);
	return fmt_print("%.1f%c", value, *units);
}

struct text fmt_size(uint64_t octets)
{
	if (octets < 1024)
		return fmt_print("%u", (unsigned int)octets);
	return scaled(octets / 1024.0, 1024, "KMGTPE");
}

struct text fmt_count(uint64_t count)
{
	if (count < 10000)
		return fmt_print("%u", (unsigned int)count);
	return scaled(count / 1000.0, 1000, "kMGTPE");
}

struct text fmt_rate(double per_second)
{
	if (per_second >= 9999.5)
		return scaled(per_second / 1000, 1000, "kMGTPE");
	if (per_second >= 99.95 || per_second == floor(per_second))
		return fmt_print("%.0f", per_second);
	return fmt_print(per_second >= 9.995 ? "%.1f" : "%.2f", per_second);
}

struct text fmt_age(uint64_t seconds)
{
	unsigned long long s = seconds;

	if (s < MINUTE)
		return fmt_print("%llus", s);
	if (s < HOUR)
		return fmt_print("%llum%02llus", s / MINUTE, s % MINUTE);
	if (s < DAY)
		return fmt_print("%lluh%02llum", s / HOUR, s % HOUR / MINUTE);
	return fmt_print("%llud%02lluh", s / DAY, s % DAY / HOUR);
}

struct text fmt_ns(uint64_t ns)
{
	static const char * const units[] = { "ns", "us", "ms", "s" };
	double value = ns;
	unsigned int unit = 0;

	while (value >= 999.5 && unit < 3) {
		value /= 1000;
		unit++;
	}
	if (value >= 9.95 || value == floor(value))
		return fmt_print("%.0f%s", value, units[unit]);
	return fmt_print("%.1f%s", value, units[unit]);
}
