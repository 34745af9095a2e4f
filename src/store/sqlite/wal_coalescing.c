/* The log's frames of one commit in few large writes.
 *
 * SQLite hands over each frame of its write-ahead log in two pieces, 24 bytes
 * and a page, at offsets that are a multiple of nothing: two system calls and
 * three pages touched, for each of the sixty frames of a batch. This VFS stands
 * before the system's and differs from it in the log only, and there only from
 * hpx_sqlite_wal_begin(), right before a COMMIT, to the sync that makes it durable.
 *
 * Why nobody misses the bytes meanwhile:
 *  1. With synchronous = FULL a commit writes its frames, syncs the log, and
 *     only then publishes them in the shared index. No other connection reads a
 *     frame that is not published, the keeper's checkpoints included.
 *  2. Whatever else is asked of the file first writes the bytes kept back.
 *  3. After a sync nothing is kept back any more: what SQLite adds to fill up a
 *     sector is published without another one.
 *
 * Why no failure is lost:
 *  4. What cannot be written fails an xWrite or the xSync of the same COMMIT,
 *     and SQLite rolls the whole transaction back. Pages that leave a full cache
 *     before the COMMIT are written at once: a statement that fails there may be
 *     undone alone, and the transaction would go on without the bytes.
 *  5. What was handed on is forgotten, whatever came of it, and hpx_sqlite_wal_end()
 *     leaves nothing behind: the next transaction writes to the same places. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/driver.h"

#define VFS_NAME "hapax-coalescing"
/* The largest page, so that every VFS takes it in one write; the system's own
 * fails from 128 KiB on. Twice as much gave nothing. */
#define COALESCE_BYTES (64 << 10)

/* SQLite's file lies right behind this one. */
struct log_file {
	sqlite3_file base;
	unsigned char *bytes;
	sqlite3_int64 at; /* where they belong */
	int len;
	bool coalesces;
};

struct coalescing_vfs {
	sqlite3_vfs base;
	sqlite3_vfs *below;
	bool registered;
};

static struct log_file *log_of(sqlite3_file *file)
{
	return (struct log_file *)file;
}

static sqlite3_file *below_of(sqlite3_file *file)
{
	return (sqlite3_file *)(log_of(file) + 1);
}

static int write_pending(sqlite3_file *file)
{
	struct log_file *log = log_of(file);
	int len = log->len;

	if (len == 0)
		return SQLITE_OK;
	log->len = 0;
	return below_of(file)->pMethods->xWrite(below_of(file), log->bytes, len, log->at);
}

/* The methods that need the bytes in the file. */
#define AFTER_PENDING(method, ...) \
	do { \
		int code = write_pending(file); \
\
		if (code != SQLITE_OK) \
			return code; \
		return below_of(file)->pMethods->method(below_of(file), __VA_ARGS__); \
	} while (0)

static int log_close(sqlite3_file *file)
{
	int code = write_pending(file);
	int closed = below_of(file)->pMethods->xClose(below_of(file));

	free(log_of(file)->bytes);
	log_of(file)->bytes = NULL;
	return code != SQLITE_OK ? code : closed;
}

static int log_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
	AFTER_PENDING(xRead, bytes, len, at);
}

static int log_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
	struct log_file *log = log_of(file);
	int code = SQLITE_OK;

	if (at != log->at + log->len || len > COALESCE_BYTES - log->len)
		code = write_pending(file);
	if (code != SQLITE_OK)
		return code;
	if (!log->coalesces || len > COALESCE_BYTES)
		return below_of(file)->pMethods->xWrite(below_of(file), bytes, len, at);
	if (log->len == 0)
		log->at = at;
	memcpy(log->bytes + log->len, bytes, (size_t)len);
	log->len += len;
	HPX_ASSERT(log->len <= COALESCE_BYTES);
	return SQLITE_OK;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	AFTER_PENDING(xTruncate, size);
}

static int log_sync(sqlite3_file *file, int flags)
{
	log_of(file)->coalesces = false;
	AFTER_PENDING(xSync, flags);
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	AFTER_PENDING(xFileSize, ret_size);
}

static int log_lock(sqlite3_file *file, int level)
{
	AFTER_PENDING(xLock, level);
}

static int log_unlock(sqlite3_file *file, int level)
{
	AFTER_PENDING(xUnlock, level);
}

static int log_check_lock(sqlite3_file *file, int *ret_locked)
{
	AFTER_PENDING(xCheckReservedLock, ret_locked);
}

static int log_control(sqlite3_file *file, int what, void *arg)
{
	AFTER_PENDING(xFileControl, what, arg);
}

static int log_sector(sqlite3_file *file)
{
	return below_of(file)->pMethods->xSectorSize(below_of(file));
}

static int log_traits(sqlite3_file *file)
{
	return below_of(file)->pMethods->xDeviceCharacteristics(below_of(file));
}

/* Shared memory and mapped pages are the database file's, never the log's. */
static const sqlite3_io_methods log_methods = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = log_lock,
	.xUnlock = log_unlock,
	.xCheckReservedLock = log_check_lock,
	.xFileControl = log_control,
	.xSectorSize = log_sector,
	.xDeviceCharacteristics = log_traits,
};

static int open_log(sqlite3_vfs *below, const char *name, sqlite3_file *file, int flags,
		    int *ret_flags)
{
	struct log_file *log = log_of(file);
	int code;

	*log = (struct log_file){ .bytes = malloc(COALESCE_BYTES) };
	if (log->bytes == NULL)
		return SQLITE_NOMEM;
	below_of(file)->pMethods = NULL;
	code = below->xOpen(below, name, below_of(file), flags, ret_flags);
	/* A file that has methods wants to be closed, opened or not. */
	if (below_of(file)->pMethods != NULL) {
		log->base.pMethods = &log_methods;
		return code;
	}
	free(log->bytes);
	log->bytes = NULL;
	return code;
}

/* Any other file is that of the VFS below, in the same place. */
static int coalescing_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			   int *ret_flags)
{
	sqlite3_vfs *below = ((struct coalescing_vfs *)vfs)->below;

	if ((flags & SQLITE_OPEN_WAL) != 0)
		return open_log(below, name, file, flags, ret_flags);
	return below->xOpen(below, name, file, flags, ret_flags);
}

/* SQLite keeps what is registered for as long as the process lives. */
static struct coalescing_vfs coalescing;
static pthread_once_t register_once = PTHREAD_ONCE_INIT;

static void register_vfs(void)
{
	sqlite3_vfs *below = sqlite3_vfs_find(NULL);

	if (below == NULL)
		return;
	coalescing.below = below;
	coalescing.base = *below;
	coalescing.base.pNext = NULL;
	coalescing.base.zName = VFS_NAME;
	coalescing.base.szOsFile = (int)sizeof(struct log_file) + below->szOsFile;
	coalescing.base.xOpen = coalescing_open;
	coalescing.registered = sqlite3_vfs_register(&coalescing.base, 0) == SQLITE_OK;
}

const char *hpx_sqlite_wal_vfs(void)
{
	pthread_once(&register_once, register_vfs);
	return coalescing.registered ? VFS_NAME : NULL;
}

/* The connection's log; NULL where it is not ours, or not open. */
static sqlite3_file *log_file_of(struct hpx_sqlite_db *db)
{
	sqlite3_file *file = NULL;

	sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
	return file != NULL && file->pMethods == &log_methods ? file : NULL;
}

void hpx_sqlite_wal_begin(struct hpx_sqlite_db *db)
{
	sqlite3_file *file = log_file_of(db);

	if (file == NULL)
		return;
	HPX_ASSERT(log_of(file)->len == 0); /* 5 */
	log_of(file)->coalesces = true;
}

enum hpx_status hpx_sqlite_wal_end(struct hpx_sqlite_db *db, enum hpx_status status)
{
	sqlite3_file *file = log_file_of(db);

	if (file == NULL)
		return status;
	log_of(file)->coalesces = false;
	/* A COMMIT that came out well has synced, and nothing is left; if it had
	 * not, readers would look for these bytes already. */
	if (status == HPX_OK)
		return write_pending(file) == SQLITE_OK ? HPX_OK : HPX_IO;
	log_of(file)->len = 0;
	return status;
}
