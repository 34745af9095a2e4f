/* Durations and sizes as people write them. */
#ifndef HPX_BASE_UNIT_H
#define HPX_BASE_UNIT_H

#include "base/span.h"

/* A whole number and a unit: 250ms, 10s, 2m, 24h, 7d; 0 needs none. */
bool hpx_duration_parse(struct hpx_span text, uint64_t *ret_ms);
/* A whole number of bytes, or of KiB, MiB, GiB (1024), KB, MB, GB (1000). */
bool hpx_size_parse(struct hpx_span text, uint64_t *ret_bytes);

/* In the largest unit that has no fraction: "24h", "90s", "32KiB". */
#define HPX_UNIT_SIZE 32
void hpx_duration_print(uint64_t ms, char out[HPX_UNIT_SIZE]);
void hpx_size_print(uint64_t bytes, char out[HPX_UNIT_SIZE]);

#endif
