/* How long requests took: counts in buckets that are as wide as a 64th of their
 * value, so that any percentile is right to 1.6 %. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_FINE_BITS 6
#define HISTOGRAM_FINE (1u << HISTOGRAM_FINE_BITS)
/* Up to 2^32 µs, more than an hour. */
#define HISTOGRAM_BUCKETS ((32 - HISTOGRAM_FINE_BITS + 1) * HISTOGRAM_FINE)

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t sum_us;
	uint64_t max_us;
};

void histogram_add(struct histogram *histogram, uint64_t us);
/* The value that `share` (0 to 1) of all are at or below; 0 where there are none. */
uint64_t histogram_at(const struct histogram *histogram, double share);
/* As JSON: [[value in µs, count], ...], empty buckets left out. */
void histogram_print(const struct histogram *histogram, FILE *out);

#endif
