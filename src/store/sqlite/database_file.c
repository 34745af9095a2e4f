/* Where the database is: its absolute path, whether that file system can be
 * trusted with it, the server's lock, and the file itself. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite/driver.h"

/* How long a start waits for the lock of the server before it. */
#define LOCK_WAIT_MS 2000
#define LOCK_AGAIN_MS 20

/* X(f_type, name): file systems whose locks, shared memory or fsync reach
 * other machines, or nobody knows where to. */
#define NETWORK_LIST(X) \
	X(0x6969, "NFS") \
	X(0x517B, "SMB") \
	X(0xFF534D42, "CIFS") \
	X(0xFE534D42, "SMB2") \
	X(0x5346414F, "AFS") \
	X(0x6B414653, "AFS") \
	X(0x73757245, "Coda") \
	X(0x564C, "NCP") \
	X(0x00C36400, "Ceph") \
	X(0x01021997, "9p") \
	X(0x0BD00BD0, "Lustre") \
	X(0x47504653, "GPFS") \
	X(0xAAD7AAEA, "PanFS") \
	X(0x786F4256, "VirtualBox shared folders") \
	X(0x65735546, "FUSE")

static const struct {
	unsigned long type;
	const char *name;
} networks[] = {
#define X(type, name) { type, name },
	NETWORK_LIST(X)
#undef X
};

static enum hpx_status refuse_network(const char *directory, char *problem)
{
	struct statfs info;

	if (statfs(directory, &info) != 0) {
		hpx_store_problem(problem, "%s: %m", directory);
		return HPX_IO;
	}
	/* Only the low 32 bits are the type; f_type is signed on some systems. */
	unsigned long type = (unsigned long)info.f_type & 0xFFFFFFFFUL;
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		if (networks[i].type != type)
			continue;
		hpx_store_problem(problem,
				  "%s is on a network or user-space file system (%s), where "
				  "SQLite cannot keep its promises: put the store on a local disk",
				  directory, networks[i].name);
		return HPX_UNSUPPORTED;
	}
	return HPX_OK;
}

/* The directory's real path and the file's name: where the file is absent,
 * realpath() can tell only the directory's. */
static enum hpx_status resolve_new(const char *given, char ret_path[PATH_MAX], char *problem)
{
	const char *slash = strrchr(given, '/');
	const char *name = slash != NULL ? slash + 1 : given;
	char directory[PATH_MAX];
	char real[PATH_MAX];

	if (slash == NULL)
		snprintf(directory, sizeof(directory), ".");
	else
		snprintf(directory, sizeof(directory), "%.*s", (int)(slash - given + 1), given);
	if (realpath(directory, real) == NULL) {
		bool absent = errno == ENOENT;
		hpx_store_problem(problem, absent ? "the directory of %s is not there: create it, for "
						    "the user that hapax runs as" :
						    "the directory of %s: %m",
				  given);
		return absent ? HPX_NOT_FOUND : HPX_IO;
	}
	if (*name == '\0' ||
	    snprintf(ret_path, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) >=
		    PATH_MAX) {
		hpx_store_problem(problem, "%s is not the path of a file", given);
		return HPX_INVALID;
	}
	return HPX_OK;
}

static enum hpx_status resolve(const char *given, char ret_path[PATH_MAX], char *problem)
{
	struct stat info;

	if (realpath(given, ret_path) == NULL) {
		if (errno == ENOENT)
			return resolve_new(given, ret_path, problem);
		hpx_store_problem(problem, "%s: %m", given);
		return HPX_IO;
	}
	if (stat(ret_path, &info) != 0 || !S_ISREG(info.st_mode)) {
		hpx_store_problem(problem, "%s is not a regular file", ret_path);
		return HPX_INVALID;
	}
	return HPX_OK;
}

static void directory_of(const char *path, char ret_directory[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int len = slash > path ? (int)(slash - path) : 1;

	HPX_ASSERT(path[0] == '/'); /* as hpx_sqlite_file_find() made it */
	snprintf(ret_directory, PATH_MAX, "%.*s", len, path);
}

enum hpx_status hpx_sqlite_file_find(struct hpx_span url, char ret_path[PATH_MAX], char *problem)
{
	struct hpx_span given = hpx_span_skip(url, sizeof("sqlite:") - 1);
	char text[PATH_MAX];
	char directory[PATH_MAX];
	char path[PATH_MAX];
	enum hpx_status status;

	/* Room for "-wal", "-shm" and ".lock" behind it. */
	if (given.len == 0 || given.len >= PATH_MAX - 8 || memchr(given.ptr, '\0', given.len)) {
		hpx_store_problem(problem, "sqlite: needs the path of a file, as in sqlite:hapax.db");
		return HPX_INVALID;
	}
	memcpy(text, given.ptr, given.len);
	text[given.len] = '\0';
	status = resolve(text, path, problem);
	if (status != HPX_OK)
		return status;
	directory_of(path, directory);
	status = refuse_network(directory, problem);
	if (status == HPX_OK)
		memcpy(ret_path, path, PATH_MAX);
	return status;
}

static void explain_held(int fd, const char *path, char *problem)
{
	char text[24] = "";
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t pid;

	if (len > 0 && hpx_span_u64(hpx_span_of(text), INT32_MAX, &pid))
		hpx_store_problem(problem, "another hapax (process %llu) serves %s: stop it first, "
					   "or use another file",
				  (unsigned long long)pid, path);
	else
		hpx_store_problem(problem, "another hapax serves %s: stop it first, or use "
					   "another file",
				  path);
}

static enum hpx_status write_pid(int fd, const char *name, char *problem)
{
	char text[sizeof(((struct hpx_sqlite_lock *)NULL)->pid)] = "";

	snprintf(text, sizeof(text), "%ld", (long)getpid());
	/* Never shorter than it is mapped: a command may be counting there just now. */
	if (ftruncate(fd, sizeof(struct hpx_sqlite_lock)) != 0 ||
	    pwrite(fd, text, sizeof(text), 0) != (ssize_t)sizeof(text)) {
		hpx_store_problem(problem, "%s: %m", name);
		return errno == ENOSPC ? HPX_FULL : HPX_IO;
	}
	return HPX_OK;
}

/* From errno. */
static enum hpx_status explain_create(const char *path, char *problem)
{
	if (errno == EACCES)
		hpx_store_problem(problem, "%s: %m: the user that hapax runs as (id %ld) must be able "
					   "to read it, and to create files in its directory",
				  path,
				  (long)geteuid());
	else
		hpx_store_problem(problem, "%s: %m", path);
	return errno == EACCES || errno == EROFS ? HPX_READ_ONLY : HPX_IO;
}

/* A process that was killed a moment ago holds the lock until the kernel has taken
 * it down. Who starts the next one at once waits for that, and no longer. */
static bool take_lock(int fd)
{
	int64_t until_ms = hpx_clock_boot_ms() + LOCK_WAIT_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || hpx_clock_boot_ms() >= until_ms)
			return false;
		poll(NULL, 0, LOCK_AGAIN_MS);
	}
	return true;
}

/* A file that root makes in the folder of another user, by `hapax migrate` say, is for the
 * service that runs as that user, which could not open it else. SQLite gives its other files
 * to the owner of the database. */
static void give_to_owner(int fd, const char *path)
{
	char directory[PATH_MAX];
	struct stat info;

	if (geteuid() != 0)
		return;
	directory_of(path, directory);
	if (stat(directory, &info) != 0 || info.st_uid == 0)
		return;
	/* Root without that right, as in a container: the file stays root's. */
	if (fchown(fd, info.st_uid, info.st_gid) != 0)
		return;
}

/* -1 and errno where it cannot be. */
static int open_lock_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		give_to_owner(fd, name);
	else if (errno == EEXIST)
		fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd;
}

int hpx_sqlite_file_lock_try(const char *path)
{
	char name[PATH_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open_lock_file(name);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

enum hpx_status hpx_sqlite_file_lock(const char *path, int *ret_fd, char *problem)
{
	char name[PATH_MAX + 8];
	enum hpx_status status;
	int fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open_lock_file(name);
	if (fd < 0)
		return explain_create(name, problem);
	if (!take_lock(fd)) {
		status = errno == EWOULDBLOCK ? HPX_BUSY : HPX_IO;
		explain_held(fd, path, problem);
		close(fd);
		return status;
	}
	status = write_pid(fd, name, problem);
	if (status != HPX_OK) {
		close(fd);
		return status;
	}
	*ret_fd = fd;
	return HPX_OK;
}

/* The new file's name must survive a power cut as well as its content. */
static enum hpx_status sync_directory(const char *path, char *problem)
{
	char directory[PATH_MAX];
	int fd;
	bool ok;

	directory_of(path, directory);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = fd >= 0 && fsync(fd) == 0;
	if (!ok)
		hpx_store_problem(problem, "%s: %m", directory);
	if (fd >= 0)
		close(fd);
	return ok ? HPX_OK : HPX_IO;
}

enum hpx_status hpx_sqlite_file_ensure(const char *path, bool create, char *problem)
{
	struct stat info;
	int fd;

	if (stat(path, &info) == 0)
		return HPX_OK;
	if (errno == ENOENT && !create) {
		hpx_store_problem(problem,
				  "there is no store at %s: if that is the right path, create it "
				  "once with `hapax migrate --store sqlite:%s`; an empty store in the "
				  "wrong place would forget every operation",
				  path, path);
		return HPX_NOT_FOUND;
	}
	/* Keys and answers are nobody else's; SQLite gives its other files the
	 * same mode. */
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return explain_create(path, problem);
	if (fd >= 0) {
		give_to_owner(fd, path);
		close(fd);
	}
	return sync_directory(path, problem);
}

uint64_t hpx_sqlite_file_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

uint64_t hpx_sqlite_file_log_bytes(const char *path)
{
	char log_path[PATH_MAX + 8];

	snprintf(log_path, sizeof(log_path), "%s-wal", path);
	return hpx_sqlite_file_bytes(log_path);
}

uint64_t hpx_sqlite_file_free_bytes(const char *path)
{
	struct statvfs info;

	if (statvfs(path, &info) != 0)
		return UINT64_MAX;
	return (uint64_t)info.f_bavail * (info.f_frsize != 0 ? info.f_frsize : info.f_bsize);
}

/* ---- the removal counter ---- */

/* The removal counter (store.h): eight bytes of the lock file, behind the
 * server's process number, mapped by whoever needs them. The server reads them
 * with every answer that it would give from memory; a person's command adds one
 * behind its commit. It is a hint about who should look anew, never a record:
 * where it cannot be had, removals are found by asking for them, a little
 * later. */

static int open_lock(const char *path)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s.lock", path);
	return open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

/* A file that is too short belongs to no server of today: reading behind its
 * end would be fatal. */
static bool has_room(int fd)
{
	struct stat info;

	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
	       info.st_size >= (off_t)sizeof(struct hpx_sqlite_lock);
}

void hpx_sqlite_removal_counter_map(struct hpx_sqlite_store *s)
{
	int fd = s->lock_fd >= 0 ? s->lock_fd : open_lock(s->path);
	void *map = MAP_FAILED;

	HPX_ASSERT(s->lock == NULL);
	if (fd >= 0 && has_room(fd))
		map = mmap(NULL, sizeof(struct hpx_sqlite_lock), PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	if (fd >= 0 && fd != s->lock_fd)
		close(fd);
	if (map == MAP_FAILED)
		return;
	s->lock = map;
	s->base.removal_count = &s->lock->removals;
}

void hpx_sqlite_removal_counter_unmap(struct hpx_sqlite_store *s)
{
	if (s->lock != NULL)
		munmap(s->lock, sizeof(*s->lock));
	s->lock = NULL;
	s->base.removal_count = NULL;
}

void hpx_sqlite_removal_counter_add(struct hpx_sqlite_store *s)
{
	/* A server may have begun only now. */
	if (s->lock == NULL)
		hpx_sqlite_removal_counter_map(s);
	if (s->lock != NULL)
		atomic_fetch_add(&s->lock->removals, 1);
}
