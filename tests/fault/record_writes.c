/* A record of what a process asks the disk for, for LD_PRELOAD: each write, cut and sync
 * of the file RECORD_FILE, its log (-wal) and its journal (-journal) goes to RECORD_LOG
 * in the order of its effect. Syncs are not passed on: whoever reads the record
 * (power_record.py) decides what was durable at which moment. RECORD_FAIL=a-b, or several
 * of these with commas, fails the syncs from the a-th to the b-th: nothing is durable
 * by them. RECORD_FULL=a-b fails the writes from the a-th to the b-th, as a full disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 4096

/* As power_record.py unpacks it. `offset` is where the bytes of a write go, the length
 * that a cut leaves, or for a sync the record's length when it began. */
struct entry {
	char kind; /* Write, Cut, Sync, Failed sync */
	char file; /* Database, Wal, Journal */
	char unused[2];
	uint32_t len;
	uint64_t offset;
};

static char files[FDS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static uint64_t log_len;
static unsigned long syncs, writes;

static char file_of(const char *path)
{
	const char *recorded = getenv("RECORD_FILE");
	size_t len = recorded == NULL ? 0 : strlen(recorded);

	if (len == 0 || strncmp(path, recorded, len) != 0)
		return 0;
	if (path[len] == '\0')
		return 'D';
	return strcmp(path + len, "-wal") == 0 ? 'W' : strcmp(path + len, "-journal") == 0 ? 'J' :
											     0;
}

static void append(char kind, char file, const void *bytes, size_t len, uint64_t offset)
{
	struct entry entry = { kind, file, { 0, 0 }, (uint32_t)len, offset };
	struct iovec parts[] = { { &entry, sizeof(entry) }, { (void *)bytes, len } };

	if (log_fd < 0)
		log_fd = open(getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (writev(log_fd, parts, 2) != (ssize_t)(sizeof(entry) + len))
		abort();
	log_len += sizeof(entry) + len;
}

static char recorded(int fd)
{
	return fd >= 0 && fd < FDS_MAX ? files[fd] : 0;
}

static int note_open(int fd, const char *path)
{
	if (fd >= 0 && fd < FDS_MAX)
		files[fd] = file_of(path);
	return fd;
}

static int open_by(const char *name, const char *path, int flags, int mode)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);

	return note_open(real(path, flags, mode), path);
}

#define OPEN(function) \
	int function(const char *path, int flags, ...) \
	{ \
		va_list rest; \
\
		va_start(rest, flags); \
		int mode = va_arg(rest, int); \
		va_end(rest); \
		return open_by(#function, path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

int close(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");

	if (recorded(fd))
		files[fd] = 0;
	return real(fd);
}

/* Whether a variable's ranges have this number. */
static int is_in(const char *variable, unsigned long number)
{
	const char *ranges = getenv(variable);
	unsigned long first, last;

	for (; ranges != NULL && *ranges != '\0'; ranges = strchr(ranges, ',')) {
		ranges += *ranges == ',';
		if (sscanf(ranges, "%lu-%lu", &first, &last) == 2 && number >= first && number <= last)
			return 1;
	}
	return 0;
}

static ssize_t write_by(const char *name, int fd, const void *bytes, size_t len, off_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
	char file = recorded(fd);

	if (!file)
		return real(fd, bytes, len, offset);
	pthread_mutex_lock(&lock);
	int fails = is_in("RECORD_FULL", ++writes);
	ssize_t done = fails ? -1 : real(fd, bytes, len, offset);

	if (done > 0)
		append('W', file, bytes, (size_t)done, (uint64_t)offset);
	pthread_mutex_unlock(&lock);
	errno = fails ? ENOSPC : errno;
	return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	return write_by("pwrite", fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
	return write_by("pwrite64", fd, bytes, len, offset);
}

static int cut_by(const char *name, int fd, off_t len)
{
	int (*real)(int, off_t) = (int (*)(int, off_t))dlsym(RTLD_NEXT, name);
	char file = recorded(fd);

	if (!file)
		return real(fd, len);
	pthread_mutex_lock(&lock);
	int result = real(fd, len);

	if (result == 0)
		append('C', file, NULL, 0, (uint64_t)len);
	pthread_mutex_unlock(&lock);
	return result;
}

int ftruncate(int fd, off_t len)
{
	return cut_by("ftruncate", fd, len);
}

int ftruncate64(int fd, off_t len)
{
	return cut_by("ftruncate64", fd, len);
}

/* A sync makes durable what was written before it began, and is done a moment later. */
static int sync_by(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	char file = recorded(fd);

	if (!file)
		return real(fd);
	pthread_mutex_lock(&lock);
	uint64_t began = log_len;
	int fails = is_in("RECORD_FAIL", ++syncs);

	pthread_mutex_unlock(&lock);
	usleep(200);
	pthread_mutex_lock(&lock);
	append(fails ? 'F' : 'S', file, NULL, 0, began);
	pthread_mutex_unlock(&lock);
	errno = fails ? EIO : errno;
	return fails ? -1 : 0;
}

int fsync(int fd)
{
	return sync_by("fsync", fd);
}

int fdatasync(int fd)
{
	return sync_by("fdatasync", fd);
}
