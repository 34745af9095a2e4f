/* What libhapax (hapax.h) and libhapax-client (client.h) share: the version, the
 * results, and how structs grow. A program includes one of those two.
 *
 * "Since 0.2" says which release brought a name first. A member that came later
 * than its struct says so beside it.
 *
 * Structs grow at their end, and a program that was built with an older header
 * goes on working with a newer library: every struct begins with its size.
 *
 * - A struct that the program fills, or gives to be filled, says how large it was
 *   when the program was built:
 *
 *	struct hapax_begin begin = { .size = sizeof(begin), .tenant = … };
 *	struct hapax_operation operation;   (in C++11, or where it stands already)
 *	HAPAX_INIT(&operation);
 *
 *   To a newer library, members that the program does not know are 0, which is
 *   always the default, and they are not filled. To an older library, members that
 *   it does not know must be 0: HAPAX_MISUSE, so that nothing is asked for in vain.
 *   A size that was not set is HAPAX_MISUSE too.
 * - A struct that the library hands out by a pointer has the library's size. A
 *   program that may run with an older library asks HAPAX_HAS before it reads a
 *   member that came later. */
#ifndef HAPAX_COMMON_H
#define HAPAX_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The version of these headers; hapax_version() is the library's. The build reads
 * its own version from here. Since 0.2. */
#define HAPAX_VERSION_MAJOR 0
#define HAPAX_VERSION_MINOR 2
#define HAPAX_VERSION_PATCH 0

/* One number to compare: 1002003 is 1.2.3. Since 0.2. */
#define HAPAX_VERSION_CODE(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define HAPAX_VERSION_NUMBER \
	HAPAX_VERSION_CODE(HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR, HAPAX_VERSION_PATCH)
/* #if HAPAX_VERSION_AT_LEAST(0, 2, 0). Since 0.2. */
#define HAPAX_VERSION_AT_LEAST(major, minor, patch) \
	(HAPAX_VERSION_NUMBER >= HAPAX_VERSION_CODE(major, minor, patch))

#if defined(__GNUC__)
#define HAPAX_API __attribute__((visibility("default")))
#else
#define HAPAX_API
#endif

/* Makes all members of a struct 0 and sets its size. Since 0.2. */
#define HAPAX_INIT(pointer) \
	((void)memset((pointer), 0, sizeof(*(pointer))), \
	 (void)((pointer)->size = sizeof(*(pointer))))
/* Whether a struct that the library handed out has this member. Since 0.2. */
#define HAPAX_HAS(pointer, member) \
	((const char *)(&(pointer)->member + 1) <= (const char *)(pointer) + (pointer)->size)

/* What a call comes to. Since 0.2. */
enum hapax_result {
	HAPAX_OK = 0,
	HAPAX_NOMEM,       /* out of memory */
	HAPAX_INVALID,     /* the input is malformed; the problem says how */
	HAPAX_MISUSE,      /* an argument breaks the header's contract */
	HAPAX_STALE,       /* the lease is lost: this attempt may write nothing, roll back */
	HAPAX_REFUSED,     /* the operation is not in a state that allows this */
	HAPAX_CONFLICT,    /* a job of this name was enqueued with other content */
	HAPAX_BUSY,        /* somebody else holds the row or the file: try again */
	HAPAX_UNAVAILABLE, /* the store cannot be used; nothing was begun or written */
	HAPAX_UNCERTAIN,   /* not known to be durable in time; the handle goes on trying, and the
			     * same call again tells. No other may be made by that lease before:
			     * it could overtake this one. Never of hapax_begin */
};

/* The bytes of a `problem`: a sentence for people. Since 0.2. */
#define HAPAX_PROBLEM_SIZE 512

#endif
