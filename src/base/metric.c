/* Histograms with doubling buckets, and the page that Prometheus reads. */
#include "base/metric.h"

#include <stdio.h>

#include "base/span.h"

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

void hpx_histogram_clear(struct hpx_histogram *histogram)
{
	for (unsigned b = 0; b < HPX_HISTOGRAM_BUCKETS; b++)
		hpx_counter_set(&histogram->bucket[b], 0);
	hpx_counter_set(&histogram->sum, 0);
}

void hpx_histogram_merge(struct hpx_histogram *into, const struct hpx_histogram *from)
{
	for (unsigned b = 0; b < HPX_HISTOGRAM_BUCKETS; b++)
		hpx_counter_add(&into->bucket[b], hpx_counter_read(&from->bucket[b]));
	hpx_counter_add(&into->sum, hpx_counter_read(&from->sum));
}

void hpx_metric_head(struct hpx_metric_page *page, const char *name, const char *type,
		     const char *help)
{
	struct hpx_span family = hpx_span_of(name);

	if (page->openmetrics && strcmp(type, "counter") == 0)
		family.len -= strlen("_total");
	HPX_METRIC_PRINT(page, "# HELP %.*s %s\n# TYPE %.*s %s\n", HPX_SPAN_ARG(family), help,
			 HPX_SPAN_ARG(family), type);
}

static void print_value(struct hpx_metric_page *page, const char *name, uint64_t value)
{
	HPX_METRIC_PRINT(page, "%s %llu\n", name, (unsigned long long)value);
}

void hpx_metric_counter(struct hpx_metric_page *page, const char *name, const char *help,
			uint64_t value)
{
	hpx_metric_head(page, name, "counter", help);
	print_value(page, name, value);
}

void hpx_metric_gauge(struct hpx_metric_page *page, const char *name, const char *help,
		      uint64_t value)
{
	hpx_metric_head(page, name, "gauge", help);
	print_value(page, name, value);
}

void hpx_metric_seconds(struct hpx_metric_page *page, const char *name, const char *type,
			const char *help, double seconds)
{
	hpx_metric_head(page, name, type, help);
	HPX_METRIC_PRINT(page, "%s %.3f\n", name, seconds);
}

void hpx_metric_end(struct hpx_metric_page *page)
{
	if (page->openmetrics)
		HPX_METRIC_PRINT(page, "# EOF\n");
}

/* A bound as both formats write it: "1.0", not "1". */
static void print_bound(double bound, char out[32])
{
	snprintf(out, 32, "%.9g", bound);
	if (strpbrk(out, ".e") == NULL)
		strcat(out, ".0");
}

/* Quotes and backslashes are escaped. A tenant's name may have any bytes and was
 * cut to its length; one byte that is no UTF-8 would have the whole page refused.
 * Such a byte, and a control byte, is written as \\xNN. */
void hpx_metric_label(struct hpx_metric_page *page, struct hpx_span text)
{
	while (text.len > 0 && page->status == HPX_OK) {
		size_t len = hpx_utf8_sequence(text);
		unsigned char first = (unsigned char)text.ptr[0];
		struct hpx_span piece = hpx_span_first(text, len > 0 ? len : 1);

		if (len == 0 || first < 0x20)
			HPX_METRIC_PRINT(page, "\\\\x%02x", first);
		else if (first == '"' || first == '\\')
			page->status = hpx_buffer_byte(page->out, '\\');
		if (page->status == HPX_OK && len > 0 && first >= 0x20)
			page->status = hpx_buffer_append(page->out, piece);
		text = hpx_span_skip(text, piece.len);
	}
}

void hpx_metric_sample(struct hpx_metric_page *page, const char *name, const char *label,
		       struct hpx_span text, uint64_t value)
{
	HPX_METRIC_PRINT(page, "%s{%s=\"", name, label);
	hpx_metric_label(page, text);
	HPX_METRIC_PRINT(page, "\"} %llu\n", (unsigned long long)value);
}

/* `name_bucket{label="text",le="0.5"} 3`; without a label, or without `le`, what is left. */
static void print_series(struct hpx_metric_page *page, const char *name, const char *label,
			 struct hpx_span text, const char *le)
{
	bool both = label != NULL && le != NULL;

	HPX_METRIC_PRINT(page, "%s", name);
	if (label == NULL && le == NULL) {
		HPX_METRIC_PRINT(page, " ");
		return;
	}
	HPX_METRIC_PRINT(page, "{");
	if (label != NULL) {
		HPX_METRIC_PRINT(page, "%s=\"", label);
		hpx_metric_label(page, text);
		HPX_METRIC_PRINT(page, "\"");
	}
	if (le != NULL)
		HPX_METRIC_PRINT(page, "%sle=\"%s\"", both ? "," : "", le);
	HPX_METRIC_PRINT(page, "} ");
}

void hpx_metric_histogram_of(struct hpx_metric_page *page, const char *name, const char *label,
			     struct hpx_span text, const struct hpx_histogram *histogram,
			     double unit)
{
	char series[128], le[32];
	uint64_t total = 0;

	for (unsigned b = 0; b < HPX_HISTOGRAM_BUCKETS; b++) {
		bool last = b + 1 == HPX_HISTOGRAM_BUCKETS;

		total += hpx_counter_read(&histogram->bucket[b]);
		snprintf(series, sizeof(series), "%s_bucket", name);
		if (last)
			snprintf(le, sizeof(le), "+Inf");
		else
			print_bound((double)(1ULL << b) / unit, le);
		print_series(page, series, label, text, le);
		HPX_METRIC_PRINT(page, "%llu\n", (unsigned long long)total);
	}
	snprintf(series, sizeof(series), "%s_sum", name);
	print_series(page, series, label, text, NULL);
	HPX_METRIC_PRINT(page, "%.9g\n", (double)hpx_counter_read(&histogram->sum) / unit);
	snprintf(series, sizeof(series), "%s_count", name);
	print_series(page, series, label, text, NULL);
	HPX_METRIC_PRINT(page, "%llu\n", (unsigned long long)total);
}

void hpx_metric_histogram(struct hpx_metric_page *page, const char *name, const char *help,
			  const struct hpx_histogram *histogram, double unit)
{
	hpx_metric_head(page, name, "histogram", help);
	hpx_metric_histogram_of(page, name, NULL, HPX_SPAN(""), histogram, unit);
}
