/* Profiles: each is one table of defaults, by the names of options. An option that a
 * profile does not list has the same default everywhere. */
#include "config/profile.h"

#include <string.h>

#include "base/status.h"

struct profile_row {
	const char *option;
	const char *value;
};

/* A key that was used with other parameters is 400; a 500 is an answer like any. */
static const struct profile_row stripe[] = {
	{ "key_syntax", "bare" },
	{ "mismatch_status", "400" },
	{ "errors", "stripe" },
	{ "key", "optional" },
	{ "scope", "tenant" },
	{ "server_error", "replay" },
	{ NULL, NULL },
};

/* PayPal-Request-Id, of up to 108 characters. Its APIs keep keys for 3 hours to 45 days,
 * most often 72 hours. */
static const struct profile_row paypal[] = {
	{ "key_header", "PayPal-Request-Id" },
	{ "key_syntax", "bare" },
	{ "mismatch_status", "422" },
	{ "errors", "paypal" },
	{ "key", "optional" },
	{ "key_max", "108" },
	{ "retention", "72h" },
	{ NULL, NULL },
};

/* idempotency_key in the body, of up to 45 to 192 characters by endpoint. */
static const struct profile_row square[] = {
	{ "key_from", "body /idempotency_key" },
	{ "key_syntax", "bare" },
	{ "mismatch_status", "400" },
	{ "errors", "square" },
	{ "key", "optional" },
	{ "key_max", "192" },
	{ "retention", "24h" },
	{ NULL, NULL },
};

static const struct {
	const char *name;
	const struct profile_row *rows;
} profiles[HPX_PROFILE_COUNT] = {
	[HPX_PROFILE_IETF] = { "ietf", NULL },
	[HPX_PROFILE_STRIPE] = { "stripe", stripe },
	[HPX_PROFILE_PAYPAL] = { "paypal", paypal },
	[HPX_PROFILE_SQUARE] = { "square", square },
};

const char *hpx_profile_name(enum hpx_profile profile)
{
	HPX_ASSERT(profile < HPX_PROFILE_COUNT);
	return profiles[profile].name;
}

enum hpx_profile hpx_profile_of(struct hpx_span name)
{
	for (int i = 0; i < HPX_PROFILE_COUNT; i++)
		if (hpx_span_eq(name, hpx_span_of(profiles[i].name)))
			return (enum hpx_profile)i;
	return HPX_PROFILE_IETF;
}

const char *hpx_profile_default(enum hpx_profile profile, const struct hpx_option *option)
{
	HPX_ASSERT(profile < HPX_PROFILE_COUNT);
	const struct profile_row *row = profiles[profile].rows;

	if (option->place != HPX_PLACE_GLOBAL && option->place != HPX_PLACE_POLICY)
		return NULL;
	for (; row != NULL && row->option != NULL; row++)
		if (strcmp(row->option, option->name) == 0)
			return row->value;
	return NULL;
}
