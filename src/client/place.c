/* The journal's file, and the locks by which processes keep out of each other's
 * entries. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/journal.h"

static void directory_of(const char *path, char ret_directory[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		snprintf(ret_directory, PATH_MAX, ".");
	else
		snprintf(ret_directory, PATH_MAX, "%.*s", (int)(slash - path + 1), path);
}

/* The directory's real path and the file's name. The file itself must not be a
 * link: whoever can place one could have the requests written elsewhere. */
enum hapax_result hpx_place_find(const char *given, char ret_path[PATH_MAX], char *problem)
{
	const char *slash = strrchr(given, '/');
	const char *name = slash != NULL ? slash + 1 : given;
	char directory[PATH_MAX];
	char real[PATH_MAX];

	/* Room for ".lock" and SQLite's "-journal" behind it. */
	if (*name == '\0' || strlen(given) >= PATH_MAX - 16)
		return hpx_client_say(HAPAX_INVALID, problem,
				      "the journal needs the path of a file");
	directory_of(given, directory);
	if (realpath(directory, real) == NULL)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem,
				      "the directory of the journal %s: %m", given);
	if (snprintf(ret_path, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) >=
	    PATH_MAX - 16)
		return hpx_client_say(HAPAX_INVALID, problem, "the journal's path is too long");
	return HAPAX_OK;
}

/* The new file's name must survive a power cut as well as its content. */
static enum hapax_result sync_directory(const char *path, char *problem)
{
	char directory[PATH_MAX];
	enum hapax_result result = HAPAX_OK;

	directory_of(path, directory);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		result = hpx_client_say(HAPAX_UNAVAILABLE, problem, "%s: %m", directory);
	if (fd >= 0)
		close(fd);
	return result;
}

enum hapax_result hpx_place_ensure(const char *path, char *problem)
{
	struct stat info;

	if (lstat(path, &info) == 0) {
		if (S_ISREG(info.st_mode))
			return HAPAX_OK;
		return hpx_client_say(HAPAX_INVALID, problem,
				      "the journal %s is not a regular file", path);
	}
	/* Requests are nobody else's; SQLite gives its other file the same mode. */
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem,
				      "the journal %s cannot be made: %m", path);
	if (fd >= 0)
		close(fd);
	return sync_directory(path, problem);
}

static int open_locks(const char *path)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s.lock", path);
	return open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* One byte for each entry. The lock is of the open file, not of the process, so
 * that two calls of one process exclude each other too. */
static struct flock lock_of(int64_t id)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1 };
}

enum hapax_result hpx_place_claim(const char *path, int64_t id, int *ret_fd, char *problem)
{
	struct flock lock = lock_of(id);
	int fd = open_locks(path);

	if (fd < 0)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem, "%s.lock: %m", path);
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
		*ret_fd = fd;
		return HAPAX_OK;
	}
	bool held = errno == EAGAIN || errno == EACCES;
	enum hapax_result result =
		held ? hpx_client_say(HAPAX_BUSY, problem,
				      "call %lld is being sent by another process", (long long)id) :
		       hpx_client_say(HAPAX_UNAVAILABLE, problem, "%s.lock: %m", path);
	close(fd);
	return result;
}

bool hpx_place_is_claimed(const char *path, int64_t id)
{
	struct flock lock = lock_of(id);
	int fd = open_locks(path);

	if (fd < 0)
		return false;
	bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return held;
}
