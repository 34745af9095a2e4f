/* Counters and histograms that one thread writes and another reads without
 * locks, and the page in Prometheus' text format that shows them. Each event
 * loop has its own set; the reader adds them up. */
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

/* Buckets double from `1` unit up: le 1, 2, 4, ... 2^27, +Inf. With the
 * microsecond as unit that spans 1 µs to 134 s: longer than a lease that anybody
 * chooses by it. */
#define HPX_HISTOGRAM_BUCKETS 29

struct hpx_histogram {
	struct hpx_counter bucket[HPX_HISTOGRAM_BUCKETS];
	struct hpx_counter sum;
};

void hpx_histogram_add(struct hpx_histogram *histogram, uint64_t value);
void hpx_histogram_clear(struct hpx_histogram *histogram);
/* Adds what `from` holds to `into` (which only the caller sees). */
void hpx_histogram_merge(struct hpx_histogram *into, const struct hpx_histogram *from);

/* A page of metrics. The first failure stays in `status`, and nothing is
 * written after it. */
struct hpx_metric_page {
	struct hpx_buffer *out;
	enum hpx_status status;
	bool openmetrics; /* OpenMetrics 1.0 instead of Prometheus' text format 0.0.4 */
};

/* A part of the page as it is: samples with several labels. */
#define HPX_METRIC_PRINT(page, ...) \
	do { \
		if ((page)->status == HPX_OK) \
			(page)->status = hpx_buffer_printf((page)->out, __VA_ARGS__); \
	} while (0)

/* The two lines before the samples; `type` is "counter", "gauge" or "histogram". The name
 * of a counter ends with _total, which OpenMetrics leaves out here. */
void hpx_metric_head(struct hpx_metric_page *page, const char *name, const char *type,
		     const char *help);
/* A whole metric without labels. */
void hpx_metric_counter(struct hpx_metric_page *page, const char *name, const char *help,
			uint64_t value);
void hpx_metric_gauge(struct hpx_metric_page *page, const char *name, const char *help,
		      uint64_t value);
void hpx_metric_seconds(struct hpx_metric_page *page, const char *name, const char *type,
			const char *help, double seconds);
/* What ends a page. */
void hpx_metric_end(struct hpx_metric_page *page);
/* One sample with one label: name{label="text"} value. */
void hpx_metric_sample(struct hpx_metric_page *page, const char *name, const char *label,
		       struct hpx_span text, uint64_t value);
/* The value of a label, escaped. */
void hpx_metric_label(struct hpx_metric_page *page, struct hpx_span text);
/* Values are divided by `unit` (1e6: microseconds shown as seconds). */
void hpx_metric_histogram(struct hpx_metric_page *page, const char *name, const char *help,
			  const struct hpx_histogram *histogram, double unit);
/* The samples of one label, after hpx_metric_head. */
void hpx_metric_histogram_of(struct hpx_metric_page *page, const char *name, const char *label,
			     struct hpx_span text, const struct hpx_histogram *histogram,
			     double unit);

#endif
