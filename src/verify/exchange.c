/* Fields of an answer, by name. */
#include "verify/exchange.h"

struct hpx_span hpx_exchange_field(const struct hpx_exchange *exchange, struct hpx_span name)
{
	for (size_t i = 0; i < exchange->field_count; i++)
		if (hpx_span_ieq(exchange->fields[i].name, name))
			return exchange->fields[i].value;
	return hpx_span(NULL, 0);
}

size_t hpx_exchange_field_count(const struct hpx_exchange *exchange, struct hpx_span name)
{
	size_t count = 0;

	for (size_t i = 0; i < exchange->field_count; i++)
		count += hpx_span_ieq(exchange->fields[i].name, name);
	return count;
}
