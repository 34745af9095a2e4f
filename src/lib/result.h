/* From the store's statuses to the public results, and the sentences that go
 * with them. */
#ifndef HPX_LIB_RESULT_H
#define HPX_LIB_RESULT_H

#include "base/status.h"
#include "hapax/hapax.h"

/* A struct that is not of any version: its size was not set, or it asks for what
 * this library does not know. `name` is the struct's. */
enum hapax_result hpx_result_bad_struct(const char *name, char *problem);

enum hapax_result hpx_result_of(enum hpx_status status);

/* The sentence for people, cut to its size; `problem` may be NULL. Gives the
 * result back, so that a caller can end with it. */
enum hapax_result hpx_result_say(enum hapax_result result, char *problem, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The sentence that fits the status; `detail` (may be NULL or "") is what the
 * store said of itself. */
enum hapax_result hpx_result_tell(enum hpx_status status, const char *detail, char *problem);

#endif
