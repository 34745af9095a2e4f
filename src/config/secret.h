/* Secrets: read where the configuration says, never shown. */
#ifndef HPX_CONFIG_SECRET_H
#define HPX_CONFIG_SECRET_H

#include "base/arena.h"
#include "base/status.h"

#define HPX_SECRET_BYTES_MAX ((size_t)16 << 10)
#define HPX_SECRET_PROBLEM_SIZE 200

/* The file's bytes without the line ends behind them. `*ret_open`: others than
 * its owner and group may read it. HPX_INVALID: `problem` says why, and what
 * to do; never what stands in it. */
enum hpx_status hpx_secret_from_file(const char *path, struct hpx_arena *arena,
				     struct hpx_span *ret_secret, bool *ret_open,
				     char problem[HPX_SECRET_PROBLEM_SIZE]);
/* The same from a variable of the environment. */
enum hpx_status hpx_secret_from_env(const char *name, struct hpx_arena *arena,
				    struct hpx_span *ret_secret,
				    char problem[HPX_SECRET_PROBLEM_SIZE]);

#endif
