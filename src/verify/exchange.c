/* Fields of an answer, by name. */
#include "verify/exchange.h"

struct hpx_span hpx_verify_exchange_field(const struct hpx_verify_exchange *exchange, struct hpx_span name)
{
	for (size_t i = 0; i < exchange->field_count; i++)
		if (hpx_span_ieq(exchange->fields[i].name, name))
			return exchange->fields[i].value;
	return hpx_span(NULL, 0);
}
