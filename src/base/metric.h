/* Counters and histograms that one thread writes and another reads without
 * locks. Each event loop has its own set; the reader adds them up. */
#ifndef HPX_BASE_METRIC_H
#define HPX_BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buffer.h"

struct hpx_counter {
	_Atomic uint64_t value;
};

static inline void hpx_counter_add(struct hpx_counter *counter, uint64_t n)
{
	atomic_fetch_add_explicit(&counter->value, n, memory_order_relaxed);
}

/* For a figure that goes up and down. */
static inline void hpx_counter_set(struct hpx_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline uint64_t hpx_counter_read(const struct hpx_counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

/* Buckets double from `1` unit up: le 1, 2, 4, ... 2^23, +Inf. With the
 * microsecond as unit that spans 1 µs to 8 s. */
#define HPX_HISTOGRAM_BUCKETS 25

struct hpx_histogram {
	struct hpx_counter bucket[HPX_HISTOGRAM_BUCKETS];
	struct hpx_counter sum;
};

void hpx_histogram_add(struct hpx_histogram *histogram, uint64_t value);
/* Adds what `from` holds to `into` (which only the caller sees). */
void hpx_histogram_merge(struct hpx_histogram *into, const struct hpx_histogram *from);
/* Prometheus text; values are divided by `unit` (1e6: µs shown as seconds). */
enum hpx_status hpx_histogram_print(const struct hpx_histogram *histogram,
				    const char *name, const char *help, double unit,
				    struct hpx_buffer *out);

#endif
