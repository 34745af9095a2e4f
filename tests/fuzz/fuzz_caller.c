/* Any head of a request: who sent it (by every rule that names a tenant), what its cookies are,
 * and how long it prefers to wait. A tenant has a name and no reason, a refusal a reason. */
#include "base/status.h"
#include "gateway/steps.h"
#include "http/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hpx_network everybody = { .prefix_bits = 0 };

static void check_tenant(struct hpx_settings *settings, const struct hpx_http_head *head,
			 struct hpx_arena *arena)
{
	struct hpx_tenant_source source = { .settings = settings,
					    .head = head,
					    .host = hpx_field_value(head, HPX_SPAN("Host")),
					    .peer = "127.0.0.1",
					    .arena = arena };
	struct hpx_tenant tenant;
	enum hpx_status status = hpx_tenant_of(&source, &tenant);

	HPX_ASSERT(status == HPX_OK || status == HPX_INVALID || status == HPX_NOMEM);
	HPX_ASSERT(status != HPX_OK || tenant.name.len > 0);
	HPX_ASSERT(status != HPX_INVALID || tenant.reason != NULL);
}

static void check_head(const struct hpx_http_head *head)
{
	static const enum hpx_tenant_from rules[] = { HPX_TENANT_AUTOMATIC, HPX_TENANT_AUTHORIZATION,
						      HPX_TENANT_CREDENTIAL, HPX_TENANT_HEADER,
						      HPX_TENANT_COOKIE, HPX_TENANT_ANONYMOUS };
	struct hpx_settings settings = { .trusted_peers = &everybody, .trusted_peer_count = 1 };
	struct hpx_arena arena;
	int64_t wait_ms = -1;

	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		settings.tenant.from = rules[i];
		settings.tenant.name = rules[i] == HPX_TENANT_COOKIE ? HPX_SPAN("s") : HPX_SPAN("X-T");
		check_tenant(&settings, head, &arena);
	}
	struct hpx_span prefer = hpx_field_combined(head, HPX_SPAN("Prefer"), &arena);
	HPX_ASSERT(!hpx_prefer_wait(prefer, &wait_ms) || wait_ms >= 0);
	hpx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hpx_http_limits limits = { .head_bytes_max = 8192, .fields_max = 64 };
	struct hpx_http_reader reader;
	struct hpx_http_head head;
	struct hpx_buffer text;
	struct hpx_arena arena;
	size_t used;

	hpx_arena_init(&arena, 1 << 20);
	hpx_buffer_init(&text, 16384);
	hpx_http_reader_request(&reader, &limits);
	if (size < 8192 && hpx_buffer_text(&text, "POST / HTTP/1.1\r\nHost: h\r\n") == HPX_OK &&
	    hpx_buffer_append(&text, hpx_span(data, size)) == HPX_OK &&
	    hpx_buffer_text(&text, "\r\n\r\n") == HPX_OK &&
	    hpx_http_read_head(&reader, hpx_buffer_span(&text), &arena, &head, &used) == HPX_HTTP_DONE)
		check_head(&head);
	hpx_buffer_done(&text);
	hpx_arena_done(&arena);
	return 0;
}
