// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Reading files and the output of programs, up to a limit and for a limited time. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"

#define KILL_MS		1000	/* that a killed child may take to die */

/* What a file or a pipe gives; grows up to DOCTOR_FILE_MAX. */
struct contents {
	char *text;
	size_t len;
	size_t size;
};

/* One read(). Returns its result; 0 as well if there is no more room. */
static ssize_t contents_read(struct contents *c, int fd)
{
	ssize_t got;

	if (c->size - c->len < 2) {
		size_t size = c->size ? 2 * c->size : 4096;
		char *text;

		if (c->len >= DOCTOR_FILE_MAX)
			return 0;
		text = realloc(c->text, size);
		if (!text) {
			errno = ENOMEM;
			return -1;
		}
		c->text = text;
		c->size = size;
	}
	got = read(fd, c->text + c->len, c->size - c->len - 1);
	if (got > 0)
		c->len += got;
	c->text[c->len] = 0;
	return got;
}

/* A path with the root before it; false if it is too long */
static bool full_path(struct doctor *d, char full[PATH_MAX], const char *format, va_list args)
{
	int len = snprintf(full, PATH_MAX, "%s", d->root);

	return len < PATH_MAX &&
	       vsnprintf(full + len, PATH_MAX - len, format, args) < PATH_MAX - len;
}

char *doctor_read(struct doctor *d, const char *path, size_t *len)
{
	struct contents c = {};
	char full[PATH_MAX];
	ssize_t got;
	int error, fd;

	snprintf(full, sizeof(full), "%s%s", d->root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	do {
		got = contents_read(&c, fd);
	} while (got > 0 || (got < 0 && errno == EINTR));
	error = errno;
	close(fd);
	if (got < 0) {
		free(c.text);
		errno = error;
		return NULL;
	}
	if (len)
		*len = c.len;
	return c.text;
}

int doctor_read_line(struct doctor *d, char *line, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	char *text;

	*line = 0;
	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	text = doctor_read(d, path, NULL);
	if (!text)
		return -errno;
	snprintf(line, size, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
	return 0;
}

bool doctor_exists(struct doctor *d, const char *format, ...)
{
	char full[PATH_MAX];
	va_list args;
	bool fits;

	va_start(args, format);
	fits = full_path(d, full, format, args);
	va_end(args);
	return fits && !access(full, F_OK);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

struct dirent **doctor_list(struct doctor *d, size_t *count, const char *format, ...)
{
	struct dirent **list = NULL;
	char full[PATH_MAX];
	va_list args;
	int got = 0;

	va_start(args, format);
	if (full_path(d, full, format, args))
		got = scandir(full, &list, is_shown, versionsort);
	va_end(args);
	*count = got > 0 ? got : 0;
	return list;
}

void doctor_list_free(struct dirent **list, size_t count)
{
	while (count)
		free(list[--count]);
	free(list);
}

char *doctor_line(char **text)
{
	char *line = *text;
	char *end;

	if (!*line)
		return NULL;
	end = line + strcspn(line, "\n");
	*text = end + (*end == '\n');
	*end = 0;
	return line;
}

char *doctor_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	char *end = word + strcspn(word, " \t");

	if (!*word)
		return NULL;
	*line = end + (*end != 0);
	*end = 0;
	return word;
}

const char *doctor_field(const char *text, const char *name)
{
	const char *found = text ? strstr(text, name) : NULL;

	return found ? found + strlen(name) + strspn(found + strlen(name), ": \t") : NULL;
}

/* Other processes */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Read until the other end closes the pipe. */
static int read_until(struct contents *c, int fd, int64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left = deadline - now_ms();
		int ready = left > 0 ? poll(&pfd, 1, left) : 0;
		ssize_t got;

		if (!ready)
			return -ETIMEDOUT;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready < 0)
			continue;
		got = contents_read(c, fd);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (!got)
			return 0;
	}
}

/* A process that has closed its output, or has printed too much, has little left to do. */
static int reap(pid_t pid, int64_t deadline, int *status)
{
	pid_t ended;
	int how;

	while (!(ended = waitpid(pid, &how, WNOHANG))) {
		if (now_ms() >= deadline)
			return -ETIMEDOUT;
		usleep(2000);
	}
	if (ended < 0)
		return -errno;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
	return 0;
}

/*
 * One that sleeps in the kernel and takes no signal is left alone: it dies when it
 * wakes up, and init reaps it.
 */
static void end_child(pid_t pid)
{
	int status;

	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	reap(pid, now_ms() + KILL_MS, &status);
}

/* A process group of its own, which end_child() ends as a whole; output to @out, no input */
static int start(char *const argv[], int out, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int ret;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
	ret = -posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return ret;
}

int doctor_run(struct doctor *d, char *const argv[], int *status, char **output)
{
	int64_t deadline = now_ms() + d->patience;
	struct contents c = {};
	int ends[2], ret;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	ret = start(argv, ends[1], &pid);
	close(ends[1]);
	if (!ret) {
		ret = read_until(&c, ends[0], deadline);
		if (!ret)
			ret = reap(pid, deadline, status);
		if (ret)
			end_child(pid);
	}
	close(ends[0]);
	if (!ret && !c.text)
		ret = -ENOMEM;
	if (ret)
		free(c.text);
	else
		*output = c.text;
	return ret;
}
