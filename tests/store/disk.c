/* The failing disk: every method passes on to the real file behind it. */
#include "disk.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>

static struct {
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
	struct disk_plan plan;
	atomic_uint calls;
	atomic_bool fired;
	bool careless;
} disk;

/* The real file lies right behind this one. */
struct disk_file {
	sqlite3_file base;
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return (sqlite3_file *)((struct disk_file *)file + 1);
}

static bool fails(enum disk_call call)
{
	if (disk.plan.nth == 0 || call != disk.plan.call)
		return false;
	unsigned n = atomic_fetch_add(&disk.calls, 1) + 1;
	if (n < disk.plan.nth || n >= disk.plan.nth + disk.plan.length)
		return false;
	atomic_store(&disk.fired, true);
	return true;
}

#define PASS(method, ...) real_of(file)->pMethods->method(real_of(file), ##__VA_ARGS__)

static int failed(void)
{
	if (disk.plan.code == DISK_DIES)
		raise(SIGKILL);
	return disk.plan.code;
}

/* Runs the call unless it fails before it is done. */
#define FAILING(call, method, ...) \
	do { \
		if (!fails(call)) \
			return PASS(method, __VA_ARGS__); \
		if (disk.plan.done == DISK_DONE) \
			PASS(method, __VA_ARGS__); \
		return failed(); \
	} while (0)

static int file_close(sqlite3_file *file)
{
	return PASS(xClose);
}

static int file_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
	FAILING(DISK_READ, xRead, bytes, len, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
	if (!fails(DISK_WRITE))
		return PASS(xWrite, bytes, len, at);
	if (disk.plan.done != DISK_UNDONE)
		PASS(xWrite, bytes, disk.plan.done == DISK_HALF_DONE ? len / 2 : len, at);
	return failed();
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	FAILING(DISK_TRUNCATE, xTruncate, size);
}

static int file_sync(sqlite3_file *file, int flags)
{
	FAILING(DISK_SYNC, xSync, flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	return PASS(xFileSize, ret_size);
}

static int file_lock(sqlite3_file *file, int level)
{
	return PASS(xLock, level);
}

static int file_unlock(sqlite3_file *file, int level)
{
	return PASS(xUnlock, level);
}

static int file_check_lock(sqlite3_file *file, int *ret_locked)
{
	return PASS(xCheckReservedLock, ret_locked);
}

static int file_control(sqlite3_file *file, int what, void *arg)
{
	return PASS(xFileControl, what, arg);
}

static int file_sector(sqlite3_file *file)
{
	return PASS(xSectorSize);
}

static int file_traits(sqlite3_file *file)
{
	int traits = PASS(xDeviceCharacteristics);

	return disk.careless ? traits & ~SQLITE_IOCAP_POWERSAFE_OVERWRITE : traits;
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
	return PASS(xShmMap, page, size, extend, ret);
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return PASS(xShmLock, offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
	PASS(xShmBarrier);
}

static int file_shm_unmap(sqlite3_file *file, int remove)
{
	return PASS(xShmUnmap, remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_lock,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
	.xShmMap = file_shm_map,
	.xShmLock = file_shm_lock,
	.xShmBarrier = file_shm_barrier,
	.xShmUnmap = file_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *ret_flags)
{
	struct disk_file *outer = (struct disk_file *)file;
	int code;

	(void)vfs;
	code = disk.real->xOpen(disk.real, name, real_of(file), flags, ret_flags);
	outer->base.pMethods = NULL;
	if (real_of(file)->pMethods != NULL)
		outer->base.pMethods = &methods;
	return code;
}

void disk_register(void)
{
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "failing";
	disk.vfs.szOsFile = (int)sizeof(struct disk_file) + disk.real->szOsFile;
	disk.vfs.xOpen = disk_open;
	sqlite3_vfs_register(&disk.vfs, 1);
}

void disk_arm(const struct disk_plan *plan)
{
	disk.plan = *plan;
	atomic_store(&disk.calls, 0);
	atomic_store(&disk.fired, false);
}

bool disk_disarm(void)
{
	disk.plan.nth = 0;
	return atomic_load(&disk.fired);
}

unsigned disk_calls(void)
{
	return atomic_load(&disk.calls);
}

void disk_powersafe(bool is)
{
	disk.careless = !is;
}
