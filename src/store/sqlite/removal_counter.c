/* The removal counter (store.h): eight bytes of the lock file, behind the
 * server's process number, mapped by whoever needs them. The server reads them
 * with every answer that it would give from memory; a person's command adds one
 * behind its commit. It is a hint about who should look anew, never a record:
 * where it cannot be had, removals are found by asking for them, a little
 * later. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/driver.h"

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
