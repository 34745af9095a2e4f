/* Durations and sizes: two tables of units and one reader. */
#include "base/unit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"

struct unit {
	struct hpx_span name;
	uint64_t factor;
	bool printed; /* decimal sizes are read, never written */
};

/* The largest first, for printing. */
static const struct unit durations[] = {
	{ HPX_SPAN_INIT("d"), 86400000, true },
	{ HPX_SPAN_INIT("h"), 3600000, true },
	{ HPX_SPAN_INIT("m"), 60000, true },
	{ HPX_SPAN_INIT("s"), 1000, true },
	{ HPX_SPAN_INIT("ms"), 1, true },
};

static const struct unit sizes[] = {
	{ HPX_SPAN_INIT("GiB"), 1 << 30, true },
	{ HPX_SPAN_INIT("MiB"), 1 << 20, true },
	{ HPX_SPAN_INIT("KiB"), 1 << 10, true },
	{ HPX_SPAN_INIT("GB"), 1000000000, false },
	{ HPX_SPAN_INIT("MB"), 1000000, false },
	{ HPX_SPAN_INIT("KB"), 1000, false },
	{ HPX_SPAN_INIT("B"), 1, false },
	{ HPX_SPAN_INIT(""), 1, true },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool parse(struct hpx_span text, const struct unit *units, size_t count,
		  uint64_t *ret_value)
{
	size_t digits = 0;
	uint64_t number;

	while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
		digits++;
	struct hpx_span name = hpx_span_skip(text, digits);
	for (size_t i = 0; i < count; i++) {
		if (!hpx_span_eq(name, units[i].name))
			continue;
		/* Every value ends up in a signed member of 64 bits. */
		if (!hpx_span_u64(hpx_span_first(text, digits), INT64_MAX / units[i].factor,
				  &number))
			return false;
		*ret_value = number * units[i].factor;
		return true;
	}
	return false;
}

bool hpx_duration_parse(struct hpx_span text, uint64_t *ret_ms)
{
	if (hpx_span_eq(text, HPX_SPAN("0"))) {
		*ret_ms = 0;
		return true;
	}
	return parse(text, durations, COUNT(durations), ret_ms);
}

bool hpx_size_parse(struct hpx_span text, uint64_t *ret_bytes)
{
	return parse(text, sizes, COUNT(sizes), ret_bytes);
}

static void print(uint64_t value, const struct unit *units, size_t count,
		  char out[HPX_UNIT_SIZE])
{
	for (size_t i = 0; i < count; i++) {
		if (!units[i].printed || value % units[i].factor != 0)
			continue;
		snprintf(out, HPX_UNIT_SIZE, "%" PRIu64 "%.*s", value / units[i].factor,
			 HPX_SPAN_ARG(units[i].name));
		return;
	}
	HPX_ASSERT(false); /* the last unit of each table is 1 */
}

/* A day is also 24 hours; people say 24h, and 2d. */
void hpx_duration_print(uint64_t ms, char out[HPX_UNIT_SIZE])
{
	bool one_day = ms == durations[0].factor;

	if (ms == 0)
		snprintf(out, HPX_UNIT_SIZE, "0");
	else
		print(ms, durations + one_day, COUNT(durations) - one_day, out);
}

void hpx_size_print(uint64_t bytes, char out[HPX_UNIT_SIZE])
{
	if (bytes == 0)
		snprintf(out, HPX_UNIT_SIZE, "0");
	else
		print(bytes, sizes, COUNT(sizes), out);
}
