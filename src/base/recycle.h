/* Whether memory is kept for the next request instead of being given back to the
 * allocator. Not under a sanitizer: it finds a use after the end only in memory that
 * was really freed. */
#ifndef HPX_BASE_RECYCLE_H
#define HPX_BASE_RECYCLE_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HPX_RECYCLES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define HPX_RECYCLES 0
#endif
#endif
#ifndef HPX_RECYCLES
#define HPX_RECYCLES 1
#endif

/* The largest buffer that is kept, so that one large message does not hold its memory
 * for ever. Heads and the bodies of most API calls are smaller. */
#define HPX_RECYCLED_BYTES_MAX 4096

#endif
