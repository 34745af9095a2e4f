/* Histograms with doubling buckets, and how Prometheus wants to read them. */
#include "base/metric.h"

static unsigned bucket_of(uint64_t value)
{
	if (value <= 1)
		return 0;
	/* The smallest b with value <= 2^b. */
	unsigned b = (unsigned)(64 - __builtin_clzll(value - 1));
	return b < HPX_HISTOGRAM_BUCKETS - 1 ? b : HPX_HISTOGRAM_BUCKETS - 1;
}

void hpx_histogram_add(struct hpx_histogram *histogram, uint64_t value)
{
	hpx_counter_add(&histogram->bucket[bucket_of(value)], 1);
	hpx_counter_add(&histogram->sum, value);
}

void hpx_histogram_merge(struct hpx_histogram *into, const struct hpx_histogram *from)
{
	for (unsigned b = 0; b < HPX_HISTOGRAM_BUCKETS; b++)
		hpx_counter_add(&into->bucket[b], hpx_counter_read(&from->bucket[b]));
	hpx_counter_add(&into->sum, hpx_counter_read(&from->sum));
}

enum hpx_status hpx_histogram_print(const struct hpx_histogram *histogram,
				    const char *name, const char *help, double unit,
				    struct hpx_buffer *out)
{
	uint64_t total = 0;
	enum hpx_status status = hpx_buffer_printf(
		out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);

	for (unsigned b = 0; b + 1 < HPX_HISTOGRAM_BUCKETS && status == HPX_OK; b++) {
		total += hpx_counter_read(&histogram->bucket[b]);
		status = hpx_buffer_printf(out, "%s_bucket{le=\"%.9g\"} %llu\n", name,
					   (double)(1ULL << b) / unit,
					   (unsigned long long)total);
	}
	total += hpx_counter_read(&histogram->bucket[HPX_HISTOGRAM_BUCKETS - 1]);
	if (status == HPX_OK)
		status = hpx_buffer_printf(
			out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n",
			name, (unsigned long long)total, name,
			(double)hpx_counter_read(&histogram->sum) / unit, name,
			(unsigned long long)total);
	return status;
}
