/* Public structs that begin with their size (include/hapax/common.h): the caller's
 * may be older and shorter, or newer and longer, than the library's own. */
#ifndef HPX_BASE_SIZED_H
#define HPX_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Far more than any of these structs has: a larger size was never set. */
#define HPX_SIZED_MAX 4096

static inline size_t hpx_sized_size(const void *given)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	return size;
}

/* False: the size is none, or bytes that the library does not know are not 0. */
static inline bool hpx_sized_valid(const void *given, size_t own_size)
{
	size_t size = hpx_sized_size(given);

	if (size < sizeof(size) || size > HPX_SIZED_MAX || size % sizeof(size) != 0)
		return false;
	for (size_t i = own_size; i < size; i++)
		if (((const char *)given)[i] != 0)
			return false;
	return true;
}

/* The caller's struct as the library knows it: members that the caller does not
 * have are 0. False: it is not valid. */
static inline bool hpx_sized_read(const void *given, void *ret_own, size_t own_size)
{
	if (given == NULL || !hpx_sized_valid(given, own_size))
		return false;
	size_t size = hpx_sized_size(given);
	memset(ret_own, 0, own_size);
	memcpy(ret_own, given, size < own_size ? size : own_size);
	return true;
}

/* Fills the members that the caller has; its size stays. */
static inline void hpx_sized_write(const void *own, size_t own_size, void *given)
{
	size_t size = hpx_sized_size(given);

	memcpy(given, own, size < own_size ? size : own_size);
	memcpy(given, &size, sizeof(size));
}

#endif
