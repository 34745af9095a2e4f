/* Buckets by the position of the highest bit and the six bits after it. */
#include "histogram.h"

#define VALUE_MAX UINT32_MAX

static size_t bucket_of(uint64_t us)
{
	uint32_t value = us > VALUE_MAX ? VALUE_MAX : (uint32_t)us;
	unsigned shift;

	if (value < 2 * HISTOGRAM_FINE)
		return value;
	shift = 31u - HISTOGRAM_FINE_BITS - (unsigned)__builtin_clz(value);
	return (size_t)shift * HISTOGRAM_FINE + (value >> shift);
}

/* The middle of a bucket. */
static uint64_t value_of(size_t bucket)
{
	size_t shift;

	if (bucket < 2 * HISTOGRAM_FINE)
		return bucket;
	shift = bucket / HISTOGRAM_FINE - 1;
	return ((uint64_t)(bucket - shift * HISTOGRAM_FINE) << shift) + ((1ull << shift) >> 1);
}

void histogram_add(struct histogram *histogram, uint64_t us)
{
	histogram->counts[bucket_of(us)]++;
	histogram->total++;
	histogram->sum_us += us;
	if (us > histogram->max_us)
		histogram->max_us = us;
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
	double wanted = share * (double)histogram->total;
	uint64_t seen = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->counts[i];
		if (seen > 0 && (double)seen >= wanted)
			return value_of(i);
	}
	return 0;
}

void histogram_print(const struct histogram *histogram, FILE *out)
{
	const char *before = "";

	fputc('[', out);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (histogram->counts[i] == 0)
			continue;
		fprintf(out, "%s[%llu,%llu]", before, (unsigned long long)value_of(i),
			(unsigned long long)histogram->counts[i]);
		before = ",";
	}
	fputc(']', out);
}
