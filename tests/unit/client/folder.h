/* A folder of the test's own, removed with all that is in it. */
#ifndef HPX_TESTS_CLIENT_FOLDER_H
#define HPX_TESTS_CLIENT_FOLDER_H

#include <dirent.h>
#include <unistd.h>

#include "../test.h"

static inline void folder_make(char *path, size_t size)
{
	snprintf(path, size, "/tmp/hapax-client-XXXXXX");
	assert_non_null(mkdtemp(path));
}

static inline void folder_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(folder), entry->d_name, 0), 0);
	closedir(folder);
}

static inline void folder_remove(const char *path)
{
	folder_empty(path);
	assert_int_equal(rmdir(path), 0);
}

#endif
