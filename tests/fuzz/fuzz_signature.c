/* Any headers of a webhook (the first byte chooses the scheme; the first lines are the headers,
 * the rest the body): nothing that was not signed with the secret is taken. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADERS 3

struct message_headers {
	struct hpx_span values[HEADERS];
};

/* The headers of a scheme in the order of the input's lines; an empty line is none. */
static struct hpx_span find_header(void *user, struct hpx_span name)
{
	static const struct {
		struct hpx_span name;
		size_t at;
	} names[] = {
		{ HPX_SPAN_INIT("stripe-signature"), 0 },
		{ HPX_SPAN_INIT("x-signature"), 0 },
		{ HPX_SPAN_INIT("webhook-signature"), 0 },
		{ HPX_SPAN_INIT("webhook-id"), 1 },
		{ HPX_SPAN_INIT("webhook-timestamp"), 2 },
	};
	const struct message_headers *headers = user;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (hpx_span_eq(name, names[i].name) && headers->values[names[i].at].len > 0)
			return headers->values[names[i].at];
	return (struct hpx_span){ NULL, 0 };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Drawn for each process, so that no input can be signed with it. */
	static uint8_t secret[32];
	static bool drawn;
	struct message_headers headers = { .values = { { NULL, 0 } } };
	struct hpx_span rest = hpx_span(data, size);
	struct hpx_arena arena;
	struct hpx_span key;

	if (!drawn)
		hpx_random(secret, sizeof(secret));
	drawn = true;
	if (size == 0)
		return 0;
	struct hpx_signature_settings settings = {
		.scheme = (enum hpx_signature_scheme)(data[0] % HPX_SIGNATURE_SCHEME_COUNT),
		.keys = &key,
		.key_count = 1,
		.tolerance_ms = INT64_MAX,
		.header = HPX_SPAN("x-signature"),
		.prefix = data[0] & 64 ? HPX_SPAN("sha256=") : HPX_SPAN("")
	};
	hpx_arena_init(&arena, 1 << 16);
	/* Whatever is in a file of secrets is a key or is refused. */
	(void)hpx_signature_key(settings.scheme, hpx_span_first(rest, 4096), &arena, &key);
	key = hpx_span(secret, sizeof(secret));
	rest = hpx_span_skip(rest, 1);
	for (size_t i = 0; i < HEADERS; i++)
		(void)hpx_span_split(&rest, '\n', &headers.values[i]);
	struct hpx_signature_message message = { rest, find_header, &headers };
	HPX_ASSERT(hpx_signature_check(&settings, &message, 1800000000000) != HPX_SIGNATURE_OK);
	(void)hpx_signature_time(&settings, &message);
	hpx_arena_done(&arena);
	return 0;
}
