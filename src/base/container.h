/* From a member back to the struct that embeds it. */
#ifndef HPX_BASE_CONTAINER_H
#define HPX_BASE_CONTAINER_H

#include <stddef.h>

#define HPX_CONTAINER(member_ptr, type, member) \
	((type *)((char *)(member_ptr)-offsetof(type, member)))

#endif
